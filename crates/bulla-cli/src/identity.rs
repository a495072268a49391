//! Identity files: plain or under a passphrase, one or several.

use crate::exit::{Exit, Failure};
use crate::log_paths::{LogPaths, Secret, read_small};
use crate::terminal::{self, Terminal};
use bulla::keys::identities::{decrypt_with_passphrase, is_encrypted};
use bulla::keys::plugin::DEFAULT_TIMEOUT;
use bulla::keys::recipients::IdentityFile;
use bulla::keys::{files, prompt::Prompt};
use bulla::parse_plugin_timeout;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// The arguments of every subcommand that reads entries.
#[derive(clap::Args, Debug)]
pub(crate) struct Identities {
    /// A file of age identities; repeatable [default: identity.age]
    #[arg(id = "identity", long = "identity", value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

/// Where the passphrase of an identity file comes from.
#[derive(clap::Args, Debug)]
pub(crate) struct Passphrase {
    /// With its passphrase [default: $BULLA_PASSPHRASE_FILE, or ask]
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl Identities {
    /// The identities that were named, or else the one in the key directory, if there is one.
    pub(crate) fn load(&self, place: &LogPaths) -> Result<Option<Arc<IdentityFile>>, Failure> {
        let files = self.each(place)?;
        let all = files.into_iter().map(|(_, identity)| identity).reduce(IdentityFile::and);
        Ok(all.map(Arc::new))
    }

    /// The identities that were named, or else the one in the key directory, which has to be there.
    pub(crate) fn reader(&self, place: &LogPaths) -> Result<Arc<IdentityFile>, Failure> {
        self.load(place)?.ok_or_else(|| {
            let message = format!(
                "there is no identity to read the log with in {}; name one with --identity",
                place.keys().display()
            );
            Failure::new(Exit::Refused, message)
        })
    }

    /// Whether any was named.
    pub(crate) fn are_named(&self) -> bool {
        !self.files.is_empty()
    }

    pub(crate) fn passphrase(&self) -> &Passphrase {
        &self.passphrase
    }

    /// Each file by itself.
    pub(crate) fn each(&self, place: &LogPaths) -> Result<Vec<(PathBuf, IdentityFile)>, Failure> {
        let found = match &self.files[..] {
            [] => place.secret(None, files::IDENTITY)?.into_iter().collect(),
            files => {
                let named = files.iter().map(|file| place.secret(Some(file), files::IDENTITY));
                named.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?
            }
        };
        let open = |file: Secret| {
            let identity = self.open(&file)?;
            Ok((file.path, identity))
        };
        found.into_iter().map(open).collect()
    }

    fn open(&self, file: &Secret) -> Result<IdentityFile, Failure> {
        let text = file.text.as_str();
        let decrypted = match is_encrypted(text.as_bytes()) {
            true => {
                let passphrase = self.passphrase.of(&file.path)?;
                let decrypted = decrypt_with_passphrase(text.as_bytes(), &passphrase);
                Some(decrypted.map_err(|error| file.error(error))?)
            }
            false => None,
        };
        let identity = IdentityFile::parse(decrypted.as_ref().map_or(text, |text| text));
        let identity = identity.map_err(|error| file.error(error))?;
        Ok(identity.prompt(Arc::new(Terminal) as Arc<dyn Prompt>).plugin_timeout(plugin_timeout()?))
    }
}

impl Passphrase {
    /// The passphrase of a file that is there.
    fn of(&self, path: &Path) -> Result<Zeroizing<String>, Failure> {
        match self.file()? {
            Some(passphrase) => Ok(passphrase),
            None => terminal::secret(&format!("Passphrase of {}", path.display()))?
                .ok_or_else(|| no_terminal(&path.display().to_string())),
        }
    }

    /// The passphrase of a file that is to be made.
    pub(crate) fn new_one(&self) -> Result<Zeroizing<String>, Failure> {
        if let Some(passphrase) = self.file()? {
            return Ok(passphrase);
        }
        let ask = |question| terminal::secret(question)?.ok_or_else(|| no_terminal("the new identity"));
        let passphrase = ask("A passphrase for the new identity")?;
        match *passphrase == *ask("The same again")? {
            true => Ok(passphrase),
            false => Err(Failure::usage("these were two different passphrases: nothing was made")),
        }
    }

    /// Whether a file was named for it on the command line.
    pub(crate) fn is_named(&self) -> bool {
        self.passphrase_file.is_some()
    }

    fn file(&self) -> Result<Option<Zeroizing<String>>, Failure> {
        let environment = || std::env::var_os("BULLA_PASSPHRASE_FILE").map(PathBuf::from);
        let Some(path) = self.passphrase_file.clone().or_else(environment) else { return Ok(None) };
        let text = read_small(&path).map_err(|error| Failure::key_file(path.display(), &error))?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        match line.is_empty() {
            true => Err(Failure::usage(format!("{} holds no passphrase", path.display()))),
            false => Ok(Some(Zeroizing::new(line.to_owned()))),
        }
    }
}

fn no_terminal(what: &str) -> Failure {
    let message =
        format!("{what} needs a passphrase, and there is no terminal to ask at: name a --passphrase-file");
    Failure::new(Exit::Refused, message)
}

/// How long the plugin of an identity may take.
fn plugin_timeout() -> Result<Duration, Failure> {
    const NAME: &str = "BULLA_PLUGIN_TIMEOUT";
    match std::env::var(NAME) {
        Ok(text) => parse_plugin_timeout(&text).map_err(|error| Failure::usage(format!("{NAME}: {error}"))),
        Err(_) => Ok(DEFAULT_TIMEOUT),
    }
}
