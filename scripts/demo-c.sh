#!/usr/bin/env bash
# A program in C, or in C++: the library is installed below ./demo-c or ./demo-cpp, and the program built and run as its author would.
#   scripts/demo-c.sh c|cpp
set -euo pipefail
cd "$(dirname "$0")/.."

case $1 in
    c) compiler=(cc) source=demo.c ;;
    cpp) compiler=(c++ -std=c++17 -pthread) source=demo.cpp ;;
esac
rm -rf "demo-$1" && mkdir "demo-$1"
make --no-print-directory install PREFIX="$PWD/demo-$1/installed"
cp "crates/bulla-c/demo/$source" "demo-$1/"
cd "demo-$1"
export PKG_CONFIG_PATH=$PWD/installed/lib/pkgconfig
printf '$ %s %s $(pkg-config --cflags --libs bulla) -Wl,-rpath,$(pkg-config --variable=libdir bulla) -o demo && ./demo audit\n' "${compiler[*]}" "$source"
read -ra flags <<< "$(pkg-config --cflags --libs bulla)"
"${compiler[@]}" "$source" "${flags[@]}" "-Wl,-rpath,$(pkg-config --variable=libdir bulla)" -o demo
./demo audit
