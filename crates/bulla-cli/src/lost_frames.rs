//! What is said of frames that were lost for good with a path of the log.

use bulla::LostFrames;
use serde::Serialize;
use std::sync::Once;

/// Those frames, for a program.
#[derive(Serialize)]
pub(crate) struct LostFramesJson {
    /// The first and the last of each range of them.
    frames: Vec<[u64; 2]>,
    /// Those that were events.
    events: Vec<u64>,
    detail: String,
    #[serde(skip)]
    which: String,
}

impl LostFramesJson {
    /// Nothing where none is lost.
    pub(crate) fn of(lost: &LostFrames) -> Option<Self> {
        (!lost.is_empty()).then(|| LostFramesJson {
            frames: lost.frames.iter().map(|range| [range.start, range.end - 1]).collect(),
            events: lost.events.clone(),
            which: lost.to_string(),
            detail: lost.unknown_events().unwrap_or_else(|| lost.to_string()),
        })
    }
}

impl LostFramesJson {
    /// Which frames they are.
    pub(crate) fn frames_to_text(&self) -> &str {
        &self.which
    }

    /// The same, and what is not known because of that.
    pub(crate) fn to_text(&self) -> String {
        self.detail.clone()
    }
}

/// Tells, once, what is not known of holds and erasures, where events are lost.
pub(crate) fn tell_unknown_events(lost: &LostFrames) {
    static TOLD: Once = Once::new();
    if let Some(unknown) = lost.unknown_events() {
        TOLD.call_once(|| note!("{unknown}"));
    }
}
