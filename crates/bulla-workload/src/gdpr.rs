//! `gdpr` and `gdpr-50`: the main benchmark of the thesis *Tamperproof Logging System for GDPR-compliant Key-Value
//! Stores*. Each entry is an operation on one attribute of one of 1,000 users, with a controller, a processor and
//! 4096 bytes of words.
//!
//! Words are drawn independently by Zipf's law, the one of rank k with weight 1/k, joined by a space, and cut at 4096
//! bytes. A producer's entries go to 1024 streams in turn, 4096 entries to each; producers begin 64 streams apart, as
//! 16 producers do that share the streams out between them. Time steps by 0 to 63 microseconds: 16 producers make
//! the published half a million entries a second.
//!
//! The entropy of an entry in bits is
//! `log₂ 4 + log₂ 1000 + log₂ 10 + log₂ 10 + log₂ 20 + log₂ 64 + 4096 / (E[word length] + 1) · H(word)`
//! for operation, user, attribute, controller, processor, time and payload. Subject and stream follow from the
//! location and the entry's number. The payload's part counts the words that start in 4096 bytes by their mean, which
//! the word that is cut makes uncertain by less than one word in 600: it is a bound up to that.

use crate::clock::Clock;
use crate::entropy::{uniform, weighted};
use crate::phrases::{Phrases, ROOM, zipf};
use crate::pool::Pool;
use crate::random::{Random, field, index_below, lower, scale, upper};
use bulla_proof::Entry;
use smallvec::smallvec;

/// The length of a payload, in bytes.
pub const PAYLOAD: usize = 4096;
/// The entries that go to one stream before the next has its turn.
pub const BATCH: u32 = 4096;
/// The streams, unless told otherwise.
pub const STREAMS: u32 = 1024;

const OPERATIONS: [&str; 4] = ["create", "read", "update", "delete"];
const USERS: u32 = 1000;
const CONTROLLERS: u32 = 10;
const PROCESSORS: u32 = 20;
const STEP: u32 = 64;
const STREAMS_APART: u32 = 64;
const ATTRIBUTES: [&str; 10] = [
    "profile",
    "settings",
    "history",
    "preferences",
    "contacts",
    "messages",
    "photos",
    "documents",
    "videos",
    "audio",
];

/// The words that payloads consist of, the most frequent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// "the" and "data": what gave the published compression ratios.
    Two,
    /// Fifty words, which compress about as text of such a vocabulary does.
    Fifty,
}

impl Vocabulary {
    fn words(self) -> &'static [&'static str] {
        match self {
            Vocabulary::Two => &["the", "data"],
            Vocabulary::Fifty => &FIFTY,
        }
    }

    pub(crate) fn entropy_per_entry(self) -> f64 {
        let choices = [4, USERS, 10, CONTROLLERS, PROCESSORS, STEP];
        let head = choices.map(uniform).iter().sum::<f64>();
        let lengths = self.words().iter().map(|word| word.len() as f64 + 1.0);
        let weights = zipf(self.words().len());
        let mean = lengths.zip(weights.clone()).map(|(length, weight)| length * weight).sum::<f64>()
            / weights.clone().sum::<f64>();
        (head + PAYLOAD as f64 / mean * weighted(weights)) / 8.0
    }
}

#[rustfmt::skip]
const FIFTY: [&str; 50] = [
    "the", "data", "subject", "of", "and", "to", "user", "in", "is", "for", "record", "on", "with", "as",
    "that", "by", "request", "at", "from", "consent", "policy", "or", "access", "this", "be", "which",
    "purpose", "are", "storage", "not", "was", "an", "transfer", "has", "it", "key", "value", "read",
    "write", "update", "delete", "profile", "history", "message", "contact", "audit", "log", "right",
    "erase", "notice",
];

/// One producer's entries.
#[derive(Debug)]
pub struct Gdpr {
    producer: u32,
    random: Random,
    clock: Clock,
    phrases: Phrases,
    users: Pool,
    controllers: Pool,
    processors: Pool,
    streams: Pool,
    stream: usize,
    left_in_batch: u32,
    location: Vec<u8>,
    payload: Box<[u8]>,
}

impl Gdpr {
    /// The entries of producer number `producer`.
    pub fn new(vocabulary: Vocabulary, seed: u64, producer: u32) -> Self {
        Gdpr {
            producer,
            random: Random::for_producer(seed, producer),
            clock: Clock::new(),
            phrases: Phrases::new(vocabulary.words()),
            users: numbered("user", 1, USERS),
            controllers: numbered("controller", 1, CONTROLLERS),
            processors: numbered("processor", 1, PROCESSORS),
            streams: numbered("stream", 0, STREAMS),
            stream: first_stream(producer, STREAMS),
            left_in_batch: BATCH,
            location: Vec::new(),
            payload: vec![0; PAYLOAD + ROOM].into(),
        }
    }

    /// The same with so many streams, at least one.
    pub fn streams(mut self, count: u32) -> Self {
        let count = count.max(1);
        self.streams = numbered("stream", 0, count);
        self.stream = first_stream(self.producer, count);
        self
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let (who, roles, rest) = (self.random.next(), self.random.next(), self.random.next());
        let subject = self.users.choose(upper(who));
        write_location(subject, lower(who), &mut self.location);
        self.phrases.fill(&mut self.payload, &mut self.random);
        if self.left_in_batch == 0 {
            self.left_in_batch = BATCH;
            self.stream = (self.stream + 1) % self.streams.len();
        }
        self.left_in_batch -= 1;
        Entry {
            time: Some(self.clock.step(scale(upper(rest), STEP))),
            operation: OPERATIONS[field(rest, 0, 4)],
            location: Some(&self.location),
            subjects: Some(smallvec![subject]),
            controller: Some(self.controllers.choose(upper(roles))),
            processor: Some(self.processors.choose(lower(roles))),
            stream: Some(self.streams.get(self.stream)),
            payload: Some(&self.payload[..PAYLOAD]),
            ..Entry::default()
        }
    }
}

/// The stream that a producer begins with.
fn first_stream(producer: u32, streams: u32) -> usize {
    (STREAMS_APART.wrapping_mul(producer) % streams) as usize
}

/// The place of one of a user's attributes, chosen by 32 random bits.
#[inline]
pub(crate) fn write_location(user: &str, attribute: u32, location: &mut Vec<u8>) {
    location.clear();
    location.extend_from_slice(b"user/");
    location.extend_from_slice(user.as_bytes());
    location.push(b'/');
    location.extend_from_slice(ATTRIBUTES[index_below(attribute, ATTRIBUTES.len())].as_bytes());
}

/// So many names, `word_1`, `word_2` and so on.
pub(crate) fn numbered(word: &str, first: u32, count: u32) -> Pool {
    Pool::collect((first..first + count).map(|number| format!("{word}_{number}")))
}
