#!/bin/sh
# run.sh PYTHON test: the extension is built, linted, tested and packaged, then used in Neovim and VS Code.
# run.sh PYTHON demo: it is packaged, and VS Code opens in a browser on the samples.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
MUGRAPH_PYTHON="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
export MUGRAPH_PYTHON
PATH="$("$here/setup.sh" "$MUGRAPH_PYTHON"):$PATH"
export PATH

cd "$here/../../editor-extension"
if [ ! -f node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
  npm ci --no-audit --no-fund --loglevel=error
  touch node_modules/.installed
fi
if [ "$2" = test ]; then
  npm run --silent lint
  npm test --silent
fi
npm run --silent package
[ "$(wc -c <dist/mugraph.vsix)" -lt 2000000 ] || { echo "the package is over 2 MB" >&2; exit 1; }

cd "$here"
if [ "$2" = demo ]; then
  exec node demo.ts
fi
node_modules/.bin/tsc -p .
node --test --test-concurrency=1 --test-reporter=spec ./*.test.ts
