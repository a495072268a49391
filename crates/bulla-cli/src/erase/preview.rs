//! What an erasure would do, looked up and told before anything is destroyed.

use crate::exit::{Exit, Failure};
use crate::export::progress::Passes;
use crate::group_keys::vault;
use crate::hold::HoldJson;
use crate::identity::Identities;
use crate::log_paths::{LogPaths, error_in};
use crate::lost_frames::LostFramesJson;
use crate::output::{on_line, time};
use bulla::keys::recipients::IdentityFile;
use bulla::text::spelling::{agreeing, counted};
use bulla::{
    Certified, EntriesGoing, ErasedBefore, ErasureOrder, ErasurePreview, Hold, KnownAgain, PreviewedSubject,
    Reader, VerifierKey, config,
};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

/// The most others that are told in text, one by one.
const MOST_OTHERS: usize = 20;

/// Looks orders up.
pub(super) struct Looking<'a> {
    place: &'a LogPaths,
    key: VerifierKey,
    identity: Option<Arc<IdentityFile>>,
    /// Why there is none, where there might have been.
    without: Option<String>,
    reader: Option<Reader>,
    certified: Vec<Certified>,
    /// Whom orders erase that were looked up, and are carried out first.
    gone: Vec<u64>,
}

impl<'a> Looking<'a> {
    /// With the identities that were named, or else the one of the key directory: what keeps that from being used keeps
    /// nobody from being erased.
    pub(super) fn new(
        place: &'a LogPaths,
        identities: &Identities,
        key: &VerifierKey,
    ) -> Result<Self, Failure> {
        let (identity, without) = match identities.load(place) {
            Ok(identity) => (identity, None),
            Err(failure) if identities.are_named() || failure.exit == Exit::Interrupted => {
                return Err(failure);
            }
            Err(failure) => (None, Some(failure.message)),
        };
        Ok(Looking {
            place,
            key: key.clone(),
            identity,
            without,
            reader: None,
            certified: Vec::new(),
            gone: Vec::new(),
        })
    }

    /// Goes by these certificates of orders that were carried out.
    pub(super) fn certificates(&mut self, paths: &[PathBuf]) -> Result<(), Failure> {
        /// More than the certificate of any order has: an event, and a path in the tree.
        const LIMIT: u64 = 8 << 20;
        let reader = Reader::open_store(self.place.log()?)?.key(self.key.clone());
        for path in paths {
            let mut bytes = Vec::new();
            let read = File::open(path).and_then(|file| file.take(LIMIT).read_to_end(&mut bytes));
            read.map_err(|error| Failure::io(path.display(), &error))?;
            self.certified.push(reader.certified(&bytes).map_err(|error| error_in(path, error))?);
        }
        Ok(())
    }

    /// The next orders are judged as things are once these are erased.
    pub(super) fn goes_on_without(&mut self, numbers: &[u64]) {
        self.gone.extend(numbers);
    }

    /// What carrying out `order` would do. It shows how far it is, on a terminal.
    pub(super) fn preview(&mut self, order: &ErasureOrder) -> bulla::Result<ErasurePreview> {
        self.look(|reader, holds, _, _| reader.preview_erasure(order, holds))
    }

    /// The same of one that may have been carried out before, by the certificates, and without those who are gone by then.
    pub(super) fn preview_again(&mut self, order: &ErasureOrder) -> bulla::Result<ErasurePreview> {
        self.look(|reader, holds, certified, gone| {
            reader.preview_erasure_again(order, holds, certified, gone)
        })
    }

    fn look(
        &mut self,
        preview: impl FnOnce(&Reader, &[Hold], &[Certified], &[u64]) -> bulla::Result<ErasurePreview>,
    ) -> bulla::Result<ErasurePreview> {
        let (directory, keys) = (self.place.directory(), self.place.keys());
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.reader()?,
        };
        let holds = bulla::holds(directory, keys)?.holds;
        let passes = Passes::new();
        let reader = self.reader.insert(reader.progress(passes.steps("counting", "counting")));
        let preview = preview(reader, &holds, &self.certified, &self.gone);
        passes.clear();
        let mut preview = preview?;
        if let (Some(why), None) = (&self.without, &self.identity) {
            preview.not_counted = preview.not_counted.map(|_| why.clone());
        }
        Ok(preview)
    }

    /// One for all orders, so that nobody is asked for an epoch's key twice.
    fn reader(&self) -> bulla::Result<Reader> {
        let log = config::load_of_log(&*self.place.log()?)?.0;
        let mut reader = Reader::open_store(self.place.log()?)?.key(self.key.clone());
        if let Some(keys) = vault(self.place, &log)? {
            reader = reader.group_keys(keys);
        }
        Ok(match &self.identity {
            Some(identity) => reader.identity(identity.clone()),
            None => reader,
        })
    }
}

/// What would be done, for whoever reads it; `origin` is the log's.
pub(super) fn to_text(preview: &ErasurePreview, origin: &str) -> String {
    match &preview.before {
        Some(before) => {
            let again = preview.known_again();
            before_to_text(before, origin)
                + &known_again(&again)
                + &unknown(&before.unknown, &again, preview.keys_lost)
        }
        None => as_things_are(preview, |_| true),
    }
}

/// The same, without the names that nobody has.
pub(super) fn what_goes(preview: &ErasurePreview) -> String {
    as_things_are(preview, |subject| subject.number.is_some())
}

fn as_things_are(preview: &ErasurePreview, is_told: impl Fn(&&PreviewedSubject) -> bool) -> String {
    let told = preview.subjects.iter().filter(is_told);
    let mut text = told.map(|subject| subject_to_text(subject, preview.keys_lost)).collect::<String>();
    for hold in &preview.holds {
        text.push_str(&hold_to_text(hold, ""));
    }
    match (&preview.going, &preview.not_counted) {
        (Some(going), _) => text.push_str(&going_to_text(going)),
        // Writing to a `String` cannot fail.
        (None, Some(why)) => _ = writeln!(text, "entries: not counted: {why}"),
        (None, None) => {}
    }
    text
}

/// That an order was carried out before.
fn before_to_text(ErasedBefore { frame, numbers, .. }: &ErasedBefore, origin: &str) -> String {
    let numbers = listed(numbers);
    format!("erased already: {numbers} of {origin}; the log tells of it in frame {frame}\n")
}

/// Who has a name of an order that was carried out, and was not erased by it.
pub(super) fn known_again(again: &[KnownAgain]) -> String {
    let line = |KnownAgain { subject, number, .. }: &KnownAgain| {
        format!(
            "{}: known as data subject {number} since then, a new person, whom this order does not erase: that takes a new order\n",
            on_line(subject)
        )
    };
    again.iter().map(line).collect()
}

/// The names of an order that nobody had when it was carried out, but for those who are known again.
pub(super) fn unknown(names: &[String], again: &[KnownAgain], keys_lost: bool) -> String {
    let is_known = |name: &&String| again.iter().any(|again| again.subject == **name);
    let line = |name: &String| format!("unknown: {}: {}\n", on_line(name), why_unknown(keys_lost));
    names.iter().filter(|name| !is_known(name)).map(line).collect()
}

/// Data subjects, by their numbers.
pub(super) fn listed(numbers: &[u64]) -> String {
    let list = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!("data subject{} {list}", if numbers.len() == 1 { "" } else { "s" })
}

fn subject_to_text(
    PreviewedSubject { subject, number, entries, .. }: &PreviewedSubject,
    keys_lost: bool,
) -> String {
    let name = on_line(subject);
    match (number, entries) {
        (Some(number), Some(entries)) => {
            format!("{name}: data subject {number}, {}\n", counted(*entries, "entry"))
        }
        (Some(number), None) => format!("{name}: data subject {number}\n"),
        (None, _) => format!("{name}: {}\n", why_unknown(keys_lost)),
    }
}

/// Why nobody is known by a name.
pub(super) fn why_unknown(keys_lost: bool) -> &'static str {
    match keys_lost {
        false => "not known here: nobody was logged by that name, or they were erased before",
        true => {
            "may be known or not, which cannot be told: keys are lost that the log does not say were erased"
        }
    }
}

fn hold_to_text(hold: &Hold, what_of_it: &str) -> String {
    let Hold { number, by, reason, since, .. } = hold;
    let releasing = if hold.is_releasing() { " (its release is under way)" } else { "" };
    let (by, reason, since) = (on_line(by), on_line(reason), time(*since));
    format!("data subject {number} is held by {by} since {since}: {reason}{releasing}{what_of_it}\n")
}

fn going_to_text(going: &EntriesGoing) -> String {
    let mut text = format!(
        "{} in all {} what is personal, of what is signed ({})\n",
        counted(going.entries, "entry"),
        agreeing(going.entries, "loses", "lose"),
        counted(going.tree_size, "frame")
    );
    if going.shared > 0 {
        let named = going.others.iter().take(MOST_OTHERS);
        let named = named
            .map(|other| format!("{} ({})", other.number, counted(other.entries, "entry")))
            .collect::<Vec<_>>();
        let more = match going.others.len() - named.len() {
            0 if going.all_others => String::new(),
            more => format!(", and {more}{} more", if going.all_others { "" } else { " or" }),
        };
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "{} of these {} others, too, who lose them with it: data subjects {}{more}",
            going.shared,
            agreeing(going.shared, "concerns", "concern"),
            named.join(", "),
        );
    }
    for hold in &going.held_others {
        text.push_str(&hold_to_text(hold, "; that hold does not keep those entries"));
    }
    for not_sure in &going.not_sure {
        let _ = writeln!(text, "there may be more: {not_sure}");
    }
    text
}

/// The same for a program.
#[derive(Serialize)]
pub(super) struct PreviewJson {
    subjects: Vec<SubjectJson>,
    holds: Vec<HoldJson>,
    keys_lost: bool,
    /// The frame that tells of the order already.
    erased_already: Option<u64>,
    known_again: Vec<KnownAgain>,
    entries: Option<u64>,
    /// Of these, the ones that concern others, too.
    shared: Option<u64>,
    others: Option<Vec<OtherJson>>,
    /// Whether these are all of them.
    all_others: Option<bool>,
    held_others: Option<Vec<HoldJson>>,
    /// Frames that were looked at.
    tree_size: Option<u64>,
    not_sure: Vec<String>,
    not_counted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_with_path: Option<LostFramesJson>,
}

#[derive(Serialize)]
struct SubjectJson {
    subject: String,
    standing: &'static str,
    number: Option<u64>,
    entries: Option<u64>,
}

#[derive(Serialize)]
struct OtherJson {
    number: u64,
    entries: u64,
}

impl From<&ErasurePreview> for PreviewJson {
    fn from(preview: &ErasurePreview) -> Self {
        let subject = |PreviewedSubject { subject, number, entries, gone, .. }: &PreviewedSubject| {
            let standing = match (number, preview.keys_lost && !gone) {
                (Some(_), _) => "known",
                (None, false) => "not-known",
                (None, true) => "cannot-tell",
            };
            SubjectJson { subject: subject.clone(), standing, number: *number, entries: *entries }
        };
        let going = preview.going.as_ref();
        let other = |other: &bulla::OtherSubject| OtherJson { number: other.number, entries: other.entries };
        PreviewJson {
            subjects: preview.subjects.iter().map(subject).collect(),
            holds: preview.holds.iter().map(HoldJson::from).collect(),
            keys_lost: preview.keys_lost,
            erased_already: preview.before.as_ref().map(|before| before.frame),
            known_again: preview.known_again(),
            entries: going.map(|going| going.entries),
            shared: going.map(|going| going.shared),
            others: going.map(|going| going.others.iter().map(other).collect()),
            all_others: going.map(|going| going.all_others),
            held_others: going.map(|going| going.held_others.iter().map(HoldJson::from).collect()),
            tree_size: going.map(|going| going.tree_size),
            not_sure: going
                .map_or_else(Vec::new, |going| going.not_sure.iter().map(ToString::to_string).collect()),
            not_counted: preview.not_counted.clone(),
            lost_with_path: LostFramesJson::of(&preview.lost),
        }
    }
}
