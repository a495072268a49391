#!/usr/bin/env bash
# Every fuzz target for so many seconds, from its corpus (libFuzzer, by flags of the installed toolchain: no nightly one and no
# cargo-fuzz is needed).
# The corpus is a plain test besides (bulla_testkit::corpus).
#   scripts/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
cargo build --quiet --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target "$host" --release
for target in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$target" .rs)
    work=target/fuzz/corpus/$name
    mkdir -p "$work"
    if ! "target/fuzz/$host/release/$name" -max_total_time="$seconds" -rss_limit_mb=512 -timeout=10 \
        -artifact_prefix="target/fuzz/$name-" "$work" "fuzz/corpus/$name" 2> "target/fuzz/$name.log"; then
        tail -n 30 "target/fuzz/$name.log"
        echo "fuzz: $name failed" >&2
        exit 1
    fi
    echo "swept: $name: $(grep -E '^Done' "target/fuzz/$name.log")"
done
