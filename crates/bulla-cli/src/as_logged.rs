//! What is said where a filter asks for what the log's rules leave of no value: it finds nothing that was logged under them, and
//! silence would be taken for an answer.

use crate::log_paths::LogPaths;
use bulla::config::{self, Rule};
use bulla::store::FileSystem;
use bulla::{NotAsLogged, Query};

/// Says so of each such filter, and what to filter for. Of the values that were asked for it repeats none.
pub(crate) fn tell(place: &LogPaths, query: &Query) {
    // Of a configuration that cannot be read whoever reads the log tells.
    let Ok((log, _)) = config::load_of_log(&FileSystem::new(place.directory())) else { return };
    query.fields.not_as_logged(&log.fields).iter().for_each(|told| note!("{}", to_text(told)));
}

fn to_text(NotAsLogged { field, rule, instead, .. }: &NotAsLogged) -> String {
    let kept = match rule {
        Rule::Pseudonymise => {
            format!("a pseudonym in its place: filter for what `bulla pseudonym DIR {field} NAME` prints")
        }
        Rule::TruncateIp { .. } if instead.is_empty() => {
            "an address's network, and nothing else: filter for that, such as 192.0.2.0".to_owned()
        }
        Rule::TruncateIp { .. } => format!("an address's network: filter for {}", instead.join(", ")),
        Rule::StripQuery => "what comes before `?` and `#`: filter for that".to_owned(),
        _ => "nothing: no filter for it finds any of that".to_owned(),
    };
    format!("of `{field}` what is logged under its rule, {rule}, is {kept}")
}
