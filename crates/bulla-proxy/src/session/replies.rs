//! What of a [`Session`] the server's bytes bring about.

use super::operation::{Record, Stage, Unrecorded};
use super::outlet::Ticket;
use super::pending::{Answer, Pending};
use super::report::Report;
use super::special::Special;
use super::standing::Arrived;
use super::{Ended, Session, WINDOW};
use crate::command::Class;
use crate::config::{self, Mode, Unfollowable};
use crate::defect::caught;
use crate::resp::{Kind, Limits, Node, Part, Reply};
use bulla_proof::entry::MAX_STRING;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::VecDeque;
use std::rc::Rc;

/// What of a reply is kept where nothing in it is a key.
pub(super) const LITTLE: Limits = Limits { bytes: 1024, items: 4, text: 256 };
/// Which node of a reply that is told in parts the part at hand is.
const PART: usize = 1;

/// What a reply is by what was so as it began.
#[derive(Clone, Copy, Default)]
pub(super) struct Arriving {
    /// Whether the command that waits longest has left to the server, all of it.
    is_awaited: bool,
    /// Whether it is that of an `EXEC`, which has a reply to each command of the transaction.
    in_parts: bool,
    /// Whether it may be a message, where it is an array.
    may_be_message: bool,
}

impl Session {
    /// Takes what came from the server.
    ///
    /// # Errors
    /// The connection is to be ended at once, but for what is settled and waits for nothing.
    pub fn from_server(&mut self, bytes: &[u8], now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if !self.replies.is_in_reply() {
                self.arriving = self.arriving();
            }
            if self.unaudited.is_some() || self.begins_replication(rest, recorder)? {
                self.to_client.push(rest);
                self.to_client.settle(self.to_client.end(), self.ticket);
                return Ok(());
            }
            let (limits, in_parts) = self.reply_limits();
            self.replies.limit(limits, in_parts);
            match self.replies.next(rest) {
                Ok(progress) => {
                    at += progress.consumed;
                    self.relay_reply(&rest[..progress.consumed]);
                    if let Some(part) = self.replies.part() {
                        self.part(part, now, recorder)?;
                    }
                    if progress.complete {
                        self.reply(now, recorder)?;
                        self.answer_locally();
                        self.look_behind(now, recorder)?;
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

    /// What a reply is that begins now.
    fn arriving(&self) -> Arriving {
        let gone = self.to_server.gone();
        let first = self.pipeline.next().filter(|first| first.sent > 0 && first.sent <= gone);
        let may_be_message = self.standing.may_be_messages();
        let executes =
            |first: &Pending| first.special == Special::Exec && matches!(first.answer, Answer::Server);
        let in_parts = first.is_some_and(executes) && self.standing.queues() && !may_be_message;
        Arriving { is_awaited: first.is_some(), in_parts, may_be_message }
    }

    /// Passes on what has come of a reply, or of a push inside it, which leaves where the reply is kept from the client, too.
    fn relay_reply(&mut self, bytes: &[u8]) {
        if !self.replies.took_push() {
            self.digest_reply(bytes);
        } else if self.is_hidden() {
            self.to_client.truncate(self.to_client.settled());
            self.to_client.push(bytes);
            self.to_client.settle_part(self.to_client.end(), self.ticket);
            return;
        }
        self.to_client.push(bytes);
    }

    /// Goes on with the digest of a reply, where it may name more keys than are listed.
    fn digest_reply(&mut self, bytes: &[u8]) {
        let told = if self.arriving.in_parts { self.standing.next_queued() } else { self.pipeline.next() };
        if told.is_none_or(|told| told.effect.class != Class::Listing) {
            return;
        }
        let key = &self.context.digest_key;
        let begun = || <Hmac<Sha256> as KeyInit>::new_from_slice(key).ok();
        if let Some(digest) = self.reply_digest.take().or_else(begun) {
            self.reply_digest = Some(digest.chain_update(bytes));
        }
    }

    /// Whether what the server sends is no reply, but the beginning of what a replica gets.
    fn begins_replication(&mut self, bytes: &[u8], recorder: &mut impl Record) -> Result<bool, Ended> {
        let first = self.pipeline.first();
        let begins = first.is_some_and(|first| first.special == Special::Sync) && bytes[0] != b'-';
        if begins && self.arriving.is_awaited && !self.replies.is_in_reply() {
            self.give_up(recorder)?;
        }
        Ok(self.unaudited.is_some())
    }

    /// A reply is complete, or something that the server says by itself.
    fn reply(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let reply = self.replies.reply();
        let end = self.to_client.end();
        let Arriving { is_awaited, may_be_message, .. } = self.arriving;
        let first = self.pipeline.first().filter(|_| is_awaited);
        if self.standing.arrived(reply, first.as_deref(), may_be_message) == Arrived::Push {
            self.reply_digest = None;
            self.to_client.settle(end, self.ticket);
            return Ok(());
        }
        let Some(first) = first else { return self.unasked() };
        let is_error = reply.kind() == Some(Kind::Error);
        if !matches!(first.answer, Answer::Instead(_)) && !self.standing.can_have(first, reply) {
            return Err(self.not_its_reply());
        }
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
                let (left, special) = (*left, first.special);
                self.standing.subscribe(special, reply);
                // CLIENT REPLY does not keep it back: it is said as messages are.
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
                match reply.nodes().first() {
                    Some(node) if reply.error_code(node) == Some("NOPERM") => {
                        return Err(Ended::NotDiscarded);
                    }
                    Some(node) if !is_error && reply.text(node) != b"OK" => return Err(self.not_its_reply()),
                    _ => {}
                }
                self.to_client.truncate(self.to_client.settled());
                self.standing.queued = None;
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

    /// The server has answered what it was not asked. An error it says so before it closes the connection: of what it refuses to read on.
    fn unasked(&mut self) -> Result<(), Ended> {
        if self.replies.reply().kind() != Some(Kind::Error) {
            return Err(self.not_its_reply());
        }
        self.to_client.settle(self.to_client.end(), self.ticket);
        // Nothing of what is left of the pipeline has left whole, and nothing of it does any more.
        self.to_server.stop();
        self.pipeline.cut(|_| true);
        self.closing = true;
        Ok(())
    }

    /// What one command of a transaction is answered with is complete, inside the reply to `EXEC`; or that reply has begun.
    fn part(&mut self, part: Part, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let digest = self.reply_digest.take().map(|digest| digest.finalize().into_bytes().into());
        let Some(come) = self.pipeline.next().map(|exec| exec.come).filter(|_| part == Part::Value) else {
            return Ok(());
        };
        let Some(queued) = self.standing.queued.as_mut().and_then(VecDeque::pop_front) else {
            return Ok(());
        };
        let reply = self.replies.reply();
        let report = Report { reply_digest: digest, ..self.report(Stage::Over, come, now) };
        let recorded = unless_defective(|| report.command(&queued, Some((reply, PART)), recorder));
        if let Err(ended) = recorded {
            self.to_client.truncate(self.to_client.settled());
            if ended == Ended::Defect {
                self.standing.queued.get_or_insert_default().push_front(queued);
            }
            return Err(ended);
        }
        if queued.is_recorded() {
            self.ticket = self.ticket_after(recorder);
        }
        if let Some(node) = reply.nodes().get(PART) {
            self.standing.carried_out(&queued, reply, node);
        }
        self.pipeline.give_back(queued.arguments);
        Ok(())
    }

    /// The command that waits longest is answered.
    fn answered(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let Some(pending) = self.pipeline.pop() else { return Ok(()) };
        let recorded = self.record(&pending, now, recorder);
        self.reply_digest = None;
        if pending.silent || recorded.is_err() {
            self.to_client.truncate(self.to_client.settled());
        }
        if let Err(ended) = recorded {
            if ended == Ended::Defect {
                self.pipeline.put_back(pending);
            }
            return Err(ended);
        }
        let reply = self.replies.reply();
        let Some(node) = reply.nodes().first() else { return Ok(()) };
        if sends_elsewhere(&pending, reply, node) {
            recorder.redirected();
        }
        if self.standing.is_queued(reply, node) {
            self.standing.queued.get_or_insert_default().push_back(pending);
        } else {
            let is_refused = node.kind == Kind::Error;
            self.standing.carried_out(&pending, reply, node);
            if pending.special == Special::Multi && is_refused {
                self.not_begun(pending.purpose.as_ref());
            }
            self.pipeline.give_back(pending.arguments);
        }
        self.to_client.settle(self.to_client.end(), self.ticket);
        Ok(())
    }

    /// The server refused a `MULTI`: the purpose of its transaction is that of nothing behind it, which is sent for `purpose`.
    fn not_begun(&mut self, purpose: Option<&Rc<str>>) {
        for behind in self.pipeline.iter_mut() {
            if behind.ends_purpose || matches!(behind.special, Special::Exec | Special::Discard) {
                return;
            }
            behind.purpose = purpose.cloned();
        }
        self.admission.not_begun(purpose);
    }

    /// Records a command that was answered, or all of a transaction that was carried out.
    fn record(&mut self, pending: &Pending, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let reply = self.replies.reply();
        let Some(node) = reply.nodes().first() else { return Ok(()) };
        if pending.special == Special::Exec && node.kind == Kind::Array {
            // Whatever becomes of its entries, the transaction is over. Of what is left of it the server told nothing.
            let mut left = self.standing.queued.take().unwrap_or_default();
            let report = self.report(Stage::Over, pending.come, now);
            let recorded = unless_defective(|| {
                left.iter().map(|left| report.command(left, None, recorder)).fold(Ok(()), Result::and)
            });
            if recorded == Err(Ended::Defect) {
                self.standing.queued = Some(left);
                return recorded;
            }
            recorded?;
            if left.iter().any(Pending::is_recorded) {
                self.ticket = self.ticket_after(recorder);
            }
            left.clear();
            self.standing.give_back(left);
        } else if pending.is_recorded() && !self.standing.is_queued(reply, node) {
            let digest = self.reply_digest.take().map(|digest| digest.finalize().into_bytes().into());
            let report = Report { reply_digest: digest, ..self.report(Stage::Over, pending.come, now) };
            unless_defective(|| report.command(pending, Some((reply, 0)), recorder))?;
            self.ticket = self.ticket_after(recorder);
        }
        Ok(())
    }

    /// What the replies from now on wait for.
    fn ticket_after(&self, recorder: &impl Record) -> Ticket {
        match self.context.mode {
            Mode::BeforeReply => recorder.ticket(),
            Mode::Async | Mode::BeforeSend => recorder.held(),
        }
    }

    /// The reply at hand is another command's: it stays here, and of nothing that is not answered does anybody know what became.
    fn not_its_reply(&mut self) -> Ended {
        self.to_client.truncate(self.to_client.settled());
        Ended::NotItsReply
    }

    /// Lets the beginning of a reply leave that is not complete, where it may.
    fn stream_reply(&mut self, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let open = self.to_client.end() - self.to_client.settled();
        let Some(kind) = self.replies.reply().kind().filter(|_| open > 0 && self.replies.is_in_reply())
        else {
            return Ok(());
        };
        let may_be_message = kind == Kind::Array && self.arriving.may_be_message;
        let answers_nothing = kind == Kind::Push || may_be_message;
        let may_be_told = kind == Kind::Simple && self.standing.monitors();
        if !(self.arriving.is_awaited || answers_nothing || may_be_told || kind == Kind::Error) {
            return Err(self.not_its_reply());
        }
        let hidden = self.is_hidden();
        let first = self.pipeline.first().filter(|_| self.arriving.is_awaited);
        match (hidden, kind) {
            (_, Kind::Push) | (false, _) if self.context.mode != Mode::BeforeReply => {}
            (_, Kind::Push) | (false, _) => {
                // What the server says by itself, and what it says of channels, has no entry.
                let begun = answers_nothing || first.as_ref().is_none_or(|first| first.begun);
                if open < WINDOW as u64 / 2 && !begun {
                    return Ok(());
                }
                if !begun && let Some(pending) = self.pipeline.pop() {
                    self.begin(pending, now, recorder)?;
                }
            }
            (true, _) if may_be_message || kind == Kind::Simple => return Ok(()),
            (true, _) => {
                self.to_client.truncate(self.to_client.settled());
                return Ok(());
            }
        }
        self.to_client.settle_part(self.to_client.end(), self.ticket);
        Ok(())
    }

    /// Whether the reply at hand is kept from the client, if it is one.
    fn is_hidden(&self) -> bool {
        let first = self.pipeline.next().filter(|_| self.arriving.is_awaited);
        first.is_some_and(|first| match first.answer {
            Answer::Instead(_) => true,
            Answer::Channels(_) => first.silent && self.replies.reply().kind() == Some(Kind::Error),
            Answer::Server | Answer::Proxy(_) => first.silent,
        })
    }

    /// Has an entry say that the reply to a command begins to leave.
    fn begin(&mut self, mut pending: Pending, now: u64, recorder: &mut impl Record) -> Result<(), Ended> {
        let report = self.report(Stage::Begun, pending.come, now);
        let recorded = unless_defective(|| match pending.special {
            Special::Exec => {
                let each = self.standing.queued.iter().flatten();
                each.map(|queued| report.command(queued, None, recorder)).fold(Ok(()), Result::and)
            }
            _ => report.command(&pending, None, recorder),
        });
        pending.begun = true;
        self.pipeline.put_back(pending);
        self.ticket = self.ticket_after(recorder);
        recorded
    }

    /// What is kept of the next reply, or the next part of the one at hand, and whether it is told in parts.
    fn reply_limits(&self) -> (Limits, bool) {
        let in_parts = self.arriving.in_parts;
        let told = if in_parts { self.standing.next_queued() } else { self.pipeline.next() };
        (told.map_or(LITTLE, |told| self.limits_of(told)), in_parts)
    }

    /// What is kept of the reply to a command.
    fn limits_of(&self, pending: &Pending) -> Limits {
        let config::Limits { kept, kept_items, .. } = self.context.limits;
        let of_length = |text| Limits { bytes: kept, items: kept_items, text };
        match self.context.record_values {
            _ if pending.effect.reply_names_keys() => of_length(MAX_STRING),
            // Of which of several keys a value is, names in the reply say.
            Some(text) if pending.effect.has_several_keys() => of_length(text.max(MAX_STRING)),
            Some(text) if !pending.effect.keys.is_empty() => of_length(text),
            _ => LITTLE,
        }
    }
}

/// Reports what is under way until that is done.
fn unless_defective(report: impl FnOnce() -> Result<(), Unrecorded>) -> Result<(), Ended> {
    Ok(caught(report)??)
}

/// Whether an answer sends the client to a server that the proxy does not stand before: another one of a cluster, or the one
/// that a Sentinel names.
fn sends_elsewhere(pending: &Pending, reply: &Reply, node: &Node) -> bool {
    match node.kind {
        Kind::Error => matches!(reply.error_code(node), Some("MOVED" | "ASK")),
        _ => pending.arguments.is(0, "sentinel"),
    }
}
