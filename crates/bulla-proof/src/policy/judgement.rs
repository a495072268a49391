//! What a policy says of a checkpoint, and why it refuses one.

use super::{Member, Policy};
use crate::cosignature::Cosignature;
use crate::note::{NoteError, SignedNote};
use std::fmt;

/// What a policy says of the witnesses of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// All witnesses of the policy, in its order.
    pub witnesses: Vec<WitnessState>,
    /// What is missing from the quorum, from the quorum itself down to the witnesses; empty where it is met.
    pub unmet: Vec<Unmet>,
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
    let witnesses = policy.witnesses.iter().map(|witness| {
        let cosignature = match witness.key.verify(note) {
            Ok(cosignature) => Some(cosignature),
            Err(NoteError::NotSigned) => None,
            Err(error) => return Err(PolicyRefusal::Witness(witness.name.clone(), error)),
        };
        Ok(WitnessState { name: witness.name.clone(), cosignature })
    });
    let witnesses = witnesses.collect::<Result<Vec<_>, _>>()?;
    let mut groups: Vec<bool> = Vec::with_capacity(policy.groups.len());
    let has = |groups: &[bool], member: &Member| match *member {
        Member::Witness(index) => witnesses[index].cosignature.is_some(),
        Member::Group(index) => groups[index],
    };
    for group in &policy.groups {
        let count = group.members.iter().filter(|member| has(&groups, member)).count();
        groups.push(count >= group.threshold);
    }
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
    Ok(Judgement { witnesses, unmet })
}

/// Why a policy refuses a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyRefusal {
    /// It is no checkpoint, of no log that the policy names, or not signed by it.
    Log(NoteError),
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
            Self::Witness(name, error) => write!(f, "the signature of the witness `{name}`: {error}"),
            Self::Quorum(judgement) => write!(f, "the policy's quorum is not met: {}", judgement.missing()),
        }
    }
}

impl std::error::Error for PolicyRefusal {}
