//! `bulla restore`.

use crate::append::{tell_differences, tell_resumed};
use crate::exit::{Exit, Failure};
use crate::identity::Identities;
use crate::interrupt;
use crate::log_paths::LogPaths;
use crate::lost_frames::LostFramesJson;
use crate::output::{self, print, print_json};
use crate::terminal;
use bulla::text::spelling::counted;
use bulla::{CutErasure, Extent, Outlook};
use serde::Serialize;
use std::path::PathBuf;

/// Go on with keys that are older than the log, or a part of which is lost.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Keeps all that the log has. Erases again whom the log says that it erased, and goes on with
numbers of data subjects that nobody had: the blocks say which, to an identity that opens
them. The keys of people who were new since the backup are lost. What it comes to is told
before anything is changed.

Where both directories are from backups of the same time, neither knows of what came after:
whoever was erased since then is back until their orders are given again, and whoever was
held since then is not held any more. Give the orders to hold and to release again first,
with `bulla hold DIR add|release --authority ORDER`, then `bulla erase DIR --again ORDER...`.

Example:
  bulla restore audit --identity officer.age --dry-run
  bulla restore audit --identity officer.age
  bulla restore audit --identity officer.age --seal-key seal.key    # seal.state is lost")]
pub(crate) struct Restore {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    identities: Identities,

    /// The seal key, from which `seal.state` is made anew where it is missing or, with `--older-log`, says more
    #[arg(long, value_name = "FILE")]
    seal_key: Option<PathBuf>,

    /// Make a new vault in the place of one that is lost for good, and with it the keys of everybody logged
    #[arg(long)]
    new_vault: bool,

    /// Go on with a log that ends before what its keys know of: what is missing is given up, and is no part of it any more if found
    #[arg(long)]
    older_log: bool,

    /// Go on with a vault that may not have followed what is given up: nothing is read under its keys, for good
    #[arg(long)]
    older_vault: bool,

    /// Tell what it comes to, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Restore {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        // That there is no log is told before that there is no identity.
        let info = bulla::info_of(self.place.log()?)?;
        let has_keys = info.erasure;
        let mut restore = match has_keys {
            true => bulla::Restore::new(self.place.directory(), self.identities.reader(&self.place)?),
            false => bulla::Restore::without_identity(self.place.directory()),
        };
        // Nobody makes it anew without having said so: an older one says more of the log.
        if let Some(key) = &self.seal_key
            && let Some(secret) = self.place.seal_key(Some(key))?
        {
            restore = restore.seal_key(secret.text);
        }
        if self.new_vault {
            restore = restore.new_vault();
        }
        if self.older_log {
            restore = restore.older_log();
        }
        if self.older_vault {
            restore = restore.older_vault();
        }
        restore = restore.keys(self.place.keys()).environment(terminal::environment());
        if self.dry_run {
            let outlook = restore.look()?;
            let told = match self.json {
                true => print_json(&Told::new(&outlook, None)),
                false => print(&describe(&outlook, has_keys)),
            };
            return told.map(|()| Exit::Done);
        }
        let options = [
            (self.new_vault, " --new-vault"),
            (self.older_log, " --older-log"),
            (self.older_vault, " --older-vault"),
        ];
        let options =
            options.iter().filter(|(given, _)| *given).map(|(_, option)| *option).collect::<String>();
        interrupt::finish_first(self.json, format!("`bulla restore DIR{options}`, given again,"), || ())?;
        let json = self.json;
        let restored = restore
            .when_looked(move |outlook| {
                if !json && outlook.needed {
                    // Nobody reads it where this fails, and the end is told all the same.
                    let _ = print(&describe(outlook, has_keys));
                }
            })
            .run()?;
        tell_differences(&restored.hold_differences);
        tell_resumed(restored.resumed.as_ref());
        let lost = restored.lost;
        let what = match has_keys {
            true => format!("taken up; the keys of {} are lost", counted(lost, "data subject")),
            false => "taken up".to_owned(),
        };
        let needed = restored.outlook.needed;
        let told = match self.json {
            true => print_json(&Told::new(&restored.outlook, Some(lost))),
            false if needed => print(&format!("{what}\n")),
            false => print(&describe(&restored.outlook, has_keys)),
        };
        told.map(|()| Exit::Done).map_err(|failure| if needed { failure.but_done(what) } else { failure })
    }
}

/// What is found before anything is changed, as lines; of a log that `has_keys` of data subjects also what becomes of those.
fn describe(outlook: &Outlook, has_keys: bool) -> String {
    let Outlook {
        known,
        log,
        lost_frames,
        may_lose_more,
        vault_behind,
        lost_with_path,
        erased,
        finishes,
        lost,
        unsigned_entries,
        makes_seal_state,
        needed,
        ..
    } = outlook;
    let mut lines = vec![
        match (makes_seal_state, known.frames) {
            (true, 0) => {
                "seal.state is missing, and is made anew from the seal key: compare the log with the newest \
                     checkpoint that is kept elsewhere"
                    .to_owned()
            }
            (true, _) => {
                format!(
                    "seal.state speaks of {}, and is made anew from the seal key",
                    counted(known.frames, "frame")
                )
            }
            (false, _) => format!("the key directory knows of {}", extent(known)),
        },
        format!("the log has {}; all of that is kept", extent(log)),
    ];
    if *lost_frames > 0 {
        // A seal state that speaks of them has the vault be the newest.
        let erased = match (vault_behind, *makes_seal_state && known.frames > 0) {
            (true, _) => "",
            (false, true) => ", and whom only they told of as erased stays so",
            (false, false) => {
                ", and whom only they told of as erased stays so where the vault that is there is the newest, which nothing else tells"
            }
        };
        let more = match (counted(*lost_frames, "frame"), may_lose_more) {
            (frames, true) => format!("at least {frames}"),
            (frames, false) => frames,
        };
        lines.push(match has_keys {
            true => format!(
                "the keys knew of {more} more, which are given up: whoever was held or released there is what `holds` says{erased}"
            ),
            false => format!("the keys knew of {more} more, which are given up"),
        });
        lines.push(
            "what `bulla config` and `bulla keys` changed of the log there is undone: look who its recipients are, and which erasure key counts"
                .to_owned(),
        );
    }
    if *may_lose_more {
        lines.push(match lost_frames {
            0 => "the newest part of the log is given up, and nothing tells how many frames that is".to_owned(),
            _ => "the log does not tell of a part that was given up before, as the keys know: where it is a copy of that part, it has \
                  nothing of what came in its place, and that is lost, too"
                .to_owned(),
        });
    }
    if *vault_behind {
        lines.push(
            "the vault that is there may not have followed what is given up now, or was given up before, and whoever was erased in that may have a key in it: nothing is \
             read under its keys from then on, for good. Bring the newest vault first; where none is left, say `--older-vault`"
                .to_owned(),
        );
    }
    if !lost_with_path.is_empty() {
        lines.push(match has_keys {
            true => format!(
                "{lost_with_path}: whom they told of as erased, and which numbers data subjects were given there, is not known"
            ),
            false => lost_with_path.to_string(),
        });
    }
    if !erased.is_empty() {
        let numbers = erased.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "erased data subjects whose keys are back, to be destroyed again, by number: {numbers}"
        ));
    }
    if let Some(CutErasure { numbers, destroyed, .. }) = finishes {
        let unless = if *destroyed { "" } else { ", unless somebody of them is held" };
        let numbers = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "data subjects whose erasure was cut short, which is finished{unless}, by number: {numbers}"
        ));
    }
    if *unsigned_entries > 0 && *needed {
        let keys = match has_keys {
            true => ": which of their data subjects' keys are missing is told when they are taken up",
            false => "",
        };
        lines.push(match unsigned_entries {
            1 => format!("1 more entry is not signed yet, and is kept{keys}"),
            more => format!("{more} more entries are not signed yet, and are kept{keys}"),
        });
    }
    if *lost > 0 {
        lines.push(format!("missing keys of the log's data subjects: {lost}"));
    }
    if !needed {
        lines.push(NOT_NEEDED.to_owned());
        if has_keys {
            lines.push(NOT_LOOKED_AT.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// What is said where there is nothing to take up.
const NOT_NEEDED: &str = "nothing needs to be restored, and nothing is changed: seal.state is there, and no vault is older than the log";

/// What that does not say of a log that has keys of data subjects.
const NOT_LOOKED_AT: &str = "whether the vault is whole was not looked at: `bulla verify` tells";

fn extent(Extent { frames, entries, time, .. }: &Extent) -> String {
    let time = time.map_or_else(String::new, |time| format!(", signed up to {}", output::time(time)));
    format!("{} with {}{time}", counted(*frames, "frame"), counted(*entries, "entry"))
}

/// What is told in JSON.
#[derive(Serialize)]
struct Told {
    known: ToldExtent,
    log: ToldExtent,
    /// Frames that the keys know of, and the log has not.
    lost_frames: u64,
    /// Whether more may be lost.
    may_lose_more: bool,
    /// Whether nothing tells that the vault has followed what is given up.
    vault_behind: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_with_path: Option<LostFramesJson>,
    /// Data subjects who were erased, and whose keys were back.
    erased: Vec<u64>,
    /// Data subjects whose erasure was cut short, and is finished.
    finishes: Vec<u64>,
    lost: u64,
    /// Entries whose data subjects were not looked at for `lost`.
    unsigned_entries: u64,
    makes_seal_state: bool,
    /// Whether anything is to be restored.
    needed: bool,
    /// Whether it was done.
    done: bool,
}

#[derive(Serialize)]
struct ToldExtent {
    frames: u64,
    entries: u64,
    time: Option<String>,
}

impl Told {
    /// `lost` as it was found in the end.
    fn new(outlook: &Outlook, lost: Option<u64>) -> Self {
        let extent = |Extent { frames, entries, time, .. }: Extent| ToldExtent {
            frames,
            entries,
            time: time.map(output::time),
        };
        Told {
            known: extent(outlook.known),
            log: extent(outlook.log),
            lost_frames: outlook.lost_frames,
            may_lose_more: outlook.may_lose_more,
            vault_behind: outlook.vault_behind,
            lost_with_path: LostFramesJson::of(&outlook.lost_with_path),
            erased: outlook.erased.clone(),
            finishes: outlook.finishes.as_ref().map_or_else(Vec::new, |cut| cut.numbers.clone()),
            lost: lost.unwrap_or(outlook.lost),
            unsigned_entries: outlook.unsigned_entries,
            makes_seal_state: outlook.makes_seal_state,
            needed: outlook.needed,
            done: lost.is_some(),
        }
    }
}
