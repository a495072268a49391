//! [`Recent`]: what became of keys a moment ago, for whoever has to know whether two clients changed one at the same time.
//!
//! The replies of two connections have no order. All that a proxy knows of a command is that the server carried it out between its arrival
//! and its reply, its [`Span`]. Where the spans of two commands of different connections overlap and both change one key, nobody can tell
//! which was last: the key is contested, and nothing is known of it until it is changed by a command alone.
//!
//! Invariants:
//! - a change is remembered for as long as a command may be on its way that came before the change was answered, or all such commands are
//!   taken to be contested: what is forgotten for want of room leaves the time behind up to which that is so;
//! - memory is bounded, and keys are remembered by a keyed hash. Two keys of one hash are contested too often, never too seldom.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// So many bytes of what is remembered make one of two generations.
const MOST: usize = 1 << 20;
/// What one key takes, but for where it was copied to.
const OVERHEAD: usize = 64;

/// When a command was carried out, as far as a proxy can know that: between its arrival and its reply, in nanoseconds of a steady clock.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When the command came.
    pub came: u64,
    /// When it was answered.
    pub answered: u64,
    /// On which connection. What comes on one is done in its order.
    pub connection: u64,
}

/// The last change of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    pub(super) answered: u64,
    /// By whom; `None` where that is contested.
    connection: Option<u64>,
}

impl From<Span> for Change {
    fn from(Span { answered, connection, .. }: Span) -> Self {
        Change { answered, connection: Some(connection) }
    }
}

impl Change {
    /// Whether nobody can tell if a command in this span came before it or after it.
    pub(super) fn is_contested_by(self, span: Span) -> bool {
        span.came <= self.answered && self.connection != Some(span.connection)
    }

    /// Whether it surely came before a command in this span, whose reply came later.
    pub(super) fn is_before(self, span: Span) -> bool {
        self.answered < span.came || self.connection == Some(span.connection)
    }

    /// This, and what another command did in this span.
    pub(super) fn followed_by(self, span: Span) -> Change {
        let connection = Some(span.connection).filter(|_| !self.is_contested_by(span));
        Change { answered: self.answered.max(span.answered), connection }
    }

    pub(super) fn contested(self) -> Change {
        Change { connection: None, ..self }
    }

    /// The later one of two changes that were compared with each other when each was made.
    fn later(self, other: Change) -> Change {
        if self.answered >= other.answered { self } else { other }
    }
}

/// A key: its database, and its bytes.
pub(super) type Place = (u32, Box<[u8]>);

/// See the module.
#[derive(Default)]
pub(super) struct Recent {
    hasher: RandomState,
    young: HashMap<u64, Remembered>,
    old: HashMap<u64, Remembered>,
    /// How many bytes the young ones take.
    bytes: usize,
    /// The last change of whole databases.
    all: Option<Change>,
    /// Up to when changes were answered that are no longer remembered.
    forgotten: Option<u64>,
}

struct Remembered {
    change: Change,
    /// Where what the key had was copied to at that time.
    copies: Vec<Place>,
}

impl Recent {
    /// A command changed the key in this span, or copied it to another.
    pub(super) fn note(&mut self, database: u32, key: &[u8], span: Span, to: Option<Place>) {
        let id = self.id(database, key);
        let (change, mut copies) = match self.take(id) {
            Some(Remembered { change, copies }) => {
                let at_once = span.came <= change.answered;
                (change.followed_by(span), if at_once { copies } else { Vec::new() })
            }
            None => (span.into(), Vec::new()),
        };
        copies.extend(to);
        self.put(id, Remembered { change, copies });
    }

    /// The last change of the key was this one, where it was not a later one.
    pub(super) fn remember(&mut self, database: u32, key: &[u8], last: Change) {
        let id = self.id(database, key);
        let (change, copies) = match self.take(id) {
            Some(Remembered { change, copies }) => (change.later(last), copies),
            None => (last, Vec::new()),
        };
        self.put(id, Remembered { change, copies });
    }

    /// A command changed all keys of a database in this span; `contested` where others did that to one of them, too.
    pub(super) fn note_all(&mut self, span: Span, contested: bool) {
        let keys = self.young.values().chain(self.old.values());
        let contested = contested || keys.into_iter().any(|it| it.change.is_contested_by(span));
        let change = self.all.map_or_else(|| span.into(), |all| all.followed_by(span));
        self.all = Some(if contested { change.contested() } else { change });
    }

    /// Whether a command in this span is contested whatever its keys are.
    pub(super) fn contests_all(&self, span: Span) -> bool {
        self.all.is_some_and(|all| all.is_contested_by(span))
            || self.forgotten.is_some_and(|answered| span.came <= answered)
    }

    /// Whether another command changed the key at the time of this span.
    pub(super) fn contests(&self, database: u32, key: &[u8], span: Span) -> bool {
        let id = self.id(database, key);
        let remembered = self.young.get(&id).or_else(|| self.old.get(&id));
        remembered.is_some_and(|it| it.change.is_contested_by(span))
    }

    /// The key is contested; to where it was copied goes into `copies`.
    pub(super) fn contest(&mut self, database: u32, key: &[u8], span: Span, copies: &mut Vec<Place>) {
        let id = self.id(database, key);
        let change = match self.take(id) {
            Some(remembered) => {
                copies.extend(remembered.copies);
                remembered.change.followed_by(span).contested()
            }
            None => Change::from(span).contested(),
        };
        self.put(id, Remembered { change, copies: Vec::new() });
    }

    /// Changes that were answered up to then are not remembered one by one.
    pub(super) fn forget_up_to(&mut self, answered: u64) {
        self.forgotten = self.forgotten.max(Some(answered));
    }

    fn id(&self, database: u32, key: &[u8]) -> u64 {
        self.hasher.hash_one((database, key))
    }

    fn take(&mut self, id: u64) -> Option<Remembered> {
        let young = self.young.remove(&id).inspect(|it| self.bytes -= it.cost());
        young.or_else(|| self.old.remove(&id))
    }

    fn put(&mut self, id: u64, remembered: Remembered) {
        if self.bytes > MOST {
            let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
            self.forgotten = dropped.values().map(|it| it.change.answered).chain(self.forgotten).max();
            self.bytes = 0;
        }
        self.bytes += remembered.cost();
        self.young.insert(id, remembered);
    }
}

impl Remembered {
    fn cost(&self) -> usize {
        OVERHEAD + self.copies.iter().map(|(_, key)| OVERHEAD + key.len()).sum::<usize>()
    }
}
