//! Changing a log's configuration: settings, and `[log]`, of which the log itself tells.
//!
//! A setting is in `[settings]` of `bulla.toml` or in `settings.toml` of the key directory ([`SettingPlace`]). Setting one puts it
//! where it belongs, and takes it out of the other file. What is changed together is kept in one of the two, and a setting that is
//! moved is changed alone: nothing replaces two files at once, and half of what was asked for is nothing that anybody asked for.
//!
//! Invariants of a change of `[log]`:
//! - the event that allows it is under a published checkpoint, and in the seal state, before the file changes: so
//!   at no time does anybody see a file that the log does not speak of;
//! - the file changes at once, by a rename, and that alone decides: before it the log goes on with the old `[log]`,
//!   after it with the new one, whatever happens;
//! - the next epoch begins only after that: it says which of the two it was.
//!
//! They hold of a log at work, where [`Engine::change`] sees to it, as of one that is opened for the change.

mod names;

use crate::erase::{ErasureKeyChange, HoldDifference, ResumedErasure};
use crate::format::config::{self, FieldRules, LogConfig, edit};
use crate::format::event::{Event, Rekeyed, is_same_key};
use crate::format::options::{Options, SettingPlace, Tuning, settings};
use crate::keys::pseudonym::PseudonymKey;
use crate::keys::{default_keys, files, settings as host_settings};
use crate::scan::checkpoint::is_live;
use crate::scan::events::each_event;
use crate::scan::manifest::Manifest;
use crate::scan::snapshot::Snapshot;
use crate::write::engine::change::Unreplaced;
use crate::write::engine::{Directories, Engine, after_resumed, check_replicas};
use crate::write::recover::Recovery;
use bulla_crypto::environment::{Environment, KeyWrap};
use bulla_crypto::recipients::check_recipient;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Lock, Store};
use names::{ERASURE_KEY, FIELDS, HEARTBEAT, RECIPIENTS, REPLICAS, check_key, unknown_key};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Changes to a log's configuration, to be applied together.
///
/// ```
/// # let place = tempfile::tempdir().unwrap();
/// # let directory = place.path().join("audit");
/// # bulla::Init::default().create(&directory).unwrap();
/// let changed = bulla::Configure::default().set("linger", "20 ms")?.apply(&directory)?;
/// assert!(changed.changed && !changed.live);
/// # Ok::<(), bulla::Error>(())
/// ```
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configure {
    /// Names of settings and their values, as a person writes them.
    settings: Vec<(String, Option<String>)>,
    recipients: Option<Recipients>,
    /// Zero for none.
    heartbeat: Option<Duration>,
    erasure_key: Option<ErasureKeyChange>,
    /// Names of fields and their rules.
    fields: Vec<(String, String)>,
}

/// What to do with the list of recipients. It is applied to the list as it is once the file is locked.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Recipients {
    Are(Vec<String>),
    With(Vec<String>),
    Without(Vec<String>),
}

/// What came of changes to a configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Configured {
    /// Whether `bulla.toml` is another one now.
    pub changed: bool,
    /// The digests of `[log]` before and after, where that was changed.
    pub log: Option<(Hash, Hash)>,
    /// The keys of `[log]` that were changed: `recipients`, `heartbeat`, `erasure_key`, or `fields.` and the name of a field.
    pub keys: Vec<String>,
    /// Whether `[settings]` changed.
    pub settings: bool,
    /// Whether a writer has the log open: it keeps the settings that it opened it with, and goes by the new `[log]`.
    pub live: bool,
    /// What opening the log for a change of `[log]` found beyond its last checkpoint.
    pub recovery: Recovery,
    /// How the file of holds differed then from what the log tells; it was brought in line with it.
    pub hold_differences: Vec<HoldDifference>,
    /// The erasure that was cut short before, and what opening the log made of it.
    pub resumed: Option<ResumedErasure>,
}

impl Configure {
    /// Gives a setting a value, `log.recipients` a list of age recipients with commas between them, `log.heartbeat` a
    /// duration, or `log.fields.` and a field a rule, such as `truncate-ip:24/48` or `keep`.
    ///
    /// # Errors
    /// `Invalid` where there is no such key, the value is of another form, or the key was given before; `Refused` for a
    /// key of `[log]` that never changes.
    pub fn set(self, key: &str, value: &str) -> Result<Self> {
        if let Some(field) = key.strip_prefix(FIELDS) {
            return self.field(field, value);
        }
        check_key(key)?;
        if key == RECIPIENTS {
            let recipients = value.split(',').map(str::trim).filter(|recipient| !recipient.is_empty());
            return self.recipients(recipients);
        }
        if key == HEARTBEAT {
            return self.heartbeat(Some(config::parse_heartbeat(value)?));
        }
        if key == ERASURE_KEY {
            return Err(unordered());
        }
        settings::to_toml(key, value)?;
        self.change(key, Some(value.to_owned()))
    }

    /// Puts a setting back to its default.
    ///
    /// # Errors
    /// As [`Configure::set`].
    pub fn unset(self, key: &str) -> Result<Self> {
        if let Some(field) = key.strip_prefix(FIELDS) {
            return self.field(field, "keep");
        }
        check_key(key)?;
        if key == RECIPIENTS {
            return Err(no_recipients());
        }
        if key == HEARTBEAT {
            return self.heartbeat(None);
        }
        if key == ERASURE_KEY {
            return Err(Error::invalid(format!("`{ERASURE_KEY}` cannot be unset: nobody could be erased")));
        }
        self.change(key, None)
    }

    /// Has the log promise a heartbeat from now on, or none: see [`crate::Init::heartbeat`].
    ///
    /// # Errors
    /// `Invalid` where it is out of its limits, or was given before.
    pub fn heartbeat(mut self, heartbeat: Option<Duration>) -> Result<Self> {
        heartbeat.map_or(Ok(()), config::check_heartbeat)?;
        if self.heartbeat.is_some() {
            return Err(given_twice(HEARTBEAT));
        }
        self.heartbeat = Some(heartbeat.unwrap_or_default());
        Ok(self)
    }

    /// Has orders to erase be signed with another key from now on. It is changed by itself.
    ///
    /// # Errors
    /// `Invalid` where it was given before.
    pub fn erasure_key(mut self, change: ErasureKeyChange) -> Result<Self> {
        if self.erasure_key.is_some() {
            return Err(given_twice(ERASURE_KEY));
        }
        self.erasure_key = Some(change);
        Ok(self)
    }

    /// Refuses a second change of one setting, since nothing says which of the two should count.
    fn change(mut self, key: &str, value: Option<String>) -> Result<Self> {
        if self.settings.iter().any(|(name, _)| name == key) {
            return Err(given_twice(key));
        }
        self.settings.push((key.to_owned(), value));
        Ok(self)
    }

    /// Wraps the keys of epochs to come to these age recipients, and no others.
    ///
    /// # Errors
    /// `Invalid` where one is none, one is named twice, or there is none at all; and where they were given before.
    pub fn recipients(mut self, recipients: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        let recipients = checked(recipients)?;
        if recipients.is_empty() {
            return Err(no_recipients());
        }
        if let Some(twice) = (1..recipients.len()).find(|&at| recipients[..at].contains(&recipients[at])) {
            return Err(Error::invalid(format!("`{}` is named twice", recipients[twice])));
        }
        if self.recipients.is_some() {
            return Err(given_twice(RECIPIENTS));
        }
        self.recipients = Some(Recipients::Are(recipients));
        Ok(self)
    }

    /// Wraps the keys of epochs to come to these age recipients, too.
    ///
    /// # Errors
    /// `Invalid` where one is none.
    pub fn add_recipients(mut self, recipients: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        self.recipients = Some(Recipients::With(checked(recipients)?));
        Ok(self)
    }

    /// Does not wrap the keys of epochs to come to these age recipients any more. What was written before stays
    /// readable to them. Where one is not a recipient, or no other would be left, applying that is `Refused`.
    ///
    /// # Errors
    /// `Invalid` where one is none.
    pub fn remove_recipients(
        mut self,
        recipients: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self> {
        self.recipients = Some(Recipients::Without(checked(recipients)?));
        Ok(self)
    }

    /// Gives a field a rule, or takes it away with `keep`: for entries to come, never for those that are there.
    ///
    /// # Errors
    /// `Invalid` where there is no such field or rule, or the field cannot have it.
    pub fn field(mut self, field: &str, rule: &str) -> Result<Self> {
        FieldRules::default().set(field, rule)?;
        if self.fields.iter().any(|(given, _)| given == field) {
            return Err(given_twice(&format!("{FIELDS}{field}")));
        }
        self.fields.push((field.to_owned(), rule.to_owned()));
        Ok(self)
    }

    /// Applies the changes to the log in `directory`, whose keys are in `DIR.keys`.
    ///
    /// Settings can be changed beside a writer, which then keeps those that it has. A change of `[log]` needs the
    /// log for itself, and opens it: what a crash left is recovered first. Who has the log open calls
    /// [`crate::Log::configure`].
    ///
    /// # Errors
    /// `Invalid` where the settings do not fit together, or some of the changes are kept in the key directory and others in
    /// `bulla.toml`: each file is changed by itself; or where a setting is moved from one to the other together with anything
    /// else. `Locked` where somebody else is changing the
    /// configuration, or, for a change of `[log]`, has the log open; else as [`crate::Log::open`]. Whatever fails, the log has
    /// the old configuration or the new one, in whole.
    pub fn apply(&self, directory: impl AsRef<Path>) -> Result<Configured> {
        self.apply_with_keys(directory.as_ref(), default_keys(directory.as_ref()))
    }

    /// Applies the changes to the log in `directory`, whose keys are in another place.
    ///
    /// # Errors
    /// As [`Configure::apply`].
    pub fn apply_with_keys(&self, directory: impl AsRef<Path>, keys: impl AsRef<Path>) -> Result<Configured> {
        let log = Arc::new(FileSystem::new(directory.as_ref()));
        let keys = Arc::new(FileSystem::new(keys.as_ref()));
        self.apply_in(log, keys, &Environment::default())
    }

    /// Applies the changes to a log in any stores and environment.
    ///
    /// # Errors
    /// As [`Configure::apply`].
    pub fn apply_in(
        &self,
        log: Arc<dyn Store>,
        keys: Arc<dyn Store>,
        environment: &Environment,
    ) -> Result<Configured> {
        config::load_of_log(&*log)?;
        bulla_store::require_own(&*log)?;
        bulla_store::require_own(&*keys)?;
        let _lock = lock(&*log)?;
        let mut plan = self.plan(&*log, &*keys)?;
        self.check_replicas(&plan, (&*log, &*keys), environment)?;
        self.check_former_keys(&plan, &log)?;
        match plan.configured.log {
            Some(_) => {
                let opened = change_log(log, keys, environment, &plan)?;
                let configured = &mut plan.configured;
                (configured.recovery, configured.hold_differences, configured.resumed) = opened;
            }
            None => {
                plan.change_settings(&*log, &*keys)?;
                plan.configured.live = is_live(&*log)?;
            }
        }
        Ok(plan.configured)
    }

    /// Applies the changes to a log at work.
    pub(crate) fn apply_to(&self, engine: &Engine) -> Result<Configured> {
        engine.require_in_place()?;
        let log = &*engine.log;
        config::load_of_log(log)?;
        let _lock = lock(log)?;
        let mut plan = self.plan(log, &*engine.keys)?;
        plan.configured.live = true;
        self.check_replicas(&plan, (log, &*engine.keys), &engine.environment)?;
        plan.check_live(engine)?;
        self.check_former_keys(&plan, &engine.log)?;
        match plan.configured.log {
            Some(_) => plan.change_live(engine)?,
            None => plan.change_settings(log, &*engine.keys)?,
        }
        Ok(plan.configured)
    }

    /// Refuses replicas that opening the log would refuse. Where nothing is said of them here they may be on a disk that is not mounted.
    fn check_replicas(
        &self,
        plan: &Plan,
        stores: (&dyn Store, &dyn Store),
        environment: &Environment,
    ) -> Result<()> {
        match self.settings.iter().any(|(name, value)| name == REPLICAS && value.is_some()) {
            true => check_replicas(&plan.tuning.vault_replicas, stores, &plan.after, environment),
            false => Ok(()),
        }
    }

    /// What the changes come to. The caller holds the lock on the file.
    fn plan(&self, log: &dyn Store, keys: &dyn Store) -> Result<Plan> {
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
            live: false,
            recovery: Recovery::default(),
            hold_differences: Vec::new(),
            resumed: None,
        };
        let order = self.erasure_key.as_ref().map(|change| change.note().to_owned());
        Ok(Plan { place, old, new, host, before, after, order, tuning, configured })
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
    fn names(&self) -> Vec<String> {
        let mut names = self.settings.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        names.extend(self.recipients.iter().map(|_| RECIPIENTS.to_owned()));
        names.extend(self.heartbeat.iter().map(|_| HEARTBEAT.to_owned()));
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

    /// Rules that are the same already leave the text as it is.
    fn edit_fields(&self, text: String) -> Result<String> {
        let (config, _) = config::parse(text.as_bytes())?;
        let mut rules = config.fields;
        self.fields.iter().try_for_each(|(field, rule)| rules.set(field, rule))?;
        if rules == config.fields {
            return Ok(text);
        }
        let edited = edit::set_fields(&text, &rules);
        match config::parse(edited.as_bytes())?.0.fields == rules {
            true => Ok(edited),
            false => {
                Err(Error::invalid(format!("`[log.fields]` of {} is not a table of lines", config::FILE)))
            }
        }
    }

    /// A key that is the log's already leaves the text as it is.
    fn edit_erasure_key(&self, text: String, before: &LogConfig) -> Result<String> {
        let Some(change) = &self.erasure_key else { return Ok(text) };
        if let [other, ..] =
            &self.names().into_iter().filter(|name| name != ERASURE_KEY).collect::<Vec<_>>()[..]
        {
            let message =
                format!("`{ERASURE_KEY}` is changed by itself: change `{other}` before or after it");
            return Err(Error::invalid(message));
        }
        let refused = |message: &str| Err(Error::new(ErrorKind::Refused, message));
        let Some(from) = &before.erasure_key else {
            return refused("the log has no `erasure_key` that could be changed");
        };
        if from.to_string() == change.to() {
            return Ok(text);
        }
        if is_same_key(&from.to_string(), change.to()) {
            return refused(
                "the log's erasure key is this one already, under another name: its name does not change",
            );
        }
        change.check(before.id, from)?;
        before.check_erasure_key(&change.key()?)?;
        edit::set_erasure_key(&text, change.to())
    }

    /// Refuses an erasure key that was replaced before: nothing that was signed with it is to count again.
    fn check_former_keys(&self, plan: &Plan, log: &Arc<dyn Store>) -> Result<()> {
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

    /// The error that says that there is no such key, and which one may have been meant.
    pub fn unknown_key(key: &str) -> Error {
        unknown_key(key)
    }

    /// The texts of `bulla.toml` and of the key directory's settings with the changes. A setting that is changed stands in the
    /// file in which it is kept, and in no other.
    fn edit(
        &self,
        (log, text): (&dyn Store, &[u8]),
        (keys, host): (&dyn Store, &str),
    ) -> Result<(String, String)> {
        let text = std::str::from_utf8(text).map_err(|_| Error::invalid("it is not UTF-8"))?;
        let (mut edited, mut host) = (text.to_owned(), host.to_owned());
        for (name, value) in &self.settings {
            let value = value.as_deref().map(|value| settings::to_toml(name, value)).transpose()?;
            let (of_log, of_keys) = match settings::place_of(name) {
                Some(SettingPlace::Keys) => (None, value.as_deref()),
                _ => (value.as_deref(), None),
            };
            let named =
                |error: Error| Error::new(error.kind(), format!("{}: {error}", log.describe(config::FILE)));
            edited = edit::set_setting(&edited, name, of_log).map_err(named)?;
            host = edit::set_setting(&host, name, of_keys)
                .map_err(|error| host_settings::damaged(keys, error))?;
        }
        let (current, _) = config::parse(text.as_bytes())?;
        let heartbeat = self.heartbeat.map(|time| Some(time).filter(|time| !time.is_zero()));
        if let Some(heartbeat) = heartbeat.filter(|heartbeat| *heartbeat != current.heartbeat) {
            edited = edit::set_heartbeat(&edited, heartbeat)?;
        }
        let Some(recipients) = &self.recipients else { return Ok((edited, host)) };
        let recipients = recipients.of(&current.recipients)?;
        match recipients == current.recipients {
            true => Ok((edited, host)),
            false => Ok((edit::set_recipients(&edited, &recipients)?, host)),
        }
    }
}

impl Recipients {
    /// The list that comes of `current`.
    fn of(&self, current: &[String]) -> Result<Vec<String>> {
        let without = match self {
            Recipients::Are(recipients) => return Ok(recipients.clone()),
            Recipients::With(more) => {
                let mut all = current.to_vec();
                for recipient in more {
                    if !all.contains(recipient) {
                        all.push(recipient.clone());
                    }
                }
                return Ok(all);
            }
            Recipients::Without(without) => without,
        };
        let refused = |message: String| Err(Error::new(ErrorKind::Refused, message));
        if let Some(stranger) = without.iter().find(|recipient| !current.contains(recipient)) {
            return refused(format!("{stranger} is no recipient of this log"));
        }
        let left =
            current.iter().filter(|recipient| !without.contains(recipient)).cloned().collect::<Vec<_>>();
        if left.is_empty() {
            return refused(
                "the last recipient stays until there is another: nobody could read what comes".to_owned(),
            );
        }
        Ok(left)
    }
}

fn checked(recipients: impl IntoIterator<Item = impl Into<String>>) -> Result<Vec<String>> {
    let recipients = recipients.into_iter().map(Into::into).collect::<Vec<String>>();
    recipients.iter().try_for_each(|recipient| check_recipient(recipient))?;
    Ok(recipients)
}

/// What changes come to, before anything is done.
struct Plan {
    /// Where what is changed is kept. The other file changes only where it has, against the rule, what is kept here.
    place: SettingPlace,
    old: Vec<u8>,
    new: String,
    /// The text of the key directory's settings, where that changes.
    host: Option<String>,
    before: LogConfig,
    after: LogConfig,
    /// Of a change of the erasure key.
    order: Option<String>,
    tuning: Tuning,
    configured: Configured,
}

impl Plan {
    /// Changes settings. A setting has its value where it belongs before it goes from where it does not: until then the log is refused
    /// to writers, as it was before, and the same command finishes the change.
    fn change_settings(&self, log: &dyn Store, keys: &dyn Store) -> Result<()> {
        match self.place {
            SettingPlace::Log => {
                self.change_log_settings(log)?;
                self.change_host_settings(keys)
            }
            SettingPlace::Keys => {
                self.change_host_settings(keys)?;
                self.change_log_settings(log)
            }
        }
    }

    fn change_host_settings(&self, keys: &dyn Store) -> Result<()> {
        let Some(text) = &self.host else { return Ok(()) };
        let written = bulla_store::replace(keys, files::SETTINGS, text.as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::SETTINGS)), error))
    }

    fn change_log_settings(&self, log: &dyn Store) -> Result<()> {
        match self.new.as_bytes() != self.old {
            true => self.replace(log).map_err(Unreplaced::into_error),
            false => Ok(()),
        }
    }

    /// What a log at work refuses, before anything is changed.
    fn check_live(&self, engine: &Engine) -> Result<()> {
        if self.configured.log.is_none() {
            return Ok(());
        }
        if self.before.digest != engine.config().digest {
            return Err(config::edited(&*engine.log));
        }
        if self.before.fields != self.after.fields {
            // Producers have the rules that they were made with.
            let message = "rules for fields cannot be changed while a writer has the log open: stop it first";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        self.check_recipients(&engine.environment)
    }

    fn change_live(&self, engine: &Engine) -> Result<()> {
        engine.change(self.after.clone(), self.order.as_deref(), || self.replace(&*engine.log))
    }

    /// That a key can be wrapped to all of them is known before anything says so.
    fn check_recipients(&self, environment: &Environment) -> Result<()> {
        environment.key_wrap.wrap(&self.after.recipients, &[0; 32], self.tuning.plugin_timeout).map(|_| ())
    }

    fn replace(&self, log: &dyn Store) -> Result<(), Unreplaced> {
        let name = log.describe(config::FILE);
        let untouched = |log: &dyn Store| config::read(log).is_ok_and(|text| text == self.old);
        if !untouched(log) {
            let message = format!("{name} was edited by hand meanwhile: try again");
            return Err(Unreplaced::Untouched(Error::unavailable(message)));
        }
        bulla_store::replace(log, config::FILE, self.new.as_bytes()).map_err(|error| {
            let error = Error::io(format!("writing {name}"), error);
            // The rename may have happened, and a power cut may still undo it.
            if untouched(log) { Unreplaced::Untouched(error) } else { Unreplaced::Unclear(error) }
        })
    }
}

/// Opens the log for a change of `[log]`.
fn change_log(
    log: Arc<dyn Store>,
    keys: Arc<dyn Store>,
    environment: &Environment,
    plan: &Plan,
) -> Result<(Recovery, Vec<HoldDifference>, Option<ResumedErasure>)> {
    plan.check_recipients(environment)?;
    let directories = Directories::lock(&*log, &*keys)?;
    let (before, after) = (&plan.before, &plan.after);
    if after.fields.pseudonymise() && !before.fields.pseudonymise() {
        // The key is made before there is a rule that needs it. A key that was lost is not replaced here, since another key makes
        // other pseudonyms.
        PseudonymKey::make_where_missing(after, &*keys, environment)?;
    }
    let stores = || (log.clone(), keys.clone());
    let open = |environment| Engine::open(stores(), &directories, Options::default(), environment);
    // The epoch that the event belongs to holds nothing else. Its key is wrapped to the new recipients already: wrapping to the old
    // ones may not be possible any more, and a recipient whose plugin is gone for good could not be removed.
    let key_wrap =
        Arc::new(WrapFor { wrap: environment.key_wrap.clone(), recipients: after.recipients.clone() });
    let engine = open(Environment { key_wrap, ..environment.clone() })?;
    let allowed = engine.allow_change(after, plan.order.as_deref());
    let found = (engine.recovery, engine.hold_differences.clone(), engine.resumed.clone());
    drop(engine);
    let changed = allowed.and_then(|()| {
        plan.replace(&*log).map_err(Unreplaced::into_error)?;
        open(environment.clone())?.drain_and_finish()
    });
    changed.map_err(|error| after_resumed(found.2.as_ref(), error))?;
    Ok(found)
}

/// A [`KeyWrap`] that wraps to these recipients, whichever it is asked to wrap to.
struct WrapFor {
    wrap: Arc<dyn KeyWrap>,
    recipients: Vec<String>,
}

impl KeyWrap for WrapFor {
    fn wrap(&self, _: &[String], key: &[u8; 32], limit: Duration) -> Result<Vec<u8>> {
        self.wrap.wrap(&self.recipients, key, limit)
    }
}

/// Locks the configuration, so that two changes at the same time do not undo each other.
fn lock(log: &dyn Store) -> Result<Box<dyn Lock>> {
    log.lock(config::LOCK).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::new(ErrorKind::Locked, format!("somebody else is changing {}", log.describe(config::FILE)))
        }
        _ => Error::io(format!("locking {}", log.describe(config::LOCK)), error),
    })
}

/// Removes the temporary file of a change that was cut short before its rename, unless a change is at work.
pub(crate) fn remove_leftover(log: &dyn Store) {
    let path = format!("{}.tmp", config::FILE);
    if log.open(&path).is_ok()
        && let Ok(_lock) = lock(log)
    {
        // The file does not count; this only gives back the space.
        let _ = log.remove(&path);
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

fn unordered() -> Error {
    Error::invalid(format!(
        "`{ERASURE_KEY}` is changed by an order that is signed with the key before it (--authority), or without one where that is \
         lost (--lost)"
    ))
}

fn no_recipients() -> Error {
    Error::invalid(format!("`{RECIPIENTS}` cannot be empty: nobody could read the log"))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn given_twice(key: &str) -> Error {
    Error::invalid(format!("`{key}` is given twice"))
}
