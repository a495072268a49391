//! The keys that a change of the configuration names, and the one that was meant where there is none of a name.

use crate::format::options::settings;
use bulla_store::{Error, ErrorKind, Result};
use bulla_text::spelling::nearest;

/// The keys of `[log]`, and why those that never change do not.
const LOG_KEYS: [(&str, Option<&str>); 11] = [
    ("log.version", Some("it is the format that the log is written in")),
    ("log.id", Some("it is in every frame of the log")),
    ("log.origin", Some("it is the name by which the log's checkpoints are known")),
    ("log.vkey", Some("it is the key by which others know the log")),
    ("log.hash", Some("the roots of its blocks are made with it")),
    ("log.erasure", Some("what was written so stays so: `bulla init --erasure` decides")),
    ("log.common", Some("what was written so stays so: `bulla init --common` decides")),
    ("log.recipients", None),
    ("log.heartbeat", None),
    ("log.witness_policy", None),
    ("log.erasure_key", None),
];
pub(super) const RECIPIENTS: &str = "log.recipients";
pub(super) const HEARTBEAT: &str = "log.heartbeat";
pub(super) const WITNESS_POLICY: &str = "log.witness_policy";
pub(super) const ERASURE_KEY: &str = "log.erasure_key";
/// The setting that names places of which opening the log makes something.
pub(super) const REPLICAS: &str = "vault_replicas";
/// The setting that names the pin, which is made where it is missing.
pub(super) const PIN: &str = "pin";
/// The setting that names the paths on which the log goes on: they are made where they are none yet.
pub(super) const BACKUP_PATHS: &str = "backup_paths";
/// The setting that names the directory for what is dropped.
pub(super) const ERROR_PATH: &str = "error_path";
/// The settings that name places, none of which may lie in another.
pub(super) const PLACES: [&str; 4] = [BACKUP_PATHS, REPLICAS, PIN, ERROR_PATH];
/// Before the name of a field, the key of its rule.
pub(super) const FIELDS: &str = "log.fields.";

/// Whether there is such a key, and it may be changed.
pub(super) fn check_key(key: &str) -> Result<()> {
    if settings::names().any(|name| name == key) {
        return Ok(());
    }
    match LOG_KEYS.iter().find(|(name, _)| *name == key) {
        Some((_, None)) => Ok(()),
        Some((_, Some(reason))) => {
            Err(Error::new(ErrorKind::Refused, format!("`{key}` never changes: {reason}")))
        }
        None => Err(unknown_key(key)),
    }
}

pub(super) fn unknown_key(key: &str) -> Error {
    if key == FIELDS.trim_end_matches('.') {
        return Error::invalid(format!("`{key}` is a table: say which field, such as `{FIELDS}client`"));
    }
    let known = settings::names().chain(LOG_KEYS.iter().map(|(name, _)| *name));
    let spellings = known.flat_map(|name| [(name, name), (name.strip_prefix("log.").unwrap_or(name), name)]);
    match nearest(key, spellings) {
        Some(name) => Error::invalid(format!("there is no key `{key}`; did you mean `{name}`?")),
        None => Error::invalid(format!("there is no key `{key}`; `bulla config DIR` lists them all")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Configure;
    use bulla_store::ErrorKind;

    #[test]
    fn a_name_that_is_nearly_one_is_understood() {
        for (key, meant) in [
            ("linge", "`linger`"),
            ("append-timeout", "`append_timeout`"),
            ("Memory", "`memory`"),
            ("recipients", "`log.recipients`"),
            ("segmentsize", "`segment_size`"),
            ("retry_dela", "`retry_delay`"),
        ] {
            let error = Configure::default().set(key, "1").unwrap_err();
            assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(meant), "{error}");
        }
        let error = Configure::default().set("colour", "1").unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn what_the_log_is_known_by_never_changes() {
        for key in ["log.id", "log.origin", "log.vkey", "log.version", "log.hash"] {
            let refused = [Configure::default().set(key, "1"), Configure::default().unset(key)];
            assert!(
                refused.iter().all(|it| it.as_ref().is_err_and(|e| e.kind() == ErrorKind::Refused)),
                "{key}"
            );
        }
    }
}
