//! The root of a generation: the one secret under which all bucket keys of the vault lie.
//!
//! Whoever destroys the root of a generation destroys everything that lies under it. How a root is kept is a matter of
//! its own, behind [`Root`]: as a file ([`RootFile`]), or wrapped to an age identity ([`AgeRoot`]).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

use bulla_crypto::environment::KeyWrap;
use bulla_crypto::recipients::Identity;
use bulla_crypto::subject::Secret;
use bulla_proof::commitment::LogId;
use bulla_store::{Error, ErrorKind, Result};

/// The secret of one generation.
#[derive(Clone)]
pub struct RootKey(pub(super) Secret);

impl RootKey {
    /// A root from its 32 bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        RootKey(Secret(bytes))
    }
}

/// How roots are kept.
pub trait Root: Send + Sync {
    /// What the file of a root holds.
    ///
    /// # Errors
    /// Where it cannot be wrapped.
    fn wrap(&self, key: &RootKey, log: LogId, generation: u64) -> Result<Zeroizing<Vec<u8>>>;

    /// The root that a file holds.
    ///
    /// # Errors
    /// `Tampered` where the file is damaged, `Refused` where it is another log's or generation's, `NoKey` where
    /// nobody here can open it.
    fn unwrap(&self, file: &[u8], log: LogId, generation: u64) -> Result<RootKey>;
}

/// A root in a file, as a line of text: `bulla-vault-root-v1 LOG GENERATION KEY`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RootFile;

const LABEL: &str = "bulla-vault-root-v1";

impl Root for RootFile {
    fn wrap(&self, key: &RootKey, log: LogId, generation: u64) -> Result<Zeroizing<Vec<u8>>> {
        let secret = Zeroizing::new(BASE64_STANDARD.encode(key.0.0));
        Ok(Zeroizing::new(format!("{LABEL} {log} {generation} {}\n", secret.as_str()).into_bytes()))
    }

    fn unwrap(&self, file: &[u8], log: LogId, generation: u64) -> Result<RootKey> {
        let damaged = || Error::tampered("it is damaged: restore it from a backup");
        let text = std::str::from_utf8(file).map_err(|_| damaged())?;
        let mut words = text.strip_suffix('\n').ok_or_else(damaged)?.split(' ');
        let (Some(LABEL), Some(id), Some(of), Some(secret), None) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return Err(damaged());
        };
        let id = LogId::parse(id).ok_or_else(damaged)?;
        if id != log {
            return Err(Error::new(ErrorKind::Refused, format!("it is the root of another log, {id}")));
        }
        if of != generation.to_string() {
            return Err(Error::new(ErrorKind::Refused, format!("it is the root of generation {of}")));
        }
        let secret = Zeroizing::new(BASE64_STANDARD.decode(secret).map_err(|_| damaged())?);
        Ok(RootKey::new(secret.as_slice().try_into().map_err(|_| damaged())?))
    }
}

/// A root wrapped as an ordinary age file: the identity that opens it may be a TPM's or a token's.
///
/// Destroying the file then leaves nothing that a thief of the key directory could open without the identity. That
/// a root belongs to a log and a generation is shown by the keys beneath it, which open with it or do not.
pub struct AgeRoot {
    /// What wraps a root.
    pub key_wrap: Arc<dyn KeyWrap>,
    /// The recipients that it is wrapped to.
    pub recipients: Vec<String>,
    /// How long a plugin may take to wrap.
    pub limit: Duration,
    /// What unwraps it.
    pub identity: Arc<dyn Identity>,
}

impl Root for AgeRoot {
    fn wrap(&self, key: &RootKey, _: LogId, _: u64) -> Result<Zeroizing<Vec<u8>>> {
        Ok(Zeroizing::new(self.key_wrap.wrap(&self.recipients, &key.0.0, self.limit)?))
    }

    fn unwrap(&self, file: &[u8], _: LogId, _: u64) -> Result<RootKey> {
        let secret = self.identity.unwrap(file)?;
        let secret = secret.ok_or_else(|| {
            Error::new(ErrorKind::NoKey, "it is wrapped to another identity: bring the right one")
        })?;
        Ok(RootKey::new(*secret.bytes()))
    }
}
