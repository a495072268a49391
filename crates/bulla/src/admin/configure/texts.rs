//! The texts of the two files with the changes in them.

use super::Configure;
use super::names::ERASURE_KEY;
use crate::format::config::{self, LogConfig, edit};
use crate::format::event::is_same_key;
use crate::format::options::{SettingPlace, settings};
use crate::keys::settings as host_settings;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};

impl Configure {
    /// The texts of `bulla.toml` and of the key directory's settings with the changes. A setting that is changed stands in the
    /// file in which it is kept, and in no other.
    pub(super) fn edit(
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
        let now = current.witness_policy.as_ref().map(config::WitnessPolicy::text);
        let policy = self.witness_policy.as_deref().map(|text| Some(text).filter(|text| !text.is_empty()));
        if let Some(policy) = policy.filter(|policy| *policy != now) {
            edited = edit::set_witness_policy(&edited, policy)?;
        }
        let Some(recipients) = &self.recipients else { return Ok((edited, host)) };
        let recipients = recipients.of(&current.recipients)?;
        match recipients == current.recipients {
            true => Ok((edited, host)),
            false => Ok((edit::set_recipients(&edited, &recipients)?, host)),
        }
    }

    /// Rules that are the same already leave the text as it is.
    pub(super) fn edit_fields(&self, text: String) -> Result<String> {
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
    pub(super) fn edit_erasure_key(&self, text: String, before: &LogConfig) -> Result<String> {
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
}
