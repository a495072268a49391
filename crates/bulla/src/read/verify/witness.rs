//! What witnesses have seen of a log, as a verification with a policy tells it.

use crate::format::files;
use crate::scan::cosignatures::SignedHead;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::full::{AtPin, Scan};
use crate::scan::trust::{Witnessed, ends_before, other_tree, unwitnessed_tail};

/// Who has seen how much of a log, as a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessReport {
    /// How many frames the newest checkpoint covers that is cosigned as the policy asks for. Nothing where it asks for no witness.
    pub frames: Option<u64>,
    /// All witnesses of the policy, in its order.
    pub witnesses: Vec<WitnessSeen>,
}

/// What a witness has seen of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessSeen {
    /// What the policy calls the witness.
    pub name: String,
    /// When it cosigned that checkpoint, by its own clock, in seconds since the Unix epoch; 0 where it says only that the tree
    /// goes on from those that it had seen. Nothing where it did not.
    pub time: Option<u64>,
}

impl WitnessReport {
    /// `asked` says whether the policy asks for a witness.
    pub(super) fn of(Witnessed { head, witnesses, .. }: &Witnessed, asked: bool) -> Self {
        let seen = witnesses.iter().map(|witness| WitnessSeen {
            name: witness.name.clone(),
            time: witness.cosignature.map(|cosignature| cosignature.timestamp),
        });
        WitnessReport { frames: asked.then_some(head.size), witnesses: seen.collect() }
    }
}

/// What is told where the log does not begin with the tree `signed`, which the scan expects at `place`: behind the signed frames, too, in
/// a copy that was made beside a writer. Of a log that is damaged before that more is told.
pub(super) fn mismatch(
    SignedHead { path, head }: &SignedHead,
    scan: &Scan<'_>,
    place: usize,
) -> Option<Finding> {
    let (detail, first) = match scan.root_of_pin(place)? {
        AtPin::Same => return None,
        // Frames of which nothing is known have no root that says anything of the key.
        AtPin::Other if scan.lacks_leaves() => return None,
        // A copy that was made beside a writer, with what it has to be made of held before, may have newer ones of these.
        AtPin::Shorter { .. } if path != files::WITNESSED => return None,
        AtPin::Shorter { frames } => {
            (ends_before(path, head.size, frames), frames.min(head.size.saturating_sub(1)))
        }
        AtPin::Other => (other_tree(path, head.size), 0),
    };
    let mut finding = Finding::new(FindingKind::WitnessMismatch, detail).frame(first);
    finding.last_frame = Some(head.size.saturating_sub(1));
    Some(finding)
}

/// What is told of those of `size` signed frames that are not witnessed.
pub(super) fn unwitnessed(
    Witnessed { head, time, .. }: &Witnessed,
    size: u64,
    strict: bool,
) -> Option<Finding> {
    let kind = if strict { FindingKind::Unwitnessed } else { FindingKind::UnwitnessedTail };
    let finding = || Finding::new(kind, unwitnessed_tail((head.size, *time), size)).frame(head.size);
    (head.size < size).then(|| Finding { last_frame: Some(size - 1), ..finding() })
}
