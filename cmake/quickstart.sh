#!/bin/sh
# One command from a fresh machine to an answer: installs what is missing (Debian, Ubuntu), builds the program, runs
# a model of the repository, and prints the memory of nine contexts of it.
#   sh cmake/quickstart.sh [BUILD_FOLDER] [MODEL.tflite]
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
model=${2:-tests/data/models/coral_mobilenet_v1_025_128/model.tflite}
input=${model%/*}/photo/in_0.npy

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

[ ! -e /etc/debian_version ] || sh cmake/setup-debian.sh
say "building the program into $build"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DONEWEIGHT_BUILD_TESTS=OFF
cmake --build "$build" --target oneweight_program
say "what is in $model"
"$build/bin/oneweight" inspect "$model"
say "its answer"
if [ -e "$input" ]; then
  "$build/bin/oneweight" run "$model" --input "$input"
else
  "$build/bin/oneweight" run "$model"
fi
say "memory of nine contexts"
"$build/bin/oneweight" memory "$model" --contexts 9
