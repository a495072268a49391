//! Public keys, as options have them: in the argument itself, or in a file.

use crate::exit::Failure;
use crate::log_paths::read_small;
use bulla::{LogKey, VerifierKey};
use std::path::Path;
use std::str::FromStr;

/// The key of a log that `--key` names, where it was given: of Ed25519, or of ML-DSA-44.
pub(crate) fn log_key(argument: Option<&str>) -> Result<Option<LogKey>, Failure> {
    argument.map(|argument| key_in("--key", argument)).transpose()
}

/// The same for a command that goes by the log's Ed25519 key alone; `why` it does.
pub(crate) fn ed25519_log_key(argument: Option<&str>, why: &str) -> Result<Option<VerifierKey>, Failure> {
    match log_key(argument)? {
        None => Ok(None),
        Some(LogKey::Ed25519(key)) => Ok(Some(key)),
        Some(key @ LogKey::MlDsa44(_)) => Err(Failure::usage(format!(
            "--key: {} is a key of ML-DSA-44, and {why}: name the log's Ed25519 key (`public key` of `bulla info`)",
            key.name()
        ))),
    }
}

/// What reads the key in the argument of `option` itself, or in the file that it names.
pub(crate) fn parse_key(option: &'static str) -> impl Fn(&str) -> Result<VerifierKey, Failure> {
    move |argument| key_in(option, argument)
}

pub(crate) fn key_in<Key: FromStr>(option: &str, argument: &str) -> Result<Key, Failure> {
    if let Ok(key) = argument.parse() {
        return Ok(key);
    }
    let path = Path::new(argument);
    if !path.exists() {
        return Err(Failure::usage(format!(
            "{option}: `{argument}` is neither a public key (NAME+ID+KEY) nor a file that holds one"
        )));
    }
    let text = read_small(path).map_err(|error| Failure::io(argument, &error))?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    line.and_then(|line| line.parse().ok())
        .ok_or_else(|| Failure::usage(format!("{option}: {argument} holds no public key (NAME+ID+KEY)")))
}
