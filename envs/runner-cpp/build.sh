#!/usr/bin/env bash
# The runner in C++, into FOLDER/bin: build.sh FOLDER.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/compiler.sh"
bash "$here/../shared/onnxruntime-library.sh" "$folder"
headers=${TRANSECT_NEEDS_ONNXRUNTIME_HEADERS:?environment onnxruntime-headers must stand in needs.txt}
json=$(echo "$folder"/lib/python*/site-packages/nlohmann_json/include)

choose_compiler c++ "$folder"
"${compiler[@]}" -std=c++17 -O2 -s -Wall -Wextra -Wpedantic \
    -isystem "$headers/include" -isystem "$json" \
    "$here"/../../src/runners/cpp/*.cpp \
    -o "$folder/bin/transect-runner-cpp" -ldl -pthread
tell_compiler "$folder"
