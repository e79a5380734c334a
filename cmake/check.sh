#!/bin/sh
# One command that builds everything and runs the tests (setting up a Debian or Ubuntu first, where needed).
#   sh cmake/check.sh [BUILD_FOLDER] [option of cmake]...
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/check}
[ $# = 0 ] || shift

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

[ ! -e /etc/debian_version ] || sh cmake/setup-debian.sh
say "building into $build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DONEWEIGHT_BUILD_TESTS=ON "$@"
cmake --build "$build"
say "testing"
ctest --test-dir "$build" --output-on-failure --parallel "$(getconf _NPROCESSORS_ONLN)"
