//! Changes to the text of `bulla.toml` that leave every other byte of it as it is.

use super::fields::{self, FieldRules};
use super::{FILE, settings_line};
use crate::format::options::settings::duration;
use crate::format::toml_value::{array, key, quote, text_block};
use bulla_store::{Error, Result};
use std::ops::Range;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Sets a setting to a value in TOML, or removes it.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has no end of a line to put the setting behind.
pub(crate) fn set_setting(text: &str, name: &str, value: Option<&str>) -> Result<String> {
    let cut = settings_line(text);
    let (log, part) = text.split_at(cut);
    let place = find(part, "settings", name)?;
    let edited = match (place, value) {
        (Some(place), Some(value)) => replaced(part, place.value, value),
        (Some(place), None) => replaced(part, place.lines(part), ""),
        (None, None) => part.to_owned(),
        (None, Some(value)) => {
            let header = if part.is_empty() { "[settings]\n" } else { "" };
            if !header.is_empty() && !log.is_empty() && !log.ends_with('\n') {
                return Err(Error::invalid(
                    "it has no line `[settings]`, and its last line has no end: add that line by hand",
                ));
            }
            let end = if part.is_empty() || part.ends_with('\n') { "" } else { "\n" };
            format!("{part}{end}{header}{name} = {value}\n")
        }
    };
    Ok(format!("{log}{edited}"))
}

/// Whether a text has the setting.
///
/// # Errors
/// `Invalid` where the part is not TOML.
pub(crate) fn has_setting(text: &str, name: &str) -> Result<bool> {
    find(&text[settings_line(text)..], "settings", name).map(|found| found.is_some())
}

/// Gives `[log]` other recipients.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has none.
pub(crate) fn set_recipients(text: &str, recipients: &[String]) -> Result<String> {
    let (log, settings) = text.split_at(settings_line(text));
    let place = find(log, "log", "recipients")?;
    let place = place.ok_or_else(|| Error::invalid(format!("{FILE} has no `recipients`")))?;
    Ok(replaced(log, place.value, &array(recipients)) + settings)
}

/// Gives `[log]` another erasure key.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has none.
pub(crate) fn set_erasure_key(text: &str, key: &str) -> Result<String> {
    let (log, settings) = text.split_at(settings_line(text));
    let place = find(log, "log", "erasure_key")?;
    let place = place.ok_or_else(|| Error::invalid(format!("{FILE} has no `erasure_key`")))?;
    Ok(replaced(log, place.value, &quote(key)) + settings)
}

/// Has `[log]` promise a heartbeat, or none.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has no recipients to put it behind.
pub(crate) fn set_heartbeat(text: &str, heartbeat: Option<Duration>) -> Result<String> {
    let (log, settings) = text.split_at(settings_line(text));
    let value = heartbeat.map(|time| quote(&duration(time)));
    let edited = match (find(log, "log", "heartbeat")?, value) {
        (Some(place), Some(value)) => replaced(log, place.value, &value),
        (Some(place), None) => replaced(log, place.lines(log), ""),
        (None, None) => log.to_owned(),
        (None, Some(value)) => behind_recipients(log, &format!("heartbeat = {value}\n"))?,
    };
    Ok(edited + settings)
}

/// Has `[log]` name the witnesses that are asked, or none: the text of a policy, which is one.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has no recipients to put it behind.
pub(crate) fn set_witness_policy(text: &str, policy: Option<&str>) -> Result<String> {
    let (log, settings) = text.split_at(settings_line(text));
    let value = policy.map(text_block);
    let edited = match (find(log, "log", "witness_policy")?, value) {
        (Some(place), Some(value)) => replaced(log, place.value, &value),
        (Some(place), None) => replaced(log, place.lines(log), ""),
        (None, None) => log.to_owned(),
        (None, Some(value)) => behind_recipients(log, &format!("witness_policy = {value}\n"))?,
    };
    Ok(edited + settings)
}

/// Puts keys of one's own into `[log]`.
///
/// # Errors
/// `Invalid` where the part is not TOML, or has no recipients to put them behind.
pub(crate) fn add_extra(text: &str, extra: &[(String, String)]) -> Result<String> {
    let (log, settings) = text.split_at(settings_line(text));
    let lines = extra.iter().map(|(name, value)| format!("{} = {}\n", key(name), quote(value)));
    Ok(behind_recipients(log, &lines.collect::<String>())? + settings)
}

fn behind_recipients(log: &str, lines: &str) -> Result<String> {
    let before = find(log, "log", "recipients")?;
    let before = before.ok_or_else(|| Error::invalid(format!("{FILE} has no `recipients`")))?;
    let end = before.lines(log).end;
    Ok(replaced(log, end..end, lines))
}

/// Gives `[log]` other rules for fields: the table's lines change, or come last, or go.
pub(crate) fn set_fields(text: &str, rules: &FieldRules) -> String {
    let (log, settings) = text.split_at(settings_line(text));
    let (before, after) = match line(log, |line| line.trim_end() == fields::HEADER) {
        None => (log, ""),
        Some(start) => {
            let (before, table) = log.split_at(start);
            let body = table.find('\n').map_or(table.len(), |end| end + 1);
            let end = line(&table[body..], |line| line.starts_with('[')).unwrap_or(table.len() - body);
            (before, &table[body + end..])
        }
    };
    let table = rules.render();
    let table = if table.is_empty() { table } else { format!("\n{table}") };
    format!("{}\n{table}\n{after}{settings}", before.trim_end())
}

/// Where the first line begins that is meant.
fn line(text: &str, meant: impl Fn(&str) -> bool) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if meant(line) {
            return Some(start);
        }
        start += line.len();
    }
    None
}

/// Where a key and its value stand, in bytes.
struct KeyValue {
    key: Range<usize>,
    value: Range<usize>,
}

impl KeyValue {
    /// The lines that they stand on.
    fn lines(&self, part: &str) -> Range<usize> {
        let start = part[..self.key.start].rfind('\n').map_or(0, |end| end + 1);
        let end = part[self.value.end..].find('\n').map_or(part.len(), |end| self.value.end + end + 1);
        start..end
    }
}

fn find(part: &str, table: &str, name: &str) -> Result<Option<KeyValue>> {
    let root = DeTable::parse(part).map_err(|error| super::wrong_toml(("", part), &error))?;
    let Some(DeValue::Table(table)) = root.get_ref().get(table).map(toml::Spanned::get_ref) else {
        return Ok(None);
    };
    let found = table.iter().find(|(key, _)| key.get_ref() == name);
    Ok(found.map(|(key, value)| KeyValue { key: key.span(), value: value.span() }))
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    let mut text = text.to_owned();
    text.replace_range(range, with);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# what\n[log]\nrecipients = [ 'a', # one\n 'b' ] # who\nversion = 1\n\n[settings] \n# how\n\
                        memory=\"1\" # much\n  \"linger\" = '''x''' # long\nretries = 3";

    fn set(text: &str, name: &str, value: Option<&str>) -> String {
        set_setting(text, name, value).unwrap()
    }

    #[test]
    fn only_the_value_changes() {
        assert_eq!(set(TEXT, "memory", Some("\"2\"")), TEXT.replace("\"1\"", "\"2\""));
        assert_eq!(set(TEXT, "linger", Some("5")), TEXT.replace("'''x'''", "5"));
        assert_eq!(set(TEXT, "retries", Some("4")), TEXT.replace("retries = 3", "retries = 4"));
        let recipients = ["c".to_owned(), "d".to_owned()];
        let expected = TEXT.replace("[ 'a', # one\n 'b' ]", "[\n  \"c\",\n  \"d\",\n]");
        assert_eq!(set_recipients(TEXT, &recipients).unwrap(), expected);
    }

    #[test]
    fn a_new_setting_comes_last() {
        assert_eq!(set(TEXT, "writers", Some("2")), format!("{TEXT}\nwriters = 2\n"));
        assert_eq!(set("[log]\n", "writers", Some("2")), "[log]\n[settings]\nwriters = 2\n");
        assert_eq!(set("[log]\n[settings]", "writers", Some("2")), "[log]\n[settings]\nwriters = 2\n");
        // What follows the last line end belongs to `[log]`, and has its digest.
        set_setting("[log]", "writers", Some("2")).unwrap_err();
    }

    #[test]
    fn rules_for_fields_come_last_in_the_log_part_change_and_go_without_a_trace() {
        const BEFORE: &str = "# what\n[log]\nrecipients = [\n  \"a\",\n]\n\n[settings] \nfields = 1\n";
        let mut rules = FieldRules::default();
        assert_eq!(set_fields(BEFORE, &rules), BEFORE);
        rules.set("client", "drop").unwrap();
        let one = set_fields(BEFORE, &rules);
        let table = "]\n\n[log.fields]\nclient = \"drop\"\n\n[settings]";
        assert_eq!(one, BEFORE.replace("]\n\n[settings]", table));
        rules.set("payload", "cap:7").unwrap();
        let two = set_fields(&one, &rules);
        assert_eq!(two, one.replace("\"drop\"\n", "\"drop\"\npayload = \"cap:7\"\n"));
        rules.set("payload", "keep").unwrap();
        assert_eq!(set_fields(&two, &rules), one);
        assert_eq!(set_fields(&two, &FieldRules::default()), BEFORE);
        // Another table behind it stays.
        let more = two.replace("[settings]", "[log.more]\nx = 1\n\n[settings]");
        assert_eq!(set_fields(&more, &rules), one.replace("[settings]", "[log.more]\nx = 1\n\n[settings]"));
    }

    #[test]
    fn a_heartbeat_comes_after_the_recipients_changes_and_goes() {
        let set = |text: &str, seconds: u64| {
            set_heartbeat(text, Some(seconds).filter(|&it| it > 0).map(Duration::from_secs)).unwrap()
        };
        let one = set(TEXT, 60);
        assert_eq!(one, TEXT.replace("# who\n", "# who\nheartbeat = \"60 s\"\n"));
        assert_eq!(set(&one, 5), one.replace("60 s", "5 s"));
        assert_eq!((set(&one, 0), set(TEXT, 0)), (TEXT.to_owned(), TEXT.to_owned()));
        set_heartbeat("[log]\n", Some(Duration::from_secs(1))).unwrap_err();
    }

    #[test]
    fn a_policy_stands_as_it_is_changes_and_goes() {
        let policy = "# \"ours\" \\ and\ttheirs\nquorum none\n";
        let one = set_witness_policy(TEXT, Some(policy)).unwrap();
        let line = format!("# who\nwitness_policy = '''\n{policy}'''\n");
        assert_eq!(one, TEXT.replace("# who\n", &line));
        let quotes = "# '''\nquorum none\n";
        for text in [policy, quotes] {
            let set = set_witness_policy(&one, Some(text)).unwrap();
            let table = set[..settings_line(&set)].parse::<toml::Table>().unwrap();
            assert_eq!(table["log"]["witness_policy"].as_str(), Some(text));
            assert_eq!(set_witness_policy(&set, None).unwrap(), TEXT);
        }
    }

    #[test]
    fn a_setting_goes_with_its_line() {
        assert_eq!(set(TEXT, "memory", None), TEXT.replace("memory=\"1\" # much\n", ""));
        assert_eq!(set(TEXT, "linger", None), TEXT.replace("  \"linger\" = '''x''' # long\n", ""));
        assert_eq!(set(TEXT, "retries", None), TEXT.replace("retries = 3", ""));
        assert_eq!(set(TEXT, "writers", None), TEXT);
        assert_eq!(set("[log]\n", "writers", None), "[log]\n");
    }

    #[test]
    fn what_looks_like_a_setting_elsewhere_is_none() {
        let text = "[log]\nmemory = 1\n# [settings]\n[settings]\n# memory = 2\n";
        assert_eq!(set(text, "memory", None), text);
        assert_eq!(set(text, "memory", Some("3")), format!("{text}memory = 3\n"));
    }
}
