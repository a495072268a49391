//! Carrying out what changes come to: in files that are written, in a log at work, and in one that is opened for it.

use super::plan::Plan;
use crate::erase::{HoldDifference, ResumedErasure};
use crate::format::config;
use crate::format::options::{Options, SettingPlace};
use crate::keys::files;
use crate::keys::pseudonym::PseudonymKey;
use crate::write::engine::change::Unreplaced;
use crate::write::engine::{Directories, Engine, after_resumed};
use crate::write::recover::Recovery;
use bulla_crypto::environment::{Environment, KeyWrap};
use bulla_store::{Error, ErrorKind, Result};
use bulla_store::{Lock, Store};
use std::sync::Arc;
use std::time::Duration;

impl Plan {
    /// Changes settings. A setting has its value where it belongs before it goes from where it does not: until then the log is refused
    /// to writers, as it was before, and the same command finishes the change.
    pub(super) fn change_settings(&self, log: &dyn Store, keys: &dyn Store) -> Result<()> {
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
    pub(super) fn check_live(&self, engine: &Engine) -> Result<()> {
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

    pub(super) fn change_live(&self, engine: &Engine) -> Result<()> {
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
pub(super) fn change_log(
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
pub(super) fn lock(log: &dyn Store) -> Result<Box<dyn Lock>> {
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
