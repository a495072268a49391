//! Values in the spelling that Bulla writes to `bulla.toml`.

/// A string in TOML.
pub(crate) fn quote(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// An array of strings in TOML, an item a line.
pub(crate) fn array(items: &[String]) -> String {
    let items = items.iter().map(|item| format!("  {},\n", quote(item))).collect::<String>();
    format!("[\n{items}]")
}
