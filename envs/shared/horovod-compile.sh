#!/usr/bin/env bash
# Horovod's wheel: horovod-compile.sh PYTHON FRAMEWORK PACKAGE STANDARD KEPT [NCCL TOOLKIT].
# FRAMEWORK, PACKAGE and STANDARD as for horovod.sh, which calls this. KEPT: the folder to make.
# NCCL: the folder of torch's NCCL, TOOLKIT: that of CUDA; without them the wheel is for CPUs.
set -euo pipefail
python=$1 framework=$2 package=$3 standard=$4 kept=$5 nccl=${6-} toolkit=${7-}
here=$(cd "$(dirname "$0")" && pwd)
compiler=${CXX:-g++}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$python" -m pip download --quiet --no-input --no-deps --no-binary horovod --no-build-isolation \
    --require-hashes --requirement "$here/horovod.txt" --dest .
tar -xzf horovod-*.tar.gz
rm horovod-*.tar.gz
source=$(echo "$work"/horovod-*)

# The standard is raised here, for it is written in a dozen places of the source. The wheel finds
# its libraries in whatever environment it is installed in: those paths come first.
cat > c++ <<WRAPPER
#!/usr/bin/env bash
arguments=('-Wl,-rpath,\$ORIGIN/../../$package' '-Wl,-rpath,\$ORIGIN/../../../..')
for argument in "\$@"; do
    case \$argument in
    -std=c++1[147] | -std=gnu++1[147]) argument=-std=$standard ;;
    esac
    arguments+=("\$argument")
done
exec $compiler "\${arguments[@]}"
WRAPPER
chmod +x c++
export CXX=$work/c++

export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1
for one in pytorch tensorflow mxnet; do
    with=WITHOUT
    if [ "$one" = "${framework/#torch/pytorch}" ]; then with=WITH; fi
    export "HOROVOD_${with}_${one^^}=1"
done
if [ -n "$nccl" ]; then
    # torch's NCCL has no file without a version; it is loaded before Horovod looks for it.
    mkdir nccl
    ln -s "$nccl"/lib/libnccl.so.* nccl/libnccl.so
    export CUDA_HOME=$toolkit HOROVOD_CUDA_HOME=$toolkit HOROVOD_GPU_OPERATIONS=NCCL
    export HOROVOD_NCCL_LINK=SHARED HOROVOD_NCCL_LIB=$work/nccl HOROVOD_NCCL_INCLUDE=$nccl/include
    export PATH=$toolkit/bin:$PATH
    # The kernels are C++17, by nvcc's word and not by the wrapper's.
    host=$(command -v "$compiler")
    sed -i "s|set(CMAKE_CUDA_HOST_COMPILER .*|set(CMAKE_CUDA_HOST_COMPILER $host)|" \
        "$source/CMakeLists.txt"
    sed -i 's/set(CMAKE_CUDA_STANDARD 11)/set(CMAKE_CUDA_STANDARD 17)/' \
        "$source/horovod/common/ops/cuda/CMakeLists.txt"
else
    # An nvcc somewhere on the machine must not turn this into a CUDA build.
    sed -i 's/enable_language(CUDA)/message(STATUS "CPU only")/' "$source/CMakeLists.txt"
    sed -i 's/(CUDA_HOME is not None)/False/' "$source/cmake/Modules/FindPytorch.cmake"
fi
# Its cmake_minimum_required is older than newer versions of CMake allow.
export CMAKE_POLICY_VERSION_MINIMUM=3.5
# Some files take up to 2 GB to compile.
free_gb=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
jobs=$(($(nproc) < free_gb / 2 ? $(nproc) : free_gb / 2))
export MAKEFLAGS=-j$((jobs < 1 ? 1 : jobs > 16 ? 16 : jobs))
mkdir wheel
"$python" -m pip wheel --no-input --no-cache-dir --no-deps --no-build-isolation \
    --wheel-dir wheel "$source"
echo "$SECONDS" > wheel/seconds
# First to the same file system, then in one move: half a wheel is never found.
rm -rf "$kept"
mv wheel "$kept.$$"
mv -T "$kept.$$" "$kept"
