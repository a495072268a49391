//! What changes come to, before anything is done.

use super::names::{ERASURE_KEY, FIELDS, HEARTBEAT, RECIPIENTS, WITNESS_POLICY};
use super::{Configure, Configured};
use crate::format::config::{self, LogConfig, edit};
use crate::format::event::{Event, Rekeyed, is_same_key};
use crate::format::options::{SettingPlace, Tuning, settings};
use crate::keys::{files, settings as host_settings};
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::write::recover::Recovery;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The texts of both files, and what they say, before the changes and after.
pub(super) struct Plan {
    /// Where what is changed is kept. The other file changes only where it has, against the rule, what is kept here.
    pub(super) place: SettingPlace,
    pub(super) old: Vec<u8>,
    pub(super) new: String,
    pub(super) old_host: String,
    /// The text of the key directory's settings, where that changes.
    pub(super) host: Option<String>,
    pub(super) before: LogConfig,
    pub(super) after: LogConfig,
    /// Of a change of the erasure key.
    pub(super) order: Option<String>,
    pub(super) tuning: Tuning,
    pub(super) configured: Configured,
}

impl Configure {
    /// What the changes come to. The caller holds the lock on the file.
    pub(super) fn plan(&self, log: &dyn Store, keys: &dyn Store) -> Result<Plan> {
        let place = self.place(log, keys)?;
        let old = config::read(log)?;
        let old_host = host_settings::read(keys)?;
        let (new, new_host) = self.edit((log, &old), (keys, &old_host))?;
        let (before, _) = config::parse(&old)?;
        let new = self.edit_erasure_key(self.edit_fields(new)?, &before)?;
        let (after, options) = config::parse(new.as_bytes())?;
        let tuning = Tuning::try_from(options.with_host(host_settings::parse(keys, &new_host)?))
            .or_else(|error| self.check_others((log, &old), (keys, &old_host)).and(Err(error)))?;
        check_identity(&before, &after)?;
        let host = (new_host != old_host).then_some(new_host);
        if host.is_some() && new.as_bytes() != old && self.names().len() > 1 {
            return Err(self.moves_with_others(
                place,
                (log, &String::from_utf8_lossy(&old)),
                (keys, &old_host),
            )?);
        }
        let configured = Configured {
            changed: new.as_bytes() != old || host.is_some(),
            log: (before.digest != after.digest).then_some((before.digest, after.digest)),
            keys: before.differing(&after),
            settings: settings_of(&old) != settings_of(new.as_bytes()) || host.is_some(),
            made_pin: None,
            paths: Vec::new(),
            live: false,
            recovery: Recovery::default(),
            hold_differences: Vec::new(),
            resumed: None,
        };
        let order = self.erasure_key.as_ref().map(|change| change.note().to_owned());
        Ok(Plan { place, old, new, old_host, host, before, after, order, tuning, configured })
    }

    /// Refuses files that have a setting out of its bounds already, of which nothing is changed here: it is not what was asked
    /// for that is wrong.
    fn check_others(&self, (log, text): (&dyn Store, &[u8]), (keys, host): (&dyn Store, &str)) -> Result<()> {
        let unset = self.settings.iter().map(|(name, _)| (name.clone(), None)).collect();
        let without = Configure { settings: unset, ..Configure::default() };
        let (text, host) = without.edit((log, text), (keys, host))?;
        config::check_bounds(log, config::parse(text.as_bytes())?.1)?;
        host_settings::check_bounds(keys, host_settings::parse(keys, &host)?)
    }

    /// Where all of what is changed is kept.
    fn place(&self, log: &dyn Store, keys: &dyn Store) -> Result<SettingPlace> {
        let is_host = |name: &String| settings::place_of(name) == Some(SettingPlace::Keys);
        let (of_keys, of_log) = self.names().into_iter().partition::<Vec<_>, _>(is_host);
        if of_keys.is_empty() || of_log.is_empty() {
            return Ok(if of_keys.is_empty() { SettingPlace::Log } else { SettingPlace::Keys });
        }
        Err(Error::invalid(format!(
            "{} is kept in {}, and {} in {}: no step changes both files, and a crash between the two would leave half of \
             the change. Nothing was changed; change what is in one of them first, and then what is in the other",
            quoted(&of_keys),
            keys.describe(files::SETTINGS),
            quoted(&of_log),
            log.describe(config::FILE),
        )))
    }

    /// The keys that are changed.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.settings.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        names.extend(self.recipients.iter().map(|_| RECIPIENTS.to_owned()));
        names.extend(self.heartbeat.iter().map(|_| HEARTBEAT.to_owned()));
        names.extend(self.witness_policy.iter().map(|_| WITNESS_POLICY.to_owned()));
        names.extend(self.erasure_key.iter().map(|_| ERASURE_KEY.to_owned()));
        names.extend(self.fields.iter().map(|(field, _)| format!("{FIELDS}{field}")));
        names
    }

    /// The error of a change that would move a setting to the file where it belongs and change something else, too: a setting is
    /// in both files until it is moved, and that is no half of anything only where it is moved alone.
    fn moves_with_others(
        &self,
        place: SettingPlace,
        (log, text): (&dyn Store, &str),
        (keys, host): (&dyn Store, &str),
    ) -> Result<Error> {
        let (of_log, of_keys) = (log.describe(config::FILE), keys.describe(files::SETTINGS));
        let (wrong, right, text) = match place {
            SettingPlace::Keys => (of_log, of_keys, text),
            SettingPlace::Log => (of_keys, of_log, host),
        };
        let (mut moved, mut others) = (Vec::new(), Vec::new());
        for name in self.names() {
            if edit::has_setting(text, &name)? { &mut moved } else { &mut others }.push(name);
        }
        let first = quoted(&moved[..1]);
        others.splice(..0, moved.drain(1..));
        Ok(Error::invalid(format!(
            "{first} is in {wrong}, and belongs in {right}: moving it changes both files, and a crash between the two would leave \
             half of what was asked for. Nothing was changed; set or unset {first} alone first, and then {}",
            quoted(&others),
        )))
    }

    /// Refuses an erasure key that was replaced before: nothing that was signed with it is to count again.
    pub(super) fn check_former_keys(&self, plan: &Plan, log: &Arc<dyn Store>) -> Result<()> {
        let Some(change) = self.erasure_key.as_ref().filter(|_| plan.configured.log.is_some()) else {
            return Ok(());
        };
        // Of a change that was not done, too: its `from` counts or did.
        let mut counted = false;
        each_event(&Manifest::load(Snapshot::of(log.clone())?)?, 0, |_, event| {
            counted |=
                matches!(event, Event::Rekeyed(Rekeyed { from, .. }) if is_same_key(&from, change.to()));
        })?;
        let message =
            "the erasure key was this one before, under whatever name, and was replaced: it never comes back";
        if counted { Err(Error::new(ErrorKind::Refused, message)) } else { Ok(()) }
    }
}

/// The part of the file that may be edited freely.
fn settings_of(text: &[u8]) -> &[u8] {
    let cut = std::str::from_utf8(text).map_or(text.len(), config::settings_line);
    &text[cut..]
}

/// What the text says of the log's identity is never edited here; whatever else may be.
fn check_identity(before: &LogConfig, after: &LogConfig) -> Result<()> {
    let same = before.id == after.id
        && before.origin == after.origin
        && before.verifier_key == after.verifier_key
        && before.hash == after.hash
        && before.extra == after.extra;
    match same {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::Refused, "the log's identity never changes")),
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
