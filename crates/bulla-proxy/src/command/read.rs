//! Reads a server's reply to `COMMAND`, of RESP2 or RESP3.

use super::description::{Begin, COMMAND_FLAGS, Description, Find, KEY_FLAGS, Spec, Word};
use crate::resp::{Kind, Node, Reply};

/// Why a reply to `COMMAND` is no table of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTable {
    /// The server is before Redis 7 and does not say where keys are.
    WithoutKeys,
    /// The server refused, with this code: `NOPERM`.
    Refused(String),
    /// The reply is longer than what was kept of it.
    TooLong,
    /// The reply is of another shape than that of Redis 7 and Valkey.
    Shape {
        /// The command whose description it is; empty before the first one.
        command: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl std::fmt::Display for NoTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoTable::WithoutKeys => {
                f.write_str("the server's reply to COMMAND does not say where keys are: it is before Redis 7")
            }
            NoTable::Refused(code) => {
                write!(f, "the server refused COMMAND: {code}; allow it to the proxy's user")
            }
            NoTable::TooLong => f.write_str("the server's reply to COMMAND is longer than any that is known"),
            NoTable::Shape { command, expected } if command.is_empty() => {
                write!(f, "the server's reply to COMMAND is not understood: expected {expected}")
            }
            NoTable::Shape { command, expected } => {
                write!(
                    f,
                    "what the server's reply to COMMAND says of `{command}` is not understood: expected {expected}"
                )
            }
        }
    }
}

impl std::error::Error for NoTable {}

/// What was expected in the place of what is there.
type Expected = &'static str;

/// What a server says of each of its commands, a container before its subcommands.
pub(super) fn commands(reply: &Reply) -> Result<Vec<Description>, NoTable> {
    let mut found = Vec::new();
    items(reply)?.try_for_each(|command| command_of(command, None, &mut found))?;
    Ok(found)
}

/// Under which name a server has each command that it was asked for, in the order of the question; `None` where it has none.
pub(super) fn names(reply: &Reply) -> Result<Vec<Option<&str>>, NoTable> {
    Ok(items(reply)?.map(|command| command.items().next()?.text().ok()).collect())
}

/// What a reply has of each command.
fn items(reply: &Reply) -> Result<impl Iterator<Item = Value<'_>>, NoTable> {
    let Some(node) = reply.nodes().first() else { return Err(NoTable::TooLong) };
    if let Some(code) = reply.error_code(node) {
        return Err(NoTable::Refused(code.to_owned()));
    }
    if !reply.is_whole() {
        return Err(NoTable::TooLong);
    }
    if node.kind != Kind::Array {
        return Err(NoTable::Shape { command: String::new(), expected: "an array of commands" });
    }
    Ok(Value { reply, at: 0 }.items())
}

fn command_of(
    command: Value<'_>,
    container: Option<&str>,
    found: &mut Vec<Description>,
) -> Result<(), NoTable> {
    let fields: Vec<Value<'_>> = command.items().collect();
    let mut name = String::new();
    let mut parts = || -> Result<Option<(Description, Value<'_>)>, Expected> {
        name = fields.first().ok_or("an array that begins with a name")?.text()?.to_ascii_lowercase();
        let [_, arity, flags, first, last, step, categories, rest @ ..] = fields.as_slice() else {
            return Err("at least seven values");
        };
        for number in [arity, first, last, step] {
            number.integer()?;
        }
        let [_, specs, subcommands, ..] = rest else { return Ok(None) };
        match (container, name.split_once('|')) {
            (None, None) => {}
            (Some(container), Some((before, _))) if container == before => {}
            _ => return Err("a name with that of its container before it"),
        }
        let words = flags.list()?.chain(categories.list()?);
        let specs = specs.list()?.map(spec).collect::<Result<Vec<_>, _>>()?;
        let flags = bits(words, &COMMAND_FLAGS)?;
        Ok(Some((Description { name: name.clone().into(), flags, specs: specs.into() }, *subcommands)))
    };
    let (description, subcommands) = match parts() {
        Ok(Some(parts)) => parts,
        Ok(None) => return Err(NoTable::WithoutKeys),
        Err(expected) => return Err(NoTable::Shape { command: name, expected }),
    };
    found.push(description);
    let subcommands = match subcommands.list() {
        Err(expected) => return Err(NoTable::Shape { command: name, expected }),
        // No command has two levels of subcommands: the server finds one by two words.
        Ok(mut subcommands) if container.is_some() => match subcommands.next() {
            Some(_) => {
                return Err(NoTable::Shape { command: name, expected: "no subcommands of a subcommand" });
            }
            None => return Ok(()),
        },
        Ok(subcommands) => subcommands,
    };
    for subcommand in subcommands {
        command_of(subcommand, Some(&name), found)?;
    }
    Ok(())
}

fn spec(spec: Value<'_>) -> Result<Spec, Expected> {
    let begin = spec.member("begin_search")?;
    let begin = match (begin.member("type")?.text()?, begin.member("spec")?) {
        ("index", spec) => Begin::Index(positive(spec.member("index")?)?),
        ("keyword", spec) => {
            match (spec.member("startfrom")?.small()?, Word::of(spec.member("keyword")?.text()?)) {
                (0, _) => return Err("a keyword that is looked for from an argument on"),
                (from, Some(word)) => Begin::Keyword(word, from),
                (_, None) => Begin::Unknown,
            }
        }
        _ => Begin::Unknown,
    };
    let find = spec.member("find_keys")?;
    let find = match (find.member("type")?.text()?, find.member("spec")?) {
        ("range", spec) => Find::Range {
            last: spec.member("lastkey")?.small()?,
            step: positive(spec.member("keystep")?)?,
            limit: natural(spec.member("limit")?)?,
        },
        ("keynum", spec) => Find::Number {
            number: natural(spec.member("keynumidx")?)?,
            first: natural(spec.member("firstkey")?)?,
            step: positive(spec.member("keystep")?)?,
        },
        _ => Find::Unknown,
    };
    Ok(Spec { flags: bits(spec.member("flags")?.list()?, &KEY_FLAGS)?, begin, find })
}

fn natural(value: Value<'_>) -> Result<u32, Expected> {
    u32::try_from(value.small()?).map_err(|_| "a number of arguments that is not negative")
}

fn positive(value: Value<'_>) -> Result<u32, Expected> {
    Some(natural(value)?).filter(|number| *number > 0).ok_or("a number of arguments of at least one")
}

/// The bits of those words that have some.
fn bits<'a>(words: impl Iterator<Item = Value<'a>>, known: &[(&str, u16)]) -> Result<u16, Expected> {
    let mut bits = 0;
    for word in words {
        let word = word.text()?;
        bits |= known.iter().find(|(known, _)| *known == word).map_or(0, |(_, bit)| *bit);
    }
    Ok(bits)
}

/// A value of a reply.
#[derive(Clone, Copy)]
struct Value<'a> {
    reply: &'a Reply,
    at: usize,
}

impl<'a> Value<'a> {
    fn node(self) -> &'a Node {
        &self.reply.nodes()[self.at]
    }

    /// Its children; none where it has none.
    fn items(self) -> impl Iterator<Item = Value<'a>> {
        self.reply.children(self.at).map(move |(at, _)| Value { reply: self.reply, at })
    }

    fn list(self) -> Result<impl Iterator<Item = Value<'a>>, Expected> {
        match self.node().kind {
            Kind::Array | Kind::Set => Ok(self.items()),
            _ => Err("a list"),
        }
    }

    /// The value of a name: of a map, or of an array of names and values in turn.
    fn member(self, name: &'static str) -> Result<Value<'a>, Expected> {
        let mut items = self.items();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            if key.text()? == name {
                return Ok(value);
            }
        }
        Err(name)
    }

    fn text(self) -> Result<&'a str, Expected> {
        match self.node().kind {
            Kind::Simple | Kind::Bulk => {
                str::from_utf8(self.reply.text(self.node())).map_err(|_| "a text in UTF-8")
            }
            _ => Err("a text"),
        }
    }

    fn integer(self) -> Result<i64, Expected> {
        self.reply.integer(self.node()).ok_or("a number")
    }

    fn small(self) -> Result<i32, Expected> {
        i32::try_from(self.integer()?).map_err(|_| "a number of arguments")
    }
}
