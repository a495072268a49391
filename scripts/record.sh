#!/usr/bin/env bash
# Runs something long, and writes down what came of it in benchmarks/long-runs.md, in place of what its last run left there.
# Of its output it keeps the lines that begin with "swept: ".
#   scripts/record.sh NAME COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1
shift
record=benchmarks/long-runs.md
output=$(mktemp)
trap 'rm -f "$output" "$output.md"' EXIT

commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- . ":!$record" || commit+=", changed"
day=$(date -u +%Y-%m-%d)
SECONDS=0
code=0
"$@" 2>&1 | tee "$output" || code=$?
took=$SECONDS

{
    # All sections but this one.
    awk -v own="## $name" '/^## / { skip = $0 == own } !skip' "$record"
    echo "## $name"
    echo
    [ "$code" -eq 0 ] && outcome="nothing was found" || outcome="**failed** with exit code $code"
    echo "$outcome; $day, commit $commit, $((took / 60)) min $((took % 60)) s, $(nproc) processors"
    echo
    sed -nE 's/^(test .* \.\.\. )?swept: /- /p' "$output"
    grep -Eo '^test result: .* [0-9]+ passed; [0-9]+ failed' "$output" | sed 's/^/- /' || true
    echo
} > "$output.md"
cat -s "$output.md" > "$record"
echo "recorded in $record: $outcome"
exit "$code"
