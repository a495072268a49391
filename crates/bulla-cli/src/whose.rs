//! Whose a log has to be, and who has to have seen it: what `--key` and `--policy` say.

use crate::exit::Failure;
use crate::public_key::log_key;
use bulla::policy::{MAX_POLICY, Policy};
use bulla::{LogKey, VerifierKey};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The options.
#[derive(clap::Args, Debug)]
pub(crate) struct Whose {
    /// The public key that the log must be of, or a file with it
    #[arg(long, value_name = "VKEY")]
    key: Option<String>,

    /// Logs and witnesses to believe (C2SP tlog-policy), beside --key
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

/// By whom a checkpoint is believed.
#[derive(Debug)]
pub(crate) enum Trusted {
    /// Nobody was named.
    Nobody,
    /// The log's key.
    Key(Box<VerifierKey>),
    /// A policy, which names a log; of a key of ML-DSA-44 one that asks for nothing else.
    Policy(Box<Policy>),
}

impl Whose {
    /// What the options say.
    pub(crate) fn read(&self) -> Result<Trusted, Failure> {
        let key = log_key(self.key.as_deref())?;
        let policy = self
            .policy
            .as_deref()
            .map(|path| Ok::<_, Failure>((path.to_owned(), read_policy(path)?)))
            .transpose()?;
        let (path, policy) = policy.unzip();
        match (key, policy) {
            (Some(LogKey::Ed25519(key)), None) => Ok(Trusted::Key(Box::new(key))),
            (key, policy) => match Policy::of(key, policy) {
                Ok(policy) => Ok(policy.map_or(Trusted::Nobody, |policy| Trusted::Policy(Box::new(policy)))),
                Err(_) => Err(Failure::usage(format!(
                    "--policy: {} names no log (`log VKEY`): name the log's key there, or with --key",
                    path.unwrap_or_default().display()
                ))),
            },
        }
    }
}

impl Trusted {
    /// The key, where it is by a key alone.
    pub(crate) fn key(&self) -> Option<&VerifierKey> {
        match self {
            Trusted::Key(key) => Some(key),
            Trusted::Nobody | Trusted::Policy(_) => None,
        }
    }

    /// Who it is, where anybody was named.
    pub(crate) fn names(&self) -> Option<String> {
        match self {
            Trusted::Nobody => None,
            Trusted::Key(key) => Some(key.to_string()),
            Trusted::Policy(policy) => match policy.logs() {
                [log] => Some(shown(&log.key)),
                logs => Some(format!("one of the {} logs of the policy", logs.len())),
            },
        }
    }
}

/// A key as it is shown: of ML-DSA-44, which has 1.8 KB of text, the name and the id.
fn shown(key: &LogKey) -> String {
    match key {
        LogKey::Ed25519(key) => key.to_string(),
        key => {
            let text = key.to_string();
            let end = text.match_indices('+').nth(1).map_or(text.len(), |(end, _)| end);
            format!("{} (ML-DSA-44)", &text[..end])
        }
    }
}

fn read_policy(path: &Path) -> Result<Policy, Failure> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_POLICY as u64 + 1).read_to_end(&mut text))
        .map_err(|error| Failure::io(path.display(), &error))?;
    Policy::parse(&text).map_err(|error| Failure::usage(format!("--policy: {}: {error}", path.display())))
}
