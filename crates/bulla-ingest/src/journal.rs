//! journald's entries, read exactly once, through `journalctl`, whose options and export format are stable (systemd's "Interface Portability
//! and Stability").
//!
//! journald numbers entries: a *sequence* has an id, and in it each entry a number (`s` and `i` of a cursor). A sequence, as far as a filter lets
//! see it, is a source like a file is one ([`follow`](crate::follow)): a place is the number of the next entry, the check of an entry the time at which
//! journald got it (`t`). These make the cursor with which `journalctl` goes on. Nearly always there is one sequence; where there are several, as in a directory
//! of many machines' journals, reading begins again where the one ends that is the furthest behind, and passes over what the log has of the others.
#![expect(clippy::disallowed_methods, reason = "it runs journalctl")]

mod journalctl;

use crate::convert::{Conversion, Converted, Converter};
use crate::follow::{At, Known, Sink, SourceId, Unit};
use crate::format::Format;
use crate::framing::{Framing, Next};
use journalctl::{Answer, NO_JOURNAL, Running};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// So many bytes are read in a step, unless an entry is longer.
const TURN: usize = 256 * 1024;

/// The pauses before `journalctl` is started again, in nanoseconds: the first one, which doubles, and the longest.
const PAUSES: (i64, i64) = (1_000_000_000, 60_000_000_000);

/// Which entries of which journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// As it was asked for, which names the source.
    name: String,
    /// What tells `journalctl`.
    arguments: Vec<String>,
}

impl Journal {
    /// `journal:` is the machine's whole journal, `journal:UNIT` what it has of a unit, `journal:/PATH` a file or directory of journals; `None`
    /// of anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let what = text.strip_prefix("journal:")?;
        let arguments = match what {
            "" => Vec::new(),
            path if path.starts_with('/') => {
                let kind = if Path::new(path).is_dir() { "--directory" } else { "--file" };
                vec![format!("{kind}={path}")]
            }
            unit => vec![format!("--unit={unit}")],
        };
        Some(Journal { name: text.to_owned(), arguments })
    }
}

/// By what a sequence is known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalLabel {
    /// What was asked for.
    pub journal: String,
    /// The sequence's id, as cursors have it.
    pub sequence: String,
    /// The number of the first entry that was read of it.
    pub first: u64,
}

impl JournalLabel {
    /// `None` of the label of any other source.
    pub fn parse(label: &[u8]) -> Option<Self> {
        serde_json::from_slice(label).ok()
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a label has nothing that JSON has not")
    }
}

/// A sequence of entries.
struct Sequence<S> {
    id: SourceId,
    label: JournalLabel,
    handle: Option<S>,
    /// Where the range of the last entry that was taken ends.
    claimed: u64,
    /// Up to where entries after that became none when it was followed before.
    passed: u64,
    /// Where those end that became none, and the check of the last of them, until the sink is told.
    passing: Option<(u64, u64)>,
    /// What the log has of it.
    held: Vec<Range<u64>>,
}

impl<S> Sequence<S> {
    fn new(id: SourceId, label: JournalLabel, claimed: u64, held: Vec<Range<u64>>) -> Self {
        Sequence { id, label, handle: None, claimed, passed: 0, passing: None, held }
    }

    /// What the sink knows it by.
    fn handle<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<&S, T::Error> {
        match &mut self.handle {
            Some(handle) => Ok(handle),
            none => Ok(none.insert(sink.source(&self.id, &self.label.to_bytes())?)),
        }
    }

    /// The entry of this number became none. One before the end of what was taken, as where reading began again, is in no range.
    fn pass(&mut self, number: u64, check: u64) {
        if number >= self.claimed {
            self.passing = Some((number + 1, check));
        }
    }
}

/// Where an entry stands, as its cursor says.
#[derive(Debug, PartialEq, Eq)]
struct Cursor<'a> {
    sequence: &'a str,
    number: u64,
    /// When journald got it, in microseconds since the epoch.
    time: u64,
}

impl<'a> Cursor<'a> {
    /// The cursor of a record, with which it begins.
    fn of(record: &'a [u8]) -> Option<Self> {
        let line = record.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"__CURSOR="))?;
        let part = |name: &str| {
            let parts = std::str::from_utf8(line).ok()?.split(';');
            parts
                .filter_map(|part| part.split_once('='))
                .find_map(|(of, value)| (of == name).then_some(value))
        };
        let number = |name| u64::from_str_radix(part(name)?, 16).ok();
        Some(Cursor {
            sequence: part("s")?,
            number: number("i").filter(|number| *number < u64::MAX)?,
            time: number("t")?,
        })
    }

    fn to_text(&self) -> String {
        format!("s={};i={:x};t={:x}", self.sequence, self.number, self.time)
    }
}

/// See the module.
pub struct JournalFollower<S> {
    journal: Journal,
    converter: Converter,
    framing: Framing,
    random: Box<dyn FnMut() -> SourceId + Send>,
    sequences: HashMap<String, Sequence<S>>,
    /// Behind which entry to go on; `None` at the beginning.
    behind: Option<String>,
    /// Whether what there is is all that is read.
    once: bool,
    running: Option<Running>,
    /// Whether `journalctl` was asked what it has to say of the journals that it reads.
    is_asked: bool,
    unread: Vec<u8>,
    /// When to start `journalctl` again, and the pause after that.
    restart: (i64, i64),
    ended: bool,
    /// Why it ended where no more is to be read.
    failure: Option<String>,
}

impl<S> JournalFollower<S> {
    /// Follows a journal, where the log has these sources; `once`: what there is, and no more. `random` gives ids, none of them twice.
    ///
    /// # Errors
    /// That the conversion is not one of journald's export format.
    pub fn new(
        journal: Journal,
        conversion: &Arc<Conversion>,
        known: &[Known],
        random: Box<dyn FnMut() -> SourceId + Send>,
        once: bool,
    ) -> Result<Self, String> {
        match &**conversion {
            Conversion::Mapped(map) if map.format() == Format::JournalExport => {}
            _ => {
                return Err(format!(
                    "{} is read in journald's export format: give --format journal-export, or a map of that format",
                    journal.name
                ));
            }
        }
        let converter = Converter::new(conversion);
        let mut sequences = HashMap::new();
        let mut behind = None::<(u64, String)>;
        for known in known {
            let Some(label) = JournalLabel::parse(&known.label).filter(|label| label.journal == journal.name)
            else {
                continue;
            };
            let first = known.ranges.first().filter(|first| first.start == label.first);
            let claimed = first.map_or(label.first, |first| first.end);
            let passed = known.passed.as_ref().filter(|(range, _)| range.start == claimed);
            let last = passed.map(|(range, check)| (range.end, *check));
            // Without its first entry reading begins again at the beginning.
            let at = last.or(first.map(|first| (first.end, known.check))).map_or(
                (0, String::new()),
                |(end, time)| {
                    let last = Cursor { sequence: &label.sequence, number: end - 1, time };
                    (time, last.to_text())
                },
            );
            behind = Some(behind.map_or_else(|| at.clone(), |behind| behind.min(at.clone())));
            let held = known.ranges.clone();
            sequences.insert(
                label.sequence.clone(),
                Sequence {
                    passed: last.map_or(0, |(end, _)| end),
                    ..Sequence::new(known.id, label, claimed, held)
                },
            );
        }
        Ok(JournalFollower {
            journal,
            framing: converter.framing(),
            converter,
            random,
            sequences,
            behind: behind.map(|(_, cursor)| cursor).filter(|cursor| !cursor.is_empty()),
            once,
            running: None,
            is_asked: false,
            unread: Vec::new(),
            restart: (i64::MIN, PAUSES.0),
            ended: false,
            failure: None,
        })
    }

    /// What becomes readable when there is more.
    pub fn wakes(&self) -> Option<BorrowedFd<'_>> {
        self.running.as_ref().map(Running::wakes)
    }

    /// When to step again though nothing is readable, in nanoseconds since the epoch.
    pub fn due(&self) -> i64 {
        if self.running.is_none() && !self.ended { self.restart.0 } else { i64::MAX }
    }

    /// Whether all was read that there was, where no more is to be.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Why it ended before all was read, where no more is to be.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Reads a little. Returns whether there may be more to read at once.
    ///
    /// # Errors
    /// Those of the sink. The follower is of no more use then.
    pub fn step<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<bool, T::Error> {
        let now = sink.now();
        if self.running.is_none() {
            // A clock that was set back is none to wait for.
            let waits = now < self.restart.0 && self.restart.0 - now <= PAUSES.1;
            if self.ended || waits {
                return Ok(false);
            }
            if let Err(why) = self.ask(sink).and_then(|()| self.start().map_err(not_run)) {
                self.fail(&why, sink, now);
                return Ok(false);
            }
        }
        let Some(running) = &mut self.running else { return Ok(false) };
        let before = self.unread.len();
        self.unread.resize(before + TURN, 0);
        let read = running.read(&mut self.unread[before..]);
        self.unread.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => {
                // What it broke off in is given again.
                self.unread.clear();
                self.finish(sink, now);
                Ok(false)
            }
            Ok(read) => {
                self.restart.1 = PAUSES.0;
                self.give(sink)?;
                Ok(read == TURN)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => {
                self.fail(&format!("reading what journalctl says: {error}"), sink, now);
                Ok(false)
            }
        }
    }

    /// Passes on, once, what `journalctl` has to say of the journals: that there are none, or that some may not be read. Without a journal
    /// nothing could be told from a journal in which nothing is, where what there is is all that is read.
    fn ask<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<(), String> {
        if self.is_asked {
            return Ok(());
        }
        let answer = journalctl::ask(&self.journal.arguments).map_err(not_run)?;
        if !answer.status.success() || (self.once && answer.said.contains(NO_JOURNAL)) {
            return Err(ended(&answer));
        }
        if !answer.said.is_empty() {
            sink.tell(&format!("{}: journalctl says: {}", self.journal.name, answer.said));
        }
        self.is_asked = true;
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        let mut arguments = self.journal.arguments.clone();
        if !self.once {
            arguments.extend(["--follow".to_owned(), "--no-tail".to_owned()]);
        }
        arguments.extend(self.behind.iter().map(|cursor| format!("--after-cursor={cursor}")));
        self.running = Some(Running::start(&arguments)?);
        self.framing = self.converter.framing();
        self.unread.clear();
        Ok(())
    }

    /// `journalctl` has ended.
    fn finish<T: Sink<Source = S>>(&mut self, sink: &mut T, now: i64) {
        let Some(running) = self.running.take() else { return };
        match running.end() {
            Ok(answer) if answer.status.success() && self.once => self.ended = true,
            Ok(answer) => self.fail(&ended(&answer), sink, now),
            Err(error) => self.fail(&format!("waiting for journalctl: {error}"), sink, now),
        }
    }

    fn fail<T: Sink<Source = S>>(&mut self, why: &str, sink: &mut T, now: i64) {
        let pause = self.restart.1;
        let why = format!("{}: {why}", self.journal.name);
        match self.once {
            true => (self.ended, self.failure) = (true, Some(why)),
            false if pause == PAUSES.0 => sink.tell(&format!("{why}; it is tried again")),
            false => {}
        }
        self.running = None;
        self.restart = (now.saturating_add(pause), (2 * pause).min(PAUSES.1));
    }

    /// Gives the sink the records that were read whole.
    fn give<T: Sink<Source = S>>(&mut self, sink: &mut T) -> Result<(), T::Error> {
        let unread = std::mem::take(&mut self.unread);
        let mut used = 0;
        loop {
            let rest = &unread[used..];
            match self.framing.next(rest, false) {
                Next::More => break,
                Next::Passed { consumed } => used += consumed,
                Next::Record { consumed, content } => {
                    self.take(&rest[content], sink)?;
                    used += consumed;
                }
                Next::Refused { consumed, reason } => {
                    let at = At { path: Path::new(&self.journal.name), place: 0, unit: Unit::Entry };
                    sink.refuse(at, &reason.to_string(), None)?;
                    used += consumed;
                }
            }
        }
        self.unread = unread;
        self.unread.drain(..used);
        for sequence in self.sequences.values_mut() {
            if let Some((end, check)) = sequence.passing.take() {
                let place = (sequence.claimed..end, check);
                let handle = sequence.handle(sink)?;
                sink.pass(handle, place)?;
            }
        }
        Ok(())
    }

    fn take<T: Sink<Source = S>>(&mut self, record: &[u8], sink: &mut T) -> Result<(), T::Error> {
        let path = Path::new(&self.journal.name);
        let Some(cursor) = Cursor::of(record) else {
            let at = At { path, place: 0, unit: Unit::Entry };
            return sink.refuse(at, "it has no cursor that says its sequence, number and time", Some(record));
        };
        let (number, check) = (cursor.number, cursor.time);
        self.behind = Some(cursor.to_text());
        let sequence = match self.sequences.get_mut(cursor.sequence) {
            Some(sequence) => sequence,
            None => {
                let sequence = cursor.sequence.to_owned();
                let label = JournalLabel {
                    journal: self.journal.name.clone(),
                    sequence: sequence.clone(),
                    first: number,
                };
                let new = Sequence::new((self.random)(), label, number, Vec::new());
                self.sequences.entry(sequence).or_insert(new)
            }
        };
        // Entries of a sequence come in its order, unless reading began again.
        if sequence.held.iter().any(|held| held.contains(&number)) {
            sequence.claimed = sequence.claimed.max(number + 1);
            sequence.passing = None;
            return Ok(());
        }
        if (sequence.claimed..sequence.passed).contains(&number) {
            return Ok(());
        }
        let at = At { path, place: number, unit: Unit::Entry };
        let entry = match self.converter.convert(record, sink.now()) {
            Converted::Entry(entry) => entry,
            Converted::Nothing => {
                sequence.pass(number, check);
                return Ok(());
            }
            Converted::Refused(reason) => {
                sink.refuse(at, &reason, Some(record))?;
                sequence.pass(number, check);
                return Ok(());
            }
        };
        // Behind what the log has already, ranges begin anew.
        let start = sequence.claimed.min(number);
        let handle = sequence.handle(sink)?;
        match sink.append(at, &entry, handle, (start..number + 1, check))? {
            Ok(()) => {
                sequence.claimed = number + 1;
                sequence.passing = None;
            }
            Err(reason) => {
                sink.refuse(at, &reason, Some(record))?;
                sequence.pass(number, check);
            }
        }
        Ok(())
    }
}

/// That it ended, and what it said of why.
fn ended(Answer { status, said }: &Answer) -> String {
    match said.as_str() {
        "" => format!("journalctl ended ({status})"),
        _ => format!("journalctl ended ({status}), and says: {said}"),
    }
}

fn not_run(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "journalctl is not here; it comes with systemd (Debian: systemd)".to_owned()
        }
        _ => format!("running journalctl: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_becomes_options_of_journalctl() {
        let arguments = |text: &str| Journal::parse(text).map(|journal| journal.arguments.join(" "));
        assert_eq!(arguments("journal:").as_deref(), Some(""));
        assert_eq!(arguments("journal:ssh.service").as_deref(), Some("--unit=ssh.service"));
        assert_eq!(arguments("journal:/no/such.journal").as_deref(), Some("--file=/no/such.journal"));
        assert_eq!(arguments("journal:/").as_deref(), Some("--directory=/"));
        assert_eq!(arguments("/var/log/journal"), None);
    }

    #[test]
    fn a_cursor_is_read_and_written_as_journalctl_does() {
        let record = b"__CURSOR=s=0f1a;i=13;b=07;m=4a38;t=6447d4c2f1638;x=359a\n__REALTIME_TIMESTAMP=1764154800019000\n";
        let cursor = Cursor::of(record).unwrap();
        assert_eq!(cursor, Cursor { sequence: "0f1a", number: 0x13, time: 1_764_154_800_019_000 });
        assert_eq!(cursor.to_text(), "s=0f1a;i=13;t=6447d4c2f1638");
        for none in [
            "",
            "MESSAGE=a",
            "__CURSOR=i=1;t=2",
            "__CURSOR=s=a;i=x;t=2",
            "__CURSOR=s=a;i=ffffffffffffffff;t=2",
        ] {
            assert_eq!(Cursor::of(none.as_bytes()), None, "{none}");
        }
    }
}
