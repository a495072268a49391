//! Salts of what orders commit to, which whoever gave the order keeps.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla_crypto::environment::Environment;
use bulla_proof::order::ORDER_SALT_LENGTH;
use bulla_store::Result;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug};

/// A salt; in JSON in base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Salt([u8; ORDER_SALT_LENGTH]);

impl Salt {
    /// A new one.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub(super) fn draw(environment: &Environment) -> Result<Self> {
        let mut salt = [0; ORDER_SALT_LENGTH];
        environment.random.fill(&mut salt)?;
        Ok(Salt(salt))
    }

    pub(super) fn bytes(&self) -> &[u8; ORDER_SALT_LENGTH] {
        &self.0
    }
}

impl Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt")
    }
}

impl TryFrom<String> for Salt {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        let bytes = BASE64_STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Salt).ok_or("a salt is 32 bytes in base64")
    }
}

impl From<Salt> for String {
    fn from(salt: Salt) -> Self {
        BASE64_STANDARD.encode(salt.0)
    }
}
