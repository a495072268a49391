#!/usr/bin/env bash
# The main job, end to end: an access log goes in, is verified, and one person's entries come out; one byte is altered,
# and verification says where; that person is erased.
#   scripts/demo.sh BULLA [ACCESS_LOG]
set -euo pipefail

bulla=$(realpath "$1")
input=${2:+$(realpath "$2")}
rm -rf demo && mkdir demo && cd demo

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*" | sed "s|$bulla|bulla|"; "$@"; }
# Runs a command whose exit code is expected.
expect() {
    local wanted=$1 code=0
    shift
    run "$@" || code=$?
    [ "$code" -eq "$wanted" ] || { echo "demo: exit code $code, expected $wanted" >&2; exit 1; }
}

if [ -z "$input" ]; then
    input=$PWD/access.log
    awk 'BEGIN {
        srand(1)
        for (i = 0; i < 5000; i++)
            printf "192.0.2.%d - - [21/Nov/2026:%02d:%02d:%02d +0000] \"GET /page/%d HTTP/1.1\" %d %d \"-\" \"demo/1.0\"\n",
                rand() * 50, i / 3600, i / 60 % 60, i % 60, rand() * 200, rand() < 0.9 ? 200 : 404, rand() * 9000
    }' > "$input"
fi

say "An empty log"
run "$bulla" init audit

say "The access log goes in: each client address is a data subject"
code=0
run "$bulla" append audit --format combined --subject-from client "$input" || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 3 ] || exit "$code"

say "What it is now"
run "$bulla" info audit
vkey=$("$bulla" info audit --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["vkey"])')

say "Is it what was written, and whose is it?"
run "$bulla" verify audit --key "$vkey"

say "One person's entries come out"
subject=$(awk '{ count[$1]++ } END { for (a in count) if (count[a] > most) { most = count[a]; name = a } print name }' "$input")
run "$bulla" export audit --subject "$subject" -o person.jsonl
head -n 2 person.jsonl
echo "… $(wc -l < person.jsonl) entries of $subject in demo/person.jsonl"

say "Somebody alters one byte of a copy"
cp -r audit altered
segment=$(ls -S altered/segments/*.seg | head -n 1)
offset=$(($(stat -c %s "$segment") / 2))
byte=$(od -An -tu1 -j "$offset" -N 1 "$segment" | tr -d ' ')
printf "\\x$(printf %02x $((byte ^ 1)))" | dd of="$segment" bs=1 seek="$offset" conv=notrunc status=none
expect 1 "$bulla" verify altered --key "$vkey" --keys audit.keys | tee verified
grep -Eq 'frame [0-9]+, entries [0-9]+ to [0-9]+' verified || { echo "demo: no frame and entries are named" >&2; exit 1; }

say "That person asks to be forgotten: the log tells of it, and a certificate says what remains"
run "$bulla" erase audit --subject "$subject" --reason "a request" --yes -o erased.cert
run "$bulla" check erased.cert --key "$vkey"
run "$bulla" export audit --subject "$subject"

say "The log, which nobody touched, still verifies"
run "$bulla" verify audit --key "$vkey"
