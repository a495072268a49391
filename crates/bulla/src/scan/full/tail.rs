//! The end of the scan: the tree's right edge, what lies beyond the checkpoint, and what lies nowhere.

use super::{Known, Scan, Tail};
use crate::format::config::allowed::AllowedConfig;
use crate::format::event::{Event, MAX_EVENT};
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::paths::with_way_out;
use crate::scan::unsigned::not_those;
use bulla_crypto::seal_chain::SealChain;
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_proof::tree::{self, Frontier};
use bulla_store::Result;

/// What a log is that a pin is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtPin {
    /// It begins with the pin's frames.
    Same,
    /// It begins with others.
    Other,
    /// It ends before that, behind so many frames.
    Shorter { frames: u64 },
}

impl Scan<'_> {
    /// Ends the scan: the tree's right edge, and root where a checkpoint has one, what lies beyond the checkpoint, and what lies nowhere.
    pub(crate) fn finish(&mut self, root: Option<Hash>) -> Result<Tail> {
        self.tell_lost(None);
        if !self.broken {
            for (id, hashes) in self.tiles.partials() {
                self.check_tile(id, &hashes)?;
            }
        }
        if root.is_some_and(|root| self.broken || self.tiles.root() != root) {
            let detail = "the frames do not have the root that the checkpoint signs";
            self.add(Finding::new(FindingKind::RootMismatch, detail));
        }
        self.check_config();
        self.check_orders();
        let covered = self.unreferenced.len();
        self.read_to.extend(self.open.as_ref().map(|open| (open.cursor.name, open.cursor.offset)));
        self.contradict_events();
        let settled = self.events.len();
        let mut tail = self.walk_tail()?;
        for (index, bytes) in std::mem::take(&mut self.unreferenced).into_iter().enumerate() {
            if index >= covered && !bytes.is_explained(&self.events) {
                // Left by the frames beyond the checkpoint, whose events are still to come.
                tail.at.get_or_insert((bytes.name, bytes.offset));
                tail.bytes += bytes.length;
                continue;
            }
            // An event beyond the checkpoint is nobody's yet: it explains nothing below.
            let events = if index < covered { &self.events[..settled] } else { &self.events[..] };
            let finding = bytes.finding(self.store, events, &self.not_there)?;
            self.add(finding);
        }
        Ok(tail)
    }

    /// Where an event says that a segment's end counts for nothing, no frame may have been read from there: the
    /// segment that has them is gone.
    fn contradict_events(&mut self) {
        for (segment, offset) in self.events.iter().filter_map(Event::explains) {
            let read = self.read_to.iter().find(|(name, _)| name.to_string() == segment);
            if read.is_some_and(|(_, to)| *to > offset) {
                let detail = "frames were found only in bytes that count for nothing by an event of the log: the \
                              segment that took their place is missing";
                let finding = Finding::new(FindingKind::SurplusBytes, detail).at(segment, offset);
                self.findings.add(finding.where_it_may_be(&self.not_there));
            }
        }
    }

    /// Tells of what is missing, or other, of the frames that are known to be there.
    pub(crate) fn check_known(&mut self) {
        let Some(Known { frames, root, found }) = self.known.take().filter(|_| !self.broken) else { return };
        let finding = match found {
            Some(found) if found == root => return,
            Some(_) => {
                let detail = format!(
                    "the first {} that the seal state in the key directory was written for",
                    not_those(frames)
                );
                Finding::new(FindingKind::RootMismatch, detail)
            }
            None => {
                let detail = "the seal state in the key directory was written for a log that has them: they are missing \
                              or damaged, or an older copy of the log was put in its place";
                let mut finding = Finding::new(FindingKind::FramesMissing, detail).frame(self.next);
                finding.last_frame = Some(frames - 1);
                finding.where_it_may_be(&with_way_out(&self.not_there))
            }
        };
        self.add(finding);
    }

    /// Whether frames are missing of which nobody can tell how many of the entries that are asked for they had, of a scan that has gone
    /// through all frames. `beyond` says that frames are which come behind these.
    pub(crate) fn lacks_uncounted(&mut self, beyond: bool) -> bool {
        self.tell_lost(None);
        if beyond {
            self.leave_uncounted(self.next_entry);
        }
        self.uncounted
    }

    /// Passes frames that may have had any number of entries from this one on; nothing where it is not known, either, which one that is.
    pub(super) fn leave_uncounted(&mut self, first: Option<u64>) {
        let last = self.asked.last_entry;
        self.uncounted |= first.zip(last).is_none_or(|(first, last)| first <= last);
    }

    /// What the log is found to be that a pin is of: see [`Scan::expect_pin`]. Nothing where that cannot be told of a log that is
    /// damaged, of which more is told.
    pub(crate) fn root_of_pin(&self, pin: usize) -> Option<AtPin> {
        let Known { root, found, .. } = self.pinned.get(pin).filter(|_| !self.broken)?;
        Some(match found {
            Some(found) if found == root => AtPin::Same,
            Some(_) => AtPin::Other,
            None => AtPin::Shorter { frames: self.next },
        })
    }

    /// Whether frames were passed of which neither segment nor tree tells what they were.
    pub(crate) fn lacks_leaves(&self) -> bool {
        self.unknown > 0
    }

    /// The tree of the frames that the checkpoint covers; nothing where not all of them are known.
    pub(crate) fn frontier(&self) -> Option<Frontier> {
        (!self.broken && self.tiles.size() == self.size).then(|| self.tiles.frontier())
    }

    /// The seal chain behind those frames, where it is known.
    pub(crate) fn chain(&self) -> Option<SealChain> {
        self.seals.chain().filter(|chain| chain.next_frame() == self.size)
    }

    /// Which `[log]` may follow them.
    pub(crate) fn terms(&self) -> AllowedConfig {
        self.terms.as_ref().map_or(AllowedConfig::of(self.config.digest), |(terms, _)| *terms)
    }

    /// Counts what follows the frames that the checkpoint covers, as far as it looks sound.
    pub(super) fn walk_tail(&mut self) -> Result<Tail> {
        let mut tail = Tail::default();
        let mut tree = self.frontier();
        loop {
            self.seek(self.next)?;
            let Some(Some(head)) = self.read_head()?.ok() else { break };
            let Some(open) = self.open.as_mut().filter(|_| head.commitment.frame == self.next) else { break };
            tail.at.get_or_insert((open.cursor.name, open.cursor.offset));
            tail.frames += 1;
            tail.bytes += head.length();
            open.cursor.pass(&head);
            if let Some(tree) = &mut tree {
                tree.push(tree::leaf_hash(&head.encoded));
                let known = self.known.iter_mut().chain(&mut self.pinned);
                for known in known.filter(|known| known.frames == tree.size()) {
                    known.found = Some(tree.root());
                }
            }
            if head.commitment.kind == FrameKind::Event && head.commitment.body_length <= MAX_EVENT {
                let body = open.cursor.locate(head.commitment, head.offset).body();
                self.events.extend(body.ok().and_then(|body| Event::decode(&body).ok()));
            }
            self.next += 1;
        }
        let open = self.open.take();
        if let Some(open) = open.as_ref().filter(|open| open.cursor.offset < open.cursor.length) {
            tail.at.get_or_insert((open.cursor.name, open.cursor.offset));
            tail.bytes += open.cursor.length - open.cursor.offset;
        }
        for &name in &self.segments[open.map_or(0, |open| open.index + 1)..] {
            let length = self.length_of(name)?;
            if length > 0 {
                tail.at.get_or_insert((name, 0));
                tail.bytes += length;
            }
        }
        Ok(tail)
    }
}
