//! One client's connection through the proxy, without I/O: [`Session`] is given what came from each side, and says what leaves to the
//! other ([`Outlet`]) and what is recorded ([`Record`]).
//!
//! Invariants:
//! - bytes leave as they came, but for what the proxy answers itself, which takes its place in the order of replies; nothing leaves to the
//!   server of a command that is refused, but the beginning of one that is longer than [`HELD`], which never gets its end;
//! - every command that went to the server and is to be recorded is recorded once it is answered, in the order of the replies, one of a
//!   transaction as soon as its part of the reply to `EXEC` has come, or when the connection ends; so what is so of the connection (its user, its database) is so by the replies that came before;
//! - the server is expected to answer every command: `CLIENT REPLY` stays with the proxy, which keeps the replies back by itself, and
//!   `REPLCONF ACK`, which has none, is refused; `AUTH`, of which a server may say nothing while another reply waits to leave, goes
//!   alone, and in no transaction. Nobody can shift replies against their commands; where one comes
//!   that its command cannot have, or that nothing which has left to the server waits for, the connection ends;
//! - what a reply is, is decided once, as it begins: nothing that it tells itself makes it another's;
//! - an intent names who acts, and on what: in mode `before-send` nothing behind an `AUTH` or a `SELECT` is looked at before that is
//!   answered;
//! - a command whose entries a defect keeps from being made is still under way for whoever ends the connection then;
//! - memory is bounded whatever comes: see [`Session::wants_client`] and [`Session::wants_server`].

mod admission;
mod context;
mod hello;
mod operation;
mod outlet;
mod pending;
mod replies;
mod report;
mod special;
mod standing;
#[cfg(test)]
mod tests;
mod transaction;

pub use context::Context;
pub use operation::{CarriedOut, Operation, Record, Stage, Status, Target, Unrecorded, Values};
pub use outlet::{Outlet, Place, Ticket};

use crate::config::{Mode, Unfollowable};
use crate::defect::{Defect, caught};
use crate::resp::{Arguments, Replies, Requests, Violation};
use admission::{Admission, Verdict};
use hmac::Hmac;
use operation::Count;
use pending::{Answer, Pending, Pipeline};
use replies::{Arriving, LITTLE};
use report::Report;
use sha2::Sha256;
use special::Special;
use standing::Standing;
use std::collections::VecDeque;
use std::sync::Arc;

/// A command is held until all of it has come, where it is no longer than this.
pub const HELD: usize = 64 << 10;
/// No more is read from one side while so much waits to leave to the other.
pub const WINDOW: usize = 256 << 10;
/// As whom clients act who have not said who they are.
pub const DEFAULT_USER: &str = "default";
/// As whom they act where nobody can know it.
pub const UNKNOWN_USER: &str = "?";

/// Why a connection ends that neither side has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What the server sends is no reply.
    ServerNotFollowed(Violation),
    /// The log takes nothing, and a command was carried out meanwhile: its reply stays here.
    Unrecorded,
    /// The server refused to discard a transaction that may not run.
    NotDiscarded,
    /// A command was answered with what cannot be its reply: it is another's.
    NotItsReply,
    /// The proxy has a defect.
    Defect,
}

impl From<Defect> for Ended {
    fn from(_: Defect) -> Self {
        Ended::Defect
    }
}

impl From<Unrecorded> for Ended {
    fn from(_: Unrecorded) -> Self {
        Ended::Unrecorded
    }
}

/// See the module.
pub struct Session {
    context: Arc<Context>,
    client: Box<str>,
    requests: Requests,
    replies: Replies,
    /// What the reply at hand is.
    arriving: Arriving,
    admission: Admission,
    standing: Standing,
    pipeline: Pipeline,
    /// Of the reply at hand, where it names keys.
    reply_digest: Option<Hmac<Sha256>>,
    /// What goes to the server.
    pub to_server: Outlet,
    /// What goes to the client.
    pub to_client: Outlet,
    /// What has to be durable for all that was recorded of this connection to be.
    ticket: Ticket,
    /// What came behind a command that has to be answered first.
    behind: Vec<u8>,
    /// Whether the command at hand was let through before all of it had come.
    begun: bool,
    /// No commands are read any more: the connection ends once everything is answered.
    closing: bool,
    /// What the client sent was no command.
    violated: bool,
    /// Bytes are relayed as they are: to the server once it is durable that nobody audits them, where commands wait for their intents.
    unaudited: Option<Ticket>,
}

impl Session {
    /// Of a client at this address, and with a certificate of this name.
    pub fn new(context: Arc<Context>, client: &str, certificate: Option<&str>) -> Self {
        Session {
            requests: Requests::new(context.request_limits(), context.digest_key),
            replies: Replies::new(LITTLE),
            arriving: Arriving::default(),
            context,
            client: client.into(),
            admission: Admission::default(),
            standing: Standing::new(certificate),
            pipeline: Pipeline::default(),
            reply_digest: None,
            to_server: Outlet::default(),
            to_client: Outlet::default(),
            ticket: 0,
            behind: Vec::new(),
            begun: false,
            closing: false,
            violated: false,
            unaudited: None,
        }
    }

    /// Whether more should be read from the client.
    pub fn wants_client(&self) -> bool {
        let bounded = self.pipeline.len() < self.context.limits.pipeline
            && self.pipeline.kept() < self.context.most_kept();
        let behind = self.behind.is_empty();
        !self.closing
            && bounded
            && behind
            && self.to_server.waiting() < WINDOW
            && self.to_client.waiting() < 2 * WINDOW
    }

    /// Whether more should be read from the server.
    pub fn wants_server(&self) -> bool {
        self.to_client.waiting() < WINDOW
    }

    /// Whether everything that came from the client is on its way, but for the rest of a command.
    pub fn is_taken(&self) -> bool {
        let is_settled = |last: &Pending| last.sent <= self.to_server.settled();
        self.behind.is_empty() && self.pipeline.last().is_none_or(is_settled)
    }

    /// Whether what the server says next may be recorded.
    pub fn awaits_entries(&self) -> bool {
        self.pipeline.iter().any(Pending::makes_entries)
    }

    /// Whether what the client says next may be recorded.
    pub fn intends_entries(&self) -> bool {
        self.context.mode == Mode::BeforeSend
    }

    /// Whether the connection is to be ended: nothing more is read, and all of it is answered.
    pub fn is_over(&self) -> bool {
        self.closing && self.is_answered()
    }

    /// Whether everything is answered that came, and nothing waits to leave.
    pub fn is_answered(&self) -> bool {
        self.pipeline.len() == 0 && self.to_client.waiting() == 0
    }

    /// Whether the client waits for nothing.
    pub fn is_idle(&self) -> bool {
        self.is_answered() && self.unaudited.is_none()
    }

    /// Whether it has begun nothing either that it would go on with: it is in no transaction.
    pub fn has_begun_nothing(&self) -> bool {
        self.is_idle() && !self.standing.queues()
    }

    /// For which of its entries the client would have to wait with whatever comes next.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }

    /// All of its entries up to now are durable, and nothing that comes next has to wait for them.
    pub fn forget_ticket(&mut self) {
        self.ticket = 0;
    }

    /// Whether the server may say something at any time.
    pub fn listens(&self) -> bool {
        self.unaudited.is_some() || self.standing.listens()
    }

    /// Whether the client sent what is no command, and is refused for that.
    pub fn is_violated(&self) -> bool {
        self.violated
    }

    /// From now on what follows from the configuration follows from this; what is at hand goes on as it began.
    pub fn adopt(&mut self, context: &Arc<Context>) {
        self.context = context.clone();
    }

    /// Answers with an error whatever came and was not taken, after which nothing more is read from the client.
    pub fn refuse(&mut self, reply: &str) {
        self.to_server.truncate(self.to_server.settled());
        self.close_with(reply.as_bytes().to_vec());
    }

    /// What waits to leave to the client never does: it is told instead that this is not recorded, where no part of it has left.
    pub fn tell_unrecorded(&mut self) {
        const TOLD: &[u8] = b"-BULLA the audit log did not keep what this was, so its result is not told: it may have been done\r\n";
        if self.unaudited.is_none() {
            self.to_client.replace_waiting(TOLD);
        }
    }

    /// Takes what came from the client. `now` is a steady clock's, in nanoseconds.
    ///
    /// # Errors
    /// The connection is to be ended at once.
    pub fn from_client(&mut self, bytes: &[u8], now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let mut at = 0;
        while at < bytes.len() && !self.closing {
            let rest = &bytes[at..];
            if let Some(ticket) = self.unaudited {
                self.to_server.push(rest);
                self.to_server.settle(self.to_server.end(), ticket);
                return Ok(());
            }
            if self.pipeline.is_awaited() {
                self.behind.extend_from_slice(rest);
                return Ok(());
            }
            let context = &self.context;
            let keep = |so_far: &Arguments, index, length| context.keep(so_far, index, length);
            match self.requests.next(rest, keep) {
                Ok(progress) => {
                    at += progress.consumed;
                    self.to_server.push(&rest[..progress.consumed]);
                    match progress.complete {
                        true => self.command(now, recorder)?,
                        false => self.go_on(recorder),
                    }
                }
                Err(_) if self.context.unfollowable == Unfollowable::Relay => self.give_up(recorder)?,
                Err(violation) => {
                    self.violated = true;
                    self.refuse(&format!("-ERR Protocol error: {violation}\r\n"));
                }
            }
        }
        Ok(())
    }

    /// The connection ended: what was not answered is recorded as such, but for commands that have not left, which nobody carries out.
    pub fn end(&mut self, now: u64, recorder: &mut impl Record) {
        let gone = self.to_server.gone();
        self.pipeline.cut(|pending| pending.sent > gone);
        self.give_up_all(now, recorder);
    }

    /// Records as such what is not answered; what the server has queued, and was not asked to carry out, is left.
    ///
    /// Behind a `MULTI` that is not answered, nobody knows whether commands were queued: the server may have refused it.
    fn give_up_all(&mut self, now: u64, recorder: &mut impl Record) -> VecDeque<Pending> {
        let mut queued = self.standing.queued.take();
        while let Some(pending) = self.pipeline.pop() {
            match (pending.special, &mut queued) {
                (Special::Exec, _) if !matches!(pending.answer, Answer::Instead(_)) => {
                    for pending in queued.take().unwrap_or_default() {
                        self.give_up_on(&pending, now, recorder);
                    }
                }
                (Special::Exec | Special::Discard | Special::Reset, _) => {
                    queued = None;
                    self.standing.leave_to(&pending);
                }
                (_, Some(queued)) => queued.push_back(pending),
                (_, None) => self.give_up_on(&pending, now, recorder),
            }
        }
        queued.unwrap_or_default()
    }

    /// Goes on with what came behind a command that had to be answered first.
    fn look_behind(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        match self.behind.is_empty() || self.pipeline.is_awaited() {
            true => Ok(()),
            false => {
                let behind = std::mem::take(&mut self.behind);
                self.from_client(&behind, now, recorder)
            }
        }
    }

    /// A command is complete.
    fn command(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        if self.pipeline.len() == 0 {
            self.admission.settle(self.standing.queues(), self.standing.monitors());
        }
        let arguments = self.requests.take(self.pipeline.room());
        let effect = self.context.table.effect(&arguments);
        let special = Special::of(&self.context.table, &effect, &arguments);
        let answer = Pending::answer_of(&effect);
        let alone = special.goes_alone(&arguments);
        let settles = || special.settles_user() || effect.databases.settles_others();
        let awaited = alone || self.context.mode == Mode::BeforeSend && settles();
        let mut pending = Pending {
            arguments,
            effect,
            special,
            ends_purpose: false,
            purpose: None,
            come: now,
            answer,
            silent: false,
            begun: false,
            alone,
            awaited,
            carries_out: false,
            sent: 0,
        };
        let begun = std::mem::take(&mut self.begun);
        match self.admission.decide(&self.context, &mut pending, recorder.takes()) {
            Verdict::Pass => {
                let ticket = match self.context.mode {
                    Mode::BeforeSend if pending.is_recorded() => {
                        self.report(Stage::Intended, now, now).command(&pending, None, recorder)?;
                        recorder.ticket()
                    }
                    _ if pending.makes_entries() => recorder.held(),
                    _ => 0,
                };
                pending.sent = self.to_server.end();
                if !pending.alone {
                    self.to_server.settle(pending.sent, ticket);
                }
                self.pipeline.push(pending);
            }
            Verdict::Answer(reply) => self.answer_instead(pending, reply, begun),
            Verdict::Refuse(why, reply) => {
                recorder.refused(why);
                self.answer_instead(pending, reply, begun);
            }
            Verdict::Discard(why, reply) => {
                why.into_iter().for_each(|why| recorder.refused(why));
                self.to_server.truncate(self.to_server.settled());
                self.to_server.push(b"*1\r\n$7\r\nDISCARD\r\n");
                pending.sent = self.to_server.end();
                self.to_server.settle(pending.sent, 0);
                pending.answer = Answer::Instead(reply);
                self.pipeline.push(pending);
            }
        }
        self.answer_locally();
        Ok(())
    }

    /// Answers a command in the place of the server, which may have its beginning.
    fn answer_instead(&mut self, pending: Pending, reply: Vec<u8>, begun: bool) {
        self.to_server.truncate(self.to_server.settled());
        let Pending { silent, ends_purpose, .. } = pending;
        self.pipeline.give_back(pending.arguments);
        match begun {
            // The server waits for its end.
            true => self.close_with(reply),
            false => self.pipeline.push(Pending::local(reply, silent, ends_purpose)),
        }
    }

    /// More of a command has come, which is not complete: if it is long, or says that it will be, its beginning goes on. So the server can
    /// refuse what is longer than it takes, which the client may be waiting for, and a long value waits for nothing.
    fn go_on(&mut self, recorder: &mut impl Record) {
        let end = self.to_server.end();
        let held = end - self.to_server.settled();
        if !self.begun && held.saturating_add(self.requests.announced()) <= HELD as u64 {
            return;
        }
        let refusal = match self.begun {
            true => None,
            false => self.admission.beginning(&self.context, self.requests.arguments(), recorder.takes()),
        };
        match refusal {
            None => {
                self.begun = true;
                self.to_server.settle(end, 0);
            }
            Some((why, refusal)) => {
                recorder.refused(why);
                self.refuse(&format!("-BULLA {refusal}\r\n"));
            }
        }
    }

    /// Answers with an error, after which nothing more is read from the client.
    fn close_with(&mut self, reply: Vec<u8>) {
        self.closing = true;
        self.pipeline.push(Pending::local(reply, false, false));
        self.answer_locally();
    }

    /// From here on nobody audits the connection.
    fn give_up(&mut self, recorder: &mut impl Record) -> Result<(), Ended> {
        for pending in self.give_up_all(0, recorder) {
            // Whether it is carried out is told by nobody.
            self.give_up_on(&pending, 0, recorder);
        }
        self.report(Stage::Over, 0, 0).unaudited(recorder)?;
        self.ticket = recorder.ticket();
        self.to_server.push(&std::mem::take(&mut self.behind));
        let before_sending = match self.context.mode {
            Mode::BeforeSend => self.ticket,
            Mode::Async | Mode::BeforeReply => recorder.held(),
        };
        self.unaudited = Some(before_sending);
        self.to_server.settle(self.to_server.end(), before_sending);
        self.to_client.settle(self.to_client.end(), self.ticket);
        Ok(())
    }

    /// Records that it is not known what became of a command. What is behind it was sent for where it would have led: to another database,
    /// say.
    fn give_up_on(&mut self, pending: &Pending, now: u64, recorder: &mut impl Record) {
        let report = self.report(Stage::Over, pending.come, now);
        // The connection has ended already; that the log takes nothing, it counts itself.
        if caught(|| report.command(pending, None, recorder)).is_err() {
            let mut count = Count::default();
            let counted = caught(|| report.command(pending, None, &mut count));
            recorder.missed(counted.map_or(1, |_| count.0));
        }
        self.standing.leave_to(pending);
    }

    /// Gives the replies that are the proxy's own, where it is their turn, and lets a command go whose turn it is to go alone.
    fn answer_locally(&mut self) {
        // Inside a reply, or something that the server says, nothing else can be said.
        if self.replies.is_in_reply() {
            return;
        }
        while let Some(Pending { answer: Answer::Proxy(reply), silent, .. }) = self.pipeline.first() {
            if !*silent {
                self.to_client.push(reply);
                self.to_client.settle(self.to_client.end(), self.ticket);
            }
            self.pipeline.pop();
        }
        if let Some(Pending { alone: true, sent, .. }) = self.pipeline.first() {
            self.to_server.settle(*sent, 0);
        }
    }

    fn report(&self, stage: Stage, from: u64, to: u64) -> Report<'_> {
        let (context, standing, client) = (&*self.context, &self.standing, &*self.client);
        // A transaction is sent before what it selects is answered.
        let selected =
            Some(&self.admission).filter(|_| stage == Stage::Intended).and_then(Admission::selected);
        let database = selected.unwrap_or(standing.database);
        Report { context, standing, database, client, stage, reply_digest: None, from, to }
    }
}
