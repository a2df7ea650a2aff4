#!/usr/bin/env bash
# The trainers in Go, into FOLDER/bin: build.sh FOLDER.
set -euo pipefail
folder=$1
source "$(dirname "$0")/../shared/trainer-go.sh"

# What is linked against lies in the environment itself, which is never moved.
openblas=$("$folder/bin/python" -c 'import scipy_openblas32 as o; print(o.get_include_dir(), o.get_lib_dir())')
read -r openblas_include openblas_library <<< "$openblas"
export CGO_CFLAGS="-O2 -I$openblas_include"
export CGO_LDFLAGS="-L$openblas_library -lscipy_openblas -Wl,-rpath,$openblas_library"

prepare_go "$folder"
go_program transect-trainer-go 0 ''
go_program transect-trainer-go-openblas 1 openblas
# Linked against the MPI of this environment, whose mpiexec starts the ranks.
go_program transect-trainer-go-mpi 1 mpi "$folder/bin/mpicc"
go_program transect-trainer-go-openblas-mpi 1 mpi,openblas "$folder/bin/mpicc"
tell_compiler "$folder"
