//! `bulla anchor`.

use crate::exit::{Exit, Failure};
use crate::log_paths::{Also, LogPaths, error_in};
use crate::new_file;
use crate::output::{note_lines, on_line, print, print_json};
use crate::public_key::{ed25519_log_key, parse_key};
use bulla::keys::{files, signing::SigningKey};
use bulla::proof::{Anchor as Anchored, Envelope, ProofError};
use bulla::store::read_small;
use bulla::{Reader, VerifierKey};
use bulla_http::{Address, Client, ErrorKind, Options, Roots};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest anchor, answer or file of certificates, in bytes: the checkpoints of both logs are in it.
const LIMIT: usize = 4 << 20;
/// How long an answer may take: Rekor v2 answers once a checkpoint of its own covers the entry.
const PATIENCE: Duration = Duration::from_secs(60);

/// Put the log's checkpoint into a transparency log, a Rekor v2, or check that it stands there.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The checkpoint goes out as it is, signed once more with the log's own key, in an
envelope (DSSE): it names the log, and no entry of it. What Rekor answers is
verified before it is kept, and `--check` does that again offline: it is in
Rekor's tree, and this log begins with what was anchored. Whose log that is
only --key tells: without it, the key in the log's own directory is believed.

Examples:
  bulla anchor audit --rekor https://rekor.example --rekor-key rekor.vkey \
    -o audit.anchor
  bulla anchor audit --check audit.anchor --rekor-key rekor.vkey --key audit.vkey")]
pub(crate) struct Anchor {
    #[command(flatten)]
    place: LogPaths,

    #[command(flatten)]
    also: Also,

    /// Where the Rekor is: https, or http of this machine by its number
    #[arg(long, value_name = "URL", requires = "output", required_unless_present = "check")]
    rekor: Option<String>,

    /// Rekor's own public key, which signs its checkpoints, or a file with it
    #[arg(long, value_name = "VKEY", required = true)]
    rekor_key: Option<String>,

    /// Authorities whose certificates are believed of it, in PEM, in place of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    ca: Option<PathBuf>,

    /// The new file that the anchor is kept in
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Option<PathBuf>,

    /// Check this anchor, offline
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rekor", "output"])]
    check: Option<PathBuf>,

    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Anchor {
    pub(crate) fn run(mut self) -> Result<Exit, Failure> {
        self.place.and(&self.also);
        let rekor_key = self.rekor_key.as_deref().map(parse_key("--rekor-key")).transpose()?;
        let rekor_key = rekor_key.ok_or_else(|| Failure::usage("name Rekor's own key with --rekor-key"))?;
        let mut reader = Reader::open_store(self.place.log()?)?;
        let mut log_key = bulla::info_of(self.place.log()?)?.vkey;
        if let Some(key) = ed25519_log_key(self.key.as_deref(), "an anchor is signed with the other one")? {
            log_key = key.clone();
            reader = reader.key(key);
        }
        if let Some(path) = &self.check {
            let file = read_whole(path)?;
            let anchor = Anchored::parse(&file).map_err(|error| refused(path, error))?;
            let held = anchor.verify(&log_key, &rekor_key).map_err(|error| refused(path, error))?;
            reader.prove_consistency(held.note).map_err(|error| {
                // The anchor's key signed it: that it is of another log, or none of this log's checkpoints, is that it does not hold.
                let holds_not = error.kind() == bulla::ErrorKind::Invalid;
                let failure = error_in(path, error);
                Failure { exit: if holds_not { Exit::Violation } else { failure.exit }, ..failure }
            })?;
            self.tell(&anchor, (&log_key, &rekor_key), None)?;
            return Ok(Exit::Done);
        }
        let (Some(url), Some(output)) = (&self.rekor, &self.output) else {
            return Err(Failure::usage(
                "say where the Rekor is with --rekor URL, or check one with --check FILE",
            ));
        };
        self.place.refuse_inside(output)?;
        if output.symlink_metadata().is_ok() {
            return Err(Failure::usage(format!("{} is there already: name a new file", output.display())));
        }
        let failed = |error: io::Error| Failure::io(format!("writing {}", output.display()), &error);
        // A Rekor gives an anchor once: whether there is a place for it is known before it is asked.
        let begun = new_file::Begun::at(output).map_err(failed)?;
        let anchor = self.anchored(url, &log_key)?;
        let whose = format!("what {url} answered");
        anchor.verify(&log_key, &rekor_key).map_err(|error| {
            Failure::new(
                Exit::Violation,
                format!("{whose} does not hold, and nothing is kept of it: {error}"),
            )
        })?;
        let text = anchor.render();
        if let Err(error) = begun.finish(text.as_bytes()) {
            return Err(self.instead(&text, failed(error)));
        }
        self.tell(&anchor, (&log_key, &rekor_key), Some(output))?;
        Ok(Exit::Done)
    }

    /// Prints the anchor that could not be kept.
    fn instead(&self, text: &str, failure: Failure) -> Failure {
        // Standard output may be a program's, which is promised an object.
        let place = if self.json { "standard error" } else { "standard output" };
        let printed = match self.json {
            true => {
                note_lines(text.trim_end());
                Ok(())
            }
            false => print(text),
        };
        let what = match printed {
            Ok(()) => format!("the anchor, which is given once, went to {place}: keep it in a file"),
            Err(unprinted) => format!("nor could the anchor be printed: {}", unprinted.message),
        };
        Failure { message: format!("{}; {what}", failure.message), ..failure }
    }

    /// Has the Rekor record the log's checkpoint.
    fn anchored(&self, url: &str, log_key: &VerifierKey) -> Result<Anchored, Failure> {
        let Some(secret) = self.place.secret(None, files::SIGNING)? else {
            let message = "the log's signing.key is not there: whoever has it anchors the log";
            return Err(Failure::new(Exit::Refused, message));
        };
        let signing = SigningKey::parse(&secret.text).map_err(|error| secret.error(error))?;
        if !signing.verifier().is_same_key(log_key) {
            let message = format!("{} is another key than the log's, {log_key}", secret.path.display());
            return Err(Failure::new(Exit::Refused, message));
        }
        let note = read_small(&*self.place.log()?, "checkpoint", 1 << 20)?;
        bulla::open_checkpoint(&note, log_key)
            .map_err(|error| Failure::new(Exit::Violation, format!("the log's checkpoint: {error}")))?;
        let envelope = Envelope::sign(&note, |bytes| signing.sign(bytes));
        let envelope = envelope
            .map_err(|error| Failure::new(Exit::Violation, format!("the log's checkpoint: {error}")))?;
        let roots = match &self.ca {
            Some(path) => Roots::Pem(read_whole(path)?),
            None => Roots::System,
        };
        let options =
            Options { roots, plain_loopback: true, total: PATIENCE, body: LIMIT, ..Options::default() };
        let address = Address::parse(url, &options).map_err(unreached)?;
        let client = Client::new(&options).map_err(unreached)?;
        let request = envelope.request(log_key);
        let path = address.below("api/v2/log/entries");
        let answer = client.post(&path, "application/json", request.as_bytes()).map_err(unreached)?;
        if !matches!(answer.status, 200 | 201) {
            let said = String::from_utf8_lossy(&answer.body);
            let said = on_line(&said.trim().chars().take(300).collect::<String>());
            let known = match answer.status {
                409 => {
                    ": this checkpoint is anchored there already, and the anchor was given to whoever did that; the next checkpoint can be"
                }
                _ => "",
            };
            let message = format!("{url} answered {}{known}: {said}", answer.status);
            // What a server says of itself, or of too many requests, may be otherwise in a moment.
            let exit = match answer.status {
                408 | 429 | 500.. => Exit::Environment,
                _ => Exit::Refused,
            };
            return Err(Failure::new(exit, message));
        }
        let malformed = |why: String| {
            Failure::new(Exit::Environment, format!("what {url} answered is no entry of a log: {why}"))
        };
        bulla::anchor_of_answer(envelope, &answer.body).map_err(|error| malformed(error.to_string()))
    }

    fn tell(
        &self,
        anchor: &Anchored,
        (log, rekor): (&VerifierKey, &VerifierKey),
        output: Option<&Path>,
    ) -> Result<(), Failure> {
        let held =
            anchor.verify(log, rekor).map_err(|error| Failure::new(Exit::Violation, error.to_string()))?;
        if self.json {
            return print_json(&Told {
                ok: true,
                anchored: self.key.is_some(),
                output,
                origin: &held.checkpoint.origin,
                tree_size: held.checkpoint.size,
                root: held.checkpoint.root.to_base64(),
                rekor: &held.rekor.origin,
                index: held.index,
                rekor_size: held.rekor.size,
            });
        }
        let (size, index) = (held.checkpoint.size, held.index);
        note!(
            "{}: the tree of size {size} stands at index {index} of {}",
            held.checkpoint.origin,
            held.rekor.origin
        );
        match output {
            Some(path) => note!("kept in {}", path.display()),
            None if self.key.is_some() => {
                note!("ok: signed by {log} and {rekor}, and the log begins with it")
            }
            None => note!(
                "self-consistent; without --key nobody can say whose log it is: signed by the key that it names itself and by {rekor}, and \
                 the log begins with it"
            ),
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Told<'a> {
    ok: bool,
    /// Whether the log's key was given: else the log's own word for it is believed.
    anchored: bool,
    /// The file that the anchor is kept in; `null` where one was checked.
    output: Option<&'a Path>,
    origin: &'a str,
    tree_size: u64,
    root: String,
    /// The name of the transparency log.
    rekor: &'a str,
    /// At which index of it the checkpoint stands.
    index: u64,
    rekor_size: u64,
}

/// A file that is named and short.
fn read_whole(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::io(path.display(), &error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() > LIMIT {
        true => Err(Failure::usage(format!("{} has over {LIMIT} bytes, which none has", path.display()))),
        false => Ok(bytes),
    }
}

fn refused(path: &Path, error: ProofError) -> Failure {
    match error {
        ProofError::Kind => {
            Failure::usage(format!("{} is no anchor, as `bulla anchor -o` writes them", path.display()))
        }
        error => Failure::new(Exit::Violation, format!("{}: {error}", path.display())),
    }
}

fn unreached(error: bulla_http::Error) -> Failure {
    let exit = if error.kind() == ErrorKind::Invalid { Exit::Usage } else { Exit::Environment };
    Failure::new(exit, error.to_string())
}
