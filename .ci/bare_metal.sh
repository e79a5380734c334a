#!/usr/bin/env bash
# Compiles and links examples/embedded for Cortex-M, and prints its size.
#   bash .ci/bare_metal.sh BUILD_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/ci/metal}
mkdir -p "$build/include"

# Only the wanted headers: the folder they lie in may hold those of another system's C library.
for header in hwy flatbuffers; do
  for folder in build/deps/root/usr/include /usr/include /usr/local/include; do
    if [ -d "$folder/$header" ]; then
      ln -sfn "$(realpath "$folder/$header")" "$build/include/$header"
      break
    fi
  done
  [ -e "$build/include/$header" ] || { echo "no headers of $header" >&2; exit 1; }
done

for cpu in cortex-m3 cortex-m4 cortex-m7; do
  arm-none-eabi-g++ -std=c++20 -mcpu=$cpu -mthumb -Os -DNDEBUG -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections \
    -Wall -Wextra -Iinclude -Iexamples/embedded -isystem "$build/include" examples/embedded/main.cc -Wl,--gc-sections --specs=nosys.specs \
    -o "$build/$cpu.elf" 2> "$build/$cpu.log" || { cat "$build/$cpu.log" >&2; exit 1; }
  printf '%-10s ' "$cpu"
  arm-none-eabi-size "$build/$cpu.elf" | awk 'NR == 2 { print "text " $1 ", data " $2 ", bss " $3 " bytes" }'
done
