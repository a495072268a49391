#!/usr/bin/env bash
# Files followed, end to end: a server writes its access log while that is renamed, copied and truncated, and compressed, and while whoever
# follows it is killed; then every line that was written is in the log, once.
#   scripts/demo-follow.sh BULLA
set -euo pipefail

bulla=$(realpath "$1")
rm -rf demo-follow && mkdir -p demo-follow/www && cd demo-follow

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*" | sed "s|$bulla|bulla|"; "$@"; }

# Whatever ends this ends what it started.
follower=
finish() { if [ -n "$follower" ]; then kill -9 "$follower" 2> /dev/null && wait "$follower" 2> /dev/null || true; fi; }
trap finish EXIT

log=www/access.log
written=0
# So many requests, each of its own page.
serve() {
    local last=$((written + $1))
    seq $((written + 1)) "$last" | awk -v q='"' '{
        printf "192.0.2.%d - - [27/Nov/2026:10:%02d:%02d +0000] %sGET /page/%d HTTP/1.1%s 200 %d %s-%s %sdemo%s\n",
            $1 % 250, $1 / 60 % 60, $1 % 60, q, $1, q, $1 * 7, q, q, q, q }' >> "$log"
    written=$last
}
follow() {
    echo "\$ bulla append audit --map nginx --follow 'www/*.log'"
    "$bulla" append audit --map nginx --subject-from client --follow 'www/*.log' >> told.txt 2>> told.txt &
    follower=$!
}

say "What would become of the server's lines: a map that comes with Bulla, field by field"
serve 3
run "$bulla" append audit --map nginx --try "$log" | head -n 12

say "The log is followed; the server writes"
run "$bulla" init audit > init.txt
follow
serve 20000
sleep 1

say "Its log is renamed, and the follower killed"
mv "$log" "$log.1"
kill -9 "$follower"; wait "$follower" 2> /dev/null || true; follower=
serve 10000

say "While nobody follows: copied and truncated, then the oldest compressed"
cp "$log" "$log.2" && : > "$log"
serve 5000
gzip "$log.1"
ls -l www | awk 'NR > 1 { printf "%10d %s\n", $5, $9 }'

say "Followed again: what is left of each file, wherever it is by now"
follow
serve 5000
for _ in $(seq 100); do
    sleep 0.2
    [ "$("$bulla" info audit --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["entries"])')" -lt "$written" ] || break
done
kill -TERM "$follower"; wait "$follower"; follower=
run "$bulla" sources audit

say "Each of the $written lines that the server wrote is in the log, once"
"$bulla" export audit --identity audit.keys/identity.age 2> /dev/null | python3 -c '
import collections, json, sys

written = int(sys.argv[1])
found = collections.Counter(json.loads(line)["location"] for line in sys.stdin)
wrong = {page: found[page] for page in (f"/page/{n}" for n in range(1, written + 1)) if found[page] != 1}
print(f"{sum(found.values())} entries, {len(found)} pages, {len(wrong)} not exactly once")
sys.exit(bool(wrong) or sum(found.values()) != written)
' "$written"
run "$bulla" verify audit --seal-key audit.keys/seal.key
