#!/usr/bin/env bash
# Says how large the shared library for C is that only appends, stripped, and fails where that is more than 8,000,000 bytes.
#   scripts/size.sh LIBRARY
set -euo pipefail

most=8000000
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip --strip-all -o "$stripped" "$1"
size=$(stat -c %s "$stripped")
echo "$size bytes, of which there may be $most"
[ "$size" -le "$most" ]
