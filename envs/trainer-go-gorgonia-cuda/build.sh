#!/usr/bin/env bash
# The trainer on Gorgonia with its CUDA build, into FOLDER/bin: build.sh FOLDER. Wheels bring CUDA's headers
# and libraries; the driver's libcuda.so.1 is looked for when the program starts.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
source "$here/../shared/go.sh"
find_go "$folder" "$here/go.txt"
choose_compiler c "$folder"
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

nvidia=$(echo "$folder"/lib/python3*/site-packages/nvidia)
links=$folder/lib/cuda-links
mkdir -p "$links"
flags=(-Wno-deprecated-declarations) libraries=("-L$links")
for part in cublas cuda_nvcc cuda_nvrtc cuda_runtime cudnn curand; do
    flags+=("-I$nvidia/$part/include")
    if [ -d "$nvidia/$part/lib" ]; then
        libraries+=("-Wl,-rpath,$nvidia/$part/lib")
        # Wheels have no names without a version, which -l asks for.
        for library in "$nvidia/$part/lib"/lib*.so.*; do
            name=$(basename "$library")
            ln -sf "$library" "$links/${name%%.so*}.so"
        done
    fi
done
# A machine that builds may have no driver: an empty library of its name stands for it, so that the
# program asks for the driver's when it starts.
"${compiler[@]}" -shared -Wl,-soname,libcuda.so.1 -o "$links/libcuda.so" -x c /dev/null

cd "$here/../../src/trainers/go-gorgonia"
# The C that Go compiles is kept in a cache by the compiler's name alone: a cache of this build's own.
CC="${compiler[*]}" CGO_ENABLED=1 CGO_CFLAGS="${flags[*]}" GOCACHE=$work GOTOOLCHAIN=local GOFLAGS= GOWORK=off \
    CGO_LDFLAGS="${libraries[*]} -Wl,--unresolved-symbols=ignore-all -Wl,--no-as-needed -lcuda -Wl,--as-needed" \
    CGO_LDFLAGS_ALLOW='-Wl,(--unresolved-symbols=.*|-rpath,.*|--(no-)?as-needed)' \
    go build -p 2 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' -tags cuda \
    -o "$folder/bin/transect-trainer-go-gorgonia" ./cmd/transect-trainer-go-gorgonia
tell_compiler "$folder"
