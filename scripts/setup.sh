#!/usr/bin/env bash
# Installs what building and testing need and this machine lacks.
set -euo pipefail

command -v cargo >/dev/null || {
    echo "setup: cargo is missing; install Rust 1.89 or newer (your distribution's package, or rustup)" >&2
    exit 1
}

missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v g++ >/dev/null || missing+=(g++)
# Programs in C are compiled with both.
command -v clang >/dev/null || missing+=(clang)
# One of them runs under it.
command -v valgrind >/dev/null || missing+=(valgrind)
command -v pkg-config >/dev/null || missing+=(pkg-config)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
command -v age >/dev/null || missing+=(age)
command -v strace >/dev/null || missing+=(strace)
# Tests of the proxy start servers of their own; the package's is not started.
command -v redis-server >/dev/null || missing+=(redis-server)
command -v redis-benchmark >/dev/null || missing+=(redis-tools)
# Where administrators' programs are, not everybody's PATH looks.
PATH=$PATH:/usr/sbin command -v haproxy >/dev/null || missing+=(haproxy)
# It writes journals without a journald, which `journalctl` reads.
[ -e /lib/systemd/systemd-journal-remote ] || missing+=(systemd-journal-remote)
command -v journalctl >/dev/null || missing+=(systemd)
if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null || {
        echo "setup: ${missing[*]} missing, and no sudo here: have them installed, then try again" >&2
        exit 1
    }
    echo "setup: installing ${missing[*]}"
    if command -v apt-get >/dev/null; then
        "${as_root[@]}" apt-get update -qq
        "${as_root[@]}" env RUNLEVEL=1 apt-get install -y -qq -o Dpkg::Use-Pty=0 "${missing[@]}"
    else
        echo "setup: no apt-get here; install ${missing[*]} with your package manager, then try again" >&2
        exit 1
    fi
fi

# The copy of the list is written last: what was interrupted is done again, and so is what changed.
list=$(dirname "$0")/requirements.txt
venv=$(dirname "$0")/../.venv
if ! cmp -s "$list" "$venv/requirements.txt"; then
    echo "setup: installing $(grep -o '^[a-z-]*==[0-9.]*' "$list" | tr '\n' ' ')into .venv"
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --ignore-requires-python --require-hashes -r "$list"
    cp "$list" "$venv/requirements.txt"
fi
