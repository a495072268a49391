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
use crate::log_paths::Also;
use crate::public_key::ed25519_log_key;
use bulla::store::inside;
use bulla::store::{FileSystem, Store};
use bulla::{Error, ErrorKind, VerifierKey, mirror};
use destination::Destination;
use far_side::FarSide;
use std::io;
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
What fails before anything has arrived ends it; later that is tried again, after a second or more.

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

    /// Where the log's keys lie, which name its paths [default: DIR.keys]
    #[arg(long, value_name = "PATH")]
    keys: Option<PathBuf>,

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
    #[arg(long, value_name = "PATH", conflicts_with_all = ["directory", "destination", "keys", "also", "once", "json"])]
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
        self.check_keys(directory)?;
        bulla::config::load_of_log(&*self.source(directory)?)?;
        if let Destination::Here(path) = &parsed {
            refuse_inside((directory, &self.keys_of(directory)), path)?;
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

    fn keys_of(&self, directory: &Path) -> PathBuf {
        self.keys.clone().unwrap_or_else(|| bulla::default_keys(directory))
    }

    /// That what a key directory says of the log's paths can be read, where there is one and they are not named by hand: without it the
    /// copy would end where the log has gone on elsewhere.
    fn check_keys(&self, directory: &Path) -> Result<(), Failure> {
        let keys = self.keys_of(directory);
        let name = format!("the key directory {}", keys.display());
        match keys.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.keys.is_none() => return Ok(()),
            Err(error) => return Err(Failure::key_file(name, &error)),
            Ok(found) if !found.is_dir() => {
                return Err(Failure::io(name, &io::ErrorKind::NotADirectory.into()));
            }
            Ok(_) if !self.also.paths().is_empty() => return Ok(()),
            Ok(_) => {}
        }
        let store = FileSystem::new(&keys);
        let listed = store.list("").map_err(|error| Error::io(format!("reading {name}"), error));
        listed.and_then(|_| bulla::keys::settings::load(&store)).map(drop).map_err(|error| {
            let exit = error.kind().into();
            let message = format!(
                "{error}: its settings.toml and paths say where else the log may lie; let this user read these two, or, where it can \
                 read paths, name the log's other paths with --also"
            );
            Failure::new(exit, message)
        })
    }

    /// The log, with all its paths.
    fn source(&self, directory: &Path) -> bulla::Result<Arc<dyn Store>> {
        bulla::open_log(directory, Some(&self.keys_of(directory)), self.also.paths())
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
fn refuse_inside((directory, keys): (&Path, &Path), destination: &Path) -> Result<(), Failure> {
    let own = [(directory, "the log lies"), (keys, "its keys lie")];
    match own.into_iter().find(|(own, _)| inside(destination, own) || inside(own, destination)) {
        None => Ok(()),
        Some((own, what)) => Err(Failure::usage(format!(
            "{} and {}, where {what}, are one in the other: mirror to a directory apart, best on another disk",
            destination.display(),
            own.display()
        ))),
    }
}
