//! What replies tell, of a real server.

use super::*;
use crate::command::Outcome;

/// What was done to each key, as [`told`] has it: `-` for nothing, `?` where nothing tells, `!` for an error.
fn outcome(effect: &Effect, line: &[&str], reply: &Reply, at: usize) -> String {
    let refined = effect.keys.iter().map(|used| {
        let key = line[usize::try_from(used.argument).unwrap()];
        let letter = match effect.refine(used.access, Some(key.as_bytes()), reply, at) {
            Outcome::Done(access) => letter(access),
            Outcome::NotExecuted => '-',
            Outcome::Unknown => '?',
            Outcome::Failed => '!',
        };
        format!("{}{letter}", used.argument)
    });
    refined.collect::<Vec<_>>().join(" ")
}

/// In 2023, in milliseconds since 1970.
const NOW: i64 = 1_700_000_000_000;

/// Commands in their order, with what their replies tell.
const KNOWN: &[(&str, &str)] = &[
    ("setnx s v", "1c"),
    ("setnx s v", "1-"),
    ("set s v NX", "1-"),
    ("set s v XX", "1u"),
    ("set none v XX", "1-"),
    ("set s w GET", "1r 1u"),
    ("set new w GET", "1r 1c"),
    ("set new w NX GET", "1- 1r"),
    ("set newer w NX GET", "1c 1r"),
    ("set none w XX GET", "1r 1-"),
    ("set newer w XX GET", "1r 1u"),
    ("set newer w", "1w"),
    ("getset newest w", "1r 1c"),
    ("getset newest v", "1r 1u"),
    ("getdel none", "1r 1-"),
    ("getdel newest", "1r 1d"),
    ("getex none PERSIST", "1r 1-"),
    ("getex new EX 1000", "1r 1u"),
    ("persist new", "1u"),
    ("persist new", "1-"),
    ("expire none 3", "1-"),
    ("expire new 1000", "1u"),
    ("expire newer -1", "1d"),
    ("exists newer", "1r"),
    ("set newer w", "1w"),
    ("expire newer -1 XX", "1-"),
    ("expireat newer 1 XX", "1-"),
    ("expireat newer 4102444800", "1u"),
    ("expireat newer 1 NX", "1-"),
    ("expireat newer 1", "1d"),
    ("pexpireat newer 1", "1-"),
    ("set newer w EXAT 1", "1d"),
    ("set newer w EXAT 4102444800", "1w"),
    ("set newer w NX PXAT 1", "1-"),
    ("set newer w GET PXAT 1", "1r 1d"),
    ("set newer w XX PXAT 1", "1-"),
    ("set newer w GET NX PXAT 1", "1d 1r"),
    ("set newer w PXAT 4102444800000", "1w"),
    ("getex newer EXAT 4102444800", "1r 1u"),
    ("getex newer PXAT 1", "1r 1d"),
    ("getex newer EXAT 1", "1r 1-"),
    ("set newer w", "1w"),
    ("getex newer EXAT 0", "1! 1!"),
    ("expire newer -1", "1d"),
    ("del newer", "1-"),
    ("del s none", "1? 2?"),
    ("set s v", "1w"),
    ("del s new", "1d 2d"),
    ("unlink s", "1-"),
    ("msetnx a 1 b 2", "1c 3c"),
    ("msetnx b 1 c 2", "1- 3-"),
    ("renamenx a b", "1r 1- 2-"),
    ("renamenx a c", "1r 1d 2c"),
    ("rename none c", "1! 1! 2!"),
    ("rename c b", "1r 1d 2w"),
    ("copy b a", "1r 2c"),
    ("copy b a", "1r 2-"),
    ("copy b a REPLACE", "1r 2w"),
    ("move a 1", "1c 1r 1d"),
    ("move none 1", "1- 1r 1-"),
    ("lpush l 1 2", "1c"),
    ("rpush l 3", "1u"),
    ("lpushx none 1", "1-"),
    ("linsert l BEFORE none 1", "1-"),
    ("linsert l BEFORE 3 9", "1u"),
    ("lrem l 0 none", "1-"),
    ("lpop none", "1r 1-"),
    ("lpop l", "1r 1u"),
    ("lmpop 2 none l LEFT", "2r 2- 3r 3u"),
    ("blpop none l 0", "1r 1- 2r 2u"),
    ("lmove none l LEFT LEFT", "1r 1- 2-"),
    ("lmove l l2 LEFT LEFT", "1r 1u 2w"),
    ("lmpop 1 none LEFT", "2r 2-"),
    ("lpush s:no", "1!"),
    ("sadd set 1 2", "1w"),
    ("sadd set 1", "1-"),
    ("smove set other none", "1r 1- 2-"),
    ("smove set other 1", "1r 1u 2w"),
    ("srem set none", "1-"),
    ("srem set 2", "1u"),
    ("spop none 3", "1r 1-"),
    ("sinterstore d other none", "1d 2r 3r"),
    ("sinterstore d other other", "1w 2r 3r"),
    ("bitop AND d none none2", "2d 3r 4r"),
    ("sort none STORE d", "1r 3d"),
    ("zadd z NX INCR 1 m", "1r 1w"),
    ("zadd z NX INCR 1 m", "1r 1-"),
    ("zpopmin none", "1r 1-"),
    ("bzpopmin none z 0", "1r 1- 2r 2u"),
    ("hset h f v", "1w"),
    ("hsetnx h f v", "1-"),
    ("hsetnx h g v", "1w"),
    ("hdel h none", "1-"),
    ("hdel h f", "1u"),
    ("incr h", "1! 1!"),
    ("xadd none NOMKSTREAM * f v", "1-"),
    ("xadd x 1-1 f v", "1w"),
    ("xdel x 2-2", "1-"),
    ("xdel x 1-1", "1u"),
    ("georadius none 1 2 3 km STORE d", "1r 7d"),
    ("migrate localhost 1 none 0 5", "3r 3-"),
    ("mget none h", "1r 2r"),
];

#[test]
fn the_reply_tells_what_was_done_and_no_more_in_resp2_and_resp3() {
    for version in ["2", "3"] {
        let (_server, mut client) = server();
        ask(&mut client, &["HELLO", version]);
        let table = CommandTable::from_reply(&ask(&mut client, &["COMMAND"])).unwrap();
        for (line, expected) in KNOWN {
            let line = words(line);
            let effect = table.effect(&arguments(&line));
            let effect = effect.between(|| (NOW, NOW));
            let reply = ask(&mut client, &line);
            assert_eq!(
                outcome(&effect, &line, &reply, 0),
                *expected,
                "RESP{version}: {line:?}: {:?}",
                reply.nodes()
            );
            let deleted = effect.keys.iter().filter(|used| used.access == Access::Delete);
            for used in deleted.filter(|_| effect.leaves_none(&reply, 0)) {
                let key = line[usize::try_from(used.argument).unwrap()];
                let left = ask(&mut client, &["EXISTS", key]);
                assert_eq!(left.integer(&left.nodes()[0]), Some(0), "RESP{version}: {line:?}: {key}");
            }
        }
    }
}

#[test]
fn the_replies_of_a_transaction_tell_each_of_its_command() {
    let (_server, mut client) = server();
    let table = CommandTable::pinned();
    let lines = ["setnx k v", "lmpop 1 none LEFT", "setnx k v", "hset k f v"].map(words);
    let effects = lines.clone().map(|line| table.effect(&arguments(&line)));
    ask(&mut client, &["MULTI"]);
    for (line, effect) in lines.iter().zip(&effects) {
        let queued = outcome(effect, line, &ask(&mut client, line), 0);
        assert!(queued.chars().all(|char| !char.is_alphabetic()) && queued.contains('?'), "{queued}");
    }
    let reply = ask(&mut client, &["EXEC"]);
    let results = reply.nodes().iter().enumerate().filter(|(_, node)| node.depth == 1).map(|(at, _)| at);
    let told: Vec<String> = results
        .zip(lines.iter().zip(&effects))
        .map(|(at, (line, effect))| outcome(effect, line, &reply, at))
        .collect();
    assert_eq!(told, ["1c", "2r 2-", "1-", "1!"]);
}

#[test]
fn a_reply_that_was_not_kept_or_a_key_that_was_cut_does_not_tell_which_key_was_changed() {
    let effect = effect("blpop a b 0");
    let popped = reply(b"*2\r\n$1\r\na\r\n$1\r\nv\r\n");
    let refine = |key: Option<&[u8]>, reply: &Reply, at| effect.refine(Access::Update, key, reply, at);
    assert_eq!(refine(Some(b"a"), &popped, 0), Outcome::Done(Access::Update));
    assert_eq!(refine(Some(b"b"), &popped, 0), Outcome::NotExecuted);
    assert_eq!(refine(None, &popped, 0), Outcome::Unknown);
    assert_eq!(refine(Some(b"a"), &popped, 9), Outcome::Unknown);
    let cut = reply_within(b"*2\r\n$1\r\na\r\n$1\r\nv\r\n", Limits { items: 1, ..ALL });
    assert_eq!(refine(Some(b"a"), &cut, 0), Outcome::Unknown);
    let cut = reply_within(b"*2\r\n$3\r\naaa\r\n$1\r\nv\r\n", Limits { text: 1, ..ALL });
    assert_eq!(refine(Some(b"a"), &cut, 0), Outcome::Unknown);
}

#[test]
fn a_command_leaves_none_of_the_keys_that_it_deletes_only_where_its_reply_says_so() {
    for (line, told, expected) in [
        ("del a b", &b":1\r\n"[..], true),
        ("del a b", b":0\r\n", true),
        ("del a b", b"+QUEUED\r\n", false),
        ("del a b", b"-NOPERM\r\n", false),
        ("expire a -1 XX", b":0\r\n", false),
        ("expire a -1 XX", b":1\r\n", true),
        ("set a v NX EXAT 1", b"$-1\r\n", false),
        ("set a v NX EXAT 1", b"+OK\r\n", true),
        ("getex a EXAT 1700000000", b"$1\r\nv\r\n", false),
        ("getdel a", b"$1\r\nv\r\n", true),
        ("migrate h 1 a 0 5", b"+NOKEY\r\n", false),
    ] {
        let effect = effect(line);
        let effect = effect.between(|| (NOW, NOW));
        assert_eq!(effect.leaves_none(&reply(told), 0), expected, "{line}: {}", told.escape_ascii());
    }
}
