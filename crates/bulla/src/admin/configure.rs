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

mod carry_out;
mod found;
mod histories;
mod losing;
mod names;
mod paths;
mod plan;
mod recipients;
mod texts;

use crate::erase::{ErasureKeyChange, HoldDifference, ResumedErasure};
use crate::format::config::{self, FieldRules};
use crate::format::options::settings;
use crate::keys::default_keys;
use crate::keys::files::LOCK;
use crate::keys::places;
use crate::keys::settings as host_settings;
use crate::scan::checkpoint::is_live;
use crate::scan::paths as log_paths;
use crate::write::engine::pins::make_where_missing;
use crate::write::engine::{Engine, check_replicas};
use crate::write::recover::Recovery;
use bulla_crypto::environment::Environment;
use bulla_proof::hash::Hash;
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{FileSystem, Lock, Store};
pub(crate) use carry_out::remove_leftover;
use carry_out::{change_log, lock};
use names::{
    BACKUP_PATHS, ERASURE_KEY, ERROR_PATH, FIELDS, HEARTBEAT, PIN, PLACES, RECIPIENTS, REPLICAS,
    WITNESS_POLICY, check_key, unknown_key,
};
pub use paths::{PathChange, PathOutcome};
use plan::Plan;
use recipients::{Recipients, checked, no_recipients};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Changes to a log's configuration, to be applied together.
///
/// Where they fail, [`Error::effect`] says whether the configuration is the new one all the same.
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
    /// Empty for none.
    #[serde(default)]
    witness_policy: Option<String>,
    erasure_key: Option<ErasureKeyChange>,
    /// Names of fields and their rules.
    fields: Vec<(String, String)>,
}

/// What came of changes to a configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Configured {
    /// Whether `bulla.toml` or the settings of the key directory are others now, a pin was made, or something became of a path.
    pub changed: bool,
    /// The digests of `[log]` before and after, where that was changed.
    pub log: Option<(Hash, Hash)>,
    /// The keys of `[log]` that were changed: `recipients`, `heartbeat`, `witness_policy`, `erasure_key`, or `fields.` and the name of a field.
    pub keys: Vec<String>,
    /// Whether `[settings]` changed.
    pub settings: bool,
    /// How many frames the pin covers that was made, where `pin` was set to a path at which nothing was.
    pub made_pin: Option<u64>,
    /// What became of which path, where `backup_paths` was set or unset.
    pub paths: Vec<PathChange>,
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
    /// duration, `log.witness_policy` the text of a policy, or `log.fields.` and a field a rule, such as `truncate-ip:24/48` or `keep`.
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
        if key == WITNESS_POLICY {
            return self.witness_policy(Some(value));
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
        if key == WITNESS_POLICY {
            return self.witness_policy(None);
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

    /// Has the log ask the witnesses of this policy from now on, or none: see [`crate::Init::witness_policy`].
    ///
    /// # Errors
    /// `Invalid` where the text is no policy, or was given before.
    pub fn witness_policy(mut self, policy: Option<&str>) -> Result<Self> {
        policy.map_or(Ok(()), |text| {
            config::WitnessPolicy::parse(text)
                .map(drop)
                .map_err(|error| error.after(format!("`{WITNESS_POLICY}`")))
        })?;
        if self.witness_policy.is_some() {
            return Err(given_twice(WITNESS_POLICY));
        }
        self.witness_policy = Some(policy.unwrap_or_default().to_owned());
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
    /// configuration, or, for a change of `[log]`, has the log open; `Refused` where `pin` is set to what is none, or is another log's,
    /// and where a path of the log is not in its place, which `backup_paths` names: only one that is left out counts as lost;
    /// else as [`crate::Log::open`]. Whatever fails, the log has
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
        let directory = log.clone();
        let log = log_paths::join_to_write(log, Some(&keys), &[], environment)?;
        config::load_of_log(&*log)?;
        bulla_store::require_own(&*log)?;
        bulla_store::require_own(&*keys)?;
        let _lock = lock(&*log)?;
        let mut plan = self.plan(&*log, &*keys)?;
        self.check_places(&plan, (&*log, &*keys), environment)?;
        self.check_replicas(&plan, (&*log, &*keys), environment)?;
        self.check_former_keys(&plan, &log)?;
        match plan.configured.log {
            Some(_) => {
                let opened = change_log(log, keys, environment, &plan)?;
                let configured = &mut plan.configured;
                (configured.recovery, configured.hold_differences, configured.resumed) = opened;
            }
            None => {
                let was_live = is_live(&*log)?;
                self.make_pin(&mut plan, (&*log, &*keys), environment)?;
                let _paths = self.make_paths(&mut plan, (&directory, &keys), environment)?;
                let changed = plan.change_settings(&*log, &*keys);
                changed.map_err(|error| but_noted(error, &plan.configured.paths))?;
                if self.changes(BACKUP_PATHS) {
                    paths::tell_what_is_elsewhere((directory, &keys), &plan.after, environment);
                }
                // It is done: what is told beside that is no reason to fail any more.
                plan.configured.live = is_live(&*log).unwrap_or(was_live);
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
        self.check_places(&plan, (log, &*engine.keys), &engine.environment)?;
        self.check_replicas(&plan, (log, &*engine.keys), &engine.environment)?;
        if self.changes(BACKUP_PATHS) {
            // The writer has those that it locked.
            return Err(Error::new(ErrorKind::Refused, format!("`{BACKUP_PATHS}` {PATHS_AT_WORK}")));
        }
        plan.check_live(engine)?;
        self.check_former_keys(&plan, &engine.log)?;
        match plan.configured.log {
            Some(_) => plan.change_live(engine)?,
            None => {
                self.make_pin(&mut plan, (log, &*engine.keys), &engine.environment)?;
                plan.change_settings(log, &*engine.keys)?;
            }
        }
        Ok(plan.configured)
    }

    /// Refuses places that opening the log would refuse, where one is named here.
    fn check_places(
        &self,
        plan: &Plan,
        (log, keys): (&dyn Store, &dyn Store),
        environment: &Environment,
    ) -> Result<()> {
        let is_place =
            |(name, value): &(String, Option<String>)| PLACES.contains(&&**name) && value.is_some();
        if !self.settings.iter().any(is_place) {
            return Ok(());
        }
        self.check_error_path(plan, environment)?;
        places::check(&plan.tuning, log, keys)
    }

    /// Refuses an error path that is something else than a directory: else that would be told by the first outage.
    fn check_error_path(&self, plan: &Plan, environment: &Environment) -> Result<()> {
        let named = plan.tuning.error_path.as_deref().filter(|_| self.changes(ERROR_PATH));
        let is_none = |path: &&Path| {
            let listed = log_paths::open_path(path, environment).list("");
            listed.is_err_and(|error| error.kind() == io::ErrorKind::NotADirectory)
        };
        match named.filter(is_none) {
            Some(path) => Err(Error::unavailable(format!(
                "{}, which `{ERROR_PATH}` names: it is no directory: name one, or where one can be made",
                path.display()
            ))),
            None => Ok(()),
        }
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

    /// Sees to it that there is a pin where one is set: a log whose pin is missing is refused. What is there has to be a pin of this
    /// log; whether the log is as it says, opening the log asks.
    fn make_pin(
        &self,
        plan: &mut Plan,
        stores: (&dyn Store, &dyn Store),
        environment: &Environment,
    ) -> Result<()> {
        let is_set = self.settings.iter().any(|(name, value)| name == PIN && value.is_some());
        if let Some(path) = plan.tuning.pin.as_deref().filter(|_| is_set) {
            let made = make_where_missing(path, stores, &plan.after, environment)?;
            plan.configured.changed |= made.is_some();
            plan.configured.made_pin = made;
        }
        Ok(())
    }

    fn changes(&self, setting: &str) -> bool {
        self.settings.iter().any(|(name, _)| name == setting)
    }

    /// Sees to it that what is set as a backup path is one, and that none is unset that holds frames. Gives the lock that keeps writers out
    /// until the setting is changed: one at work has the paths that it locked, and would go on on one that nobody else knows any more.
    fn make_paths(
        &self,
        plan: &mut Plan,
        stores: (&Arc<dyn Store>, &Arc<dyn Store>),
        environment: &Environment,
    ) -> Result<Option<Box<dyn Lock>>> {
        if !self.changes(BACKUP_PATHS) {
            return Ok(None);
        }
        let keys = stores.1;
        let lock = keys.lock(LOCK).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                Error::new(ErrorKind::Locked, format!("`{BACKUP_PATHS}` {PATHS_AT_WORK}"))
            }
            _ => Error::io(format!("locking {}", keys.describe(LOCK)), error),
        })?;
        let before = host_settings::load(&**keys)?;
        let change = (before.named_backup_paths(), &plan.tuning.backup_paths[..]);
        let changes = paths::make(change, stores, &plan.after, environment)?;
        plan.configured.changed |= !changes.is_empty();
        plan.configured.paths = changes;
        Ok(Some(lock))
    }

    /// The error that says that there is no such key, and which one may have been meant.
    pub fn unknown_key(key: &str) -> Error {
        unknown_key(key)
    }
}

/// Why backup paths are not changed.
const PATHS_AT_WORK: &str = "cannot be changed while a writer has the log open: stop it first";

fn unordered() -> Error {
    Error::invalid(format!(
        "`{ERASURE_KEY}` is changed by an order that is signed with the key before it (--authority), or without one where that is \
         lost (--lost)"
    ))
}

fn given_twice(key: &str) -> Error {
    Error::invalid(format!("`{key}` is given twice"))
}

/// What is said of an error of a setting where the key directory has noted already what becomes of the log's paths by it.
fn but_noted(error: Error, changes: &[PathChange]) -> Error {
    let noted = changes.iter().map(|PathChange { place, outcome, .. }| format!("{place} {outcome}"));
    let noted = noted.collect::<Vec<_>>().join(", ");
    match noted.is_empty() {
        true => error,
        false => error.but_maybe_done(format!(
            "the key directory has noted already what becomes of paths ({noted}), and the same command again sets the rest"
        )),
    }
}
