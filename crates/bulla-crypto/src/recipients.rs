//! age recipients: whom epoch keys are wrapped to. See <https://age-encryption.org/v1>.

pub use super::identities::{Identity, IdentityFile};

use super::age_file;
use super::plugin::{self, PluginRecipients, Plugins};
use super::prompt::Prompt;
use bulla_store::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The longest wrapped key that is read, in bytes.
pub const MAX_WRAPPED: usize = 64 * 1024;
/// The longest recipients file, in bytes.
pub const MAX_RECIPIENTS_FILE: usize = 1 << 20;

/// Wraps epoch keys to the log's recipients.
pub trait KeyWrap: Send + Sync {
    /// `key` as an age file that any of `recipients` opens. A plugin that is asked for a stanza may take up to `limit`.
    ///
    /// # Errors
    /// `Invalid` where a recipient is not one, `Unavailable` where it may be tried again.
    fn wrap(&self, recipients: &[String], key: &[u8; 32], limit: Duration) -> Result<Vec<u8>>;

    /// `content` as an age file that any of `recipients` opens. By default age makes it.
    ///
    /// # Errors
    /// As [`KeyWrap::wrap`].
    fn encrypt(&self, recipients: &[String], content: &[u8], limit: Duration) -> Result<Vec<u8>> {
        Age::default().encrypt(recipients, content, limit)
    }
}

/// Wraps to age's recipients: `age1…` (X25519), `age1tag1…`, `age1tagpq1…`, and those of plugins (`age1NAME1…`).
#[derive(Clone, Default)]
pub struct Age(Plugins);

impl Age {
    /// Lets `prompt` answer what plugins ask. By default they get no answer.
    pub fn with_prompt(prompt: Arc<dyn Prompt>) -> Self {
        Age(Plugins { prompt, ..Plugins::default() })
    }
}

impl fmt::Debug for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Age")
    }
}

impl Age {
    /// `content` as an age file that any of `recipients` opens.
    ///
    /// # Errors
    /// As [`KeyWrap::wrap`].
    pub fn encrypt(&self, recipients: &[String], content: &[u8], limit: Duration) -> Result<Vec<u8>> {
        let file = self.with_recipients(recipients, limit, |recipients| {
            age_file::encrypt_content(recipients, content)
        })?;
        check_header(&file, recipients)?;
        Ok(file)
    }

    /// Runs `work` with the recipients that these texts name.
    fn with_recipients<T>(
        &self,
        recipients: &[String],
        limit: Duration,
        work: impl FnOnce(&[Box<dyn age::Recipient + '_>]) -> Result<T>,
    ) -> Result<T> {
        let run = Plugins { limit, ..self.0.clone() };
        let mut plugins = BTreeMap::<_, Vec<_>>::new();
        let mut wraps = Vec::<Box<dyn age::Recipient + '_>>::new();
        for text in recipients {
            match Recipient::parse(text)? {
                Recipient::Native(recipient) => wraps.push(recipient),
                Recipient::Plugin(name) => plugins.entry(name).or_default().push(text.as_str()),
            }
        }
        for (name, recipients) in &plugins {
            wraps.push(Box::new(PluginRecipients { name, recipients, run: &run }));
        }
        work(&wraps)
    }
}

impl KeyWrap for Age {
    fn encrypt(&self, recipients: &[String], content: &[u8], limit: Duration) -> Result<Vec<u8>> {
        Age::encrypt(self, recipients, content, limit)
    }

    fn wrap(&self, recipients: &[String], key: &[u8; 32], limit: Duration) -> Result<Vec<u8>> {
        let wrapped =
            self.with_recipients(recipients, limit, |recipients| age_file::encrypt(recipients, key))?;
        // A reader would refuse a longer one.
        if wrapped.len() > MAX_WRAPPED {
            let (count, length) = (recipients.len(), wrapped.len());
            return Err(Error::invalid(format!(
                "{count} recipients are too many: an epoch key wrapped to them takes {length} bytes, and may take {MAX_WRAPPED}"
            )));
        }
        check_header(&wrapped, recipients)?;
        Ok(wrapped)
    }
}

/// Checks that a reader would not refuse the header of a file that was made for `recipients`.
fn check_header(file: &[u8], recipients: &[String]) -> Result<()> {
    let too_many =
        |why| Error::invalid(format!("{} recipients are too many for a file: {why}", recipients.len()));
    age_file::check_header(file).map_err(too_many)
}

/// Checks that an epoch key, wrapped to whomever, has no more than the 1,024 stanzas that the header of an age file may have here. That takes no
/// identity.
///
/// # Errors
/// `Tampered` where it has more: no reader opens it.
pub fn check_stanzas(wrapped: &[u8]) -> Result<()> {
    age_file::check_stanzas(wrapped).map_err(|why| Error::tampered(format!("the wrapped epoch key: {why}")))
}

/// Checks that `text` is a recipient. Whether a plugin takes it, only the plugin knows.
///
/// # Errors
/// `Invalid`, naming it, unless it is a secret.
pub fn check_recipient(text: &str) -> Result<()> {
    Recipient::parse(text).map(|_| ())
}

/// The recipients in an age recipients file: a line a recipient, `#` begins a comment.
///
/// # Errors
/// `Invalid` where a line is none, or there is none at all.
pub fn parse_recipients_file(text: &str) -> Result<Vec<String>> {
    let mut recipients = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if !line.is_empty() && !line.starts_with('#') {
            check_recipient(line)
                .map_err(|error| Error::new(error.kind(), format!("line {}: {error}", index + 1)))?;
            recipients.push(line.to_owned());
        }
    }
    match recipients.is_empty() {
        true => Err(Error::invalid("it holds no age recipient (age1…)")),
        false => Ok(recipients),
    }
}

/// A recipient, of one kind or another.
enum Recipient {
    /// One that the age library wraps to: X25519, and keys in hardware that need no plugin for that.
    Native(Box<dyn age::Recipient>),
    /// The name of the plugin that takes it.
    Plugin(String),
}

impl Recipient {
    fn parse(text: &str) -> Result<Self> {
        // An identity is a secret: one that is given by mistake must not be repeated in an error, which may be logged.
        if text.to_ascii_uppercase().starts_with("AGE-") {
            return Err(Error::invalid(
                "what was given as a recipient is an identity, which is secret: name its recipient (age1…)",
            ));
        }
        if text.starts_with("ssh-") || text.starts_with("ecdsa-") {
            return Err(Error::invalid(
                "SSH keys are no recipients here: make an age identity (`bulla keys DIR new-identity -o FILE`)",
            ));
        }
        let native = match text {
            _ if text.starts_with("age1tag1") => native::<age::tag::Recipient>(text),
            _ if text.starts_with("age1tagpq1") => native::<age::tagpq::Recipient>(text),
            _ => native::<age::x25519::Recipient>(text),
        };
        match (native, plugin::recipient_name(text)) {
            (Ok(recipient), _) => Ok(recipient),
            // These two look like recipients of plugins `tag` and `tagpq`, but age itself defines them.
            (Err(error), Some(name)) if name == "tag" || name == "tagpq" => Err(not_a_recipient(text, error)),
            (_, Some(name)) => Ok(Recipient::Plugin(name)),
            (Err(error), None) => Err(not_a_recipient(text, error)),
        }
    }
}

fn native<R>(text: &str) -> Result<Recipient, &'static str>
where
    R: age::Recipient + FromStr<Err = &'static str> + 'static,
{
    text.parse::<R>().map(|recipient| Recipient::Native(Box::new(recipient)))
}

fn not_a_recipient(text: &str, error: &str) -> Error {
    Error::invalid(format!("`{text}` is not an age recipient (age1…): {error}"))
}
