//! Export: what verified, as JSON lines, filtered.

use crate::config;
use crate::error::{Error, ErrorKind, Result};
use crate::finding::Finding;
use crate::keys::recipients::Identity;
use crate::read::open::{BlockOpener, Located};
use crate::read::walk::Walk;
use crate::store::{FileSystem, Store};
use crate::text::jsonl;
use crate::verify::{Examined, OnProgress, Progress, Verify, fingerprint, in_parallel, take_batch};
use bulla_proof::Entry;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::FrameKind;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Which entries to export: those that meet all that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// One of the data subjects.
    pub subject: Option<String>,
    /// The stream; `default` matches entries that name none.
    pub stream: Option<String>,
    /// The operation.
    pub operation: Option<String>,
    /// The processor.
    pub processor: Option<String>,
    /// The earliest time, in nanoseconds since the Unix epoch.
    pub from: Option<i64>,
    /// The first time that is too late.
    pub to: Option<i64>,
}

impl Filter {
    /// Whether an entry of a block meets it.
    pub fn matches(&self, entry: &Entry<'_>) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let time = entry.time.unwrap_or_default();
        let concerns = |subject: &String| {
            entry.subjects.as_ref().is_some_and(|subjects| subjects.iter().any(|one| one == subject))
        };
        self.from.is_none_or(|from| time >= from)
            && self.to.is_none_or(|to| time < to)
            && is(&self.operation, Some(entry.operation))
            && is(&self.processor, entry.processor)
            && is(&self.stream, Some(entry.stream_or_default()))
            && self.subject.as_ref().is_none_or(concerns)
    }

    /// Whether a block of these whole seconds can hold anything that meets it.
    fn admits(&self, frame: &Located) -> bool {
        let (earliest, latest) = (frame.commitment.earliest, frame.commitment.latest);
        let second = |time: i64| time.div_euclid(1_000_000_000);
        self.from.is_none_or(|from| latest >= second(from)) && self.to.is_none_or(|to| earliest <= second(to))
    }
}

/// An export, to be given what it may use and then run.
pub struct Export {
    store: Arc<dyn Store>,
    key: Option<VerifierKey>,
    identity: Option<Arc<dyn Identity>>,
    filter: Filter,
    salvage: bool,
    progress: Arc<OnProgress>,
}

/// What an export wrote.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Entries written.
    pub entries: u64,
    /// Entries that could not be read, and so were left out. Those of missing frames count as far as the tree tells
    /// how many they were.
    pub left_out: u64,
    /// What verification found.
    pub findings: Vec<Finding>,
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
            store,
            key: None,
            identity: None,
            filter: Filter::default(),
            salvage: false,
            progress: Arc::new(Box::new(|_| {})),
        })
    }

    /// Reads with this identity.
    pub fn identity(mut self, identity: Arc<dyn Identity>) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Requires the log to be this key's.
    pub fn key(mut self, key: VerifierKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Writes only what meets `filter`.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Writes what verified of a damaged log, instead of refusing it.
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Calls `progress` now and then: once over while verifying, once over while writing.
    pub fn progress(mut self, progress: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Arc::new(Box::new(progress));
        self
    }

    /// Verifies the log, then writes its entries in order, one JSON object a line.
    ///
    /// # Errors
    /// `Tampered`, nothing written, for a damaged log unless it is to be salvaged; `NoKey` without an identity that
    /// fits; `Unavailable` where a file cannot be read or `out` cannot be written.
    pub fn run(self, out: &mut dyn Write) -> Result<Exported> {
        let Some(identity) = self.identity.clone() else {
            return Err(Error::new(ErrorKind::NoKey, "an export needs an identity that opens the log"));
        };
        let progress = self.progress.clone();
        let mut verify = Verify::open_store(self.store.clone())?.identity(identity.clone());
        verify = verify.progress(move |step| progress(step));
        if let Some(key) = self.key.clone() {
            verify = verify.key(key);
        }
        let (report, examined) = verify.examine()?;
        if !report.ok && !self.salvage {
            let first = report.findings.iter().find(|finding| finding.severity == crate::Severity::Violation);
            let first = first.map_or_else(String::new, ToString::to_string);
            return Err(Error::tampered(format!(
                "the log is damaged, nothing was exported ({first}); `bulla verify` tells all; what is not damaged \
                 can be salvaged"
            )));
        }
        let mut exported = Exported { entries: 0, left_out: 0, findings: report.findings };
        if let Some(examined) = examined {
            self.write(&examined, identity, &mut exported, out)?;
        }
        out.flush().map_err(|error| Error::io("writing the export", error))?;
        Ok(exported)
    }

    fn write(
        &self,
        examined: &Examined,
        identity: Arc<dyn Identity>,
        exported: &mut Exported,
        out: &mut dyn Write,
    ) -> Result<()> {
        let (config, _) = config::load(&*self.store)?;
        let mut walk = Walk::new(&*self.store, &config, &examined.checkpoint, Some(identity), None)?;
        let (total, mut done) = (walk.total_bytes()?, 0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut batches = examined.batches.iter();
        loop {
            let batch = take_batch(&mut walk)?;
            if batch.is_empty() {
                exported.left_out += walk.lost_entries;
                return match batches.next() {
                    None => Ok(()),
                    Some(_) => Err(Error::tampered("the log changed while it was exported: frames are gone")),
                };
            }
            // This walk's own root comes too late: nothing is written but what verified before.
            if batches.next() != Some(&fingerprint(&batch)) {
                let from = batch.first().map_or(0, |frame| frame.commitment.frame);
                return Err(Error::tampered(format!(
                    "the log changed while it was exported, from frame {from} on"
                )));
            }
            let pieces = in_parallel(&batch, threads, |opener, frame| Ok(self.render(opener, frame)))?;
            for (frame, piece) in batch.iter().zip(pieces) {
                done += crate::frame::frame_length(&frame.commitment);
                let Some((entries, text)) = piece else {
                    if !self.salvage {
                        return Err(Error::tampered(format!(
                            "frame {} changed meanwhile",
                            frame.commitment.frame
                        )));
                    }
                    exported.left_out += frame.commitment.entries;
                    continue;
                };
                exported.entries += entries;
                out.write_all(&text).map_err(|error| Error::io("writing the export", error))?;
            }
            (self.progress)(Progress { done, total, entries: exported.entries });
        }
    }

    /// The lines of a frame's entries that meet the filter, and how many; `None` where it cannot be read.
    fn render(&self, opener: &mut BlockOpener, frame: &Located) -> Option<(u64, Vec<u8>)> {
        let mut text = Vec::new();
        let mut count = 0;
        if frame.commitment.kind != FrameKind::Block || !self.filter.admits(frame) {
            return Some((0, text));
        }
        let verified = frame.verify().ok()?.ok()?;
        let keys = frame.keys.as_ref()?;
        opener.open(verified, keys).ok()?;
        if self.salvage {
            // Verification let such a block pass only as a finding.
            opener.check_units(&frame.commitment, keys).ok()?;
        }
        for (number, row) in (frame.commitment.first_entry..).zip(opener.rows().iter()) {
            let entry = Entry::decode(row).ok()?;
            if self.filter.matches(&entry) {
                jsonl::write_entry(&entry, number, &mut text);
                count += 1;
            }
        }
        Some((count, text))
    }
}
