#!/usr/bin/env bash
# The docking kernel in C, into FOLDER/bin: build.sh FOLDER. A program for each compiler that is here, and
# words for each that is not, or that cannot compile it.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/docking.sh"
source=$here/../../src/kernels/docking/c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-Wall -Wextra -Wno-unused-variable -Wno-unknown-pragmas)
# Sums in any order, and no number that is none: every result is checked. Square roots as they are: an
# approximation with a step of Newton's takes longer. Registers of 512 bits, which compilers avoid by default.
fast=(-std=gnu11 -O3 -march=native -ffast-math -fno-math-errno)
wide=()
if [ "$(uname -m)" = x86_64 ]; then
    wide=(-mprefer-vector-width=512 -mrecip=none)
else
    fast=(-std=gnu11 -O3 -mcpu=native -ffast-math -fno-math-errno)
fi

# Compiles one kernel: make_program NAME FILE COMPILER OPTION...
# What surrounds the kernel writes numbers that are none, so it is compiled without -ffast-math.
make_program() {
    local name=$1 file=$2 compiler=$3
    shift 3
    if type -P "$compiler" > /dev/null; then
        "$compiler" -std=gnu11 -O2 "${warnings[@]}" -c "$source/main.c" -o "$work/main.o"
    fi
    attempt "$name" "$compiler" "$@" "${warnings[@]}" "$source/$file" "$work/main.o" -lm
}

# By name, so that the lock hash holds the version of each.
compile_with_gcc() { make_program "$1" "$2" gcc "${fast[@]}" "${wide[@]}" "${@:3}"; }
compile_with_clang() { make_program "$1" "$2" clang "${fast[@]}" "${wide[@]}" "${@:3}"; }
compile_with_nvc() { make_program "$1" "$2" nvc -O3 -fast "${@:3}"; }

compile_with_gcc openmp-gcc openmp.c -fopenmp
compile_with_clang openmp-clang openmp.c -fopenmp
compile_with_gcc openmp-target-gcc-cpu openmp_target.c -fopenmp -foffload=disable
compile_with_clang openmp-target-clang-cpu openmp_target.c -fopenmp
compile_with_gcc openmp-target-gcc-cuda openmp_target.c -fopenmp -foffload=nvptx-none
compile_with_clang openmp-target-clang-cuda openmp_target.c -fopenmp -fopenmp-targets=nvptx64-nvidia-cuda
compile_with_nvc openmp-target-nvc-cuda openmp_target.c -mp=gpu
compile_with_gcc openacc-gcc-cpu openacc.c -fopenacc -foffload=disable
compile_with_clang openacc-clang-cpu openacc.c -fopenacc
compile_with_gcc openacc-gcc-cuda openacc.c -fopenacc -foffload=nvptx-none
compile_with_clang openacc-clang-cuda openacc.c -fopenacc
compile_with_nvc openacc-nvc-cuda openacc.c -acc=gpu
# Not a kernel: what a core can do at most, which tests/benchmarks/bench_docking.py holds them to.
attempt peak gcc -std=gnu11 -O3 -march=native -fopenmp "$source/peak.c"
tell_cpu
told=$(gcc --version 2> /dev/null | head -n 1 || true)
told="$told; $(clang --version 2> /dev/null | head -n 1 || true)"
printf '{"compiler": "%s"}\n' "$(tr -d '"\\' <<< "$told")" > "$folder/transect-build.json"
