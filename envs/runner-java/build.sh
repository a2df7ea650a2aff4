#!/usr/bin/env bash
# The runner `java`.
set -euo pipefail
bash "$(dirname "$0")/../shared/jvm.sh" "$1" java transect.runner.Main compiler:compile
