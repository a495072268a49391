#!/usr/bin/env bash
# The proxy, end to end: a server and the proxy before it are started, clients work, what they do is watched as it comes; then
# one person's entries come out, and are proven to somebody who has nothing but the log's public key.
#   scripts/demo-proxy.sh BULLA
set -euo pipefail

bulla=$(realpath "$1")
for tool in redis-cli redis-benchmark python3; do
    command -v "$tool" > /dev/null || { echo "demo: $tool is missing: \`make setup\` installs it" >&2; exit 1; }
done
rm -rf demo-proxy && mkdir demo-proxy && cd demo-proxy

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*" | sed "s|$bulla|bulla|"; "$@"; }

# Whatever ends this ends what it started; the server ends with the proxy.
started=()
finish() { for process in "${started[@]}"; do kill "$process" 2> /dev/null && wait "$process" || true; done; }
trap finish EXIT

say "A server on a private socket, the proxy before it, a log and its keys: one command"
echo '$ bulla proxy --embedded trial'
"$bulla" proxy --embedded trial --json > told.json 2> proxy.log &
proxy=$!
started+=("$proxy")
until grep -q 'listening at ' proxy.log; do
    kill -0 "$proxy" 2> /dev/null || { cat proxy.log >&2; exit 1; }
    sleep 0.1
done
tail -n 5 proxy.log | sed -E 's/^\{"message":"(.*)","time":.*/\1/'
port=$(sed -n 's/.*listening at [^"]*:\([0-9]*\).*/\1/p' proxy.log)
cli() { redis-cli -p "$port" "$@"; }

say "Somebody in support looks after one person's data, and says why"
cli > /dev/null <<'CLIENT'
ACL SETUSER support on >support ~user:* +@all
CLIENT
cat > support.txt <<'CLIENT'
BULLA.PURPOSE SESSION "a question about an invoice"
HSET user:ada name "Ada Lovelace" email ada@example.com
HGET user:ada email
MULTI
SET user:ada:invoice "42 EUR"
EXPIRE user:ada:invoice 86400
EXEC
MGET user:ada:invoice user:charles:invoice
CLIENT
sed 's/^/> /' support.txt
cli --user support --pass support --no-auth-warning < support.txt

say "Twenty other clients write and read, of a thousand people; what the log has by now, second by second"
redis-benchmark -p "$port" -q -c 20 -P 4 -n 150000 -r 1000 -t set SET user:__rand_int__:email x@example.com > load.txt 2>&1 &
load=$!
started+=("$load")
redis-benchmark -p "$port" -q -c 20 -P 4 -n 150000 -r 1000 GET user:__rand_int__:email > more-load.txt 2>&1 &
more=$!
started+=("$more")
# Of one person in a hundred, the newest is shown.
"$bulla" tail trial/audit --prefix location=user:00000000000 > tail.jsonl 2> tail.log &
started+=("$!")
entries=0
while kill -0 "$load" 2> /dev/null || kill -0 "$more" 2> /dev/null; do
    sleep 1
    line=$("$bulla" info trial/audit --json | python3 -c '
import json, sys
info, before, newest = json.load(sys.stdin), int(sys.argv[1]), json.loads(sys.argv[2] or "{}")
entries, size = info["entries"], info["bytes"]
newest = " ".join(newest.get(field, "") for field in ("operation", "location"))
print(f"{entries}\t{entries:>9,} entries signed{entries - before:>9,} since{size / max(entries, 1):>6.0f} bytes each   {newest}")
' "$entries" "$(tail -n 2 tail.jsonl | head -n 1)")
    entries=${line%%$'\t'*}
    echo "${line#*$'\t'}"
done
wait "$load" "$more"
tr '\r' '\n' < load.txt | grep 'requests per second' | tail -n 1
tr '\r' '\n' < more-load.txt | grep 'requests per second' | tail -n 1

say "The proxy is told to end: its clients are done, the log is closed"
kill "$proxy"
wait "$proxy"
cat told.json

say "Is it what was written, and whose is it?"
vkey=$("$bulla" info trial/audit --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["vkey"])')
run "$bulla" verify trial/audit --key "$vkey"

say "Ada asks who did what to her data, when and why"
run "$bulla" export trial/audit --key "$vkey" --subject ada -o ada.jsonl
cat ada.jsonl

say "And can have it proven to anybody, offline: nothing but the file and the log's public key"
run "$bulla" prove trial/audit --subject ada -o ada.proof
# The entries go to a file, what is found of them to the terminal.
echo "\$ bulla check ada.proof --key $vkey"
"$bulla" check ada.proof --key "$vkey" > disclosed.jsonl
cmp disclosed.jsonl ada.jsonl
