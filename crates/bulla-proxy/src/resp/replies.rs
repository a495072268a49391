//! [`Replies`]: the replies in what a server sends.

use super::number::{Number, Taken};
use super::{Kind, Limits, Node, Progress, Reply, Violation};

/// How deep values may lie in one another, attributes counted. A script's may lie 7,995 deep before its server ends them.
pub const DEEPEST: usize = 8192;
/// Room for so many levels is kept from one reply to the next.
const SPARE_LEVELS: usize = 64;

/// Cuts what a server sends into replies and pushes, of RESP2 and RESP3.
pub struct Replies {
    limits: Limits,
    /// Whether the reply, where it is an array, is told in parts.
    in_parts: bool,
    /// The part that came to its end last, until the next one begins.
    part: Option<Part>,
    reply: Reply,
    state: State,
    /// What the value at hand lies in, outermost first.
    levels: Vec<Level>,
    /// How many of the levels are attributes, or pushes inside a reply: of what is in them, nothing is kept.
    asides: usize,
    /// In how many levels the push inside the reply lies that is at hand, where one is.
    push_in: Option<usize>,
    /// Whether the bytes that were taken last are those of such a push.
    took_push: bool,
    /// Nothing more is taken before somebody has looked at what was.
    stopped: bool,
    /// Whether the value at hand, or the one before it, is the last of the reply's nodes.
    kept: bool,
}

/// An aggregate that is not at its end.
struct Level {
    /// `None` of what is no value of what it lies in: an attribute, or a push.
    kind: Option<Kind>,
    values: Values,
    /// Which node of the reply it is, where it is kept.
    node: Option<usize>,
}

/// The values of an aggregate.
enum Values {
    /// So many are to come, and it is more than none.
    Left(u64),
    /// So many have come, and an end will be told.
    Come(u64),
}

/// What has come to its end of a reply that is told in parts, and is not at its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its beginning: it is an array, whose length is told.
    Beginning,
    /// One of the values right inside it, which is all that the reply has besides itself.
    Value,
}

/// What the next byte is part of.
enum State {
    /// A reply that has not begun.
    Between,
    /// The mark of a value, or of a streamed aggregate's end.
    Mark,
    /// A line that is the value.
    Line(Line),
    /// What comes after a mark and before the end of its line: a length.
    Length { mark: u8, number: Number },
    /// So many bytes of a text, the first of which are its format where there is one.
    Text { left: u64, format: u8, then: Then },
    /// The end of a line, of which the carriage return has come or not.
    End { returned: bool, then: Then },
    /// The mark of a chunk.
    Chunk,
    /// Nothing: no byte is read any more.
    Failed(Expected),
}

/// What is so at the end of a line.
#[derive(Clone, Copy)]
enum Then {
    /// The value at hand has ended.
    Ended,
    /// The value of this mark has begun, and chunks or values follow.
    Streams(u8),
    /// A chunk has ended.
    ChunkEnded,
}

/// How far a line is that is the value.
#[derive(Clone, Copy)]
struct Line {
    kind: Kind,
    length: u64,
    /// Whether its last byte is a digit, or another that its kind may end with.
    may_end: bool,
    /// Whether a carriage return has come, which may be its end.
    returned: bool,
}

/// What did not come. It is a byte, so that a step's outcome is in registers.
#[derive(Clone, Copy)]
enum Expected {
    Mark,
    Length,
    End,
    Value,
    LessDepth,
    Chunk,
    Format,
    FormatEnd,
    MapValue,
}

impl From<Expected> for Violation {
    fn from(expected: Expected) -> Violation {
        let what = match expected {
            Expected::Mark => "the mark of a type was expected at the beginning of a value",
            Expected::Length => "a length was expected after the mark of a value",
            Expected::End => "the end of the line was expected after a value",
            Expected::Value => "a value of the type that the mark says was expected in its line",
            Expected::LessDepth => "values that lie less deep in one another were expected",
            Expected::Chunk => "`;` was expected before a chunk of a string",
            Expected::Format => "a verbatim string that is long enough for its format was expected",
            Expected::FormatEnd => "`:` was expected after the format of a verbatim string",
            Expected::MapValue => "a value was expected after the last key of a map",
        };
        Violation { what }
    }
}

impl Replies {
    /// Keeps no more than `limits` of a reply.
    pub fn new(limits: Limits) -> Self {
        Replies {
            limits,
            in_parts: false,
            part: None,
            reply: Reply::default(),
            state: State::Between,
            levels: Vec::new(),
            asides: 0,
            push_in: None,
            took_push: false,
            stopped: false,
            kept: false,
        }
    }

    /// Keeps no more than `limits` of the replies that have not begun. Where they are told `in_parts`, [`Replies::next`] stops behind the
    /// beginning of an array, and behind each value right inside it; these limits then hold for each of them, and others may be set in
    /// between. So nothing that one of them says takes the room of the others, however many they are.
    pub fn limit(&mut self, limits: Limits, in_parts: bool) {
        match self.state {
            State::Between => (self.limits, self.in_parts) = (limits, in_parts),
            _ if self.part.is_some() => self.limits = limits,
            _ => {}
        }
    }

    /// The part with which [`Replies::next`] stopped, where it did.
    pub fn part(&self) -> Option<Part> {
        self.part
    }

    /// Whether the bytes that [`Replies::next`] took last are those of a push that stands inside the reply at hand.
    pub fn took_push(&self) -> bool {
        self.took_push
    }

    /// Goes on with the reply at hand. Attributes (`|`) belong to the reply that they come before, and nothing of them is kept.
    ///
    /// A push (`>`) that begins inside a reply, however deep, is none of its values, and nothing of it is kept or counted: servers write one
    /// wherever they are when a command has a message sent to its own client. It is taken by itself: this stops before it and behind it.
    ///
    /// # Errors
    /// What comes is no reply. The same for all bytes after that.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Progress, Violation> {
        let (mut at, mut complete) = (0, false);
        if self.part.take().is_some() {
            self.reply.clear_part();
        }
        self.took_push = self.push_in.is_some();
        self.stopped = false;
        while at < bytes.len() && !complete && !self.stopped {
            match self.step(bytes, &mut at) {
                Ok(ended) => complete = ended,
                Err(expected) => {
                    self.state = State::Failed(expected);
                    return Err(expected.into());
                }
            }
        }
        self.reply.wire += if self.took_push { 0 } else { at as u64 };
        Ok(Progress { consumed: at, complete })
    }

    /// Whether a reply has begun that is not complete.
    pub fn is_in_reply(&self) -> bool {
        !matches!(self.state, State::Between)
    }

    /// The reply at hand, as far as it has come; the whole of it after it was complete, until the next one begins.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Goes on at `bytes[*at]`. Whether the reply is complete.
    fn step(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Expected> {
        match &mut self.state {
            State::Between => {
                self.reply.clear();
                self.state = State::Mark;
            }
            State::Mark => {
                if bytes[*at] == b'>' && self.push_in.is_none() && !self.levels.is_empty() {
                    self.stopped = *at > 0;
                    if self.stopped {
                        return Ok(false);
                    }
                    (self.push_in, self.took_push) = (Some(self.levels.len()), true);
                }
                *at += 1;
                return self.mark(bytes[*at - 1], bytes, at);
            }
            State::Line(line) => {
                let line = *line;
                return self.line(line, bytes, at);
            }
            State::Length { mark, number } => {
                let mark = *mark;
                if number.is_empty() && bytes[*at] == b'?' && matches!(mark, b'$' | b'*' | b'~' | b'%') {
                    *at += 1;
                    self.state = State::End { returned: false, then: Then::Streams(mark) };
                    return Ok(false);
                }
                match number.read(bytes, at) {
                    Taken::More => {}
                    Taken::Ended { value, last: b'\n' } => return self.length(mark, value),
                    _ => return Err(Expected::Length),
                }
            }
            State::Text { left, format, then } => {
                let length = (bytes.len() - *at).min(usize::try_from(*left).unwrap_or(usize::MAX));
                let mut text = &bytes[*at..][..length];
                *at += length;
                *left -= length as u64;
                let (left, then) = (*left, *then);
                while let (1.., [byte, rest @ ..]) = (*format, text) {
                    *format -= 1;
                    if *format == 0 && *byte != b':' {
                        return Err(Expected::FormatEnd);
                    }
                    text = rest;
                }
                self.keep(text);
                if left == 0 {
                    if bytes[*at..].starts_with(b"\r\n") {
                        *at += 2;
                        return self.line_ended(then);
                    }
                    self.state = State::End { returned: false, then };
                }
            }
            State::End { returned, then } => {
                let (expected, then) = (if *returned { b'\n' } else { b'\r' }, *then);
                if bytes[*at] != expected {
                    return Err(Expected::End);
                }
                *at += 1;
                if !std::mem::replace(returned, true) {
                    return Ok(false);
                }
                return self.line_ended(then);
            }
            State::Chunk => {
                if bytes[*at] != b';' {
                    return Err(Expected::Chunk);
                }
                *at += 1;
                self.state = State::Length { mark: b';', number: Number::default() };
            }
            State::Failed(expected) => return Err(*expected),
        }
        Ok(false)
    }

    /// A mark has come, after which it goes on at `bytes[*at]`. Whether the reply is complete.
    fn mark(&mut self, mark: u8, bytes: &[u8], at: &mut usize) -> Result<bool, Expected> {
        let kind = match mark {
            b'+' => Kind::Simple,
            b'-' => Kind::Error,
            b':' => Kind::Integer,
            b',' => Kind::Double,
            b'#' => Kind::Boolean,
            b'(' => Kind::BigNumber,
            b'$' | b'=' | b'!' | b'*' | b'~' | b'%' | b'>' | b'|' => {
                self.state = State::Length { mark, number: Number::default() };
                return Ok(false);
            }
            b'_' => {
                self.begin(Kind::Null, 0);
                self.state = State::End { returned: false, then: Then::Ended };
                return Ok(false);
            }
            b'.' => return self.end_stream(),
            _ => return Err(Expected::Mark),
        };
        self.begin(kind, 0);
        let may_end = matches!(kind, Kind::Simple | Kind::Error | Kind::BigNumber);
        self.line(Line { kind, length: 0, may_end, returned: false }, bytes, at)
    }

    /// Goes on with a line that is the value. Whether the reply is complete.
    fn line(&mut self, mut line: Line, bytes: &[u8], at: &mut usize) -> Result<bool, Expected> {
        while let Some(&next) = bytes.get(*at) {
            if line.returned && next == b'\n' {
                *at += 1;
                return match line.may_end {
                    true => Ok(self.end()),
                    false => Err(Expected::Value),
                };
            }
            if line.returned {
                // It was not the end of the line, and is as any other byte of it.
                self.text_of_line(&mut line, b"\r")?;
            }
            let rest = &bytes[*at..];
            let length = rest.iter().position(|&byte| byte == b'\r').unwrap_or(rest.len());
            self.text_of_line(&mut line, &rest[..length])?;
            line.returned = length < rest.len();
            *at += length + usize::from(line.returned);
        }
        self.state = State::Line(line);
        Ok(false)
    }

    fn text_of_line(&mut self, line: &mut Line, text: &[u8]) -> Result<(), Expected> {
        // Scripts may have the server send anything as a big number.
        if !matches!(line.kind, Kind::Simple | Kind::Error | Kind::BigNumber) {
            for (byte, place) in text.iter().zip(line.length..) {
                line.may_end = match (line.kind, place, byte) {
                    (Kind::Boolean, 0, b't' | b'f') => true,
                    (Kind::Integer | Kind::Double, 0, b'+' | b'-') => false,
                    // Twenty have room for every number of 64 bits.
                    (Kind::Integer, ..20, b'0'..=b'9') => true,
                    (Kind::Double, _, b'0'..=b'9' | b'.' | b'i' | b'n' | b'f' | b'a') => true,
                    (Kind::Double, _, b'e' | b'E' | b'+' | b'-') => false,
                    _ => return Err(Expected::Value),
                };
            }
        }
        line.length += text.len() as u64;
        if self.kept
            && let Some(node) = self.reply.nodes.last_mut()
        {
            node.length = line.length;
        }
        self.keep(text);
        Ok(())
    }

    /// The length `value` after `mark` has come with its line. Whether the reply is complete.
    fn length(&mut self, mark: u8, value: i64) -> Result<bool, Expected> {
        let Ok(length) = u64::try_from(value) else {
            if value == -1 && matches!(mark, b'$' | b'*') {
                self.begin(Kind::Null, 0);
                return Ok(self.end());
            }
            return Err(Expected::Length);
        };
        let (text, format, then) = match mark {
            b'$' => (Some(Kind::Bulk), 0, Then::Ended),
            b'!' => (Some(Kind::Error), 0, Then::Ended),
            b'=' if length >= 4 => (Some(Kind::Bulk), 4, Then::Ended),
            b'=' => {
                return Err(Expected::Format);
            }
            b';' if length == 0 => return Ok(self.end()),
            b';' => (None, 0, Then::ChunkEnded),
            _ => return self.aggregate(mark, Some(length)),
        };
        match text {
            Some(kind) => self.begin(kind, length - u64::from(format)),
            None if self.kept => {
                if let Some(node) = self.reply.nodes.last_mut() {
                    node.length = node.length.saturating_add(length);
                }
            }
            None => {}
        }
        self.state = match length {
            0 => State::End { returned: false, then },
            left => State::Text { left, format, then },
        };
        Ok(false)
    }

    /// The line has ended after which `then`. Whether the reply is complete.
    fn line_ended(&mut self, then: Then) -> Result<bool, Expected> {
        match then {
            Then::Ended => return Ok(self.end()),
            Then::Streams(b'$') => {
                self.begin(Kind::Bulk, 0);
                self.state = State::Chunk;
            }
            Then::Streams(mark) => return self.aggregate(mark, None),
            Then::ChunkEnded => self.state = State::Chunk,
        }
        Ok(false)
    }

    /// An aggregate, attribute or push of so many members begins, `None` of so many as will come. Whether the reply is complete.
    fn aggregate(&mut self, mark: u8, members: Option<u64>) -> Result<bool, Expected> {
        let kind = match mark {
            b'*' => Some(Kind::Array),
            b'~' => Some(Kind::Set),
            b'%' => Some(Kind::Map),
            b'>' if self.levels.is_empty() => Some(Kind::Push),
            _ => None,
        };
        // No length is longer than `i64::MAX`.
        let pairs = matches!(mark, b'%' | b'|');
        let values = members.map(|members| if pairs { 2 * members } else { members });
        if self.levels.len() == DEEPEST {
            return Err(Expected::LessDepth);
        }
        self.state = State::Mark;
        match kind {
            Some(kind) => self.begin(kind, values.unwrap_or(0)),
            None if values == Some(0) => {
                self.aside_ended();
                return Ok(false);
            }
            None => self.asides += 1,
        }
        let values = match values {
            Some(0) => return Ok(self.end()),
            Some(values) => Values::Left(values),
            None => Values::Come(0),
        };
        let node = (kind.is_some() && self.kept).then(|| self.reply.nodes.len() - 1);
        if self.in_parts && self.levels.is_empty() && kind == Some(Kind::Array) {
            (self.part, self.stopped) = (Some(Part::Beginning), true);
        }
        self.levels.push(Level { kind, values, node });
        Ok(false)
    }

    /// A value begins.
    fn begin(&mut self, kind: Kind, length: u64) {
        self.kept = false;
        if self.asides > 0 {
            return;
        }
        self.reply.count += 1;
        let most = self.limits.items.max(1).saturating_add(usize::from(self.is_in_part()));
        if self.reply.nodes.len() >= most {
            return;
        }
        self.kept = true;
        // No more than `DEEPEST`.
        let depth = u16::try_from(self.levels.len()).unwrap_or(u16::MAX);
        self.reply.nodes.push(Node { kind, depth, length, start: self.reply.bytes.len(), kept: 0 });
    }

    /// Keeps what may be kept of the next bytes of the text at hand.
    fn keep(&mut self, text: &[u8]) {
        if self.kept
            && let Some(node) = self.reply.nodes.last_mut()
        {
            let room = (self.limits.text - node.kept).min(self.limits.bytes - self.reply.bytes.len());
            let kept = text.len().min(room);
            self.reply.bytes.extend_from_slice(&text[..kept]);
            node.kept += kept;
        }
    }

    /// Whether the value at hand is one of those right inside a reply that is told in parts, or in one of them.
    fn is_in_part(&self) -> bool {
        self.in_parts && self.levels.first().is_some_and(|level| level.kind == Some(Kind::Array))
    }

    /// A streamed aggregate's end comes.
    fn end_stream(&mut self) -> Result<bool, Expected> {
        match self.levels.last() {
            Some(Level { kind: Some(Kind::Map), values: Values::Come(come), .. }) if come % 2 > 0 => {
                Err(Expected::MapValue)
            }
            Some(Level { values: Values::Come(_), .. }) => {
                self.levels.pop();
                self.state = State::End { returned: false, then: Then::Ended };
                Ok(false)
            }
            _ => Err(Expected::Mark),
        }
    }

    /// A value has ended, and with it what it was the last of. Whether the reply is complete.
    fn end(&mut self) -> bool {
        loop {
            self.state = State::Mark;
            if self.levels.len() == 1 && self.is_in_part() {
                (self.part, self.stopped) = (Some(Part::Value), true);
            }
            let Some(level) = self.levels.last_mut() else {
                self.state = State::Between;
                if self.levels.capacity() > SPARE_LEVELS {
                    self.levels = Vec::new();
                }
                return true;
            };
            match &mut level.values {
                Values::Left(1) => {}
                Values::Left(left) => {
                    *left -= 1;
                    return false;
                }
                Values::Come(come) => {
                    *come += 1;
                    if let Some(node) = level.node {
                        self.reply.nodes[node].length = *come;
                    }
                    return false;
                }
            }
            let aside = level.kind.is_none();
            self.levels.pop();
            if aside {
                // What it belongs to, or stands before, is still to come.
                self.asides -= 1;
                self.aside_ended();
                return false;
            }
        }
    }

    /// An attribute has ended, or a push inside the reply.
    fn aside_ended(&mut self) {
        if self.push_in == Some(self.levels.len()) {
            (self.push_in, self.stopped) = (None, true);
        }
    }
}
