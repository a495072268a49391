use crate::value::Members;
use crate::{Refusal, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The most values of a record, those within others counted: so much memory they take, whatever they are written like.
pub(super) const MAX_VALUES: usize = 262_144;

/// An object of any shape.
pub(super) fn parse(record: &[u8]) -> Result<Value<'_>, Refusal> {
    read(record, false)
}

/// An object of which `with_bytes` says whether a list of numbers up to 255 is bytes, as journald has it.
pub(super) fn read(record: &[u8], with_bytes: bool) -> Result<Value<'_>, Refusal> {
    let mut left = Left { values: MAX_VALUES, refused: None, with_bytes };
    let mut json = serde_json::Deserializer::from_slice(record);
    let value = Seed(&mut left).deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    match (value, left.refused) {
        (Ok(value @ Value::Object(_)), _) => Ok(value),
        (Ok(_), _) => Err(Refusal::new("the line is not a JSON object")),
        (Err(error), Some(reason)) => Err(Refusal::at(reason, error.column().saturating_sub(1))),
        (Err(error), None) => {
            let message = error.to_string();
            // It is of the syntax alone: no value is of a wrong type here, and only those are repeated.
            let problem = message.split(" at line ").next().unwrap_or_default();
            let (line, column) = (error.line(), error.column());
            Err(Refusal::new(match line {
                0 | 1 => format!("the line is not JSON at column {column}: {problem}"),
                _ => format!("the record is not JSON at line {line}, column {column}: {problem}"),
            }))
        }
    }
}

/// What may still come, and what was wrong where serde has no word for it.
struct Left {
    values: usize,
    refused: Option<&'static str>,
    with_bytes: bool,
}

impl Left {
    fn refuse<E: Error>(&mut self, reason: &'static str) -> E {
        self.refused = Some(reason);
        E::custom("refused")
    }

    fn take<E: Error>(&mut self) -> Result<(), E> {
        match self.values.checked_sub(1) {
            Some(left) => {
                self.values = left;
                Ok(())
            }
            None => Err(self.refuse("there are more than 262144 values")),
        }
    }
}

const _: () = assert!(MAX_VALUES == 262_144, "the reason names the limit");

/// Reads any value; serde_json itself goes 127 values deep.
struct Seed<'s>(&'s mut Left);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value<'de>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value<'de>, E> {
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::text(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value<'de>, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value<'de>, A::Error> {
        let left = self.0;
        let (mut values, mut bytes) = (Vec::new(), Vec::new());
        while let Some(value) = list.next_element_seed(Seed(left))? {
            // As bytes a list takes no more memory than it is long.
            match value {
                Value::Unsigned(number) if left.with_bytes && values.is_empty() => match u8::try_from(number)
                {
                    Ok(byte) => {
                        bytes.push(byte);
                        continue;
                    }
                    Err(_) => return Err(left.refuse("a list of numbers has one that is no byte")),
                },
                _ if !bytes.is_empty() => {
                    return Err(left.refuse("a list of numbers has something else in it"));
                }
                value => {
                    left.take()?;
                    values.push(value);
                }
            }
        }
        Ok(if bytes.is_empty() { Value::List(values) } else { Value::from_vec(bytes) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let left = self.0;
        let mut members = Members::default();
        while let Some(name) = map.next_key_seed(Name)? {
            left.take()?;
            if members.has(&name) {
                return Err(left.refuse("a name is given twice: its second one ends"));
            }
            members.add(name, map.next_value_seed(Seed(left))?);
        }
        Ok(members.into_object())
    }
}

/// Reads a name, borrowed where it has no escapes.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Cow<'de, str>, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
