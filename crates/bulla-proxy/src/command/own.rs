//! Parsers of commands whose arguments say more than key specifications can. They accept what the server refuses, and what later
//! servers may know: what comes of it is refused or done there.

use super::effect::{Access, Accesses, Answers, Class, Databases, Effect, End, Telling, Unknowable};
use super::keys::push;
use super::words::Words;

/// Which parser a command has, besides what its specifications find or in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    None,
    // With keys of their own.
    Set,
    GetEx,
    Expire,
    ExpireAt { milliseconds: i64 },
    Sort { store: bool },
    Migrate,
    GeoRadius { options: u64 },
    XRead,
    BitField,
    Copy,
    Move,
    Restore,
    Add,
    XAdd,
    XGroupCreate,
    // Without keys, or with those that their specifications find.
    MSetEx,
    Select,
    Reset,
    SwapDb,
    FlushAll,
    ClientReply,
    ReplConf,
    Tracking,
    ReplicaOf,
    Endless,
    Subscribe,
    Remove,
    Push,
}

impl Own {
    /// Whether the keys are found here, and not by specifications.
    pub(super) fn has_keys(self) -> bool {
        use Own::*;
        !matches!(
            self,
            None | MSetEx
                | Select
                | Reset
                | SwapDb
                | FlushAll
                | ClientReply
                | ReplConf
                | Tracking
                | ReplicaOf
                | Endless
                | Subscribe
                | Remove
                | Push
        )
    }

    /// Whether argument `index` may be a key, known only what comes before it.
    pub(super) fn may_be_key(self, before: &mut Words<'_>, index: u64) -> bool {
        match self {
            Own::Copy => index <= 2,
            Own::XGroupCreate => index == 2,
            Own::Migrate => index >= 3,
            Own::XRead => index >= 2,
            Own::Sort { store } => index == 1 || store && follows(before, index, &["store"]),
            Own::GeoRadius { .. } => index == 1 || follows(before, index, &["store", "storedist"]),
            _ => index == 1,
        }
    }

    /// Says of `effect` what the arguments say.
    pub(super) fn tell(self, words: &mut Words<'_>, effect: &mut Effect) {
        match self {
            Own::None => {}
            Own::Set => set(words, effect),
            Own::GetEx => get_ex(words, effect),
            Own::Expire => expire(words, effect),
            Own::ExpireAt { milliseconds } => {
                expire(words, effect);
                effect.end = end(words, 2, milliseconds);
            }
            Own::Sort { store } => sort(words, effect, store),
            Own::Migrate => migrate(words, effect),
            Own::GeoRadius { options } => geo_radius(words, effect, options),
            Own::XRead => x_read(words, effect),
            Own::BitField => bit_field(words, effect),
            Own::Copy => copy(words, effect),
            Own::Move => move_key(words, effect),
            Own::Restore => restore(words, effect),
            Own::Add => add(words, effect),
            Own::XAdd => x_add(words, effect),
            Own::XGroupCreate => {
                let made = find(words, 5, &["mkstream"]).is_some();
                key(words, effect, 2, Accesses::of(if made { Access::Write } else { Access::Update }));
            }
            Own::MSetEx => m_set_ex(words, effect),
            Own::Select => {
                if let Some(database) = words.database(1) {
                    effect.databases = Databases::Select(database);
                }
            }
            Own::Reset => effect.databases = Databases::Select(0),
            Own::SwapDb => {
                if let (Some(one), Some(other)) = (words.database(1), words.database(2)) {
                    effect.databases = Databases::Swap(one, other);
                }
            }
            Own::FlushAll => effect.databases = Databases::All,
            Own::ClientReply if words.is_any(2, &["off", "skip"]) || words.uncertain => {
                effect.answers = Answers::None;
            }
            Own::ReplConf if acknowledges(words) || words.uncertain => effect.answers = Answers::None,
            Own::Tracking => {
                effect.administrative |= find(words, 2, &["bcast"]).is_some() || words.uncertain;
            }
            Own::ReplicaOf if !(words.is(1, "no") && words.is(2, "one")) => {
                effect.unknowable = Some(Unknowable::Whole);
            }
            Own::ClientReply | Own::ReplConf | Own::ReplicaOf => {}
            Own::Endless => effect.answers = Answers::Endless,
            Own::Subscribe => effect.answers = Answers::Channels(words.count().saturating_sub(1)),
            Own::Remove => effect.telling = Telling::Removed(words.count().saturating_sub(1)),
            Own::Push => effect.telling = Telling::Length(words.count().saturating_sub(2)),
        }
    }
}

fn follows(before: &mut Words<'_>, index: u64, options: &[&str]) -> bool {
    before.is_any(index - 1, options) || before.uncertain
}

/// A key, if it is there.
fn key(words: &mut Words<'_>, effect: &mut Effect, index: u64, accesses: Accesses) {
    if words.has(index) {
        push(&mut effect.keys, index, accesses, None);
    }
}

/// The first argument from `from` on that is one of these words.
fn find(words: &mut Words<'_>, from: u64, options: &[&str]) -> Option<u64> {
    let mut at = from;
    while words.has(at) {
        if words.is_any(at, options) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// `REPLCONF option value …`, whether any of these is one that the server does not answer.
fn acknowledges(words: &mut Words<'_>) -> bool {
    let mut at = 1;
    while words.has(at) {
        if words.is_any(at, &["ack", "getack"]) {
            return true;
        }
        at += 2;
    }
    false
}

/// `SET key value [NX|XX|IFEQ …] [GET] [EX …|KEEPTTL]`
fn set(words: &mut Words<'_>, effect: &mut Effect) {
    let (mut get, mut compares, mut access, mut at) = (false, false, Access::Write, 3);
    while words.has(at) {
        if words.is(at, "get") {
            get = true;
        } else if words.is(at, "nx") {
            access = Access::Create;
        } else if words.is(at, "xx") {
            access = Access::Update;
        } else if words.is_any(at, &["ifeq", "ifdeq"]) {
            (compares, access) = (true, Access::Update);
            at += 1;
        } else if words.is_any(at, &["ifne", "ifdne"]) {
            compares = true;
            at += 1;
        } else if words.is_any(at, &["ex", "px"]) {
            at += 1;
        } else if let Some(milliseconds) = end_option(words, at) {
            at += 1;
            effect.end = end(words, at, milliseconds);
        }
        at += 1;
    }
    effect.telling = match (get, access) {
        _ if get && compares => Telling::OldValueTellsNothing,
        (true, Access::Write) => Telling::OldValue,
        (true, Access::Create) => Telling::OldValueIsNothing,
        _ => Telling::NullIsNothing,
    };
    let accesses = Accesses::of(access);
    key(words, effect, 1, if get { accesses.and(Access::Read) } else { accesses });
}

/// `MSETEX count key value … [NX|XX] [EX …|KEEPTTL]`
fn m_set_ex(words: &mut Words<'_>, effect: &mut Effect) {
    let pairs = words.number(1).and_then(|count| u64::try_from(count).ok());
    let Some(mut at) = pairs.and_then(|count| count.checked_mul(2)?.checked_add(2)) else { return };
    while words.has(at) {
        if let Some(milliseconds) = end_option(words, at) {
            effect.end = end(words, at + 1, milliseconds);
        }
        at += 1;
    }
}

/// The time that is argument `index`, in units of so many milliseconds. One of 0 and less needs no clock: `EXPIREAT` deletes the key by it, the
/// other commands are refused.
fn end(words: &mut Words<'_>, index: u64, milliseconds: i64) -> End {
    let time = words.number(index).filter(|time| *time > 0);
    time.and_then(|time| time.checked_mul(milliseconds)).map_or(End::Untold, End::At)
}

/// The unit, in milliseconds, of the time that follows argument `index`, where that is an option that says when a key is to be gone.
fn end_option(words: &mut Words<'_>, index: u64) -> Option<i64> {
    match () {
        () if words.is(index, "exat") => Some(1000),
        () if words.is(index, "pxat") => Some(1),
        () => None,
    }
}

/// `GETEX key [EX …|PERSIST]`: without an option it is `GET`.
fn get_ex(words: &mut Words<'_>, effect: &mut Effect) {
    if let Some(milliseconds) = end_option(words, 2) {
        effect.end = end(words, 3, milliseconds);
    }
    key(
        words,
        effect,
        1,
        if words.count() > 2 { Accesses::READ.and(Access::Update) } else { Accesses::READ },
    );
}

/// `EXPIRE key time […]` and the like: a time before the present, or before 1970, deletes the key.
fn expire(words: &mut Words<'_>, effect: &mut Effect) {
    let over = words.number(2).is_some_and(|time| time <= 0);
    key(words, effect, 1, Accesses::of(if over { Access::Delete } else { Access::Update }));
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA] [STORE key]`: patterns name keys if they have an
/// asterisk; of several `STORE` the last counts.
fn sort(words: &mut Words<'_>, effect: &mut Effect, store: bool) {
    key(words, effect, 1, Accesses::READ);
    let (mut stored, mut at) = (None, 2);
    while words.has(at) {
        if words.is(at, "limit") {
            at += 2;
        } else if words.is_any(at, &["by", "get"]) {
            at += 1;
            let sure = !words.uncertain;
            if words.contains(at, b'*') || sure && words.uncertain {
                effect.unknowable = Some(Unknowable::Pattern);
            }
        } else if store && words.is(at, "store") && at + 1 < words.count() {
            at += 1;
            stored = Some(at);
        }
        at += 1;
    }
    store_into(words, effect, stored);
}

/// What `STORE` does to the key at `stored`, where the command has one: it is written, or deleted where nothing is stored.
fn store_into(words: &mut Words<'_>, effect: &mut Effect, stored: Option<u64>) {
    if let Some(stored) = stored {
        effect.telling = Telling::ZeroIsDelete;
        key(words, effect, stored, Accesses::of(Access::Write));
    }
}

/// `MIGRATE host port key|"" database timeout [COPY] [REPLACE] [AUTH …|AUTH2 …] [KEYS key …]`
fn migrate(words: &mut Words<'_>, effect: &mut Effect) {
    let (mut copy, mut keys, mut at) = (false, None, 6);
    while words.has(at) {
        if words.is(at, "keys") {
            keys = Some(at + 1);
            break;
        } else if words.is(at, "copy") {
            copy = true;
        } else if words.is(at, "auth") {
            at += 1;
        } else if words.is(at, "auth2") {
            at += 2;
        }
        at += 1;
    }
    let accesses = if copy { Accesses::READ } else { Accesses::READ.and(Access::Delete) };
    let (mut at, end) = match (keys, words.length(3)) {
        (None, _) => (3, 4),
        (Some(first), 0) => (first, words.count()),
        // The server refuses it.
        (Some(_), _) => return,
    };
    while at < end && words.has(at) {
        key(words, effect, at, accesses);
        at += 1;
    }
}

/// `GEORADIUS` and `GEORADIUSBYMEMBER` with `[COUNT n] [STORE key] [STOREDIST key]` among their options: the last of the keys counts.
fn geo_radius(words: &mut Words<'_>, effect: &mut Effect, options: u64) {
    key(words, effect, 1, Accesses::READ);
    let (mut stored, mut at) = (None, options);
    while words.has(at) {
        if words.is(at, "count") {
            at += 1;
        } else if words.is_any(at, &["store", "storedist"]) {
            at += 1;
            stored = Some(at);
        }
        at += 1;
    }
    store_into(words, effect, stored);
}

/// `XREAD [COUNT n] [BLOCK n] STREAMS key … id …` and `XREADGROUP GROUP group consumer [NOACK] …`: half of what is behind `STREAMS`
/// are keys.
fn x_read(words: &mut Words<'_>, effect: &mut Effect) {
    let mut at = 1;
    while words.has(at) && !words.is(at, "streams") {
        if words.is(at, "block") {
            effect.class = Class::Blocking;
            at += 1;
        } else if words.is(at, "count") {
            at += 1;
        } else if words.is(at, "group") {
            at += 2;
        }
        at += 1;
    }
    let streams = words.count().saturating_sub(at + 1);
    if !streams.is_multiple_of(2) {
        return;
    }
    let end = at + streams / 2;
    while at < end && words.has(at + 1) {
        at += 1;
        key(words, effect, at, Accesses::READ);
    }
}

/// `BITFIELD key [GET type offset | OVERFLOW … | SET type offset value | INCRBY type offset increment] …`
fn bit_field(words: &mut Words<'_>, effect: &mut Effect) {
    let mut at = 2;
    while words.has(at) {
        if words.is(at, "get") {
            at += 3;
        } else if words.is(at, "overflow") {
            at += 2;
        } else {
            return key(words, effect, 1, Accesses::READ.and(Access::Write));
        }
    }
    key(words, effect, 1, if words.uncertain { Accesses::READ.and(Access::Write) } else { Accesses::READ });
}

/// `COPY source destination [DB n] [REPLACE]`
fn copy(words: &mut Words<'_>, effect: &mut Effect) {
    let (mut access, mut database, mut at) = (Access::Create, None, 3);
    while words.has(at) {
        if words.is(at, "replace") {
            access = Access::Write;
        } else if words.is(at, "db") {
            at += 1;
            database = words.database(at);
        }
        at += 1;
    }
    key(words, effect, 1, Accesses::READ);
    if words.has(2) {
        push(&mut effect.keys, 2, Accesses::of(access), database);
    }
    effect.databases = database.map_or(Databases::Connections, Databases::Named);
}

/// `MOVE key database`: it is taken from one database and put into the other.
fn move_key(words: &mut Words<'_>, effect: &mut Effect) {
    if let (true, Some(database)) = (words.has(1), words.database(2)) {
        push(&mut effect.keys, 1, Accesses::of(Access::Create), Some(database));
        effect.databases = Databases::Named(database);
    }
    key(words, effect, 1, Accesses::READ.and(Access::Delete));
}

/// `RESTORE key ttl value [REPLACE] [ABSTTL] [IDLETIME n] [FREQ n]`
fn restore(words: &mut Words<'_>, effect: &mut Effect) {
    if find(words, 4, &["absttl"]).is_some() {
        effect.end = end(words, 2, 1);
    }
    let replaced = find(words, 4, &["replace"]).is_some();
    key(words, effect, 1, Accesses::of(if replaced { Access::Write } else { Access::Create }));
}

/// `ZADD` and `GEOADD key [NX|XX] [GT|LT] [CH] [INCR] …`
fn add(words: &mut Words<'_>, effect: &mut Effect) {
    let (mut accesses, mut at) = (Accesses::of(Access::Write), 2);
    while words.is_any(at, &["nx", "xx", "gt", "lt", "ch", "incr"]) {
        if words.is(at, "xx") {
            accesses = accesses.without(Access::Write).and(Access::Update);
        } else if words.is(at, "incr") {
            accesses = accesses.and(Access::Read);
            effect.telling = Telling::NullIsNothing;
        }
        at += 1;
    }
    key(words, effect, 1, accesses);
}

/// `XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT n]] id …`
fn x_add(words: &mut Words<'_>, effect: &mut Effect) {
    let (mut access, mut at) = (Access::Write, 2);
    loop {
        if words.is(at, "nomkstream") {
            access = Access::Update;
            effect.telling = Telling::NullIsNothing;
        } else if words.is_any(at, &["maxlen", "minid"]) {
            at += 1 + u64::from(words.is_any(at + 1, &["=", "~"]));
        } else if words.is(at, "limit") {
            at += 1;
        } else if !words.is_any(at, &["keepref", "delref", "acked"]) {
            break;
        }
        at += 1;
    }
    key(words, effect, 1, Accesses::of(access));
}
