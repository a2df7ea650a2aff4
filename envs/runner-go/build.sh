#!/usr/bin/env bash
# The runner in Go, into FOLDER/bin: build.sh FOLDER. go fetches the modules of go.sum.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
bash "$here/../shared/onnxruntime-library.sh" "$folder"
if ! type -P go > /dev/null; then
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
        --requirement "$here/go.txt"
    export PATH=$folder/bin:$PATH
fi
# The binding is C in part.
choose_compiler c "$folder"
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

cd "$here/../../src/runners/go"
# The C that Go compiles is kept in a cache by the compiler's name alone: a cache of this build's own.
CC="${compiler[*]}" CGO_ENABLED=1 GOCACHE=$work GOTOOLCHAIN=local GOFLAGS= \
    go build -p 1 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' \
    -o "$folder/bin/transect-runner-go" .
tell_compiler "$folder"
