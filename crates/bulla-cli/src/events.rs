//! `bulla events`.

use crate::exit::{Exit, Failure};
use crate::log_paths::{Also, LogPaths};
use crate::output::{on_line, print, print_json, time};
use crate::public_key::log_key;
use crate::times::Times;
use crate::verify::ErasureKeys;
use bulla::event::{Dropped, Event, Rekeyed};
use bulla::text::spelling::{agreeing, counted};
use bulla::{LoggedEvent, Reader};
use serde::Serialize;

/// List what a log tells of itself: erasures, holds, exports, changes, and what failed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Takes public data alone, of which each event is checked up to the signed root. Data subjects have
numbers here, and no names: whose a number is, nobody is told. Heartbeats are left out unless
--kind asks for them. Exit code 1 where an event is none, or an erasure, a hold or a release is
not what was ordered with the erasure key of that time, or an erasure of somebody who was held;
`bulla verify` tells all.

A line has the frame, the time by the writing host's clock, the kind, and what the event says.
With the frame, `bulla prove audit --event FRAME` proves it to others.

Examples:
  bulla events audit --kind erased --from 2026-01-01
  bulla events audit --kind exported --kind configured --json")]
pub(crate) struct Events {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// Only these; repeatable. `lost` was one with a path of the log, and `invalid` is none of this version
    #[arg(long = "kind", value_enum, value_name = "KIND")]
    kinds: Vec<Kind>,

    #[command(flatten)]
    erasure_keys: ErasureKeys,

    #[command(flatten)]
    times: Times,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Erased,
    Rekeyed,
    Held,
    Released,
    Exported,
    Configured,
    Recovered,
    Abandoned,
    PathReplaced,
    Dropped,
    Truncated,
    Heartbeat,
    Lost,
    Invalid,
}

impl Kind {
    fn of(logged: &LoggedEvent) -> Self {
        match &logged.event {
            Ok(Event::Erased { .. }) => Kind::Erased,
            Ok(Event::Rekeyed(_)) => Kind::Rekeyed,
            Ok(Event::Held { .. }) => Kind::Held,
            Ok(Event::Released { .. }) => Kind::Released,
            Ok(Event::Exported(_)) => Kind::Exported,
            Ok(Event::Configured { .. }) => Kind::Configured,
            Ok(Event::Recovered { .. }) => Kind::Recovered,
            Ok(Event::Abandoned { .. }) => Kind::Abandoned,
            Ok(Event::PathReplaced { .. }) => Kind::PathReplaced,
            Ok(Event::Dropped(_)) => Kind::Dropped,
            Ok(Event::Truncated { .. }) => Kind::Truncated,
            Ok(Event::Heartbeat {}) => Kind::Heartbeat,
            Err(_) if logged.lost => Kind::Lost,
            _ => Kind::Invalid,
        }
    }
}

impl Events {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        let (from, to) = self.times.span()?;
        let mut reader = Reader::open_store(self.place.log()?)?;
        if let Some(key) = log_key(self.key.as_deref())? {
            reader = reader.key(key);
        }
        reader = self.erasure_keys.parse()?.into_iter().fold(reader, Reader::erasure_key);
        let (mut exit, mut told, mut failed) = (Exit::Done, 0_u64, None);
        let read = reader.events(|logged| {
            let nanoseconds = logged.time.saturating_mul(1_000_000_000);
            let in_time = from.is_none_or(|from| nanoseconds >= from) && to.is_none_or(|to| nanoseconds < to);
            let shown = in_time && self.asks_for(Kind::of(&logged)) && failed.is_none();
            if shown {
                told += 1;
                failed = self.print(&logged).err();
            }
            if logged.is_violation() {
                exit = Exit::Violation;
                if !shown {
                    note!("frame {}: {}", logged.frame, on_line(&to_text(&logged)));
                }
            }
            Ok(())
        });
        if let Err(error) = read {
            if self.json && told > 0 {
                print_json(&serde_json::json!({ "error": error.to_string() }))?;
            }
            return Err(error.into());
        }
        if told == 0 {
            note!("0 events");
        }
        failed.map_or(Ok(exit), Err)
    }

    fn asks_for(&self, kind: Kind) -> bool {
        match &self.kinds[..] {
            [] => kind != Kind::Heartbeat,
            kinds => kinds.contains(&kind),
        }
    }

    fn print(&self, logged: &LoggedEvent) -> Result<(), Failure> {
        if self.json {
            return print_json(&EventJson::from(logged));
        }
        let LoggedEvent { frame, event, .. } = logged;
        let kind = event.as_ref().map_or(unreadable(logged), Event::kind);
        let line = format!("{frame:>8}  {}  {kind:<10}  {}", time(logged.time), on_line(&to_text(logged)));
        print(&format!("{}\n", line.trim_end()))
    }
}

/// The kind of one that cannot be read.
fn unreadable(logged: &LoggedEvent) -> &'static str {
    if logged.lost { "lost" } else { "invalid" }
}

/// What an event says, on a line.
fn to_text(logged: &LoggedEvent) -> String {
    let event = match &logged.event {
        Ok(event) => event,
        Err(why) => return why.clone(),
    };
    match event {
        Event::Recovered { segment, offset, length, adopted, .. } => {
            let adopted = if *adopted == 0 {
                String::new()
            } else {
                let are = agreeing(*adopted, "is", "are");
                format!(", {} of which {are} written again", counted(*adopted, "frame"))
            };
            let do_not = agreeing(*length, "does not", "do not");
            format!(
                "{segment} counts up to {offset}: {} after that {do_not}{adopted}",
                counted(*length, "byte")
            )
        }
        Event::Abandoned { segment, offset, reason, .. } => {
            format!("{segment} counts up to {offset}: {reason}")
        }
        Event::PathReplaced { from, to, reason } => {
            format!("from here on the log is written to path {to}; before, to {from}: {reason}")
        }
        Event::Dropped(dropped) => dropped_to_text(dropped),
        Event::Truncated { known, .. } => {
            let knew = match known {
                0 => "whether there had been more".to_owned(),
                known => format!("the keys knew of {}", counted(*known, "frame")),
            };
            format!("the log was gone on with as it was found; {knew}, and what came before this is given up")
        }
        Event::Configured { changed, .. } => format!("{} {}", changed.join(", "), done(logged)),
        Event::Rekeyed(Rekeyed { from, to, .. }) => match &logged.objection {
            None => format!("the erasure key {}, from {from} to {to}", done(logged)),
            Some(why) => format!("the erasure key {}, from {from}; but {why}", done(logged)),
        },
        Event::Erased { numbers, .. } => {
            format!("data subject {}; {}", list(numbers), order_to_text(logged))
        }
        Event::Held { number, .. } => format!("data subject {number}; {}", order_to_text(logged)),
        Event::Released { number, held, .. } => {
            format!("data subject {number}, held in frame {held}; {}", order_to_text(logged))
        }
        Event::Exported(record) => {
            let chosen = match &record.filters[..] {
                [] => "everything".to_owned(),
                filters => format!("by {}", filters.join(", ")),
            };
            format!("{} as {}, {chosen}", counted(record.entries, "entry"), record.format)
        }
        _ => String::new(),
    }
}

/// How many entries were dropped, when, and why.
fn dropped_to_text(dropped: &Dropped) -> String {
    let Dropped { entries, exact, set_aside, from, to, reason, .. } = dropped;
    let least = if *exact { "" } else { "at least " };
    let set_aside = match set_aside {
        0 => String::new(),
        _ => format!(", {set_aside} of them set aside"),
    };
    let (from, to) = (time(*from), time(*to));
    format!("{least}{} dropped between {from} and {to}{set_aside}: {reason}", counted(*entries, "entry"))
}

/// What became of a change.
fn done(logged: &LoggedEvent) -> &'static str {
    match logged.done {
        Some(true) => "changed",
        Some(false) => "was to be changed, and was not",
        None => "is to be changed with the next epoch",
    }
}

fn order_to_text(logged: &LoggedEvent) -> String {
    let said = ordered(logged).map_or_else(
        || "without an order".to_owned(),
        |(when, reason)| {
            let reason = reason.map_or_else(String::new, |reason| format!(", {reason}"));
            format!("ordered {}{reason}", time(when))
        },
    );
    match &logged.objection {
        None => said,
        Some(why) => format!("{said}; but {why}"),
    }
}

/// When it was ordered, and why, where that is public.
fn ordered(logged: &LoggedEvent) -> Option<(u64, Option<&str>)> {
    let erasure = logged.order.as_ref().map(|order| (order.seconds, order.reason.as_deref()));
    erasure.or(logged.hold_order.as_ref().map(|order| (order.seconds, None)))
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[derive(Serialize)]
struct EventJson<'a> {
    frame: u64,
    time: String,
    /// As the log has it, by the names of the format.
    #[serde(flatten)]
    event: Told<'a>,
    /// Of a change of the erasure key: what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    /// Of a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<Option<bool>>,
    /// Of an erasure, a hold or a release.
    #[serde(skip_serializing_if = "Option::is_none")]
    ordered: Option<OrderJson<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Told<'a> {
    Event(&'a Event),
    Invalid { event: &'static str, detail: &'a str },
}

#[derive(Serialize)]
struct OrderJson<'a> {
    time: Option<String>,
    reason: Option<&'a str>,
    /// Whether verification objects to nothing: the erasure key of that time signed it, the event is as it says, and nobody who was erased was
    /// held.
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

impl<'a> From<&'a LoggedEvent> for EventJson<'a> {
    fn from(logged: &'a LoggedEvent) -> Self {
        let event = match &logged.event {
            Ok(event) => Told::Event(event),
            Err(why) => Told::Invalid { event: unreadable(logged), detail: why },
        };
        let order = ordered(logged);
        let is_ordered =
            matches!(logged.event, Ok(Event::Erased { .. } | Event::Held { .. } | Event::Released { .. }));
        let ordered = is_ordered.then(|| OrderJson {
            time: order.map(|(when, _)| time(when)),
            reason: order.and_then(|(_, reason)| reason),
            ok: logged.objection.is_none(),
            detail: logged.objection.as_deref(),
        });
        let is_change = matches!(logged.event, Ok(Event::Configured { .. } | Event::Rekeyed(_)));
        let done = is_change.then_some(logged.done);
        let rekeyed = matches!(logged.event, Ok(Event::Rekeyed(_)));
        let detail = logged.objection.as_deref().filter(|_| rekeyed);
        EventJson { frame: logged.frame, time: time(logged.time), event, detail, done, ordered }
    }
}
