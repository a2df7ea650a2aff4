#!/usr/bin/env bash
# The kernels of our probes as a library, FOLDER/lib/transect-probes.so: build.sh FOLDER.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
choose_compiler c "$folder"
# For any machine of this kind that shares the environment: they wait for memory, not for wide registers.
"${compiler[@]}" -std=gnu11 -O3 -funroll-loops -Wall -Wextra -fPIC -shared \
    "$here/../../src/kernels/probes/stencil.c" -o "$folder/lib/transect-probes.so"
tell_compiler "$folder"
