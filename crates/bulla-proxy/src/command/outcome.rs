//! [`Outcome`]: what a reply tells of what became of a key.

use super::effect::{Access, Class, Effect, End, Telling};
use crate::resp::{Kind, Node, Reply};

/// What became of a key, as far as the command and its reply tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This: it may be more exact than what the command alone told.
    Done(Access),
    /// Nothing: the reply says that this key was not changed.
    NotExecuted,
    /// The server answered with an error. A script may have done something before it.
    Failed,
    /// The reply does not tell whether this key is among those that were changed, or it only says that the command is queued.
    Unknown,
}

impl Effect {
    /// Whether the reply names keys, so that it has to be kept for [`Effect::refine`], and for whoever lists them.
    pub fn reply_names_keys(&self) -> bool {
        self.names_key() || self.class == Class::Listing
    }

    /// Whether the reply is an array that begins with the one of its keys that it is about, or null.
    pub fn names_key(&self) -> bool {
        self.telling == Telling::NamesKey
    }

    /// What value `at` of `reply`, the reply to this command, tells of one use of a key: 0, but inside the reply to `EXEC`. `key` is the key, where all of it is known.
    ///
    /// Only what is surely so is told. A read is done whatever was found.
    pub fn refine(&self, access: Access, key: Option<&[u8]>, reply: &Reply, at: usize) -> Outcome {
        let Some(answer) = reply.nodes().get(at) else {
            return Outcome::Unknown;
        };
        match answer.kind {
            Kind::Error => return Outcome::Failed,
            Kind::Simple if is_status(reply, answer, b"QUEUED") => return Outcome::Unknown,
            _ if access == Access::Read => return Outcome::Done(access),
            _ => {}
        }
        let null = answer.kind == Kind::Null;
        let integer = reply.integer(answer);
        let changed_unless =
            |nothing: bool| if nothing { Outcome::NotExecuted } else { Outcome::Done(access) };
        let outcome = match self.telling {
            Telling::Nothing => Outcome::Done(access),
            Telling::ZeroIsNothing => changed_unless(integer.is_some_and(|integer| integer <= 0)),
            Telling::NullIsNothing => changed_unless(null || is_empty(answer)),
            Telling::OldValue if access == Access::Write => {
                Outcome::Done(if null { Access::Create } else { Access::Update })
            }
            Telling::OldValue => Outcome::Done(access),
            Telling::OldValueIsNothing => changed_unless(!null),
            Telling::OldValueTellsNothing if null => Outcome::NotExecuted,
            Telling::OldValueTellsNothing => Outcome::Unknown,
            Telling::ZeroIsDelete if access == Access::Write && integer == Some(0) => {
                Outcome::Done(Access::Delete)
            }
            Telling::ZeroIsDelete => Outcome::Done(access),
            Telling::Removed(all) => match integer.map(u64::try_from) {
                Some(Ok(0)) => Outcome::NotExecuted,
                Some(Ok(removed)) if removed == all => Outcome::Done(access),
                _ => Outcome::Unknown,
            },
            Telling::Length(added) => match integer.map(u64::try_from) {
                Some(Ok(length)) if length == added => Outcome::Done(Access::Create),
                Some(Ok(length)) if length > added => Outcome::Done(Access::Update),
                _ => Outcome::Done(access),
            },
            Telling::NamesKey => named(access, key, reply, at),
            Telling::NoKey => changed_unless(is_status(reply, answer, b"NOKEY")),
        };
        match outcome {
            Outcome::Done(Access::Delete) if self.end == End::Close => Outcome::Unknown,
            outcome => outcome,
        }
    }

    /// Whether value `at` of `reply`, as in [`Effect::refine`], says that no key is left of those that the command deletes: they were
    /// deleted, or there were none.
    pub fn leaves_none(&self, reply: &Reply, at: usize) -> bool {
        let answer = reply.nodes().get(at);
        match self.telling {
            // However many of them were there.
            Telling::Removed(_) => answer.is_some_and(|answer| answer.kind == Kind::Integer),
            _ => self.refine(Access::Delete, None, reply, at) == Outcome::Done(Access::Delete),
        }
    }
}

/// Whether `key` is the one that an array begins with.
fn named(access: Access, key: Option<&[u8]>, reply: &Reply, at: usize) -> Outcome {
    let Some(answer) = reply.nodes().get(at) else {
        return Outcome::Unknown;
    };
    if answer.kind == Kind::Null || is_empty(answer) {
        return Outcome::NotExecuted;
    }
    match (key, reply.children(at).next()) {
        (Some(key), Some((_, first))) if !first.is_aggregate() && first.is_whole() => {
            if reply.text(first) == key { Outcome::Done(access) } else { Outcome::NotExecuted }
        }
        _ => Outcome::Unknown,
    }
}

fn is_empty(node: &Node) -> bool {
    node.is_aggregate() && node.length == 0
}

fn is_status(reply: &Reply, node: &Node, status: &[u8]) -> bool {
    node.kind == Kind::Simple && node.is_whole() && reply.text(node) == status
}
