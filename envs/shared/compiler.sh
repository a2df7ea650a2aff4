# Sets the array `compiler` to one for `c` or `c++`: source this, then choose_compiler LANGUAGE FOLDER.
# $CC or $CXX, else the machine's own, else Zig's clang: that comes as a wheel, which is installed
# into FOLDER, the environment.
choose_compiler() {
    local language=$1 folder=$2 named=${CC-} own=cc
    if [ "$language" = c++ ]; then
        named=${CXX-} own=c++
    fi
    read -r -a compiler <<< "${named:-$own}"
    if type -P "${compiler[0]}" > /dev/null; then
        return
    fi
    if [ -n "$named" ]; then
        echo "error: no compiler '$named'; unset the variable for the machine's own" >&2
        return 1
    fi
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
        ziglang==0.17.1
    compiler=("$folder/bin/python" -m ziglang "$own")
}

# Writes which compiler it was into the environment's stamp.
tell_compiler() {
    local folder=$1 version
    version=$("${compiler[@]}" --version | head -n 1 | tr -d '"\\')
    printf '{"compiler": "%s"}\n' "$version" > "$folder/transect-build.json"
}
