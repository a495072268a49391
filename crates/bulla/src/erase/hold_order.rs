//! Orders to hold and to release, with what they commit to, which whoever gave them keeps. The log gets only their public part.

use super::ErasureOrder;
use super::order::{parse, render, seconds};
use super::salt::Salt;
use bulla_crypto::environment::Environment;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::hold_order::{HoldAct, HoldNote, held_subject, hold_reason};
use bulla_proof::order::{MAX_REASON, is_line, order_digest};
use bulla_store::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug};

/// An order to hold a data subject: whom, by whom and why. Confidential; [`HoldOrder::note`] alone is public, and becomes part of the
/// log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldOrder {
    #[serde(rename = "order")]
    note: String,
    subject: String,
    by: String,
    reason: String,
    salts: HoldSalts,
}

/// What it was salted with, by which it can be shown later what the note in the log is about.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HoldSalts {
    subject: Salt,
    because: Salt,
}

/// An order to release what another order held: by whom and why. As confidential.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseOrder {
    #[serde(rename = "order")]
    note: String,
    by: String,
    reason: String,
    salts: ReleaseSalts,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseSalts {
    because: Salt,
}

impl HoldOrder {
    /// Orders `subject` of `log` to be held, signed with the log's erasure key. Who holds and why stays confidential.
    ///
    /// # Errors
    /// `Invalid` where `by` or `reason` is not one line of 1 to 1,024 bytes, or the file would take more than
    /// [`ErasureOrder::MAX_LENGTH`].
    pub fn give(
        key: &SigningKey,
        log: LogId,
        subject: &str,
        (by, reason): (&str, &str),
        environment: &Environment,
    ) -> Result<Self> {
        check_lines(by, reason)?;
        let salts = HoldSalts { subject: Salt::draw(environment)?, because: Salt::draw(environment)? };
        let act = HoldAct::Hold(held_subject(salts.subject.bytes(), subject));
        let because = hold_reason(salts.because.bytes(), by, reason);
        let note = sign(key, HoldNote { log, seconds: seconds(environment), act, because });
        let (subject, by, reason) = (subject.to_owned(), by.to_owned(), reason.to_owned());
        let order = HoldOrder { note, subject, by, reason, salts };
        match order.render().len() <= ErasureOrder::MAX_LENGTH {
            true => Ok(order),
            false => Err(Error::invalid("the data subject's name is too long for an order")),
        }
    }

    /// Reads the file of an order. Whether it holds for a log is known when that carries it out.
    ///
    /// # Errors
    /// `Invalid` where it is none.
    pub fn parse(text: &str) -> Result<Self> {
        parse(text, "an order to hold")
    }

    /// The file, as JSON.
    pub fn render(&self) -> String {
        render(self)
    }

    /// The public part, a signed note of [`bulla_proof::hold_order`].
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The data subject's name.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Who holds.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    pub(crate) fn salts(&self) -> &HoldSalts {
        &self.salts
    }

    /// Checks that the order was signed with the erasure key of `log`, and is about what the file says.
    ///
    /// # Errors
    /// `Refused` where it was not; `Invalid` for texts that are empty, too long or not one line.
    pub fn check(&self, key: &VerifierKey, log: LogId) -> Result<()> {
        let refused = |why: String| refused("hold", why);
        let note = open(&self.note, key).map_err(refused)?;
        note.check_hold(log).map_err(|error| refused(error.to_string()))?;
        self.check_note(&note)
    }

    /// Checks that `note` is about what the file says.
    ///
    /// # Errors
    /// `Refused` where it is about something else; `Invalid` for texts that are empty, too long or not one line.
    pub fn check_note(&self, note: &HoldNote) -> Result<()> {
        check_lines(&self.by, &self.reason)?;
        let is_own = note.act == HoldAct::Hold(held_subject(self.salts.subject.bytes(), &self.subject))
            && self.salts.explain(note, &self.by, &self.reason);
        match is_own {
            true => Ok(()),
            false => Err(refused("hold", SOMETHING_ELSE.to_owned())),
        }
    }
}

const SOMETHING_ELSE: &str = "it is signed for something else than what it says";

impl HoldSalts {
    /// Whether a note is by these, and for this reason.
    pub(crate) fn explain(&self, note: &HoldNote, by: &str, reason: &str) -> bool {
        note.because == hold_reason(self.because.bytes(), by, reason)
    }
}

impl ReleaseOrder {
    /// Orders what the order with this public part held to be released, signed with the log's erasure key.
    ///
    /// # Errors
    /// As [`HoldOrder::give`].
    pub fn give(
        key: &SigningKey,
        log: LogId,
        hold: &str,
        (by, reason): (&str, &str),
        environment: &Environment,
    ) -> Result<Self> {
        check_lines(by, reason)?;
        let salts = ReleaseSalts { because: Salt::draw(environment)? };
        let act = HoldAct::Release(order_digest(hold));
        let because = hold_reason(salts.because.bytes(), by, reason);
        let note = sign(key, HoldNote { log, seconds: seconds(environment), act, because });
        Ok(ReleaseOrder { note, by: by.to_owned(), reason: reason.to_owned(), salts })
    }

    /// Reads the file of an order. Whether it holds for a log is known when that carries it out.
    ///
    /// # Errors
    /// `Invalid` where it is none.
    pub fn parse(text: &str) -> Result<Self> {
        parse(text, "an order to release")
    }

    /// The file, as JSON.
    pub fn render(&self) -> String {
        render(self)
    }

    /// The public part, a signed note of [`bulla_proof::hold_order`].
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Checks that the order was signed with the erasure key of `log`, and is for the reason that the file says. Returns the digest of
    /// the order to hold that it is about.
    ///
    /// # Errors
    /// As [`HoldOrder::check`].
    pub fn check(&self, key: &VerifierKey, log: LogId) -> Result<Hash> {
        let refused = |why: String| refused("release", why);
        let note = open(&self.note, key).map_err(refused)?;
        let hold = note.check_release(log).map_err(|error| refused(error.to_string()))?;
        self.check_note(&note).map(|()| hold)
    }

    /// Checks that `note` is for the reason that the file says.
    ///
    /// # Errors
    /// `Refused` where it is for another; `Invalid` for texts that are empty, too long or not one line.
    pub fn check_note(&self, note: &HoldNote) -> Result<()> {
        check_lines(&self.by, &self.reason)?;
        match note.because == hold_reason(self.salts.because.bytes(), &self.by, &self.reason) {
            true => Ok(()),
            false => Err(refused("release", SOMETHING_ELSE.to_owned())),
        }
    }

    /// Who releases.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Reads a note that has to be signed with `key`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn open(note: &str, key: &VerifierKey) -> std::result::Result<HoldNote, String> {
    HoldNote::open(note.as_bytes(), key).map_err(|error| format!("{error}; it has to be signed with {key}"))
}

fn sign(key: &SigningKey, note: HoldNote) -> String {
    note.sign(key.verifier(), |text| key.sign(text))
}

fn check_lines(by: &str, reason: &str) -> Result<()> {
    for (what, text) in [("who holds or releases", by), ("the reason", reason)] {
        if text.trim().is_empty() || !is_line(text) {
            let message = format!("{what} has to be told in one line of 1 to {MAX_REASON} bytes");
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

fn refused(what: &str, why: String) -> Error {
    Error::new(ErrorKind::Refused, format!("the order to {what}: {why}"))
}

impl Debug for HoldOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldOrder").finish_non_exhaustive()
    }
}

impl Debug for ReleaseOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseOrder").finish_non_exhaustive()
    }
}
