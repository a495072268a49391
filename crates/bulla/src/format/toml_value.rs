//! Values in the spelling that Bulla writes to `bulla.toml`.

/// A string in TOML.
pub(crate) fn quote(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// A text of several lines in TOML: as it stands, where that can be.
pub(crate) fn text_block(text: &str) -> String {
    let stands = |byte: u8| byte == b'\n' || byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    match !text.contains("'''") && !text.ends_with('\'') && text.bytes().all(stands) {
        // The line end behind the quotes is none of the text.
        true => format!("'''\n{text}'''"),
        false => quote(text),
    }
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
