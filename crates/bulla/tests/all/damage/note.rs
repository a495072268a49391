//! What altered bytes of `checkpoint` must come to, by C2SP signed-note and tlog-checkpoint, and what a signed size
//! means for the files beside it.

use super::layout::{Frame, GAP, Layout};
use super::world::{Level, Made};
use bulla_proof::tile::{TilePath, parse_path};
use std::collections::BTreeSet;

/// A checkpoint as far as it can be read.
struct Note {
    origin: String,
    size: u64,
    root: Vec<u8>,
    signer: (String, Vec<u8>),
}

/// Reads a note of one signature; what is wrong with it otherwise.
fn read(bytes: &[u8]) -> Result<Note, &'static str> {
    const NOT_TEXT: &str = "the note is not UTF-8 text, or has a control character";
    const UNSIGNED: &str = "the note has no signature after a blank line";
    const LINES: &str = "the checkpoint has fewer than three lines, or an empty one";
    let text = std::str::from_utf8(bytes).map_err(|_| NOT_TEXT)?;
    if text.chars().any(|char| char < ' ' && char != '\n') {
        return Err(NOT_TEXT);
    }
    let (body, line) = text.rsplit_once("\n\n").ok_or(UNSIGNED)?;
    let line = line.strip_suffix('\n').ok_or(UNSIGNED)?;
    let (signer, canonical) = signature(line).ok_or("the note has a malformed signature line")?;
    if !canonical {
        return Err(UNSIGNED);
    }
    let lines = body.split('\n').collect::<Vec<_>>();
    if lines.len() < 3 || lines.contains(&"") {
        return Err(LINES);
    }
    let decimal = lines[1].bytes().all(|byte| byte.is_ascii_digit()) && !lines[1].starts_with('0');
    if !decimal {
        return Err("the checkpoint's size is not a decimal number in its shortest form");
    }
    let root = base64(lines[2]).filter(|root| root.len() == 32);
    let root = root.ok_or("the checkpoint's root is not the base64 of 32 bytes")?;
    Ok(Note { origin: lines[0].to_owned(), size: lines[1].parse().unwrap(), root, signer })
}

/// The name and the key id of a signature line, and whether its base64 is in its one spelling.
fn signature(line: &str) -> Option<((String, Vec<u8>), bool)> {
    let words = line.split(' ').collect::<Vec<_>>();
    let &["\u{2014}", name, signature] = &words[..] else { return None };
    let plain = |char: char| char != '+' && char != '\u{7f}';
    let (signature, canonical) = decoded(signature).filter(|(bytes, _)| bytes.len() > 4)?;
    let signer = || (name.to_owned(), signature[..4].to_vec());
    (!name.is_empty() && name.chars().all(plain)).then(|| (signer(), canonical))
}

/// Base64 (RFC 4648) in its one spelling.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    decoded(text).filter(|(_, canonical)| *canonical).map(|(bytes, _)| bytes)
}

/// What padded base64 comes to, and whether no bit is set after its end.
fn decoded(text: &str) -> Option<(Vec<u8>, bool)> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let values = digits.chars().map(|digit| DIGITS.find(digit)).collect::<Option<Vec<_>>>()?;
    let bit = |place: usize| values[place / 6] >> (5 - place % 6) & 1;
    let (bits, bytes) = (values.len() * 6, values.len() * 6 / 8);
    let unused = (bytes * 8..bits).all(|place| bit(place) == 0);
    let byte = |at: usize| (0..8).fold(0, |byte, place| byte << 1 | bit(at * 8 + place) as u8);
    Some(((0..bytes).map(byte).collect(), unused))
}

/// What a verification of a log must tell whose checkpoint alone is altered: findings as [`super::world::in_full`]
/// has them.
pub(crate) fn expect(made: &Made, layout: &Layout, altered: &[u8], level: Level) -> Vec<String> {
    let signed = read(made.image.get("checkpoint")).unwrap();
    let note = match read(altered) {
        Ok(note) => note,
        Err(why) => return vec![format!("checkpoint-damaged: checkpoint: {why}")],
    };
    let unsigned = "checkpoint-damaged: checkpoint: it is not signed by the log's key";
    let mut findings = vec![if note.origin != signed.origin {
        format!("checkpoint-damaged: checkpoint is of `{}`, not of `{}`", note.origin, signed.origin)
    } else if note.signer != signed.signer {
        format!("{unsigned}: the key has not signed the note")
    } else {
        format!("{unsigned}: the key's signature of the note does not verify")
    }];
    if level >= Level::Key {
        let key = &made.key;
        findings.push(format!("key-mismatch: checkpoint is not signed by the key that was given, {key}"));
    }
    if (note.size, &note.root) != (signed.size, &signed.root) {
        findings.push("root-mismatch: the frames do not have the root that the checkpoint signs".to_owned());
    }
    findings.extend(at_size(made, layout, note.size));
    findings
}

/// What there is to tell of a log of which a checkpoint covers `size` frames.
fn at_size(made: &Made, layout: &Layout, size: u64) -> Vec<String> {
    let mut findings = Vec::new();
    let gaps = layout.counted().filter(|frame| frame.kind == GAP && frame.number < size);
    findings.extend(gaps.map(|frame| frame.finding("gap")));
    for (segment, offset) in &layout.surplus {
        // It is passed on the way to a frame that is covered; then only covered events explain it.
        let passed = layout.counted().any(|frame| frame.number < size && frame.segment > *segment);
        let explained =
            layout.explained(segment, *offset).is_some_and(|event| !passed || event.number < size);
        let kind = if explained { "abandoned" } else { "surplus-bytes" };
        findings.push(format!("{kind} {segment}@{offset}"));
    }
    if size < layout.size {
        let Frame { segment, offset, .. } = layout.frame(size);
        findings.push(format!("unsigned-tail {segment}@{offset} f{size}-{}", layout.size - 1));
    }
    if size > layout.size {
        let last = layout.frame(layout.size - 1);
        let (segment, end) = (&last.segment, last.end());
        findings.push(format!("frames-missing {segment}@{end} f{}-{}", layout.size, size - 1));
    }
    findings.extend(tree_at_size(made, size));
    findings
}

/// What there is to tell of the tree's files: those that such a size needs, and those that it cannot have.
fn tree_at_size(made: &Made, size: u64) -> Vec<String> {
    let paths =
        made.image.paths().into_iter().filter(|path| path.starts_with("tile/")).collect::<BTreeSet<_>>();
    let mut findings = Vec::new();
    let names =
        [(0, "tile/0", "tile-damaged"), (1, "tile/1", "tile-damaged"), (0, "tile/entries", "bundle-damaged")];
    for (level, directory, kind) in names {
        let (span, count) = (256_u64.pow(level), size >> (8 * level));
        for index in 0..count.div_ceil(256) {
            let width = (count - index * 256).min(256);
            let (full, partial) =
                (format!("{directory}/{index:03}"), format!("{directory}/{index:03}.p/{width}"));
            // A full one stands for each of its parts.
            if !paths.contains(&full) && !paths.contains(&partial) {
                let (first, last) = (index * 256 * span, (index * 256 + width) * span - 1);
                findings.push(format!("{kind} f{first}-{last}"));
            }
        }
    }
    for path in paths {
        let (level, index, width) = match parse_path(&path).unwrap() {
            TilePath::Hashes(tile) => (tile.level, tile.index, tile.width),
            TilePath::Entries { index, width } => (0, index, width),
        };
        if index * 256 + u64::from(width) > size >> (8 * level) {
            findings.push(format!("unknown-file: {path} does not belong to a log"));
        }
    }
    findings
}
