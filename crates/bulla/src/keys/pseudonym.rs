//! Pseudonyms of field values: a keyed hash replaces a value, so that nobody can read it, and equal values can still be recognised.
//!
//! The key of a field is HKDF(salt = log id, key = the log's pseudonym key, "bulla pseudonym key v1" ‖ the field's place
//! in a row), RFC 5869 over SHA-256; a value's pseudonym is `p-` and the first 16 bytes of its HMAC-SHA-256 under that
//! key, in hexadecimal. So the same name in another field, or in another log, has another one.
//!
//! Whoever has the key can test guesses, and names are easily guessed. The key comes from the log's vault, or from a file where the
//! log has none. Only [`PseudonymKey`] knows which.

use crate::format::config::LogConfig;
use crate::keys::files;
use crate::keys::vault;
use aws_lc_rs::hmac;
use bulla_crypto::environment::{Environment, Random};
use bulla_crypto::secret_line;
use bulla_proof::commitment::LogId;
use bulla_proof::entry::Field;
use bulla_store::Store;
use bulla_store::{Error, ErrorKind, Result};
use bulla_vault::Access;
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt::{self, Display};
use std::io;
use zeroize::Zeroizing;

const HEADER: &str = "bulla-pseudonym-key-v1";

/// The key that a log's pseudonyms are made with.
pub(crate) struct PseudonymKey {
    key: Zeroizing<[u8; 32]>,
    log: LogId,
}

impl PseudonymKey {
    /// The key of the log whose key directory is `keys`.
    ///
    /// # Errors
    /// As [`Vault::open`] for a log that has one. Else `NoKey` where the file is missing, `Unavailable` where it cannot be read or
    /// is damaged, `Refused` where it is another log's.
    pub(crate) fn load(config: &LogConfig, keys: &dyn Store, environment: &Environment) -> Result<Self> {
        match vault::open_vault(config, keys, environment, Access::Read, Vec::new())? {
            Some(vault) => Ok(PseudonymKey { key: vault.field_pseudonym_key()?, log: config.id }),
            None => Self::read(keys, config.id),
        }
    }

    fn read(keys: &dyn Store, log: LogId) -> Result<Self> {
        let name = keys.describe(files::PSEUDONYM);
        if !exists(keys)? {
            let message = format!(
                "{name} is missing, and the log has fields to pseudonymise: restore it; if it is lost, unset all \
                 of these rules and set them again, which makes another key"
            );
            return Err(Error::new(ErrorKind::NoKey, message));
        }
        let text = Zeroizing::new(files::read_secret(keys, files::PSEUDONYM, 4096)?);
        Self::parse(&text, log).map_err(|error| match error.kind() {
            ErrorKind::Invalid => files::damaged(keys, files::PSEUDONYM, error),
            kind => Error::new(kind, format!("{name}: {error}")),
        })
    }

    /// Makes a key for a log without a vault, unless it has one: a rule that is removed and comes back then makes the same
    /// pseudonyms as before.
    ///
    /// # Errors
    /// As [`PseudonymKey::load`], and where it cannot be written.
    pub(crate) fn make_where_missing(
        config: &LogConfig,
        keys: &dyn Store,
        environment: &Environment,
    ) -> Result<()> {
        match vault::has_vault(config, environment) {
            true => Ok(()),
            false => Self::make_file(keys, config.id, &*environment.random),
        }
    }

    fn make_file(keys: &dyn Store, log: LogId, random: &dyn Random) -> Result<()> {
        if exists(keys)? {
            Self::read(keys, log)?;
            return files::settle(keys);
        }
        let mut key = Zeroizing::new([0; 32]);
        random.fill(&mut *key)?;
        let written = bulla_store::write_new(keys, files::PSEUDONYM, Self { key, log }.render().as_bytes());
        written.map_err(|error| Error::io(format!("writing {}", keys.describe(files::PSEUDONYM)), error))
    }

    #[cfg(test)]
    pub(crate) fn new(key: [u8; 32], log: LogId) -> Self {
        PseudonymKey { key: Zeroizing::new(key), log }
    }

    fn parse(text: &[u8], log: LogId) -> Result<Self> {
        let text = std::str::from_utf8(text).map_err(|_| Error::invalid("it is not text"))?;
        let key = secret_line::parse("pseudonym key", HEADER, text, log)?;
        Ok(PseudonymKey { key, log })
    }

    fn render(&self) -> Zeroizing<String> {
        secret_line::render(HEADER, self.log, &self.key)
    }

    /// Derives the key of one field's pseudonyms.
    ///
    /// # Errors
    /// None in practice: the lengths are fixed.
    pub(crate) fn of_field(&self, field: Field) -> Result<FieldPseudonyms> {
        let mut key = Zeroizing::new([0; 32]);
        let hkdf = Hkdf::<Sha256>::new(Some(&self.log.0), &*self.key);
        hkdf.expand_multi_info(&[b"bulla pseudonym key v1", &[field as u8]], &mut *key)
            .map_err(|_| Error::unavailable("HKDF refused its length"))?;
        Ok(FieldPseudonyms(hmac::Key::new(hmac::HMAC_SHA256, &*key)))
    }
}

fn exists(keys: &dyn Store) -> Result<bool> {
    match keys.open_secret(files::PSEUDONYM) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(format!("reading {}", keys.describe(files::PSEUDONYM)), error)),
    }
}

/// Makes the pseudonyms of one field of one log.
pub(crate) struct FieldPseudonyms(hmac::Key);

impl FieldPseudonyms {
    /// The pseudonym of a value.
    pub(crate) fn of(&self, value: &[u8]) -> Pseudonym {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let tag = hmac::sign(&self.0, value);
        let mut text = *b"p-00000000000000000000000000000000";
        for (digits, byte) in text[2..].chunks_exact_mut(2).zip(tag.as_ref()) {
            digits[0] = DIGITS[usize::from(byte >> 4)];
            digits[1] = DIGITS[usize::from(byte & 15)];
        }
        Pseudonym(text)
    }
}

/// `p-` and 32 hexadecimal digits: the same for the same value of the same field of the same log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pseudonym([u8; 34]);

impl Pseudonym {
    /// The pseudonym that is written so.
    ///
    /// # Errors
    /// `Invalid` where the text is none.
    pub fn parse(text: &str) -> Result<Self> {
        let parsed = text.as_bytes().try_into().ok().map(Pseudonym);
        let parsed = parsed.filter(|it| Pseudonym::can_begin_with(&it.0));
        parsed.ok_or_else(|| Error::invalid("a pseudonym is `p-` and 32 lower-case hexadecimal digits"))
    }

    /// Whether there are pseudonyms that begin with these bytes.
    pub(crate) fn can_begin_with(bytes: &[u8]) -> bool {
        let is_at = |(place, byte): (usize, &u8)| match place {
            0 => *byte == b'p',
            1 => *byte == b'-',
            2..34 => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            _ => false,
        };
        bytes.iter().enumerate().all(is_at)
    }
}

impl Display for Pseudonym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_crypto::environment::SystemRandom;
    use bulla_testkit::Memory;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const LOG: LogId = LogId([9; 16]);

    fn key(log: LogId) -> PseudonymKey {
        PseudonymKey::new([7; 32], log)
    }

    fn pseudonym(log: LogId, field: Field, value: &[u8]) -> String {
        key(log).of_field(field).unwrap().of(value).to_string()
    }

    /// By Python's `hmac`: see `docs/format.md`, "Minimisation".
    #[test]
    fn known_answers() {
        for (field, value, expected) in [
            (Field::Actor, &b"alice"[..], "p-4c75c78bd0a93d68e641ad76bf0246d7"),
            (Field::Client, b"alice", "p-944d8be6efa7e31fb06987eb8b4d3876"),
            (Field::Location, b"\xff\x00", "p-618b9d76a505c735c44cdfb6d50de229"),
            (Field::Actor, b"", "p-5eca4e808cd59e35b2ec5fb89b1e6ba9"),
        ] {
            assert_eq!(pseudonym(LOG, field, value), expected);
        }
        assert_eq!(pseudonym(LOG, Field::Actor, &[b'x'; 65536]), "p-c3f6c1f91801171a0037f1d61ed49781");
    }

    #[test]
    fn another_field_log_or_value_has_another_pseudonym() {
        let fields = [Field::Controller, Field::Purpose, Field::Location, Field::Client, Field::Actor];
        let logs = [LOG, LogId([10; 16])];
        let each = logs.into_iter().flat_map(|log| fields.map(|field| (log, field)));
        let all = each.flat_map(|(log, field)| [b"a", b"b"].map(|value| pseudonym(log, field, value)));
        assert_eq!(all.collect::<BTreeSet<_>>().len(), logs.len() * fields.len() * 2);
    }

    #[test]
    fn a_key_is_made_once_and_is_of_one_log() {
        let keys = Memory::new();
        let error = PseudonymKey::read(&keys, LOG).err().unwrap();
        assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains("is missing"), "{error}");
        PseudonymKey::make_file(&keys, LOG, &SystemRandom).unwrap();
        let first = PseudonymKey::read(&keys, LOG).unwrap();
        PseudonymKey::make_file(&keys, LOG, &SystemRandom).unwrap();
        assert!(*first.key == *PseudonymKey::read(&keys, LOG).unwrap().key && *first.key != [0; 32]);
        for outcome in [
            PseudonymKey::read(&keys, LogId([1; 16])).map(|_| ()),
            PseudonymKey::make_file(&keys, LogId([1; 16]), &SystemRandom),
        ] {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Refused);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let text = key(LOG).render();
        assert!(PseudonymKey::parse(text.as_bytes(), LOG).is_ok_and(|it| *it.key == [7; 32]));
        for wrong in [
            String::new(),
            text.replace("-v1", "-v2"),
            text.replace("pseudonym", "seal"),
            text.replace("Bw", ""),
            format!("{} more", text.trim_end()),
        ] {
            assert!(PseudonymKey::parse(wrong.as_bytes(), LOG).is_err(), "{wrong}");
        }
        assert!(PseudonymKey::parse(b"\xff", LOG).is_err());
    }

    #[test]
    fn pseudonyms_of_fields_are_the_other_implementation_s() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/vault/vault.json");
        let vectors = serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap();
        let unhex = |value: &Value| {
            let text = value.as_str().unwrap();
            let digits =
                (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap());
            digits.collect::<Vec<_>>()
        };
        let log = LogId(unhex(&vectors["log_id"]).try_into().unwrap());
        let key = PseudonymKey::new(unhex(&vectors["field_pseudonym_key"]).try_into().unwrap(), log);
        let fields = [Field::Controller, Field::Location, Field::Client, Field::Actor];
        let made = vectors["field_pseudonyms"].as_array().unwrap();
        assert_eq!(made.len(), fields.len());
        for (field, made) in fields.into_iter().zip(made) {
            assert_eq!(made["bit"], field as u64);
            let pseudonym = key.of_field(field).unwrap().of(&unhex(&made["value"]));
            assert_eq!(made["pseudonym"], pseudonym.to_string());
        }
    }
}
