//! The source's side of the line.

use super::claims::Claims;
use super::message::{Answer, FIRST, MOST_READ, Request, VERSION};
use crate::format::config::{self, MOST_WITNESSES, arriving};
use crate::format::files;
use crate::format::segment::{DIRECTORY, SegmentName};
use crate::mirror::Shipped;
use crate::scan::paths::not_there_to_copy;
use crate::scan::snapshot::unless_gone;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::hash::{Hash, Sha256};
use bulla_proof::tile;
use bulla_store::{Error, ErrorKind, Paths, Result, Store, StoreFile};
use std::io::{self, Read, Write};
use std::time::Duration;

/// So often it is looked whether the log has gone on.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a checkpoint that is replaced while it is looked at is looked at again.
const ATTEMPTS: usize = 64;

/// What the sender asks of the receiver, and does itself meanwhile.
pub struct Sending<'a> {
    /// Whether it ends once all has arrived that is there now.
    pub once: bool,
    /// The key that the log has to be signed by.
    pub key: Option<&'a VerifierKey>,
    /// Waits for so long; false where it was woken to end.
    pub wait: &'a mut dyn FnMut(Duration) -> bool,
    /// Is told what has arrived.
    pub told: &'a mut dyn FnMut(&Shipped),
}

/// Gives out the log in `source` to a receiver, until that has all of it or fails.
///
/// # Errors
/// Why the receiver failed, as it says it, or what is wrong with the log as this side sees it; `Unavailable` where the line did, or where it says what cannot be so: that more has arrived
/// than there is, or all before it has.
pub fn serve(
    source: &dyn Store,
    input: &mut dyn Read,
    output: &mut dyn Write,
    sending: &mut Sending<'_>,
) -> Result<()> {
    let failed = |error| Error::io("the line to the receiver", error);
    let key = sending.key.map(ToString::to_string).unwrap_or_default();
    let hello = Answer::Hello { version: VERSION, once: sending.once, key };
    hello.write(output).or_else(ended).map_err(failed)?;
    let mut open = None::<(String, Box<dyn StoreFile>)>;
    // Why the log, as this side sees it, was not given out just now: the receiver knows no more of it than the words.
    let mut refused = None;
    let mut claims = Claims::new(source);
    loop {
        let answer = match Request::read(input).map_err(failed)? {
            Request::State(shipped) => {
                if claims.take(&shipped)? {
                    (sending.told)(&shipped);
                }
                continue;
            }
            Request::Done => return claims.check_done(sending.once),
            Request::Failed { kind, message } => {
                let failed = refused.unwrap_or_else(|| heard(source, kind, &message));
                return unless_gone(source, Err(failed));
            }
            Request::Open { path } => opened(source, &path).map(|(file, answer)| {
                if let Answer::Opened { first, .. } = &answer
                    && path == files::CHECKPOINT
                {
                    claims.gives(first);
                }
                open = Some((path, file));
                answer
            }),
            Request::Read { offset, count, path } => read(source, &mut open, &path, offset, count),
            Request::List { path } => match path == DIRECTORY {
                true => source.list(&path).map(Answer::Names),
                false => Err(not_given(&path)),
            },
            Request::Wait { milliseconds, known } => {
                let time = Duration::from_millis(milliseconds.into());
                Ok(Answer::News(wait(source, known, time, sending.wait)))
            }
        };
        let answer = answer.unwrap_or_else(|error| {
            let failed = Answer::Failed { kind: error.kind(), message: error.to_string() };
            refused = error.downcast::<Error>().ok();
            failed
        });
        answer.write(output).or_else(ended).map_err(failed)?;
    }
}

/// What a receiver has against the log; of one that is not whole it does not know that paths are missing.
fn heard(source: &dyn Store, kind: ErrorKind, message: &str) -> Error {
    let not_there = not_there_to_copy(source);
    let more = match kind {
        ErrorKind::Tampered if !not_there.is_empty() => format!("; {not_there}"),
        _ => String::new(),
    };
    Error::new(kind, format!("the receiver: {message}{more}"))
}

/// A receiver that has ended takes nothing more. What it said before that tells why, so it is read on.
fn ended(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// Whether a path is one of what a mirror has.
fn is_of_log(path: &str) -> bool {
    let of_segment = || path.strip_prefix(DIRECTORY)?.strip_prefix('/').and_then(SegmentName::parse);
    let of_witness =
        || path.strip_prefix(files::COSIGNED)?.strip_prefix('/').filter(|it| files::is_cosigned_name(it));
    let whole = [config::FILE, arriving::NEXT, files::CHECKPOINT, files::COSE_CHECKPOINT, files::WITNESSED];
    whole.contains(&path)
        || tile::parse_path(path).is_some()
        || of_segment().is_some()
        || of_witness().is_some()
}

fn not_given(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{path:?} is nothing that a mirror has"))
}

fn file(source: &dyn Store, path: &str) -> io::Result<Box<dyn StoreFile>> {
    if is_of_log(path) { source.open(path) } else { Err(not_given(path)) }
}

fn opened(source: &dyn Store, path: &str) -> io::Result<(Box<dyn StoreFile>, Answer)> {
    if path == files::CHECKPOINT {
        return checkpoint(source);
    }
    begin(file(source, path)?)
}

fn begin(file: Box<dyn StoreFile>) -> io::Result<(Box<dyn StoreFile>, Answer)> {
    let length = file.length()?;
    let mut first = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(FIRST)];
    file.read_exact_at(&mut first, 0)?;
    Ok((file, Answer::Opened { length, first }))
}

/// The checkpoint, of which it is known that it is that of all of the log: the receiver would take that of a part for an older log. A writer may
/// replace it between the two looks.
fn checkpoint(source: &dyn Store) -> io::Result<(Box<dyn StoreFile>, Answer)> {
    for _ in 0..ATTEMPTS {
        source.paths().into_iter().for_each(Paths::look_again);
        let whole = source.paths().map_or(Ok(None), Paths::require_readable);
        let whole = whole.map_err(io::Error::other)?;
        let (file, answer) = begin(file(source, files::CHECKPOINT)?)?;
        let Some(whole) = whole else { return Ok((file, answer)) };
        if matches!(&answer, Answer::Opened { length, first } if whole.starts_with(first) && whole.len() as u64 == *length)
        {
            return Ok((file, answer));
        }
    }
    let place = source.describe(files::CHECKPOINT);
    Err(io::Error::other(format!("{place} is replaced again and again while it is looked at: try again")))
}

/// Bytes of the file that was opened last, or of another one.
fn read(
    source: &dyn Store,
    open: &mut Option<(String, Box<dyn StoreFile>)>,
    path: &str,
    offset: u64,
    count: u32,
) -> io::Result<Answer> {
    let file = match open {
        Some((name, file)) if name == path => file,
        _ => &mut open.insert((path.to_owned(), file(source, path)?)).1,
    };
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX).min(MOST_READ)];
    let read = file.read_at(&mut bytes, offset)?;
    bytes.truncate(read);
    Ok(Answer::Bytes(bytes))
}

/// What tells one state of a log from another: its checkpoint, what lies beside it, and its configuration, as far as they can be read.
fn digest(source: &dyn Store) -> Hash {
    let mut paths = [files::CHECKPOINT, config::FILE, files::COSE_CHECKPOINT, files::WITNESSED]
        .map(str::to_owned)
        .to_vec();
    let cosigned = source.list(files::COSIGNED).unwrap_or_default().into_iter();
    let mut cosigned =
        cosigned.map(|item| item.name).filter(|name| files::is_cosigned_name(name)).collect::<Vec<_>>();
    cosigned.sort_unstable();
    paths.extend(cosigned.iter().take(MOST_WITNESSES).map(|name| format!("{}/{name}", files::COSIGNED)));
    let mut hasher = Sha256::new();
    for path in paths {
        let content = bulla_store::read_small(source, &path, 1 << 20).unwrap_or_default();
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(&content);
    }
    hasher.finish()
}

fn wait(source: &dyn Store, known: Hash, time: Duration, pause: &mut dyn FnMut(Duration) -> bool) -> Hash {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(paths) = source.paths() {
            paths.look_again();
        }
        let now = digest(source);
        if now != known || waited >= time || !pause(PAUSE) {
            return now;
        }
        waited += PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_given_out_but_what_a_mirror_has() {
        for path in [
            "bulla.toml",
            "bulla.toml.next",
            "checkpoint",
            "checkpoint.cose",
            "checkpoint.witnessed",
            "cosigned/0a1b2c3d",
            "tile/0/000",
            "tile/entries/000.p/7",
            "segments/00000000000000000000.seg",
            "segments/00000000000000000007-1.seg",
        ] {
            assert!(is_of_log(path), "{path}");
        }
        for path in [
            "",
            "LOCK",
            "index/00000000000000000000.idx",
            "segments",
            "segments/",
            "segments/../../audit.keys/signing.key",
            "../audit.keys/signing.key",
            "/etc/passwd",
            "tile/../bulla.toml",
            "checkpoint/",
            "cosigned",
            "cosigned/",
            "cosigned/0A1B2C3D",
            "cosigned/../../key",
            "checkpoint.cose.tmp",
        ] {
            assert!(!is_of_log(path), "{path}");
        }
    }
    /// The end of a line whose receiver has ended.
    struct Ended;

    impl Write for Ended {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_receiver_said_before_it_ended_is_told() {
        let failed = Request::Failed { kind: ErrorKind::Locked, message: "two of them".to_owned() };
        let mut refusal = Vec::new();
        failed.write(&mut refusal).unwrap();
        let source = bulla_store::FileSystem::new(std::env::temp_dir());
        for (said, kind, why) in [
            (&b"Welcome to this host\n"[..], ErrorKind::Unavailable, "a shell that prints something"),
            (&refusal, ErrorKind::Locked, "the receiver: two of them"),
            (b"", ErrorKind::Unavailable, "the connection was closed"),
        ] {
            let mut sending =
                Sending { once: true, key: None, wait: &mut |_| true, told: &mut |_| unreachable!() };
            let error = serve(&source, &mut &*said, &mut Ended, &mut sending).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
