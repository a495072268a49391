//! `bulla tail`.

use crate::as_logged;
use crate::exit::{Exit, Failure};
use crate::filter::Filter;
use crate::group_keys::{Personal, group_keys};
use crate::identity::Identities;
use crate::interrupt::Interrupt;
use crate::log_paths::{Also, LogPaths};
use crate::missing_keys::{self, WITHOUT, WithoutKeys};
use crate::nothing_found;
use crate::whose::{Trusted, Whose};
use bulla::text::jsonl;
use bulla::{Error, Followed, Query, Reader, RedactedEntries, Redaction};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// Time between two looks at the log.
const PAUSE: Duration = Duration::from_millis(100);

/// Print entries as they are committed, until interrupted or past the end asked for.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Begins with what comes next; --entries N.. or --from begin earlier. A line with \"pending\":true is
of an entry that no signed checkpoint covers yet (with --policy: no witnessed one), which a crash
can still take. Ends by itself with --entries A..B, once a checkpoint covers entry B; and with
--to T, from two seconds after T on, as soon as one covers every committed entry from before T.
Ends with exit 5 where it would have to read an epoch that the identity does not open, or where the
vault is taken away; with 1, at its end or interrupted, where keys that may match are lost.

Example:
  bulla tail audit --operation delete --from 2026-01-01")]
pub(crate) struct Tail {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// Print entries only once a signed checkpoint covers them
    #[arg(long)]
    signed: bool,

    /// Where it fails, print why as a last JSON object, too
    #[arg(long)]
    #[allow(dead_code, reason = "`main` looks at it where the command fails")]
    json: bool,

    #[command(flatten)]
    identities: Identities,

    #[command(flatten)]
    whose: Whose,

    #[command(flatten)]
    personal: Personal,

    #[command(flatten)]
    filter: Filter,
}

impl Tail {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        let mut query = self.filter.query()?;
        self.personal.check(&query)?;
        let interrupt = Interrupt::install()?;
        let mut reader = Reader::open_store(self.place.log()?)?;
        reader = match self.whose.read()? {
            Trusted::Nobody => reader,
            Trusted::Key(key) => reader.key(*key),
            Trusted::Policy(policy) => reader.policy(*policy),
        };
        let identity = self.identities.reader(&self.place)?;
        if let Some(keys) = group_keys(&self.place, &self.personal, &identity)? {
            reader = reader.group_keys(keys);
        }
        let reader = reader.identity(identity);
        if query.first_entry.is_none() && query.from.is_none() {
            query = Query { first_entry: Some(bulla::info_of(self.place.log()?)?.entries), ..query };
        }
        let mut follow = reader.follow(&query)?.signed_only(self.signed);
        as_logged::tell(&self.place, &query);
        let mut out = io::stdout().lock();
        let mut line = Vec::new();
        let (mut told, mut doubted, mut done, mut shown) = (false, None, Exit::Done, 0_u64);
        while !interrupt.is_raised() {
            let mut withheld = RedactedEntries::default();
            let polled = follow.poll(|followed| {
                write_line(followed, &mut line);
                out.write_all(&line).map_err(|error| Error::io("writing to standard output", error))?;
                shown += 1;
                // What is pending may yet be replaced: of that it is told once it is covered.
                let is_lost = !followed.pending && followed.withheld == Some(Redaction::KeyLost);
                withheld.key_lost += u64::from(is_lost);
                Ok(())
            });
            // Of what was shown it is told whatever this look failed with.
            let undecided = polled.as_ref().map_or(0, |polled| polled.undecided);
            withheld.key_lost += polled.as_ref().map_or(0, |polled| polled.key_lost);
            let why = WithoutKeys::of(polled.as_ref().is_ok_and(|polled| polled.log_is_older));
            if missing_keys::tell(withheld, WITHOUT, undecided, why) != Exit::Done {
                done = Exit::Violation;
            }
            let polled = match polled {
                Ok(polled) => polled,
                // Whoever read the output has seen enough.
                Err(error)
                    if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) =>
                {
                    return Ok(done);
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(number) = polled.lost_from {
                note!(
                    "a crash took entries from {number} on, shown as pending; what is shown now is in their place"
                );
            }
            if let Some(frame) = polled.doubted_from.filter(|_| polled.doubted_from != doubted) {
                note!(
                    "what follows the checkpoint, from frame {frame} on, is not signed and no writer's: whoever holds the \
                     storage can put it there; waiting for what is signed in its place"
                );
            }
            doubted = polled.doubted_from;
            if polled.ended {
                if shown == 0 {
                    nothing_found::tell(&reader.subjects_not_found(&query)?);
                }
                return Ok(done);
            }
            if !std::mem::replace(&mut told, true) && !follow.opens_current_epoch()? {
                note!(
                    "the identity does not open the epoch that the log is in: an entry of it that is needed ends this"
                );
            }
            // Whoever read the output has seen enough, also where nothing comes that could not be written.
            if interrupt.wait_or_closed(out.as_fd(), PAUSE) {
                return Ok(done);
            }
        }
        // An end that was not asked for tells of lost keys no less.
        Ok(if done == Exit::Done { Exit::Interrupted } else { done })
    }
}

/// The line of `bulla export`, marked where no checkpoint covers it.
fn write_line(followed: &Followed<'_>, line: &mut Vec<u8>) {
    line.clear();
    jsonl::write_read(&followed.entry, followed.number, followed.withheld.map(Redaction::name), line);
    if followed.pending {
        line.splice(1..1, *b"\"pending\":true,");
    }
}
