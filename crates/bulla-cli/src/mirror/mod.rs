//! `bulla mirror`: a session after the other, each of which follows the log until the line, or a disk, fails.
//!
//! Nothing has to be brought to an end when a signal comes: a mirror that is killed verifies as it is, and is gone on with. So the
//! first one ends it.

mod destination;
mod far_side;
mod patient;
mod receiving;
mod told;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::log_paths::{Also, inside};
use crate::public_key::ed25519_log_key;
use bulla::store::{FileSystem, Store};
use bulla::{ErrorKind, VerifierKey, mirror};
use destination::Destination;
use far_side::FarSide;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use told::Teller;

/// Time between two looks at the log.
const PAUSE: Duration = Duration::from_millis(100);
/// What is waited before the first new attempt; twice as long before each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// Attempts that come to nothing, one after the other, after which `--once` gives up.
const MOST_ATTEMPTS: u32 = 5;

/// Keep a copy of a log elsewhere, which verifies at every instant.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "bulla mirror [OPTIONS] DIR DEST\n       bulla mirror --receive PATH [--key VKEY]",
    after_help = "\
What arrives is compared with what the log's key has signed, frame by frame; the copy never goes
back, and never to another history. Keys and vault are not copied, nor what no checkpoint covers.
Ends when it is interrupted or killed, at any time: started again, it goes on.
DEST is a directory, HOST:PATH or ssh://[USER@]HOST[:PORT]/PATH, where `bulla` is installed, too.
The first attempt has to succeed; from then on what fails is tried again, after a second and more.

Examples:
  bulla mirror audit /mnt/backup/audit
  bulla mirror audit backup@vault.example.com:audit --key example.com/audit+0a1b2c3d+AaBb"
)]
pub(crate) struct Mirror {
    /// The log's directory
    #[arg(value_name = "DIR", required_unless_present = "receive")]
    directory: Option<PathBuf>,

    /// Where the copy lies
    #[arg(value_name = "DEST", required_unless_present = "receive")]
    destination: Option<String>,

    #[command(flatten)]
    also: Also,

    /// End once what is there now has arrived
    #[arg(long)]
    once: bool,

    /// The public key that the log must be signed by, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// What reaches the other host, with its own arguments
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    ssh: String,

    /// What is run there
    #[arg(long, value_name = "COMMAND", default_value = "bulla")]
    remote_bulla: String,

    /// Print how far it is as JSON, an object a line
    #[arg(long)]
    json: bool,

    /// Be that other side, on standard input and output: what ssh runs
    #[arg(long, value_name = "PATH", conflicts_with_all = ["directory", "destination", "also", "once", "json"])]
    receive: Option<PathBuf>,
}

impl Mirror {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let key = ed25519_log_key(
            self.key.as_deref(),
            "a mirror goes by the one that signs each of its checkpoints",
        )?;
        interrupt::exit_at_once()?;
        if let Some(path) = &self.receive {
            return receiving::receive(path, key);
        }
        let (Some(directory), Some(destination)) = (&self.directory, &self.destination) else {
            return Err(Failure::usage("name the log's directory, and where its copy is to lie"));
        };
        let parsed = Destination::parse(destination)?;
        bulla::config::load_of_log(&*self.source(directory)?)?;
        if let Destination::Here(path) = &parsed {
            refuse_inside(directory, path)?;
        }
        let mut teller = Teller::new(destination, self.json);
        let (mut failures, mut delay) = (0, FIRST_DELAY);
        loop {
            let failed = match self.follow(directory, &parsed, key.as_ref(), &mut teller) {
                Ok(()) => {
                    teller.finish()?;
                    return Ok(Exit::Done);
                }
                Err(failed) => failed,
            };
            if teller.has_gone_on() {
                (failures, delay) = (0, FIRST_DELAY);
            }
            failures += 1;
            let again = teller.has_begun() && !(self.once && failures > MOST_ATTEMPTS);
            if !again || !matches!(failed.kind(), ErrorKind::Unavailable | ErrorKind::Locked) {
                teller.clear();
                return Err(failed.into());
            }
            teller.lost(&format!("{failed}; trying again in {} s", delay.as_secs()))?;
            std::thread::sleep(delay);
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }

    /// The log, with all its paths.
    fn source(&self, directory: &Path) -> bulla::Result<Arc<dyn Store>> {
        bulla::open_log(directory, Some(&bulla::default_keys(directory)), self.also.paths())
    }

    /// Follows the log until something fails, or until all has arrived that is there, where that is asked for.
    fn follow(
        &self,
        directory: &Path,
        destination: &Destination,
        key: Option<&VerifierKey>,
        teller: &mut Teller,
    ) -> bulla::Result<()> {
        let source = self.source(directory)?;
        match destination {
            Destination::Here(path) => {
                let destination = Arc::new(FileSystem::new(path));
                let mut mirror = mirror::Mirror::open_stores(source, destination, key.cloned())?;
                teller.tell(&mirror.shipped());
                loop {
                    let shipped = mirror.poll(|shipped| teller.tell(shipped))?;
                    teller.tell(&shipped);
                    if self.once {
                        return Ok(());
                    }
                    std::thread::sleep(PAUSE);
                }
            }
            Destination::There(host) => {
                let mut far_side = FarSide::start(&self.ssh, host, &self.remote_bulla)?;
                let mut wait = |time| {
                    std::thread::sleep(time);
                    true
                };
                let mut told = |shipped: &mirror::Shipped| teller.tell(shipped);
                let mut sending =
                    mirror::wire::Sending { once: self.once, key, wait: &mut wait, told: &mut told };
                let (input, output) = far_side.line();
                let served = mirror::wire::serve(&*source, input, output, &mut sending);
                far_side.end(served)
            }
        }
    }
}

/// That log, keys and copy do not lie in each other.
fn refuse_inside(directory: &Path, destination: &Path) -> Result<(), Failure> {
    let keys = bulla::default_keys(directory);
    let own = [(directory, "the log"), (&*keys, "its keys")];
    match own.into_iter().find(|(own, _)| inside(destination, own) || inside(own, destination)) {
        None => Ok(()),
        Some((own, what)) => Err(Failure::usage(format!(
            "{} and {}, where {what} lies, are one in the other: mirror to a directory apart, best on another disk",
            destination.display(),
            own.display()
        ))),
    }
}
