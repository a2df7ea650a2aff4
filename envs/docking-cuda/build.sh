#!/usr/bin/env bash
# The docking kernel in CUDA, into FOLDER/bin: build.sh FOLDER. The machine's own nvcc, if it has one: it
# may know a GPU that the pinned one has forgotten, or not yet met.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/docking.sh"
source "$here/../shared/compiler.sh"
source=$here/../../src/kernels/docking/c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! type -P nvcc > /dev/null; then
    # It looks for its other parts beside itself.
    nvcc_bin=$(echo "$folder"/lib/python*/site-packages/nvidia/cu13/bin)
    export PATH=$nvcc_bin:$PATH
fi
choose_compiler c "$folder"
"${compiler[@]}" -std=gnu11 -O2 -Wall -Wextra -DKERNEL_TELLS_COMPILER -c "$source/main.c" -o "$work/main.o"
attempt cuda nvcc -O3 --use_fast_math -arch=all-major "$source/docking.cu" "$work/main.o"
nvcc --version | tail -n 2 | head -n 1 | sed 's/["\\]//g; s/.*/{"compiler": "nvcc, &"}/' \
    > "$folder/transect-build.json"
