#!/usr/bin/env bash
# Links FOLDER/onnxruntime to the folder of ONNX Runtime's shared library: onnxruntime-library.sh FOLDER.
# The library is that of the environment `onnxruntime`, which must stand in needs.txt: all runtimes
# load the very same file.
set -euo pipefail
folder=$1
needed=${TRANSECT_NEEDS_ONNXRUNTIME:?environment \'onnxruntime\' must stand in needs.txt}
found=("$needed"/lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*.*)
if [ ! -f "${found[0]}" ]; then
    echo "error: no libonnxruntime.so.VERSION in onnxruntime/capi below $needed" >&2
    exit 1
fi
ln -sfn "$(dirname "${found[0]}")" "$folder/onnxruntime"
