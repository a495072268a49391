//! [`Rules`]: whose data a key is, by the rules of the configuration.

use super::form;
use super::learned::Learned;
use super::lesson::{Answer, Lesson, Taught, Words, was_done};
use super::recent::Span;
use super::template::{Key, Match, Template, first_eight};
use std::borrow::Cow;
use std::collections::HashMap;

/// A rule: which keys it is about, and what says whose data they are.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The keys that it is about.
    pub template: Template,
    /// The databases that it is about; all where there is none.
    pub databases: Vec<u32>,
    /// What in a value says whose data it is, where the key does not.
    pub lesson: Option<Lesson>,
}

/// Whose data a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose<'a> {
    /// A rule says so, in the form of [`form`].
    Subject(Cow<'a, str>),
    /// No rule says anything: the default.
    Default(&'a str),
    /// No rule says anything, and there is no default.
    Unmapped,
    /// The key is longer than what is known of it, and a rule would need the rest.
    Undecided,
}

/// What a command says of whose data the keys are that it writes. Its entries are of these, whatever others have [`Learned`] know of the
/// same keys before they are made.
#[derive(Debug, Default)]
pub struct Said<'a> {
    /// Whether others may have changed one of the keys after it, as [`Learned::teach`] says.
    pub contested: bool,
    subjects: HashMap<(u32, &'a [u8]), String>,
}

impl Said<'_> {
    /// Whose data a key of a database is, in the form of [`form`], where the command says so.
    pub fn of<'k>(&'k self, database: u32, key: &'k [u8]) -> Option<&'k str> {
        self.subjects.get(&(database, key)).map(String::as_str)
    }
}

/// The rules, in their order.
pub struct Rules {
    rules: Vec<Rule>,
    /// What a key has to begin with to be of the rule at the same place, so that most rules are passed by at the cost of a comparison.
    heads: Vec<(u64, u64)>,
    /// Whether any of them has a lesson.
    learns: bool,
    default: Option<String>,
    /// Under which what is too long for an entry has its digest.
    key: [u8; 32],
}

impl Rules {
    /// These rules, tried in order; what none of them is about is of `default`, or of nobody who is known. Digests of subjects that are too
    /// long are under `key`.
    pub fn new(rules: Vec<Rule>, default: Option<String>, key: [u8; 32]) -> Self {
        let heads = rules.iter().map(|rule| rule.template.head()).collect();
        let learns = rules.iter().any(|rule| rule.lesson.is_some());
        Rules { rules, heads, learns, default, key }
    }

    /// Whose data a key of a database is. A rule that has to learn it and has not is passed by.
    pub fn whose<'a>(&'a self, database: u32, key: Key<'a>, learned: &Learned) -> Whose<'a> {
        let head = first_eight(key.bytes);
        for (rule, (bytes, mask)) in self.rules.iter().zip(&self.heads) {
            // Of a key that is known in part the rest may be such.
            if (head & mask != *bytes && (key.whole || key.bytes.len() >= 8)) || !rule.is_about(database) {
                continue;
            }
            match (rule.template.find(key), &rule.lesson) {
                (Match::No, _) => {}
                (Match::Undecided, _) => return Whose::Undecided,
                (Match::Yes(Some(range)), _) => {
                    return Whose::Subject(form::encode(&key.bytes[range], &self.key));
                }
                // What is not known as a whole was not taught.
                (Match::Yes(None), Some(_)) if key.whole => {
                    if let Some(subject) = learned.lookup(database, key.bytes) {
                        return Whose::Subject(Cow::Owned(subject));
                    }
                }
                (Match::Yes(None), _) => {}
            }
        }
        self.default.as_deref().map_or(Whose::Unmapped, Whose::Default)
    }

    /// Has `learned` know what a command says that was carried out in this span: one that wrote to the key that is its word `key`. `command` is its
    /// name in small letters. What it says is added to `said`.
    ///
    /// It is for writes that no error was answered to; of keys that were deleted, renamed, moved or copied [`Learned`] is told by its own methods.
    pub fn learn<'a>(
        &self,
        database: u32,
        (command, key, words): (&str, u64, &'a dyn Words),
        answer: Answer,
        (learned, span): (&Learned, Span),
        said: &mut Said<'a>,
    ) {
        if !self.learns {
            return;
        }
        let taught = self.taught(database, command, key, words, answer);
        match (taught, words.word(key)) {
            (Taught::Subject(bytes), Some(key)) => {
                let subject = form::encode(&bytes, &self.key).into_owned();
                said.contested |= learned.teach(database, key, &subject, span);
                said.subjects.insert((database, key), subject);
            }
            (Taught::Unknown, Some(key)) => learned.forget_key(database, key, span),
            (Taught::Nothing, _) | (_, None) => {}
        }
    }

    /// Whether any rule has to learn from values, so that they have to be kept until it has.
    pub fn learns(&self) -> bool {
        self.learns
    }

    /// Whether no rule says anything of any key.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The form of a key in which it stands in entries, as their location. `length` is that of all of it, and `digest` the one
    /// of [`crate::resp::Arguments`] where more of it came than was kept.
    pub fn location<'a>(&self, key: &'a [u8], length: u64, digest: Option<&[u8; 32]>) -> Cow<'a, str> {
        match digest {
            Some(digest) if length > key.len() as u64 => Cow::Owned(form::cut(key, length, digest)),
            _ => form::encode(key, &self.key),
        }
    }

    fn taught(&self, database: u32, command: &str, key: u64, words: &dyn Words, answer: Answer) -> Taught {
        let Some(name) = words.word(key) else { return Taught::Nothing };
        let mut unknown = false;
        for rule in self.rules.iter().filter(|rule| rule.is_about(database)) {
            match (rule.template.find(Key { bytes: name, whole: true }), &rule.lesson) {
                // No later rule says whose this key is.
                (Match::Yes(Some(_)), _) => break,
                (Match::Yes(None), Some(lesson)) => match lesson.read(command, key, words, answer) {
                    Taught::Nothing => {}
                    Taught::Unknown => unknown = true,
                    taught @ Taught::Subject(_) => {
                        return match was_done(command, words, answer) {
                            Some(true) => taught,
                            Some(false) => Taught::Nothing,
                            None => Taught::Unknown,
                        };
                    }
                },
                (Match::Yes(None) | Match::No | Match::Undecided, _) => {}
            }
        }
        match unknown && was_done(command, words, answer) != Some(false) {
            true => Taught::Unknown,
            false => Taught::Nothing,
        }
    }
}

impl Rule {
    fn is_about(&self, database: u32) -> bool {
        self.databases.is_empty() || self.databases.contains(&database)
    }
}

/// The key of the digests is a secret.
impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules")
            .field("rules", &self.rules)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
