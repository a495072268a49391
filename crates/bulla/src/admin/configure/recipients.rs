//! What is done to the list of recipients.

use super::names::RECIPIENTS;
use bulla_crypto::recipients::check_recipient;
use bulla_store::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// What to do with the list of recipients. It is applied to the list as it is once the file is locked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Recipients {
    Are(Vec<String>),
    With(Vec<String>),
    Without(Vec<String>),
}

impl Recipients {
    /// The list that comes of `current`.
    ///
    /// # Errors
    /// `Refused` where one is to go that is no recipient, or none would be left.
    pub(super) fn of(&self, current: &[String]) -> Result<Vec<String>> {
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

/// The recipients, each of which is one.
///
/// # Errors
/// `Invalid` where one is none.
pub(super) fn checked(recipients: impl IntoIterator<Item = impl Into<String>>) -> Result<Vec<String>> {
    let recipients = recipients.into_iter().map(Into::into).collect::<Vec<String>>();
    recipients.iter().try_for_each(|recipient| check_recipient(recipient))?;
    Ok(recipients)
}

pub(super) fn no_recipients() -> Error {
    Error::invalid(format!("`{RECIPIENTS}` cannot be empty: nobody could read the log"))
}
