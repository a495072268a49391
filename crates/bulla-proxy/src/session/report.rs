//! What of a command is recorded, once it is answered, or will never be.

use super::Context;
use super::operation::{CarriedOut, Operation, Record, Stage, Status, Target, Unrecorded, Values};
use super::pending::Pending;
use super::standing::Standing;
use crate::command::{Access, Class, Effect, KeyUse, Outcome};
use crate::resp::{Arguments, Kind, Node, Reply};
use crate::subject::{Answer, Said, Span};

/// Of whom and when.
pub(super) struct Report<'a> {
    pub(super) context: &'a Context,
    pub(super) standing: &'a Standing,
    /// The database of the connection.
    pub(super) database: u32,
    /// The address of the client.
    pub(super) client: &'a str,
    pub(super) stage: Stage,
    /// The keyed digest of the reply, where it names keys.
    pub(super) reply_digest: Option<[u8; 32]>,
    /// When the command came that had it carried out, and when its reply had.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Report<'_> {
    /// Records a command to which value `at` of a reply is the answer; `None` where there is none.
    ///
    /// # Errors
    /// The log did not take all of it. Each operation was offered, so that those that are missing are counted.
    pub(super) fn command(
        &self,
        pending: &Pending,
        answer: Option<(&Reply, usize)>,
        recorder: &mut impl Record,
    ) -> Result<(), Unrecorded> {
        if !pending.is_recorded() {
            return Ok(());
        }
        let effect = &*pending.effect.between(|| self.times(recorder));
        let node = answer.and_then(|(reply, at)| Some((reply, reply.nodes().get(at)?)));
        let carried_out = node.filter(|(_, node)| self.context.learns && node.kind != Kind::Error);
        let carried_out = carried_out.map(|(reply, node)| CarriedOut {
            command: self.name(pending),
            arguments: &pending.arguments,
            effect,
            database: self.database,
            answer: Answer::of(node, reply.text(node)),
            created: created(effect, answer),
            leaves_none: answer.is_some_and(|(reply, at)| effect.leaves_none(reply, at)),
            span: Span { came: self.from, answered: self.to, connection: self.standing.connection },
        });
        let said = carried_out.as_ref().map(|carried_out| recorder.learn(carried_out));
        let recorded = self.record(pending, effect, answer, said.as_ref(), recorder);
        if let (Some(carried_out), Some(said)) = (&carried_out, &said) {
            recorder.forget(carried_out, said);
        }
        recorded
    }

    /// The first and the last time at which the command may have been carried out, in milliseconds since 1970.
    fn times(&self, recorder: &mut impl Record) -> (i64, i64) {
        let (now, took) = (recorder.now(), self.to.saturating_sub(self.from));
        let began = now.saturating_sub(i64::try_from(took).unwrap_or(i64::MAX));
        (began / 1_000_000, now / 1_000_000)
    }

    fn record(
        &self,
        pending: &Pending,
        effect: &Effect,
        answer: Option<(&Reply, usize)>,
        said: Option<&Said<'_>>,
        recorder: &mut impl Record,
    ) -> Result<(), Unrecorded> {
        let node = answer.and_then(|(reply, at)| Some((reply, reply.nodes().get(at)?)));
        let error = node.and_then(|(reply, node)| reply.error_code(node));
        let status = match (node, error) {
            (None, _) => Status::Unknown,
            (Some(_), Some(_)) => Status::Failed,
            (Some(_), None) => Status::Done,
        };
        let operation = Operation {
            error,
            duration: (self.stage == Stage::Over && node.is_some())
                .then(|| self.to.saturating_sub(self.from)),
            purpose: pending.purpose.as_deref(),
            ..self.operation(self.name(pending), status)
        };
        let mut recorded = Ok(());
        let mut written = None;
        for used in &effect.keys {
            let arguments = &pending.arguments;
            let (Some(argument), Some(key)) =
                (arguments.argument(used.argument), arguments.get(used.argument))
            else {
                continue;
            };
            let whole = Some(key).filter(|_| arguments.is_whole(used.argument));
            let outcome =
                answer.map_or(Outcome::Unknown, |(reply, at)| effect.refine(used.access, whole, reply, at));
            let (access, status) = match outcome {
                Outcome::Done(access) => (access, Status::Done),
                Outcome::NotExecuted => (used.access, Status::NotExecuted),
                Outcome::Failed => (used.access, Status::Failed),
                Outcome::Unknown => (used.access, Status::Unknown),
            };
            let size = match access {
                Access::Read => node.and_then(|(reply, node)| told(reply, node)),
                _ => Some(*written.get_or_insert_with(|| carried(pending))),
            };
            let database = used.database.unwrap_or(self.database);
            recorded = recorded.and(recorder.record(&Operation {
                target: Target::Key { key, length: argument.length, digest: argument.digest, access },
                subject: whole.and_then(|key| said?.of(database, key)),
                status,
                size,
                values: self.values(pending, used, (access, status), answer),
                database,
                ..operation
            }));
        }
        if pending.effect.unknowable.is_some() || pending.effect.administrative {
            let digest = digest_of_script(&pending.arguments);
            let script =
                digest.as_ref().map(|digest| &digest[..]).or(script(operation.command, &pending.arguments));
            let of_keys = pending.effect.unknowable.map(|class| Target::Unknowable(class, script));
            let of_server = pending.effect.administrative.then_some(Target::Server(script));
            for target in [of_keys, of_server].into_iter().flatten() {
                recorded = recorded.and(recorder.record(&Operation { target, ..operation }));
            }
        }
        if pending.effect.class == Class::Listing {
            recorded = recorded.and(self.list(answer, &operation, recorder));
        }
        recorded
    }

    /// The values that were written to a key, or read of it. Those that could be of another key, too, are none: they would stay when
    /// the other one's subject is erased.
    fn values<'a>(
        &self,
        pending: &'a Pending,
        used: &KeyUse,
        (access, status): (Access, Status),
        answer: Option<(&'a Reply, usize)>,
    ) -> Values<'a> {
        let is_wanted =
            self.context.record_values.is_some() && self.stage == Stage::Over && status == Status::Done;
        let several = pending.effect.has_several_keys();
        match (is_wanted, access, self.name(pending)) {
            (false, ..) | (_, Access::Delete, _) => Values::None,
            (true, Access::Read, name) => match answer {
                Some((reply, at)) if several => told_of(pending, used, name, (reply, at)),
                Some((reply, at)) => Values::Told(reply, at, reply.end_of(at)),
                None => Values::None,
            },
            (true, _, "mset" | "msetnx" | "msetex") => {
                Values::Carried(&pending.arguments, used.argument + 1, used.argument + 2)
            }
            (true, ..) if !several => {
                Values::Carried(&pending.arguments, used.argument + 1, pending.arguments.count())
            }
            _ => Values::None,
        }
    }

    /// Records the keys that a reply names.
    fn list(
        &self,
        answer: Option<(&Reply, usize)>,
        operation: &Operation<'_>,
        recorder: &mut impl Record,
    ) -> Result<(), Unrecorded> {
        let mut recorded = Ok(());
        let (mut named, mut listed) = (0, 0);
        if let Some((reply, at)) = answer.filter(|_| operation.status == Status::Done) {
            // SCAN tells where to go on before the keys.
            let at = match operation.command {
                "scan" => reply.children(at).nth(1).map(|(at, _)| at),
                _ => Some(at),
            };
            let top = at.and_then(|at| Some((at, reply.nodes().get(at)?)));
            let single = top.filter(|(_, node)| node.kind == Kind::Bulk);
            named = match top {
                Some((_, node)) if node.is_aggregate() => node.length,
                Some(_) => u64::from(single.is_some()),
                None => 0,
            };
            let several = top.into_iter().flat_map(|(at, _)| reply.children(at).map(|(_, node)| node));
            let keys = single.map(|(_, node)| node).into_iter().chain(several).filter(|node| node.is_whole());
            for key in keys.take(self.context.limits.listed_keys) {
                let text = reply.text(key);
                let target =
                    Target::Key { key: text, length: key.length, digest: None, access: Access::Read };
                recorded = recorded.and(recorder.record(&Operation { target, ..*operation }));
                listed += 1;
            }
        }
        match named.saturating_sub(listed) {
            // Whoever finds nothing has learned that, too.
            0 if listed > 0 => recorded,
            left => {
                let target = Target::Unlisted(left, self.reply_digest);
                recorded.and(recorder.record(&Operation { target, ..*operation }))
            }
        }
    }

    fn name<'p>(&'p self, pending: &'p Pending) -> &'p str {
        self.context.table.name(pending.effect.command).unwrap_or_else(|| unknown_name(&pending.arguments))
    }

    /// Records that nobody audits the connection from here on.
    pub(super) fn unaudited(&self, recorder: &mut impl Record) -> Result<(), Unrecorded> {
        recorder.record(&Operation { target: Target::Unaudited, ..self.operation("", Status::Unknown) })
    }

    /// What every operation of a command has in common.
    fn operation<'a>(&'a self, command: &'a str, status: Status) -> Operation<'a> {
        Operation {
            target: Target::Server(None),
            subject: None,
            status,
            error: None,
            command,
            database: self.database,
            size: None,
            duration: None,
            client: self.client,
            actor: &self.standing.actor,
            purpose: None,
            name: self.standing.name.as_deref(),
            name_is_cut: self.standing.name_is_cut,
            certificate: self.standing.certificate.as_deref(),
            stage: self.stage,
            values: Values::None,
        }
    }
}

/// Whether an answer says of the one key of a command that it was not there before.
fn created(effect: &Effect, answer: Option<(&Reply, usize)>) -> bool {
    match (&effect.keys[..], answer) {
        ([used], Some((reply, at))) => {
            effect.refine(used.access, None, reply, at) == Outcome::Done(Access::Create)
        }
        _ => false,
    }
}

/// What the reply to a command with several keys tells of one of them, where it says of which.
fn told_of<'a>(pending: &Pending, used: &KeyUse, name: &str, (reply, at): (&'a Reply, usize)) -> Values<'a> {
    let names = |node: &Node| {
        let is_whole = node.is_whole() && pending.arguments.is_whole(used.argument);
        is_whole && pending.arguments.get(used.argument) == Some(reply.text(node))
    };
    // Behind a name that an array begins with.
    let behind_name = |at: usize| {
        let first = reply.children(at).next().filter(|(_, first)| names(first));
        first.map(|(first, _)| (first + 1, reply.end_of(at)))
    };
    let told = match name {
        // In the order of the keys.
        "mget" => {
            let place = pending.effect.keys.iter().position(|other| other.argument == used.argument);
            let child = place.and_then(|place| reply.children(at).nth(place));
            child.map(|(at, _)| (at, reply.end_of(at)))
        }
        _ if pending.effect.names_key() => behind_name(at),
        "xread" | "xreadgroup" => match reply.nodes().get(at).map(|node| node.kind) {
            Some(Kind::Map) => {
                let streams = reply.children(at).step_by(2).zip(reply.children(at).skip(1).step_by(2));
                let mut found = streams.filter(|((_, name), _)| names(name));
                found.next().map(|(_, (told, _))| (told, reply.end_of(told)))
            }
            _ => reply.children(at).find_map(|(at, _)| behind_name(at)),
        },
        _ => None,
    };
    told.map_or(Values::None, |(from, to)| Values::Told(reply, from, to))
}

/// How many bytes a reply told: those of a value, or all of a reply that has several.
fn told(reply: &Reply, node: &Node) -> Option<u64> {
    match node.kind {
        Kind::Bulk | Kind::Simple => Some(node.length),
        _ if node.is_aggregate() => Some(reply.wire()),
        _ => None,
    }
}

/// How many bytes a command carries besides its keys, as far as its arguments are kept.
fn carried(pending: &Pending) -> u64 {
    let length = |index: u64| pending.arguments.argument(index).map(|argument| argument.length);
    let all = (1..).map_while(length).sum::<u64>();
    // The uses of one key stand side by side.
    let (mut keys, mut last) = (0, 0);
    for used in &pending.effect.keys {
        keys += if used.argument == last { 0 } else { length(used.argument).unwrap_or(0) };
        last = used.argument;
    }
    all - keys
}

/// What names the script that a command brings, as the server names it: its SHA-1 in hexadecimal digits.
fn digest_of_script(arguments: &Arguments) -> Option<[u8; 40]> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = arguments.script()?;
    let mut text = [0; 40];
    for (pair, byte) in text.chunks_exact_mut(2).zip(digest) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xf)]]);
    }
    Some(text)
}

/// What names the script or function that a command runs, or the library that it deletes.
fn script<'a>(command: &str, arguments: &'a Arguments) -> Option<&'a [u8]> {
    let index = match command {
        "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" => 1,
        "function|delete" => 2,
        _ => return None,
    };
    let name = arguments.get(index).filter(|_| arguments.is_whole(index))?;
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    name.iter().all(is_word).then_some(name)
}

/// The name of a command that the server does not tell of, as it was sent, if it looks like one. Anything else may be a value that
/// somebody sent by mistake, and is empty here.
fn unknown_name(arguments: &Arguments) -> &str {
    const LONGEST: usize = 64;
    let is_name = |name: &&[u8]| {
        name.len() <= LONGEST && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.')
    };
    let name = arguments.get(0).filter(|_| arguments.is_whole(0)).filter(is_name);
    name.and_then(|name| str::from_utf8(name).ok()).unwrap_or_default()
}
