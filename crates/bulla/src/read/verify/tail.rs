//! What follows the checkpoint, as a verification judges it.

use crate::format::segment;
use crate::keys::seal_state::SealState;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::full::{Scan, Tail};
use crate::scan::lost::lost_below;
use crate::scan::snapshot::Snapshot;
use crate::scan::unsigned;
use crate::write::recover;
use bulla_store::Result;
use bulla_text::spelling::counted;

/// How what follows the checkpoint is judged.
#[derive(Clone, Copy)]
pub(super) struct Judging {
    /// Whether no writer can have been at work meanwhile.
    pub(super) quiet: bool,
    pub(super) strict: bool,
}

/// What there is to tell of what follows the checkpoint, if anything does that is not the work of a writer.
pub(super) fn judge_tail(
    tail: &Tail,
    scan: &Scan<'_>,
    log: &Snapshot,
    state: Option<SealState>,
    Judging { quiet, strict }: Judging,
) -> Result<Option<Finding>> {
    let Some((segment, offset)) = tail.at.filter(|_| tail.bytes > 0 && (quiet || strict)) else {
        return Ok(None);
    };
    let size = log.checkpoint.size;
    let objection = match quiet && !scan.findings.has_violation() {
        true => objection(scan, log, state),
        false => Ok(None),
    };
    // A writer that came since has changed what was looked at.
    if !matches!(objection, Ok(None)) && !log.is_quiet()? {
        return Ok(None);
    }
    let objection = objection?;
    let Tail { frames, bytes, .. } = tail;
    let (kind, detail) = match objection {
        Some(objection) => (FindingKind::TailDamaged, objection),
        None if strict => {
            let (frames, bytes) = (counted(*frames, "frame"), counted(*bytes, "byte"));
            let detail = format!("{frames} and {bytes} in all follow the last checkpoint");
            (FindingKind::Unclosed, detail)
        }
        None if !log.is_told => {
            let detail = format!("{} that belong to no frame follow the last one", counted(*bytes, "byte"));
            (FindingKind::UnsignedTail, detail)
        }
        None => (FindingKind::UnsignedTail, unsigned::detail(size, *bytes)),
    };
    let mut finding = Finding::new(kind, detail).at(segment, offset).frame(size);
    finding.last_frame = Some(size + frames.saturating_sub(1));
    Ok(Some(finding))
}

/// What speaks against what follows the checkpoint, as opening the log would find it with what is at hand: the seal state, or
/// the seals of the frames before. Nothing where neither is.
fn objection(scan: &Scan<'_>, log: &Snapshot, state: Option<SealState>) -> Result<Option<String>> {
    let Snapshot { store, config, checkpoint, .. } = log;
    let here = || {
        let (chain, terms) = (scan.chain()?, scan.terms());
        Some(SealState { root: checkpoint.root, ..SealState::first(config.id, terms, chain) })
    };
    let Some((state, tree)) = state.or_else(here).zip(scan.frontier()) else { return Ok(None) };
    let segments = segment::list(&**store)?.0;
    let survey =
        recover::survey(&**store, config, (&state, checkpoint, lost_below(&**store)), tree, &segments);
    match survey.and_then(|survey| survey.stranger(config.id)) {
        Ok(stranger) => Ok(stranger),
        Err(error) if error.io_error().is_some() => Err(error),
        Err(error) => Ok(Some(error.to_string().replace("; run `bulla verify`", ""))),
    }
}
