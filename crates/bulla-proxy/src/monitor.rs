//! What `redis-cli MONITOR` printed: which commands a server got, from whom and when, so that it can be told what would be recorded
//! of them.
//!
//! A line is a time in seconds with a fraction, `[database client]`, and the arguments, each in quotation marks with `\n`, `\r`,
//! `\t`, `\a`, `\b`, `\\`, `\"` and `\xHH` in it. `client` is an address and a port, `unix:` and a path, or `lua` for what a script or a
//! function called. Lines of `nc` are read as well, which begin with `+` and end with `\r`. `OK`, which comes first, and empty lines
//! say nothing.

use crate::subject::Words;
use std::io::{self, BufRead, Read};

/// The longest line that is read, in bytes: an argument of 16 MiB, every byte of which takes four.
pub const MOST_LINE: usize = 64 << 20;

/// A command that a server got.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// In which database its client is once it was carried out: of `SELECT` the new one.
    pub database: u32,
    /// From whom.
    pub client: Client,
    /// Its name and its arguments. There is always a name.
    pub arguments: Vec<Vec<u8>>,
}

/// From whom a command came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Client {
    /// Over TCP: address and port, as the server shows them.
    Tcp(String),
    /// Over a Unix socket: its path.
    Unix(String),
    /// From a script or a function.
    Script,
}

/// A line that says no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorError {
    /// Which it is, from 1 on.
    pub line: u64,
    /// What was expected in the place of what stands there, which is not repeated: it may be somebody's data.
    pub what: &'static str,
}

/// The commands of a capture, line by line. After a line that says none the next one is read.
pub struct Monitor<'a> {
    input: &'a mut dyn BufRead,
    line: u64,
}

impl<'a> Monitor<'a> {
    /// Reads what was printed.
    pub fn new(input: &'a mut dyn BufRead) -> Self {
        Monitor { input, line: 0 }
    }

    /// Which line was read last, from 1 on; 0 before the first one.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The next command; `None` at the end.
    ///
    /// # Errors
    /// What cannot be read; in the inner result a line that says no command.
    pub fn next_command(&mut self) -> io::Result<Option<Result<Seen, MonitorError>>> {
        loop {
            let mut line = Vec::new();
            let read = (&mut *self.input).take(MOST_LINE as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            let ended = line.last() == Some(&b'\n');
            if !ended && read > MOST_LINE {
                self.skip_line()?;
                let what = "a line is at most 64 MiB long";
                return Ok(Some(Err(MonitorError { line: self.line, what })));
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let text = text.strip_prefix(b"+").unwrap_or(text);
            if !text.is_empty() && text != b"OK" {
                let error = |what| MonitorError { line: self.line, what };
                return Ok(Some(parse(text).map_err(error)));
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let bytes = self.input.fill_buf()?;
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let (skipped, end) = match newline {
                Some(at) => (at + 1, true),
                None => (bytes.len(), bytes.is_empty()),
            };
            self.input.consume(skipped);
            if end {
                return Ok(());
            }
        }
    }
}

impl Seen {
    /// The command as a client sends it.
    pub fn request(&self) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", self.arguments.len()).into_bytes();
        for argument in &self.arguments {
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }
}

impl Words for Seen {
    fn count(&self) -> u64 {
        self.arguments.count()
    }

    fn word(&self, index: u64) -> Option<&[u8]> {
        self.arguments.word(index)
    }
}

/// What a line says.
fn parse(line: &[u8]) -> Result<Seen, &'static str> {
    const TIME: &str = "a line begins with a time in seconds, such as 1700000000.123456";
    const PLACE: &str =
        "behind the time stand a database and a client in brackets, such as [0 127.0.0.1:1234]";
    let (time, rest) = split(line, b" ").ok_or(TIME)?;
    let time = nanoseconds(time).ok_or(TIME)?;
    let rest = rest.strip_prefix(b"[").ok_or(PLACE)?;
    let (database, rest) = split(rest, b" ").ok_or(PLACE)?;
    let database = std::str::from_utf8(database).ok().and_then(|text| text.parse().ok()).ok_or(PLACE)?;
    // A path may have any of these characters, but this is what a server puts behind it.
    let (client, mut rest) = split(rest, b"] \"").ok_or(PLACE)?;
    let client = match std::str::from_utf8(client).map_err(|_| PLACE)? {
        "" => return Err(PLACE),
        "lua" => Client::Script,
        other => match other.strip_prefix("unix:") {
            Some(path) => Client::Unix(path.to_owned()),
            None => Client::Tcp(other.to_owned()),
        },
    };
    let mut arguments = Vec::new();
    loop {
        let (argument, behind) = unquote(rest)?;
        arguments.push(argument);
        match behind {
            b"" => return Ok(Seen { time, database, client, arguments }),
            _ => {
                rest = behind
                    .strip_prefix(b" \"")
                    .ok_or("between arguments in quotation marks stands one space")?
            }
        }
    }
}

/// What is before and what is behind the first occurrence of a separator.
fn split<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = text.windows(separator.len()).position(|window| window == separator)?;
    Some((&text[..at], &text[at + separator.len()..]))
}

/// A time in seconds with up to nine decimals.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let (seconds, fraction) = split(text, b".")?;
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let unit = 10_u64.pow(9 - u32::try_from(fraction.len()).ok()?);
    number(seconds)?.checked_mul(1_000_000_000)?.checked_add(number(fraction)? * unit)
}

/// An argument behind its first quotation mark, and what is behind its last.
fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), &'static str> {
    let (mut argument, mut rest) = (Vec::new(), text);
    loop {
        let special = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
        let special = special.ok_or("an argument ends with a quotation mark")?;
        argument.extend_from_slice(&rest[..special]);
        if rest[special] == b'"' {
            return Ok((argument, &rest[special + 1..]));
        }
        let escape = &rest[special + 1..];
        let (byte, length) = match escape.first() {
            Some(byte @ (b'\\' | b'"')) => (Some(*byte), 1),
            Some(b'n') => (Some(b'\n'), 1),
            Some(b'r') => (Some(b'\r'), 1),
            Some(b't') => (Some(b'\t'), 1),
            Some(b'a') => (Some(7), 1),
            Some(b'b') => (Some(8), 1),
            Some(b'x') => (escape.get(1..3).and_then(hexadecimal), 3),
            _ => (None, 0),
        };
        argument.push(
            byte.ok_or("in an argument `\\` begins one of \\n, \\r, \\t, \\a, \\b, \\\\, \\\" and \\xHH")?,
        );
        rest = &escape[length..];
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*digits.first()?)? << 4 | digit(*digits.get(1)?)?)
}

/// Arguments are somebody's data.
impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Seen");
        shown.field("time", &self.time).field("database", &self.database).field("client", &self.client);
        shown.field("arguments", &self.arguments.len()).finish()
    }
}

impl std::fmt::Display for MonitorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for MonitorError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that a capture says, or the lines that say nothing.
    fn read(capture: &[u8]) -> Vec<Result<Seen, MonitorError>> {
        let mut input = capture;
        let mut monitor = Monitor::new(&mut input);
        std::iter::from_fn(|| monitor.next_command().unwrap()).collect()
    }

    fn seen(time: u64, database: u32, client: Client, arguments: &[&[u8]]) -> Seen {
        Seen { time, database, client, arguments: arguments.iter().map(|it| it.to_vec()).collect() }
    }

    #[test]
    fn commands_are_read_as_servers_print_them() {
        let capture = br#"OK
1700000000.123456 [0 127.0.0.1:1234] "set" "user:1" "x\"y\x00\\\n\r\t\a\b\xFf"
1700000001.000001 [15 [::1]:60306] "GET" ""

1700000002.5 [0 lua] "get" "user:1"
1700000003.000000 [9 unix:/run/redis/a ] b.sock] "ping"
+1700000004.000000 [0 127.0.0.1:1234] "auth" "(redacted)" "] \"x\" ["
"#;
        let tcp = |text: &str| Client::Tcp(text.to_owned());
        let commands = read(&[capture.as_slice(), b"1700000005.000000 [0 10.0.0.1:1] \"ping\"\r"].concat());
        let expected = [
            seen(
                1_700_000_000_123_456_000,
                0,
                tcp("127.0.0.1:1234"),
                &[b"set", b"user:1", b"x\"y\0\\\n\r\t\x07\x08\xff"],
            ),
            seen(1_700_000_001_000_001_000, 15, tcp("[::1]:60306"), &[b"GET", b""]),
            seen(1_700_000_002_500_000_000, 0, Client::Script, &[b"get", b"user:1"]),
            seen(1_700_000_003_000_000_000, 9, Client::Unix("/run/redis/a ] b.sock".to_owned()), &[b"ping"]),
            seen(
                1_700_000_004_000_000_000,
                0,
                tcp("127.0.0.1:1234"),
                &[b"auth", b"(redacted)", b"] \"x\" ["],
            ),
            seen(1_700_000_005_000_000_000, 0, tcp("10.0.0.1:1"), &[b"ping"]),
        ];
        assert!(commands == expected.map(Ok));
        let shown = format!("{:?}", commands[0]);
        assert!(!shown.contains("user:1") && shown.contains("127.0.0.1:1234"), "{shown}");
    }

    #[test]
    fn what_redis_server_7_printed_is_read() {
        let capture = br#"OK
1795458504.213991 [0 unix:/tmp/tmp.WDrbIRZOsk/s.sock] "SET" "user:1" "x\"y\\\r\n\t\a\b\x00\xff~"
1795458504.214013 [0 unix:/tmp/tmp.WDrbIRZOsk/s.sock] "ECHO" "\xadI\xf6B\xfe"
1795458504.234108 [3 127.0.0.1:55806] "SELECT" "3"
1795458504.237148 [3 127.0.0.1:55806] "get" ""
1795458504.261063 [0 127.0.0.1:55820] "eval" "return redis.call('get','user:1')" "0"
1795458504.261128 [0 lua] "get" "user:1"
1795458504.283309 [0 127.0.0.1:55826] "auth" "(redacted)"
"#;
        let words: [&[&[u8]]; 7] = [
            &[b"SET", b"user:1", b"x\"y\\\r\n\t\x07\x08\0\xff~"],
            &[b"ECHO", b"\xadI\xf6B\xfe"],
            &[b"SELECT", b"3"],
            &[b"get", b""],
            &[b"eval", b"return redis.call('get','user:1')", b"0"],
            &[b"get", b"user:1"],
            &[b"auth", b"(redacted)"],
        ];
        assert!(read(capture).into_iter().map(|it| it.unwrap().arguments).eq(words));
    }

    #[test]
    fn a_line_that_says_no_command_is_named_and_the_next_is_read() {
        let time = "a line begins with a time in seconds, such as 1700000000.123456";
        let place = "behind the time stand a database and a client in brackets, such as [0 127.0.0.1:1234]";
        let escape = "in an argument `\\` begins one of \\n, \\r, \\t, \\a, \\b, \\\\, \\\" and \\xHH";
        for (line, what) in [
            ("set user:1 x", time),
            ("1700000000 [0 1.1.1.1:1] \"a\"", time),
            ("-1.5 [0 1.1.1.1:1] \"a\"", time),
            ("1.1234567890 [0 1.1.1.1:1] \"a\"", time),
            ("18446744073709551615.0 [0 1.1.1.1:1] \"a\"", time),
            ("1.5", time),
            ("1.5 0 1.1.1.1:1 \"a\"", place),
            ("1.5 [-1 1.1.1.1:1] \"a\"", place),
            ("1.5 [0 1.1.1.1:1]", place),
            ("1.5 [0 1.1.1.1:1] a", place),
            ("1.5 [0 ] \"a\"", place),
            ("1.5 [0 1.1.1.1:1] \"a", "an argument ends with a quotation mark"),
            ("1.5 [0 1.1.1.1:1] \"a\\\"", "an argument ends with a quotation mark"),
            ("1.5 [0 1.1.1.1:1] \"a\"\"b\"", "between arguments in quotation marks stands one space"),
            ("1.5 [0 1.1.1.1:1] \"a\" b", "between arguments in quotation marks stands one space"),
            ("1.5 [0 1.1.1.1:1] \"\\q\"", escape),
            ("1.5 [0 1.1.1.1:1] \"\\x1\"", escape),
            ("1.5 [0 1.1.1.1:1] \"\\x+1\"", escape),
        ] {
            let found = read(format!("\nOK\n{line}\n1.5 [0 lua] \"a\"\n").as_bytes());
            let told = found[0].as_ref().unwrap_err();
            assert_eq!(told.to_string(), format!("line 3: {what}"), "{line}");
            assert!(found[1..] == [Ok(seen(1_500_000_000, 0, Client::Script, &[b"a"]))], "{line}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_a_long_one() {
        let rest = b"x\n1.5 [0 lua] \"a\"\n";
        let mut input = io::repeat(b'x').take(MOST_LINE as u64 + 1000).chain(&rest[..]);
        let mut input = io::BufReader::new(&mut input);
        let mut monitor = Monitor::new(&mut input);
        let told = monitor.next_command().unwrap().unwrap().unwrap_err();
        assert_eq!(told, MonitorError { line: 1, what: "a line is at most 64 MiB long" });
        assert!(monitor.next_command().unwrap().unwrap().is_ok());
        assert!(monitor.next_command().unwrap().is_none());
    }

    /// As a server prints an argument (`sdscatrepr`).
    fn quoted(argument: &[u8]) -> Vec<u8> {
        let mut text = vec![b'"'];
        for byte in argument {
            match byte {
                b'\\' | b'"' => text.extend([b'\\', *byte]),
                b'\n' => text.extend(b"\\n"),
                b'\r' => text.extend(b"\\r"),
                b'\t' => text.extend(b"\\t"),
                7 => text.extend(b"\\a"),
                8 => text.extend(b"\\b"),
                0x20..=0x7e => text.push(*byte),
                other => text.extend(format!("\\x{other:02x}").bytes()),
            }
        }
        text.push(b'"');
        text
    }

    proptest! {
        #[test]
        fn every_argument_comes_back(arguments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..5)) {
            let words = arguments.iter().map(|argument| quoted(argument)).collect::<Vec<_>>();
            let line = [b"1700000000.000001 [0 127.0.0.1:1] ", words.join(&b' ').as_slice()].concat();
            let found = read(&line).remove(0).unwrap();
            let request = arguments.iter().fold(format!("*{}\r\n", arguments.len()).into_bytes(), |request, argument| {
                [&request, format!("${}\r\n", argument.len()).as_bytes(), argument, b"\r\n"].concat()
            });
            prop_assert_eq!(found.request(), request);
            prop_assert_eq!(found.arguments, arguments);
        }

        #[test]
        fn no_capture_breaks_the_reader(capture in proptest::collection::vec(prop_oneof![
            Just(b"1.5 [0 lua] \"".to_vec()), Just(b"\\x".to_vec()), Just(b"] \"".to_vec()), proptest::collection::vec(any::<u8>(), 0..6),
        ], 0..12)) {
            let lines = capture.concat();
            prop_assert!(read(&lines).len() <= lines.split(|byte| *byte == b'\n').count());
        }
    }
}
