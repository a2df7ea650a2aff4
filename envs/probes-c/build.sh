#!/usr/bin/env bash
# The kernels of our probes as a library, FOLDER/lib/transect-probes-*.so: build.sh FOLDER.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
choose_compiler c "$folder"

# Compiles one: library NAME OPTION...
library() {
    "${compiler[@]}" -std=gnu11 -O3 -Wall -Wextra -Wno-psabi -fPIC -shared "${@:2}" \
        "$here/../../src/kernels/probes/stencil.c" -o "$folder/lib/transect-probes-$1.so"
}

# Machines that share the environment may have other processors: each takes the last that it can run.
library any
if [ "$(uname -m)" = x86_64 ]; then
    library avx2 -mavx2 -mfma
    library avx512 -mavx2 -mfma -mavx512f -mavx512vl -mavx512dq
fi
tell_compiler "$folder"
