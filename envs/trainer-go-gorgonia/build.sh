#!/usr/bin/env bash
# The trainer on Gorgonia, in pure Go, into FOLDER/bin: build.sh FOLDER. go fetches the modules of go.sum.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/go.sh"
find_go "$folder" "$here/go.txt"

cd "$here/../../src/trainers/go-gorgonia"
CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS= GOWORK=off \
    go build -p 2 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' \
    -o "$folder/bin/transect-trainer-go-gorgonia" ./cmd/transect-trainer-go-gorgonia
