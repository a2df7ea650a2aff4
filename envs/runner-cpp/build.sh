#!/usr/bin/env bash
# The runner in C++, into FOLDER/bin: build.sh FOLDER.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
bash "$here/../shared/onnxruntime-library.sh" "$folder"
headers=${TRANSECT_NEEDS_ONNXRUNTIME_HEADERS:?environment onnxruntime-headers must stand in needs.txt}
runners=$here/../../src/runners
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# It reads plans as the runner in C does.
choose_compiler c "$folder"
"${compiler[@]}" -std=c11 -D_DEFAULT_SOURCE -O2 -Wall -Wextra -Wpedantic \
    -c "$runners/c/plan.c" -o "$work/plan.o"
choose_compiler c++ "$folder"
"${compiler[@]}" -std=c++17 -O2 -s -Wall -Wextra -Wpedantic \
    -isystem "$headers/include" "$runners"/cpp/*.cpp "$work/plan.o" \
    -o "$folder/bin/transect-runner-cpp" -ldl -pthread
tell_compiler "$folder"
