//! Where in a record a value stands.

use crate::Value;

/// A JSON pointer (RFC 6901), and two tokens that it leaves undefined in a list: `*`, each of the items, and `name=text`, the first
/// item that is an object with this text under this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<Token>);

/// A name in an object, or what it says of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) name: String,
    in_list: InList,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum InList {
    Index(usize),
    Each,
    /// The name before the `=`, which is at this byte.
    First(usize),
    Nothing,
}

impl Pointer {
    /// Reads a pointer; or what is wrong, and at which byte.
    pub(super) fn parse(text: &str) -> Result<Self, (usize, &'static str)> {
        let Some(tokens) = text.strip_prefix('/') else {
            return Err((0, "a JSON pointer begins with `/`"));
        };
        let mut at = 1;
        let mut parsed = Vec::new();
        for token in tokens.split('/') {
            parsed.push(
                Token::parse(token)
                    .map_err(|place| (at + place, "`~` stands before 0 (for `~`) or 1 (for `/`)"))?,
            );
            at += token.len() + 1;
        }
        Ok(Pointer(parsed))
    }

    pub(super) fn tokens(&self) -> &[Token] {
        &self.0
    }

    /// Whether it may name several values.
    pub(super) fn is_several(&self) -> bool {
        self.0.iter().any(|token| token.in_list == InList::Each)
    }

    /// The value that it names; of several, none.
    pub(super) fn find<'r, 'v>(&self, record: &'r Value<'v>) -> Option<&'r Value<'v>> {
        self.0.iter().try_fold(record, |value, token| token.find(value))
    }

    /// Each value that it names.
    pub(super) fn each<'r, 'v>(&self, record: &'r Value<'v>, found: &mut dyn FnMut(&'r Value<'v>)) {
        each(&self.0, record, found);
    }
}

fn each<'r, 'v>(tokens: &[Token], value: &'r Value<'v>, found: &mut dyn FnMut(&'r Value<'v>)) {
    let Some((token, rest)) = tokens.split_first() else { return found(value) };
    match value {
        Value::List(items) if token.in_list == InList::Each => {
            items.iter().for_each(|item| each(rest, item, found));
        }
        _ => {
            if let Some(value) = token.find(value) {
                each(rest, value, found);
            }
        }
    }
}

impl Token {
    /// Reads a token; or at which byte it is none.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut name = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('~') {
            name.push_str(&rest[..at]);
            name.push(match rest.as_bytes().get(at + 1) {
                Some(b'0') => '~',
                Some(b'1') => '/',
                _ => return Err(text.len() - rest.len() + at),
            });
            rest = &rest[at + 2..];
        }
        name.push_str(rest);
        let is_index =
            name == "0" || (!name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit()));
        let in_list = match name.find('=') {
            _ if name == "*" => InList::Each,
            _ if is_index => name.parse().map_or(InList::Nothing, InList::Index),
            Some(at) => InList::First(at),
            None => InList::Nothing,
        };
        Ok(Token { name, in_list })
    }

    fn find<'r, 'v>(&self, value: &'r Value<'v>) -> Option<&'r Value<'v>> {
        match (value, &self.in_list) {
            (Value::Object(_), _) => value.get(&self.name),
            (Value::List(items), InList::Index(index)) => items.get(*index),
            (Value::List(items), InList::First(at)) => {
                let (name, text) = (&self.name[..*at], &self.name[at + 1..]);
                items.iter().find(|item| matches!(item.get(name), Some(Value::Text(there)) if there == text))
            }
            _ => None,
        }
    }
}
