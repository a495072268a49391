//! [`Requests`]: the commands in what a client sends.
//!
//! They are read as the server reads them, since what counts is what it executes: a server does not look at the bytes that stand
//! where a line feed, or the end of an argument's line, should be. So this does not either. Where servers differ, it is a violation.

use super::inline::{self, next_word};
use super::number::{Number, Taken, short};
use super::{Argument, Arguments, Digest, Limits, Progress, Violation};
use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The most arguments of a command (`INT_MAX`). Servers before 7.0 take fewer, and refuse by themselves.
const MOST_ARGUMENTS: i64 = i32::MAX as i64;

/// Cuts what a client sends into commands: arrays of bulk strings, and inline commands.
///
/// An argument may have any length that a server may be configured to take (`proto-max-bulk-len`): nothing grows with it.
pub struct Requests {
    limits: Limits,
    arguments: Arguments,
    state: State,
    /// So many of the next bytes of the argument at hand are kept.
    keep: usize,
    /// So many bytes are kept of those arguments of the command at hand that may be keys, the one at hand counted in full.
    keys: usize,
    /// Of the argument at hand, where it is wanted.
    digest: Option<Digesting>,
    /// What a keyed digest begins as.
    keyed: Hmac<Sha256>,
    /// What has come of an inline command that came in pieces.
    line: Vec<u8>,
    /// The word at hand of an inline command.
    word: Vec<u8>,
}

/// What the next byte is part of.
enum State {
    /// A command that has not begun.
    Between,
    /// The line of an inline command.
    Inline,
    /// How many arguments there are.
    Count(Number),
    /// How long an argument is, with its `$`.
    Length { dollar: bool, number: Number },
    /// So many bytes of an argument.
    Body(u64),
    /// So many bytes of the end of an argument's line.
    End(u8),
    /// Nothing: no byte is read any more.
    Failed(Violation),
}

/// A digest of what has come of an argument.
enum Digesting {
    Keyed(Hmac<Sha256>),
    Script(digest::Context),
}

/// An argument of at most so many bytes is kept whatever stands before it: a short key behind long ones is somebody's, too.
pub const SHORT: u64 = 64;

/// See [`Requests::next`].
type Keep<'a> = &'a dyn Fn(&Arguments, u64, u64) -> (usize, Digest);

impl Requests {
    /// Keeps no more than `limits` of a command, of bytes as many of what may be keys and as many of everything else. Digests of what is longer than what is kept are under `key`.
    pub fn new(limits: Limits, key: [u8; 32]) -> Self {
        Requests {
            limits,
            arguments: Arguments::default(),
            state: State::Between,
            keep: 0,
            keys: 0,
            digest: None,
            keyed: <Hmac<Sha256> as KeyInit>::new_from_slice(&key).expect("HMAC takes any key"),
            line: Vec::new(),
            word: Vec::new(),
        }
    }

    /// Goes on with the command at hand. `keep` says, as argument `index` of `length` bytes begins, how many of its first bytes to keep
    /// and which digest of it is wanted; it knows the arguments before it. Nobody asks it about arguments beyond
    /// [`Limits::items`].
    ///
    /// What no reply comes to, an array without arguments and an empty line, is no command: it is consumed with what
    /// follows, and counted nowhere.
    ///
    /// # Errors
    /// What comes is no command. The same for all bytes after that.
    pub fn next(
        &mut self,
        bytes: &[u8],
        keep: impl Fn(&Arguments, u64, u64) -> (usize, Digest),
    ) -> Result<Progress, Violation> {
        self.advance(bytes, &keep)
    }

    /// The command at hand, as far as it has come; the whole of it after it was complete, until the next one begins.
    pub fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// How many bytes of the argument at hand are still to come, with the end of its line: as many as it was announced to have.
    pub fn announced(&self) -> u64 {
        match self.state {
            State::Body(left) => left.saturating_add(2),
            State::End(left) => left.into(),
            _ => 0,
        }
    }

    /// Exchanges the command, which is complete, for others whose room the next one is kept in.
    pub fn take(&mut self, spare: Arguments) -> Arguments {
        let taken = std::mem::replace(&mut self.arguments, spare);
        self.arguments.clear();
        taken
    }

    fn advance(&mut self, bytes: &[u8], keep: Keep<'_>) -> Result<Progress, Violation> {
        // Where the command at hand begins in these bytes, and how far they are read.
        let (mut from, mut at) = (0, 0);
        let mut complete = false;
        while at < bytes.len() && !complete {
            if matches!(self.state, State::Length { dollar: false, .. })
                && self.whole_argument(bytes, &mut at, keep)
            {
                complete = self.arguments.arrived == self.arguments.count;
                if complete {
                    self.state = State::Between;
                }
                continue;
            }
            match &mut self.state {
                State::Between => {
                    self.arguments.clear();
                    from = at;
                    self.state = match bytes[at] {
                        b'*' => State::Count(Number::default()),
                        _ => State::Inline,
                    };
                    at += usize::from(bytes[at] == b'*');
                }
                State::Inline => {
                    complete = self.line(bytes, &mut at, keep).map_err(|violation| self.fail(violation))?;
                }
                State::Count(number) => match number.read(bytes, &mut at) {
                    Taken::More => {}
                    Taken::Ended { value: ..=0, .. } => self.state = State::Between,
                    Taken::Ended { value: value @ ..=MOST_ARGUMENTS, .. } => {
                        self.arguments.count = value.unsigned_abs();
                        self.state = State::Length { dollar: false, number: Number::default() };
                    }
                    _ => {
                        return Err(self.fail(Violation { what: "invalid multibulk length" }));
                    }
                },
                State::Length { dollar, number } => {
                    if !*dollar {
                        if bytes[at] != b'$' {
                            return Err(self.fail(Violation { what: "expected '$' before an argument" }));
                        }
                        *dollar = true;
                        at += 1;
                    }
                    match number.read(bytes, &mut at) {
                        Taken::More => {}
                        Taken::Ended { value: value @ 0.., .. } => {
                            let length = value.unsigned_abs();
                            self.begin_argument(length, keep);
                            complete = self.body(length, bytes, &mut at);
                        }
                        _ => {
                            return Err(self.fail(Violation { what: "invalid bulk length" }));
                        }
                    }
                }
                State::Body(left) => {
                    let left = *left;
                    complete = self.body(left, bytes, &mut at);
                }
                State::End(left) => {
                    let left = *left;
                    complete = self.end_of_argument(left, bytes, &mut at);
                }
                State::Failed(violation) => return Err(violation.clone()),
            }
            if !complete && matches!(self.state, State::Between) {
                // It was no command.
                self.arguments.clear();
                from = at;
            }
        }
        self.arguments.wire += (at - from) as u64;
        Ok(Progress { consumed: at, complete })
    }

    /// Reads an argument where all of it is at hand, as most are: whether it was.
    fn whole_argument(&mut self, bytes: &[u8], at: &mut usize, keep: Keep<'_>) -> bool {
        let [b'$', rest @ ..] = &bytes[*at..] else { return false };
        let Some((length, begins)) = short(rest) else { return false };
        let length = usize::from(length);
        let Some(body) = rest.get(begins..begins + length + 2) else { return false };
        self.begin_argument(length as u64, keep);
        self.absorb(&body[..length]);
        self.end_argument();
        *at += 1 + begins + length + 2;
        true
    }

    /// Goes on with an argument of which so many bytes are to come. Whether the command is complete.
    fn body(&mut self, left: u64, bytes: &[u8], at: &mut usize) -> bool {
        let length = (bytes.len() - *at).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.absorb(&bytes[*at..][..length]);
        *at += length;
        if left > length as u64 {
            self.state = State::Body(left - length as u64);
            return false;
        }
        self.end_argument();
        self.end_of_argument(2, bytes, at)
    }

    /// Goes on with the end of an argument's line, of which so many bytes are to come. Whether the command is complete.
    fn end_of_argument(&mut self, mut left: u8, bytes: &[u8], at: &mut usize) -> bool {
        while left > 0 && *at < bytes.len() {
            (left, *at) = (left - 1, *at + 1);
        }
        let complete = left == 0 && self.arguments.arrived == self.arguments.count;
        self.state = match left {
            0 if complete => State::Between,
            0 => State::Length { dollar: false, number: Number::default() },
            left => State::End(left),
        };
        complete
    }

    fn fail(&mut self, violation: Violation) -> Violation {
        self.state = State::Failed(violation.clone());
        violation
    }

    /// Goes on with an inline command; whether it is complete.
    fn line(&mut self, bytes: &[u8], at: &mut usize, keep: Keep<'_>) -> Result<bool, Violation> {
        let rest = &bytes[*at..];
        let window = &rest[..rest.len().min(inline::LONGEST + 1 - self.line.len())];
        let Some(end) = window.iter().position(|byte| matches!(byte, b'\n' | 0)) else {
            if self.line.len() + window.len() > inline::LONGEST {
                return Err(Violation { what: "too big inline request" });
            }
            self.line.extend_from_slice(rest);
            *at = bytes.len();
            return Ok(false);
        };
        if window[end] == 0 {
            // Redis reads no line that has one, and other servers do.
            return Err(Violation { what: "a line without a NUL was expected" });
        }
        *at += end + 1;
        if self.line.is_empty() {
            self.words(&window[..end], keep)?;
        } else {
            let mut line = std::mem::take(&mut self.line);
            line.extend_from_slice(&window[..end]);
            self.words(&line, keep)?;
            line.clear();
            self.line = line;
        }
        self.state = State::Between;
        Ok(self.arguments.count > 0)
    }

    fn words(&mut self, line: &[u8], keep: Keep<'_>) -> Result<(), Violation> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut word = std::mem::take(&mut self.word);
        let mut rest = line;
        while let Some(after) = next_word(rest, &mut word)? {
            self.arguments.count += 1;
            rest = after;
        }
        if self.arguments.count == 0 && !line.is_empty() {
            // Redis forgets such a line; Valkey 8 reads the next one as words, too, whatever it begins with.
            return Err(Violation { what: "a line with a word was expected" });
        }
        let mut rest = line;
        while let Some(after) = next_word(rest, &mut word)? {
            self.begin_argument(word.len() as u64, keep);
            self.absorb(&word);
            self.end_argument();
            rest = after;
        }
        self.word = word;
        Ok(())
    }

    fn begin_argument(&mut self, length: u64, keep: Keep<'_>) {
        let arguments = &self.arguments;
        if arguments.items.len() == self.limits.items {
            return;
        }
        if arguments.items.is_empty() {
            self.keys = 0;
        }
        let (wanted, digest) = keep(arguments, arguments.arrived, length);
        // Of what may be a key a digest is wanted. Values take no room from keys.
        let is_key = digest == Digest::OfCut;
        let taken = if is_key { self.keys } else { arguments.bytes.len() - self.keys };
        let left = self.limits.bytes.saturating_sub(taken);
        let room = if length <= SHORT { wanted } else { wanted.min(left) };
        self.keep = room.min(usize::try_from(length).unwrap_or(usize::MAX));
        self.keys += if is_key { self.keep } else { 0 };
        self.digest = match digest {
            Digest::None => None,
            Digest::OfCut => ((self.keep as u64) < length).then(|| Digesting::Keyed(self.keyed.clone())),
            Digest::OfScript => Some(Digesting::Script(digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY))),
        };
        let start = arguments.bytes.len();
        self.arguments.items.push(Argument { start, kept: 0, length, digest: None });
    }

    /// Takes the next bytes of the argument at hand.
    fn absorb(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            match digest {
                Digesting::Keyed(digest) => digest.update(bytes),
                Digesting::Script(digest) => digest.update(bytes),
            }
        }
        let kept = self.keep.min(bytes.len());
        if kept > 0
            && let Some(argument) = self.arguments.items.last_mut()
        {
            self.arguments.bytes.extend_from_slice(&bytes[..kept]);
            argument.kept += kept;
            self.keep -= kept;
        }
    }

    fn end_argument(&mut self) {
        // Taking what is not there would copy room for it.
        if self.digest.is_some()
            && let Some(digest) = self.digest.take()
            && let Some(argument) = self.arguments.items.last_mut()
        {
            match digest {
                Digesting::Keyed(digest) => argument.digest = Some(digest.finalize().into_bytes().into()),
                Digesting::Script(digest) => self.arguments.script = digest.finish().as_ref().try_into().ok(),
            }
        }
        self.arguments.arrived += 1;
    }
}

/// Appends a command to `bytes`, as an array of bulk strings.
pub fn write_command(arguments: &[&[u8]], bytes: &mut Vec<u8>) {
    let header = |bytes: &mut Vec<u8>, mark: u8, number: usize| {
        bytes.push(mark);
        bytes.extend_from_slice(number.to_string().as_bytes());
        bytes.extend_from_slice(b"\r\n");
    };
    header(bytes, b'*', arguments.len());
    for argument in arguments {
        header(bytes, b'$', argument.len());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
}
