//! [`Special`]: the commands that change what later ones of the connection are.

use super::hello::Hello;
use crate::command::{Class, CommandTable, Effect, until_zero};
use crate::resp::Arguments;

/// A command that changes what later ones of its connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    /// Any other.
    None,
    Multi,
    Exec,
    Discard,
    Auth,
    Hello,
    Reset,
    Reply(ReplyMode),
    SetName,
    Monitor,
    /// `SYNC` and `PSYNC`: no replies follow.
    Sync,
    Subscribe(Channels),
    Unsubscribe(Channels),
    /// `BULLA.PURPOSE`, which the proxy answers.
    Purpose,
    /// Any other of the names that are the proxy's.
    NoSuch,
}

/// What `CLIENT REPLY` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyMode {
    On,
    Off,
    Skip,
}

impl ReplyMode {
    fn of(word: Option<&[u8]>) -> Option<ReplyMode> {
        let word = word?;
        match () {
            () if word.eq_ignore_ascii_case(b"on") => Some(ReplyMode::On),
            () if word.eq_ignore_ascii_case(b"off") => Some(ReplyMode::Off),
            () if word.eq_ignore_ascii_case(b"skip") => Some(ReplyMode::Skip),
            () => None,
        }
    }
}

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    Named,
    Patterns,
    Shards,
}

impl Special {
    /// Whether only the reply says who acts from then on.
    pub(super) fn settles_user(self) -> bool {
        matches!(self, Special::Auth | Special::Hello | Special::Reset)
    }

    /// Whether it is something that a server may leave unanswered while another reply waits to leave: where it authenticates nobody, Valkey
    /// 8 does.
    pub(super) fn goes_alone(self, arguments: &Arguments) -> bool {
        self == Special::Auth || self == Special::Hello && arguments.count() > 2
    }

    /// Which of them a command is.
    pub(super) fn of(table: &CommandTable, effect: &Effect, arguments: &Arguments) -> Special {
        let Some(name) = table.name(effect.command) else {
            return match arguments.get(0) {
                Some(name) if arguments.is(0, "bulla.purpose") && !name.is_empty() => Special::Purpose,
                Some(name) if is_own(name) => Special::NoSuch,
                _ => Special::None,
            };
        };
        match effect.class {
            Class::Data | Class::Blocking | Class::Listing | Class::Script => return Special::None,
            Class::Connection | Class::Transaction | Class::PubSub | Class::Administrative => {}
        }
        match name {
            // With arguments the server refuses it.
            "multi" if arguments.count() == 1 => Special::Multi,
            // With arguments the server refuses it, and discards the transaction.
            "exec" => Special::Exec,
            // With arguments the server refuses it, and the transaction goes on.
            "discard" if arguments.count() == 1 => Special::Discard,
            "auth" => Special::Auth,
            "hello" => Special::Hello,
            "reset" if arguments.count() == 1 => Special::Reset,
            "client|setname" => Special::SetName,
            "client|reply" if arguments.count() == 3 => {
                ReplyMode::of(until_zero(arguments, 2)).map_or(Special::None, Special::Reply)
            }
            "monitor" => Special::Monitor,
            "sync" | "psync" => Special::Sync,
            "subscribe" => Special::Subscribe(Channels::Named),
            "psubscribe" => Special::Subscribe(Channels::Patterns),
            "ssubscribe" => Special::Subscribe(Channels::Shards),
            "unsubscribe" => Special::Unsubscribe(Channels::Named),
            "punsubscribe" => Special::Unsubscribe(Channels::Patterns),
            "sunsubscribe" => Special::Unsubscribe(Channels::Shards),
            _ => Special::None,
        }
    }
}

/// Whether a name is one of the proxy's own.
pub(super) fn is_own(name: &[u8]) -> bool {
    name.get(..6).is_some_and(|head| head.eq_ignore_ascii_case(b"bulla."))
}

/// Whom an `AUTH` or a `HELLO` authenticates, where the server takes it: `default` where only a password is given. `None` where it
/// authenticates nobody.
pub(super) fn user(special: Special, arguments: &Arguments) -> Option<&str> {
    let name = match special {
        Special::Auth if arguments.count() == 2 => return Some(super::DEFAULT_USER),
        Special::Auth => arguments.get(1).filter(|_| arguments.is_whole(1)),
        Special::Hello => Some(Hello::of(arguments)?.user?),
        _ => return None,
    };
    Some(name.and_then(|name| str::from_utf8(name).ok()).unwrap_or(super::UNKNOWN_USER))
}
