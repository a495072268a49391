//! Opening a log to write it, and what is told of that.

use crate::log_paths::LogPaths;
use crate::lost_frames::tell_unknown_events;
use bulla::environment::Environment;
use bulla::store::FileSystem;
use bulla::text::spelling::{agreeing, counted};
use bulla::{HoldDifference, Log, Options, Recovery, ResumedErasure};
use std::path::Path;
use std::sync::Arc;

/// Opens a log for writing, and tells what that recovered, how holds differed from what the log tells of them, and what came of an
/// erasure that was cut short.
pub(crate) fn open(place: &LogPaths, environment: Environment) -> bulla::Result<Log> {
    open_with(place, Options::default(), environment)
}

/// The same, with options.
pub(crate) fn open_with(place: &LogPaths, options: Options, environment: Environment) -> bulla::Result<Log> {
    let store = |path| Arc::new(FileSystem::new(path));
    let (log, keys) = (store(place.directory()), store(place.keys()));
    let log = Log::open_stores(log, keys, options, environment)?;
    tell_opened(&log);
    Ok(log)
}

/// Tells what opening a log found.
pub(crate) fn tell_opened(log: &Log) {
    tell_recovery(log.recovery());
    tell_differences(log.hold_differences());
    tell_resumed(log.resumed_erasure());
    tell_unknown_events(log.lost_frames());
    if let Some(pinned) = log.pinned().filter(|pinned| pinned.made) {
        tell_made_pin(&pinned.path, pinned.frames);
    }
}

/// Tells that there is a new pin: whoever expected one to be there finds out so.
pub(crate) fn tell_made_pin(path: &Path, frames: u64) {
    note!("made the pin {}, which covers {}: there was none", path.display(), counted(frames, "frame"));
}

pub(crate) fn tell_recovery(Recovery { frames, entries, torn_bytes, cose_damaged, .. }: Recovery) {
    if frames > 0 {
        let were = agreeing(entries, "was", "were");
        let (entries, frames) = (counted(entries, "entry"), counted(frames, "frame"));
        note!("recovered: {entries} in {frames}, durable but not yet signed, {were} adopted");
    }
    if torn_bytes > 0 {
        note!(
            "recovered: a torn tail of {}, which nobody was told is durable, was set aside",
            counted(torn_bytes, "byte")
        );
    }
    if cose_damaged {
        note!(
            "checkpoint.cose was damaged, or signed by another key, which `bulla verify` tells as `cose-mismatch`: it was made anew"
        );
    }
}

/// Tells how holds differed from what the log tells of them.
pub(crate) fn tell_differences(differences: &[HoldDifference]) {
    for difference in differences {
        match difference {
            HoldDifference::Unreadable(_) => {
                note!("{difference}; until then nobody is erased, held or released")
            }
            HoldDifference::Untold { .. } => {
                note!("{difference}: the hold that the file has counts, and the log tells of it now")
            }
            _ => note!("{difference}: the log's word counts, and the file says so now"),
        }
    }
}

/// Tells what opening the log made of an erasure that was cut short.
pub(crate) fn tell_resumed(resumed: Option<&ResumedErasure>) {
    if let Some(resumed) = resumed {
        note!("{resumed}");
    }
}
