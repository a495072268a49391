//! [`Arguments`]: what is kept of a command.

/// The name and the arguments of one command, as far as they were kept.
#[derive(Clone, Default)]
pub struct Arguments {
    pub(super) bytes: Vec<u8>,
    pub(super) items: Vec<Argument>,
    pub(super) count: u64,
    pub(super) arrived: u64,
    pub(super) wire: u64,
    pub(super) script: Option<[u8; 20]>,
}

/// Which digest of an argument is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// None.
    None,
    /// A keyed one (HMAC-SHA256), where the argument is longer than what is kept of it.
    OfCut,
    /// SHA-1, by which servers name a script.
    OfScript,
}

/// One argument, as far as it was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    pub(super) start: usize,
    pub(super) kept: usize,
    /// How many bytes it has, whether they have come or not.
    pub length: u64,
    /// The keyed digest of all of it (HMAC-SHA256), where it is longer than what was kept and the digest was wanted; once all of it
    /// has come.
    pub digest: Option<[u8; 32]>,
}

impl Arguments {
    /// How many arguments the command has, its name counted: all of them from its first line on, whether they have come or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them have come to their end. Of a command that is complete, all.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The beginning of argument `index`, all of it where [`Arguments::is_whole`]; `None` where it is not kept, or has not begun.
    /// Argument 0 is the name.
    pub fn get(&self, index: u64) -> Option<&[u8]> {
        let argument = self.argument(index)?;
        Some(&self.bytes[argument.start..][..argument.kept])
    }

    /// Argument `index`; `None` beyond those that are kept, or have begun.
    pub fn argument(&self, index: u64) -> Option<&Argument> {
        self.items.get(usize::try_from(index).ok()?)
    }

    /// Whether all bytes of argument `index` are kept.
    pub fn is_whole(&self, index: u64) -> bool {
        self.argument(index).is_some_and(|argument| argument.kept as u64 == argument.length)
    }

    /// The SHA-1 of the argument of which it was wanted, once all of that has come, kept or not: servers name scripts by it.
    pub fn script(&self) -> Option<&[u8; 20]> {
        self.script.as_ref()
    }

    /// How many bytes the command took on the wire.
    pub fn wire(&self) -> u64 {
        self.wire
    }

    /// Whether argument `index` is this word, in any case of its letters.
    pub fn is(&self, index: u64, word: &str) -> bool {
        self.is_whole(index)
            && self.get(index).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// How many bytes of memory it takes up, used or not.
    pub fn room(&self) -> usize {
        self.bytes.capacity() + self.items.capacity() * size_of::<Argument>()
    }

    /// Forgets the command. What its buffers have grown to stays.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        (self.count, self.arrived, self.wire) = (0, 0, 0);
        self.script = None;
    }
}

/// What is in it may be a secret.
impl std::fmt::Debug for Arguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arguments({} of {} bytes)", self.count, self.wire)
    }
}
