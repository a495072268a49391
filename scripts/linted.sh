#!/usr/bin/env bash
# Stands in for rustc where everything is compiled anyhow: the crates of the workspace are, with the lints of `make lint` on,
# Clippy's and rustdoc's. `cargo clippy` and `cargo doc` would first check every dependency once more.
#   RUSTC_WORKSPACE_WRAPPER=scripts/linted.sh cargo test
set -euo pipefail

clippy-driver "$@" --deny warnings

# Libraries have documents, where they are not compiled as tests; and cargo asks what rustc can do, too.
case " $* " in
    *" --print"* | *" --test "*) exit ;;
    *" --crate-type lib "*) ;;
    *) exit ;;
esac
shift
options=()
while (($#)); do
    case $1 in
        --emit=* | --json=*) ;;
        --out-dir) shift ;;
        *) options+=("$1") ;;
    esac
    shift
done
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
rustdoc "${options[@]}" --deny warnings --out-dir "$pages"
