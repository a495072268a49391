//! Reading `vectors/proof/*.json`.

use bulla_proof::{Hash, HashId};
use serde_json::Value;

pub(crate) fn read(name: &str) -> Value {
    let path = format!("{}/../../vectors/proof/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The items of a list that is not empty, so that no test passes for want of vectors.
pub(crate) fn items(value: &Value) -> &[Value] {
    let items = value.as_array().expect("a list");
    assert!(!items.is_empty(), "no vectors");
    items
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("`{key}` is no text in {value}"))
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("`{key}` is no number in {value}"))
}

pub(crate) fn small<T: TryFrom<u64>>(value: &Value, key: &str) -> T {
    T::try_from(number(value, key)).unwrap_or_else(|_| panic!("`{key}` is too large in {value}"))
}

pub(crate) fn bytes(value: &Value, key: &str) -> Vec<u8> {
    unhex(text(value, key))
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

pub(crate) fn hash(text: &str) -> Hash {
    Hash(unhex(text).try_into().unwrap())
}

pub(crate) fn hash_id(value: &Value) -> HashId {
    HashId::from_name(text(value, "hash")).unwrap()
}
