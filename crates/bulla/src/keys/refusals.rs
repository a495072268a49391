//! Which of the log's witnesses refuse it, having cosigned another history than this one: kept in the key directory, so that it is told after the
//! writer has ended, too. A line each: the id of the witness's key, since when, how many frames were refused, and why.
//!
//! It is what the writing host remembers, and no evidence: the witness has that.

use crate::keys::files;
use bulla_store::{Error, Result, Store};
use bulla_text::is_obeyed;
use std::io;

const FILE: &str = "witness.refusals";
const HEADER: &str = "bulla witness refusals v1";
/// The longest file, in bytes: more than as many witnesses as a log asks have to say.
const MOST: u64 = 64 << 10;
/// How much is kept of what a witness says, in characters.
const MOST_WHY: usize = 500;

/// That a witness refuses a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessRefusal {
    /// The id of the witness's key.
    pub key_id: u32,
    /// Since when, by this host's clock, in seconds since the Unix epoch.
    pub time: i64,
    /// How many frames it refused to cosign then.
    pub frames: u64,
    /// Why, in one line.
    pub why: String,
}

impl WitnessRefusal {
    pub(crate) fn new(key_id: u32, time: i64, frames: u64, why: &str) -> Self {
        let why = why.chars().filter(|c| !is_obeyed(*c)).take(MOST_WHY).collect();
        WitnessRefusal { key_id, time, frames, why }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, ' ');
        Some(WitnessRefusal {
            key_id: u32::from_str_radix(parts.next()?, 16).ok()?,
            time: parts.next()?.parse().ok()?,
            frames: parts.next()?.parse().ok()?,
            why: parts.next()?.to_owned(),
        })
    }
}

/// The witnesses that refuse the log whose keys lie there, as its writer was told last; none where it was never told of any.
///
/// # Errors
/// `Unavailable` where the file is damaged or cannot be read.
pub fn load(keys: &dyn Store) -> Result<Vec<WitnessRefusal>> {
    let bytes = match bulla_store::read_small(keys, FILE, MOST) {
        Ok(bytes) => bytes,
        Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let damaged = || {
        Error::unavailable(format!(
            "{} is damaged, so that it does not say which witnesses refuse the log: remove it, and have a writer ask them again",
            keys.describe(FILE)
        ))
    };
    let text = String::from_utf8(bytes).map_err(|_| damaged())?;
    let mut lines = text.lines();
    if lines.next() != Some(HEADER) || !text.ends_with('\n') {
        return Err(damaged());
    }
    lines.map(WitnessRefusal::parse).collect::<Option<_>>().ok_or_else(damaged)
}

/// Has these be kept, and no others.
///
/// # Errors
/// `Unavailable` where the file cannot be written.
pub(crate) fn store(keys: &dyn Store, refusals: &[WitnessRefusal]) -> Result<()> {
    let lines = refusals
        .iter()
        .map(|WitnessRefusal { key_id, time, frames, why }| format!("{key_id:08x} {time} {frames} {why}\n"));
    let text = format!("{HEADER}\n{}", lines.collect::<String>());
    files::replace(keys, FILE, text.as_bytes())
}
