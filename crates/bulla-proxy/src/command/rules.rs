//! What is known of commands by their names, besides what a server says of them.

use super::description::{self as flag, Begin, Description, Find};
use super::effect::{Access, Class, Telling, Unknowable};
use super::keys::Place;
use super::own::Own;

/// What a command is about.
pub(super) fn class(name: &str, flags: u16) -> Class {
    let container = name.split('|').next().unwrap_or(name);
    let has = |flag: u16| flags & flag != 0;
    match container {
        "wait" | "waitaof" => Class::Blocking,
        _ if matches!(name, "keys" | "scan" | "randomkey" | "cluster|getkeysinslot") => Class::Listing,
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" | "script" | "function" => {
            Class::Script
        }
        "multi" | "exec" | "discard" | "watch" | "unwatch" => Class::Transaction,
        "pubsub" => Class::PubSub,
        "flushall" | "flushdb" | "swapdb" | "acl" | "config" => Class::Administrative,
        "client" | "info" | "time" | "lolwut" | "role" | "lastsave" => Class::Connection,
        "cluster" | "latency" | "slowlog" | "module" => Class::Administrative,
        "memory" if name != "memory|usage" => Class::Administrative,
        _ if has(flag::PUBSUB) => Class::PubSub,
        _ if has(flag::CONNECTION) => Class::Connection,
        _ if has(flag::TRANSACTION) => Class::Transaction,
        _ if has(flag::SCRIPTING) => Class::Script,
        _ if has(flag::ADMIN) && name != "pfdebug" => Class::Administrative,
        _ if has(flag::BLOCKING) && !matches!(name, "xread" | "xreadgroup") => Class::Blocking,
        _ => Class::Data,
    }
}

/// Whether a command is to be recorded though it touches no key: the server says that it is for administrators, or it touches
/// whole databases, or code that the server runs.
pub(super) fn administrative(name: &str, flags: u16) -> bool {
    flags & flag::ADMIN != 0
        || matches!(name, "flushall" | "flushdb" | "swapdb")
        || matches!(name, "script|load" | "script|flush" | "script|kill" | "script|debug")
        || (name.starts_with("function|") && (flags & flag::WRITE != 0 || name == "function|kill"))
}

/// Why nobody knows which keys a command touches, whatever its arguments are.
pub(super) fn unknowable(command: &Description, own: Own) -> Option<Unknowable> {
    match command.name.as_ref() {
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" => {
            return Some(Unknowable::Script);
        }
        "migrate" | "restore" | "restore-asking" | "debug" | "sync" | "psync" | "cluster|replicate" => {
            return Some(Unknowable::Whole);
        }
        _ => {}
    }
    let vague = command.specs.iter().any(|spec| {
        spec.flags & flag::INCOMPLETE != 0 || spec.begin == Begin::Unknown || spec.find == Find::Unknown
    });
    let none = command.specs.is_empty() && command.flags & (flag::MODULE | flag::MOVABLE_KEYS) != 0;
    (own == Own::None && (vague || none)).then_some(Unknowable::Undescribed)
}

/// The commands that say more with their arguments than their specifications can.
pub(super) fn own(name: &str) -> Own {
    match name {
        "set" => Own::Set,
        "getex" => Own::GetEx,
        "expire" | "pexpire" => Own::Expire,
        "msetex" => Own::MSetEx,
        "expireat" => Own::ExpireAt { milliseconds: 1000 },
        "pexpireat" => Own::ExpireAt { milliseconds: 1 },
        "sort" => Own::Sort { store: true },
        "sort_ro" => Own::Sort { store: false },
        "migrate" => Own::Migrate,
        "georadius" => Own::GeoRadius { options: 6 },
        "georadiusbymember" => Own::GeoRadius { options: 5 },
        "xread" | "xreadgroup" => Own::XRead,
        "bitfield" => Own::BitField,
        "copy" => Own::Copy,
        "move" => Own::Move,
        "restore" | "restore-asking" => Own::Restore,
        "zadd" | "geoadd" => Own::Add,
        "xadd" => Own::XAdd,
        "xgroup|create" => Own::XGroupCreate,
        "select" => Own::Select,
        "reset" => Own::Reset,
        "swapdb" => Own::SwapDb,
        "flushall" => Own::FlushAll,
        "client|reply" => Own::ClientReply,
        "client|tracking" => Own::Tracking,
        "replconf" => Own::ReplConf,
        "replicaof" | "slaveof" => Own::ReplicaOf,
        "monitor" | "sync" | "psync" => Own::Endless,
        "subscribe" | "psubscribe" | "ssubscribe" | "unsubscribe" | "punsubscribe" | "sunsubscribe" => {
            Own::Subscribe
        }
        "del" | "unlink" => Own::Remove,
        "lpush" | "rpush" => Own::Push,
        _ => Own::None,
    }
}

/// Makes what flags say of keys as exact as the command is.
pub(super) fn correct(name: &str, places: &mut [Place]) {
    let Some(first) = places.first_mut() else { return };
    match name {
        // Their flags do not tell a part that is taken away from the whole.
        "getdel" | "rename" | "renamenx" | "delex" | "delifeq" => {
            first.accesses = first.accesses.without(Access::Update).and(Access::Delete);
        }
        // They do nothing, or fail, where there is nothing.
        "persist"
        | "lset"
        | "linsert"
        | "lpushx"
        | "rpushx"
        | "xsetid"
        | "xack"
        | "xgroup|setid"
        | "xgroup|createconsumer"
        | "hexpire"
        | "hpexpire"
        | "hexpireat"
        | "hpexpireat"
        | "hpersist"
        | "hgetex" => {
            first.accesses = first.accesses.without(Access::Write).and(Access::Update);
        }
        // What they claim they also tell, which their flags do not say.
        "xclaim" | "xautoclaim" => {
            first.accesses = first.accesses.without(Access::Write).and(Access::Read).and(Access::Update);
        }
        _ => {}
    }
}

/// What a command's reply tells, whatever its arguments are.
pub(super) fn telling(name: &str) -> Telling {
    match name {
        "expire"
        | "pexpire"
        | "expireat"
        | "pexpireat"
        | "persist"
        | "delex"
        | "delifeq"
        | "hdel"
        | "hsetnx"
        | "srem"
        | "sadd"
        | "smove"
        | "zrem"
        | "zremrangebylex"
        | "zremrangebyrank"
        | "zremrangebyscore"
        | "lrem"
        | "linsert"
        | "lpushx"
        | "rpushx"
        | "xack"
        | "xdel"
        | "xtrim"
        | "xgroup|destroy"
        | "xgroup|createconsumer"
        | "pfadd"
        | "move"
        | "renamenx"
        | "msetnx"
        | "msetex"
        | "setnx"
        | "copy" => Telling::ZeroIsNothing,
        "lpop" | "rpop" | "spop" | "zpopmin" | "zpopmax" | "lmove" | "blmove" | "rpoplpush"
        | "brpoplpush" | "getdel" | "getex" => Telling::NullIsNothing,
        "getset" => Telling::OldValue,
        "sinterstore" | "sunionstore" | "sdiffstore" | "zinterstore" | "zunionstore" | "zdiffstore"
        | "zrangestore" | "geosearchstore" | "bitop" => Telling::ZeroIsDelete,
        "blpop" | "brpop" | "bzpopmin" | "bzpopmax" | "lmpop" | "blmpop" | "zmpop" | "bzmpop" => {
            Telling::NamesKey
        }
        "migrate" => Telling::NoKey,
        _ => Telling::Nothing,
    }
}
