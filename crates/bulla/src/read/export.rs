//! Export: what verified, filtered, in whatever form the caller renders it; as JSON lines by itself.
//!
//! An export of everything verifies all files first, and refuses a log that is damaged anywhere. One that asks for
//! less reads what it has to, and refuses what is damaged there. A salvage reads what can be read.

mod salvage;

use crate::read::given::{Given, given};
use crate::read::reader::Reader;
use crate::read::reading::{Delivery, ReadReport};
use crate::read::select::Matches;
use crate::read::standing::AskedSubject;
use crate::read::verify::{Examined, Verify, missing_paths};
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::paths::not_there;
use crate::scan::query::Query;
use crate::scan::redaction::{RedactedEntries, Redaction};
use crate::scan::snapshot::{self, Snapshot, unless_gone};
use crate::scan::unread_events::UnreadEvents;
use crate::scan::unsigned;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, MissingPath, Paths, Store};
use bulla_text::jsonl;
use bulla_text::spelling::counted;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// An export, to be given what it may use and then run.
pub struct Export {
    given: Given,
    query: Query,
    delivery: Delivery,
    salvage: bool,
}

given! {
    Export,
    /// Takes the keys of personal groups from here, as [`Reader::group_keys`].
}

/// What an export wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exported {
    /// Entries written.
    pub entries: u64,
    /// Of those, the ones without their personal fields.
    pub withheld: RedactedEntries,
    /// Entries that were not written, though they may have met the query: see [`ReadReport::undecided`].
    pub undecided: u64,
    /// Where nothing was found: what can be said of the data subjects that were asked for by name.
    pub subjects: Vec<AskedSubject>,
    /// Where keys are missing: whether those that were given followed more of the log than is there, as [`ReadReport::log_is_older`].
    pub log_is_older: bool,
    /// Entries that a salvage left out because of damage. Of a query, those that could have met it as far as the public
    /// numbers and times tell: at most so many would have. Those of missing frames count as far as the tree tells how
    /// many they were: see [`Exported::left_out_unknown`].
    pub left_out: u64,
    /// Whether a salvage left out more than that, as far as anybody can tell: frames are missing of which nothing that is there tells how
    /// many entries that were asked for they had, such as those behind the end of what is there; or some are not read
    /// ([`Exported::unpublished`]).
    pub left_out_unknown: bool,
    /// Entries that a salvage left out for lack of a key, counted alike: they are there, for somebody else to read.
    pub unopened: Vec<Unopened>,
    /// Of a salvage the frames that are events, or may be, and cannot be read, or are not ([`Exported::unpublished`]). Where there are any it cannot be told who else was
    /// erased: nobody's personal fields are written with keys that do not follow the log beyond them, and of no key that is missing it
    /// is said that it is lost.
    pub unread_events: Option<UnreadEvents>,
    /// Of a salvage how many frames the log's seal state says were signed, where the newest checkpoint covers fewer, though what lies between is there: it is
    /// not read, and may tell of erasures.
    pub unpublished: Option<u64>,
    /// What verification found. Of a salvage without what is in `unopened`: a key that is missing is no damage.
    pub findings: Vec<Finding>,
    /// Whether a signature vouches for what was written. Of a salvage it may not: then any of it may be forged.
    pub signed: bool,
    /// The paths of the log that are not there: of what is under a signature those alone that hold nothing newer than the others.
    pub missing_paths: Vec<MissingPath>,
    /// What was read, but for a salvage, which reads everything.
    pub read: Option<ReadReport>,
}

/// Entries that somebody else could read: neighbours, of one epoch or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unopened {
    /// The first and the last epoch that the identity does not open, by the numbers of their frames.
    pub epochs: (u64, u64),
    /// The first and the last entry.
    pub entries: (u64, u64),
}

impl Unopened {
    /// How many entries.
    pub fn count(&self) -> u64 {
        self.entries.1 - self.entries.0 + 1
    }
}

impl Export {
    /// An export of the log in `directory`.
    ///
    /// # Errors
    /// `Unavailable` where there is no log.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::open_store(Arc::new(FileSystem::new(directory.as_ref())))
    }

    /// An export of the log in any store.
    ///
    /// # Errors
    /// As [`Export::open`].
    pub fn open_store(store: Arc<dyn Store>) -> Result<Self> {
        // Whether there is a log at all is known first; that it is sound comes with verifying it.
        drop(Verify::open_store(store.clone())?);
        Ok(Export {
            given: Given::new(store),
            query: Query::default(),
            delivery: Delivery::default(),
            salvage: false,
        })
    }

    /// Writes only what meets `query`.
    pub fn query(mut self, query: Query) -> Self {
        self.query = query;
        self
    }

    /// Whether all is checked before anything is written (the default), or the destination throws away what was
    /// written before an error, so that everything is read once.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Writes what verified of a damaged log, instead of refusing it.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Writes the entries in order, one JSON object a line; those without their personal fields say `withheld`.
    ///
    /// # Errors
    /// As [`Export::run_with`]; `Unavailable` where `out` cannot be written.
    pub fn run(self, out: &mut dyn Write) -> Result<Exported> {
        let render = |matches: &Matches<'_>| {
            let mut text = Vec::new();
            for (number, entry) in matches.iter() {
                jsonl::write_read(&entry, number, matches.withheld(number).map(Redaction::name), &mut text);
            }
            text
        };
        let failed = |error| Error::io("writing the export", error);
        let exported = self.run_with(render, |text| out.write_all(&text).map_err(failed))?;
        out.flush().map_err(failed)?;
        Ok(exported)
    }

    /// Exports in any form: `render` makes something of each block's entries, on many threads; `write` gets that in
    /// the order of entries, on the calling thread.
    ///
    /// # Errors
    /// `Tampered` for a damaged log unless it is to be salvaged, with nothing written but to a destination that is
    /// [`Delivery::Discardable`], `Unavailable` alike where a path is missing that may hold what no other has; `NoKey` without an identity that fits; `Unavailable` where a file cannot be read;
    /// and whatever `write` returns.
    pub fn run_with<P: Send>(
        self,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<Exported> {
        if self.given.identity.is_none() {
            return Err(Error::new(ErrorKind::NoKey, "an export needs an identity that opens the log"));
        }
        let store = self.given.store.clone();
        let mut exported = match (self.salvage, self.query.is_narrow()) {
            (true, _) => self.run_salvage(render, write),
            (false, true) => unless_gone(&*store, self.read_some(render, write)),
            (false, false) => unless_gone(&*store, self.read_all(render, write)),
        }?;
        exported.missing_paths = store.paths().map_or_else(Vec::new, Paths::missing);
        Ok(exported)
    }

    /// Verifies with public data alone what is not read anyway, then reads that same log.
    fn read_all<P: Send>(
        self,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<Exported> {
        let judged = match snapshot::require_readable(&*self.given.store) {
            // That the log is only a part of itself is nothing that verification would find.
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            judged => judged,
        };
        let verify = Verify::open_store(self.given.store.clone())?;
        let (report, examined) = verify.with(self.given.clone().in_public()).examine()?;
        if let Some(first) = report.findings.iter().find(|finding| finding.kind.is_damage()) {
            return Err(refusal(first, &*self.given.store));
        }
        let Some(Examined { snapshot, .. }) = examined else {
            return Err(Error::tampered("there is no checkpoint"));
        };
        let reader = Reader::with(self.given, snapshot.config.clone());
        let reading = reader.reading_of(snapshot)?;
        if let Some(judged) = judged? {
            reading
                .manifest
                .snapshot
                .require_goes_on(&judged, |judged| reading.manifest.root_at(judged.size).map(Some))?;
        }
        let read = reading.read(&self.query, self.delivery, render, write)?;
        if (read.entries, read.blocks) != (report.entries, report.blocks) {
            return Err(Error::tampered(format!(
                "{} in {} verified, and {} in {} read: they have to be the same",
                counted(report.entries, "entry"),
                counted(report.blocks, "block"),
                counted(read.entries, "entry"),
                counted(read.blocks, "block"),
            )));
        }
        let mut exported = Exported::of(read, report.findings);
        exported.tell_of_a_writer(&reading.manifest.snapshot)?;
        Ok(exported)
    }

    /// Reads what is asked for, and says what nobody has signed.
    fn read_some<P: Send>(
        self,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<Exported> {
        let mut reader = Reader::open_store(self.given.store.clone())?;
        reader.given = self.given;
        let reading = reader.reading()?;
        let read = reading.read(&self.query, self.delivery, render, write)?;
        let notices = missing_paths(&*reader.given.store).chain(unsigned::notice(&reading.manifest)?);
        let mut exported = Exported::of(read, notices.collect());
        if exported.entries == 0 {
            exported.subjects = reading.subjects_not_found(&self.query, exported.unsigned())?;
        }
        Ok(exported)
    }
}

impl Exported {
    /// Whether something may follow what was read that is not signed yet, and was not looked at: [`Exported::findings`] say what.
    pub fn unsigned(&self) -> bool {
        let of_the_tail =
            |finding: &Finding| matches!(finding.kind, FindingKind::UnsignedTail | FindingKind::TailDamaged);
        self.findings.iter().any(of_the_tail)
    }

    /// Where a writer is at work, or was meanwhile, verification does not tell of what follows: that is the writer's own affair.
    fn tell_of_a_writer(&mut self, snapshot: &Snapshot) -> Result<()> {
        if !self.unsigned() && !snapshot.is_quiet()? {
            self.findings.push(unsigned::of_a_writer(snapshot.checkpoint.size));
        }
        Ok(())
    }

    /// Of what was read under a signature.
    fn of(read: ReadReport, findings: Vec<Finding>) -> Self {
        Exported {
            entries: read.entries,
            withheld: read.withheld,
            undecided: read.undecided,
            subjects: Vec::new(),
            log_is_older: read.log_is_older,
            left_out: 0,
            left_out_unknown: false,
            unopened: Vec::new(),
            unread_events: None,
            unpublished: None,
            findings,
            signed: true,
            missing_paths: Vec::new(),
            read: Some(read),
        }
    }
}

fn refusal(first: &Finding, store: &dyn Store) -> Error {
    // That frames are missing tells it already.
    let left = match first.kind {
        FindingKind::FramesMissing => String::new(),
        _ => not_there(store),
    };
    let left = if left.is_empty() { left } else { format!("; {left}") };
    Error::tampered(format!(
        "the log is damaged, nothing was exported ({first}{left}); `bulla verify` tells all; what is not damaged can be \
         salvaged"
    ))
}
