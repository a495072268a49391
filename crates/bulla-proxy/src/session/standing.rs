//! [`Standing`]: what is so of a connection by the replies that have come.

use super::context::MAX_CLAIM;
use super::hello::Hello;
use super::pending::Pending;
use super::special::{self, Channels, Special};
use super::{DEFAULT_USER, UNKNOWN_USER};
use crate::command::{Class, Databases};
use crate::resp::{Kind, Node, Reply};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Room for more queued commands than this is not kept for the next transaction.
const ROOM_KEPT: usize = 64;

/// See the module.
pub(super) struct Standing {
    /// A number that no other connection of this process has.
    pub(super) connection: u64,
    pub(super) database: u32,
    /// Who acts: the server's user, as whom the client has authenticated itself; until it has, whose certificate it has.
    pub(super) actor: Rc<str>,
    /// Whose certificate the client has.
    pub(super) certificate: Option<Rc<str>>,
    /// The name that the client gave itself, or its beginning.
    pub(super) name: Option<Rc<str>>,
    /// Whether it is only that.
    pub(super) name_is_cut: bool,
    resp3: bool,
    /// What the server has queued since `MULTI`; `None` where it queues nothing.
    pub(super) queued: Option<VecDeque<Pending>>,
    /// Room for what it queues next.
    room: VecDeque<Pending>,
    /// How many channels, patterns and shard channels are subscribed to.
    subscribed: [u64; 3],
    /// Whether the server tells what others do.
    monitors: bool,
}

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// The reply to the command that waits longest, or one of several.
    Answer,
    /// Something that the server says by itself.
    Push,
}

impl Standing {
    /// Of a client that said nothing yet, with a certificate of this name.
    pub(super) fn new(certificate: Option<&str>) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        Standing::of(CONNECTIONS.fetch_add(1, Ordering::Relaxed), certificate.map(Into::into))
    }

    fn of(connection: u64, certificate: Option<Rc<str>>) -> Self {
        Standing {
            connection,
            database: 0,
            actor: certificate.clone().unwrap_or_else(|| DEFAULT_USER.into()),
            certificate,
            name: None,
            name_is_cut: false,
            resp3: false,
            queued: None,
            room: VecDeque::new(),
            subscribed: [0; 3],
            monitors: false,
        }
    }

    /// What the server sent, given the command that waits longest, and whether an array may have been a message when it began.
    pub(super) fn arrived(&self, reply: &Reply, first: Option<&Pending>, may_be_message: bool) -> Arrived {
        let Some(node) = reply.nodes().first() else { return Arrived::Answer };
        match node.kind {
            // Answers to SUBSCRIBE and the like are pushes in RESP3.
            Kind::Push => {
                let channels = first.and_then(|first| channels_of(first.special));
                let tells = channels.is_some_and(|(_, name)| word(reply, 0) == Some(name));
                if tells { Arrived::Answer } else { Arrived::Push }
            }
            Kind::Array if may_be_message => match word(reply, 0) {
                Some(b"message" | b"pmessage" | b"smessage") => Arrived::Push,
                _ => Arrived::Answer,
            },
            // A line that tells of a command begins with a time.
            Kind::Simple if self.monitors && reply.text(node).first().is_some_and(u8::is_ascii_digit) => {
                Arrived::Push
            }
            _ => Arrived::Answer,
        }
    }

    /// Whether arrays may be messages: they are where they are no pushes.
    pub(super) fn may_be_messages(&self) -> bool {
        !self.resp3 && self.is_subscribed()
    }

    fn is_subscribed(&self) -> bool {
        self.subscribed.iter().any(|count| *count > 0)
    }

    /// Whether the client may say nothing for as long as it likes, because the server has things to say.
    pub(super) fn listens(&self) -> bool {
        self.monitors || self.is_subscribed()
    }

    /// Whether the server queues commands.
    pub(super) fn queues(&self) -> bool {
        self.queued.is_some()
    }

    /// What of the transaction that is carried out is answered next.
    pub(super) fn next_queued(&self) -> Option<&Pending> {
        self.queued.as_ref()?.front()
    }

    /// Whether the server tells what others do.
    pub(super) fn monitors(&self) -> bool {
        self.monitors
    }

    /// How many answers a command about channels gets that begins to be answered.
    pub(super) fn answers(&self, pending: &Pending) -> u64 {
        match (pending.special, pending.arguments.count().saturating_sub(1)) {
            (Special::Unsubscribe(channels), 0) => self.subscribed[channels as usize].max(1),
            (_, channels) => channels.max(1),
        }
    }

    /// One answer to a command about channels.
    pub(super) fn subscribe(&mut self, special: Special, reply: &Reply) {
        let Some((channels, _)) = channels_of(special) else { return };
        let count = reply.children(0).nth(2).and_then(|(_, node)| reply.integer(node));
        let Some(count) = count.and_then(|count| u64::try_from(count).ok()) else { return };
        // The server counts channels and patterns together.
        let others = match channels {
            Channels::Named => self.subscribed[Channels::Patterns as usize],
            Channels::Patterns => self.subscribed[Channels::Named as usize],
            Channels::Shards => 0,
        };
        self.subscribed[channels as usize] = count.saturating_sub(others);
    }

    /// The server took a command, and answered with `node`. Whether it was queued, and is over only with its transaction.
    pub(super) fn is_queued(&self, reply: &Reply, node: &Node) -> bool {
        self.queues() && node.kind == Kind::Simple && reply.text(node) == b"QUEUED"
    }

    /// Takes back the room of a transaction that is done.
    pub(super) fn give_back(&mut self, room: VecDeque<Pending>) {
        if room.is_empty() && room.capacity() <= ROOM_KEPT {
            self.room = room;
        }
    }

    /// Whether a reply is one that this command can have. A reply that is another command's would have it recorded with a result that
    /// it did not have, or the connection taken for something that it is not.
    pub(super) fn can_have(&self, pending: &Pending, reply: &Reply) -> bool {
        let Some(node) = reply.nodes().first() else { return true };
        let says = |text: &[u8]| node.kind == Kind::Simple && reply.text(node) == text;
        match pending.special {
            _ if node.kind == Kind::Error => true,
            Special::Exec => matches!(node.kind, Kind::Array | Kind::Null),
            Special::Multi | Special::Discard => says(b"OK"),
            Special::Reset => says(b"RESET"),
            Special::Subscribe(_) | Special::Unsubscribe(_) => {
                channels_of(pending.special).is_some_and(|(_, name)| word(reply, 0) == Some(name))
            }
            _ if self.queues() => says(b"QUEUED") || pending.arguments.is(0, "quit"),
            Special::Auth => says(b"OK"),
            Special::Hello => matches!(node.kind, Kind::Array | Kind::Map),
            _ if matches!(pending.effect.databases, Databases::Select(_)) => says(b"OK"),
            // A script answers with whatever it likes.
            _ => pending.effect.class == Class::Script || !says(b"QUEUED"),
        }
    }

    /// What changes with a command that was carried out and answered with `node` of a reply.
    pub(super) fn carried_out(&mut self, pending: &Pending, reply: &Reply, node: &Node) {
        let ends = matches!(pending.special, Special::Exec | Special::Discard | Special::Reset);
        if ends && (node.kind != Kind::Error || pending.special == Special::Exec) {
            self.queued = None;
        }
        if let Some(code) = reply.error_code(node) {
            let authenticates = || special::user(pending.special, &pending.arguments).is_some();
            let settled = matches!(code, "WRONGPASS" | "NOPROTO" | "NOPERM");
            // A server may find the password right, and something else wrong behind it.
            if pending.special == Special::Hello && !settled && authenticates() {
                self.actor = UNKNOWN_USER.into();
            }
            return;
        }
        if let Databases::Select(database) = pending.effect.databases {
            self.database = database;
        }
        match pending.special {
            Special::Multi => self.queued = Some(std::mem::take(&mut self.room)),
            Special::Auth | Special::Hello => {
                if let Some(user) = special::user(pending.special, &pending.arguments)
                    && *user != *self.actor
                {
                    self.actor = user.into();
                }
                if pending.special == Special::Hello {
                    self.hello(pending);
                }
            }
            Special::SetName => {
                let name = pending.arguments.get(2).unwrap_or_default();
                self.set_name(name, pending.arguments.is_whole(2));
            }
            Special::Monitor => self.monitors = true,
            Special::Reset => *self = Standing::of(self.connection, self.certificate.take()),
            _ => {}
        }
    }

    /// A command was sent, and never answered: what was sent behind it was sent for the database, and by the user, that it would have led to.
    pub(super) fn leave_to(&mut self, pending: &Pending) {
        if let Databases::Select(database) = pending.effect.databases {
            self.database = database;
        }
        if pending.special == Special::Reset {
            *self = Standing::of(self.connection, self.certificate.take());
        }
    }

    fn hello(&mut self, pending: &Pending) {
        let Some(Hello { protocol, name, .. }) = Hello::of(&pending.arguments) else { return };
        if let Some(protocol) = protocol {
            self.resp3 = protocol == b"3";
        }
        if let Some(name) = name {
            self.set_name(name, true);
        }
    }

    fn set_name(&mut self, name: &[u8], is_whole: bool) {
        // A server takes no name but one of ASCII.
        let told = &name[..name.len().min(MAX_CLAIM)];
        self.name_is_cut = !is_whole || told.len() < name.len();
        self.name = str::from_utf8(told).ok().filter(|name| !name.is_empty()).map(Into::into);
    }
}

/// The channels that a command is about, and the word with which each answer to it begins.
fn channels_of(special: Special) -> Option<(Channels, &'static [u8])> {
    let (channels, names): (_, [&'static [u8]; 3]) = match special {
        Special::Subscribe(channels) => (channels, [b"subscribe", b"psubscribe", b"ssubscribe"]),
        Special::Unsubscribe(channels) => (channels, [b"unsubscribe", b"punsubscribe", b"sunsubscribe"]),
        _ => return None,
    };
    Some((channels, names[channels as usize]))
}

/// A text among the values of an aggregate.
fn word(reply: &Reply, index: usize) -> Option<&[u8]> {
    let (_, node) = reply.children(0).nth(index)?;
    Some(reply.text(node))
}
