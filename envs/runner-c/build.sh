#!/usr/bin/env bash
# The runner in C, into FOLDER/bin: build.sh FOLDER.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
bash "$here/../shared/onnxruntime-library.sh" "$folder"
headers=${TRANSECT_NEEDS_ONNXRUNTIME_HEADERS:?environment onnxruntime-headers must stand in needs.txt}

choose_compiler c "$folder"
"${compiler[@]}" -std=c11 -D_DEFAULT_SOURCE -O2 -s -Wall -Wextra -Wpedantic \
    -isystem "$headers/include" "$here"/../../src/runners/c/*.c \
    -o "$folder/bin/transect-runner-c" -ldl -lm -pthread
tell_compiler "$folder"
