//! `settings.toml` of the key directory: the settings that name paths, or that what the writing host promises rests on.
//!
//! They are here, and not in `[settings]` of `bulla.toml`, because whoever keeps the log's directory can write there: nothing in
//! that file may have the host copy its keys, acknowledge what is not durable, or sign later than it was told to. The file holds
//! one table, `[settings]`, and nothing else. One that is not there says nothing.

use crate::format::config;
use crate::format::options::{Options, SettingPlace};
use crate::keys::files;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::io;

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;
/// The text of a file that is not there yet.
const EMPTY: &str =
    "# How this host runs the log that these keys are of. `bulla config` shows and changes it.\n[settings]\n";

/// The settings in the key directory; none where it has no such file.
///
/// # Errors
/// `Unavailable` where the file cannot be read, `Invalid` where it is none, or has a setting that belongs in `bulla.toml`.
pub fn load(keys: &dyn Store) -> Result<Options> {
    parse(keys, &read(keys)?)
}

/// The text of the file.
///
/// # Errors
/// `Unavailable` where it cannot be read, `Invalid` where it is no text.
pub(crate) fn read(keys: &dyn Store) -> Result<String> {
    let bytes = match bulla_store::read_small(keys, files::SETTINGS, LIMIT) {
        Err(error) if error.io_error().map(io::Error::kind) == Some(io::ErrorKind::NotFound) => {
            return Ok(EMPTY.to_owned());
        }
        read => read?,
    };
    let name = keys.describe(files::SETTINGS);
    String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name}: it is not UTF-8")))
}

/// What a text says.
///
/// # Errors
/// As [`load`].
pub(crate) fn parse(keys: &dyn Store, text: &str) -> Result<Options> {
    let name = keys.describe(files::SETTINGS);
    let options =
        config::parse_settings(text).map_err(|error| Error::new(error.kind(), format!("{name}: {error}")))?;
    match options.misplaced(SettingPlace::Keys).first() {
        None => Ok(options),
        Some(setting) => {
            let message = format!("{name} has `{setting}`, which belongs in [settings] of {}", config::FILE);
            Err(Error::invalid(message))
        }
    }
}

/// Refuses settings of `bulla.toml` that belong in the key directory: whoever can write to the log's directory may have put
/// them there.
///
/// # Errors
/// `Refused`, naming them, where they belong, and what moves them.
pub(crate) fn refuse_misplaced(options: &Options, log: &dyn Store, keys: &dyn Store) -> Result<()> {
    let misplaced = options.misplaced(SettingPlace::Log);
    let Some(first) = misplaced.first() else { return Ok(()) };
    let named = misplaced.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(Error::new(
        ErrorKind::Refused,
        format!(
            "{} has {named} in [settings], where whoever keeps the log could have put it: it belongs in {}. `bulla config` \
             shows what the log's file says; `bulla config DIR set {first} VALUE` moves a setting where it belongs, \
             and `bulla config DIR unset {first}` removes it",
            log.describe(config::FILE),
            keys.describe(files::SETTINGS),
        ),
    ))
}
