//! What witnesses have seen of a log, as a verification with a policy tells it.

use crate::scan::finding::{Finding, FindingKind};
use crate::scan::full::AtPin;
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

/// What there is to tell of the frames of which `size` are signed and as many as `head` says are witnessed; `at_head` is what the
/// log was found to be there: behind the signed frames, too, in a copy that was made beside a writer.
pub(super) fn judge(
    witnessed: &Witnessed,
    at_head: Option<AtPin>,
    size: u64,
    strict: bool,
) -> Option<Finding> {
    let Witnessed { head, time, .. } = witnessed;
    match at_head {
        Some(AtPin::Shorter { frames }) => {
            let detail = ends_before(head.size, frames);
            let mut finding =
                Finding::new(FindingKind::WitnessMismatch, detail).frame(frames.min(head.size - 1));
            finding.last_frame = Some(head.size - 1);
            Some(finding)
        }
        Some(AtPin::Other) => {
            let mut finding = Finding::new(FindingKind::WitnessMismatch, other_tree(head.size)).frame(0);
            finding.last_frame = Some(head.size.saturating_sub(1));
            Some(finding)
        }
        // Of a log that is damaged before that more is told.
        None | Some(AtPin::Same) if head.size >= size => None,
        None | Some(AtPin::Same) => {
            let kind = if strict { FindingKind::Unwitnessed } else { FindingKind::UnwitnessedTail };
            let mut finding = Finding::new(kind, unwitnessed_tail((head.size, *time), size)).frame(head.size);
            finding.last_frame = Some(size - 1);
            Some(finding)
        }
    }
}
