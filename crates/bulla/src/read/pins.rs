//! The pins that a verification is given: compared with the log, and advanced where nothing speaks against it.
//!
//! Invariants:
//! - a pin is read before the log is: what it covers was durable by then, and published or about to be;
//! - it is made or advanced only after a verification that found no violation, to the checkpoint that was verified.

use crate::format::config::signed::OwnKeys;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::full::{AtPin, Scan};
use crate::scan::pin::{Advanced, Pin, PinFile};
use crate::scan::snapshot::Snapshot;
use crate::scan::stored_tree;
use crate::scan::trust::Trust;
use crate::write::engine::pins::refuse_inside;
use bulla_crypto::environment::{Clock, Environment, Interrupt};
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the checkpoint is looked at again of a writer that has advanced the pin and is about to publish.
const ATTEMPTS: u32 = 100;
/// The wait between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What a verification did with the pin that it was to advance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinReport {
    /// Where the pin lies.
    pub path: PathBuf,
    /// How many frames it covered before; `None` where there was no pin.
    pub before: Option<u64>,
    /// How many it covers now; `None` where there is none.
    pub frames: Option<u64>,
    /// Why it was not made or advanced, where the log was verified and it should have been.
    pub failure: Option<String>,
}

/// A pin that a verification was given.
pub(super) struct Asked {
    path: PathBuf,
    /// Whether it is made and advanced.
    advances: bool,
    /// Whether it is known to have been there.
    known: bool,
}

impl Asked {
    pub(super) fn advancing(path: &Path) -> Self {
        Asked { path: absolute(path), advances: true, known: false }
    }

    pub(super) fn advances(&self) -> bool {
        self.advances
    }

    pub(super) fn known(path: &Path) -> Self {
        Asked { path: absolute(path), advances: false, known: true }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Pins as they were read.
pub(super) struct Pins(Vec<AtHand>);

struct AtHand {
    pin: Pin,
    advances: bool,
    /// `None` where there is none.
    head: Option<TreeHead>,
}

impl Pins {
    /// Reads the pins, with what is wrong with them as findings; `can_make` says whether it will be known whose the log is.
    ///
    /// # Errors
    /// `Refused` where one is none, is known to have been there and is gone, or is to be advanced on a path of `log`; `Invalid` where
    /// one is to be made of a log of which nobody knows whose it is; `Unavailable` where one cannot be read.
    pub(super) fn read(
        log: &dyn Store,
        asked: Vec<Asked>,
        pins: Option<&Arc<dyn Store>>,
        (keys, can_make): (OwnKeys<'_>, bool),
        clock: &Arc<dyn Clock>,
    ) -> Result<(Self, Vec<Finding>)> {
        let mut asked = asked;
        // One that is known to have been there is not made again, whoever names it.
        asked.sort_by(|one, other| (&one.path, !one.advances).cmp(&(&other.path, !other.advances)));
        asked.dedup_by(|next, kept| {
            let same = next.path == kept.path;
            kept.known |= same && next.known;
            same
        });
        let (mut read, mut findings) = (Vec::new(), Vec::new());
        for Asked { path, advances, known } in asked {
            if advances && pins.is_none() {
                refuse_inside(log, &path)?;
            }
            let pin = Pin::at(&path, pins.cloned(), clock.clone());
            let head = match pin.read(keys)? {
                PinFile::Head(head) => Some(head),
                PinFile::Foreign(why) => {
                    findings.push(Finding::new(FindingKind::PinMismatch, why));
                    None
                }
                PinFile::Nothing if known => {
                    return Err(pin.refuse_gone(", and the log's keys remember it"));
                }
                PinFile::Nothing if !can_make => {
                    return Err(Error::invalid(format!(
                        "there is no pin {} yet, and one is made only of a log of which it is known whose it is: name its key, or \
                         bring its seal state",
                        path.display()
                    )));
                }
                PinFile::Nothing => None,
            };
            read.push(AtHand { pin, advances, head });
        }
        Ok((Pins(read), findings))
    }

    /// Has the scan find out what the log is where each pin ends.
    pub(super) fn expect(&self, scan: &mut Scan<'_>) {
        for (_, head) in self.heads() {
            scan.expect_pin(head);
        }
    }

    fn heads(&self) -> impl Iterator<Item = (&Pin, TreeHead)> {
        self.0.iter().filter_map(|at_hand| Some((&at_hand.pin, at_hand.head?)))
    }

    /// What speaks against the log, of which the scan has come to its end. `quiet` says that no writer can have been at work.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(super) fn judge(
        &self,
        scan: &Scan<'_>,
        (log, trust): (&Snapshot, &Trust),
        quiet: bool,
        clock: &dyn Clock,
    ) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        for (index, (pin, head)) in self.heads().enumerate() {
            let at_pin = scan.root_of_pin(index);
            // Beside a writer, frames past the checkpoint may be about to lie elsewhere.
            let at_pin = match at_pin {
                Some(AtPin::Other | AtPin::Shorter { .. }) if !quiet && head.size > log.checkpoint.size => {
                    Some(published(log, trust, head, clock)?)
                }
                at_pin => at_pin,
            };
            findings.extend(match at_pin {
                None | Some(AtPin::Same) => None,
                Some(AtPin::Other) => {
                    let mut finding =
                        Finding::new(FindingKind::PinMismatch, pin.earlier(head).is_other()).frame(0);
                    finding.last_frame = Some(head.size.saturating_sub(1));
                    Some(finding)
                }
                Some(AtPin::Shorter { frames }) => {
                    let finding = Finding::new(FindingKind::PinMismatch, pin.earlier(head).is_ahead());
                    let mut finding = finding.frame(frames.min(head.size - 1));
                    finding.last_frame = Some(head.size - 1);
                    Some(finding)
                }
            });
        }
        Ok(findings)
    }

    /// Makes or advances the pins that are to be, to the newest checkpoint of `log` that is believed, of which nothing but this may speak against that, and tells
    /// of it; `is_ok` says that nothing else does.
    pub(super) fn advance(&self, log: &Snapshot, is_ok: bool) -> (Option<PinReport>, Option<Finding>) {
        let Some(AtHand { pin, head, .. }) = self.0.iter().find(|at_hand| at_hand.advances) else {
            return (None, None);
        };
        let before = head.map(|head| head.size);
        let report = PinReport { path: pin.path().to_owned(), before, frames: before, failure: None };
        if !is_ok {
            return (Some(report), None);
        }
        let (to, note) = log.believed_checkpoint();
        let advanced = match head {
            None => pin.make(note).map(|()| to.size),
            Some(_) => {
                let advanced = pin.advance((&*log.store, log.config.own_keys()), (to, note), None);
                advanced.map(|advanced| match advanced {
                    // A writer has, meanwhile.
                    Advanced::To(head) | Advanced::IsAhead(head) => head.size,
                })
            }
        };
        match advanced {
            Ok(frames) => (Some(PinReport { frames: Some(frames), ..report }), None),
            Err(error) if error.kind() == ErrorKind::Tampered => {
                (Some(report), Some(Finding::new(FindingKind::PinMismatch, error.to_string())))
            }
            Err(error) => (Some(PinReport { failure: Some(error.to_string()), ..report }), None),
        }
    }
}

/// What the log is found to be that a pin is of which a writer has advanced beyond the checkpoint that was read: it publishes it next.
fn published(log: &Snapshot, trust: &Trust, pinned: TreeHead, clock: &dyn Clock) -> Result<AtPin> {
    let mut frames = log.checkpoint.size;
    for _ in 0..ATTEMPTS {
        match log.renewed_in_part(trust) {
            Ok(now) => {
                let head = TreeHead { size: now.checkpoint.size, root: now.checkpoint.root };
                frames = head.size;
                if head.size >= pinned.size
                    && let Some(root) = stored_tree::root_at(&*now.store, head, pinned.size)?
                {
                    return Ok(if root == pinned.root { AtPin::Same } else { AtPin::Other });
                }
            }
            // It may be about to be another one.
            Err(error) if error.kind() == ErrorKind::Tampered => {}
            Err(error) => return Err(error),
        }
        clock.wait(PAUSE, &Interrupt::default());
    }
    Ok(AtPin::Shorter { frames })
}

/// How many frames the pin at `path` covers, of the log whose key is `key`; `None` where there is none.
///
/// # Errors
/// `Refused` where it is none, or another log's; `Unavailable` where it cannot be read.
pub fn pinned_frames(path: impl AsRef<Path>, key: &VerifierKey) -> Result<Option<u64>> {
    let clock = Environment::default().clock;
    match Pin::at(&absolute(path.as_ref()), None, clock).read(key)? {
        PinFile::Head(head) => Ok(Some(head.size)),
        PinFile::Foreign(why) => Err(Error::new(ErrorKind::Refused, why)),
        PinFile::Nothing => Ok(None),
    }
}
