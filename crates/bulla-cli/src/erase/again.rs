//! `bulla erase --again`: orders that were carried out before a backup was put back, of which the log tells nothing any more.
//!
//! Invariants:
//! - nobody is erased who came back since: an order is carried out on the numbers that were looked up and judged, or on nobody;
//! - whoever cannot be judged is left as they are, and with them everybody of their order, which was signed as one;
//! - an order is judged, and told of, as things are once those before it are carried out;
//! - of each order it is told what became of it, once, whatever becomes of the others;
//! - as long as an order to hold or to release that is among them was not given, nobody is erased; nor as long as one of the files
//!   cannot be read as an order: it may be such a one.

use super::Erase;
use super::preview::{Looking, PreviewJson, known_again, listed, what_goes, why_unknown};
use crate::append;
use crate::confirm::confirm;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::log_paths::{error_in, read_order};
use crate::output::{note_lines, on_line, print, print_json};
use crate::terminal;
use bulla::control::{Client, SubjectKeys, through_writer};
use bulla::{
    Erasure, ErasureOrder, ErasurePreview, ErrorKind, FirstMet, HeldSubjects, HoldOrder, Info, KnownAgain,
    Log, ReleaseOrder,
};
use serde::Serialize;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::Path;

/// What becomes, or became, of an order.
#[derive(Serialize)]
struct Told<'a> {
    order: &'a Path,
    outcome: Outcome,
    /// Why it is left out or refused, or what failed.
    detail: Option<String>,
    /// The frame that tells of it.
    frame: Option<u64>,
    /// Who is erased.
    numbers: Vec<u64>,
    /// The names of it that nobody has, or had: of them nothing is erased.
    unknown: Vec<String>,
    known_again: Vec<KnownAgain>,
    /// Of the names in `unknown`, those whom orders before it erase.
    #[serde(skip)]
    gone: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<PreviewJson>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Erased,
    ErasedAlready,
    /// An order to hold or to release.
    GivenAlready,
    WouldBeErased,
    LeftOut,
    Refused,
    Failed,
    NotTried,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Outcome::Erased => "erased",
            Outcome::ErasedAlready => "erased already",
            Outcome::GivenAlready => "given already",
            Outcome::WouldBeErased => "would be erased",
            Outcome::LeftOut => "left out",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::NotTried => "not tried",
        }
    }
}

/// An order that may be carried out.
struct Ready {
    order: ErasureOrder,
    preview: ErasurePreview,
}

pub(super) fn run(erase: &Erase, info: &Info) -> Result<Exit, Failure> {
    let given = given(erase)?;
    if given.iter().any(|given| given.as_ref().is_err_and(|told| told.outcome == Outcome::Refused)) {
        return refuse_to_begin(erase, info, given);
    }
    finish_what_was_begun(erase, info)?;
    let until_it_is_begun = interrupt::exit_for_now(erase.json)?;
    let mut looking = Looking::new(&erase.place, &erase.identities, &info.vkey)?;
    looking.certificates(&erase.certificates)?;
    let mut orders = Vec::new();
    for (path, given) in erase.again.iter().zip(given) {
        let (ready, mut told) = match given {
            Ok(order) => look(path, order, &mut looking)?,
            Err(told) => (None, told),
        };
        let is_final = erase.dry_run || ready.is_none();
        match is_final && !erase.json {
            true => print(&(told.line(info) + "\n"))?,
            false => note_lines(&told.line(info)),
        }
        if let Some(Ready { preview, .. }) = &ready {
            looking.goes_on_without(&preview.numbers);
            told.preview = erase.json.then(|| PreviewJson::from(preview));
            what_goes(preview).lines().for_each(|line| note!("  {line}"));
        }
        orders.push((ready, told));
    }
    if erase.dry_run {
        return tell(erase, orders.into_iter().map(|(_, told)| told).collect(), None);
    }
    if orders.iter().any(|(ready, _)| ready.is_some()) {
        confirm(erase.yes)?;
    }
    drop((until_it_is_begun, looking));
    interrupt::finish_first(erase.json, "`bulla events DIR --kind erased`", || ())?;
    let hands = Hands { erase, log: RefCell::default() };
    let mut failure = None;
    let mut all_told = Vec::new();
    for (ready, mut told) in orders {
        if let Some(ready) = ready {
            match &failure {
                None => failure = hands.carry_out(&ready, &mut told).err(),
                Some(_) => told.becomes(Outcome::NotTried, None),
            }
            if !erase.json {
                failure = failure.or(print(&(told.line(info) + "\n")).err());
            }
        }
        all_told.push(told);
    }
    let closed = hands.log.take().map_or(Ok(()), Log::close).map_err(Failure::from);
    tell(erase, all_told, failure.or(closed.err()))
}

/// Of each file the order to erase in it, or else what is told of it: of an order to hold or to release that it was given, and
/// `Refused` where it was not, or where the file cannot be read as an order.
fn given(erase: &Erase) -> Result<Vec<Result<ErasureOrder, Told<'_>>>, Failure> {
    let mut held = None::<HeldSubjects>;
    let mut all = Vec::new();
    for path in &erase.again {
        let (what, action, note) = match read(path) {
            Ok(Order::Erasure(order)) => {
                all.push(Ok(order));
                continue;
            }
            Err(why) => {
                let why = format!(
                    "{why}: it may be an order to hold somebody; give it as it was made, or leave it out where it is none"
                );
                all.push(Err(Told::new(path, Outcome::Refused, Some(why))));
                continue;
            }
            Ok(Order::Hold(order)) => ("hold", "add", order.note().to_owned()),
            Ok(Order::Release(order)) => ("release", "release", order.note().to_owned()),
        };
        let held = match &mut held {
            Some(held) => held,
            none => none.insert(bulla::holds(erase.place.directory(), erase.place.keys())?),
        };
        all.push(Err(match held.has_order(&note) {
            true => {
                Told::new(path, Outcome::GivenAlready, Some(format!("the log knows this order to {what}")))
            }
            false => {
                let why = format!(
                    "it is an order to {what}, which the log does not know: give it first, with `bulla hold DIR {action} \
                     --authority FILE`, and then these again; where it is not to be given, as where it was carried out under \
                     another order, leave it out"
                );
                Told::new(path, Outcome::Refused, Some(why))
            }
        }));
    }
    Ok(all)
}

/// An order of any kind that somebody may be held or erased by.
enum Order {
    Erasure(ErasureOrder),
    Hold(HoldOrder),
    Release(ReleaseOrder),
}

/// Reads an order; the error says why it is none.
fn read(path: &Path) -> Result<Order, String> {
    let text = read_order(path).map_err(|error| error.to_string())?;
    if let Ok(order) = HoldOrder::parse(&text) {
        return Ok(Order::Hold(order));
    }
    if let Ok(order) = ReleaseOrder::parse(&text) {
        return Ok(Order::Release(order));
    }
    ErasureOrder::parse(&text).map(Order::Erasure).map_err(|error| error.to_string())
}

/// Tells that nobody is erased before orders to hold or to release were given, and which ones, or which files may be one.
fn refuse_to_begin(
    erase: &Erase,
    info: &Info,
    given: Vec<Result<ErasureOrder, Told<'_>>>,
) -> Result<Exit, Failure> {
    let told = |(path, given): (_, Result<_, _>)| match given {
        Ok(_) => Told::new(path, Outcome::NotTried, None),
        Err(told) => told,
    };
    let all = erase.again.iter().map(std::path::PathBuf::as_path).zip(given).map(told).collect::<Vec<_>>();
    if !erase.json {
        all.iter().try_for_each(|told| print(&(told.line(info) + "\n")))?;
    }
    let refused = all.iter().filter(|told| told.outcome == Outcome::Refused);
    let refused = refused.map(|told| told.order.display().to_string()).collect::<Vec<_>>().join(", ");
    let why = format!(
        "nobody was erased, since whom the others name may be held by an order to hold that was not given yet, or cannot be \
         read: {refused}"
    );
    tell(erase, all, Some(Failure::new(Exit::Refused, why)))
}

/// Finishes or withdraws an erasure that was cut short, and says so: what is looked up is judged as things are after that.
fn finish_what_was_begun(erase: &Erase, info: &Info) -> Result<(), Failure> {
    let keys = SubjectKeys::in_directory(erase.place.keys(), info.id);
    match keys.map(|keys| keys.has_unfinished_erasure()) {
        Some(Ok(true)) => {}
        Some(Err(error)) if !is_of_the_order(error.kind()) => return Err(error.into()),
        _ => return Ok(()),
    }
    if erase.dry_run {
        note!(
            "an erasure was cut short: opening the log, as this command does without --dry-run, finishes or withdraws it first, and \
             what is told here is how things are before that"
        );
        return Ok(());
    }
    let _until_it_is_open = interrupt::exit_meanwhile(
        erase.json,
        "interrupted while an erasure that was cut short was being finished: opening the log goes on with it, and nothing else was done",
    )?;
    let open = || append::open(&erase.place, terminal::environment()).and_then(Log::close);
    Ok(through_writer(erase.place.keys(), |_| Ok(()), open)?)
}

/// Whether looking fails so for the order's sake, or for want of keys, so that others may be carried out all the same.
fn is_of_the_order(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Refused | ErrorKind::NoKey | ErrorKind::Erased)
}

/// What would become of an order, as things are.
fn look<'a>(
    path: &'a Path,
    order: ErasureOrder,
    looking: &mut Looking<'_>,
) -> Result<(Option<Ready>, Told<'a>), Failure> {
    let told = |outcome, detail| Told::new(path, outcome, detail);
    let refused = |why: String| Ok((None, told(Outcome::Refused, Some(why))));
    let preview = match looking.preview_again(&order) {
        Ok(preview) => preview,
        Err(error) if is_of_the_order(error.kind()) => return refused(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let mut told = told(Outcome::WouldBeErased, None);
    if let Some(before) = &preview.before {
        (told.outcome, told.frame) = (Outcome::ErasedAlready, Some(before.frame));
        (told.numbers, told.unknown) = (before.numbers.clone(), before.unknown.clone());
        told.known_again = preview.known_again();
        return Ok((None, told));
    }
    if let Some((outcome, why)) = objection(&preview) {
        told.becomes(outcome, Some(why));
        return Ok((None, told));
    }
    told.numbers.clone_from(&preview.numbers);
    told.unknown = preview.unknown().map(str::to_owned).collect();
    told.gone = gone(&preview).map(str::to_owned).collect();
    Ok((Some(Ready { order, preview }), told))
}

/// The names of an order whom orders before it erase.
fn gone(preview: &ErasurePreview) -> impl Iterator<Item = &str> {
    preview.subjects.iter().filter(|subject| subject.gone).map(|subject| &subject.subject[..])
}

/// Why an order that was not carried out is left out or refused, if it is.
fn objection(preview: &ErasurePreview) -> Option<(Outcome, String)> {
    let gone = gone(preview).count();
    let unknown = preview.unknown().count() - gone;
    if preview.keys_lost && unknown > 0 {
        let why = why_unknown(true);
        return Some((Outcome::Refused, format!("{unknown} of its names {why}")));
    }
    if preview.numbers.is_empty() && gone > 0 {
        return Some((Outcome::LeftOut, "whom it names is to be erased by an order before it".to_owned()));
    }
    if preview.numbers.is_empty() {
        return preview.refusal().map(|refusal| (Outcome::Refused, refusal.to_string()));
    }
    let others = if preview.numbers.len() > 1 { "; the others of it take a new order" } else { "" };
    if let Some(hold) = preview.holds.iter().find(|hold| !hold.is_releasing()) {
        let (number, by, reason) = (hold.number, on_line(&hold.by), on_line(&hold.reason));
        return Some((Outcome::LeftOut, format!("held by {by}: {reason} (data subject {number}){others}")));
    }
    if let Some(why) = &preview.not_counted {
        let why = format!("whether its data subjects came back since cannot be told: {why}");
        return Some((Outcome::Refused, why));
    }
    let met =
        || preview.subjects.iter().filter_map(|subject| Some((subject.number?, subject.first_met.as_ref())));
    let since = met().filter(|(_, met)| *met == Some(&FirstMet::Since)).map(|(number, _)| number);
    let since = since.collect::<Vec<_>>();
    if !since.is_empty() {
        let whom = listed(&since);
        return Some((
            Outcome::LeftOut,
            format!("came back since: {whom}, whom the order does not mean{others}"),
        ));
    }
    let unsure = met().find_map(|(number, met)| match met {
        Some(FirstMet::Before) => None,
        Some(FirstMet::CannotTell(why)) => Some((number, why.clone())),
        _ => Some((number, "they were not found".to_owned())),
    });
    unsure.map(|(number, why)| {
        let why = format!(
            "whether data subject {number} came back since cannot be told: {why}; give the order's certificate with --certificate, \
             or, where that is given, a new order"
        );
        (Outcome::Refused, why)
    })
}

/// What carries orders out: a writer, or this command, which then keeps the log open.
struct Hands<'a> {
    erase: &'a Erase,
    log: RefCell<Option<Log>>,
}

impl Hands<'_> {
    /// Carries one out on those who were looked up, and says what became of it.
    ///
    /// # Errors
    /// Where the environment failed: nothing else is tried then.
    fn carry_out(&self, Ready { order, preview }: &Ready, told: &mut Told<'_>) -> Result<(), Failure> {
        match self.erase(order, &preview.numbers) {
            Ok(erasure) => {
                told.outcome = if erasure.before { Outcome::ErasedAlready } else { Outcome::Erased };
                told.frame = Some(erasure.frame);
                (told.numbers, told.unknown) = (erasure.numbers, erasure.unknown);
                told.known_again = erasure.known_again;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Refused => {
                told.becomes(Outcome::Refused, Some(error.to_string()));
                Ok(())
            }
            Err(error) => {
                told.becomes(Outcome::Failed, Some(error.to_string()));
                Err(error_in(told.order, error))
            }
        }
    }

    fn erase(&self, order: &ErasureOrder, numbers: &[u64]) -> bulla::Result<Erasure> {
        if let Some(log) = &*self.log.borrow() {
            return log.erase_only(order, numbers);
        }
        let ask = |writer: &Client| writer.erase_only(order, numbers);
        through_writer(self.erase.place.keys(), ask, || {
            let log = append::open(&self.erase.place, terminal::environment())?;
            let erased = log.erase_only(order, numbers);
            self.log.replace(Some(log));
            erased
        })
    }
}

impl<'a> Told<'a> {
    fn new(order: &'a Path, outcome: Outcome, detail: Option<String>) -> Self {
        Told {
            order,
            outcome,
            detail,
            frame: None,
            numbers: Vec::new(),
            unknown: Vec::new(),
            known_again: Vec::new(),
            gone: Vec::new(),
            preview: None,
        }
    }

    /// Nobody is erased by it.
    fn becomes(&mut self, outcome: Outcome, detail: Option<String>) {
        (self.outcome, self.detail) = (outcome, detail);
        (self.numbers, self.unknown) = (Vec::new(), Vec::new());
    }

    fn line(&self, info: &Info) -> String {
        let (path, outcome) = (on_line(&self.order.display().to_string()), self.outcome.name());
        let whom = || format!("{} of {}", listed(&self.numbers), info.origin);
        let mut line = match (self.outcome, self.frame, &self.detail) {
            (Outcome::ErasedAlready, Some(frame), _) | (Outcome::Erased, Some(frame), _) => {
                format!("{path}: {outcome}: {}; the log tells of it in frame {frame}", whom())
            }
            (Outcome::WouldBeErased, ..) => format!("{path}: {outcome}: {}", whom()),
            (_, _, Some(detail)) => format!("{path}: {outcome}: {detail}"),
            _ => format!("{path}: {outcome}"),
        };
        let is_known = |name: &String| self.known_again.iter().any(|again| again.subject == *name);
        for unknown in self.unknown.iter().filter(|name| !is_known(name)) {
            let why = if self.gone.contains(unknown) { "an order before it erases" } else { "not known" };
            // Writing to a `String` cannot fail.
            let _ = write!(line, "\n{path}: {why}: {}", on_line(unknown));
        }
        for again in known_again(&self.known_again).lines() {
            let _ = write!(line, "\n{path}: {again}");
        }
        line
    }
}

/// Tells what all of it comes to, with `--json` of each order.
fn tell(erase: &Erase, all: Vec<Told<'_>>, failure: Option<Failure>) -> Result<Exit, Failure> {
    let is_done = |told: &&Told<'_>| {
        matches!(told.outcome, Outcome::Erased | Outcome::ErasedAlready | Outcome::WouldBeErased)
    };
    let erasures = all.iter().filter(|told| told.outcome != Outcome::GivenAlready).count();
    let done = all.iter().filter(is_done).count();
    let in_whole = all.iter().filter(is_done).filter(|told| told.unknown.is_empty()).count();
    let any_erased = all.iter().any(|told| told.outcome == Outcome::Erased);
    let none =
        || Failure::new(Exit::Refused, "none of the orders is carried out: all are left out or refused");
    let failure = failure.or_else(|| (done == 0 && erasures > 0).then(none));
    let told = match (erase.json, &failure) {
        (true, None) => print_json(&serde_json::json!({ "orders": all })),
        (true, Some(failure)) => print_json(&serde_json::json!({ "orders": all, "error": failure.message })),
        (false, _) => Ok(()),
    };
    match failure.or(told.err()) {
        Some(failure) if any_erased => Err(failure
            .but_done("some of the orders were carried out, as `bulla events DIR --kind erased` tells")),
        Some(failure) => Err(failure),
        None if in_whole == erasures => Ok(Exit::Done),
        None => Ok(Exit::SomeRefused),
    }
}
