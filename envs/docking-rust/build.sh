#!/usr/bin/env bash
# The docking kernel in Rust, into FOLDER/bin: build.sh FOLDER. It uses no crate.
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../shared/docking.sh"
source=$here/../../src/kernels/docking/rust
if ! type -P cargo > /dev/null; then
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$source/Cargo.toml")
    echo "error: cargo is not on PATH: install Rust >= $needed (rustup, or the distribution's)" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

RUSTFLAGS='-C target-cpu=native' cargo build --quiet --release --locked --jobs 1 \
    --manifest-path "$source/Cargo.toml" --target-dir "$work"
install "$work/release/transect-docking-rust" "$folder/bin/"
tell_cpu
printf '{"compiler": "%s"}\n' "$(rustc --version)" > "$folder/transect-build.json"
