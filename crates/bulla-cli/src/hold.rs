//! `bulla hold`.

use crate::append;
use crate::authority::{Authority, authority, without_erasure};
use crate::exit::{Exit, Failure};
use crate::group_keys;
use crate::interrupt;
use crate::log_paths::LogPaths;
use crate::lost_frames::{LostFramesJson, tell_unknown_events};
use crate::nothing_found::{self, SubjectJson};
use crate::output::{on_line, print, print_json, time};
use crate::terminal;
use bulla::config;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::order::order_digest;
use bulla::{
    AskedSubject, AskedSubjects, Hold as Held, HoldOrder, HoldUnderWay, Log, LogId, Reader, ReleaseOrder,
};
use serde::Serialize;
use std::path::PathBuf;

/// Hold data subjects, so that they are not erased for now.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla hold DIR add --subject S --by NAME --reason TEXT [--authority FILE]\n       \
                      bulla hold DIR release --subject S --by NAME --reason TEXT [--authority FILE]\n       \
                      bulla hold DIR add|release --authority ORDER\n       \
                      bulla hold DIR list [--subject S] [--json]",
    after_help = "\
Who holds, and why, is kept beside the log's keys and told to whoever tries to erase; the log
itself tells only that a data subject was held, and released, by number, and that it was ordered
so with the log's erasure key: `bulla verify` finds a hold or a release that was not. With the
key at hand a hold is released in the NAME that holds; an order to release names the hold, and
may be by another. Where log and key directory differ, the log counts: `list` has
what it says, says so and ends with exit code 1, and whoever opens the log next, with any command
that writes, brings the key directory in line. So it finishes a hold or a release that was cut
short: `list` says that it is under way, which is no difference.

Examples:
  bulla hold audit add --subject user_42 --by legal --reason 'case 4711'
  bulla hold audit add --authority hold.json        # what `bulla order --hold` made"
)]
pub(crate) struct Hold {
    #[command(flatten)]
    place: LogPaths,

    /// What to do
    #[arg(value_enum)]
    action: Action,

    /// The data subject; of `list` those whose holds are asked for, repeatable
    #[arg(long = "subject", value_name = "S")]
    subjects: Vec<String>,

    /// Who holds: a person or an office
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    /// Why, in one line; it stays confidential
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The log's erasure key, or an order that was made with it [default: erasure.key of the keys]
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Add,
    Release,
    List,
}

impl Hold {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        self.place.refuse_other_keys()?;
        match self.action {
            Action::List => self.list(),
            Action::Add => {
                let order = self.order(HoldOrder::parse, |key, log| self.hold_order(key, log))?;
                let (added, closed) = self.change(|writer| writer.hold(&order), |log| log.hold(&order))?;
                self.tell(if added { "held" } else { "held before, by the same and for that reason" }, closed)
            }
            Action::Release => {
                let order = self.order(ReleaseOrder::parse, |key, log| self.release_order(key, log))?;
                let ((), closed) = self.change(|writer| writer.release(&order), |log| log.release(&order))?;
                self.tell("released", closed)
            }
        }
    }

    /// The order: the one that was made elsewhere, or one that is made now, with the key.
    fn order<T>(
        &self,
        parse: impl FnOnce(&str) -> bulla::Result<T>,
        make: impl FnOnce(&SigningKey, LogId) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // That there is no log, or nobody to hold in it, is told before that there is no key.
        let log = config::load_of_log(&*self.place.log()?)?.0;
        if !log.erasure {
            return Err(without_erasure());
        }
        match authority(&self.place, (self.authority.as_deref(), ""), parse)? {
            Authority::Key(key) => make(&key, log.id),
            Authority::Order(order, _)
                if self.subjects.is_empty() && self.by.is_none() && self.reason.is_none() =>
            {
                Ok(order)
            }
            Authority::Order(_, path) => {
                let path = path.display();
                let message = format!(
                    "{path} is an order, which says whom, by whom and why: leave out --subject, --by and --reason"
                );
                Err(Failure::usage(message))
            }
        }
    }

    fn hold_order(&self, key: &SigningKey, log: LogId) -> Result<HoldOrder, Failure> {
        let (subject, because) = self.whom()?;
        Ok(HoldOrder::give(key, log, subject, because, &Environment::default())?)
    }

    /// An order to release what `--by` holds, which the key directory has.
    fn release_order(&self, key: &SigningKey, log: LogId) -> Result<ReleaseOrder, Failure> {
        let (_, because) = self.whom()?;
        let asked = self.ask()?.subjects;
        let held = bulla::holds(self.place.directory(), self.place.keys())?.holds;
        let refused = |message: String| Failure::new(Exit::Refused, message);
        // What an error says is kept where names must not be.
        let nobody = |asked: &AskedSubject| refused(format!("the data subject {}", asked.standing));
        if let Some(asked) = asked.iter().find(|asked| asked.number.is_none()) {
            return Err(nobody(asked));
        }
        let is_theirs = |hold: &&Held| {
            hold.by == because.0 && asked.iter().any(|asked| asked.number == Some(hold.number))
        };
        let hold = held.iter().find(is_theirs);
        let hold =
            hold.ok_or_else(|| refused(format!("there is no such hold by `{}`", on_line(because.0))))?;
        if held.iter().filter(|other| order_digest(&other.order) == order_digest(&hold.order)).count() > 1 {
            let frame = hold.frame.unwrap_or_default();
            return Err(refused(format!(
                "the log tells of several holds by the order in frame {frame}, which was given for one: an order to release \
                 one of them might release another; `bulla verify` tells which nobody ordered"
            )));
        }
        Ok(ReleaseOrder::give(key, log, &hold.order, because, &Environment::default())?)
    }

    /// Has the writer do it, or does it with the log opened for that; also, how closing it went.
    fn change<T>(
        &self,
        ask: impl Fn(&Client) -> bulla::Result<T>,
        alone: impl Fn(&Log) -> bulla::Result<T>,
    ) -> Result<(T, bulla::Result<()>), Failure> {
        interrupt::finish_first(self.json, "`bulla hold DIR list`", || ())?;
        let alone = || {
            let log = append::open(&self.place, terminal::environment())?;
            let done = alone(&log)?;
            Ok((done, log.close()))
        };
        Ok(through_writer(self.place.keys(), |writer| Ok((ask(writer)?, Ok(()))), alone)?)
    }

    /// The data subject; and who says so, and why.
    fn whom(&self) -> Result<(&str, (&str, &str)), Failure> {
        let [subject] = &self.subjects[..] else {
            return Err(Failure::usage("name the data subject with --subject, one at a time"));
        };
        let by = self.by.as_deref().ok_or_else(|| Failure::usage("name who holds with --by"))?;
        let reason = self.reason.as_deref().ok_or_else(|| Failure::usage("say why with --reason"))?;
        Ok((subject, (by, reason)))
    }

    fn tell(&self, what: &str, closed: bulla::Result<()>) -> Result<Exit, Failure> {
        let told = closed.map_err(Failure::from).and_then(|()| match self.json {
            true => print_json(&serde_json::json!({ "done": what })),
            false => print(&format!("{what}\n")),
        });
        told.map(|()| Exit::Done).map_err(|failure| failure.but_done(what))
    }

    fn list(&self) -> Result<Exit, Failure> {
        if self.by.is_some() || self.reason.is_some() || self.authority.is_some() {
            return Err(Failure::usage(
                "`list` takes no --by, --reason or --authority: --subject alone chooses",
            ));
        }
        let mut held = bulla::holds(self.place.directory(), self.place.keys())?;
        let asked = match self.subjects.is_empty() {
            true => None,
            false => Some(self.ask()?),
        };
        if let Some(asked) = &asked {
            held.holds.retain(|hold| asked.subjects.iter().any(|it| it.number == Some(hold.number)));
        }
        let differences = held.differences.iter().map(ToString::to_string).collect::<Vec<_>>();
        let under_way = held.under_way.iter().map(|it| told_under_way(it, held.ahead)).collect::<Vec<_>>();
        match self.json {
            true => {
                let mut listed = serde_json::json!({
                    "holds": held.holds.iter().map(HoldJson::from).collect::<Vec<_>>(),
                    "differences": differences,
                    "under_way": under_way,
                    "subjects": asked.iter().flat_map(|asked| &asked.subjects).map(asked_json).collect::<Vec<_>>(),
                });
                if let Some(lost) = LostFramesJson::of(&held.lost) {
                    listed["lost_with_path"] = serde_json::json!(lost);
                }
                print_json(&listed)
            }
            false if asked.is_some() && held.holds.is_empty() => {
                note!("0 holds");
                Ok(())
            }
            false => print(&table(&held.holds)),
        }?;
        let not_known = asked.iter().flat_map(|asked| &asked.subjects).filter(|it| it.number.is_none());
        not_known.for_each(nothing_found::tell_of);
        differences.iter().chain(&under_way).for_each(|what| note!("{what}"));
        tell_unknown_events(&held.lost);
        let keys_lost = asked.is_some_and(|asked| asked.keys_lost);
        if keys_lost {
            note!(
                "{KEYS_LOST}. {}",
                if held.ahead { BRING_THE_LOG } else { "Restore the vault from a backup" }
            );
        }
        Ok(if differences.is_empty() && !keys_lost { Exit::Done } else { Exit::Violation })
    }

    /// The numbers of the data subjects that were named.
    fn ask(&self) -> Result<AskedSubjects, Failure> {
        let reader = Reader::open_store(self.place.log()?)?.group_keys(group_keys::names(&self.place)?);
        Ok(reader.numbers_of(&self.subjects.iter().map(String::as_str).collect::<Vec<_>>())?)
    }
}

/// A hold, for a program.
#[derive(Serialize)]
pub(crate) struct HoldJson {
    number: u64,
    by: String,
    reason: String,
    since: String,
    frame: Option<u64>,
    releasing: bool,
    order: String,
}

impl From<&Held> for HoldJson {
    fn from(hold: &Held) -> Self {
        let releasing = hold.is_releasing();
        let Held { number, by, reason, since, frame, order, .. } = hold.clone();
        HoldJson { number, by, reason, since: time(since), frame, releasing, order }
    }
}

/// What the file of holds has and the log does not tell of; `ahead` says that the key directory knows of more frames than the log has.
fn told_under_way(under_way: &HoldUnderWay, ahead: bool) -> String {
    let what = match under_way {
        HoldUnderWay::Hold { number, by } if ahead => format!("{by} holds data subject {number}"),
        HoldUnderWay::Release { number, by } if ahead => {
            format!("{by} releases data subject {number}, who is held as far as the log tells")
        }
        it => return it.to_string(),
    };
    format!(
        "{what}, and the log does not tell of that: the file of holds is ahead of it. Either that is under way, or the log is older than \
         its keys, or has lost its end: `bulla verify` tells which"
    )
}

const KEYS_LOST: &str = "keys are lost that the log does not say were erased: a hold on a number without a key may be on any of \
                         these data subjects";

/// What there is to do about that where the key directory knows of more frames than the log has.
const BRING_THE_LOG: &str = "The log is older than its keys, or has lost its end, which may tell that they were erased: bring back the log \
                             that belongs to the vault";

/// A data subject that was asked for, for a program; in words where nobody has the name.
fn asked_json(asked: &AskedSubject) -> serde_json::Value {
    let mut json = serde_json::json!(SubjectJson::from(asked));
    if let Some(number) = asked.number {
        json["number"] = number.into();
        json["detail"] = "has a number here".into();
    }
    json
}

fn table(holds: &[Held]) -> String {
    if holds.is_empty() {
        return "nobody is held\n".to_owned();
    }
    let by = holds.iter().map(|hold| hold.by.chars().count()).max().unwrap_or_default().max(2);
    let mut text = format!("{:>12}  {:<20}  {:<by$}  reason\n", "data subject", "since", "by");
    for hold in holds {
        let since = time(hold.since);
        text.push_str(&format!("{:>12}  {since:<20}  {:<by$}  {}\n", hold.number, hold.by, hold.reason));
    }
    text
}
