//! Known answers.

use super::*;
use crate::command::{Answers, Class, Databases, Outcome};
use bulla_testkit::allocator::allocations;

#[track_caller]
fn all_are(answers: &[(&str, &str)]) {
    for (line, expected) in answers {
        assert_eq!(told(&effect(line)), *expected, "{line}");
    }
}

#[test]
fn what_flags_say_of_keys_is_what_becomes_of_what_they_name() {
    all_are(&[
        ("GET k", "1r"),
        ("exists a b", "1r 2r"),
        ("mget a b c", "1r 2r 3r"),
        ("mset a 1 b 2", "1w 3w"),
        ("msetnx a 1 b 2", "1c 3c"),
        ("setnx k v", "1c"),
        ("hsetnx k f v", "1w"),
        ("hset k f v", "1w"),
        ("hdel k f", "1u"),
        ("incr k", "1r 1w"),
        ("getset k v", "1r 1w"),
        ("append k v", "1w"),
        ("del a b", "1d 2d"),
        ("unlink a", "1d"),
        ("getdel k", "1r 1d"),
        ("lpop k", "1r 1u"),
        ("lpush k v", "1w"),
        ("lpushx k v", "1u"),
        ("linsert k BEFORE p v", "1u"),
        ("lset k 0 v", "1u"),
        ("persist k", "1u"),
        ("rename a b", "1r 1d 2w"),
        ("renamenx a b", "1r 1d 2c"),
        ("smove a b m", "1r 1u 2w"),
        ("rpoplpush a b", "1r 1u 2w"),
        ("lmove a b LEFT RIGHT", "1r 1u 2w"),
        ("blpop a b 0", "1r 1u 2r 2u"),
        ("pfcount a b", "1r 2r"),
        ("pfmerge d a b", "1r 1w 2r 3r"),
        ("xclaim k g c 0 1-1", "1r 1u"),
        ("xautoclaim k g c 0 0", "1r 1u"),
        ("xack k g 1-1", "1u"),
        ("lcs a b LEN", "1r 2r"),
        ("bitop AND d a b", "2w 3r 4r"),
        ("object encoding k", "2r"),
        ("memory usage k", "2r"),
        ("xinfo stream k", "2r"),
        ("watch a b", "1r 2r"),
        ("spublish channel m", ""),
        ("ssubscribe a b", ""),
        ("ping", ""),
        ("get", ""),
        ("blpop", ""),
    ]);
}

#[test]
fn as_many_arguments_are_keys_as_a_number_says_and_none_where_the_server_refuses_it() {
    all_are(&[
        ("sintercard 2 a b LIMIT 3", "2r 3r"),
        ("lmpop 1 a LEFT", "2r 2u"),
        ("blmpop 0 2 a b LEFT COUNT 3", "3r 3u 4r 4u"),
        ("zmpop 2 a b MIN", "2r 2u 3r 3u"),
        ("bzmpop 0 1 a MAX", "3r 3u"),
        ("zinter 2 a b WITHSCORES", "2r 3r"),
        ("zdiff 1 a", "2r"),
        ("zunionstore d 2 a b WEIGHTS 1 2", "1w 3r 4r"),
        ("zinterstore d 1 a", "1w 3r"),
        ("zdiffstore d 1 a", "1w 3r"),
        ("zunionstore a 1 a", "1w 3r"),
        ("zunion 3 a b", ""),
        ("zunion 0 a b", ""),
        ("zunion -1 a b", ""),
        ("zunion +1 a b", ""),
        ("zunion 01 a b", ""),
        ("zunion 9223372036854775807 a b", ""),
        ("zunion 9223372036854775808 a b", ""),
        ("zunion 18446744073709551617 a b", ""),
        ("zunion x a b", ""),
        ("eval s 0 a", "script"),
        ("eval s 1 a b", "3r 3w script"),
        ("evalsha_ro s 1 a b", "3r script"),
        ("fcall f 2 a b", "3r 3w 4r 4w script"),
        ("fcall_ro f 1 a", "3r script"),
    ]);
}

#[test]
fn options_say_what_set_and_its_like_do() {
    all_are(&[
        ("set k v", "1w"),
        ("set k v NX", "1c"),
        ("set k v xx", "1u"),
        ("set k v GET", "1r 1w"),
        ("set k v NX get PX 3", "1c 1r"),
        ("set k v EX get", "1w"),
        ("set k nx", "1w"),
        ("set k v IFEQ nx", "1u"),
        ("set k v IFNE xx GET", "1r 1w"),
        ("getex k", "1r"),
        ("getex k PERSIST", "1r 1u"),
        ("expire k 3", "1u"),
        ("expire k -3 NX", "1d"),
        ("pexpireat k 0", "1d"),
        ("bitfield k GET u8 0", "1r"),
        ("bitfield k GET u8 0 SET u8 0 1", "1r 1w"),
        ("bitfield k OVERFLOW SAT INCRBY u8 0 1", "1r 1w"),
        ("bitfield k GET GET SET", "1r"),
        ("zadd k 1 m", "1w"),
        ("zadd k XX CH 1 m", "1u"),
        ("zadd k incr 1 m", "1r 1w"),
        ("zadd k 1 xx", "1w"),
        ("geoadd k XX 1 2 m", "1u"),
        ("xadd k * f v", "1w"),
        ("xadd k NOMKSTREAM * f v", "1u"),
        ("xadd k MAXLEN ~ 3 LIMIT 1 NOMKSTREAM * f v", "1u"),
        ("xadd k * NOMKSTREAM v", "1w"),
        ("xgroup create k g 0", "2u"),
        ("xgroup create k g 0 MKSTREAM", "2w"),
        ("copy a b", "1r 2c"),
        ("copy a b DB 3 REPLACE", "1r 2w@3"),
        ("copy a b DB x", "1r 2c"),
        ("move k 3", "1c@3 1r 1d"),
        ("move k 4294967296", "1r 1d"),
        ("restore k 0 v", "1c whole"),
        ("restore k 0 v ABSTTL REPLACE", "1w whole"),
    ]);
}

#[test]
fn a_key_that_is_to_be_gone_at_a_time_that_is_over_is_deleted() {
    // Carried out at 10 to 20 seconds after 1970 began; clocks differ by a second.
    let told_between = |line: &str| {
        let effect = effect(line);
        let effect = effect.between(|| (10_000, 20_000));
        let updated = effect.refine(Access::Update, None, &reply(b":1\r\n"), 0);
        let deleted = effect.refine(Access::Delete, None, &reply(b":1\r\n"), 0);
        assert_eq!(updated, Outcome::Done(Access::Update));
        format!("{}{}", told(&effect), if deleted == Outcome::Unknown { "?" } else { "" })
    };
    for (line, expected) in [
        ("expireat k 9", "1d"),
        ("expireat k 10", "1d?"),
        ("expireat k 21", "1d?"),
        ("expireat k 22", "1u"),
        ("expireat k -1", "1d"),
        ("expireat k 9223372036854775807", "1u"),
        ("pexpireat k 9000", "1d"),
        ("pexpireat k 9001", "1d?"),
        ("pexpireat k 21001", "1u"),
        ("expire k 9", "1u"),
        ("getex k EXAT 9", "1r 1d"),
        ("getex k PXAT 9000", "1r 1d"),
        ("getex k pxat 22000", "1r 1u"),
        ("getex k EX 9", "1r 1u"),
        ("set k v EXAT 9", "1d"),
        ("set k v PXAT 9001 GET", "1r 1d?"),
        ("set k v EX 9", "1w"),
        ("set k v IFEQ exat", "1u"),
        ("set k exat 9", "1w"),
        ("restore k 9000 v ABSTTL REPLACE", "1d whole"),
        ("restore k 0 v ABSTTL", "1c whole"),
        ("restore k 9000 v", "1c whole"),
    ] {
        assert_eq!(told_between(line), expected, "{line}");
    }
    let set = effect("set k v");
    set.between(|| unreachable!("nobody is asked for the time where it does not matter"));
}

#[test]
fn the_words_that_keys_follow_are_found_where_the_server_finds_them() {
    all_are(&[
        ("sort k", "1r"),
        ("sort k STORE d", "1r 3w"),
        ("sort k STORE a store b", "1r 5w"),
        ("sort k BY STORE LIMIT 0 store", "1r"),
        ("sort k BY nosort GET # GET plain", "1r"),
        ("sort k BY w*", "1r pattern"),
        ("sort k BY nosort GET user:*:email STORE d", "1r 7w pattern"),
        ("sort_ro k GET *", "1r pattern"),
        ("sort_ro k STORE d", "1r"),
        ("georadius k 1 2 3 km STORE d", "1r 7w"),
        ("georadius k 1 2 3 km COUNT store STOREDIST d", "1r 9w"),
        ("georadius k 1 2 3 km STORE a STOREDIST b", "1r 9w"),
        ("georadius k STORE 2 3 km", "1r"),
        ("georadiusbymember k STORE 3 km STOREDIST d", "1r 6w"),
        ("xread STREAMS a b 0 1", "2r 3r"),
        ("xread COUNT streams STREAMS a 0", "4r"),
        ("xread BLOCK 0 STREAMS STREAMS 0", "4r"),
        ("xread STREAMS a b 0", ""),
        ("xread COUNT 3", ""),
        ("xreadgroup GROUP streams c NOACK STREAMS a >", "6r"),
        ("xreadgroup GROUP g STREAMS STREAMS a >", "5r"),
        ("migrate h 1 k 0 5", "3r 3d whole"),
        ("migrate h 1 k 0 5 COPY REPLACE", "3r whole"),
        ("migrate h 1 \"\" 0 5 AUTH keys KEYS a keys", "9r 9d 10r 10d whole"),
        ("migrate h 1 k 0 5 KEYS a", "whole"),
    ]);
}

#[test]
fn a_word_ends_where_the_server_takes_it_to_end() {
    all_are(&[
        ("get\0any k", "1r"),
        ("object\0 encoding\0x k", "2r"),
        ("sort k STORE\0any d", "1r 3w"),
        ("sort k STO\0RE d", "1r"),
        ("set k v NX\0", "1c"),
        ("zunion 2\0 a b", ""),
    ]);
}

#[test]
fn what_goes_beyond_the_keys_of_a_command_is_said() {
    all_are(&[
        ("debug object k", "whole"),
        ("sync", "whole"),
        ("psync ? -1", "whole"),
        ("replicaof host 1", "whole"),
        ("replicaof NO one", ""),
        ("slaveof host 1", "whole"),
        ("script load s", ""),
        ("flushall", ""),
    ]);
}

#[test]
fn classes_answers_and_databases_are_known() {
    use Class::*;
    for (class, lines) in [
        (Data, "get k|object encoding k|xread STREAMS a 0|sort k|del k|dbsize|memory usage k|restore k 0 v"),
        (Blocking, "blpop a 0|bzmpop 0 1 a MAX|xread BLOCK 0 STREAMS a 0|wait 1 0"),
        (Listing, "keys *|scan 0|randomkey"),
        (
            Connection,
            "auth p|hello 3|select 1|reset|client id|client reply off|quit|ping|info|echo a|command|asking",
        ),
        (Transaction, "multi|exec|discard|watch k|unwatch"),
        (PubSub, "subscribe a|punsubscribe|publish a b|spublish a b|pubsub channels"),
        (Script, "eval s 0|fcall_ro f 0|script load s|function list"),
        (
            Administrative,
            "flushall|flushdb|swapdb 0 1|config get a|acl whoami|debug sleep 0|monitor|sync|psync ? -1",
        ),
        (
            Administrative,
            "shutdown|replicaof no one|save|slowlog get|module list|cluster nodes|failover|memory doctor",
        ),
    ] {
        for line in lines.split('|') {
            assert_eq!(effect(line).class, class, "{line}");
        }
    }
    for line in "config set a b|flushdb|swapdb 0 1|acl list|function load f|script load s|script flush|client kill a|pfdebug getreg k".split('|') {
        assert!(effect(line).administrative, "{line}");
    }
    for line in
        "get k|auth p|client id|acl whoami|function list|script exists s|eval s 0|info|del k".split('|')
    {
        assert!(!effect(line).administrative, "{line}");
    }
    for (line, answers) in [
        ("get k", Answers::One),
        ("subscribe a b", Answers::Channels(2)),
        ("punsubscribe", Answers::Channels(0)),
        ("sunsubscribe a", Answers::Channels(1)),
        ("client reply OFF", Answers::None),
        ("client reply skip", Answers::None),
        ("client reply off\0x", Answers::None),
        ("client reply on", Answers::One),
        ("replconf ACK 3", Answers::None),
        ("replconf capa eof GETACK *", Answers::None),
        ("replconf listening-port 3", Answers::One),
        ("monitor", Answers::Endless),
        ("psync ? -1", Answers::Endless),
    ] {
        assert_eq!(effect(line).answers, answers, "{line}");
    }
    for (line, databases) in [
        ("get k", Databases::Connections),
        ("select 3", Databases::Select(3)),
        ("select -1", Databases::Connections),
        ("select 2147483648", Databases::Connections),
        ("reset", Databases::Select(0)),
        ("move k 3", Databases::Named(3)),
        ("copy a b DB 3", Databases::Named(3)),
        ("swapdb 1 2", Databases::Swap(1, 2)),
        ("flushall", Databases::All),
        ("flushdb", Databases::Connections),
    ] {
        assert_eq!(effect(line).databases, databases, "{line}");
    }
}

#[test]
fn keys_that_were_not_kept_and_words_that_decide_are_told_to_be_unknown() {
    let table = CommandTable::pinned();
    let cut = |line: &str, items: usize, bytes: usize| {
        let keep =
            |_: &Arguments, _: u64, length: u64| (usize::try_from(length).unwrap().min(bytes), Digest::None);
        told(&table.effect(&parse(&words(line), Limits { items, ..ALL }, keep)))
    };
    assert_eq!(cut("del a b c", 3, 9), "1d 2d too many");
    assert_eq!(cut("del a b c", 4, 9), "1d 2d 3d");
    assert_eq!(cut("get k", 1, 9), "too many");
    assert_eq!(cut("set k v EX 3 NX", 5, 9), "1w too many");
    assert_eq!(cut("zunion 2 a b", 3, 9), "2r too many");
    assert_eq!(cut("xread COUNT 3 STREAMS a 0", 3, 9), "too many");
    assert_eq!(cut("del aaaaaaa", 9, 4), "1d too many", "less than an entry can have");
    assert_eq!(cut("sort k STORE d", 9, 4), "1r too many", "it may be another word");
    assert_eq!(cut("sort k ALPHA", 9, 4), "1r");
    assert_eq!(cut("sort k BY aaaaa*", 9, 4), "1r pattern");
    assert_eq!(cut("unlink a", 9, 4), "undescribed", "it may be another name");
    assert_eq!(cut("zmpop 10000 a", 9, 4), "undescribed");
}

#[test]
fn a_short_key_is_kept_whatever_stands_before_it_and_a_long_one_that_is_not_is_told_to_be_unknown() {
    let table = CommandTable::pinned();
    let all = |_: &Arguments, _: u64, length: u64| (usize::try_from(length).unwrap(), Digest::OfCut);
    let padded = |long: usize| {
        let line = format!("mget {} {} user:victim", "a".repeat(long), "b".repeat(long));
        let arguments = parse(&words(&line), Limits { bytes: 1000, ..ALL }, all);
        assert_eq!(arguments.get(3), Some(&b"user:victim"[..]));
        told(&table.effect(&arguments))
    };
    assert_eq!(padded(400), "1r 2r 3r");
    assert_eq!(padded(600), "1r 2r 3r too many");
}

#[test]
fn long_values_take_no_room_from_long_keys() {
    let table = CommandTable::pinned();
    let keep = |so_far: &Arguments, index: u64, length: u64| {
        let digest = if table.may_be_key(so_far, index) { Digest::OfCut } else { Digest::None };
        (usize::try_from(length).unwrap(), digest)
    };
    let limits = Limits { bytes: 1000, ..ALL };
    let (value, key, other) = ("v".repeat(900), "a".repeat(400), "b".repeat(500));
    let arguments = parse(&words(&format!("mset {key} {value} {other} {value}")), limits, keep);
    assert_eq!(told(&table.effect(&arguments)), "1w 3w");
    let kept = |index| arguments.get(index).unwrap().len();
    assert_eq!((1..5).map(kept).collect::<Vec<_>>(), [400, 900, 500, 100 - "mset".len()]);
    // Nor is what one command had of either counted for the next one.
    let mut requests = Requests::new(limits, [0; 32]);
    for key in [&key, &other, &value] {
        assert!(requests.next(&encode(&["set", key, &value]), keep).unwrap().complete);
        assert!(requests.arguments().is_whole(1) && requests.arguments().is_whole(2));
    }
}

#[test]
fn a_command_of_one_key_may_have_any_number_of_values() {
    let table = CommandTable::pinned();
    let limits = Limits { items: 64, ..ALL };
    let keep = |_: &Arguments, _: u64, length: u64| (usize::try_from(length).unwrap(), Digest::None);
    for line in
        ["sadd k", "rpush k", "zadd k", "hset k", "hmget k", "geoadd k", "xadd k *", "pfadd k", "srem k"]
    {
        let many = vec!["1"; 999];
        let effect = table.effect(&parse(&[words(line), many].concat(), limits, keep));
        assert_eq!((effect.unknowable, effect.keys[0].argument), (None, 1), "{line}");
    }
}

#[test]
fn what_a_common_command_does_is_told_without_a_look_at_the_allocator() {
    let table = CommandTable::pinned();
    for line in [
        "get k",
        "SET k v",
        "set k v EX 9 NX",
        "incr k",
        "getdel k",
        "lpush k v",
        "hset k f v",
        "lmove a b LEFT RIGHT",
        "rename a b",
        "config get x",
    ] {
        let arguments = arguments(&words(line));
        let before = allocations();
        let effect = table.effect(&arguments);
        table.may_be_key(&arguments, 1);
        assert_eq!(allocations(), before, "{line}");
        assert!(table.name(effect.command).is_some(), "{line}");
    }
}
