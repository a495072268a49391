//! The pin of a log that is opened for writing: what is there is looked at and compared before anything is written, and is made,
//! remembered and advanced after that. The newest checkpoint that the log's witnesses have cosigned is compared as a pin is, and so is the
//! head in `checkpoint.cose`, as far as the log has so many frames.
//!
//! Invariants:
//! - nothing is adopted of a log that ends before its pin or `checkpoint.witnessed`, or that does not begin with their frames;
//! - the pin is there before the key directory remembers it, so that no crash leaves one that is remembered and missing;
//! - one that the key directory remembers and that is missing is never made again by opening the log.

use crate::format::config::{self, LogConfig};
use crate::format::files;
use crate::keys::settings;
use crate::scan::checkpoint::trusted_checkpoint;
use crate::scan::cose;
use crate::scan::cosignatures;
use crate::scan::earlier::Earlier;
use crate::scan::pin::{Pin, PinFile};
use crate::scan::trust::Trust;
use crate::write::checkpoint::signed_note;
use crate::write::kept_pin::KeptPin;
use crate::write::recover::Edge;
use bulla_crypto::environment::Environment;
use bulla_crypto::signing::SigningKey;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, ErrorKind, Paths, Result, Store};
use bulla_text::spelling::counted;
use std::io;
use std::path::Path;

/// A pin that was looked at. Nothing was written.
pub(crate) struct PinAtHand {
    pin: Pin,
    /// `None` where there is none yet.
    head: Option<TreeHead>,
    /// Whether the key directory knows of it.
    remembered: bool,
}

impl PinAtHand {
    /// Looks at the pin that was given, or else at the one that the key directory remembers, if there is either.
    ///
    /// # Errors
    /// `Refused` where it is no pin or that of another log, where it is missing and remembered, where the key directory
    /// remembers another one, and where it lies in the log's directory or among its keys; `Unavailable` where it cannot be read.
    pub(crate) fn look(
        given: Option<&Path>,
        (log, keys): (&dyn Store, &dyn Store),
        config: &LogConfig,
        environment: &Environment,
    ) -> Result<Option<Self>> {
        let host = settings::load(keys)?;
        let remembered = host.pinned();
        if let (Some(given), Some(remembered)) = (given, remembered)
            && given != remembered
        {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the log is pinned at {}, as its keys in {} remember, and the pin {} was named: name that one or none, or have \
                     the log pinned at the other one with `bulla config DIR set pin {}`",
                    remembered.display(),
                    keys.describe(""),
                    given.display(),
                    given.display()
                ),
            ));
        }
        let Some(path) = given.or(remembered) else { return Ok(None) };
        let pin = open(path, (log, keys), environment)?;
        let head = match pin.read(config.own_keys())? {
            PinFile::Head(head) => Some(head),
            PinFile::Foreign(why) => return Err(Error::new(ErrorKind::Refused, why)),
            PinFile::Nothing if remembered.is_some() => {
                let remember = format!(", and the log's keys in {} remember it", keys.describe(""));
                return Err(pin.refuse_gone(&remember));
            }
            PinFile::Nothing => None,
        };
        Ok(Some(PinAtHand { pin, head, remembered: remembered.is_some() }))
    }

    /// The tree that the log has to go on from; `None` where there is no pin yet.
    fn earlier(&self) -> Option<Earlier> {
        self.head.map(|head| self.pin.earlier(head))
    }

    /// Makes the pin, of the log's checkpoint, where there is none, and has the key directory remember it. What speaks against the
    /// log was asked.
    ///
    /// # Errors
    /// `Unavailable` where one of these cannot be written, `Locked` where somebody changes the settings at the same time.
    pub(crate) fn take_up(
        self,
        (log, keys): (&dyn Store, &dyn Store),
        (config, signing): (&LogConfig, &SigningKey),
        signed: TreeHead,
    ) -> Result<KeptPin> {
        if self.head.is_none() {
            self.pin.make(signed_note(&config.origin, signed.size, signed.root, signing)?.as_bytes())?;
        }
        if !self.remembered {
            let _lock = log.lock(config::LOCK).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => Error::new(
                    ErrorKind::Locked,
                    format!("somebody else is changing {}: try again", log.describe(config::FILE)),
                ),
                _ => Error::io(format!("locking {}", log.describe(config::LOCK)), error),
            })?;
            settings::remember_pin(keys, self.pin.path())?;
        }
        Ok(KeptPin::new(self.pin, self.head.unwrap_or(signed), self.head.is_none()))
    }
}

/// Compares what is known of the log's earlier trees with what would be gone on with, a log whose checkpoint signs `signed` and that ends
/// with `edge`, behind frame `next`: the pin, and the newest checkpoint that the log's witnesses have cosigned. Of the latter the signature
/// of the log's key is what counts, whatever became of its witnesses and their policy since: it says that the log had so many frames. Returns
/// whether `checkpoint.cose` is damaged, so that publishing makes it anew.
///
/// # Errors
/// `Tampered` where the log ends before one of them does, or does not begin with its frames; `Unavailable` where a file cannot be read.
pub(crate) fn compare(
    pin: Option<&PinAtHand>,
    (log, config): (&dyn Store, &LogConfig),
    signed: TreeHead,
    (edge, next): (&Edge, u64),
) -> Result<bool> {
    let witnessed = cosignatures::read(log, config, files::WITNESSED)?
        .map(|(_, head)| Earlier { name: log.describe(files::WITNESSED), head });
    let name = log.describe("");
    let known = pin.and_then(PinAtHand::earlier).into_iter().chain(witnessed).collect::<Vec<_>>();
    for earlier in &known {
        if next < earlier.head.size {
            return Err(Error::tampered(format!(
                "{name} ends after {}, but {}; run `bulla verify`",
                counted(next, "frame"),
                earlier.is_ahead()
            )));
        }
    }
    let cose = cose::read(log)?.map(|read| read.and_then(|head| cose::by_log(head, config)));
    // A copy that is made beside a writer may have one of more frames than the log.
    let of_cose = cose.as_ref().and_then(|cose| cose.as_ref().ok()).filter(|cose| cose.size() <= next);
    let of_cose = of_cose.map(|cose| Earlier {
        name: log.describe(files::COSE_CHECKPOINT),
        head: TreeHead { size: cose.size(), root: cose.root() },
    });
    for earlier in known.into_iter().chain(of_cose) {
        match edge.root_at(earlier.head.size) {
            Some(root) if root == earlier.head.root => {}
            Some(_) => {
                return Err(Error::tampered(format!("{name}: {}; run `bulla verify`", earlier.is_other())));
            }
            None => earlier.require_beginning(log, signed)?,
        }
    }
    Ok(cose.is_some_and(|cose| cose.is_err()))
}

/// The pin at a path, which lies neither in the log's directory nor among its keys: it would be put back with them.
///
/// # Errors
/// `Refused` where it does.
pub(crate) fn open(
    path: &Path,
    (log, keys): (&dyn Store, &dyn Store),
    environment: &Environment,
) -> Result<Pin> {
    refuse_inside(log, path)?;
    refuse_inside(keys, path)?;
    Ok(Pin::at(path, environment.pins.clone(), environment.clock.clone()))
}

/// Makes a pin of the log's checkpoint where there is none. Returns how many frames it covers, where it was made.
///
/// # Errors
/// As [`PinAtHand::look`] and [`PinAtHand::take_up`]; `Tampered` where the checkpoint is not signed by the log's key.
pub(crate) fn make_where_missing(
    path: &Path,
    (log, keys): (&dyn Store, &dyn Store),
    config: &LogConfig,
    environment: &Environment,
) -> Result<Option<u64>> {
    let pin = open(path, (log, keys), environment)?;
    match pin.read(config.own_keys())? {
        PinFile::Head(_) => Ok(None),
        PinFile::Foreign(why) => Err(Error::new(ErrorKind::Refused, why)),
        PinFile::Nothing => {
            let signed = trusted_checkpoint(log, config, &Trust::default())?;
            pin.make(&signed.note)?;
            Ok(Some(signed.checkpoint.size))
        }
    }
}

/// That a pin does not lie in a directory, nor, of a log on several paths, on one of these.
///
/// # Errors
/// `Refused` where it does.
pub(crate) fn refuse_inside(store: &dyn Store, path: &Path) -> Result<()> {
    let refused = |name: String| {
        Error::new(
            ErrorKind::Refused,
            format!(
                "{}, the pin, lies in {name}, with which it would be put back: keep it on another disk or host",
                path.display()
            ),
        )
    };
    if is_inside(store, path) {
        return Err(refused(store.describe("")));
    }
    let on_paths = store.paths().map_or_else(Vec::new, Paths::all);
    let inside = on_paths.iter().find(|on_path| is_inside(&***on_path, path));
    inside.map_or(Ok(()), |on_path| Err(refused(on_path.describe(""))))
}

#[expect(clippy::disallowed_methods, reason = "only paths without links tell whether one lies in the other")]
fn is_inside(store: &dyn Store, path: &Path) -> bool {
    let inside =
        |held: &Path| Some(path.parent()?.canonicalize().ok()?.starts_with(held.canonicalize().ok()?));
    let held = store.directory().and_then(|directory| directory.held_path().ok());
    held.and_then(|held| inside(&held)).unwrap_or(false)
}
