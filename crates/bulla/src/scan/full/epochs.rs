//! Epochs: their frames, the copies of those at the beginnings of segments, and their keys.

use super::{Epoch, Last, Scan};
use crate::format::config::allowed::AllowedConfig;
use crate::format::epoch::{EpochBody, MAX_EPOCH};
use crate::format::event::Event;
use crate::format::frame::{self, Head};
use crate::scan::cursor::Cursor;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::located::Located;
use crate::scan::stored_tree::Chunk;
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::{Hash, sha256};
use bulla_proof::tree;
use bulla_store::{ErrorKind, Result};
use std::sync::Arc;

impl Scan<'_> {
    /// Passes the copy of the epoch frame with which a segment begins that continues an epoch.
    pub(super) fn skip_copy(&mut self, frame: u64) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let cursor = open.cursor.clone();
        let (name, next) = (cursor.name, cursor.peek()?);
        let kind = match &next {
            Some(Ok(head)) if head.commitment.frame == frame => Some(head.commitment.kind as u8),
            // One source alone may be wrong.
            _ => self.chunk.agreed(frame).map(|entry| entry[1]),
        };
        if frame >= self.size {
            // Beyond the checkpoint nothing is settled, and a crash may have torn it: it is part of the tail.
            if let (Some(Ok(head)), Some(open)) = (next, &mut self.open)
                && cursor.is_copy(&head)
            {
                open.cursor.pass(&head);
            }
            return Ok(());
        }
        let continues = kind.is_some_and(|kind| kind != FrameKind::Epoch as u8) && frame == name.first;
        let (end, damage) = match next {
            Some(Ok(head)) if cursor.is_copy(&head) => {
                let begins = kind == Some(FrameKind::Epoch as u8) && frame == name.first;
                let damage = self.check_copy(&head, &cursor)?;
                (head.end(), damage.or(begins.then_some("the segment begins an epoch of its own")))
            }
            Some(Ok(_)) if continues => (0, Some("it is missing")),
            Some(Err(_)) if continues => {
                let known = self.epoch.as_ref().and_then(|epoch| Commitment::decode(&epoch.encoded).ok());
                let known = known.map_or(0, |commitment| frame::frame_length(&commitment)).min(cursor.length);
                let found = self.find_sound(frame)?.filter(|head| head.commitment.frame == frame);
                (found.map_or(known, |head| head.offset), Some("it is damaged"))
            }
            _ => return Ok(()),
        };
        if let Some(open) = &mut self.open {
            open.cursor.offset = end;
        }
        if let Some(damage) = damage {
            let detail = format!("the segment begins with a copy of its epoch's frame: {damage}");
            let mut finding = Finding::new(FindingKind::FrameDamaged, detail).at(name, 0);
            if let Some(epoch) = &self.epoch {
                finding = finding.frame(epoch.number);
            }
            self.add(finding.unless_explained_elsewhere(&self.not_there));
        }
        Ok(())
    }

    /// What is wrong with a copy of an epoch frame, if anything. One that is sound stands in for an original that is
    /// not.
    pub(super) fn check_copy(&mut self, head: &Head, cursor: &Cursor) -> Result<Option<&'static str>> {
        let number = head.commitment.frame;
        if self.epoch.as_ref().is_none_or(|epoch| epoch.number < number) {
            // The original was not met: the tree may know it.
            let chunk = Chunk::load(self.store, number, self.size)?;
            let leaf = tree::leaf_hash(&head.encoded);
            if number < self.size
                && (chunk.entry(number) == Some(head.encoded) || chunk.leaf(number) == Some(leaf))
            {
                self.epoch = Some(Epoch::new(number, head.encoded));
            }
        }
        let Some(epoch) = self.epoch.as_ref().filter(|epoch| epoch.encoded == head.encoded) else {
            return Ok(Some("it is not that frame's"));
        };
        let seal = cursor.seal(head.end())?;
        let body = read_epoch(&cursor.locate(head.commitment.clone(), head.offset))?;
        Ok(match (epoch.original, body) {
            (_, None) => Some("its body does not have the digest in its commitment"),
            (Some((group, _)), _) if group != head.group => Some("its header differs from the original's"),
            (Some((_, original)), _) if original != seal && !epoch.seal_told => {
                Some("its seal and the original's differ")
            }
            (_, Some(body)) => {
                let (without_keys, random) = (epoch.keys.is_none(), body.random);
                self.epoch.iter_mut().for_each(|epoch| epoch.random = Some(random));
                if without_keys {
                    let keys = match self.open_epoch(&head.commitment, &body) {
                        Err(error) if error.kind() != ErrorKind::Tampered => return Err(error),
                        keys => keys.ok().flatten(),
                    };
                    self.epoch.iter_mut().for_each(|epoch| epoch.keys.clone_from(&keys));
                }
                None
            }
        })
    }

    /// Takes an epoch frame in: its configuration digest, its link to the frame before, its key.
    pub(super) fn begin_epoch(&mut self, located: &Located, previous: Option<Last>) -> Result<()> {
        let Located { commitment, segment, offset, .. } = located;
        let number = commitment.frame;
        let invalid = |detail: String| {
            Finding::new(FindingKind::EpochInvalid, detail).at(segment, *offset).frame(number)
        };
        let unsure = std::mem::replace(&mut self.unsure_terms, true);
        if commitment.body_length > MAX_EPOCH {
            self.keys.lose_epoch(number);
            self.add(invalid(format!("its body has {} bytes", commitment.body_length)));
            return Ok(());
        }
        let body = located.body()?;
        if sha256(&[&body]) != commitment.body_digest {
            // Whoever verifies the frame's body tells of it.
            self.keys.lose_epoch(number);
            return Ok(());
        }
        let body = match EpochBody::decode(&body) {
            Ok(body) => body,
            Err(error) => {
                self.keys.lose_epoch(number);
                self.add(invalid(error.to_string()));
                return Ok(());
            }
        };
        self.epoch.iter_mut().for_each(|epoch| epoch.random = Some(body.random));
        self.unsure_terms = false;
        self.keys.epoch(number, body.config);
        let place = Finding::new(FindingKind::ConfigMismatch, "").at(segment, *offset).frame(number);
        self.follow_config(body.config, unsure, place);
        if number == 0 && body.previous_seal != [0; 32] {
            self.add(invalid("it names a seal before it, but it is the first frame".to_owned()));
        }
        // This body is in the tree, the seal before it is not: where they differ, the seal is wrong.
        if let Some(last) = previous.filter(|last| last.seal != body.previous_seal && !last.told) {
            self.add(last.finding);
        }
        match self.open_epoch(commitment, &body) {
            Ok(keys) => self.epoch.iter_mut().for_each(|epoch| epoch.keys.clone_from(&keys)),
            // What keeps a key from being asked for (a plugin that fails) says nothing of the log.
            Err(error) if error.kind() != ErrorKind::Tampered => return Err(error),
            Err(error) => self.add(invalid(error.to_string())),
        }
        Ok(())
    }

    /// An epoch has the `[log]` of the one before, or the one that an event between them allows.
    fn follow_config(&mut self, digest: Hash, unsure: bool, place: Finding) {
        let known = self.terms.as_ref().filter(|_| !unsure);
        if known.is_some_and(|(terms, _)| !terms.admit(digest)) {
            let detail =
                "its [log] is not that of the epoch before, and no event between them allows the change";
            self.add(Finding { detail: detail.to_owned(), ..place.clone() });
        }
        let since = self.terms.take().filter(|(terms, _)| terms.current == digest).map(|(_, since)| since);
        self.terms = Some((AllowedConfig::of(digest), since.unwrap_or(place)));
    }

    /// Takes in what an event allows.
    pub(super) fn take_event(&mut self, event: &Event) {
        let Some((terms, _)) = &mut self.terms else { return };
        match event.configures() {
            // The epoch that it speaks of may be one that was not seen.
            Some((_, after)) if self.unsure_terms => terms.next = after,
            _ => terms.take(event),
        }
    }

    /// `bulla.toml` has the `[log]` of the last epoch, or the one that an event since then allows.
    pub(super) fn check_config(&mut self) {
        let known = self.terms.clone().filter(|(terms, _)| !terms.admit(self.config.digest));
        let edited = known.map(|(_, since)| {
            if since.frame.is_none() {
                return since;
            }
            let detail = "[log] of bulla.toml is not the one that epochs were begun with from this one on";
            Finding { detail: detail.to_owned(), ..since }
        });
        // Of a file that was edited that much is told, and not what it comes to.
        let foreign = self.foreign.take();
        edited.or(foreign).into_iter().for_each(|finding| self.add(finding));
    }

    /// Derives the current epoch's keys, where there is an identity and it fits.
    pub(super) fn open_epoch(
        &mut self,
        commitment: &Commitment,
        body: &EpochBody,
    ) -> Result<Option<Arc<EpochKeys>>> {
        let Some(identity) = &self.identity else { return Ok(None) };
        let Some(keys) = body.unlock(commitment, &**identity)? else {
            self.foreign_epochs += 1;
            self.epoch.iter_mut().for_each(|epoch| epoch.foreign = true);
            return Ok(None);
        };
        self.opened_epochs += 1;
        Ok(Some(Arc::new(keys)))
    }

    /// A frame with the keys of its epoch, or with why there are none.
    pub(super) fn with_keys(&self, located: Located) -> Located {
        match self.epoch.as_ref().filter(|epoch| epoch.number == located.commitment.epoch) {
            Some(Epoch { keys, random, foreign, .. }) => {
                Located { keys: keys.clone(), foreign: *foreign, epoch_random: *random, ..located }
            }
            None => located,
        }
    }
}

/// The body of an epoch frame; `None` where it is damaged, of which whoever verifies the frame's body tells.
fn read_epoch(frame: &Located) -> Result<Option<EpochBody>> {
    if frame.commitment.body_length > MAX_EPOCH {
        return Ok(None);
    }
    let body = frame.body()?;
    let sound = sha256(&[&body]) == frame.commitment.body_digest;
    Ok(EpochBody::decode(&body).ok().filter(|_| sound))
}
