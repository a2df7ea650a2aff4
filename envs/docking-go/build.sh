#!/usr/bin/env bash
# The docking kernel in Go, into FOLDER/bin: build.sh FOLDER. It uses no module but Go's own.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/docking.sh"
if ! type -P go > /dev/null; then
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
        --requirement "$here/go.txt"
    export PATH=$folder/bin:$PATH
fi
tell_cpu
# Go knows levels of x86-64 only: the third has fused multiplication and AVX2.
level=v1
if grep -qx avx2 "$folder/share/docking/cpu.txt" && grep -qx fma "$folder/share/docking/cpu.txt" \
    && grep -qx bmi2 "$folder/share/docking/cpu.txt"; then
    level=v3
fi
cd "$here/../../src/kernels/docking/go"
# No C takes part, so Go's own cache knows all that matters.
CGO_ENABLED=0 GOAMD64=$level GOTOOLCHAIN=local GOFLAGS= \
    go build -p 1 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' \
    -o "$folder/bin/transect-docking-go" .
printf '{"compiler": "%s"}\n' "$(go version)" > "$folder/transect-build.json"
