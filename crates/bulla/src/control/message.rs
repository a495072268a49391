//! The requests and answers of the control socket, and their form as JSON.

use crate::admin::configure::{Configure, Configured};
use crate::erase::{Erasure, ErasureOrder, HoldOrder, ReleaseOrder};
use crate::format::event::{ExportRecord, parse_digest};
use crate::format::json;
use crate::write::recover::Recovery;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bulla_crypto::group::{GroupSecret, Missing, Whose};
use bulla_proof::commitment::LogId;
use bulla_store::{Effect, Error, ErrorKind, Result};
use bulla_vault::ReplicaState;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};
use zeroize::Zeroizing;

/// The version of this protocol. In version 1 an answer to [`Request::ErasedUpTo`] was a number of frames, without their root, and an
/// error did not say what came of what was asked.
pub(super) const VERSION: u32 = 2;
/// The longest message, in bytes.
pub(super) const LIMIT: usize = 1 << 20;
/// The most groups that are asked for at once.
pub(super) const MAX_GROUPS: usize = 4096;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Request {
    /// Who writes which log.
    Status,
    /// [`bulla_crypto::group::GroupKeys::numbers`].
    Numbers { subjects: Vec<String> },
    /// [`bulla_crypto::group::GroupKeys::secrets`], of up to [`MAX_GROUPS`].
    Secrets {
        #[serde(with = "log_id")]
        log: LogId,
        epoch_random: [u8; 32],
        frame: u64,
        groups: Vec<Vec<u64>>,
    },
    /// [`bulla_crypto::group::GroupKeys::erased_up_to`], as far as the writer has signed it.
    ErasedUpTo,
    /// [`bulla_crypto::group::GroupKeys::missing`].
    Missing { from: u64 },
    /// [`bulla_crypto::group::GroupKeys::whose`], of up to [`MAX_GROUPS`].
    Whose { asked: Vec<(Vec<u64>, String)> },
    /// [`crate::Log::configure`].
    Configure(Configure),
    /// [`crate::Log::rotate`].
    Rotate,
    /// [`crate::Log::record_export`].
    RecordExport(ExportRecord),
    /// [`crate::Log::erase`].
    Erase(ErasureOrder),
    /// [`crate::Log::erase_only`].
    EraseOnly { order: ErasureOrder, numbers: Vec<u64> },
    /// [`crate::Log::hold`].
    Hold(HoldOrder),
    /// [`crate::Log::release`].
    Release(ReleaseOrder),
}

/// [`Effect`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Done,
    Unknown,
}

impl From<Effect> for Outcome {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Done => Outcome::Done,
            Effect::Unknown => Outcome::Unknown,
        }
    }
}

impl From<Outcome> for Effect {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Effect::Done,
            Outcome::Unknown => Effect::Unknown,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Response {
    Answer(Answer),
    Error {
        kind: String,
        text: String,
        /// [`Error::effect`].
        effect: Option<Outcome>,
    },
    /// There are as many connections as may be: try again.
    Busy,
}

/// What answers a request: for each kind of request one, in the order of [`Request`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Status(Status),
    Numbers(Vec<Option<u64>>),
    Secrets(Vec<Option<Secret>>),
    ErasedUpTo {
        frames: u64,
        root: [u8; 32],
        /// [`bulla_crypto::group::Followed::unfollowed`].
        unfollowed: Option<u64>,
        /// [`bulla_crypto::group::Followed::given_up`].
        given_up: Vec<[u8; 16]>,
    },
    Missing(Absent),
    Whose(Vec<Matched>),
    Configured(Changed),
    Epoch(u64),
    Recorded,
    Erased(Erasure),
    Held(bool),
    Released,
}

/// Who has a log open for writing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The log's id.
    #[serde(with = "log_id")]
    pub log: LogId,
    /// The origin of its checkpoints.
    pub origin: String,
    /// The process.
    pub process: u32,
    /// Entries acknowledged since it opened the log.
    pub acknowledged: u64,
    /// The replicas of the vault.
    #[serde(default)]
    pub vault_replicas: Vec<ReplicaState>,
}

/// [`Missing`], with the first of each range and the first after it.
#[derive(Serialize, Deserialize)]
pub(super) struct Absent {
    numbers: Vec<(u64, u64)>,
    more: Option<u64>,
    given: u64,
    frames: u64,
    erasing: Vec<u64>,
}

impl From<Missing> for Absent {
    fn from(Missing { numbers, more, given, frames, erasing }: Missing) -> Self {
        let numbers = numbers.into_iter().map(|range| (range.start, range.end)).collect();
        Absent { numbers, more, given, frames, erasing }
    }
}

impl From<Absent> for Missing {
    fn from(Absent { numbers, more, given, frames, erasing }: Absent) -> Self {
        let numbers = numbers.into_iter().map(|(start, end)| start..end).collect();
        Missing { numbers, more, given, frames, erasing }
    }
}

/// [`Whose`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Matched {
    Number(u64),
    Others,
    Gone,
}

impl From<Whose> for Matched {
    fn from(whose: Whose) -> Self {
        match whose {
            Whose::Number(number) => Matched::Number(number),
            Whose::Others => Matched::Others,
            Whose::Gone => Matched::Gone,
        }
    }
}

impl From<Matched> for Whose {
    fn from(matched: Matched) -> Self {
        match matched {
            Matched::Number(number) => Whose::Number(number),
            Matched::Others => Whose::Others,
            Matched::Gone => Whose::Gone,
        }
    }
}

/// [`Configured`] by a log at work.
#[derive(Serialize, Deserialize)]
pub(super) struct Changed {
    changed: bool,
    settings: bool,
    log: Option<(String, String)>,
    keys: Vec<String>,
    #[serde(default)]
    made_pin: Option<u64>,
}

impl From<Configured> for Changed {
    fn from(done: Configured) -> Self {
        let log = done.log.map(|(before, after)| (before.to_string(), after.to_string()));
        Changed {
            changed: done.changed,
            settings: done.settings,
            log,
            keys: done.keys,
            made_pin: done.made_pin,
        }
    }
}

impl From<Changed> for Configured {
    fn from(done: Changed) -> Self {
        let digests = |(before, after): (String, String)| parse_digest(&before).zip(parse_digest(&after));
        Configured {
            changed: done.changed,
            log: done.log.and_then(digests),
            keys: done.keys,
            settings: done.settings,
            made_pin: done.made_pin,
            // They are not changed beside a writer.
            paths: Vec::new(),
            live: true,
            recovery: Recovery::default(),
            hold_differences: Vec::new(),
            resumed: None,
        }
    }
}

mod log_id {
    use super::{Deserialize, Deserializer, LogId, Serializer};
    use serde::de::Error;

    pub(super) fn serialize<S: Serializer>(id: &LogId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(super) fn deserialize<'de, F: Deserializer<'de>>(from: F) -> Result<LogId, F::Error> {
        LogId::parse(&String::deserialize(from)?).ok_or_else(|| F::Error::custom("it is no log's id"))
    }
}

/// The secret of a group, in base64.
pub(super) struct Secret(pub(super) GroupSecret);

const ENCODED: usize = GroupSecret::LENGTH.div_ceil(3) * 4;

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = Zeroizing::new([0; ENCODED]);
        let encoded = STANDARD.encode_slice(self.0.as_bytes(), &mut *text);
        encoded.expect("there is room for the digits of a secret");
        to.serialize_str(std::str::from_utf8(&*text).expect("digits are ASCII"))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<F: Deserializer<'de>>(from: F) -> Result<Self, F::Error> {
        struct Digits;

        impl Visitor<'_> for Digits {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the secret of a group")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
                // The decoder wants this much room, though it fills less.
                let mut bytes = Zeroizing::new([0; GroupSecret::LENGTH + 4]);
                match STANDARD.decode_slice(text, &mut *bytes) {
                    Ok(GroupSecret::LENGTH) => {
                        let mut secret = Zeroizing::new([0; GroupSecret::LENGTH]);
                        secret.copy_from_slice(&bytes[..GroupSecret::LENGTH]);
                        Ok(Secret(GroupSecret::new(*secret)))
                    }
                    _ => Err(E::custom("it is no secret of a group")),
                }
            }
        }

        from.deserialize_str(Digits)
    }
}

const KINDS: [(ErrorKind, &str); 9] = [
    (ErrorKind::Invalid, "invalid"),
    (ErrorKind::Timeout, "timeout"),
    (ErrorKind::Closed, "closed"),
    (ErrorKind::Locked, "locked"),
    (ErrorKind::Unavailable, "unavailable"),
    (ErrorKind::Tampered, "tampered"),
    (ErrorKind::Erased, "erased"),
    (ErrorKind::NoKey, "no-key"),
    (ErrorKind::Refused, "refused"),
];

impl From<Error> for Response {
    fn from(error: Error) -> Self {
        let known = KINDS.iter().find(|(kind, _)| *kind == error.kind());
        let kind = known.map_or("unavailable", |(_, name)| name).to_owned();
        Response::Error { kind, text: error.to_string(), effect: error.effect().map(Outcome::from) }
    }
}

/// An error that came as a message.
pub(super) fn error(kind: &str, text: String, effect: Option<Outcome>) -> Error {
    let known = KINDS.iter().find(|(_, name)| *name == kind);
    let error = Error::new(known.map_or(ErrorKind::Unavailable, |(kind, _)| *kind), text);
    match effect {
        Some(effect) => error.with_effect(effect.into()),
        None => error,
    }
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    version: u32,
    message: T,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// Encodes a message as it is sent.
///
/// # Errors
/// `Invalid` where it is over [`LIMIT`].
pub(super) fn encode(message: &impl Serialize) -> Result<Zeroizing<Vec<u8>>> {
    let mut text = Wiped::default();
    let written = serde_json::to_writer(&mut text, &Envelope { version: VERSION, message });
    written.map_err(|_| Error::invalid(format!("a message has at most {LIMIT} bytes")))?;
    Ok(text.0)
}

/// Decodes a message as it came.
///
/// # Errors
/// `Invalid` where it is no message of this kind; `Unavailable` where it is of another version.
pub(super) fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T> {
    let malformed = |_| Error::invalid("the message is none that is known here");
    let Version { version } = json::object(text).map_err(malformed)?;
    if version != VERSION {
        return Err(Error::unavailable(format!(
            "the other side speaks version {version} of the control socket, and this one version {VERSION}: run the writer and \
             the command in the same version of Bulla, or stop the writer first"
        )));
    }
    Ok(json::object::<Envelope<T>>(text).map_err(malformed)?.message)
}

/// Takes bytes up to [`LIMIT`], and overwrites them in memory when it is dropped.
#[derive(Default)]
struct Wiped(Zeroizing<Vec<u8>>);

impl Write for Wiped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.0.len() + bytes.len();
        if length > LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if length > self.0.capacity() {
            // A buffer that grew by itself would leave a copy of what it held behind.
            let mut larger = Zeroizing::new(Vec::with_capacity((2 * length).max(4096)));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
