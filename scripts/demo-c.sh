#!/usr/bin/env bash
# A program in C: the library is installed below ./demo-c, and the program built and run as its author would.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf demo-c && mkdir demo-c
make --no-print-directory install PREFIX="$PWD/demo-c/installed"
cp crates/bulla-c/demo/demo.c demo-c/
cd demo-c
export PKG_CONFIG_PATH=$PWD/installed/lib/pkgconfig LD_LIBRARY_PATH=$PWD/installed/lib
printf '$ cc demo.c $(pkg-config --cflags --libs bulla) -o demo && ./demo audit\n'
read -ra flags <<< "$(pkg-config --cflags --libs bulla)"
cc demo.c "${flags[@]}" -o demo
./demo audit
