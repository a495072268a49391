//! `bulla check`.

mod another;
mod certificate;
mod hold;
mod rekeyed;

use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::output::print_json;
use crate::whose::{Trusted, Whose};
use bulla::proof::{Checked, ConsistencyProof, ProofError, ProofFile};
use bulla::text::jsonl;
use bulla::text::spelling::{agreeing, counted};
use bulla::{Disclosed, Opened, Redaction, open_proof};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Check a proof or a certificate with the log's public key alone; print what it discloses.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Exit code 1 where the proof does not hold, 2 where the file does not begin as one. Without --key it
can only be told to agree with itself: anybody can make such a file.

Example:
  bulla check person.proof --key example.com/audit+2d8c0a31+AUJ3...")]
pub(crate) struct Check {
    /// What `bulla prove` made; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    whose: Whose,

    /// Of a certificate: the erasure key that has to have ordered it, or a file that holds it
    #[arg(long, value_name = "VKEY")]
    erasure_key: Option<String>,

    /// Of a certificate: the order, which says whom it is about, and of a hold or a release by whom and why
    #[arg(long, value_name = "FILE")]
    order: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        interrupt::exit_at_once()?;
        let trusted = self.whose.read()?;
        let bytes = read(&self.file)?;
        let refused = |error: ProofError| refused(&self.file, error);
        let file = ProofFile::parse(&bytes).map_err(refused)?;
        if !matches!(file, ProofFile::Event(_)) && (self.erasure_key.is_some() || self.order.is_some()) {
            let message =
                format!("{} is no certificate: only what proves an event has an order", name(&self.file));
            return Err(Failure::usage(message));
        }
        match &file {
            ProofFile::Entries(_) | ProofFile::Receipt(_) => self.entries(&file, &trusted),
            ProofFile::Consistency(proof) => self.consistency(proof, &trusted).map_err(refused)?,
            ProofFile::Event(proof) => {
                let checked = match &trusted {
                    Trusted::Policy(policy) => proof.verify_by(policy),
                    trusted => proof.verify(trusted.key()),
                };
                let checked = checked.map_err(refused)?;
                let printed = certificate::Certificate::read(&checked, &self)?.print(self.json);
                if !self.json {
                    tell(&trusted);
                }
                printed
            }
        }?;
        Ok(Exit::Done)
    }

    fn entries(&self, file: &ProofFile, trusted: &Trusted) -> Result<(), Failure> {
        let checked = match (file, trusted) {
            (file, Trusted::Policy(policy)) => file.verify_entries_by(policy),
            (file, trusted) => file.verify_entries(trusted.key()),
        };
        let checked = checked.map_err(|error| refused(&self.file, error))?;
        let is_receipt = matches!(file, ProofFile::Receipt(_));
        // Nothing is printed of a file whose groups do not all open.
        match open_proof(&checked, |_| Ok(())) {
            Err(error) => {
                Err(Failure::new(error.kind().into(), format!("{}: {error}", name(&self.file))))
            }
            Ok(opened) if self.json => {
                EntriesJson::of(&checked, is_receipt, opened).and_then(|object| print_json(&object))
            }
            Ok(opened) => print_entries(&checked).map(|()| {
                let (entries, units, frames) = (opened.entries, checked.units(), checked.frames());
                note!(
                    "discloses {}, which {} {} of {}",
                    counted(entries, "entry"),
                    agreeing(entries, "is", "are"),
                    counted(units as u64, "unit"),
                    counted(frames as u64, "block")
                );
                if opened.withheld > 0 {
                    let withheld = opened.withheld;
                    note!("of {withheld} of them the personal fields are withheld: the proof has no key for these");
                }
                let form = if is_receipt { "; a receipt in COSE, of the tree head that is signed as such" } else { "" };
                note!("of {}, tree size {}{form}", checked.origin(), checked.tree_size());
                tell(trusted);
            }),
        }
    }

    fn consistency(
        &self,
        proof: &ConsistencyProof,
        trusted: &Trusted,
    ) -> Result<Result<(), Failure>, ProofError> {
        let checked = match trusted {
            Trusted::Policy(policy) => proof.verify_by(policy),
            trusted => proof.verify(trusted.key()),
        }?;
        let (origin, old_size, tree_size) = (&checked.new.origin[..], checked.old.size, checked.new.size);
        if self.json {
            let (ok, anchored, root) = (true, checked.anchored, checked.new.root.to_base64());
            return Ok(print_json(&ConsistencyJson { ok, anchored, origin, old_size, tree_size, root }));
        }
        note!("{origin}: the tree of size {tree_size} begins with the tree of size {old_size}");
        tell(trusted);
        Ok(Ok(()))
    }
}

/// Whose word it is.
fn tell(trusted: &Trusted) {
    match (trusted.names(), trusted) {
        (Some(whose), Trusted::Policy(policy)) if policy.asks_for_witnesses() => {
            note!("ok: signed by {whose}, and witnessed as the policy asks for");
        }
        (Some(whose), _) => note!("ok: signed by {whose}"),
        (None, _) => note!("self-consistent; without --key nobody can say whose log it is"),
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn name(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// A file that does not begin as a proof is not one that was altered, as far as anybody can tell, but another file.
fn refused(path: &Path, error: ProofError) -> Failure {
    match error {
        ProofError::Kind => Failure::usage(format!(
            "{} is no proof or certificate, as `bulla prove` and `bulla erase -o` write them: {error}",
            name(path)
        )),
        error @ ProofError::ReceiptPolicy => Failure::usage(format!("{}: {error}", name(path))),
        error => Failure::new(Exit::Violation, format!("{}: {error}", name(path))),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    const LIMIT: u64 = 4 << 30;
    const FIRST: u64 = 4 << 10;
    let failed = |error: io::Error| Failure::io(name(path), &error);
    if let Some(what) = another::directory(path) {
        return Err(another::refused(&name(path), what));
    }
    let mut bytes = Vec::new();
    let mut file: Box<dyn Read> = match is_standard_input(path) {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    // What begins like no proof is not read to its end, which it may not have.
    (&mut file).take(FIRST).read_to_end(&mut bytes).map_err(failed)?;
    if let Err(error) = ProofFile::parse(&bytes) {
        if let Some(what) = another::file(&bytes) {
            return Err(another::refused(&name(path), what));
        }
        if matches!(error, ProofError::Kind) {
            return Err(refused(path, error));
        }
    }
    file.take(LIMIT + 1 - FIRST).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() as u64 > LIMIT {
        true => Err(Failure::usage(format!("{} has over {LIMIT} bytes: no proof has", name(path)))),
        false => Ok(bytes),
    }
}

/// The entries as `bulla export` prints them.
fn print_entries(checked: &Checked<'_>) -> Result<(), Failure> {
    let failed = |error| bulla::Error::io("writing to standard output", error);
    let mut out = BufWriter::with_capacity(256 * 1024, io::stdout().lock());
    let mut line = Vec::new();
    let printed = open_proof(checked, |disclosed| {
        line.clear();
        write_line(disclosed, &mut line);
        out.write_all(&line).map_err(failed)
    });
    match printed.and_then(|_| out.flush().map_err(failed)) {
        Err(error) if error.io_error().map(io::Error::kind) != Some(io::ErrorKind::BrokenPipe) => {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

fn write_line(disclosed: &Disclosed<'_>, line: &mut Vec<u8>) {
    // Why whoever made the proof had no key, nobody can tell from it.
    let withheld = disclosed.withheld.then_some(Redaction::NotGiven.name());
    jsonl::write_read(&disclosed.entry, disclosed.number, withheld, line);
}

#[derive(Serialize)]
struct EntriesJson<'a> {
    ok: bool,
    anchored: bool,
    /// Whether the file is a receipt in COSE, whose tree head is signed as such.
    receipt: bool,
    origin: &'a str,
    tree_size: u64,
    root: String,
    frames: usize,
    units: usize,
    /// Of so many entries the personal fields.
    withheld: u64,
    entries: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct ConsistencyJson<'a> {
    ok: bool,
    anchored: bool,
    origin: &'a str,
    old_size: u64,
    tree_size: u64,
    root: String,
}

impl<'a> EntriesJson<'a> {
    fn of(checked: &Checked<'a>, receipt: bool, opened: Opened) -> Result<Self, Failure> {
        let mut entries = Vec::new();
        open_proof(checked, |disclosed| {
            let mut line = Vec::new();
            write_line(disclosed, &mut line);
            // What is written is JSON, and JSON is text.
            let text = String::from_utf8(line).ok();
            entries.extend(text.and_then(|line| RawValue::from_string(line.trim_end().to_owned()).ok()));
            Ok(())
        })?;
        Ok(EntriesJson {
            ok: true,
            anchored: checked.anchored(),
            receipt,
            origin: checked.origin(),
            tree_size: checked.tree_size(),
            root: checked.root().to_base64(),
            frames: checked.frames(),
            units: checked.units(),
            withheld: opened.withheld,
            entries,
        })
    }
}
