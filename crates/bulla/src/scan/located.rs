//! From untrusted bytes to a frame whose body is what its commitment says: [`Located`], then [`Verified`].
//!
//! **Invariant:** no [`Verified`] is made but from a body that was hashed, and nothing else leads to what is inside.

use crate::format::event::{Event, MAX_EVENT};
use crate::format::frame;
use crate::format::segment::SegmentName;
use crate::scan::finding::{Finding, FindingKind};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::sha256;
use bulla_store::{Error, Result, StoreFile};
use std::io;
use std::sync::Arc;

/// A frame that was found where it should be. Its commitment is the tree's; its body is not trusted yet.
#[derive(Clone)]
pub(crate) struct Located {
    pub(crate) commitment: Commitment,
    pub(crate) segment: SegmentName,
    pub(crate) file: Arc<dyn StoreFile>,
    pub(crate) offset: u64,
    /// The keys of its epoch, where they are at hand.
    pub(crate) keys: Option<Arc<EpochKeys>>,
    /// Whether they are not because the identity is no recipient of the epoch: not because that is damaged.
    pub(crate) foreign: bool,
    /// The random bytes that its epoch's frame shows, where those are known.
    pub(crate) epoch_random: Option<[u8; 32]>,
}

/// A frame whose body is what its commitment says.
pub(crate) struct Verified<'a> {
    frame: &'a Located,
    body: Vec<u8>,
}

impl<'a> Verified<'a> {
    /// As if it had been hashed.
    #[cfg(test)]
    pub(crate) fn assumed(frame: &'a Located, body: Vec<u8>) -> Self {
        Verified { frame, body }
    }

    pub(crate) fn commitment(&self) -> &'a Commitment {
        &self.frame.commitment
    }

    /// The end of the body that says what a block has of sources; nothing where it says nothing.
    pub(crate) fn sources_section(&self) -> &[u8] {
        let start = usize::try_from(self.frame.commitment.sealed_length()).unwrap_or(usize::MAX);
        self.body.get(start..).unwrap_or_default()
    }

    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// Why a frame cannot be read: the finding that it makes.
pub(crate) struct Unreadable {
    pub(crate) kind: FindingKind,
    pub(crate) detail: String,
}

impl Unreadable {
    /// What it is in `frame`.
    pub(crate) fn finding(self, frame: &Located) -> Finding {
        let commitment = &frame.commitment;
        let finding = Finding::new(self.kind, self.detail).at(frame.segment, frame.offset);
        finding.frame(commitment.frame).entries(commitment.first_entry, commitment.entries)
    }

    /// The same for somebody who cannot go on without the frame.
    pub(crate) fn error(self, frame: &Located) -> Error {
        Error::tampered(format!("{}; `bulla verify` tells all", self.finding(frame)))
    }
}

impl Located {
    /// Reads the body, whatever is in it.
    ///
    /// # Errors
    /// `Unavailable` where the file cannot be read.
    pub(crate) fn body(&self) -> Result<Vec<u8>> {
        self.read_body().map_err(|error| self.failed(error))
    }

    fn read_body(&self) -> io::Result<Vec<u8>> {
        frame::read_body(&*self.file, self.offset, &self.commitment)
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io(format!("reading {}", self.segment.path()), error)
    }

    /// Reads the body and checks its digest.
    ///
    /// # Errors
    /// The outer one where the file cannot be read, the inner one where the body is damaged.
    pub(crate) fn verify(&self) -> Result<Result<Verified<'_>, Unreadable>> {
        let damaged = |detail: &str| Unreadable { kind: FindingKind::BodyDamaged, detail: detail.to_owned() };
        match self.read_body() {
            Ok(body) if sha256(&[&body]) == self.commitment.body_digest => {
                Ok(Ok(Verified { frame: self, body }))
            }
            Ok(_) => Ok(Err(damaged("the body does not have the digest in its commitment"))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err(damaged("the segment ends inside the body")))
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// A frame whose body is what its commitment says.
///
/// # Errors
/// `Tampered` where it is not.
pub(crate) fn verified(frame: &Located) -> Result<Verified<'_>> {
    frame.verify()?.map_err(|unreadable| unreadable.error(frame))
}

/// The event in the body of an event frame.
///
/// # Errors
/// `Tampered` where the body is not what was committed to, or no event of this version; `Unavailable` where it cannot be read.
pub(crate) fn event_in(frame: &Located) -> Result<Event> {
    event_of(&frame.commitment, || Ok(verified(frame)?.into_body()))
}

/// The event in a frame with this commitment, whose body is what `read` gives.
///
/// # Errors
/// `Tampered` where it is no event of this version; else as `read`.
pub(crate) fn event_of(commitment: &Commitment, read: impl FnOnce() -> Result<Vec<u8>>) -> Result<Event> {
    let none = |what: String| {
        let (number, rests) =
            (commitment.frame, "whatever rests on events is not answered; `bulla verify` tells all");
        Error::tampered(format!("frame {number} is signed, and its event is none: {what}; {rests}"))
    };
    let length = commitment.body_length;
    if length > MAX_EVENT {
        return Err(none(format!("it has {length} bytes, and an event has {MAX_EVENT} at most")));
    }
    Event::decode(&read()?).map_err(|error| none(error.to_string()))
}

/// The most bytes of memory that reading a frame may take, whatever is in its body.
pub(crate) fn most_memory(commitment: &Commitment) -> u64 {
    /// For each byte of content, and for any block. `docs/format-columns.md`, "Memory of a reader".
    const TIMES: u64 = 24;
    const MOST: u64 = 512 << 20;
    // The body itself, ciphertexts of groups by themselves, and one of them as it is hashed or decrypted.
    3 * commitment.body_length + (TIMES << commitment.content_log2).min(MOST)
}
