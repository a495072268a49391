//! What a policy says of a checkpoint, and why it refuses one.

use super::{Member, Policy};
use crate::cosignature::{Cosignature, CosignatureAlgorithm};
use crate::log_key::LogKey;
use crate::note::{NoteError, SignedNote};
use std::fmt;

/// What a policy says of the witnesses of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// All witnesses of the policy, in its order.
    pub witnesses: Vec<WitnessState>,
    /// What is missing from the quorum, from the quorum itself down to the witnesses; empty where it is met.
    pub unmet: Vec<Unmet>,
    /// The latest time, in seconds since 1970, at which or later as many witnesses cosigned as the quorum asks for, each by its own clock: how
    /// old the quorum is. Nothing where the quorum is not met, or asks for none.
    pub time: Option<u64>,
}

/// Whether a witness cosigned a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessState {
    /// What the policy calls the witness.
    pub name: String,
    /// What it signed, if it did.
    pub cosignature: Option<Cosignature>,
}

/// A witness or a group that did not witness a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Its name in the policy.
    pub name: String,
    /// How many of a group's members have to have; 1 of a witness, which has no members.
    pub needed: usize,
    /// The members that have.
    pub have: Vec<String>,
    /// The members that have not.
    pub lack: Vec<String>,
}

impl Judgement {
    /// Whether the quorum is met.
    pub fn is_met(&self) -> bool {
        self.unmet.is_empty()
    }

    /// What is missing, as one sentence; empty where nothing is.
    pub fn missing(&self) -> String {
        self.unmet.iter().map(Unmet::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unmet { name, needed, have, lack } = self;
        let members = have.len() + lack.len();
        if members == 0 {
            return write!(f, "the witness `{name}` has not cosigned");
        }
        let verb = if *needed == 1 { "has" } else { "have" };
        write!(f, "{needed} of the {members} of `{name}` {verb} to have cosigned, and ")?;
        match have.len() {
            0 => write!(f, "none has"),
            1 => write!(f, "1 has"),
            count => write!(f, "{count} have"),
        }?;
        write!(f, ", without {}", lack.join(", "))
    }
}

pub(super) fn judge(policy: &Policy, note: &SignedNote<'_>) -> Result<Judgement, PolicyRefusal> {
    let origin = note.text.split('\n').next().unwrap_or_default();
    let witnesses = policy.witnesses.iter().map(|witness| {
        // With ML-DSA-44 a log signs as witnesses do, under its own name.
        if witness.key.algorithm() == CosignatureAlgorithm::MlDsa44 && witness.key.name() == origin {
            return Err(PolicyRefusal::OwnWitness(witness.name.clone()));
        }
        let cosignature = match witness.key.verify(note) {
            Ok(cosignature) => Some(cosignature),
            Err(NoteError::NotSigned) => None,
            Err(error) => return Err(PolicyRefusal::Witness(witness.name.clone(), error)),
        };
        Ok(WitnessState { name: witness.name.clone(), cosignature })
    });
    let witnesses = witnesses.collect::<Result<Vec<_>, _>>()?;
    // Since when as many have witnessed it as are needed: of a group the time of the last one that it needs, the newest first.
    let mut groups: Vec<Option<u64>> = Vec::with_capacity(policy.groups.len());
    let since = |groups: &[Option<u64>], member: &Member| match *member {
        Member::Witness(index) => witnesses[index].cosignature.map(|cosignature| cosignature.timestamp),
        Member::Group(index) => groups[index],
    };
    for group in &policy.groups {
        let mut times: Vec<u64> = group.members.iter().filter_map(|member| since(&groups, member)).collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        groups.push(times.get(group.threshold - 1).copied());
    }
    let has = |groups: &[Option<u64>], member: &Member| since(groups, member).is_some();
    let time = policy.quorum.and_then(|member| since(&groups, &member));
    let mut unmet = Vec::new();
    let mut open: Vec<Member> = policy.quorum.into_iter().filter(|member| !has(&groups, member)).collect();
    while let Some(member) = open.pop() {
        let name = policy.name(member).to_owned();
        let Member::Group(index) = member else {
            unmet.push(Unmet { name, needed: 1, have: Vec::new(), lack: Vec::new() });
            continue;
        };
        let group = &policy.groups[index];
        let (have, lack): (Vec<Member>, Vec<Member>) =
            group.members.iter().copied().partition(|member| has(&groups, member));
        // Of a witness the line of its group says enough.
        open.extend(lack.iter().rev().filter(|member| matches!(member, Member::Group(_))));
        let names =
            |members: &[Member]| members.iter().map(|member| policy.name(*member).to_owned()).collect();
        unmet.push(Unmet { name, needed: group.threshold, have: names(&have), lack: names(&lack) });
    }
    Ok(Judgement { witnesses, unmet, time })
}

/// Why a policy refuses a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyRefusal {
    /// It is no checkpoint, of no log that the policy names, or not signed by it.
    Log(NoteError),
    /// It is not signed by the key that was named beside the policy.
    Key(Box<LogKey>, NoteError),
    /// The witness with that name in the policy goes by the log's own name, with a key of the kind that a log signs with.
    OwnWitness(String),
    /// What the witness with that name in the policy signed does not hold.
    Witness(String, NoteError),
    /// Cosignatures are missing: [`Judgement::unmet`] says which.
    Quorum(Judgement),
}

impl fmt::Display for PolicyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(NoteError::Origin) => write!(f, "the policy names no log of the checkpoint's origin"),
            Self::Log(NoteError::NotSigned) => {
                write!(f, "no key that the policy has of the log signed the checkpoint")
            }
            Self::Log(error) => error.fmt(f),
            Self::Key(key, NoteError::Origin | NoteError::NotSigned) => {
                write!(f, "it is not signed by the key that was given, {key}")
            }
            Self::Key(key, error) => write!(f, "it is not signed by the key that was given, {key}: {error}"),
            Self::OwnWitness(name) => write!(
                f,
                "the witness `{name}` of the policy goes by the log's own name: a key with which the log itself signs is no witness"
            ),
            Self::Witness(name, error) => write!(f, "the signature of the witness `{name}`: {error}"),
            Self::Quorum(judgement) => write!(f, "the policy's quorum is not met: {}", judgement.missing()),
        }
    }
}

impl std::error::Error for PolicyRefusal {}
