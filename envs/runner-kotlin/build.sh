#!/usr/bin/env bash
# The runner `kotlin`. Its compiler comes as a plug-in of Maven, whose version is in pom.xml.
set -euo pipefail
bash "$(dirname "$0")/../shared/jvm.sh" "$1" kotlin transect.runner.MainKt org.jetbrains.kotlin:kotlin-maven-plugin:compile
