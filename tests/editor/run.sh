#!/bin/sh
# run.sh PYTHON test: the extension is built, linted, tested and packaged, then used in Neovim and VS Code.
# run.sh PYTHON demo: it is packaged, and VS Code opens in a browser on the samples.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
MUGRAPH_PYTHON="$(cd "$(dirname "$1")" && pwd)/$(basename "$1")"
export MUGRAPH_PYTHON
programs="$("$here/setup.sh" "$MUGRAPH_PYTHON")"
export PATH="$programs:$PATH"

cd "$here/../../editor-extension"
if [ "$2" = test ]; then
  npm run --silent lint
  npm test --silent
fi
npm run --silent package
size="$(wc -c <dist/mugraph.vsix)"
echo "the package has $size bytes"
[ "$size" -lt 2000000 ] || { echo "the package is over 2 MB" >&2; exit 1; }
if "$MUGRAPH_PYTHON" -m zipfile --list dist/mugraph.vsix | grep node_modules; then
  echo "the package carries node_modules" >&2
  exit 1
fi

cd "$here"
if [ "$2" = demo ]; then
  exec node demo.ts
fi
node_modules/.bin/tsc -p .
rm -f out/*.png out/timings.json
# Real editors on a busy machine: a file that fails is run once more, and what fails twice has failed.
for file in *.test.ts; do
  began="$(date +%s)"
  node --test --test-reporter=spec "$file" || {
    echo "$file failed; once more"
    node --test --test-reporter=spec "$file"
  }
  echo "$file took $(($(date +%s) - began)) s"
done
cat out/timings.json
