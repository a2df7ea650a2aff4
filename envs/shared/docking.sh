# For programs of the docking kernel: source this, then `attempt NAME COMMAND...` and `tell_cpu`.
# FOLDER, the environment, stands in `folder`; what a program needs to know lies in share/docking.
mkdir -p "$folder/share/docking"

# Runs a command that makes bin/transect-docking-NAME. What cannot be compiled here is no failure of the
# environment: the compiler's words are kept, and cells that want the program are skipped with them.
attempt() {
    local name=$1
    shift
    if ! type -P "$1" > /dev/null; then
        echo "$1 is not on PATH" > "$folder/share/docking/$name.txt"
    elif ! "$@" -o "$folder/bin/transect-docking-$name" 2> "$folder/share/docking/$name.txt"; then
        rm -f "$folder/bin/transect-docking-$name"
        echo "transect-docking-$name is not made:"
        cat "$folder/share/docking/$name.txt"
    else
        rm -f "$folder/share/docking/$name.txt"
    fi
}

# Writes the vector instructions of this machine's CPU, for which the programs are compiled: a machine
# that shares the environment may have others.
tell_cpu() {
    { grep -m 1 '^flags' /proc/cpuinfo || true; } | tr ' ' '\n' \
        | { grep -E '^(sse|avx|fma$|f16c|bmi|gfni|vaes|vpcl)' || true; } | sort > "$folder/share/docking/cpu.txt"
}
