//! age identities: who can unwrap epoch keys.
//!
//! Invariants: no message has a line of an identity file in it, or a passphrase; how much work a file can ask for is
//! bounded before it is done.

use super::age_file;
use super::plugin::{self, Plugins};
use crate::epoch::EpochSecret;
use crate::prompt::Prompt;
use age::secrecy::{ExposeSecret as _, SecretString};
use bulla_store::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// The longest identity file, in bytes.
pub const MAX_IDENTITY_FILE: usize = 64 * 1024;
/// The most work that is done to open a file that is under a passphrase: scrypt with N = 2^20, which takes 1 GiB of memory and
/// some seconds. Files of `age` ask for 2^18; `rage` chooses what takes one second on the machine that writes the file.
const MAX_WORK: u8 = 20;
/// The work that a new file asks for, the same as `age` does.
const WORK: u8 = 18;

/// Unwraps epoch keys.
pub trait Identity: Send + Sync {
    /// The epoch key inside `wrapped`, or `None` where it is wrapped to others.
    ///
    /// # Errors
    /// `Tampered` where `wrapped` is damaged; another kind where it could not be tried.
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>>;
}

/// The identities of one or several age identity files.
///
/// Keys in the file itself are tried first. A plugin is run once for an epoch, however often its key is needed.
pub struct IdentityFile {
    own: Vec<age::x25519::Identity>,
    /// By the name of their plugin.
    plugins: BTreeMap<String, Vec<Zeroizing<String>>>,
    run: Plugins,
    /// The keys that plugins have unwrapped, by their wrapped form.
    unwrapped: Mutex<HashMap<Vec<u8>, Option<EpochSecret>>>,
}

impl IdentityFile {
    /// Reads an age identity file: a line an identity, `#` begins a comment.
    ///
    /// # Errors
    /// `Invalid` where a line is none, or there is none at all. The message never has the line.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut own, mut plugins) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = plugin::identity_name(line) {
                plugins.entry(name).or_default().push(Zeroizing::new(line.to_owned()));
                continue;
            }
            own.push(line.parse::<age::x25519::Identity>().map_err(|_| not_an_identity(line, index + 1))?);
        }
        if own.is_empty() && plugins.is_empty() {
            return Err(Error::invalid("it holds no age identity (AGE-SECRET-KEY-1…)"));
        }
        Ok(IdentityFile { own, plugins, run: Plugins::default(), unwrapped: Mutex::default() })
    }

    /// These identities and those of another file.
    pub fn and(mut self, other: IdentityFile) -> Self {
        self.own.extend(other.own);
        for (name, identities) in other.plugins {
            self.plugins.entry(name).or_default().extend(identities);
        }
        self
    }

    /// Who answers what plugins ask (default: nobody, they are refused).
    pub fn prompt(mut self, prompt: Arc<dyn Prompt>) -> Self {
        self.run.prompt = prompt;
        self
    }

    /// How long a plugin may take, besides the time that a person takes to answer it.
    pub fn plugin_timeout(mut self, limit: Duration) -> Self {
        self.run.limit = limit;
        self
    }

    /// What an age file holds; `None` where it is for others.
    ///
    /// # Errors
    /// `Tampered` where it is damaged; another kind where a plugin fails.
    pub fn decrypt(&self, file: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let own = decrypt(file, self.own.iter().map(|identity| identity as _), file.len())?;
        if own.is_some() {
            return Ok(own);
        }
        let mut failed = None;
        for (name, identities) in &self.plugins {
            let identity = plugin::PluginIdentity { name, identities, run: &self.run };
            match decrypt(file, std::iter::once(&identity as _), file.len()) {
                Ok(None) => {}
                Ok(opened) => return Ok(opened),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(None), Err)
    }

    fn unwrap_own(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        decrypt_key(wrapped, self.own.iter().map(|identity| identity as _))
    }

    /// Asks one plugin after the other. Where one fails, the others are asked all the same.
    fn unwrap_with_plugins(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        let mut unwrapped = self.unwrapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = unwrapped.get(wrapped) {
            return Ok(known.as_ref().map(EpochSecret::copy));
        }
        let mut failed = None;
        for (name, identities) in &self.plugins {
            let identity = plugin::PluginIdentity { name, identities, run: &self.run };
            match decrypt_key(wrapped, std::iter::once(&identity as _)) {
                Ok(Some(secret)) => {
                    unwrapped.insert(wrapped.to_owned(), Some(secret.copy()));
                    return Ok(Some(secret));
                }
                Ok(None) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                unwrapped.insert(wrapped.to_owned(), None);
                Ok(None)
            }
        }
    }
}

impl Identity for IdentityFile {
    fn unwrap(&self, wrapped: &[u8]) -> Result<Option<EpochSecret>> {
        match self.unwrap_own(wrapped)? {
            None if !self.plugins.is_empty() => self.unwrap_with_plugins(wrapped),
            unwrapped => Ok(unwrapped),
        }
    }
}

fn decrypt_key<'a>(
    wrapped: &[u8],
    identities: impl Iterator<Item = &'a dyn age::Identity>,
) -> Result<Option<EpochSecret>> {
    let of_key = |error: Error| match error.kind() {
        ErrorKind::Tampered => Error::tampered(format!("the wrapped epoch key: {error}")),
        _ => error,
    };
    let Some(key) = decrypt(wrapped, identities, 64).map_err(of_key)? else { return Ok(None) };
    let key = key.as_slice().try_into();
    let key = key.map_err(|_| Error::tampered("the wrapped epoch key does not hold 32 bytes"))?;
    Ok(Some(EpochSecret::of(key)))
}

/// What an age file holds, up to `limit` bytes of it.
fn decrypt<'a>(
    file: &[u8],
    identities: impl Iterator<Item = &'a dyn age::Identity>,
    limit: usize,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let damaged =
        |error: &dyn std::fmt::Display| Error::tampered(format!("it is not a sound age file: {error}"));
    age_file::check_header(file).map_err(|error| damaged(&error))?;
    let decryptor = age::Decryptor::new_buffered(file).map_err(|error| damaged(&error))?;
    let mut reader = match decryptor.decrypt(identities) {
        Ok(reader) => reader.take(limit as u64),
        Err(age::DecryptError::NoMatchingKeys) => return Ok(None),
        // A plugin has failed, which says nothing about the file.
        Err(age::DecryptError::Io(error)) if plugin::is_failure(&error) => {
            return Err(plugin::failure(error));
        }
        Err(error) => return Err(damaged(&error)),
    };
    let mut content = Zeroizing::new(Vec::with_capacity(limit));
    reader.read_to_end(&mut content).map_err(|error| damaged(&error))?;
    Ok(Some(content))
}

fn not_an_identity(line: &str, number: usize) -> Error {
    let what = match line {
        _ if line.starts_with("age1") => {
            "is a recipient, which is public; the identity is the line that begins with AGE-SECRET-KEY-1"
        }
        _ if line.contains("OPENSSH PRIVATE KEY") || line.contains("RSA PRIVATE KEY") => {
            "begins an SSH key, which Bulla does not read; make an age identity (`bulla keys DIR new-identity`)"
        }
        _ => "is not an age identity (AGE-SECRET-KEY-1…)",
    };
    Error::invalid(format!("line {number} {what}"))
}

/// A new identity: the text of its file, and its recipient, which is public.
pub fn generate() -> (Zeroizing<String>, String) {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let secret = identity.to_string();
    let text = Zeroizing::new(format!("# public key: {recipient}\n{}\n", secret.expose_secret()));
    (text, recipient)
}

/// Whether `file` is an age file, as an identity file is that is under a passphrase.
pub fn is_encrypted(file: &[u8]) -> bool {
    file.starts_with(b"age-encryption.org/") || file.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----")
}

/// The text of an identity file that is under a passphrase, binary or armored.
///
/// # Errors
/// `NoKey` where the passphrase is another one, `Refused` where the file asks for more work than opening one may
/// take, `Invalid` where it is damaged or encrypted to a recipient.
pub fn decrypt_with_passphrase(file: &[u8], passphrase: &str) -> Result<Zeroizing<String>> {
    let damaged =
        |error: &dyn std::fmt::Display| Error::invalid(format!("it is not a sound age file: {error}"));
    let mut binary = Vec::new();
    let armored = age::armor::ArmoredReader::new(file).read_to_end(&mut binary);
    armored.map_err(|error| damaged(&error))?;
    age_file::check_header(&binary).map_err(|error| damaged(&error))?;
    let decryptor = age::Decryptor::new_buffered(&binary[..]).map_err(|error| damaged(&error))?;
    if !decryptor.is_scrypt() {
        return Err(Error::invalid(
            "it is encrypted to a recipient; an identity file may be under a passphrase",
        ));
    }
    let mut identity = age::scrypt::Identity::new(SecretString::from(passphrase.to_owned()));
    identity.set_max_work_factor(MAX_WORK);
    let reader = decryptor.decrypt(std::iter::once(&identity as _)).map_err(|error| match error {
        age::DecryptError::ExcessiveWork { required, .. } => Error::new(
            ErrorKind::Refused,
            format!(
                "its passphrase asks for 2^{required} rounds of scrypt; more than 2^{MAX_WORK} are not done"
            ),
        ),
        age::DecryptError::DecryptionFailed | age::DecryptError::NoMatchingKeys => {
            Error::new(ErrorKind::NoKey, "the passphrase is wrong")
        }
        error => damaged(&error),
    })?;
    // There is room for all of it from the start, because a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_IDENTITY_FILE + 1));
    let mut reader = reader.take(MAX_IDENTITY_FILE as u64 + 1);
    reader.read_to_string(&mut text).map_err(|error| damaged(&error))?;
    match text.len() > MAX_IDENTITY_FILE {
        true => Err(Error::invalid(format!("it has over {MAX_IDENTITY_FILE} bytes; no identity file has"))),
        false => Ok(text),
    }
}

/// Puts the text of an identity file under a passphrase: an armored age file.
///
/// # Errors
/// `Invalid` for an empty passphrase; else none in practice.
pub fn encrypt_with_passphrase(text: &str, passphrase: &str) -> Result<String> {
    if passphrase.is_empty() {
        return Err(Error::invalid("an empty passphrase protects nothing"));
    }
    let failed =
        |error: &dyn std::fmt::Display| Error::unavailable(format!("encrypting an identity: {error}"));
    let mut recipient = age::scrypt::Recipient::new(SecretString::from(passphrase.to_owned()));
    recipient.set_work_factor(WORK);
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as _));
    let encryptor = encryptor.map_err(|error| failed(&error))?;
    let format = age::armor::Format::AsciiArmor;
    let armored =
        age::armor::ArmoredWriter::wrap_output(Vec::new(), format).map_err(|error| failed(&error))?;
    let mut writer = encryptor.wrap_output(armored).map_err(|error| failed(&error))?;
    writer.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    let file = writer.finish().and_then(age::armor::ArmoredWriter::finish).map_err(|error| failed(&error))?;
    String::from_utf8(file).map_err(|error| failed(&error))
}
