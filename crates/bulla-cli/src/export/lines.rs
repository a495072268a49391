//! An export as text, a line or a record an entry.

use bulla::{Entry, Error, Exported, Matches, Redaction, Result};
use std::io::Write;

/// Runs `export` into `out`: `header` first, then what `write_entry` makes of each entry, its number, and why its
/// personal fields are withheld, if they are.
pub(super) fn run(
    export: bulla::Export,
    out: &mut dyn Write,
    header: &[u8],
    write_entry: fn(&Entry<'_>, u64, Option<&str>, &mut Vec<u8>),
) -> Result<Exported> {
    let render = |matches: &Matches<'_>| {
        let mut text = Vec::new();
        for (number, entry) in matches.iter() {
            write_entry(&entry, number, matches.withheld(number).map(Redaction::name), &mut text);
        }
        text
    };
    // Nothing goes out before there is something that verified.
    let mut header = Some(header);
    let mut write = |text: &[u8]| {
        let written = out.write_all(header.take().unwrap_or_default()).and_then(|()| out.write_all(text));
        written.map_err(|error| Error::io("writing the export", error))
    };
    let exported = export.run_with(render, |text| write(&text))?;
    write(&[])?;
    Ok(exported)
}
