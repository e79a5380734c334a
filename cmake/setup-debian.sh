#!/bin/sh
# Installs what a build needs on Debian 12 or newer and Ubuntu 24.04 or newer. Run as root; does nothing when all
# is there. Headers that the distribution has in too old a version come from a newer stable suite of the same
# mirror, unpacked into build/deps/root, where CMake looks first: nothing of the system is upgraded.
#   sh cmake/setup-debian.sh           compiler, CMake, headers
#   sh cmake/setup-debian.sh ci        also clang, the Arm compiler and valgrind of .ci/run
set -eu
cd "$(dirname "$0")/.."
deps=$PWD/build/deps
root=$deps/root/usr/include

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

# Version "major minor" that a header defines, as one number; 0 when there is none.
header_version() {  # file macro-prefix
  [ -f "$1" ] || { echo 0; return; }
  sed -n "s/^#define $2_\(MAJOR\|MINOR\) *\([0-9]*\).*/\2/p" "$1" | head -n 2 | { read -r a; read -r b; echo $((a * 100 + b)); }
}
have_highway() { for d in "$root" /usr/include /usr/local/include; do [ "$(header_version "$d/hwy/base.h" HWY)" -ge 102 ] && return 0; done; return 1; }
have_catch2() { for d in "$root" /usr/include /usr/local/include; do [ -f "$d/catch2/catch_test_macros.hpp" ] && return 0; done; return 1; }

missing=
need() {  # package, then a command or file that shows that it is there
  case $2 in
    /*) [ -e "$2" ] || missing="$missing $1" ;;
    *) command -v "$2" > /dev/null || missing="$missing $1" ;;
  esac
}
need g++ g++
need cmake cmake
need ninja-build ninja
need ccache ccache
need libeigen3-dev /usr/include/eigen3/Eigen/Core
need libflatbuffers-dev /usr/include/flatbuffers/flatbuffers.h
need nlohmann-json3-dev /usr/include/nlohmann/json.hpp
need libcli11-dev /usr/include/CLI/CLI.hpp
need libstb-dev /usr/include/stb/stb_image.h
if [ "${1:-}" = ci ]; then
  need clang clang++
  need gcc-arm-none-eabi arm-none-eabi-g++
  need libnewlib-arm-none-eabi /usr/lib/arm-none-eabi/include/stdio.h
  need libstdc++-arm-none-eabi-newlib /usr/lib/arm-none-eabi/lib/libstdc++.a
  need valgrind valgrind
fi
# Which suite has Highway 1.2 and Catch2 3: the system's own where that is new enough. "cmake": CMake fetches it.
. /etc/os-release
case $ID-${VERSION_ID:-} in
  debian-12) highway_suite=trixie catch2_suite=bookworm-backports ;;
  ubuntu-24.04) highway_suite=cmake catch2_suite=own ;;
  *) highway_suite=own catch2_suite=own ;;
esac
if have_highway; then highway_suite=none; fi
if have_catch2; then catch2_suite=none; fi
if [ "$highway_suite" = own ]; then missing="$missing libhwy-dev"; fi
if [ "$highway_suite" = cmake ]; then need git git; fi
if [ "$catch2_suite" = own ]; then missing="$missing catch2"; fi
case "$missing,$highway_suite,$catch2_suite" in
  ,none,none | ,cmake,none) exit 0 ;;
esac
[ "$(id -u)" = 0 ] || { echo "setup: packages are missing ($missing); run this as root" >&2; exit 1; }
command -v apt-get > /dev/null || { echo "setup: this is not a Debian or Ubuntu; see README.md for what to install" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive

say "installing:$missing"
apt-get update -q
# shellcheck disable=SC2086
[ -z "$missing" ] || apt-get install -y -q --no-install-recommends $missing ca-certificates git

# Takes one package of another suite of the machine's own mirror, without installing it.
unpack() {  # suite package
  say "unpacking $2 of $1 into build/deps"
  d=$deps/$1
  mkdir -p "$d/lists/partial" "$d/archives/partial" "$deps/root"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" > "$d/suite.list"
  options="-q -o Dir::Etc::SourceList=$d/suite.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$d/lists"
  options="$options -o Dir::Cache=$d -o Acquire::Languages=none -o APT::Sandbox::User=root"
  # shellcheck disable=SC2086
  (cd "$d" && rm -f "$2"_*.deb && apt-get $options update && apt-get $options download "$2" && dpkg -x "$2"_*.deb "$deps/root")
}
case $highway_suite in
  own | none) ;;
  cmake) say "Highway is too old here: CMake will fetch it" ;;
  *) unpack "$highway_suite" libhwy-dev ;;  # only its headers are used
esac
case $catch2_suite in
  own | none) ;;
  *) unpack "$catch2_suite" libcatch2-dev ;;
esac
say "set up"
