//! Orders to erase: who may have a data subject erased says so, signed, and names nobody.
//!
//! An order is a [signed note](https://c2sp.org/signed-note) by the log's erasure key. Its text:
//!
//! ```text
//! bulla-erasure-order-v1
//! log <the log's id, 32 hexadecimal digits>
//! time <whole seconds since 1970, UTC>
//! reason <text of one line>                    (only where there is one)
//! subject <base64 of SHA-256("bulla erasure order v1" ‖ 0x00 ‖ salt (32 bytes) ‖ the data subject's name)>
//! …                                            (a line a subject, each once)
//! ```
//!
//! The salts stay with whoever gave the order: with one of them it can be shown whom the order was about, without them
//! nothing of it can be guessed. The text is public.

use crate::commitment::LogId;
use crate::hash::{Hash, sha256};
use crate::note::{NoteError, SIGNATURE_LENGTH, SignedNote, VerifierKey};
use std::fmt::{self, Write};

/// The first line of an order.
pub const ORDER_HEADER: &str = "bulla-erasure-order-v1";
/// The most data subjects that one order names.
pub const MAX_ORDERED: usize = 4096;
/// The longest reason, in bytes.
pub const MAX_REASON: usize = 1024;
/// The length of a subject's salt, in bytes.
pub const ORDER_SALT_LENGTH: usize = 32;

/// What an order says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The log that it is for.
    pub log: LogId,
    /// When it was given, in seconds since the epoch, UTC.
    pub seconds: u64,
    /// Why: public, a line of text without control characters.
    pub reason: Option<String>,
    /// Commitments to the data subjects, of [`ordered_subject`].
    pub subjects: Vec<Hash>,
}

/// The commitment to a data subject in an order.
pub fn ordered_subject(salt: &[u8; ORDER_SALT_LENGTH], subject: &str) -> Hash {
    sha256(&[b"bulla erasure order v1\0", salt, subject.as_bytes()])
}

impl Order {
    /// Reads the text of a note. Its signature is another matter: [`Order::open`].
    ///
    /// # Errors
    /// Where it is not the text of an order, or breaks a limit.
    pub fn parse(text: &str) -> Result<Self, OrderError> {
        let mut lines = text.strip_suffix('\n').ok_or(OrderError::Form)?.split('\n').peekable();
        let (log, seconds) = read_head(ORDER_HEADER, &mut lines).ok_or(OrderError::Form)?;
        let reason = lines.peek().and_then(|line| line.strip_prefix("reason ")).map(str::to_owned);
        if reason.is_some() {
            lines.next();
        }
        let mut subjects = Vec::new();
        for line in lines {
            if subjects.len() == MAX_ORDERED {
                return Err(OrderError::Subjects);
            }
            let subject = line.strip_prefix("subject ").and_then(Hash::from_base64);
            subjects.push(subject.ok_or(OrderError::Form)?);
        }
        let order = Order { log, seconds, reason, subjects };
        order.check()?;
        match order.text() == text {
            true => Ok(order),
            false => Err(OrderError::Form),
        }
    }

    /// Reads a signed note and checks that `key` signed it.
    ///
    /// # Errors
    /// Where it did not, or the note is no order.
    pub fn open(note: &[u8], key: &VerifierKey) -> Result<Self, OrderError> {
        Self::parse(signed_text(note, key).map_err(OrderError::Note)?)
    }

    /// The order as a signed note, its signature made by `sign`, which has the secret half of `key`.
    ///
    /// # Errors
    /// Where it breaks a limit.
    pub fn sign(
        &self,
        key: &VerifierKey,
        sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH],
    ) -> Result<String, OrderError> {
        self.check()?;
        Ok(signed(&self.text(), key, sign))
    }

    /// Checks what a log tells of the order's execution: that it was given for that log, and that as many data subjects at
    /// least were ordered as were erased. `numbers` are those of the data subjects whose keys were destroyed, `carried_out`
    /// the places of the names, among [`Order::subjects`] and from 0, that were theirs: of the others nothing was erased.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_erasure(
        &self,
        log: LogId,
        numbers: &[u64],
        carried_out: &[u32],
    ) -> Result<(), ErasureError> {
        if self.log != log {
            return Err(ErasureError::Log(self.log));
        }
        if !is_ascending(numbers) {
            return Err(ErasureError::Numbers);
        }
        let ordered = self.subjects.len();
        let last = carried_out.last().and_then(|last| usize::try_from(*last).ok());
        if !is_ascending(carried_out) || last.is_none_or(|last| last >= ordered) {
            return Err(ErasureError::CarriedOut { ordered });
        }
        match numbers.len() > carried_out.len() {
            true => Err(ErasureError::More { erased: numbers.len(), carried_out: carried_out.len() }),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), OrderError> {
        if !self.reason.as_deref().is_none_or(is_line) {
            return Err(OrderError::Reason);
        }
        let mut sorted = self.subjects.iter().map(|subject| subject.0).collect::<Vec<_>>();
        sorted.sort_unstable();
        let distinct = sorted.windows(2).all(|pair| pair[0] != pair[1]);
        match distinct && !sorted.is_empty() && sorted.len() <= MAX_ORDERED {
            true => Ok(()),
            false => Err(OrderError::Subjects),
        }
    }

    fn text(&self) -> String {
        let mut text = head(ORDER_HEADER, self.log, self.seconds);
        if let Some(reason) = &self.reason {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "reason {reason}");
        }
        for subject in &self.subjects {
            let _ = writeln!(text, "subject {}", subject.to_base64());
        }
        text
    }
}

/// The lines that every order begins with.
pub(crate) fn head(header: &str, log: LogId, seconds: u64) -> String {
    format!("{header}\nlog {log}\ntime {seconds}\n")
}

/// Reads them: the log that the order is for, and when it was given.
pub(crate) fn read_head<'a>(header: &str, lines: &mut impl Iterator<Item = &'a str>) -> Option<(LogId, u64)> {
    lines.next().filter(|line| *line == header)?;
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let log = field("log").and_then(LogId::parse)?;
    Some((log, field("time").and_then(crate::checkpoint::parse_size)?))
}

/// The text of a note that `key` signed.
pub(crate) fn signed_text<'a>(note: &'a [u8], key: &VerifierKey) -> Result<&'a str, NoteError> {
    let note = SignedNote::parse(note)?;
    note.verify(key).map(|()| note.text)
}

/// The note with this text, its signature made by `sign`, which has the secret half of `key`.
pub(crate) fn signed(
    text: &str,
    key: &VerifierKey,
    sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH],
) -> String {
    format!("{text}\n{}", key.signature_line(&sign(text.as_bytes())))
}

/// By which an order is known: two notes with the same text are one, whatever other signatures stand beneath it. What is no note
/// is known by all of it.
pub fn order_digest(note: &str) -> Hash {
    sha256(&[SignedNote::parse(note.as_bytes()).map_or(note, |note| note.text).as_bytes()])
}

/// Whether this is a line of text, of 1 to [`MAX_REASON`] bytes, as reasons and names of offices are.
pub fn is_line(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_REASON && !text.contains(|c: char| c.is_control())
}

/// Whether a list has something in it, and each item is above the one before: so are the numbers of data subjects in an event.
pub fn is_ascending<T: PartialOrd>(list: &[T]) -> bool {
    !list.is_empty() && list.windows(2).all(|pair| pair[0] < pair[1])
}

/// Why what a log tells of an erasure is not what its order ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErasureError {
    /// The order is for another log.
    Log(LogId),
    /// The numbers are none at all, or not strictly ascending.
    Numbers,
    /// The names that were carried out are none at all, not strictly ascending, or not in the order.
    CarriedOut {
        /// How many data subjects the order names.
        ordered: usize,
    },
    /// More data subjects were erased than the names that were carried out.
    More {
        /// How many data subjects were erased.
        erased: usize,
        /// How many names were carried out.
        carried_out: usize,
    },
}

impl fmt::Display for ErasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(log) => write!(f, "its order is for another log, {log}"),
            Self::Numbers => f.write_str("the numbers of its data subjects are none, or do not ascend"),
            Self::CarriedOut { ordered } => write!(
                f,
                "which names of its order were carried out is no ascending list of some of the {ordered} in it"
            ),
            Self::More { erased, carried_out } => {
                write!(
                    f,
                    "it erased {erased} data subjects, and carried out {carried_out} names of its order"
                )
            }
        }
    }
}

impl std::error::Error for ErasureError {}

/// Why an order is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// It is no signed note, or not of the key's.
    Note(NoteError),
    /// Its text is not that of an order.
    Form,
    /// Its reason is empty, longer than [`MAX_REASON`], or more than one line of text.
    Reason,
    /// It names nobody, somebody twice, or more than [`MAX_ORDERED`].
    Subjects,
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note(error) => write!(f, "{error}"),
            Self::Form => f.write_str("it is not an order to erase"),
            Self::Reason => {
                write!(f, "its reason is not one line of text of 1 to {MAX_REASON} bytes")
            }
            Self::Subjects => {
                write!(f, "it names nobody, somebody twice, or more than {MAX_ORDERED} data subjects")
            }
        }
    }
}

impl std::error::Error for OrderError {}
