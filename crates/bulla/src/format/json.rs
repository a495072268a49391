//! JSON objects, and no lists in their place.
//!
//! Serde takes the list of a structure's members, in their order, for the structure: which of them a value is would then depend on
//! in which order the source declares them, and on nothing that is documented.

use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// Reads a structure from a JSON object, whose members are no structures.
///
/// # Errors
/// Where it is none, or what stands there is no object.
pub(crate) fn object<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let first = text.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    match first {
        Some(b'[') => Err(serde_json::Error::custom("a list stands where an object has to be")),
        _ => serde_json::from_slice(text),
    }
}

/// Reads a structure from a JSON object, all of whose lists are lists of structures.
///
/// # Errors
/// As [`object`].
pub(crate) fn objects<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice::<Object>(text)?;
    serde_json::from_slice(text)
}

/// An object, whatever its members are called. No list in it has anything but objects.
struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Within).map(|()| Object)
    }
}

/// A member of an object.
struct Member;

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Within).map(|()| Member)
    }
}

struct Within;

impl<'de> Visitor<'de> for Within {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, Member>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<Object>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Outer {
        list: Vec<Inner>,
        one: Inner,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        number: Option<i64>,
    }

    #[test]
    fn a_structure_is_an_object_wherever_it_stands() {
        let sound = br#" {"list": [{"number": -1}, {"number": null}], "one": {"number": 2}}"#;
        let inner = |number| Inner { number };
        let read = Outer { list: vec![inner(Some(-1)), inner(None)], one: inner(Some(2)) };
        assert_eq!(objects::<Outer>(sound).unwrap(), read);
        assert_eq!(object::<Outer>(sound).unwrap(), read);
        for list in [
            &br#"[[{"number": 1}], {"number": 2}]"#[..],
            br#"{"list": [[1]], "one": {"number": 2}}"#,
            br#"{"list": [{"number": 1}], "one": [2]}"#,
        ] {
            assert!(serde_json::from_slice::<Outer>(list).is_ok(), "what serde takes");
            assert!(objects::<Outer>(list).is_err());
        }
        assert!(object::<Outer>(b"\n[[], {\"number\": 2}]").is_err());
        // `[]` of members that a list may leave out, and an empty list.
        assert!(objects::<Outer>(br#"{"list": [], "one": []}"#).is_err());
        assert!(objects::<Outer>(br#"{"list": [], "one": {}}"#).is_ok());
    }
}
