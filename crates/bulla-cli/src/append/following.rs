//! `bulla append --follow`: files that others write to, each record exactly once.
//!
//! The log says in each block what it has of each file, so nothing else is kept of how far it is. What is told to have been refused is in the
//! file of rejects before it is kept that it was passed: a kill can have it there twice, and never not at all.

use super::meter::Meter;
use super::refused::Refused;
use super::run::wait_for;
use super::summary::failure_with;
use super::terms::{Terms, now};
use super::{Append, Open, lines, taken};
use crate::exit::{Exit, Failure};
use crate::interrupt::{Interrupt, no_room};
use crate::output::{print, print_json};
use bulla::text::ParsedEntry;
use bulla::text::spelling::counted;
use bulla::{ErrorKind, Log, Place, Producer, Source, SourceId, SourceState, Telemetry};
use bulla_ingest::convert::Conversion;
use bulla_ingest::follow::{At, Follower, Following, Known, Sink};
use bulla_ingest::journal::{Journal, JournalFollower};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After so long what came meanwhile is read together.
const PAUSE: Duration = Duration::from_millis(10);

/// How often it is looked whether the log still takes entries.
const TICK: Duration = Duration::from_secs(1);

/// Follows what is named until a signal comes or something fails, or all was read once, and says how it went.
pub(super) fn run(append: &Append, interrupt: &Interrupt, open: Open) -> Result<Exit, Failure> {
    let Open { taken, conversion, log, .. } = open;
    let mut taken = taken::lock(&taken);
    let meter = Meter::without_bar(append.stats, append.json);
    let refused = &mut taken.refused;
    let (terms, producer) = (append.terms(&conversion), log.producer()?);
    let mut taking = Taking {
        terms: &terms,
        interrupt,
        log: &log,
        producer,
        refused,
        accepted: 0,
        meter,
        over: VecDeque::new(),
        passed: None,
        kept: Instant::now(),
    };
    let mut sources = 0;
    let read = taking.follow(append, conversion, &mut sources);
    let Taking { accepted, meter, producer, passed, .. } = taking;
    drop(producer);
    log.end_dropping();
    // Before the log is closed, which waits for a medium less patiently.
    let signed = log.flush();
    let signed = signed.and_then(|()| passed.map_or(Ok(()), |source| source.keep_passed()));
    let (telemetry, closed) = log.close_with_telemetry();
    let kept = taken.refused.finish();
    meter.end(accepted, &telemetry);
    let (committed, lost) = (telemetry.entries, telemetry.lost);
    let unkept = taken.refused.unkept().map_or(0, |unkept| unkept.count);
    let refused = taken.refused.count() - unkept;
    let stats = append.stats.then_some(telemetry);
    let summary = Summary { sources, accepted, refused, committed, lost, error: None, stats };
    // The log's own failure is what made the rest fail, too.
    let failed = signed.and(closed).map_err(Failure::from).and(read).and(kept).err();
    if let Some(Failure { exit, message }) = failed {
        let summary = Summary { error: Some(&message), ..summary };
        return Err(failure_with((exit, &message), &summary, &summary.to_text(), append.json));
    }
    match append.json {
        true => print_json(&summary)?,
        false => print(&summary.to_text())?,
    }
    Ok(if refused == 0 { Exit::Done } else { Exit::SomeRefused })
}

/// That the file of rejects is not one of those that are followed: what is added to it would be refused again, for ever.
pub(super) fn refuse_followed(sources: &[PathBuf], rejects: &Path) -> Result<(), Failure> {
    let following =
        Following::new(&journals(sources).1, Arc::new(Conversion::Entries)).map_err(Failure::usage)?;
    let names = [std::path::absolute(rejects), std::fs::canonicalize(rejects)];
    match names.into_iter().flatten().any(|path| following.names(&path)) {
        true => Err(Failure::usage(format!(
            "{}: it is followed: rejects cannot be added to it",
            rejects.display()
        ))),
        false => Ok(()),
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    /// Those that were followed at the end.
    sources: usize,
    accepted: u64,
    refused: u64,
    /// Those that are durable.
    committed: u64,
    lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Telemetry>,
}

impl Summary<'_> {
    fn to_text(&self) -> String {
        let Summary { sources, accepted, refused, committed, lost, .. } = self;
        let sources = counted(*sources as u64, "source");
        let mut text = format!("{accepted} accepted, {refused} refused, {committed} committed, of {sources}");
        if *lost > 0 {
            text += &format!("; {lost} lost, which are read again");
        }
        text + "\n"
    }
}

/// Those of these that are journald's, and the paths and patterns.
fn journals(sources: &[PathBuf]) -> (Vec<Journal>, Vec<PathBuf>) {
    let mut journals = Vec::new();
    let is_path = |source: &&PathBuf| match source.to_str().and_then(Journal::parse) {
        Some(journal) => {
            journals.push(journal);
            false
        }
        None => true,
    };
    let paths = sources.iter().filter(is_path).cloned().collect();
    (journals, paths)
}

/// Whether all of these are journald's.
pub(super) fn are_journals(sources: &[PathBuf]) -> bool {
    journals(sources).1.is_empty()
}

/// What the log has of a source, as whoever follows it asks for it.
pub(crate) fn known(state: SourceState) -> Known {
    Known {
        id: state.id.0,
        label: state.label,
        ranges: state.ranges,
        check: state.checks.first().copied().unwrap_or_default(),
        passed: state.passed,
        order: state.last_frame,
    }
}

/// What gives new sources their ids.
fn ids() -> Result<Box<dyn FnMut() -> [u8; 16] + Send>, Failure> {
    let random = || {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map(|()| id)
    };
    random().map_err(|error| no_room("asking the system for random bytes", &error.into()))?;
    Ok(Box::new(move || random().expect("a system that gave random bytes goes on to")))
}

/// So many descriptors are left to the log and to everything else.
const OTHER_FILES: u64 = 128;

/// Has as many files open as the system lets it: each that is followed is one, and each client two. Returns how many may be followed.
pub(super) fn raise_open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let most = if raised.is_ok() { limit.maximum } else { limit.current };
    let files = most.map(|most| most.saturating_sub(OTHER_FILES).max(most / 2));
    files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

/// Why following ends.
enum Stop {
    Signal,
    Failed(Failure),
}

impl From<bulla::Error> for Stop {
    fn from(error: bulla::Error) -> Self {
        Stop::Failed(error.into())
    }
}

/// Takes what is read into the log.
struct Taking<'a> {
    terms: &'a Terms,
    interrupt: &'a Interrupt,
    log: &'a Log,
    producer: Producer,
    refused: &'a mut Refused,
    accepted: u64,
    meter: Meter,
    /// Sources of which nothing more comes, each with how many entries have to be durable before the log may forget it.
    over: VecDeque<(u64, SourceId)>,
    /// One of the sources of which something was passed, and when that was kept last.
    passed: Option<Source>,
    kept: Instant,
}

impl Taking<'_> {
    /// Reads on as long as it is to.
    fn follow(
        &mut self,
        append: &Append,
        conversion: Arc<Conversion>,
        sources: &mut usize,
    ) -> Result<(), Failure> {
        let (journals, paths) = journals(&append.files);
        let known: Vec<_> = self.log.sources()?.into_iter().map(known).collect();
        let journal =
            |of| JournalFollower::new(of, &conversion, &known, ids()?, append.once).map_err(Failure::usage);
        let mut journals = journals.into_iter().map(journal).collect::<Result<Vec<_>, _>>()?;
        let own = [append.place.directory(), append.place.keys()];
        let own = own.iter().filter_map(|directory| std::fs::canonicalize(directory).ok()).collect();
        let following = Following::new(&paths, conversion).map_err(Failure::usage)?;
        let following = following.without(own).at_most(raise_open_files());
        let mut follower = Follower::new(following, known.clone(), ids()?);
        let watch = self.log.watch();
        if let Some(unread) = self.log.lost_frames().unread_sources() {
            note!("{unread}");
        }
        note!("following {}", counted(append.files.len() as u64, "source"));
        loop {
            let stepped = follower.step(self).and_then(|state| {
                let mut is_behind = state.is_behind;
                for journal in &mut journals {
                    is_behind |= journal.step(self)?;
                }
                Ok(is_behind)
            });
            *sources = follower.state().files + journals.len();
            let is_behind = match stepped {
                Ok(is_behind) => is_behind,
                Err(Stop::Signal) => return Ok(()),
                Err(Stop::Failed(failure)) => return Err(failure),
            };
            self.end_sources()?;
            self.tick()?;
            if self.interrupt.is_raised() || watch.failure().is_some() {
                return Ok(());
            }
            if is_behind {
                continue;
            }
            if append.once && !follower.awaits_silence() && journals.iter().all(JournalFollower::has_ended) {
                // Each was told, and what else there was has been read.
                let failures = journals.iter().filter_map(JournalFollower::failure).chain(follower.unread());
                let failures: Vec<_> = failures.collect();
                let why = match failures.as_slice() {
                    [] => return Ok(()),
                    [why] => (*why).to_owned(),
                    more => {
                        format!("{} could not be read, as was told", counted(more.len() as u64, "source"))
                    }
                };
                return Err(Failure::new(Exit::Environment, why));
            }
            self.keep_passed();
            self.interrupt.wait(PAUSE);
            let due = journals.iter().map(JournalFollower::due).fold(follower.due(), i64::min);
            let until_due = Duration::from_nanos(u64::try_from(due.saturating_sub(now())).unwrap_or(0));
            let wakes = journals.iter().filter_map(JournalFollower::wakes).chain(follower.wakes());
            self.interrupt.wait_or_readable(wakes, until_due.min(TICK));
        }
    }

    /// Has the log forget the sources that are over, once all that was read of them is durable.
    fn end_sources(&mut self) -> Result<(), Failure> {
        let durable = self.log.durable_prefix();
        while let Some((_, id)) = self.over.front().filter(|(entries, _)| *entries <= durable) {
            match self.log.source(*id, b"") {
                Ok(source) => source.end(),
                // It was ended before.
                Err(error) if error.kind() == ErrorKind::Refused => {}
                Err(error) => return Err(error.into()),
            }
            self.over.pop_front();
        }
        Ok(())
    }

    /// Keeps what was passed now and then, so that a kill has little of it refused again. What cannot be written is written later, and
    /// a failure of that at the end is told.
    fn keep_passed(&mut self) {
        if let Some(source) = self.passed.as_ref().filter(|_| self.kept.elapsed() >= TICK) {
            let _ = source.keep_passed();
            self.kept = Instant::now();
        }
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let (accepted, refused) = (self.accepted, self.refused.count());
        self.meter.tick(|| (accepted, refused), self.log)
    }
}

impl Sink for Taking<'_> {
    type Source = Source;
    type Error = Stop;

    fn now(&self) -> i64 {
        now()
    }

    fn is_ending(&self) -> bool {
        self.interrupt.is_raised()
    }

    fn source(&mut self, id: &[u8; 16], label: &[u8]) -> Result<Source, Stop> {
        Ok(self.log.source(SourceId(*id), label)?)
    }

    fn relabel(&mut self, source: &Source, label: &[u8]) -> Result<(), Stop> {
        Ok(source.relabel(label)?)
    }

    fn append(
        &mut self,
        at: At<'_>,
        parsed: &ParsedEntry,
        source: &Source,
        (range, check): (Range<u64>, u64),
    ) -> Result<Result<(), String>, Stop> {
        self.refused.keep_now().map_err(Stop::Failed)?;
        let (path, terms) = (at.path.to_string_lossy(), self.terms);
        let mut entry = parsed.entry();
        // So that a data subject may be taken from it.
        if terms.stream.is_none() {
            entry.stream = entry.stream.or(Some(&path));
        }
        if let Err(reason) = terms.complete(&mut entry) {
            return Ok(Err(reason));
        }
        let place = Place { range, check };
        match wait_for(self.interrupt, || self.producer.append_from(&entry, source, &place)) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Timeout => return Err(Stop::Signal),
            Err(error) if error.kind() == ErrorKind::Invalid => return Ok(Err(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        self.accepted += 1;
        self.tick().map_err(Stop::Failed)?;
        Ok(Ok(()))
    }

    fn refuse(&mut self, at: At<'_>, reason: &str, raw: Option<&[u8]>) -> Result<(), Stop> {
        self.refused.add(at, lines::Place::default(), reason, raw).map_err(Stop::Failed)
    }

    fn pass(&mut self, source: &Source, (range, check): (Range<u64>, u64)) -> Result<(), Stop> {
        self.refused.keep_now().map_err(Stop::Failed)?;
        source.pass(&Place { range, check })?;
        self.passed = Some(source.clone());
        Ok(())
    }

    fn forget(&mut self, id: &[u8; 16]) {
        self.over.push_back((self.accepted, SourceId(*id)));
    }

    fn tell(&mut self, what: &str) {
        note!("{what}");
    }
}
