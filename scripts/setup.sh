#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks.
set -euo pipefail

command -v cargo >/dev/null || {
    echo "setup: cargo is missing; install Rust 1.89 or newer (your distribution's package, or rustup)" >&2
    exit 1
}

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v python3 >/dev/null || missing+=(python3)
command -v strace >/dev/null || missing+=(strace)
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "setup: installing ${missing[*]}"
if command -v apt-get >/dev/null; then
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" apt-get install -y -qq "${missing[@]}"
else
    echo "setup: no apt-get here; install ${missing[*]} with your package manager, then try again" >&2
    exit 1
fi
