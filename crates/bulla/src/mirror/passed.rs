//! What the frames that a mirror has passed say of the next one: its numbers, its place, the seal before it, which `[log]` it may have.
//!
//! All of it is looked at that verification with public data alone looks at between two frames, so that what arrives verifies.

use super::damaged;
use crate::format::config::{LogConfig, allowed::AllowedConfig};
use crate::format::epoch::EpochBody;
use crate::format::event::Event;
use crate::format::frame::{self, Head};
use crate::format::segment::SegmentName;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::located::{Located, event_in, verified};
use crate::scan::manifest::{Frames, Manifest};
use bulla_crypto::seal_chain::Seal;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_store::{Error, Result};

/// See the module.
#[derive(Default)]
pub(super) struct Passed {
    /// The number of the next frame, and of its first entry.
    pub(super) next: u64,
    pub(super) next_entry: u64,
    /// The segment of the last frame, and where in it that ends.
    pub(super) place: Option<(SegmentName, u64)>,
    /// The frame of the current epoch: its number, and all of its bytes, with which a segment begins that continues the epoch.
    pub(super) epoch: Option<(u64, Vec<u8>)>,
    group: u64,
    seal: Seal,
    terms: Option<AllowedConfig>,
    pub(super) signed_time: Option<i64>,
}

/// A frame as it was compared with its commitment.
pub(super) struct Whole {
    pub(super) head: Head,
    pub(super) seal: Seal,
    /// Of an epoch or event, where it is no longer than those are.
    pub(super) body: Option<Vec<u8>>,
    pub(super) place: (SegmentName, u64),
}

impl Passed {
    /// What the frames under the checkpoint of a mirror say.
    ///
    /// # Errors
    /// `Tampered` where they are not there, or not what was signed; `Unavailable` where one cannot be read.
    pub(super) fn under(manifest: &Manifest) -> Result<Self> {
        let Some(last) = manifest.size().checked_sub(1) else { return Ok(Passed::default()) };
        let last = manifest.commitment(last)?;
        let mut frames = Frames::from(manifest, last.epoch)?;
        let (mut passed, mut end) = (Passed::default(), None);
        while let Some(placed) = frames.next()? {
            if placed.commitment.frame >= last.epoch {
                let located = frames.locate(placed.clone())?;
                match placed.commitment.kind {
                    FrameKind::Epoch => passed.begin(&located)?,
                    FrameKind::Event => {
                        let event = event_in(&located)?;
                        passed.terms.iter_mut().for_each(|terms| terms.take(&event));
                    }
                    _ => {}
                }
                end = Some(located);
            }
        }
        let missing = || Error::tampered(Finding::missing(None, &last).to_string());
        let end = end.ok_or_else(missing)?;
        let whole = read_whole(&end)?;
        passed.group = whole.0.group;
        passed.seal = whole.1;
        passed.next = manifest.size();
        passed.next_entry = last.first_entry.saturating_add(last.entries);
        passed.place = Some((end.segment, whole.0.end()));
        passed.signed_time = manifest.latest.map(|latest| latest.time);
        Ok(passed)
    }

    /// Takes in the frame of an epoch that is there already.
    fn begin(&mut self, epoch: &Located) -> Result<()> {
        let body = verified(epoch)?.into_body();
        let (head, seal) = read_whole(epoch)?;
        self.terms = Some(AllowedConfig::of(EpochBody::decode(&body)?.config));
        self.epoch = Some((head.commitment.frame, bytes_of(&head, &body, &seal)));
        Ok(())
    }

    /// Whether a log behind these frames may have this `[log]`.
    pub(super) fn admits(&self, digest: Hash) -> bool {
        self.terms.is_none_or(|terms| terms.admit(digest))
    }

    /// Whether `commitment` can be that of the next frame of the log with this configuration.
    ///
    /// # Errors
    /// `Tampered`, with what is wrong with it.
    pub(super) fn check(&self, commitment: &Commitment, config: &LogConfig) -> Result<()> {
        let epoch = self.epoch.as_ref().map(|(number, _)| *number);
        let wrong = if commitment.frame != self.next {
            Some("the frame's number is not its place in the tree")
        } else if commitment.first_entry != self.next_entry {
            Some("its entries do not follow those of the frame before it")
        } else if commitment.kind != FrameKind::Epoch && epoch != Some(commitment.epoch) {
            Some("it belongs to another epoch than the frames around it")
        } else if commitment.log_id != config.id {
            Some("it belongs to another log")
        } else if commitment.hash != config.hash {
            Some("its hash is not the log's")
        } else {
            None
        };
        wrong.map_or(Ok(()), |wrong| {
            let finding = Finding::new(FindingKind::Numbering, wrong).frame(self.next);
            Err(damaged(&finding.entries(commitment.first_entry, commitment.entries)))
        })
    }

    /// Takes in the next frame, which [`Passed::check`] has passed.
    ///
    /// # Errors
    /// `Tampered` where it does not go with those before it.
    pub(super) fn take(&mut self, whole: Whole) -> Result<()> {
        let Whole { head, seal, body, place: (segment, end) } = whole;
        let commitment = &head.commitment;
        let at = |kind, detail: String| {
            let finding = Finding::new(kind, detail).at(segment, head.offset).frame(commitment.frame);
            damaged(&finding.entries(commitment.first_entry, commitment.entries))
        };
        if head.group < self.group {
            return Err(at(
                FindingKind::Numbering,
                "its group is before that of the frame before it".to_owned(),
            ));
        }
        match (commitment.kind, body) {
            (FrameKind::Epoch, body) => {
                let invalid = |why: String| at(FindingKind::EpochInvalid, why);
                let body =
                    body.ok_or_else(|| invalid(format!("its body has {} bytes", commitment.body_length)))?;
                let epoch = EpochBody::decode(&body).map_err(|error| invalid(error.to_string()))?;
                if epoch.previous_seal != self.seal {
                    let detail = format!(
                        "this epoch frame records another seal of frame {}",
                        self.next.saturating_sub(1)
                    );
                    return Err(at(FindingKind::SealMismatch, detail));
                }
                if !self.admits(epoch.config) {
                    let detail =
                        "the epoch was begun with another [log] than the one before, and no event allows it";
                    return Err(at(FindingKind::ConfigMismatch, detail.to_owned()));
                }
                self.terms = Some(AllowedConfig::of(epoch.config));
                self.epoch = Some((commitment.frame, bytes_of(&head, &body, &seal)));
            }
            // One that is none allows nothing. It is what was signed, and verification tells of it here as there.
            (FrameKind::Event, Some(body)) => {
                if let (Ok(event), Some(terms)) = (Event::decode(&body), &mut self.terms) {
                    terms.take(&event);
                }
            }
            _ => {}
        }
        if matches!(commitment.kind, FrameKind::Epoch | FrameKind::Event) {
            self.signed_time = Some(commitment.latest);
        }
        self.next_entry = commitment.first_entry.saturating_add(commitment.entries);
        self.next = commitment.frame + 1;
        (self.group, self.seal, self.place) = (head.group, seal, Some((segment, end)));
        Ok(())
    }
}

/// The head and the seal of a frame that is there.
fn read_whole(frame: &Located) -> Result<(Head, Seal)> {
    let failed = |error| Error::io(format!("reading {}", frame.segment.path()), error);
    let length = frame.file.length().map_err(failed)?;
    let not_it = |why: String| {
        let finding = Finding::new(FindingKind::FrameDamaged, why).at(frame.segment, frame.offset);
        Error::tampered(format!("{}; `bulla verify` tells all", finding.frame(frame.commitment.frame)))
    };
    let head = match frame::read_head(&*frame.file, frame.offset, length) {
        Ok(head) if head.encoded == frame.commitment.encode() => head,
        Ok(_) => return Err(not_it("its commitment is not the one that was signed".to_owned())),
        Err(frame::ReadError::Frame(error)) => return Err(not_it(error.to_string())),
        Err(frame::ReadError::Io(error)) => return Err(failed(error)),
    };
    let seal = frame::read_seal(&*frame.file, head.end()).map_err(failed)?;
    Ok((head, seal))
}

/// A frame as it lies in a segment.
fn bytes_of(head: &Head, body: &[u8], seal: &Seal) -> Vec<u8> {
    let mut bytes = frame::encode_head(&head.encoded, body.len(), head.group).to_vec();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(seal);
    bytes
}
