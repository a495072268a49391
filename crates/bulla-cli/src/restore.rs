//! `bulla restore`.

use crate::append::{tell_differences, tell_resumed};
use crate::exit::{Exit, Failure};
use crate::identity::Identities;
use crate::interrupt;
use crate::log_paths::LogPaths;
use crate::output::{print, print_json};
use crate::terminal;

/// Take up a key directory that was restored from a backup and is older than the log.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Erases again whom the log says that it erased, and goes on with numbers of data subjects that
nobody had: the blocks say which, to an identity that opens them. The keys of people who were
new since the backup are lost.

Example:
  bulla restore audit --identity officer.age")]
pub(crate) struct Restore {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    identities: Identities,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Restore {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        // That there is no log is told before that there is no identity.
        bulla::info(self.place.directory())?;
        let identity = self.identities.reader(&self.place)?;
        interrupt::finish_first(self.json, "`bulla restore DIR`, given again,", || ())?;
        let restore = bulla::Restore::new(self.place.directory(), identity).keys(self.place.keys());
        let restored = restore.environment(terminal::environment()).run()?;
        tell_differences(&restored.hold_differences);
        tell_resumed(restored.resumed.as_ref());
        let lost = restored.lost;
        let what = format!("taken up; the keys of {lost} data subjects are lost");
        let told = match self.json {
            true => print_json(&serde_json::json!({ "lost": lost })),
            false => print(&format!("{what}\n")),
        };
        told.map(|()| Exit::Done).map_err(|failure| failure.but_done(what))
    }
}
