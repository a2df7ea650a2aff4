# Compiles src/trainers/go into an environment: source this, then prepare_go FOLDER and, for each program,
# go_program NAME CGO TAGS [CC], which makes FOLDER/bin/NAME. go fetches the modules of go.sum.
source "$(dirname "${BASH_SOURCE[0]}")/../shared/compiler.sh"

prepare_go() {
    folder=$1
    local shared
    shared=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    if ! type -P go > /dev/null; then
        "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
            --requirement "$shared/../shared/go.txt"
        export PATH=$folder/bin:$PATH
    fi
    choose_compiler c "$folder"
    # What mpicc of the environment compiles with.
    export OMPI_CC="${compiler[*]}"
    work=$(mktemp -d)
    trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
    cd "$shared/../../src/trainers/go"
}

# The C that Go compiles is kept in a cache by the compiler's name alone, so the cache is this build's own.
go_program() {
    CC=${4:-${compiler[*]}} CGO_ENABLED=$2 GOCACHE=$work GOTOOLCHAIN=local GOFLAGS= \
        go build -p 1 -trimpath -buildvcs=false -mod=readonly -ldflags='-s -w' -tags "$3" \
        -o "$folder/bin/$1" ./cmd/transect-trainer-go
}
