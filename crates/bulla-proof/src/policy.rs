//! Policies: which logs are believed, and how many of which witnesses have to have cosigned a checkpoint. A policy is a file
//! of [C2SP tlog-policy](https://c2sp.org/tlog-policy), which is the form of Sigsum's with verifier keys:
//!
//! ```text
//! log VKEY [URL]
//! witness NAME VKEY [URL]
//! group NAME any|all|N MEMBER...
//! quorum NAME|none
//! ```
//!
//! Invariants: each group names only witnesses and groups before it, and each of these is a member of one group at most; so
//! a judgement goes through the groups once, and no witness counts twice.

mod error;
mod judgement;
mod parse;

pub use error::{PolicyError, PolicyProblem};
pub use judgement::{Judgement, PolicyRefusal, Unmet, WitnessState};

use crate::checkpoint::Checkpoint;
use crate::cosignature::CosignerKey;
use crate::log_key::LogKey;
use crate::note::{NoteError, SignedNote};
use std::str::FromStr;

/// The longest policy, in bytes.
pub const MAX_POLICY: usize = 1 << 20;
/// The most logs, witnesses and groups of a policy, each.
pub const MAX_OF_EACH: usize = 100;

/// A policy.
///
/// ```
/// use bulla_proof::Policy;
///
/// let policy: Policy = "# Believes one log, without witnesses.\n\
///     log PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n\
///     quorum none\n"
///     .parse()?;
/// assert_eq!((policy.logs().len(), policy.witnesses().len()), (1, 0));
/// # Ok::<(), bulla_proof::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Those that the file names.
    logs: Vec<PolicyLog>,
    /// The one that somebody named beside it, which has to have signed whatever the file names.
    key: Option<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<Group>,
    quorum: Option<Member>,
}

/// A log that a policy believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyLog {
    /// Its key, whose name is the log's origin.
    pub key: LogKey,
    /// Where the log is published, as the policy has it.
    pub url: Option<String>,
}

/// A witness that a policy knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyWitness {
    /// What the policy calls it, which means nothing outside of the policy.
    pub name: String,
    /// Its key.
    pub key: CosignerKey,
    /// The prefix of its address (C2SP tlog-witness), as the policy has it.
    pub url: Option<String>,
}

/// Witnesses or groups of which so many have to have witnessed a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    name: String,
    /// From 1 to the number of members.
    threshold: usize,
    members: Vec<Member>,
}

/// A witness or a group, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Witness(usize),
    Group(usize),
}

impl Policy {
    /// The policy that believes `key` and asks for no witness.
    pub fn of_log(key: LogKey) -> Self {
        Policy {
            logs: Vec::new(),
            key: Some(PolicyLog { key, url: None }),
            witnesses: Vec::new(),
            groups: Vec::new(),
            quorum: None,
        }
    }

    /// The policy that asks the same, and for the signature of `key` besides: where it names logs, one of these has to have signed, too.
    pub fn with_log(self, key: LogKey) -> Self {
        Policy { key: Some(PolicyLog { key, url: None }), ..self }
    }

    /// The policy of whoever names a log's key, a policy, or both: then both have to hold ([`Policy::with_log`]). Nothing where neither is
    /// named.
    ///
    /// # Errors
    /// [`PolicyProblem::NoLog`] where it says only who has to have seen a log, and not whose that is.
    pub fn of(key: Option<LogKey>, policy: Option<Self>) -> Result<Option<Self>, PolicyError> {
        match (key, policy) {
            (None, None) => Ok(None),
            (Some(key), None) => Ok(Some(Self::of_log(key))),
            (Some(key), Some(policy)) => Ok(Some(policy.with_log(key))),
            (None, Some(policy)) if policy.logs.is_empty() => {
                Err(PolicyError { line: 0, problem: PolicyProblem::NoLog })
            }
            (None, policy) => Ok(policy),
        }
    }

    /// The policy that believes the same logs and asks for no witness.
    pub fn without_witnesses(&self) -> Self {
        let (logs, key) = (self.logs.clone(), self.key.clone());
        Policy { logs, key, witnesses: Vec::new(), groups: Vec::new(), quorum: None }
    }

    /// Whether a checkpoint has to be cosigned by anybody: not with `quorum none`.
    pub fn asks_for_witnesses(&self) -> bool {
        self.quorum.is_some()
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// Where it is not one, with the line. Names, keys and addresses have to be UTF-8, which the specification only
    /// recommends; comments need not be.
    pub fn parse(file: &[u8]) -> Result<Self, PolicyError> {
        parse::parse(file)
    }

    /// The logs that are believed: those that the policy names, or the one of [`Policy::with_log`] alone. May be none: then whoever
    /// judges has to know the log's key from elsewhere.
    pub fn logs(&self) -> &[PolicyLog] {
        self.key.as_ref().map_or(&self.logs, std::slice::from_ref)
    }

    /// All witnesses that are known, whether the quorum needs them or not, in the order of the file.
    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    /// The key of the policy by which a checkpoint is signed: of the logs with the origin that its first line says; the one of
    /// [`Policy::with_log`], where there is one.
    ///
    /// # Errors
    /// [`PolicyRefusal::Key`] where the key of [`Policy::with_log`] did not sign. Else [`PolicyRefusal::Log`]: [`NoteError::Origin`] where the
    /// policy has no log of that origin, [`NoteError::NotSigned`] where none of that log's keys signed, [`NoteError::SignedTwice`] and
    /// [`NoteError::BadSignature`] where what one of them signed does not hold, whatever the others did.
    pub fn log_of(&self, note: &SignedNote<'_>) -> Result<&LogKey, PolicyRefusal> {
        let origin = note.text.split('\n').next().unwrap_or_default();
        self.log_that_signed(origin, |key| key.verify(note))
    }

    /// The same of anything that a log of this origin signs. `verify` says whether a key signed it, as [`LogKey::verify`] does.
    pub(crate) fn log_that_signed(
        &self,
        origin: &str,
        verify: impl Fn(&LogKey) -> Result<(), NoteError>,
    ) -> Result<&LogKey, PolicyRefusal> {
        let Some(PolicyLog { key, .. }) = &self.key else {
            return self.log_of_file(origin, verify).map_err(PolicyRefusal::Log);
        };
        let signed = if key.name() == origin { verify(key) } else { Err(NoteError::Origin) };
        signed.map_err(|error| PolicyRefusal::Key(Box::new(key.clone()), error))?;
        if !self.logs.is_empty() {
            self.log_of_file(origin, verify).map_err(PolicyRefusal::Log)?;
        }
        Ok(key)
    }

    /// Whether it asks for a signature of ML-DSA-44 by the log of this origin: the keys that it has of that log are of no other kind.
    pub(crate) fn asks_for_ml_dsa(&self, origin: &str) -> bool {
        let asks = |logs: &[PolicyLog]| {
            let mut keys = logs.iter().map(|log| &log.key).filter(|key| key.name() == origin).peekable();
            keys.peek().is_some() && keys.all(|key| matches!(key, LogKey::MlDsa44(_)))
        };
        asks(self.key.as_slice()) || asks(&self.logs)
    }

    fn log_of_file(
        &self,
        origin: &str,
        verify: impl Fn(&LogKey) -> Result<(), NoteError>,
    ) -> Result<&LogKey, NoteError> {
        let mut found = Err(NoteError::Origin);
        for PolicyLog { key, .. } in self.logs.iter().filter(|log| log.key.name() == origin) {
            match verify(key) {
                Ok(()) => found = found.or(Ok(key)),
                Err(NoteError::NotSigned) => found = found.or(Err(NoteError::NotSigned)),
                Err(error) => return Err(error),
            }
        }
        found
    }

    /// Which witnesses cosigned the checkpoint of a note, and whether they are as many as the policy asks for. Says nothing
    /// of the log: see [`Policy::log_of`].
    ///
    /// # Errors
    /// [`PolicyRefusal::Witness`]: a signature of a known witness that does not hold makes the whole note suspect (C2SP
    /// signed-note). [`PolicyRefusal::OwnWitness`] where a witness has the name and may have the key of the log itself, which would be seen
    /// by nobody else.
    pub fn judge(&self, note: &SignedNote<'_>) -> Result<Judgement, PolicyRefusal> {
        judgement::judge(self, note)
    }

    /// Reads a checkpoint, which has to be signed by a log of the policy, and cosigned as it asks for.
    ///
    /// # Errors
    /// [`PolicyRefusal::Log`] for what [`SignedNote::parse`] and [`Checkpoint::parse`] refuse; as [`Policy::log_of`] and
    /// [`Policy::judge`]; [`PolicyRefusal::Quorum`] where witnesses are missing.
    pub fn open(&self, note: &[u8]) -> Result<(Checkpoint, Judgement), PolicyRefusal> {
        let note = SignedNote::parse(note).map_err(PolicyRefusal::Log)?;
        self.log_of(&note)?;
        let checkpoint = Checkpoint::parse(note.text).map_err(PolicyRefusal::Log)?;
        let judgement = self.judge(&note)?;
        if judgement.is_met() { Ok((checkpoint, judgement)) } else { Err(PolicyRefusal::Quorum(judgement)) }
    }

    fn name(&self, member: Member) -> &str {
        match member {
            Member::Witness(index) => &self.witnesses[index].name,
            Member::Group(index) => &self.groups[index].name,
        }
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Policy::parse(text.as_bytes())
    }
}
