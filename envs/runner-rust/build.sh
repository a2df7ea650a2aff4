#!/usr/bin/env bash
# The runner in Rust, into FOLDER/bin: build.sh FOLDER. cargo fetches the crates of Cargo.lock.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source=$here/../../src/runners/rust
if ! type -P cargo > /dev/null; then
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$source/Cargo.toml")
    echo "error: cargo is not on PATH: install Rust >= $needed (rustup, or the distribution's)" >&2
    exit 1
fi
bash "$here/../shared/onnxruntime-library.sh" "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# For the record: `rustc 1.92.0 (...)`.
RUSTC_VERSION=$(rustc --version | cut -d ' ' -f 2)
export RUSTC_VERSION
cargo build --quiet --release --locked --jobs 1 \
    --manifest-path "$source/Cargo.toml" --target-dir "$work"
install "$work/release/transect-runner-rust" "$folder/bin/"
