//! An order to erase with the names of the data subjects, which whoever gave the order keeps. The log gets only its public part.

use super::salt::Salt;
use crate::format::json;
use bulla_crypto::environment::Environment;
use bulla_crypto::signing::SigningKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::Hash;
use bulla_proof::note::SignedNote;
use bulla_proof::order::{MAX_ORDERED, MAX_REASON, Order, is_line, ordered_subject};
use bulla_store::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Debug};

/// An order to erase data subjects, and who they are. As confidential as their names; [`ErasureOrder::note`] alone is
/// public, and becomes part of the log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureOrder {
    #[serde(rename = "order")]
    note: String,
    subjects: Vec<Ordered>,
}

/// A data subject of an order.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ordered {
    subject: String,
    salt: Salt,
}

impl ErasureOrder {
    /// The longest file, in bytes: what a writer takes in one message (see [`crate::control`]).
    pub const MAX_LENGTH: usize = 1 << 20;

    /// Orders the erasure of `subjects` of `log`, signed with the log's erasure key. `reason` becomes public.
    ///
    /// # Errors
    /// `Invalid` where there is no subject, one is named twice, there are more than 4,096, the reason is more than
    /// one line of 1,024 bytes, or the file would take more than [`ErasureOrder::MAX_LENGTH`].
    pub fn give(
        key: &SigningKey,
        log: LogId,
        subjects: &[&str],
        reason: Option<&str>,
        environment: &Environment,
    ) -> Result<Self> {
        let ordered =
            |subject: &&str| Ok(Ordered { subject: (*subject).to_owned(), salt: Salt::draw(environment)? });
        let mut sorted = subjects.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid(format!("`{}` is named twice", twice[0])));
        }
        if !(1..=MAX_ORDERED).contains(&sorted.len()) {
            return Err(Error::invalid(format!("an order names 1 to {MAX_ORDERED} data subjects")));
        }
        reason.map_or(Ok(()), check_reason)?;
        let subjects = subjects.iter().map(ordered).collect::<Result<Vec<Ordered>>>()?;
        let order = Order {
            log,
            seconds: seconds(environment),
            reason: reason.map(str::to_owned),
            subjects: subjects.iter().map(Ordered::commitment).collect(),
        };
        let note = order.sign(key.verifier(), |text| key.sign(text));
        let note = note.map_err(|error| Error::invalid(error.to_string()))?;
        let order = ErasureOrder { note, subjects };
        let length = order.render().len();
        match length <= Self::MAX_LENGTH {
            true => Ok(order),
            false => {
                let most = Self::MAX_LENGTH;
                let message =
                    format!("the order would take {length} bytes, and may take {most}: name fewer at a time");
                Err(Error::invalid(message))
            }
        }
    }

    /// Reads the file of an order. Whether it holds for a log is known when that carries it out.
    ///
    /// # Errors
    /// `Invalid` where it is none.
    pub fn parse(text: &str) -> Result<Self> {
        parse(text, "an order to erase")
    }

    /// The file, as JSON.
    pub fn render(&self) -> String {
        render(self)
    }

    /// The public part, a signed note of [`bulla_proof::order`].
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The data subjects' names.
    pub fn subjects(&self) -> impl ExactSizeIterator<Item = &str> {
        self.subjects.iter().map(|ordered| &ordered.subject[..])
    }

    /// The names that an event with these places of the order's list does not speak of: of them nothing was erased.
    pub fn not_carried_out(&self, carried_out: &[u32]) -> Vec<&str> {
        let named = (0_u32..).zip(self.subjects());
        named.filter(|(place, _)| carried_out.binary_search(place).is_err()).map(|(_, name)| name).collect()
    }

    /// Checks that the order was signed with the erasure key of `log`, and is about the data subjects whom the file names.
    ///
    /// # Errors
    /// `Refused` where it was not.
    pub fn check(&self, key: &VerifierKey, log: LogId) -> Result<Order> {
        let order = Order::open(self.note.as_bytes(), key);
        let order = order.map_err(|error| refused(format!("{error}; it has to be signed with {key}")))?;
        self.check_log_and_names(order, log)
    }

    /// What it orders, whoever signed it: one that was carried out stays carried out where the log's erasure key is another by now.
    ///
    /// # Errors
    /// `Refused` where it is none, for another log, or for others than it names.
    pub(crate) fn unsigned(&self, log: LogId) -> Result<Order> {
        let note = SignedNote::parse(self.note.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let order = Order::parse(note.text).map_err(|error| refused(error.to_string()))?;
        self.check_log_and_names(order, log)
    }

    /// Why it was ordered.
    ///
    /// # Errors
    /// `Refused` where it is no order for this log and the names in it. Who signed it is another matter: [`ErasureOrder::check`].
    pub fn reason(&self, log: LogId) -> Result<Option<String>> {
        Ok(self.unsigned(log)?.reason)
    }

    fn check_log_and_names(&self, order: Order, log: LogId) -> Result<Order> {
        if order.log != log {
            return Err(refused(format!("it is for the log {}, not for {log}", order.log)));
        }
        self.check_names(&order).map(|()| order)
    }

    /// Checks that `order` is about the data subjects whom the file names.
    ///
    /// # Errors
    /// `Refused` where it is about others.
    pub fn check_names(&self, order: &Order) -> Result<()> {
        match self.subjects.iter().map(Ordered::commitment).eq(order.subjects.iter().copied()) {
            true => Ok(()),
            false => Err(refused("it is signed for others than those whom it names".to_owned())),
        }
    }
}

/// # Errors
/// `Invalid`, saying why the reason of an order can be none.
fn check_reason(reason: &str) -> Result<()> {
    let wrong = match reason {
        reason if is_line(reason) => return Ok(()),
        "" => "is empty: leave it out where there is none".to_owned(),
        reason if reason.contains('\n') => "has more than one line".to_owned(),
        reason if reason.len() > MAX_REASON => format!("has {} bytes", reason.len()),
        _ => "has a control character".to_owned(),
    };
    Err(Error::invalid(format!(
        "the reason (`--reason`) {wrong}; it is one line of 1 to {MAX_REASON} bytes, without control characters"
    )))
}

/// Now, in seconds since the epoch, UTC.
pub(super) fn seconds(environment: &Environment) -> u64 {
    environment.clock.now().div_euclid(1_000_000_000).try_into().unwrap_or(0)
}

/// Reads the file of an order of any kind.
///
/// # Errors
/// `Invalid` where it is none.
pub(super) fn parse<T: DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    // What is in the file is confidential: the error says where, not what.
    json::objects(text.as_bytes()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Error::invalid(format!("it is not {what} (line {line}, column {column})"))
    })
}

/// The file of an order of any kind.
pub(super) fn render(order: &impl Serialize) -> String {
    serde_json::to_string_pretty(order).expect("an order has nothing that JSON cannot hold") + "\n"
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::Refused, format!("the order to erase: {why}"))
}

impl Ordered {
    fn commitment(&self) -> Hash {
        ordered_subject(self.salt.bytes(), &self.subject)
    }
}

impl Debug for ErasureOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErasureOrder").field("subjects", &self.subjects.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_its_members_is_no_order() {
        let salt = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let subject = format!(r#"{{"subject":"alice","salt":"{salt}"}}"#);
        let sound = format!(r#"{{"order":"…","subjects":[{subject}]}}"#);
        assert_eq!(ErasureOrder::parse(&sound).unwrap().subjects().collect::<Vec<_>>(), ["alice"]);
        for list in [
            format!(r#"["…",[{subject}]]"#),
            format!(r#"{{"order":"…","subjects":[["alice","{salt}"]]}}"#),
            format!(r#"["…",[["alice","{salt}"]]]"#),
        ] {
            let error = ErasureOrder::parse(&list).map(drop).unwrap_err().to_string();
            assert!(error.starts_with("it is not an order to erase"), "{error}");
        }
    }
}
