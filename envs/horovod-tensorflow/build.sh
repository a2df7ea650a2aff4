#!/usr/bin/env bash
exec bash "$(dirname "$0")/../shared/horovod.sh" "$1" tensorflow tensorflow gnu++20
