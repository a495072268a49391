//! Values in the spelling that Bulla writes to `bulla.toml`.

/// A string in TOML.
pub(crate) fn quote(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// A key in TOML: bare where that is allowed.
pub(crate) fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.bytes().all(bare) { name.to_owned() } else { quote(name) }
}

/// An array of strings in TOML, an item a line.
pub(crate) fn array(items: &[String]) -> String {
    let items = items.iter().map(|item| format!("  {},\n", quote(item))).collect::<String>();
    format!("[\n{items}]")
}
