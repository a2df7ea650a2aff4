#!/usr/bin/env bash
exec bash "$(dirname "$0")/../shared/horovod.sh" "$1" torch torch/lib gnu++20
