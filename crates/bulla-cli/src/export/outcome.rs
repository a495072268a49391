//! What an export says of itself in the end: what it found, what it left out and why, and the exit code for that.

use crate::exit::Exit;
use crate::missing_keys::{self, WITHOUT, WithoutKeys};
use crate::nothing_found::SubjectJson;
use crate::path_states::MissingPathJson;
use bulla::text::spelling::counted;
use bulla::{Exported, Query, Severity, Unopened};
use serde::Serialize;
use std::collections::BTreeMap;

/// Tells of it; `salvaged` is what a salvage was asked for.
pub(super) fn tell(exported: &Exported, salvaged: Option<&Query>) -> Exit {
    for finding in &exported.findings {
        note!("{finding}");
    }
    for unopened in &exported.unopened {
        note!("{}", no_key(unopened));
    }
    let why = match (exported.unread_events, exported.unpublished) {
        (_, Some(sealed)) => WithoutKeys::Unpublished(sealed),
        (Some(unread), None) => WithoutKeys::Untold(unread),
        (None, None) => WithoutKeys::of(exported.log_is_older),
    };
    let whole = missing_keys::tell(exported.withheld, WITHOUT, exported.undecided, why);
    let damaged = exported.left_out > 0
        || exported.findings.iter().any(|finding| finding.severity == Severity::Violation);
    if let Some(query) = salvaged {
        note!("left out: {}", left_out(exported, damaged, query));
    }
    match (damaged || exported.left_out_unknown, unopened(exported)) {
        (true, _) => Exit::Violation,
        _ if whole != Exit::Done => whole,
        (false, 0) => Exit::Done,
        (false, _) => Exit::Refused,
    }
}

/// What an export comes to, for a program.
#[derive(Serialize)]
pub(super) struct ExportedJson<'a> {
    entries: u64,
    /// By why: entries that came without their personal fields.
    withheld: BTreeMap<&'static str, u64>,
    undecided: u64,
    left_out: u64,
    /// Whether more were left out, and nobody can tell how many.
    left_out_unknown: bool,
    no_key: u64,
    /// Of a salvage: whether a signature vouches for what was written.
    signed: bool,
    blocks_read: Option<u64>,
    blocks: Option<u64>,
    tree_size: Option<u64>,
    root: Option<String>,
    /// Whether something that is not signed yet may follow, which is not looked at.
    unsigned: bool,
    /// The paths of the log that are not there; absent where all are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_paths: Vec<MissingPathJson>,
    /// Where nothing was found.
    subjects: Vec<SubjectJson<'a>>,
}

impl<'a> From<&'a Exported> for ExportedJson<'a> {
    fn from(exported: &'a Exported) -> Self {
        let read = exported.read.as_ref();
        ExportedJson {
            entries: exported.entries,
            withheld: missing_keys::by_why(exported.withheld),
            undecided: exported.undecided,
            left_out: exported.left_out,
            left_out_unknown: exported.left_out_unknown,
            no_key: unopened(exported),
            signed: exported.signed,
            blocks_read: read.map(|read| read.blocks_read),
            blocks: read.map(|read| read.blocks),
            tree_size: read.map(|read| read.tree_size),
            root: read.map(|read| read.root.to_base64()),
            unsigned: exported.unsigned(),
            missing_paths: exported.missing_paths.iter().map(MissingPathJson::from).collect(),
            subjects: exported.subjects.iter().map(SubjectJson::from).collect(),
        }
    }
}

/// How many entries were left out for lack of a key.
pub(super) fn unopened(exported: &Exported) -> u64 {
    exported.unopened.iter().map(Unopened::count).sum()
}

fn no_key(Unopened { epochs, entries }: &Unopened) -> String {
    let entries = match entries {
        (first, last) if first == last => format!("entry {first}"),
        (first, last) => format!("entries {first} to {last}"),
    };
    match epochs {
        (first, last) if first == last => {
            format!("no key for {entries}: the identity does not open epoch {first}")
        }
        (first, last) => format!("no key for {entries}: the identity does not open epochs {first} to {last}"),
    }
}

fn left_out(exported: &Exported, damaged: bool, query: &Query) -> String {
    // Anyone can encrypt to a recipient: without the signature nothing tells an entry from a forged one.
    let doubt = match exported.signed {
        true => "",
        false => "; and no signature vouches for what was written: any of it may be forged",
    };
    let whose_keys = match exported.unread_events {
        None => "whose keys are lost",
        Some(_) => "of whom it cannot be told whether they were erased",
    };
    let left_out = [
        (exported.left_out, "because of the damage said above"),
        (unopened(exported), "for lack of a key"),
        (exported.undecided, whose_keys),
    ];
    let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
    let left_out = left_out.map(|(count, why)| format!("{}, {why}", entries(count, query)));
    let mut left_out = left_out.collect::<Vec<_>>();
    if exported.left_out_unknown {
        let how_many = if left_out.is_empty() { "how many entries" } else { "and how many more" };
        let why = match exported.unpublished {
            None => "frames are missing whose entries nobody can count",
            Some(_) => "what lies behind the newest checkpoint was not read",
        };
        left_out.push(format!("{how_many} is not known: {why}"));
    }
    let left_out = left_out.join("; ");
    let found = match exported.unpublished {
        None => "no damage was found, seals were not looked at".to_owned(),
        Some(sealed) => format!(
            "the log's seal state covers {}, and the newest checkpoint that is there fewer",
            counted(sealed, "frame")
        ),
    };
    match (damaged, left_out.is_empty()) {
        (false, true) => format!("nothing; {found}"),
        (false, false) => format!("{left_out}; {found}"),
        (true, true) => format!("no entry; but the log is damaged, as said above{doubt}"),
        (true, false) if exported.left_out == 0 => {
            format!("{left_out}; and the log is damaged, as said above{doubt}")
        }
        (true, false) => format!("{left_out}{doubt}"),
    }
}

/// So many entries. Whether one that was not read meets the query is known only where that asks for nothing but numbers.
fn entries(count: u64, query: &Query) -> String {
    let entries = counted(count, "entry");
    match (Query { first_entry: None, last_entry: None, ..query.clone() }).is_narrow() {
        false => entries,
        true => format!("up to {entries} that may match"),
    }
}
