//! `settings.toml` of the key directory: the settings that name paths, or that what the writing host promises rests on.
//!
//! They are here, and not in `[settings]` of `bulla.toml`, because whoever keeps the log's directory can write there: nothing in
//! that file may have the host copy its keys, acknowledge what is not durable, or sign later than it was told to. The file holds
//! one table, `[settings]`, and nothing else. One that is not there says nothing.

use crate::format::config::{self, edit};
use crate::format::options::{Options, SettingPlace};
use crate::format::toml_value::quote;
use crate::keys::files;
use bulla_store::{Error, ErrorKind, Result, Store};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The longest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;
/// The text of a file that is not there yet.
const EMPTY: &str =
    "# How this host runs the log that these keys are of. `bulla config` shows and changes it.\n[settings]\n";

/// The settings in the key directory; none where it has no such file.
///
/// # Errors
/// `Unavailable` where the file cannot be read, is none, or has a setting that belongs in `bulla.toml`.
pub fn load(keys: &dyn Store) -> Result<Options> {
    parse(keys, &read(keys)?)
}

/// The backup paths that the file names. Of a setting that is misplaced or out of its bounds whoever rests on it tells.
///
/// # Errors
/// `Unavailable` where it cannot be read, or is none: then nobody can tell which paths the log has.
pub(crate) fn backup_paths(keys: &dyn Store) -> Result<Vec<PathBuf>> {
    let settings = config::parse_settings(&read(keys)?).map_err(|error| damaged(keys, error))?;
    Ok(settings.named_backup_paths().to_owned())
}

/// The text of the file.
///
/// # Errors
/// `Unavailable` where it cannot be read, or is no text.
pub(crate) fn read(keys: &dyn Store) -> Result<String> {
    match files::read_if_there(keys, files::SETTINGS, LIMIT)? {
        None => Ok(EMPTY.to_owned()),
        Some(bytes) => String::from_utf8(bytes).map_err(|_| damaged(keys, "it is not UTF-8")),
    }
}

/// What a text says.
///
/// # Errors
/// As [`load`].
pub(crate) fn parse(keys: &dyn Store, text: &str) -> Result<Options> {
    let options = config::parse_settings(text).map_err(|error| damaged(keys, error))?;
    match options.misplaced(SettingPlace::Keys).first() {
        None => Ok(options),
        Some(setting) => {
            let (name, right) = (keys.describe(files::SETTINGS), config::FILE);
            Err(Error::unavailable(format!(
                "{name} has `{setting}`, which belongs in [settings] of {right}: `bulla config DIR set {setting} VALUE` moves \
                 it there, and `bulla config DIR unset {setting}` removes it"
            )))
        }
    }
}

/// Refuses a file that has a setting out of its bounds, whatever the other settings are.
///
/// # Errors
/// `Unavailable`, naming the setting.
pub(crate) fn check_bounds(keys: &dyn Store, settings: Options) -> Result<()> {
    settings.check_bounds(SettingPlace::Keys).map_err(|error| {
        let name = keys.describe(files::SETTINGS);
        Error::unavailable(format!("{name}: {error}; `bulla config` changes it"))
    })
}

/// Has the settings name the log's pin. The caller holds the lock on the configuration.
///
/// # Errors
/// As [`load`]; `Invalid` where the path is no text; `Unavailable` where the file cannot be written.
pub(crate) fn remember_pin(keys: &dyn Store, pin: &Path) -> Result<()> {
    let path = pin.to_str().ok_or_else(|| Error::invalid(format!("{} is no text", pin.display())))?;
    let text = edit::set_setting(&read(keys)?, "pin", Some(&quote(path)));
    let text = text.map_err(|error| damaged(keys, error))?;
    let written = bulla_store::replace(keys, files::SETTINGS, text.as_bytes());
    written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::SETTINGS)), error))
}

/// That the file is none, and why.
pub(crate) fn damaged(keys: &dyn Store, why: impl Display) -> Error {
    let name = keys.describe(files::SETTINGS);
    Error::unavailable(format!("{name}: {why}; mend it, or restore it from a backup"))
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
