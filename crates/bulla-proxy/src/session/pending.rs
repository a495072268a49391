//! [`Pending`]: a command on its way, and [`Pipeline`], those that are not answered.

use super::outlet::Place;
use super::special::Special;
use crate::command::{Answers, Class, Effect};
use crate::resp::Arguments;
use std::collections::VecDeque;
use std::rc::Rc;

/// So many buffers for arguments are kept for the next commands, and none that is larger.
const SPARE: usize = 64;
const SPARE_ROOM: usize = 4 << 10;

/// A command that was let through, or is answered by the proxy in its place.
pub(super) struct Pending {
    pub(super) arguments: Arguments,
    pub(super) effect: Effect,
    pub(super) special: Special,
    /// Why, as the client says; of a `MULTI`, why what is behind it is sent where the server refuses it.
    pub(super) purpose: Option<Rc<str>>,
    /// Whether what is behind it has no purpose from before it, whatever it is answered: it may be refused, and end it all the same.
    pub(super) ends_purpose: bool,
    /// When all of it had come, by the steady clock.
    pub(super) come: u64,
    pub(super) answer: Answer,
    /// Whether its reply is kept from the client, who wanted none (`CLIENT REPLY`).
    pub(super) silent: bool,
    /// Whether an entry says already that its reply began to leave.
    pub(super) begun: bool,
    /// Whether it goes to the server once all before it is answered, and no earlier: [`Special::goes_alone`].
    pub(super) alone: bool,
    /// Whether nothing behind it is looked at before it is answered.
    pub(super) awaited: bool,
    /// Whether it has a transaction carried out of which entries are made.
    pub(super) carries_out: bool,
    /// Where it ends among all bytes that go to the server; 0 where it does not go there.
    pub(super) sent: Place,
}

/// Where the reply to a command comes from.
#[derive(Debug)]
pub(super) enum Answer {
    /// The server.
    Server,
    /// The server, once for each of so many channels; `None` until the first has come, and it is known of how many.
    Channels(Option<u64>),
    /// The proxy: the server does not get the command.
    Proxy(Box<[u8]>),
    /// The proxy, in the place of what the server answers to another command.
    Instead(&'static [u8]),
}

impl Pending {
    /// Whether anything of it is recorded.
    pub(super) fn is_recorded(&self) -> bool {
        let effect = &self.effect;
        let is_told = effect.administrative || effect.unknowable.is_some() || effect.class == Class::Listing;
        (is_told || !effect.keys.is_empty()) && !matches!(self.answer, Answer::Proxy(_) | Answer::Instead(_))
    }

    /// Whether entries are made of its reply: of itself, or of the transaction that it has carried out.
    pub(super) fn makes_entries(&self) -> bool {
        self.carries_out || self.is_recorded()
    }

    /// Where its reply comes from, as far as its own arguments tell.
    pub(super) fn answer_of(effect: &Effect) -> Answer {
        match effect.answers {
            Answers::Channels(_) => Answer::Channels(None),
            Answers::One | Answers::None | Answers::Endless => Answer::Server,
        }
    }

    /// A reply of the proxy's own; `ends_purpose` is whether what it answers ended the purpose of what is behind it.
    pub(super) fn local(reply: impl Into<Box<[u8]>>, silent: bool, ends_purpose: bool) -> Self {
        Pending {
            arguments: Arguments::default(),
            effect: Effect::default(),
            special: Special::None,
            ends_purpose,
            purpose: None,
            come: 0,
            answer: Answer::Proxy(reply.into()),
            silent,
            begun: false,
            alone: false,
            awaited: false,
            carries_out: false,
            sent: 0,
        }
    }
}

/// Commands in their order, and room for those to come.
#[derive(Default)]
pub(super) struct Pipeline {
    commands: VecDeque<Pending>,
    /// Bytes that are kept of them.
    kept: usize,
    /// How many of them are awaited by what is behind them.
    awaited: usize,
    spare: Vec<Arguments>,
}

impl Pipeline {
    pub(super) fn push(&mut self, pending: Pending) {
        self.kept += pending.arguments.room();
        self.awaited += usize::from(pending.awaited);
        self.commands.push_back(pending);
    }

    pub(super) fn pop(&mut self) -> Option<Pending> {
        let pending = self.commands.pop_front()?;
        self.kept -= pending.arguments.room();
        self.awaited -= usize::from(pending.awaited);
        if self.commands.is_empty() && self.commands.capacity() > SPARE {
            self.commands = VecDeque::new();
        }
        Some(pending)
    }

    /// Forgets the commands from the first one on of which this is so.
    pub(super) fn cut(&mut self, is_it: impl Fn(&Pending) -> bool) {
        if let Some(at) = self.commands.iter().position(is_it) {
            for pending in self.commands.drain(at..) {
                self.kept -= pending.arguments.room();
                self.awaited -= usize::from(pending.awaited);
            }
        }
    }

    /// The one that waits longest.
    pub(super) fn next(&self) -> Option<&Pending> {
        self.commands.front()
    }

    pub(super) fn first(&mut self) -> Option<&mut Pending> {
        self.commands.front_mut()
    }

    /// Puts back the one that was popped last.
    pub(super) fn put_back(&mut self, pending: Pending) {
        self.kept += pending.arguments.room();
        self.awaited += usize::from(pending.awaited);
        self.commands.push_front(pending);
    }

    pub(super) fn last(&self) -> Option<&Pending> {
        self.commands.back()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.commands.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.commands.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether something behind them has to wait until one of them is answered.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Room for the arguments of a command.
    pub(super) fn room(&mut self) -> Arguments {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes back the room of a command that is done.
    pub(super) fn give_back(&mut self, arguments: Arguments) {
        if self.spare.len() < SPARE && (1..=SPARE_ROOM).contains(&arguments.room()) {
            self.spare.push(arguments);
        }
    }
}
