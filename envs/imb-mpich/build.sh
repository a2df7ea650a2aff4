#!/usr/bin/env bash
# Intel's IMB-MPI1 beside MPICH, into FOLDER/bin: build.sh FOLDER. Both have libmpi.so.12: the binary is the same, the
# library and mpiexec are MPICH's. The wheel that has it would put its own in their place, so it is unpacked apart.
set -euo pipefail
folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet --no-deps \
    --target "$work" --requirement "$(dirname "$0")/../imb/requirements.txt"
cp "$work/bin/IMB-MPI1" "$folder/bin/"
