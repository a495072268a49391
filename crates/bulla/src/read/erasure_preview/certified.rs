//! That an order was carried out, by its certificate: where the log was put back to before that, it does not tell so any more.

use crate::format::event::Event;
use crate::read::reader::Reader;
use bulla_proof::Policy;
use bulla_proof::hash::Hash;
use bulla_proof::note::SignedNote;
use bulla_proof::order::Order;
use bulla_proof::proof::EventProof;
use bulla_proof::tile::tile_hash;
use bulla_store::{Error, ErrorKind, Result};
use std::ops::Range;

/// An erasure of a log, by its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    pub(super) order: Order,
    /// Who was erased, ascending.
    pub(super) numbers: Vec<u64>,
    /// When, by the writing host's clock, in seconds since the epoch.
    pub(super) seconds: i64,
    /// What the log had by then: nodes of its tree over the frames before that, from the first on.
    before: Vec<(Range<u64>, Hash)>,
}

impl Certified {
    /// How many of a log's first frames, by the hashes of its leaves, were in it when that was done, as far as the certificate shows.
    pub(super) fn shared(&self, leaves: &[Hash]) -> u64 {
        let mut shared = 0;
        for (frames, hash) in &self.before {
            let range = usize::try_from(frames.start).ok().zip(usize::try_from(frames.end).ok());
            let own = range.and_then(|(start, end)| leaves.get(start..end)).map(tile_hash);
            if frames.start != shared || own != Some(*hash) {
                break;
            }
            shared = frames.end;
        }
        shared
    }
}

impl Reader {
    /// Reads the certificate of an erasure of this log, a proof of its event, whether or not the log still tells of it.
    ///
    /// # Errors
    /// `Refused` where it is none, or not this log's.
    pub fn certified(&self, certificate: &[u8]) -> Result<Certified> {
        let refused = |why: String| {
            Error::new(ErrorKind::Refused, format!("it is no certificate of an erasure of this log: {why}"))
        };
        let proof = EventProof::parse(certificate).map_err(|error| refused(error.to_string()))?;
        let key = self.given.trust.key.clone().unwrap_or_else(|| self.config.verifier_key.clone().into());
        let checked = proof.verify_by(&Policy::of_log(key)).map_err(|error| refused(error.to_string()))?;
        let (commitment, before) = (checked.commitment(), checked.before().collect());
        let event = Event::decode(checked.event()).map_err(|error| refused(error.to_string()))?;
        let Event::Erased { numbers, carried_out, order, .. } = event else {
            return Err(refused("it tells of another event".to_owned()));
        };
        // By which key is for the order itself to show, and may be another by now.
        let note = SignedNote::parse(order.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let order = Order::parse(note.text).map_err(|error| refused(error.to_string()))?;
        let checked = order.check_erasure(self.config.id, &numbers, &carried_out);
        checked.map_err(|error| refused(error.to_string()))?;
        match commitment.log_id == self.config.id {
            true => Ok(Certified { order, numbers, seconds: commitment.latest, before }),
            false => Err(refused(format!("it is for the log {}", commitment.log_id))),
        }
    }
}
