#!/usr/bin/env bash
exec bash "$(dirname "$0")/../shared/horovod.sh" "$1" mxnet mxnet gnu++17
