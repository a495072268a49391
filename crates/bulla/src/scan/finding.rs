//! What a verification can find: a closed list, told with as much of place as is known.

use crate::format::segment::SegmentName;
use bulla_proof::commitment::Commitment;
use bulla_text::spelling::agreeing;
use std::fmt;

/// The kinds of finding. `docs/format.md` ("Findings") says what each means and who can find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum FindingKind {
    ConfigDamaged,
    ConfigMismatch,
    CheckpointDamaged,
    CoseMismatch,
    KeyMismatch,
    RootMismatch,
    TileDamaged,
    BundleDamaged,
    FrameDamaged,
    FramesMissing,
    BodyDamaged,
    Numbering,
    EpochInvalid,
    EventInvalid,
    SealMismatch,
    NotOpened,
    BlockInvalid,
    UnitsMismatch,
    SourcesDamaged,
    KeyLost,
    ErasureKeyUnordered,
    ErasureUnordered,
    HoldUnordered,
    ErasedWhileHeld,
    IndexMismatch,
    SurplusBytes,
    Unclosed,
    UnsignedTail,
    TailDamaged,
    PinMismatch,
    CosignatureInvalid,
    WitnessMismatch,
    Unwitnessed,
    UnwitnessedTail,
    Stale,
    Abandoned,
    PathMissing,
    PathMismatch,
    Gap,
    IndexDamaged,
    UnknownFile,
    MoreFindings,
}

impl FindingKind {
    /// All of them.
    pub const ALL: [FindingKind; 42] = [
        FindingKind::ConfigDamaged,
        FindingKind::ConfigMismatch,
        FindingKind::CheckpointDamaged,
        FindingKind::CoseMismatch,
        FindingKind::KeyMismatch,
        FindingKind::RootMismatch,
        FindingKind::TileDamaged,
        FindingKind::BundleDamaged,
        FindingKind::FrameDamaged,
        FindingKind::FramesMissing,
        FindingKind::BodyDamaged,
        FindingKind::Numbering,
        FindingKind::EpochInvalid,
        FindingKind::EventInvalid,
        FindingKind::SealMismatch,
        FindingKind::NotOpened,
        FindingKind::BlockInvalid,
        FindingKind::UnitsMismatch,
        FindingKind::SourcesDamaged,
        FindingKind::KeyLost,
        FindingKind::ErasureKeyUnordered,
        FindingKind::ErasureUnordered,
        FindingKind::HoldUnordered,
        FindingKind::ErasedWhileHeld,
        FindingKind::IndexMismatch,
        FindingKind::SurplusBytes,
        FindingKind::Unclosed,
        FindingKind::UnsignedTail,
        FindingKind::TailDamaged,
        FindingKind::PinMismatch,
        FindingKind::CosignatureInvalid,
        FindingKind::WitnessMismatch,
        FindingKind::Unwitnessed,
        FindingKind::UnwitnessedTail,
        FindingKind::Stale,
        FindingKind::Abandoned,
        FindingKind::PathMissing,
        FindingKind::PathMismatch,
        FindingKind::Gap,
        FindingKind::IndexDamaged,
        FindingKind::UnknownFile,
        FindingKind::MoreFindings,
    ];

    /// The name, as in `verify --json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigDamaged => "config-damaged",
            Self::ConfigMismatch => "config-mismatch",
            Self::CheckpointDamaged => "checkpoint-damaged",
            Self::CoseMismatch => "cose-mismatch",
            Self::KeyMismatch => "key-mismatch",
            Self::RootMismatch => "root-mismatch",
            Self::TileDamaged => "tile-damaged",
            Self::BundleDamaged => "bundle-damaged",
            Self::FrameDamaged => "frame-damaged",
            Self::FramesMissing => "frames-missing",
            Self::BodyDamaged => "body-damaged",
            Self::Numbering => "numbering",
            Self::EpochInvalid => "epoch-invalid",
            Self::EventInvalid => "event-invalid",
            Self::SealMismatch => "seal-mismatch",
            Self::NotOpened => "not-opened",
            Self::BlockInvalid => "block-invalid",
            Self::UnitsMismatch => "units-mismatch",
            Self::SourcesDamaged => "sources-damaged",
            Self::KeyLost => "key-lost",
            Self::ErasureKeyUnordered => "erasure-key-unordered",
            Self::ErasureUnordered => "erasure-unordered",
            Self::HoldUnordered => "hold-unordered",
            Self::ErasedWhileHeld => "erased-while-held",
            Self::IndexMismatch => "index-mismatch",
            Self::SurplusBytes => "surplus-bytes",
            Self::Unclosed => "unclosed",
            Self::UnsignedTail => "unsigned-tail",
            Self::TailDamaged => "tail-damaged",
            Self::PinMismatch => "pin-mismatch",
            Self::CosignatureInvalid => "cosignature-invalid",
            Self::WitnessMismatch => "witness-mismatch",
            Self::Unwitnessed => "unwitnessed",
            Self::UnwitnessedTail => "unwitnessed-tail",
            Self::Stale => "stale",
            Self::Abandoned => "abandoned",
            Self::PathMissing => "path-missing",
            Self::PathMismatch => "path-mismatch",
            Self::Gap => "gap",
            Self::IndexDamaged => "index-damaged",
            Self::UnknownFile => "unknown-file",
            Self::MoreFindings => "more-findings",
        }
    }

    /// Whether it speaks against what the log says of its entries, and not only of where they come from, of what became of their keys, of
    /// events, or of the log since.
    pub fn is_damage(self) -> bool {
        let besides_entries = matches!(
            self,
            Self::SourcesDamaged
                | Self::KeyLost
                | Self::EventInvalid
                | Self::ErasureKeyUnordered
                | Self::ErasureUnordered
                | Self::HoldUnordered
                | Self::ErasedWhileHeld
                | Self::Unwitnessed
                | Self::Stale
                | Self::PathMissing
        );
        self.severity() == Severity::Violation && !besides_entries
    }

    /// Whether it fails a verification.
    pub fn severity(self) -> Severity {
        match self {
            Self::UnsignedTail
            | Self::UnwitnessedTail
            | Self::Abandoned
            | Self::Gap
            | Self::IndexDamaged
            | Self::UnknownFile => Severity::Notice,
            _ => Severity::Violation,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The log is not what was written, or that could not be established.
    Violation,
    /// Worth knowing; nothing is amiss.
    Notice,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Violation => "violation",
            Severity::Notice => "notice",
        })
    }
}

/// One thing that a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// How grave.
    pub severity: Severity,
    /// The segment's file name.
    pub segment: Option<String>,
    /// Where in the segment, in bytes.
    pub offset: Option<u64>,
    /// The (first) frame.
    pub frame: Option<u64>,
    /// The first and last entry that it concerns.
    pub entries: Option<(u64, u64)>,
    /// What a person should know.
    pub detail: String,
    /// The last frame, where one finding stands for several.
    pub last_frame: Option<u64>,
    /// How many it stands for: those of neighbouring frames that are alike are one.
    pub count: u64,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, detail: impl Into<String>) -> Self {
        Finding {
            kind,
            severity: kind.severity(),
            segment: None,
            offset: None,
            frame: None,
            entries: None,
            detail: detail.into(),
            last_frame: None,
            count: 1,
        }
    }

    /// That a segment, which `place` is in, ends before a frame does, or that no segment has it.
    pub(crate) fn missing(place: Option<(SegmentName, u64)>, commitment: &Commitment) -> Self {
        let detail = match place {
            Some(_) => "the segment ends before the frame does",
            None => "no segment has it",
        };
        let finding = Finding::new(FindingKind::FramesMissing, detail).frame(commitment.frame);
        let finding = finding.entries(commitment.first_entry, commitment.entries);
        place.into_iter().fold(finding, |finding, (segment, offset)| finding.at(segment, offset))
    }

    /// The same of frames that may lie elsewhere: on paths of the log that are not there, in words. Nothing says then which segment they
    /// should be in.
    pub(crate) fn unless_elsewhere(mut self, not_there: &str) -> Self {
        if !not_there.is_empty() {
            (self.segment, self.offset) = (None, None);
            self.detail = format!("no segment that is at hand has it; {not_there}");
        }
        self
    }

    /// The same of what is missing and may lie on paths of the log that are not there, in words.
    pub(crate) fn where_it_may_be(mut self, not_there: &str) -> Self {
        if !not_there.is_empty() {
            self.detail = format!("{}; {not_there}", self.detail);
        }
        self
    }

    /// The same of what an event may explain, such as one of a crash, that lies on a path of the log which is not there, in words.
    pub(crate) fn unless_explained_elsewhere(mut self, not_there: &str) -> Self {
        if !not_there.is_empty() {
            self.detail = format!("{}; an event that is missing may tell why: {not_there}", self.detail);
        }
        self
    }

    /// The same, of what whoever verifies knows from elsewhere to be all right.
    pub(crate) fn notice(mut self) -> Self {
        self.severity = Severity::Notice;
        self
    }

    pub(crate) fn at(mut self, segment: impl fmt::Display, offset: u64) -> Self {
        self.segment = Some(segment.to_string());
        self.offset = Some(offset);
        self
    }

    pub(crate) fn frame(mut self, frame: u64) -> Self {
        self.frame = Some(frame);
        self.last_frame = Some(frame);
        self
    }

    pub(crate) fn entries(mut self, first: u64, count: u64) -> Self {
        self.entries = count.checked_sub(1).map(|more| (first, first + more));
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.severity, self.kind)?;
        if let Some(segment) = &self.segment {
            write!(f, " in {segment}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        match (self.frame, self.last_frame) {
            (Some(first), Some(last)) if first != last => write!(f, ", frames {first} to {last}")?,
            (Some(frame), _) => write!(f, ", frame {frame}")?,
            _ => {}
        }
        if let Some((first, last)) = self.entries {
            write!(f, ", entries {first} to {last}")?;
        }
        // Indented, so that no line of a name or a message passes for one of the report.
        write!(f, ": {}", self.detail.replace('\n', "\n    "))
    }
}

/// Findings as they come, in bounded memory: neighbours of one kind become one finding.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    left_out: u64,
}

impl Findings {
    const MOST: usize = 10_000;

    pub(crate) fn add(&mut self, finding: Finding) {
        if let Some(last) = self.list.last_mut()
            && (last.kind, last.severity) == (finding.kind, finding.severity)
            && last.segment == finding.segment
            && last.detail == finding.detail
            && last.last_frame.is_some()
            && last.last_frame.map(|frame| frame + 1) == finding.frame
        {
            last.last_frame = finding.last_frame;
            last.count += finding.count;
            last.entries = match (last.entries, finding.entries) {
                (Some((first, _)), Some((_, end))) => Some((first, end)),
                (known, None) => known,
                (None, known) => known,
            };
        } else if self.list.len() < Self::MOST {
            self.list.push(finding);
        } else {
            self.left_out += finding.count;
        }
    }

    /// Takes in what was found beside these, by whoever looked into the same frames.
    pub(crate) fn extend(&mut self, others: Findings) {
        others.list.into_iter().for_each(|finding| self.add(finding));
        self.left_out += others.left_out;
    }

    /// Whether there is one of this kind.
    pub(crate) fn has(&self, kind: FindingKind) -> bool {
        self.list.iter().any(|finding| finding.kind == kind)
    }

    /// Whether there is a violation.
    pub(crate) fn has_violation(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Violation)
    }

    /// Whether there is a violation of any other kind.
    pub(crate) fn has_violation_besides(&self, kind: FindingKind) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Violation && finding.kind != kind)
    }

    /// All of them, in the order of frames.
    pub(crate) fn finish(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|finding| (finding.frame.unwrap_or(u64::MAX), finding.kind));
        let sorted = std::mem::take(&mut self.list);
        sorted.into_iter().for_each(|finding| self.add(finding));
        if self.left_out > 0 {
            let are = agreeing(self.left_out, "more finding is", "more findings are");
            let detail = format!("{} {are} not listed", self.left_out);
            self.list.push(Finding::new(FindingKind::MoreFindings, detail));
        }
        self.list
    }
}
