//! One client's connection through the proxy, without I/O: [`Session`] is given what came from each side, and says what leaves to the
//! other ([`Outlet`]) and what is recorded ([`Record`]).
//!
//! Invariants:
//! - bytes leave as they came, but for what the proxy answers itself, which takes its place in the order of replies; nothing leaves to the
//!   server of a command that is refused, but the beginning of one that is longer than [`HELD`], which never gets its end;
//! - every command that went to the server and is to be recorded is recorded once it is answered, in the order of the replies, or
//!   when the connection ends; so what is so of the connection (its user, its database) is so by the replies that came before;
//! - the server is expected to answer every command: `CLIENT REPLY` stays with the proxy, which keeps the replies back by itself, and
//!   `REPLCONF ACK`, which has none, is refused. Nobody can shift replies against their commands;
//! - memory is bounded whatever comes: see [`Session::wants_client`] and [`Session::wants_server`].

mod admission;
mod operation;
mod outlet;
mod pending;
mod report;
mod special;
mod standing;
#[cfg(test)]
mod tests;

pub use operation::{CarriedOut, Operation, Record, Stage, Status, Target, Unrecorded};
pub use outlet::{Outlet, Place, Ticket};

use crate::command::{Class, CommandTable, Effect};
use crate::config::{self, Mode, Policy, Unfollowable};
use crate::resp::{Arguments, Kind, Limits, Replies, Requests, Violation};
use admission::{ABORTED, Admission, Verdict};
use bulla_proof::entry::MAX_STRING;
use pending::{Answer, Pending, Pipeline};
use report::Report;
use special::Special;
use standing::{Arrived, Standing};
use std::rc::Rc;

/// A command is held until all of it has come, where it is no longer than this.
pub const HELD: usize = 64 << 10;
/// No more is read from one side while so much waits to leave to the other.
pub const WINDOW: usize = 256 << 10;
/// As whom clients act who have not said who they are.
pub const DEFAULT_USER: &str = "default";

/// What of a reply is kept where nothing in it is a key.
const LITTLE: Limits = Limits { bytes: 1024, items: 4, text: 256 };

/// What sessions of one proxy have in common.
pub struct Context {
    /// What the server's commands do.
    pub table: CommandTable,
    /// What becomes of commands of which not everything can be known.
    pub policy: Policy,
    /// How much of anything there may be.
    pub limits: config::Limits,
    /// When replies pass.
    pub mode: Mode,
    /// What becomes of bytes that are no commands or replies.
    pub unfollowable: Unfollowable,
    /// Whether values say whose data keys are.
    pub learns: bool,
    /// Under which what is too long to be kept has its digest: the key of the rules.
    pub digest_key: [u8; 32],
}

impl Context {
    /// Bytes that are kept of commands that are not answered, and of those of a transaction.
    fn most_kept(&self) -> usize {
        self.limits.kept.saturating_mul(8)
    }

    /// How much to keep of an argument, and whether its digest is wanted.
    fn keep(&self, so_far: &Arguments, index: u64, length: u64) -> (usize, bool) {
        const WORD: u64 = CommandTable::WORD as u64;
        if index == 0 {
            return (CommandTable::WORD, false);
        }
        match so_far.get(0) {
            // Of what authenticates only the name.
            Some(name) if name.eq_ignore_ascii_case(b"auth") => {
                return (if index == 1 && so_far.count() > 2 { MAX_STRING } else { 0 }, false);
            }
            Some(name) if name.eq_ignore_ascii_case(b"hello") => {
                let is_secret = index > 2 && so_far.is(index - 2, "auth");
                return (if is_secret { 0 } else { MAX_STRING }, false);
            }
            Some(name) if special::is_own(name) => return (admission::MAX_PURPOSE + 1, false),
            _ => {}
        }
        match () {
            () if length <= WORD => (CommandTable::WORD, false),
            () if self.table.may_be_key(so_far, index) => (MAX_STRING, true),
            () if self.learns => (self.limits.kept, false),
            () => (CommandTable::WORD, false),
        }
    }
}

/// Why a connection ends that neither side has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// What the server sends is no reply.
    ServerNotFollowed(Violation),
    /// The log takes nothing, and a command was carried out meanwhile: its reply stays here.
    Unrecorded,
    /// The server refused to discard a transaction that may not run.
    NotDiscarded,
}

impl From<Unrecorded> for Ended {
    fn from(_: Unrecorded) -> Self {
        Ended::Unrecorded
    }
}

/// See the module.
pub struct Session {
    context: Rc<Context>,
    client: Box<str>,
    requests: Requests,
    replies: Replies,
    admission: Admission,
    standing: Standing,
    pipeline: Pipeline,
    /// What goes to the server.
    pub to_server: Outlet,
    /// What goes to the client.
    pub to_client: Outlet,
    /// What has to be durable for all that was recorded of this connection to be.
    ticket: Ticket,
    /// Whether the command at hand was let through before all of it had come.
    begun: bool,
    /// No commands are read any more: the connection ends once everything is answered.
    closing: bool,
    /// Bytes are relayed as they are.
    unaudited: bool,
}

impl Session {
    /// Of a client at this address.
    pub fn new(context: Rc<Context>, client: &str) -> Self {
        Session {
            requests: Requests::new(context.request_limits(), context.digest_key),
            replies: Replies::new(LITTLE),
            context,
            client: client.into(),
            admission: Admission::default(),
            standing: Standing::default(),
            pipeline: Pipeline::default(),
            to_server: Outlet::default(),
            to_client: Outlet::default(),
            ticket: 0,
            begun: false,
            closing: false,
            unaudited: false,
        }
    }

    /// Whether more should be read from the client.
    pub fn wants_client(&self) -> bool {
        let bounded = self.pipeline.len() < self.context.limits.pipeline
            && self.pipeline.kept() < self.context.most_kept();
        !self.closing && bounded && self.to_server.waiting() < WINDOW && self.to_client.waiting() < 2 * WINDOW
    }

    /// Whether more should be read from the server.
    pub fn wants_server(&self) -> bool {
        self.to_client.waiting() < WINDOW
    }

    /// Whether the connection is to be ended: nothing more is read, and all of it is answered.
    pub fn is_over(&self) -> bool {
        self.closing && self.is_answered()
    }

    /// Whether everything is answered that came, and nothing waits to leave.
    pub fn is_answered(&self) -> bool {
        self.pipeline.len() == 0 && self.to_client.waiting() == 0
    }

    /// Whether the client waits for nothing, and could be told to go: it is in no transaction either.
    pub fn is_idle(&self) -> bool {
        self.is_answered() && !self.standing.is_multi() && !self.unaudited
    }

    /// Whether the server may say something at any time.
    pub fn listens(&self) -> bool {
        self.unaudited || self.standing.listens()
    }

    /// Takes what came from the client. `now` is a steady clock's, in nanoseconds.
    ///
    /// # Errors
    /// The connection is to be ended at once.
    pub fn from_client(&mut self, bytes: &[u8], now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let mut at = 0;
        while at < bytes.len() && !self.closing {
            let rest = &bytes[at..];
            if self.unaudited {
                self.to_server.push(rest);
                self.to_server.settle(self.to_server.end(), 0);
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
                        false => self.go_on(recorder.takes()),
                    }
                }
                Err(_) if self.context.unfollowable == Unfollowable::Relay => self.give_up(recorder)?,
                Err(violation) => self.refuse_rest(&format!("-ERR Protocol error: {violation}\r\n")),
            }
        }
        Ok(())
    }

    /// Takes what came from the server.
    ///
    /// # Errors
    /// The connection is to be ended at once; what is settled may still leave.
    pub fn from_server(&mut self, bytes: &[u8], now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if self.unaudited || self.begins_replication(rest, recorder)? {
                self.to_client.push(rest);
                self.to_client.settle(self.to_client.end(), self.ticket);
                return Ok(());
            }
            let limits = self.reply_limits();
            self.replies.limit(limits);
            match self.replies.next(rest) {
                Ok(progress) => {
                    at += progress.consumed;
                    self.to_client.push(&rest[..progress.consumed]);
                    if progress.complete {
                        self.reply(now, recorder)?;
                        self.answer_locally();
                    }
                }
                Err(_) if self.context.unfollowable == Unfollowable::Relay => self.give_up(recorder)?,
                Err(violation) => {
                    self.to_client.truncate(self.to_client.settled());
                    return Err(Ended::ServerNotFollowed(violation));
                }
            }
        }
        self.stream_reply(now, recorder)
    }

    /// The connection ended: what was not answered is recorded as such.
    pub fn end(&mut self, now: u64, recorder: &mut impl Record) {
        let mut queued = Vec::new();
        let mut multi = self.standing.is_multi();
        while let Some(pending) = self.standing.queued.pop() {
            queued.push(pending);
        }
        while let Some(pending) = self.pipeline.pop() {
            match pending.special {
                Special::Multi => multi = true,
                Special::Exec if !matches!(pending.answer, Answer::Instead(_)) => {
                    for pending in queued.drain(..) {
                        self.give_up_on(&pending, now, recorder);
                    }
                    multi = false;
                }
                Special::Exec | Special::Discard | Special::Reset => {
                    queued.clear();
                    multi = false;
                }
                _ if multi => queued.push(pending),
                _ => self.give_up_on(&pending, now, recorder),
            }
        }
    }

    /// A command is complete.
    fn command(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        if self.pipeline.len() == 0 {
            self.admission.settle(self.standing.is_multi());
        }
        let arguments = self.requests.take(self.pipeline.room());
        let effect = self.context.table.effect(&arguments);
        let special = Special::of(&self.context.table, &effect, &arguments);
        let answer = Pending::answer_of(&effect);
        let mut pending = Pending {
            arguments,
            effect,
            special,
            purpose: None,
            come: now,
            answer,
            silent: false,
            begun: false,
        };
        let begun = std::mem::take(&mut self.begun);
        match self.admission.decide(&self.context, &mut pending, recorder.takes()) {
            Verdict::Pass => {
                let ticket = match self.context.mode {
                    Mode::BeforeSend if pending.is_recorded() => {
                        self.report(Stage::Intended, now, now).command(&pending, None, recorder)?;
                        recorder.ticket()
                    }
                    _ => 0,
                };
                self.to_server.settle(self.to_server.end(), ticket);
                self.pipeline.push(pending);
            }
            Verdict::Answer(reply) => {
                self.to_server.truncate(self.to_server.settled());
                let silent = pending.silent;
                self.pipeline.give_back(pending.arguments);
                match begun {
                    // The server has its beginning, and waits for its end.
                    true => self.refuse_rest_with(reply),
                    false => self.pipeline.push(Pending::local(reply, silent)),
                }
            }
            Verdict::Discard => {
                self.to_server.truncate(self.to_server.settled());
                self.to_server.push(b"*1\r\n$7\r\nDISCARD\r\n");
                self.to_server.settle(self.to_server.end(), 0);
                pending.answer = Answer::Instead(ABORTED);
                self.pipeline.push(pending);
            }
        }
        self.answer_locally();
        Ok(())
    }

    /// More of a command has come, which is not complete: if it is long, its beginning goes on.
    fn go_on(&mut self, takes: bool) {
        let end = self.to_server.end();
        let held = end - self.to_server.settled();
        if !self.begun && held <= HELD as u64 {
            return;
        }
        if self.begun || self.admission.may_begin(&self.context, self.requests.arguments(), takes) {
            self.begun = true;
            self.to_server.settle(end, 0);
        } else {
            self.refuse_rest("-BULLA a command of this kind, and of this length, may not pass the proxy\r\n");
        }
    }

    fn refuse_rest(&mut self, reply: &str) {
        self.to_server.truncate(self.to_server.settled());
        self.refuse_rest_with(reply.as_bytes().to_vec());
    }

    /// Answers with an error, after which nothing more is read from the client.
    fn refuse_rest_with(&mut self, reply: Vec<u8>) {
        self.closing = true;
        self.pipeline.push(Pending::local(reply, false));
        self.answer_locally();
    }

    /// From here on nobody audits the connection.
    fn give_up(&mut self, recorder: &mut impl Record) -> Result<(), Ended> {
        self.unaudited = true;
        self.end(0, recorder);
        self.report(Stage::Over, 0, 0).unaudited(recorder)?;
        self.ticket = recorder.ticket();
        self.to_server.settle(self.to_server.end(), 0);
        self.to_client.settle(self.to_client.end(), self.ticket);
        Ok(())
    }

    fn give_up_on(&self, pending: &Pending, now: u64, recorder: &mut impl Record) {
        // The connection has ended already; that the log takes nothing, it counts itself.
        let _ = self.report(Stage::Over, pending.come, now).command(pending, None, recorder);
    }

    /// Whether what the server sends is no reply, but the beginning of what a replica gets.
    fn begins_replication(&mut self, bytes: &[u8], recorder: &mut impl Record) -> Result<bool, Ended> {
        let first = self.pipeline.first();
        let begins = first.is_some_and(|first| first.special == Special::Sync) && bytes[0] != b'-';
        if begins && !self.replies.is_in_reply() {
            self.give_up(recorder)?;
        }
        Ok(self.unaudited)
    }

    /// A reply is complete, or something that the server says by itself.
    fn reply(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let reply = self.replies.reply();
        let end = self.to_client.end();
        let first = self.pipeline.first();
        let arrived = self.standing.arrived(reply, first.as_deref());
        let Some(first) = first.filter(|_| arrived == Arrived::Answer) else {
            self.to_client.settle(end, self.ticket);
            return Ok(());
        };
        let is_error = reply.kind() == Some(Kind::Error);
        match &mut first.answer {
            Answer::Channels(left) if !is_error => {
                let left = match left {
                    Some(left) => left,
                    None => {
                        let answers = self.standing.answers(first);
                        let Answer::Channels(left) = &mut first.answer else { return Ok(()) };
                        left.insert(answers)
                    }
                };
                *left -= 1;
                let (left, special, silent) = (*left, first.special, first.silent);
                self.standing.subscribe(special, reply);
                if silent && reply.kind() != Some(Kind::Push) {
                    self.to_client.truncate(self.to_client.settled());
                }
                self.to_client.settle(self.to_client.end(), self.ticket);
                if left > 0 {
                    return Ok(());
                }
                if let Some(done) = self.pipeline.pop() {
                    self.pipeline.give_back(done.arguments);
                }
                Ok(())
            }
            Answer::Instead(text) => {
                let text = *text;
                let silent = first.silent;
                if reply.nodes().first().and_then(|node| reply.error_code(node)) == Some("NOPERM") {
                    return Err(Ended::NotDiscarded);
                }
                self.to_client.truncate(self.to_client.settled());
                self.standing.end_transaction();
                if !silent {
                    self.to_client.push(text);
                }
                self.to_client.settle(self.to_client.end(), self.ticket);
                if let Some(done) = self.pipeline.pop() {
                    self.pipeline.give_back(done.arguments);
                }
                Ok(())
            }
            Answer::Server | Answer::Channels(_) | Answer::Proxy(_) => self.answered(now, recorder),
        }
    }

    /// The command that waits longest is answered.
    fn answered(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let Some(pending) = self.pipeline.pop() else { return Ok(()) };
        let recorded = self.record(&pending, now, recorder);
        if pending.silent || recorded.is_err() {
            self.to_client.truncate(self.to_client.settled());
        }
        recorded?;
        let reply = self.replies.reply();
        let Some(node) = reply.nodes().first() else { return Ok(()) };
        if self.standing.is_queued(reply, node) {
            self.standing.queued.push(pending);
        } else {
            self.standing.carried_out(&pending, node);
            self.pipeline.give_back(pending.arguments);
        }
        self.to_client.settle(self.to_client.end(), self.ticket);
        Ok(())
    }

    /// Records a command that was answered, or all of a transaction that was carried out.
    fn record(&mut self, pending: &Pending, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let reply = self.replies.reply();
        let Some(node) = reply.nodes().first() else { return Ok(()) };
        if pending.special == Special::Exec && node.kind == Kind::Array {
            let mut answers = reply.children(0);
            while let Some(queued) = self.standing.queued.pop() {
                let answer = answers.next();
                let report = Report {
                    context: &self.context,
                    standing: &self.standing,
                    client: &self.client,
                    stage: Stage::Over,
                    from: pending.come,
                    to: now,
                };
                report.command(&queued, answer.map(|(at, _)| (reply, at)), recorder)?;
                if let Some((_, node)) = answer {
                    self.standing.carried_out(&queued, node);
                }
                self.pipeline.give_back(queued.arguments);
            }
            self.ticket = self.ticket_after(recorder);
        } else if pending.is_recorded() && !self.standing.is_queued(reply, node) {
            self.report(Stage::Over, pending.come, now).command(pending, Some((reply, 0)), recorder)?;
            self.ticket = self.ticket_after(recorder);
        }
        Ok(())
    }

    /// What the replies from now on wait for.
    fn ticket_after(&self, recorder: &impl Record) -> Ticket {
        match self.context.mode {
            Mode::BeforeReply => recorder.ticket(),
            Mode::Async | Mode::BeforeSend => 0,
        }
    }

    /// Lets the beginning of a reply leave that is not complete, where it may.
    fn stream_reply(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let open = self.to_client.end() - self.to_client.settled();
        let Some(kind) = self.replies.reply().kind().filter(|_| open > 0 && self.replies.is_in_reply())
        else {
            return Ok(());
        };
        let may_be_message = kind == Kind::Array && self.standing.is_subscribed();
        let first = self.pipeline.first();
        let hidden =
            first.as_ref().is_some_and(|first| first.silent || matches!(first.answer, Answer::Instead(_)));
        match (hidden, kind) {
            (_, Kind::Push) | (false, _) if self.context.mode != Mode::BeforeReply => {}
            (_, Kind::Push) | (false, _) => {
                let begun = first.as_ref().is_none_or(|first| first.begun);
                if open < WINDOW as u64 / 2 && !begun {
                    return Ok(());
                }
                if !begun && let Some(pending) = self.pipeline.pop() {
                    self.begin(pending, now, recorder)?;
                }
            }
            (true, _) if may_be_message || kind == Kind::Simple => return Ok(()),
            (true, _) => return Ok(self.to_client.truncate(self.to_client.settled())),
        }
        self.to_client.settle(self.to_client.end(), self.ticket);
        Ok(())
    }

    /// Has an entry say that the reply to a command begins to leave.
    fn begin(&mut self, mut pending: Pending, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let report = self.report(Stage::Begun, pending.come, now);
        let recorded = match pending.special {
            Special::Exec => {
                self.standing.queued.iter().try_for_each(|queued| report.command(queued, None, recorder))
            }
            _ => report.command(&pending, None, recorder),
        };
        pending.begun = true;
        self.pipeline.put_back(pending);
        self.ticket = self.ticket_after(recorder);
        Ok(recorded?)
    }

    /// Gives the replies that are the proxy's own, where it is their turn.
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
    }

    fn report(&self, stage: Stage, from: u64, to: u64) -> Report<'_> {
        Report { context: &self.context, standing: &self.standing, client: &self.client, stage, from, to }
    }

    /// What is kept of the next reply.
    fn reply_limits(&mut self) -> Limits {
        let limits = &self.context.limits;
        let all = Limits { bytes: limits.kept, items: limits.kept_items, text: MAX_STRING };
        let names_keys = |effect: &Effect| effect.reply_names_keys() || effect.class == Class::Transaction;
        match self.pipeline.first() {
            Some(first) if names_keys(&first.effect) => all,
            _ => LITTLE,
        }
    }
}

impl Context {
    fn request_limits(&self) -> Limits {
        Limits { bytes: self.limits.kept, items: self.limits.kept_items, text: MAX_STRING }
    }
}
