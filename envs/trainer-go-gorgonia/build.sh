#!/usr/bin/env bash
# The trainer on Gorgonia, in pure Go and with MPI, into FOLDER/bin: build.sh FOLDER. go fetches the modules
# of go.sum.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
source "$here/../shared/go.sh"
find_go "$folder" "$here/go.txt"
choose_compiler c "$folder"
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

cd "$here/../../src/trainers/go-gorgonia"
# program NAME CGO TAGS: the C that Go compiles is kept in a cache by the compiler's name alone, so the
# cache is this build's own.
program() {
    CC="$folder/bin/mpicc" OMPI_CC="${compiler[*]}" CGO_ENABLED=$2 GOCACHE=$work GOTOOLCHAIN=local GOFLAGS= GOWORK=off \
        go build -p 2 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' -tags "$3" \
        -o "$folder/bin/$1" ./cmd/transect-trainer-go-gorgonia
}
program transect-trainer-go-gorgonia 0 ''
# Linked against the MPI of this environment, whose mpiexec starts the ranks.
program transect-trainer-go-gorgonia-mpi 1 mpi
tell_compiler "$folder"
