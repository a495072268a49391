//! [`Run`]: the records of the inputs, appended one after the other.

use super::Append;
use super::acks::{self, Acks};
use super::input::Input;
use super::lines::{Place, UpTo};
use super::meter::Meter;
use super::numbered::Numbered;
use super::summary::Summary;
use super::taken::{self, Taken};
use super::terms::{Terms, now};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::output::print;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Entry, ErrorKind, Log, Producer};
use bulla_ingest::convert::{Converted, Converter};
use bulla_ingest::framing::{Record, Records};
use std::io;
use std::sync::{Arc, Mutex};

/// One run of the command, once everything is open.
pub(super) struct Run<'a> {
    pub(super) append: &'a Append,
    pub(super) terms: Terms,
    pub(super) interrupt: &'a Interrupt,
    pub(super) taken: Arc<Mutex<Taken>>,
    pub(super) numbered: Option<Numbered>,
    pub(super) acks: Option<Acks>,
    pub(super) meter: Meter,
}

impl Run<'_> {
    /// Appends every record of every input, until all are read or a signal comes.
    pub(super) fn read_all(
        &mut self,
        inputs: &[Input],
        log: &Log,
        producer: &mut Producer,
    ) -> Result<(), Failure> {
        for (index, input) in inputs.iter().enumerate() {
            let failed = |error: &io::Error| Failure::io(format!("reading {}", input.name), error);
            let alarm = self.acks.as_ref().map(|acks| acks.alarm().clone());
            let source = input.open(self.interrupt, alarm).map_err(|error| failed(&error))?;
            let mut converter = Converter::new(&self.terms.conversion);
            let mut records = Records::new(source, converter.framing_kind());
            while !self.interrupt.is_raised() {
                match records.next_record() {
                    Ok(None) => break,
                    Ok(Some(record)) => {
                        self.meter.read(record.raw.len() as u64);
                        // The sender's number, where it numbers its lines.
                        let first = Place { input: index, line: self.append.from + record.number - 1 };
                        self.take((input, first), &record, &mut converter, log, producer)?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed(&error)),
                }
                self.meter.tick(|| taken::lock(&self.taken).counts(), log)?;
            }
        }
        Ok(())
    }

    /// Appends a record, whose first line is given, or refuses it.
    fn take(
        &mut self,
        (input, first): (&Input, Place),
        record: &Record<'_>,
        converter: &mut Converter,
        log: &Log,
        producer: &mut Producer,
    ) -> Result<(), Failure> {
        let last = Place { line: first.line + record.lines - 1, ..first };
        let text = record.content.as_ref().map_or(record.raw, |content| content);
        if let Some(numbered) = &mut self.numbered {
            let mut taken = taken::lock(&self.taken);
            if numbered.has(last, record.lines, text)? {
                taken.lines.refuse(last);
                return Ok(());
            }
            // What was refused before it is kept before the log says that it was passed.
            taken.refused.keep_now()?;
        }
        let (raw, converted) = match &record.content {
            Ok(content) => (Some(*content), converter.convert(content, now())),
            Err(reason) => (None, Converted::Refused(reason.to_string())),
        };
        let reason = match converted {
            Converted::Entry(parsed) => {
                let mut entry = parsed.entry();
                let mut stage = |entry: &Entry<'_>| {
                    stage(self.interrupt, producer, self.numbered.as_mut(), entry, (last, text))
                };
                match self.terms.complete(&mut entry).map(|()| stage(&entry)) {
                    Ok(Ok(())) => {
                        taken::lock(&self.taken).lines.accept(last, record.lines, || log.durable_prefix());
                        return Ok(());
                    }
                    Ok(Err(error)) if error.kind() == ErrorKind::Invalid => error.to_string(),
                    // A signal ended the wait: this record is not accepted, and the last that is looked at.
                    Ok(Err(error)) if error.kind() == ErrorKind::Timeout => return Ok(()),
                    Ok(Err(error)) => return Err(error.into()),
                    Err(reason) => reason,
                }
            }
            Converted::Nothing => {
                let mut taken = taken::lock(&self.taken);
                self.pass(last, text)?;
                taken.pass(last);
                return Ok(());
            }
            Converted::Refused(reason) => reason,
        };
        let mut taken = taken::lock(&self.taken);
        self.pass(last, text)?;
        let place = (first, record.lines);
        match taken.refused.tells_next() {
            true => self.meter.suspend(|| taken.refuse(&input.name, place, &reason, raw)),
            false => taken.refuse(&input.name, place, &reason, raw),
        }
    }

    /// The record `text`, which ends with the line `last`, becomes no entry. While what was taken is locked: the log is not to know of it before it
    /// is among the rejects.
    fn pass(&self, last: Place, text: &[u8]) -> Result<(), Failure> {
        self.numbered.as_ref().map_or(Ok(()), |numbered| numbered.pass(last, text))
    }

    /// Commits what was staged, whatever ended the reading, and says how it went.
    pub(super) fn end(
        self,
        log: Log,
        mut producer: Producer,
        inputs: &[Input],
        read: Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        // An outage would be waited out, for which nobody dropped anything.
        log.end_dropping();
        // Before the log is closed, which waits for a medium less patiently.
        // What was dropped is counted, and no failure: a receipt after that is of the rest.
        let signed = producer.flush().and_then(|receipt| match receipt.dropped() {
            0 => receipt.checkpointed(),
            _ => producer.flush()?.checkpointed(),
        });
        drop(producer);
        // What became no entry is kept while the log is open.
        taken::lock(&self.taken).settled(log.durable_prefix());
        let not_addresses = log.not_addresses();
        let replicas = log.vault_replicas();
        let (telemetry, closed) = log.close_with_telemetry();
        let closed = signed.and(closed);
        let witnesses = telemetry.witnesses.clone();
        let (told, acknowledged) = self.acks.map_or((0, Ok(())), Acks::finish);
        let mut taken = taken::lock(&self.taken);
        let kept = taken.refused.finish().and(taken.failure());
        let interrupted = self.interrupt.is_raised();
        self.meter.end(taken.lines.accepted(), &telemetry);
        let place = taken.settled(telemetry.durable_prefix);
        // The last of these lines says what the summary does.
        let acknowledged = match self.append.acks && place.line > told {
            true => acknowledged.and_then(|()| print(&acks::text(place.line))),
            false => acknowledged,
        };
        let summary = Summary {
            accepted: taken.lines.accepted(),
            refused: taken.refused.count() - taken.refused.unkept().map_or(0, |unkept| unkept.count),
            committed: telemetry.entries,
            durable_prefix: telemetry.durable_prefix,
            lost: telemetry.lost,
            dropped: telemetry.dropped,
            up_to: UpTo::new(place, &inputs[place.input].name),
            interrupted,
            passed_over: self.numbered.as_ref().map(Numbered::passed_over),
            over: self.numbered.as_ref().and_then(|it| it.to_text(taken.counts() == (0, 0))),
            error: None,
            stats: self.append.stats.then_some(telemetry),
        };
        if not_addresses > 0 {
            note!(
                "{} of `client` {}, and dropped: its rule is truncate-ip",
                counted(not_addresses, "value"),
                agreeing(not_addresses, "was no address", "were no addresses"),
            );
        }
        for (path, failure) in replicas.iter().filter_map(|it| Some((&it.path, it.failure.as_ref()?))) {
            note!("{path}, a replica of the vault, was left out: {failure}");
        }
        for witness in witnesses.iter().filter(|witness| witness.refuses) {
            note!(
                "the witness `{}` ({}) refuses this log: {}. Stop writing to it, and find out who has signed the other history",
                witness.name,
                witness.address,
                witness.failure.as_deref().unwrap_or_default()
            );
        }
        let failed = match closed {
            // The log's own failure is what made reading fail, too.
            Err(error) => Some(Failure::from(error)),
            Ok(()) => read.err().or(kept.err()).or(acknowledged.err()),
        };
        if let Some(Failure { exit, message }) = failed {
            let summary = Summary { error: Some(&message), ..summary };
            return Err(summary.with_failure(exit, &message, self.append.json));
        }
        // Whoever cannot be told there how far it came is told on standard error.
        summary.print(self.append.json).map_err(|Failure { exit, message }| Failure {
            exit,
            message: format!("{message}\n{}", summary.to_text_of_failure()),
        })?;
        Ok(match summary {
            Summary { interrupted: true, .. } => Exit::Interrupted,
            Summary { refused: 0, dropped: 0, .. } => Exit::Done,
            _ => Exit::SomeRefused,
        })
    }
}

/// Stages the entry of a record, which ends with the line `last`, as one of the source if its lines are numbered.
fn stage(
    interrupt: &Interrupt,
    producer: &mut Producer,
    numbered: Option<&mut Numbered>,
    entry: &Entry<'_>,
    (last, text): (Place, &[u8]),
) -> bulla::Result<()> {
    let Some(numbered) = numbered else { return wait_for(interrupt, || producer.append(entry)) };
    let place = numbered.place(last, text);
    wait_for(interrupt, || producer.append_from(entry, numbered.source(), &place))?;
    numbered.appended(last);
    Ok(())
}

/// Appends, however long the log has no memory, until a signal comes.
pub(super) fn wait_for(
    interrupt: &Interrupt,
    mut append: impl FnMut() -> bulla::Result<()>,
) -> bulla::Result<()> {
    loop {
        match append() {
            Err(error) if error.kind() == ErrorKind::Timeout && !interrupt.is_raised() => {}
            appended => return appended,
        }
    }
}
