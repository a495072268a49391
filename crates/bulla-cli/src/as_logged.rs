//! What is said where a filter asks for what the log's rules leave of no value: it finds nothing that was logged under them, and
//! silence would be taken for an answer.

use crate::log_paths::LogPaths;
use bulla::Query;
use bulla::config;

/// Says so of each such filter, and what to filter for. Of the values that were asked for it repeats none.
pub(crate) fn tell(place: &LogPaths, query: &Query) {
    // Of a configuration that cannot be read whoever reads the log tells.
    let log = place.log().and_then(|log| config::load_of_log(&*log));
    let Ok((log, _)) = log else { return };
    query.fields.not_as_logged(&log.fields).iter().for_each(|told| note!("{told}"));
}
