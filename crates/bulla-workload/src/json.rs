//! `json`: the events of an application, each with a small JSON object of one of 20 shapes, 200 to 600 bytes.
//!
//! The operation is the event's name, the location the object that it concerns, the subject one of 5,000 customers,
//! actor and purpose those of the shape. Time steps by 0 to 999 microseconds.
//!
//! The entropy of an entry in bits is `log₂ 20 + log₂ 10⁸ + log₂ 5000 + log₂ 1000` for shape, object, customer and
//! time, and the mean over the shapes of the sum of their values' entropies. A value is uniform over its range, so
//! that its entropy is the logarithm of how many it has; a text of 3 to 10 words of 128 has
//! `log₂ 8 + 6.5 · log₂ 128`. It is exact.

mod shapes;

use crate::calendar;
use crate::clock::Clock;
use crate::digits::{decimal, hexadecimal, padded};
use crate::entropy::uniform;
use crate::gdpr::numbered;
use crate::pool::Pool;
use crate::random::{Random, field, index_below, lower, scale, upper};
use bulla_proof::Entry;
use shapes::{SHAPES, Shape, TEXT_WORDS, lists};
use smallvec::smallvec;

const CUSTOMERS: u32 = 5000;
const OBJECTS: u32 = 100_000_000;
const STEP: u32 = 1000;
const DAY: u32 = 86_400_000;
const MILLISECOND: i64 = 1_000_000;
const CENTS: u32 = 1_000_000;
const NUMBERS: u32 = 1_000_000;
const COUNTS: u32 = 20;
/// A text has three words and 0 to 7 more.
const WORDS_LEAST: usize = 3;

pub(crate) fn entropy_per_entry() -> f64 {
    let shapes = SHAPES.iter().flat_map(|shape| parts(shape.payload)).map(|part| part.entropy()).sum::<f64>();
    let head = uniform(SHAPES.len() as f64) + [OBJECTS, CUSTOMERS, STEP].map(uniform).iter().sum::<f64>();
    (head + shapes / SHAPES.len() as f64) / 8.0
}

/// One producer's entries.
#[derive(Debug)]
pub struct Json {
    random: Random,
    clock: Clock,
    customers: Pool,
    payloads: Vec<Vec<Part>>,
    location: Vec<u8>,
    payload: Vec<u8>,
}

impl Json {
    /// The entries of producer number `producer`.
    pub fn new(seed: u64, producer: u32) -> Self {
        Json {
            random: Random::for_producer(seed, producer),
            clock: Clock::new(),
            customers: numbered("customer", 1, CUSTOMERS),
            payloads: SHAPES.iter().map(|shape| parts(shape.payload).collect()).collect(),
            location: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// The next entry.
    #[inline]
    pub fn next_entry(&mut self) -> Entry<'_> {
        let (what, who) = (self.random.next(), self.random.next());
        let index = index_below(lower(what), SHAPES.len());
        let Shape { operation, location, actor, purpose, .. } = SHAPES[index];
        let subject = self.customers.choose(lower(who));
        let time = self.clock.step(scale(upper(what), STEP));

        self.location.clear();
        self.location.extend_from_slice(location.as_bytes());
        let written = self.location.len();
        padded(scale(upper(who), OBJECTS).into(), 8, &mut self.location);
        let known = Known { object: &self.location[written..], subject, time };
        self.payload.clear();
        for part in &self.payloads[index] {
            part.write(&known, &mut self.random, &mut self.payload);
        }
        Entry {
            time: Some(time),
            operation,
            location: Some(&self.location),
            subjects: Some(smallvec![subject]),
            purpose: Some(purpose),
            actor: Some(actor),
            payload: Some(&self.payload),
            ..Entry::default()
        }
    }
}

/// What a payload repeats of its entry.
struct Known<'a> {
    object: &'a [u8],
    subject: &'a str,
    time: i64,
}

/// A piece of a payload: text of the shape, or a value.
#[derive(Clone, Copy, Debug)]
enum Part {
    Text(&'static str),
    /// The object that the entry's location names.
    Object,
    /// The entry's subject.
    Subject,
    /// A time within the day before the entry's, to the millisecond.
    Time,
    /// An amount below ten thousand, with cents.
    Amount,
    /// A number below a million.
    Number,
    /// A number from 1 to 20.
    Count,
    /// Sixteen hexadecimal digits.
    Token,
    Flag,
    /// 3 to 10 words.
    Words,
    OneOf(&'static [&'static str]),
}

impl Part {
    /// What `<name>` in a shape stands for.
    fn named(name: &str) -> Self {
        match name {
            "object" => Part::Object,
            "subject" => Part::Subject,
            "time" => Part::Time,
            "amount" => Part::Amount,
            "number" => Part::Number,
            "count" => Part::Count,
            "token" => Part::Token,
            "flag" => Part::Flag,
            "words" => Part::Words,
            list => Part::OneOf(lists(list)),
        }
    }

    fn entropy(&self) -> f64 {
        match self {
            Part::Text(_) | Part::Object | Part::Subject => 0.0,
            Part::Time => uniform(DAY),
            Part::Amount => uniform(CENTS),
            Part::Number => uniform(NUMBERS),
            Part::Count => uniform(COUNTS),
            Part::Token => 64.0,
            Part::Flag => 1.0,
            Part::Words => uniform(8) + 6.5 * uniform(128),
            Part::OneOf(list) => uniform(list.len() as f64),
        }
    }

    #[inline]
    fn write(&self, known: &Known<'_>, random: &mut Random, out: &mut Vec<u8>) {
        match self {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Object => out.extend_from_slice(known.object),
            Part::Subject => out.extend_from_slice(known.subject.as_bytes()),
            Part::Time => {
                let before = MILLISECOND * i64::from(random.below(DAY));
                calendar::milliseconds(known.time - before, out);
            }
            Part::Amount => {
                let cents = u64::from(random.below(CENTS));
                decimal(cents / 100, out);
                out.push(b'.');
                padded(cents % 100, 2, out);
            }
            Part::Number => decimal(random.below(NUMBERS).into(), out),
            Part::Count => decimal(u64::from(random.below(COUNTS)) + 1, out),
            Part::Token => hexadecimal(random.next(), out),
            Part::Flag => {
                out.extend_from_slice(if random.next() & 1 == 0 { b"false" } else { b"true" });
            }
            Part::Words => write_words(random, out),
            Part::OneOf(list) => out.extend_from_slice(random.choose(list).as_bytes()),
        }
    }
}

fn write_words(random: &mut Random, out: &mut Vec<u8>) {
    // Three bits for how many words there are, then seven a word.
    let numbers = [random.next(), random.next()];
    for place in 0..WORDS_LEAST + field(numbers[0], 0, 8) {
        let lowest = [3, 10, 17, 24, 31, 38, 45, 52][place % 8];
        TEXT_WORDS[field(numbers[place / 8], lowest, 128)].write(out);
    }
    // The last word has a space too many.
    out.pop();
}

/// Cuts a shape's payload at its `<names>`.
fn parts(payload: &'static str) -> impl Iterator<Item = Part> {
    payload
        .split('<')
        .enumerate()
        .flat_map(|(place, piece)| match (place, piece.split_once('>')) {
            (0, _) | (_, None) => [None, Some(Part::Text(piece))],
            (_, Some((name, text))) => [Some(Part::named(name)), Some(Part::Text(text))],
        })
        .flatten()
}
