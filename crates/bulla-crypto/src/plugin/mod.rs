//! A client of age plugins: `age-plugin-NAME` holds a key somewhere else (a TPM, a YubiKey, a KMS) and wraps to it,
//! or unwraps with it. The protocol is <https://c2sp.org/age-plugin>; decision 13 says why the client is our own.
//!
//! Invariants: a plugin has a time limit, and may write so much and no more; what it says is made fit for a terminal
//! before anybody sees it; whatever it does, the error names it.

mod process;

use crate::prompt::{Nobody, Prompt};
use crate::stanza::{self, Partial, Read};
use age::{DecryptError, EncryptError};
use age_core::format::{FileKey, Stanza};
use age_core::primitives::bech32_decode;
use age_core::secrecy::ExposeSecret as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bulla_store::{Error, Result};
use process::Process;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use zeroize::{Zeroize as _, Zeroizing};

/// How long a plugin may take, unless told otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);
/// The longest body of a message, in bytes.
const MAX_BODY: usize = 32 << 10;
/// The most messages that a plugin may send in one run.
const MAX_MESSAGES: usize = 1000;
/// The longest text of a plugin's that is shown, in characters.
const MAX_TEXT: usize = 400;

/// Refuses a time limit that is out of bounds.
///
/// # Errors
/// `Invalid` where it is.
pub fn check_timeout(limit: Duration) -> Result<Duration> {
    match (SHORTEST_TIMEOUT..=LONGEST_TIMEOUT).contains(&limit) {
        true => Ok(limit),
        false => Err(Error::invalid(format!(
            "`plugin_timeout` is {limit:?}; it may be from {SHORTEST_TIMEOUT:?} to {LONGEST_TIMEOUT:?}"
        ))),
    }
}

/// How plugins are run.
#[derive(Clone)]
pub struct Plugins {
    /// Who answers what they ask.
    pub prompt: Arc<dyn Prompt>,
    /// How long one may take in all.
    pub limit: Duration,
}

impl Default for Plugins {
    fn default() -> Self {
        Plugins { prompt: Arc::new(Nobody), limit: DEFAULT_TIMEOUT }
    }
}

/// The plugin of a recipient `age1NAME1…`; `None` where `text` is no recipient of a plugin.
pub(super) fn recipient_name(text: &str) -> Option<String> {
    name(text, |hrp| hrp.strip_prefix("age1").map(str::to_owned))
}

/// The plugin of an identity `AGE-PLUGIN-NAME-1…`; `None` where `text` is no identity of a plugin.
pub(super) fn identity_name(text: &str) -> Option<String> {
    name(text, |hrp| Some(hrp.strip_prefix("AGE-PLUGIN-")?.strip_suffix('-')?.to_ascii_lowercase()))
}

fn name(text: &str, of: impl Fn(&str) -> Option<String>) -> Option<String> {
    // The name becomes part of a file's name, so it must not have characters that mean something there.
    let fits = |name: &String| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte))
    };
    let of = |hrp: &str| of(hrp).filter(fits).ok_or(());
    bech32_decode(text, |_| (), |hrp| of(hrp.as_str()).map(|_| ()), |hrp, _| of(hrp.as_str())).ok()
}

/// The recipients of one plugin.
pub(super) struct PluginRecipients<'a> {
    pub(super) name: &'a str,
    pub(super) recipients: &'a [&'a str],
    pub(super) run: &'a Plugins,
}

impl age::Recipient for PluginRecipients<'_> {
    fn wrap_file_key(&self, key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        self.wrap(key).map_err(|error| EncryptError::Io(io::Error::other(error)))
    }
}

impl PluginRecipients<'_> {
    fn wrap(&self, key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>)> {
        let mut process = Process::start(self.name, "recipient-v1", self.run.limit)?;
        let mut task = Zeroizing::new(Vec::with_capacity(4096));
        for recipient in self.recipients {
            stanza::write(&mut task, "add-recipient", &[recipient], b"");
        }
        stanza::write(&mut task, "extension-labels", &[], b"");
        stanza::write(&mut task, "wrap-file-key", &[], key.expose_secret());
        stanza::write(&mut task, "done", &[], b"");
        process.write(&task)?;
        let (mut stanzas, mut labels) = (Vec::new(), None);
        converse(&mut process, &*self.run.prompt, |message| match message.tag.as_str() {
            "recipient-stanza" if message.args.len() >= 2 && message.args[0] == "0" => {
                let mut words = message.args.into_iter().skip(1);
                let tag = words.next().unwrap_or_default();
                stanzas.push(Stanza { tag, args: words.collect(), body: message.body });
                Answer::Done
            }
            "labels" if labels.is_none() => {
                labels = Some(message.args.into_iter().collect());
                Answer::Done
            }
            "recipient-stanza" | "labels" => Answer::Wrong("sent a stanza that answers nothing"),
            _ => Answer::Unknown,
        })?;
        if stanzas.is_empty() {
            return Err(process.failed("wrapped nothing, and does not say why"));
        }
        process.end();
        Ok((stanzas, labels.unwrap_or_default()))
    }
}

/// The identities of one plugin.
pub(super) struct PluginIdentity<'a> {
    pub(super) name: &'a str,
    pub(super) identities: &'a [Zeroizing<String>],
    pub(super) run: &'a Plugins,
}

impl age::Identity for PluginIdentity<'_> {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        self.unwrap_stanzas(std::slice::from_ref(stanza))
    }

    fn unwrap_stanzas(&self, stanzas: &[Stanza]) -> Option<Result<FileKey, DecryptError>> {
        self.unwrap(stanzas).map_err(|error| DecryptError::Io(io::Error::other(error))).transpose()
    }
}

impl PluginIdentity<'_> {
    fn unwrap(&self, stanzas: &[Stanza]) -> Result<Option<FileKey>> {
        let mut process = Process::start(self.name, "identity-v1", self.run.limit)?;
        let mut task = Zeroizing::new(Vec::with_capacity(4096));
        for identity in self.identities {
            stanza::write(&mut task, "add-identity", &[identity], b"");
        }
        for Stanza { tag, args, body } in stanzas {
            let words = ["0", tag].into_iter().chain(args.iter().map(String::as_str)).collect::<Vec<_>>();
            stanza::write(&mut task, "recipient-stanza", &words, body);
        }
        stanza::write(&mut task, "done", &[], b"");
        process.write(&task)?;
        let mut key = None;
        let conversed = converse(&mut process, &*self.run.prompt, |mut message| match message.tag.as_str() {
            "file-key" if message.args == ["0"] && message.body.len() == 16 && key.is_none() => {
                key = Some(FileKey::init_with_mut(|key| key.copy_from_slice(&message.body)));
                message.body.zeroize();
                Answer::Done
            }
            "file-key" => Answer::Wrong("sent something that is no file key"),
            _ => Answer::Unknown,
        });
        // With the key at hand it does not matter that another identity may have failed.
        if key.is_none() {
            conversed?;
        }
        process.end();
        Ok(key)
    }
}

/// Whether an error that came out of the age library is a plugin's.
pub(super) fn is_failure(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Error>())
}

/// That error.
pub(super) fn failure(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| Error::io("running a plugin", error))
}

/// What to answer a message.
enum Answer {
    Done,
    Unknown,
    /// Nothing: the plugin has broken the protocol.
    Wrong(&'static str),
}

/// Answers a plugin's messages until it is done. `prompt` answers questions to a person, `take` everything else.
///
/// # Errors
/// `Unavailable` where the plugin says so, breaks the protocol, hangs or ends.
fn converse(
    process: &mut Process,
    prompt: &dyn Prompt,
    mut take: impl FnMut(Stanza) -> Answer,
) -> Result<()> {
    let mut errors = Vec::new();
    for _ in 0..MAX_MESSAGES {
        let message = read_message(process)?;
        let mut reply = Zeroizing::new(Vec::new());
        match message.tag.as_str() {
            "done" if errors.is_empty() => return Ok(()),
            "done" => return Err(process.failed(&format!("failed: {}", errors.join("; ")))),
            "error" => {
                errors.push(plain(&message.body));
                stanza::write(&mut reply, "ok", &[], b"");
            }
            "msg" | "confirm" | "request-public" | "request-secret" => {
                ask(process, prompt, &message, &mut reply);
            }
            _ => match take(message) {
                Answer::Done => stanza::write(&mut reply, "ok", &[], b""),
                Answer::Unknown => stanza::write(&mut reply, "unsupported", &[], b""),
                Answer::Wrong(what) => return Err(process.failed(what)),
            },
        }
        process.write(&reply)?;
    }
    Err(process.failed(&format!("sent over {MAX_MESSAGES} messages and was stopped")))
}

/// Answers a question with what a person says.
fn ask(process: &mut Process, prompt: &dyn Prompt, message: &Stanza, reply: &mut Zeroizing<Vec<u8>>) {
    let (name, text) = (process.name().to_owned(), plain(&message.body));
    let word = |index: usize| {
        let word = BASE64_STANDARD_NO_PAD.decode(message.args.get(index)?).ok()?;
        Some(plain(&word))
    };
    let answered = process.while_asking(|| match message.tag.as_str() {
        "msg" => {
            prompt.show(&name, &text);
            Some(Zeroizing::new(String::new()))
        }
        "request-public" => prompt.ask(&name, &text).map(Zeroizing::new),
        "request-secret" => prompt.ask_secret(&name, &text),
        _ => {
            let said = prompt.confirm(&name, &text, &word(0)?, word(1).as_deref())?;
            Some(Zeroizing::new(if said { "yes" } else { "no" }.to_owned()))
        }
    });
    match answered {
        None => stanza::write(reply, "fail", &[], b""),
        Some(answer) if message.tag == "confirm" => stanza::write(reply, "ok", &[&answer], b""),
        Some(answer) => stanza::write(reply, "ok", &[], answer.as_bytes()),
    }
}

fn read_message(process: &mut Process) -> Result<Stanza> {
    let garbage = "wrote something that is no message of the plugin protocol";
    let begun = Partial::begin(&process.line()?, MAX_BODY);
    let mut partial = begun.ok_or_else(|| process.failed(garbage))?;
    loop {
        let line = process.line()?;
        match partial.take(&line).ok_or_else(|| process.failed(garbage))? {
            Read::More(more) => partial = more,
            Read::Whole(message) => return Ok(message),
        }
    }
}

/// A plugin's text, fit for a terminal and for one line: without control characters, and without those that turn the
/// direction of what stands beside them.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let hides = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let shown = text.trim().chars().map(|c| if c.is_control() || hides(c) { ' ' } else { c });
    let mut plain = shown.take(MAX_TEXT).collect::<String>();
    if text.trim().chars().nth(MAX_TEXT).is_some() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_name_and_nothing_else() {
        let recipient = |hrp: &str| recipient_name(&encode(hrp));
        assert_eq!(recipient("age1yubikey").as_deref(), Some("yubikey"));
        assert_eq!(recipient("age1a.b-c_d+e").as_deref(), Some("a.b-c_d+e"));
        for hrp in ["age1", "age", "age1../../bin/sh", "age1a/b", "bge1name"] {
            assert_eq!(recipient(hrp), None, "{hrp}");
        }
        let identity = |hrp: &str| identity_name(&encode(hrp).to_uppercase());
        assert_eq!(identity("age-plugin-yubikey-").as_deref(), Some("yubikey"));
        for hrp in ["age-plugin--", "age-plugin-", "age-plugin-a/b-", "age-secret-key-"] {
            assert_eq!(identity(hrp), None, "{hrp}");
        }
    }

    fn encode(hrp: &str) -> String {
        age_core::primitives::bech32_encode(bech32::Hrp::parse_unchecked(hrp), &[1, 2, 3])
    }

    #[test]
    fn what_a_plugin_says_is_one_short_line_of_plain_text() {
        assert_eq!(plain(b" touch\x1b[2J the\nkey\r\n"), "touch [2J the key");
        assert_eq!(plain("a\u{202e}b\u{200b}".as_bytes()), "a b ");
        assert_eq!(plain(b"\xff"), "\u{fffd}");
        let long = plain(&[b'x'; 5000]);
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAX_TEXT + 1, true));
    }
}
