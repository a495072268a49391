//! Sealing: what leaves the staging queue becomes frames, by as many threads as like.
//!
//! Invariant: every number that the sequencer gave has an outcome. A block that cannot be sealed becomes a gap in its place. An
//! epoch that cannot be sealed, and a block whose data subjects' keys cannot be had, fails the log: that is the environment's
//! failure, as a full disk is, and costs nothing that may be acknowledged.

use super::Engine;
use super::committing::{SealedFrame, Staged};
use super::grouping;
use super::locks::Rank;
use super::sequencer::{Control, FrameAssignment};
use super::sources::{BlockSource, PlacesOfBlock};
use super::subject_keys::SubjectKeys;
use crate::format::epoch::seal_epoch;
use crate::format::groups::Grouping;
use crate::format::sealed::Sealed;
use crate::index::{Gathered, Indexer};
use crate::write::seal::BlockSealer;
use crate::write::stage::block_size::BlockOutcome;
use crate::write::stage::buffer::Slice;
use crate::write::stage::queue::{Batch, Work};
use crate::write::telemetry::{count, timed};
use bulla_columns::account::Account;
use bulla_crypto::group::BlockContext;
use bulla_crypto::{epoch::EpochSecret, scrub::scrubbed, yielding};
use bulla_proof::commitment::FrameKind;
use bulla_store::{Error, ErrorKind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Engine {
    /// Working memory for [`Engine::seal_next`].
    pub(crate) fn sealer(&self) -> BlockSealer {
        let account = Account::timed_by({
            let clock = self.environment.clock.clone();
            Arc::new(move || clock.steady())
        });
        BlockSealer::new(self.tuning.compression, account.with_point(yielding::point))
    }

    /// Takes the next frame from the staging queue, with its numbers, and seals it; waits for one where `block`. False where
    /// there is none.
    pub(crate) fn seal_next(&self, sealer: &mut BlockSealer, block: bool) -> bool {
        match self.staging.take(block) {
            None => false,
            Some(Work::Control(assignment)) => {
                let epoch = assignment.numbers.epoch;
                match self.seal_control(assignment) {
                    Ok(frame) => self.commits.put(SealedFrame { frame, staged: None }),
                    Err(error) => self.fail(&error),
                }
                // The index of the epoch before keeps that one's keys until it is written: now.
                self.index(|indexer| indexer.begin_epoch(epoch, &self.environment));
                true
            }
            Some(Work::Block(assignment, batch)) => {
                // A vault that cannot be written may be mended as a medium may. Meanwhile the rows stay where they are.
                let sealed = self.back_off.retry(is_passing, || self.seal_block(sealer, &assignment, &batch));
                let (mut frame, sources) = match sealed {
                    Ok(sealed) => sealed,
                    Err(error) => {
                        self.fail(&without_keys(assignment.numbers.frame, &error));
                        let nothing = BlockOutcome { groups: 0, body: usize::MAX, dictionaries: 0 };
                        self.staging.release(batch, nothing);
                        return true;
                    }
                };
                let account = sealer.account().settle();
                if frame.commitment.kind == FrameKind::Block {
                    self.meter.sealed(&account);
                    count(&self.meter.blocks, 1);
                    count(&self.meter.groups, frame.groups);
                    count(&self.meter.row_bytes, batch.bytes as u64);
                }
                let gathered = gather(&mut frame, &assignment);
                let staged =
                    Some(Staged { bytes: batch.bytes, last: batch.last, since: batch.since, sources });
                let (body, dictionaries) = match self.tuning.block_size_chosen {
                    true => (usize::MAX, 0),
                    false => {
                        let sources = usize::try_from(frame.commitment.sources_length).unwrap_or(0);
                        (frame.body.len() - sources, account.dictionaries)
                    }
                };
                self.staging.release(batch, BlockOutcome { groups: frame.groups, body, dictionaries });
                self.commits.put(SealedFrame { frame, staged });
                // This comes last, so that no block waits for the index.
                self.index(|indexer| indexer.add(gathered, &self.environment));
                true
            }
        }
    }

    /// Writes some of the index, unless the log's directory was found to be another one.
    fn index(&self, write: impl FnOnce(&Indexer)) {
        if !self.was_replaced() {
            write(&self.indexer);
        }
    }

    /// Seals a block; where that fails, or panics, a gap in its place says how many entries were lost.
    ///
    /// # Errors
    /// Where the keys of its data subjects cannot be had. Nothing of the block is sealed then.
    fn seal_block(
        &self,
        sealer: &mut BlockSealer,
        assignment: &FrameAssignment,
        batch: &Batch,
    ) -> Result<(Sealed, Vec<BlockSource>)> {
        let cipher = &*self.environment.cipher;
        let _held = Rank::Sealing.hold();
        let _sealing = self.sealing.read().unwrap_or_else(PoisonError::into_inner);
        let sealed = catch_unwind(AssertUnwindSafe(|| {
            let (rows, grouping, places) = self.group(batch, assignment)?;
            let (sources, section) = self.section_of(places, batch.first(), &assignment.keys)?;
            let (clock, identity, keys) = (&*self.environment.clock, self.identity, &assignment.keys);
            let seal = || sealer.seal(identity, assignment.numbers, keys, cipher, &rows, &grouping, section);
            Ok::<_, Error>((timed(clock, &self.meter.sealing, seal), sources))
        }));
        match sealed {
            Ok(Ok((Ok(frame), sources))) => return Ok((frame, sources)),
            Ok(Err(error)) if error.kind() != ErrorKind::Invalid => return Err(error),
            // The block's own fault: a panic, rows that are none, a cipher that refuses.
            _ => {}
        }
        *sealer = self.sealer();
        self.progress.lost(batch.first(), batch.last);
        count(&self.meter.lost, batch.entries);
        // It holds nothing of any source.
        Ok((Sealed::gap(self.identity, assignment.numbers, self.seconds(), batch.entries), Vec::new()))
    }

    /// Finds a block's rows, which of them are in which group, and their places.
    fn group<'b>(
        &self,
        batch: &'b Batch,
        assignment: &FrameAssignment,
    ) -> Result<(Vec<&'b [u8]>, Grouping, PlacesOfBlock)> {
        timed(&*self.environment.clock, &self.meter.grouping, || {
            let mut rows = Vec::with_capacity(usize::try_from(batch.entries).unwrap_or(0));
            let mut places = PlacesOfBlock::default();
            for (row, place) in batch.slices.iter().flat_map(Slice::rows) {
                rows.push(row);
                place.iter().for_each(|place| places.add(place));
            }
            let Some(SubjectKeys { subjects, .. }) = &self.subject_keys else {
                return Ok((rows, Grouping::NONE, places));
            };
            let (log, frame) = (self.identity.log, assignment.numbers.frame);
            let place = BlockContext { log, epoch_random: assignment.keys.random(), frame };
            let grouping = grouping::group(&rows, place, &**subjects)?;
            Ok((rows, Grouping { common: self.common, ..grouping }, places))
        })
    }

    fn seal_control(&self, assignment: FrameAssignment) -> Result<Sealed> {
        let seconds = self.seconds();
        self.told.store(seconds, Ordering::Relaxed);
        match assignment.control {
            Some(Control::Event(event)) => {
                Ok(Sealed::event(self.identity, assignment.numbers, seconds, &event))
            }
            Some(Control::Epoch(secret, config)) => {
                let wrapped = self.wrap_with_retries(&secret, &config.recipients)?;
                Ok(seal_epoch(
                    self.identity,
                    assignment.numbers,
                    seconds,
                    config.digest,
                    &assignment.keys,
                    wrapped,
                ))
            }
            None => Err(Error::unavailable("a frame without content was numbered")),
        }
    }

    /// Wraps an epoch's key. A plugin, and what it talks to, may fail and come back as a medium may, and is tried again.
    /// One that hung is not: the entries behind it have waited for `plugin_timeout` already.
    fn wrap_with_retries(&self, secret: &EpochSecret, recipients: &[String]) -> Result<Vec<u8>> {
        let wrap = || {
            let limit = self.tuning.plugin_timeout;
            scrubbed(|| self.environment.key_wrap.wrap(recipients, secret.bytes(), limit))
        };
        self.back_off.retry(|error| is_passing(error) && !timed_out(error), wrap)
    }
}

/// The error of a log that goes no further than the frames before this one.
fn without_keys(frame: u64, error: &Error) -> Error {
    let message = format!(
        "nothing can be committed from frame {frame} on, for want of its data subjects' keys: {error}"
    );
    Error::new(error.kind(), message)
}

fn is_passing(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
}

fn timed_out(error: &Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut)
}

/// What a block can be found by.
fn gather(frame: &mut Sealed, assignment: &FrameAssignment) -> Gathered {
    let (tokens, keys) = (std::mem::take(&mut frame.tokens), assignment.keys.clone());
    Gathered { commitment: frame.encoded, frame: assignment.numbers.frame, keys, tokens }
}
