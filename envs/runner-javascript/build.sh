#!/usr/bin/env bash
set -euo pipefail
bash "$(dirname "$0")/../shared/onnxruntime-library.sh" "$1"
bash "$(dirname "$0")/../shared/node.sh" "$1" javascript

# The package brings its binding for every system: 240 MB that this one cannot use.
bin=$1/runners/node_modules/onnxruntime-node/bin/napi-v6
keep=$(cd "$1/runners" && PATH="$1/bin:$PATH" node -p 'process.platform + "/" + process.arch')
find "$bin" -mindepth 2 -maxdepth 2 ! -path "$bin/$keep" -exec rm -r {} +
