//! `bulla erase`.

mod again;
mod kept_order;
mod preview;

use crate::append;
use crate::authority::{Authority, authority, without_erasure};
use crate::confirm::confirm;
use crate::exit::{Exit, Failure};
use crate::export::destination::Destination;
use crate::identity::Identities;
use crate::interrupt;
use crate::log_paths::{LogPaths, error_in};
use crate::lost_frames::tell_unknown_events;
use crate::output::{on_line, print, print_json};
use crate::terminal;
use bulla::control::{Client, through_writer};
use bulla::environment::Environment;
use bulla::event::Remains;
use bulla::keys::signing::SigningKey;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Erasure, ErasureOrder, ErasurePreview, ErrorKind, Info, KnownAgain, LogId, Reader};
use preview::{Looking, PreviewJson};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Erase data subjects: destroy their keys, and have the log tell of it.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is personal of these data subjects' entries can be read by nobody any more, in this log
and in every copy of it, but for words that many others used (`init --common`); an entry that
concerns others goes with them. Every proof still stands. This cannot be undone. The reason
becomes public, in the log: name nobody in it. What will be done is said first. At a terminal
the command asks: unless the answer is `yes`, nothing is done, exit code 5, as where the order
is refused; --dry-run judges the order alone.
Exit code 3 where some names are nobody's: the others are erased all the same. --again leaves
out who is held, or came back since by the host's clock or the certificates, and refuses what
cannot be told: exit code 3, or 5 where nothing is left.

Examples:
  bulla erase audit --subject user_42 --dry-run
  bulla erase audit --subject user_42 --reason 'request of 2026-03-01' -o erased.cert
  bulla erase audit --subject user_42 --keep-order order.json      # the same command again is safe
  bulla erase audit --authority order.json -o erased.cert         # what `bulla order` made
  bulla erase audit --again orders/*.json --certificate certs/* --identity officer.age
  bulla check erased.cert --key \"$VKEY\"")]
pub(crate) struct Erase {
    #[command(flatten)]
    place: LogPaths,

    /// The data subject; repeatable
    #[arg(long = "subject", value_name = "S")]
    subjects: Vec<String>,

    /// Why, in one line; it becomes public
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The erasure key, or an order made with it [default: erasure.key]
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,

    /// Keep the order in this new file, or carry out the one in it
    #[arg(long, value_name = "FILE")]
    keep_order: Option<PathBuf>,

    /// Carry these out again, after a backup was put back
    #[arg(
        long,
        value_name = "ORDER",
        num_args = 1..,
        conflicts_with_all = ["subjects", "reason", "authority", "keep_order", "output"]
    )]
    again: Vec<PathBuf>,

    /// Their certificates, as far as they are at hand
    #[arg(long = "certificate", value_name = "FILE", num_args = 1..)]
    certificates: Vec<PathBuf>,

    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,

    /// Do not ask at the terminal
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    identities: Identities,

    /// Write the certificate to a file, all or nothing
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The order to carry out.
struct Given<'a> {
    order: ErasureOrder,
    /// Where it is to be kept before that.
    keep: Option<&'a Path>,
    /// Where it was kept before.
    kept: Option<&'a Path>,
}

impl Erase {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        // That there is no log is told before that there is no key.
        let info = bulla::info_of(self.place.log()?)?;
        if !info.erasure {
            return Err(without_erasure());
        }
        tell_unknown_events(&info.lost);
        if !self.again.is_empty() {
            self.tell_of_set_aside(&info);
            return again::run(&self, &info);
        }
        if !self.certificates.is_empty() {
            return Err(Failure::usage("--certificate is for --again: -o writes the certificate"));
        }
        self.refuse_to_overwrite()?;
        let Given { order, keep, kept } = self.order(&info)?;
        self.tell_of_set_aside(&info);
        let until_it_is_begun = interrupt::exit_for_now(self.json)?;
        let preview = Looking::new(&self.place, &self.identities, &info.vkey)?.preview(&order);
        let preview = match preview {
            Ok(preview) => preview,
            Err(error) if self.dry_run || is_final(error.kind()) => {
                return Err(match kept {
                    Some(path) => error_in(path, error),
                    None => error.into(),
                });
            }
            Err(error) => {
                // An erasure that was cut short, which carrying this out finishes first; or what is wrong is told by whoever writes.
                note!("what this will do cannot be told beforehand: {error}");
                return self.carry_out(&info, &order, keep, None, until_it_is_begun);
            }
        };
        let told = preview::to_text(&preview, &info.origin);
        if self.dry_run {
            return self.tell_only(&preview, &told);
        }
        // What was done before is said in the end, with all there is to it.
        if preview.before.is_none() {
            told.lines().for_each(|line| note!("{line}"));
        }
        // Whom nobody knows, whoever writes says.
        if let Some(refusal) = preview.refusal().filter(|_| !preview.numbers.is_empty()) {
            return Err(self.refused(&preview, refusal.into()));
        }
        self.carry_out(&info, &order, keep, Some(&preview), until_it_is_begun)
    }

    /// Says what would be done, and no more.
    fn tell_only(&self, preview: &ErasurePreview, told: &str) -> Result<Exit, Failure> {
        if !self.json {
            print(told)?;
        }
        if let Some(refusal) = preview.refusal() {
            return Err(self.refused(preview, refusal.into()));
        }
        if self.json {
            print_json(&serde_json::json!({ "preview": PreviewJson::from(preview) }))?;
        }
        let all_known = match &preview.before {
            Some(before) => before.unknown.is_empty(),
            None => preview.unknown().next().is_none(),
        };
        Ok(if all_known { Exit::Done } else { Exit::SomeRefused })
    }

    /// That nothing is done; with `--json`, in an object that has the preview, too.
    fn refused(&self, preview: &ErasurePreview, failure: Failure) -> Failure {
        if self.json {
            let preview = PreviewJson::from(preview);
            // It is refused already, and standard error says why.
            let _ = print_json(&serde_json::json!({ "error": failure.message, "preview": preview }));
        }
        failure
    }

    /// Says what no erasure reaches: what the log has dropped and set aside.
    fn tell_of_set_aside(&self, info: &Info) {
        match self.place.set_aside(&info.id.to_string()) {
            Some((path, Ok(count))) => note!(
                "{} in {} {} entries that were dropped, maybe of those who are to be erased: append or delete {} (docs/operating.md, \"Dropping\")",
                counted(count as u64, "file"),
                path.display(),
                agreeing(count as u64, "holds", "hold"),
                agreeing(count as u64, "it", "them"),
            ),
            Some((path, Err(error))) => note!(
                "{}, where entries lie that were dropped, cannot be looked at: {error}; what is there of those who are to be erased stays \
                 (docs/operating.md, \"Dropping\")",
                path.display(),
            ),
            None => {}
        }
    }

    /// Carries the order out, once whoever is at the terminal agrees.
    fn carry_out(
        &self,
        info: &Info,
        order: &ErasureOrder,
        keep: Option<&Path>,
        preview: Option<&ErasurePreview>,
        until_it_is_begun: interrupt::ForNow,
    ) -> Result<Exit, Failure> {
        let refused = |failure| match preview {
            Some(preview) => self.refused(preview, failure),
            None => failure,
        };
        // What was done before is not done again, and nobody is not erased.
        let erases = |preview: &ErasurePreview| preview.before.is_none() && !preview.numbers.is_empty();
        let keep = keep.filter(|_| preview.is_none_or(erases));
        if preview.is_none_or(erases) {
            confirm(self.yes).map_err(refused)?;
        }
        drop(until_it_is_begun);
        let output = self.begin_certificate(order)?;
        keep.map_or(Ok(()), |path| kept_order::keep(path, order))?;
        // Nobody is erased but whom it was said of.
        let numbers = preview.map(|preview| &preview.numbers[..]);
        let alone = || {
            let log = append::open(&self.place, terminal::environment())?;
            let erased = numbers.map_or_else(|| log.erase(order), |numbers| log.erase_only(order, numbers));
            Ok((erased?, log.close()))
        };
        let ask = |writer: &Client| {
            let erased =
                numbers.map_or_else(|| writer.erase(order), |numbers| writer.erase_only(order, numbers));
            Ok((erased?, Ok(())))
        };
        let done = through_writer(self.place.keys(), ask, alone);
        let (erasure, closed) = done.map_err(|error| refused(error.into()))?;
        let told =
            closed.map_err(Failure::from).and_then(|()| self.tell(&erasure, info, (output, keep), preview));
        told.map_err(|failure| {
            let frame = erasure.frame;
            failure.but_done(format!(
                "the log tells of this erasure in frame {frame}; for its certificate: bulla prove DIR --event {frame} -o FILE"
            ))
        })?;
        Ok(if erasure.unknown.is_empty() { Exit::Done } else { Exit::SomeRefused })
    }

    /// Begins the file of the certificate, with room for it, so that a full disk is known of before anything is destroyed. Not every
    /// file system keeps room: on one that does not, and of a device, that is known only after it.
    fn begin_certificate(&self, order: &ErasureOrder) -> Result<Option<Destination>, Failure> {
        // Every number and every name's commitment is in the order, too, and longer there; besides there is a path in the tree.
        let length = 2 * order.render().len() + (64 << 10);
        let find_out =
            "`bulla events DIR --kind erased` (for the certificate: `bulla prove DIR --event N -o FILE`)";
        let Some(path) = self.output.as_deref() else {
            return interrupt::finish_first(self.json, find_out, || ()).map(|()| None);
        };
        let output = Destination::open_to_finish(Some(path), &self.place, (self.json, find_out))?;
        let reserved = output.reserve(length as u64);
        reserved.map_err(|error| Failure::io(format!("making room for {}", path.display()), &error))?;
        Ok(Some(output))
    }

    /// Writes the certificate, and says what was done.
    fn tell(
        &self,
        erasure: &Erasure,
        info: &Info,
        (output, kept): (Option<Destination>, Option<&Path>),
        preview: Option<&ErasurePreview>,
    ) -> Result<(), Failure> {
        let reader = Reader::open_store(self.place.log()?)?.key(info.vkey.clone());
        let certificate = reader.prove_event(erasure.frame)?;
        if let Some(mut output) = output {
            let written = output.writer().write_all(certificate.render().as_bytes());
            let written = written.and_then(|()| output.finish());
            written.map_err(|error| Failure::io("writing the certificate", &error))?;
        }
        let done = Done {
            numbers: &erasure.numbers,
            unknown: &erasure.unknown,
            frame: erasure.frame,
            keys_lost: erasure.keys_lost,
            before: erasure.before,
            known_again: &erasure.known_again,
            certificate: self.output.as_deref(),
            order: kept.or(self.keep_order.as_deref()),
            preview: preview.map(PreviewJson::from),
        };
        if self.json { print_json(&done) } else { print(&done.to_text(info)) }
    }

    /// The certificate takes the place of what is in its file, which must not be the order.
    fn refuse_to_overwrite(&self) -> Result<(), Failure> {
        let Some(output) = self.output.as_deref() else { return Ok(()) };
        for (option, path) in [("--keep-order", &self.keep_order), ("--authority", &self.authority)] {
            if path.as_deref().is_some_and(|path| is_same(path, output)) {
                let output = output.display();
                let message =
                    format!("{output} cannot be the certificate's file and that of {option}: name two files");
                return Err(Failure::usage(message));
            }
        }
        Ok(())
    }

    /// The order that was named, or is kept, or else a new one.
    fn order(&self, info: &Info) -> Result<Given<'_>, Failure> {
        let key = match authority(&self.place, (self.authority.as_deref(), ""), ErasureOrder::parse)? {
            Authority::Order(order, _)
                if self.subjects.is_empty() && self.reason.is_none() && self.keep_order.is_none() =>
            {
                return Ok(Given { order, keep: None, kept: None });
            }
            Authority::Order(_, path) => {
                let path = path.display();
                let message = format!(
                    "{path} is an order, which says whom and why, and is kept: leave out --subject, --reason and --keep-order"
                );
                return Err(Failure::usage(message));
            }
            Authority::Key(_) if self.subjects.is_empty() => {
                return Err(Failure::usage("name the data subject to erase with --subject"));
            }
            Authority::Key(key) => key,
        };
        let (keep, reason) = (self.keep_order.as_deref(), self.reason.as_deref());
        if let Some(path) = keep
            && let Some(order) = kept_order::find(path, &self.place, info, (&self.subjects, reason))?
        {
            return Ok(Given { order, keep: None, kept: keep });
        }
        if let Some(counts) = info.erasure_key.as_ref().filter(|counts| *counts != key.verifier()) {
            let message = format!(
                "the order to erase: it has to be signed with {counts}, the log's erasure key, and {} is at hand: name the log's with --authority",
                key.verifier()
            );
            return Err(Failure::new(Exit::Refused, message));
        }
        Ok(Given { order: give(&key, info.id, &self.subjects, reason)?, keep, kept: None })
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let absolute = |path: &Path| std::path::absolute(path).ok();
    absolute(one) == absolute(other) || file(one).is_some() && file(one) == file(other)
}

/// Whether whoever writes would say the same: about the order, or that there is no vault.
fn is_final(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Refused | ErrorKind::NoKey | ErrorKind::Invalid)
}

/// An order to erase.
pub(crate) fn give(
    key: &SigningKey,
    log: LogId,
    subjects: &[String],
    reason: Option<&str>,
) -> Result<ErasureOrder, Failure> {
    let subjects = subjects.iter().map(String::as_str).collect::<Vec<_>>();
    Ok(ErasureOrder::give(key, log, &subjects, reason, &Environment::default())?)
}

/// What an erasure does not reach, a line each.
pub(crate) fn remains(remains: &[Remains]) -> String {
    remains.iter().map(|remains| format!("  {remains}\n")).collect()
}

#[derive(Serialize)]
struct Done<'a> {
    numbers: &'a [u64],
    unknown: &'a [String],
    frame: u64,
    keys_lost: bool,
    before: bool,
    known_again: &'a [KnownAgain],
    certificate: Option<&'a Path>,
    /// Where the order is kept.
    order: Option<&'a Path>,
    /// What was told before; none where it could not be.
    preview: Option<PreviewJson>,
}

impl Done<'_> {
    fn to_text(&self, info: &Info) -> String {
        let numbers = preview::listed(self.numbers);
        let frame = self.frame;
        let (already, now) = if self.before { (" already", "; nothing was done now") } else { ("", "") };
        let mut text = format!(
            "erased{already}: {numbers} of {}; the log tells of it in frame {frame}{now}\n",
            info.origin
        );
        text.push_str(&preview::known_again(self.known_again));
        text.push_str(&preview::unknown(self.unknown, self.known_again, self.keys_lost));
        text.push_str("what remains:\n");
        text.push_str(&remains(&Remains::all(info.common.is_some())));
        text.push_str(&match self.certificate {
            Some(path) => format!("certificate: {}\n", on_line(&path.display().to_string())),
            None => format!("for its certificate: bulla prove DIR --event {frame} -o FILE\n"),
        });
        if let Some(path) = self.order {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "order: {}", on_line(&path.display().to_string()));
        }
        text
    }
}
