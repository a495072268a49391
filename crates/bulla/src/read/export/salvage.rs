//! Salvage: what of a log can be read, whatever else cannot, and an account of the rest.
//!
//! Invariants:
//! - nothing is written but what verified in a first pass, and a log that changed since then is refused;
//! - an entry that was asked for is written, or counted: as damaged, or as somebody else's to read; where nobody can count those of frames
//!   that are missing, that is said. What a commitment rules out counts as not asked for only where a signature vouches for the commitment, and its block does not say otherwise.

use super::{Export, Exported, Unopened};
use crate::format::frame;
use crate::read::given::Progress;
use crate::read::select::{Asked, Matches, Memory, Selection, asked_for};
use crate::read::standing::Nothing;
use crate::read::verify::{Examined, Verify};
use crate::scan::erasures::Erasures;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::full::Scan;
use crate::scan::located::{Located, Unreadable, most_memory};
use crate::scan::open::Asks;
use crate::scan::own_keys;
use crate::scan::pool::{self, Job};
use crate::scan::query::Query;
use crate::scan::redaction::RedactedEntries;
use crate::scan::unread_events::UnreadEvents;
use bulla_crypto::group::GroupKeys;
use bulla_store::{Error, ErrorKind, Result};

impl Export {
    /// Reads whatever verifies, wherever it lies.
    pub(super) fn run_salvage<P: Send>(
        &self,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        write: impl FnMut(P) -> Result<()>,
    ) -> Result<Exported> {
        let verify = Verify::open_store(self.given.store.clone())?;
        let (report, examined) =
            verify.with(self.given.clone().without_group_keys()).salvaging().examine()?;
        let signed = !report.findings.iter().any(|finding| is_unsigned(finding.kind));
        let mut exported = Exported {
            entries: 0,
            withheld: RedactedEntries::default(),
            undecided: 0,
            subjects: Vec::new(),
            log_is_older: false,
            left_out: 0,
            left_out_unknown: false,
            unopened: Vec::new(),
            unread_events: None,
            unpublished: None,
            findings: report.findings,
            signed,
            missing_paths: Vec::new(),
            read: None,
        };
        if let Some(examined) = examined {
            self.write_salvaged(&examined, &mut exported, render, write)?;
        }
        Ok(exported)
    }

    fn write_salvaged<P: Send>(
        &self,
        examined: &Examined,
        exported: &mut Exported,
        render: impl Fn(&Matches<'_>) -> P + Sync,
        mut write: impl FnMut(P) -> Result<()>,
    ) -> Result<()> {
        let given = &self.given;
        let keys = given.group_keys.clone();
        let keys = keys.map(|keys| own_keys::in_ruins(keys, &examined.snapshot)).transpose()?;
        let keys = keys.as_deref();
        let followed = |keys: &dyn GroupKeys| own_keys::followed(keys, examined.snapshot.checkpoint.size);
        if let (Some(given), Some(keys)) = (&given.group_keys, keys) {
            let known = given.erased_up_to()?.frames;
            exported.log_is_older =
                known > examined.snapshot.checkpoint.size && keys.erased_up_to()?.frames < known;
        }
        let mut erased = examined.erased.clone();
        if let Some(keys) = keys {
            let known = keys.erased_up_to()?.given_up;
            erased.truncated.retain(|(_, id)| !known.contains(id));
        }
        let mut erasures = Erasures::of_ruins(erased.clone(), keys.map_or(Ok(Some(0)), followed)?);
        let (store, covered) = (&examined.snapshot.store, examined.snapshot.checkpoint.size);
        // What is out of reach is told of as missing.
        if let Some(paths) = store.paths().filter(|_| examined.out_of_reach.is_none()) {
            exported.unpublished = paths.unpublished(covered)?;
        }
        let unpublished = exported.unpublished.map(|sealed| UnreadEvents::of(covered, sealed - 1));
        if let Some(frames) = examined.out_of_reach.or(unpublished) {
            // The vault may have followed them, of which nothing that is left can tell.
            let own = given.group_keys.as_deref().map_or(Ok(Some(0)), followed)?;
            let own = own.filter(|own| !erasures.withholds() && frames.last < *own);
            erased.unread = Some(frames.and(erased.unread));
            erasures = Erasures::of_ruins(erased.clone(), own);
        }
        if let Some(given) = &given.group_keys
            && own_keys::is_older(&*examined.snapshot.store, examined.snapshot.checkpoint.size, &**given)?
        {
            erasures = Erasures::of_ruins(erased.clone(), None);
        }
        exported.unread_events = erased.unread;
        let (keyless, named) = asked_for(&self.query, keys, || Ok(erased.clone()))?;
        // The file that says whether it does may not be the log's.
        let asked = Asked::new(&self.query, keys, &erasures, &keyless, &named, Asks::ALL);
        let mut scan = Scan::new(&examined.snapshot, given.identity.clone(), None)?;
        scan.asked = self.asked(exported.signed);
        let (total, mut done) = (scan.total_bytes()?, 0);
        let mut known = examined.frames.iter();
        let mut foreign = Ranges::default();
        let wanted = scan.asked.clone();
        let whenever = Query { from: None, to: None, ..wanted.clone() };
        let lying = Ranges::of_other_times(&exported.findings);
        let next = || {
            let Some(frame) = scan.next()? else { return Ok(None) };
            let number = frame.commitment.frame;
            // This scan's own root comes too late: nothing is written but what verified before.
            if known.next() != Some(&frame.commitment.leaf()) {
                return Err(changed(&format!(", from frame {number} on")));
            }
            if frame.foreign {
                foreign.add(number);
            }
            Ok(Some(Job { frame: number, weight: most_memory(&frame.commitment), item: frame }))
        };
        let work = |memory: &mut Memory, frame: Located| {
            let asked_for = if lying.contains(frame.commitment.frame) { &whenever } else { &wanted };
            let admitted = asked_for.admits(&frame.commitment);
            let nothing = Selection { selected: None, undecided: 0 };
            let piece = if admitted { memory.try_select(&frame, &asked, &render) } else { Ok(Ok(nothing)) };
            Ok((frame, piece))
        };
        pool::in_order(given.threads, next, work, |(frame, piece): (Located, Piece<P>)| {
            match piece {
                Ok(Ok(Selection { selected, undecided })) => {
                    exported.undecided += undecided;
                    if let Some(selected) = selected {
                        exported.entries += selected.entries;
                        exported.withheld.add(selected.withheld);
                        write(selected.piece)?;
                    }
                }
                Ok(Err(unreadable)) => exported.leave_out_for_groups(&frame, &wanted, unreadable),
                Err(error) => exported.leave_out(&frame, &wanted, error)?,
            }
            done += frame::frame_length(&frame.commitment);
            given.tell(Progress { done, total, entries: exported.entries });
            Ok(())
        })?;
        if known.next().is_some() {
            return Err(changed(": frames are gone"));
        }
        exported.left_out_unknown =
            scan.lacks_uncounted(examined.out_of_reach.is_some() || exported.unpublished.is_some());
        exported.left_out += scan.lost_entries;
        exported.findings.retain(|finding| !is_told_as_unopened(finding, &foreign));
        exported.tell_of_a_writer(&examined.snapshot)?;
        if exported.entries == 0 {
            let nothing = Nothing {
                query: &self.query,
                keys,
                erasure: examined.snapshot.config.erasure,
                size: examined.snapshot.checkpoint.size,
                whole: exported.signed
                    && (exported.left_out, exported.left_out_unknown) == (0, false)
                    && exported.unopened.is_empty(),
                unsigned: exported.unsigned(),
                unread: exported.unread_events.is_some(),
                withheld: erasures.withholds(),
            };
            exported.subjects = nothing.subjects(|| Ok(erased.clone()))?;
        }
        Ok(())
    }

    /// Which blocks are looked into: those that can hold what is asked for. Times that nobody signed rule nothing out;
    /// numbers do, since an entry has no other number than the one that its frame gives it.
    fn asked(&self, signed: bool) -> Query {
        match signed {
            true => self.query.clone(),
            false => Query { from: None, to: None, ..self.query.clone() },
        }
    }
}

impl Exported {
    /// Counts a block that could not be read; verification has told why.
    fn leave_out(&mut self, frame: &Located, asked: &Query, error: Error) -> Result<()> {
        let commitment = &frame.commitment;
        let Some(entries) = asked.clip(commitment.first_entry, commitment.entries) else { return Ok(()) };
        match error.kind() {
            ErrorKind::NoKey if frame.foreign => self.add_unopened(commitment.epoch, entries),
            ErrorKind::NoKey | ErrorKind::Tampered => self.left_out += entries.1 - entries.0 + 1,
            // Not the log's fault: what it comes to is not known.
            _ => return Err(error),
        }
        Ok(())
    }

    /// Counts a block of which a group is not what it says, and tells so: the verification had no keys of groups.
    fn leave_out_for_groups(&mut self, frame: &Located, asked: &Query, unreadable: Unreadable) {
        let commitment = &frame.commitment;
        if let Some(entries) = asked.clip(commitment.first_entry, commitment.entries) {
            self.left_out += entries.1 - entries.0 + 1;
            self.findings.push(unreadable.finding(frame));
        }
    }

    fn add_unopened(&mut self, epoch: u64, entries: (u64, u64)) {
        match self.unopened.last_mut() {
            Some(last) if last.entries.1 + 1 == entries.0 => {
                (last.epochs.1, last.entries.1) = (epoch, entries.1);
            }
            _ => self.unopened.push(Unopened { epochs: (epoch, epoch), entries }),
        }
    }
}

/// What a block gave, where its groups are what they say.
type Piece<P> = Result<Result<Selection<P>, Unreadable>>;

fn changed(how: &str) -> Error {
    Error::tampered(format!("the log changed while it was exported{how}"))
}

/// Whether a finding leaves no signature that vouches for the log's frames.
fn is_unsigned(kind: FindingKind) -> bool {
    use FindingKind::{CheckpointDamaged, ConfigMismatch, KeyMismatch, RootMismatch};
    matches!(kind, CheckpointDamaged | ConfigMismatch | KeyMismatch | RootMismatch)
}

fn is_told_as_unopened(finding: &Finding, foreign: &Ranges) -> bool {
    finding.kind == FindingKind::NotOpened && finding.frame.is_some_and(|frame| foreign.contains(frame))
}

/// Numbers that come in order, kept as ranges.
#[derive(Default)]
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// The frames whose blocks are not what their commitments say: times may not be true, either.
    fn of_other_times(findings: &[Finding]) -> Self {
        let lying = findings.iter().filter(|finding| finding.kind == FindingKind::UnitsMismatch);
        let mut lying = lying
            .filter_map(|finding| Some((finding.frame?, finding.last_frame.or(finding.frame)?)))
            .collect::<Vec<_>>();
        lying.sort_unstable();
        Ranges(lying)
    }

    fn add(&mut self, number: u64) {
        match self.0.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => self.0.push((number, number)),
        }
    }

    fn contains(&self, number: u64) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).is_some_and(|index| number <= self.0[index].1)
    }
}
