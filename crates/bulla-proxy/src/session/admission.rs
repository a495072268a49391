//! [`Admission`]: what becomes of a command, by what the client sent before it.
//!
//! Invariants:
//! - a transaction in which something was refused never runs: `DISCARD` goes to the server in the place of its `EXEC`;
//! - a purpose never outlives the user who claimed it: `AUTH`, `HELLO` and `RESET` end it, whatever the server answers.
//!
//! - while the server tells what others do (`MONITOR`), no command passes whose reply could be taken for what it tells.
//!
//! That the client is in a transaction, or monitors, is expected here as soon as it sends the command; once everything is answered,
//! [`Standing`](super::standing::Standing) knows better ([`Admission::settle`]).

use super::context::{Context, MAX_CLAIM};
use super::hello::Hello;
use super::pending::Pending;
use super::special::{ReplyMode, Special};
use super::transaction::Transaction;
use crate::command::{Answers, Class, Unknowable};
use crate::config::{Mode, Treatment};
use crate::counters::RefusedCommand;
use crate::resp::Arguments;
use std::rc::Rc;

/// See the module.
#[derive(Default)]
pub(super) struct Admission {
    /// What came since `MULTI`.
    transaction: Option<Transaction>,
    monitors: bool,
    /// Why, of the next command or transaction.
    next: Option<Rc<str>>,
    /// Why, of all others.
    session: Option<Rc<str>>,
    replies: Replies,
}

/// Whether the client wants replies (`CLIENT REPLY`).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Replies {
    #[default]
    Wanted,
    NextUnwanted,
    Unwanted,
}

/// What becomes of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes to the server.
    Pass,
    /// The proxy answers it, with this.
    Answer(Vec<u8>),
    /// The same, and this is why.
    Refuse(RefusedCommand, Vec<u8>),
    /// `DISCARD` goes to the server in its place, and the answer to that stays here for this one; where this is why, the command counts
    /// as refused.
    Discard(Option<RefusedCommand>, &'static [u8]),
}

/// What an `EXEC` is answered with when something of its transaction was refused.
const ABORTED: &[u8] = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
/// The same when nothing can be recorded of what it would carry out.
const UNRECORDABLE: &[u8] =
    b"-EXECABORT Transaction discarded because the audit log takes no entries at present, so it cannot be \
    recorded (`unrecordable`).\r\n";

impl Admission {
    /// Everything is answered, and this is so: whether the server queues commands, and whether it tells what others do.
    pub(super) fn settle(&mut self, multi: bool, monitors: bool) {
        self.monitors = monitors;
        if self.transaction.is_some() != multi {
            // The server refused what was to end it. It does not carry it out any more, and nobody here asks it to.
            self.transaction = multi.then(Transaction::aborted);
        }
    }

    /// The database that the transaction which the client is in selects for what comes next, if any.
    pub(super) fn selected(&self) -> Option<u32> {
        self.transaction.as_ref()?.selected
    }

    /// What becomes of a command that is complete; of `pending` it says what else is so. `takes` is whether the log takes entries.
    pub(super) fn decide(&mut self, context: &Context, pending: &mut Pending, takes: bool) -> Verdict {
        pending.silent = self.is_silent(pending.special);
        pending.purpose = self.purpose(pending.special);
        pending.ends_purpose = pending.special.settles_user();
        let refusal = match pending.special {
            Special::Purpose | Special::NoSuch | Special::Reply(_) if self.transaction.is_none() => {
                return Verdict::Answer(self.answer(pending));
            }
            _ => self.refusal(context, pending, takes),
        };
        if let Some((why, refusal)) = refusal {
            if let Some(transaction) = &mut self.transaction {
                transaction.aborted = true;
            }
            return Verdict::Refuse(why, format!("-BULLA {refusal}\r\n").into_bytes());
        }
        match (pending.special, &mut self.transaction) {
            (Special::Reset, _) => self.settle(false, false),
            (Special::Exec, _) => return self.exec(pending, takes),
            (Special::Discard, _) => self.transaction = None,
            (Special::Monitor, _) => self.monitors = true,
            (Special::Multi, transaction @ None) => {
                let purpose = self.next.take();
                // Whether there is a transaction for that only the reply says.
                pending.awaited |= purpose.is_some() && context.mode == Mode::BeforeSend;
                *transaction = Some(Transaction::begun(purpose));
            }
            (_, Some(transaction)) => transaction.queue(pending),
            _ => {}
        }
        Verdict::Pass
    }

    /// The client has its transaction carried out.
    fn exec(&mut self, pending: &mut Pending, takes: bool) -> Verdict {
        let Some(transaction) = self.transaction.take() else { return Verdict::Pass };
        let (why, reply) = match () {
            () if transaction.aborted => (None, ABORTED),
            () if transaction.makes_entries && !takes => (Some(RefusedCommand::Unrecordable), UNRECORDABLE),
            () => {
                pending.carries_out = transaction.makes_entries;
                pending.awaited |= transaction.awaited;
                return Verdict::Pass;
            }
        };
        Verdict::Discard(why, reply)
    }

    /// The server refused the `MULTI` that came last: what comes up to its end is sent for this purpose.
    pub(super) fn not_begun(&mut self, purpose: Option<&Rc<str>>) {
        if let Some(transaction) = &mut self.transaction {
            transaction.purpose = purpose.cloned();
        }
    }

    /// Why a command may not go on to the server of which only the beginning has come; later it may turn out that it may not all the same.
    pub(super) fn beginning(
        &self,
        context: &Context,
        arguments: &Arguments,
        takes: bool,
    ) -> Option<(RefusedCommand, String)> {
        let effect = context.table.effect(arguments);
        let name = context.table.name(effect.command).unwrap_or("this command");
        if arguments.get(0).is_some_and(super::special::is_own) {
            let refusal = "commands of the proxy are no longer than some 64 KiB";
            return Some((RefusedCommand::NotRelayed, refusal.to_owned()));
        }
        // What is not kept is yet to come.
        let unknowable = effect.unknowable.filter(|class| *class != Unknowable::TooMany);
        policy_refusal(context, effect.administrative, unknowable, name)
            .or_else(|| (!takes).then(|| unrecordable(name)))
    }

    /// Whether the client wants no reply to a command.
    fn is_silent(&mut self, special: Special) -> bool {
        // In a transaction it is refused, and changes nothing.
        let refused = self.transaction.is_some() && matches!(special, Special::Reply(_));
        let (silent, replies) = match (if refused { Special::None } else { special }, self.replies) {
            (Special::Reset | Special::Reply(ReplyMode::On), _) => (false, Replies::Wanted),
            (Special::Reply(ReplyMode::Off), _) | (_, Replies::Unwanted) => (true, Replies::Unwanted),
            (Special::Reply(ReplyMode::Skip), _) => (true, Replies::NextUnwanted),
            (_, Replies::NextUnwanted) => (true, Replies::Wanted),
            (_, Replies::Wanted) => (false, Replies::Wanted),
        };
        self.replies = replies;
        silent
    }

    /// Why a command is sent, as the client said.
    fn purpose(&mut self, special: Special) -> Option<Rc<str>> {
        match (special, &mut self.transaction) {
            (Special::Auth | Special::Hello | Special::Reset, transaction) => {
                (self.next, self.session) = (None, None);
                if let Some(transaction) = transaction {
                    transaction.purpose = None;
                }
                None
            }
            (Special::Purpose | Special::NoSuch | Special::Reply(_), _) => None,
            (_, Some(transaction)) => transaction.purpose.clone().or_else(|| self.session.clone()),
            // The one for the next transaction is for that: this is why what is behind it is sent where the server begins none.
            (Special::Multi, None) => self.session.clone(),
            _ => self.next.take().or_else(|| self.session.clone()),
        }
    }

    /// The proxy's own reply to a command that is for it.
    fn answer(&mut self, pending: &Pending) -> Vec<u8> {
        const OK: &[u8] = b"+OK\r\n";
        const USAGE: &[u8] = b"-BULLA `BULLA.PURPOSE text` is for the next command or transaction, \
            `BULLA.PURPOSE SESSION text` until RESET, AUTH or HELLO\r\n";
        const SEVERAL: &[u8] = b"-BULLA a purpose is one argument: put it in quotation marks, \
            as in `BULLA.PURPOSE \"request 17\"`\r\n";
        const TEXT: &[u8] = b"-BULLA a purpose is UTF-8, at least one byte and at most 1024\r\n";
        let arguments = &pending.arguments;
        let of_session = match (pending.special, arguments.count()) {
            (Special::Reply(_), _) => return OK.to_vec(),
            (Special::Purpose, 2) => false,
            (Special::Purpose, 3) if arguments.is(1, "session") => true,
            (Special::Purpose, 3..) => return SEVERAL.to_vec(),
            (Special::Purpose, _) => return USAGE.to_vec(),
            _ => return b"-BULLA there is no such command of the proxy; BULLA.PURPOSE is one\r\n".to_vec(),
        };
        let index = arguments.count() - 1;
        let text = arguments.get(index).filter(|text| (1..=MAX_CLAIM).contains(&text.len()));
        let text = text.filter(|_| arguments.is_whole(index)).and_then(|text| str::from_utf8(text).ok());
        match text {
            None => return TEXT.to_vec(),
            Some(text) if of_session => self.session = Some(text.into()),
            Some(text) => self.next = Some(text.into()),
        }
        OK.to_vec()
    }

    /// Why a command may not go to the server, and what to do.
    fn refusal(&self, context: &Context, pending: &Pending, takes: bool) -> Option<(RefusedCommand, String)> {
        let effect = &pending.effect;
        let name = context.table.name(effect.command).unwrap_or("this command");
        if let Some(refusal) = self.misplaced(name, pending) {
            return Some((RefusedCommand::NotRelayed, refusal));
        }
        let ends = matches!(pending.special, Special::Exec | Special::Discard | Special::Reset);
        if self.transaction.as_ref().is_some_and(|transaction| !ends && transaction.is_full(context)) {
            let refusal =
                "the transaction is too long for the proxy; `limits.transaction` and `limits.kept` bound it";
            return Some((RefusedCommand::Limit, refusal.to_owned()));
        }
        policy_refusal(context, effect.administrative, effect.unknowable, name)
            .or_else(|| (!takes && pending.is_recorded()).then(|| unrecordable(name)))
    }

    /// Why a command is not relayed where it came.
    fn misplaced(&self, name: &str, pending: &Pending) -> Option<String> {
        let effect = &pending.effect;
        let in_transaction = self.transaction.is_some();
        if in_transaction && matches!(pending.special, Special::Purpose | Special::NoSuch) {
            return Some("commands of the proxy are not for transactions: send them before MULTI".to_owned());
        }
        if self.monitors && effect.class != Class::Connection {
            return Some(format!("{name} is not relayed while MONITOR goes on: RESET ends that"));
        }
        let unqueued =
            matches!(pending.special, Special::Reply(_) | Special::Subscribe(_) | Special::Unsubscribe(_));
        // Of a transaction the server may leave out the answer to one of these.
        let unanswered = pending.special.goes_alone(&pending.arguments);
        // What follows in the reply to `EXEC` would be of another version of the protocol: in the first one nothing tells messages there from
        // what the commands are answered with.
        let switches = pending.special == Special::Hello && pending.arguments.count() > 1;
        if in_transaction && (unqueued || unanswered || switches) {
            return Some(format!("{name} is not relayed in a transaction: send it before MULTI"));
        }
        if pending.special == Special::Hello && Hello::of(&pending.arguments).is_none() {
            return Some(format!(
                "{name} is not relayed like this: write `HELLO protocol AUTH user password SETNAME name`, each option once at most"
            ));
        }
        (effect.answers == Answers::None && !matches!(pending.special, Special::Reply(_)))
            .then(|| format!("{name} is not relayed like this: it has no reply"))
    }
}

/// Why the policy refuses a command.
fn policy_refusal(
    context: &Context,
    administrative: bool,
    class: Option<Unknowable>,
    name: &str,
) -> Option<(RefusedCommand, String)> {
    if administrative && context.policy.administrative == Treatment::Refuse {
        let refusal = format!(
            "{name} administers the server, which the proxy's configuration refuses (`policy.administrative`)"
        );
        return Some((RefusedCommand::Administrative, refusal));
    }
    let refused = class.filter(|class| context.policy.of(*class) == Treatment::Refuse);
    refused.map(|class| unknowable(class, name))
}

/// Why a command may not go to the server while the log takes nothing.
fn unrecordable(name: &str) -> (RefusedCommand, String) {
    let refusal =
        format!("the audit log takes no entries at present, so {name} cannot be recorded (`unrecordable`)");
    (RefusedCommand::Unrecordable, refusal)
}

/// Why a command may not go to the server of which this cannot be known.
fn unknowable(class: Unknowable, name: &str) -> (RefusedCommand, String) {
    let what = match class {
        Unknowable::Script => "runs a script that may touch keys that it does not declare",
        Unknowable::Pattern => "names keys by patterns, which nobody can know",
        Unknowable::Whole => "takes out or replaces whatever there is",
        Unknowable::Undescribed => "has keys of which the server does not say where they are",
        Unknowable::TooMany => "has more arguments, or longer keys, than the proxy keeps",
    };
    let why = RefusedCommand::from(class);
    (why, format!("{name} {what} (`policy.{}`)", why.name()))
}
