//! `bulla keys DIR list`: who can read what, as far as that can be known.

use crate::exit::{Exit, Failure};
use crate::identity::Identities;
use crate::log_paths::LogPaths;
use crate::lost_frames::LostFramesJson;
use crate::output::{on_line, print, print_json, time};
use bulla::Epoch;
use bulla::keys::files;
use bulla::keys::recipients::IdentityFile;
use bulla::text::spelling::counted;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

pub(super) fn run(place: &LogPaths, identities: &Identities, json: bool) -> Result<Exit, Failure> {
    place.refuse_other_keys()?;
    let (log, _) = bulla::config::load_of_log(&*place.log()?)?;
    let epochs = bulla::epochs_of(place.log()?)?;
    let lost = bulla::lost_frames_of(place.log()?)?;
    // Not the one in the key directory, unless it is asked for: it may be under a passphrase, or a plugin's.
    let identities = if identities.are_named() { identities.each(place)? } else { Vec::new() };
    let here = place.keys().join(files::IDENTITY);
    let listed = Listed {
        vkey: log.verifier_key.to_string(),
        recipients: log.recipients,
        identity_here: here.exists().then_some(here),
        asked: identities.iter().map(|(path, _)| path.clone()).collect(),
        epochs: ranges(&epochs, &identities)?,
        lost_with_path: LostFramesJson::of(&lost),
    };
    if json { print_json(&listed) } else { print(&listed.to_text()) }?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Listed {
    vkey: String,
    recipients: Vec<String>,
    /// The identity in the key directory, with which this host reads the log.
    identity_here: Option<PathBuf>,
    #[serde(skip)]
    asked: Vec<PathBuf>,
    epochs: Vec<Range>,
    /// Epochs that began in these are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_with_path: Option<LostFramesJson>,
}

/// Epochs one after the other of which the same can be said.
#[derive(Serialize)]
struct Range {
    /// The numbers of the first and the last of them, and how many they are.
    first: u64,
    last: u64,
    count: u64,
    /// When the first of them began.
    since: String,
    /// The number of the first entry that can be in them.
    first_entry: u64,
    stanzas: usize,
    /// Which of the identities that were given open them.
    opened_by: Vec<PathBuf>,
}

fn ranges(epochs: &[Epoch], identities: &[(PathBuf, IdentityFile)]) -> Result<Vec<Range>, Failure> {
    let mut ranges = Vec::<Range>::new();
    for epoch in epochs {
        let mut opened_by = Vec::new();
        for (path, identity) in identities {
            if epoch.is_open_to(identity)? {
                opened_by.push(path.clone());
            }
        }
        match ranges.last_mut() {
            Some(range) if range.stanzas == epoch.stanzas && range.opened_by == opened_by => {
                range.last = epoch.number;
                range.count += 1;
            }
            _ => ranges.push(Range {
                first: epoch.number,
                last: epoch.number,
                count: 1,
                since: time(epoch.began),
                first_entry: epoch.first_entry,
                stanzas: epoch.stanzas,
                opened_by,
            }),
        }
    }
    Ok(ranges)
}

impl Listed {
    fn to_text(&self) -> String {
        let mut text = format!("public key  {}\n", self.vkey);
        // Writing to a `String` cannot fail.
        for recipient in &self.recipients {
            let _ = writeln!(text, "recipient   {recipient}");
        }
        let _ = match &self.identity_here {
            Some(path) => {
                writeln!(
                    text,
                    "identity    {}: this host can read its past",
                    on_line(&path.display().to_string())
                )
            }
            None => writeln!(text, "identity    none in the key directory"),
        };
        for range in &self.epochs {
            let Range { first, last, count, since, first_entry, stanzas, opened_by } = range;
            let epochs =
                if count == &1 { format!("{first}") } else { format!("{first} to {last} ({count})") };
            let stanzas = counted(*stanzas as u64, "stanza");
            let _ = write!(text, "epoch       {epochs}, from entry {first_entry}, {since}: {stanzas}");
            if !self.asked.is_empty() {
                let files =
                    opened_by.iter().map(|path| on_line(&path.display().to_string())).collect::<Vec<_>>();
                let by =
                    if files.is_empty() { "none of the identities".to_owned() } else { files.join(", ") };
                let _ = write!(text, "; opened by {by}");
            }
            text.push('\n');
        }
        if let Some(lost) = &self.lost_with_path {
            let _ = writeln!(
                text,
                "lost        {}: epochs that began in these are not listed",
                lost.frames_to_text()
            );
        }
        text
    }
}
