#!/usr/bin/env bash
set -euo pipefail
bash "$(dirname "$0")/../shared/node.sh" "$1" browser

# Of the package's builds two are used: WebAssembly alone, and with WebGPU.
dist=$1/runners/node_modules/onnxruntime-web/dist
find "$dist" -type f ! -name ort.wasm.min.mjs ! -name ort.webgpu.min.mjs \
  ! -name 'ort-wasm-simd-threaded.mjs' ! -name 'ort-wasm-simd-threaded.wasm' \
  ! -name 'ort-wasm-simd-threaded.asyncify.*' -delete
