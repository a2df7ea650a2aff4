#!/usr/bin/env bash
# The trainers in Go, into FOLDER/bin: build.sh FOLDER. go fetches the modules of go.sum.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
if ! type -P go > /dev/null; then
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
        --requirement "$here/go.txt"
    export PATH=$folder/bin:$PATH
fi
choose_compiler c "$folder"
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

# What is linked against lies in the environment itself, which is never moved.
openblas=$("$folder/bin/python" -c 'import scipy_openblas32 as o; print(o.get_include_dir(), o.get_lib_dir())')
read -r openblas_include openblas_library <<< "$openblas"
export CGO_CFLAGS="-O2 -I$openblas_include"
export CGO_LDFLAGS="-L$openblas_library -lscipy_openblas -Wl,-rpath,$openblas_library"

cd "$here/../../src/trainers/go"
# program NAME CGO TAGS [CC]: the C that Go compiles is kept in a cache by the compiler's name alone, so the
# cache is this build's own.
program() {
    CC=${4:-${compiler[*]}} CGO_ENABLED=$2 GOCACHE=$work GOTOOLCHAIN=local GOFLAGS= \
        go build -p 1 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' -tags "$3" \
        -o "$folder/bin/$1" ./cmd/transect-trainer-go
}
program transect-trainer-go 0 ''
program transect-trainer-go-openblas 1 openblas
# Linked against the MPI of this environment, whose mpiexec starts the ranks.
export OMPI_CC="${compiler[*]}"
program transect-trainer-go-mpi 1 mpi "$folder/bin/mpicc"
program transect-trainer-go-openblas-mpi 1 mpi,openblas "$folder/bin/mpicc"
tell_compiler "$folder"
