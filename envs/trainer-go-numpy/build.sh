#!/usr/bin/env bash
# The trainer in Go that meets numpy by MPI, into FOLDER/bin: build.sh FOLDER.
set -euo pipefail
folder=$1
source "$(dirname "$0")/../shared/trainer-go.sh"
prepare_go "$folder"
go_program transect-trainer-go-mpi 1 mpi "$folder/bin/mpicc"
tell_compiler "$folder"
