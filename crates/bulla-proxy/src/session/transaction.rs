//! [`Transaction`]: what a client has sent since `MULTI`, whether the server has answered it or not.
//!
//! It is begun by `MULTI` and consumed by what ends it, so nothing of one transaction is so of the next. What the server has queued by its
//! replies, [`Standing`](super::standing::Standing) knows.

use super::context::Context;
use super::pending::Pending;
use crate::command::Databases;
use std::rc::Rc;

/// See the module.
#[derive(Default)]
pub(super) struct Transaction {
    /// The database that it selects for what is queued next, if any.
    pub(super) selected: Option<u32>,
    /// Why its commands are sent.
    pub(super) purpose: Option<Rc<str>>,
    /// Something of it was refused, so it never runs.
    pub(super) aborted: bool,
    /// How many commands are queued, and how many bytes are kept of them.
    commands: usize,
    kept: usize,
    /// Whether entries are made of any of them once they are carried out.
    pub(super) makes_entries: bool,
    /// Whether nothing behind it is looked at before it is answered, as what one of them does is to be known first.
    pub(super) awaited: bool,
}

impl Transaction {
    /// One that begins for this purpose.
    pub(super) fn begun(purpose: Option<Rc<str>>) -> Self {
        Transaction { purpose, ..Transaction::default() }
    }

    /// One that never runs.
    pub(super) fn aborted() -> Self {
        Transaction { aborted: true, ..Transaction::default() }
    }

    /// A command passes, and is queued.
    pub(super) fn queue(&mut self, pending: &Pending) {
        self.commands += 1;
        self.kept += size_of::<Pending>() + pending.arguments.room();
        self.makes_entries |= pending.is_recorded();
        self.awaited |= pending.awaited;
        if let Databases::Select(database) = pending.effect.databases {
            self.selected = Some(database);
        }
    }

    /// Whether the proxy keeps no more commands of it.
    pub(super) fn is_full(&self, context: &Context) -> bool {
        self.commands >= context.limits.transaction || self.kept >= context.most_queued()
    }
}
