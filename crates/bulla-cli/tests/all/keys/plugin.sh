#!/bin/sh
# An age plugin for tests: it "wraps" by writing the file key into the stanza as it is. BULLATEST_MODE says how it
# misbehaves, BULLATEST_NOTES is a directory to leave notes in.
notes=${BULLATEST_NOTES:-/dev/null/nowhere}
echo run >>"$notes/runs" 2>/dev/null

reply() { # reads a reply: its tag in $tag, its body in $said
    read -r _ tag rest
    read -r said
}

case $BULLATEST_MODE in
hang) exec sleep 1000 ;;
offspring)
    sleep 1000 &
    echo $! >"$notes/offspring"
    exec sleep 1000
    ;;
die)
    printf 'Traceback \033[31mboom\n' >&2
    exit 3
    ;;
garbage)
    echo 'hello, world'
    sleep 1000
    ;;
zeros) exec cat /dev/zero ;;
lines) exec yes -- '-> msg' ;;
messages) while :; do printf -- '-> msg\nQQ\n'; done ;;
noise) head -c 10000000 /dev/zero | tr '\0' x >&2 ;;
later) [ "$(wc -l <"$notes/runs")" -lt 3 ] || BULLATEST_MODE=fail ;;
esac

wrapped= unwrapped=
while read -r line; do
    case $line in
    '-> wrap-file-key'*) read -r wrapped ;;
    '-> recipient-stanza 0 bullatest'*) read -r unwrapped ;;
    '-> done'*) read -r _ && break ;;
    esac
done

case $BULLATEST_MODE in
fail) # "no such key", with what clears a screen
    printf -- '-> error internal\nbm8gc3VjaCBrZXkbWzJK\n'
    reply
    printf -- '-> done\n\n'
    exit
    ;;
silent)
    printf -- '-> done\n\n'
    exit
    ;;
talk) # "touch the key", with what clears a screen
    printf -- '-> msg\ndG91Y2ggdGhlIGtleRtbMko\n'
    reply
    ;;
secret) # "PIN", answered "1234"
    printf -- '-> request-secret\nUElO\n'
    reply
    if [ "$tag" != ok ] || [ "$said" != MTIzNA ]; then
        printf -- '-> error internal\nd3JvbmcgUElO\n' # "wrong PIN"
        reply
        printf -- '-> done\n\n'
        exit
    fi
    ;;
confirm) # "really?", "of course", "never"
    printf -- '-> confirm b2YgY291cnNl bmV2ZXI\ncmVhbGx5Pw\n'
    reply
    [ "$tag $rest" = 'ok yes' ] || exit 4
    ;;
labels) # insists on company of its kind
    printf -- '-> labels postquantum\n\n'
    reply
    ;;
strange)
    printf -- '-> what-is-this 1 2 3\n\n'
    reply
    [ "$tag" = unsupported ] || exit 5
    ;;
esac

if [ -n "$wrapped" ]; then
    printf -- '-> recipient-stanza 0 bullatest\n%s\n' "$wrapped"
    reply
elif [ -n "$unwrapped" ]; then
    printf -- '-> file-key 0\n%s\n' "$unwrapped"
    reply
fi
printf -- '-> done\n\n'
case $BULLATEST_MODE in lingering) exec sleep 1000 ;; esac
