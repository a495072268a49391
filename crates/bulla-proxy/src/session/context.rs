//! [`Context`]: what sessions have in common.

use super::hello::Hello;
use super::special;
use crate::command::{CommandTable, until_zero};
use crate::config::{self, Config, Mode, Policy, Unfollowable};
use crate::resp::{Arguments, Digest, Limits};
use bulla_proof::entry::MAX_STRING;

/// The longest that is told of what clients say of themselves, in bytes: a longer purpose is refused, and a longer name is cut.
pub(super) const MAX_CLAIM: usize = 1024;

/// What sessions of one proxy have in common.
pub struct Context {
    /// What the server's commands do.
    pub table: CommandTable,
    /// What becomes of commands of which not everything can be known.
    pub policy: Policy,
    /// How much of anything there may be.
    pub limits: config::Limits,
    /// When replies pass.
    pub mode: Mode,
    /// What becomes of bytes that are no commands or replies.
    pub unfollowable: Unfollowable,
    /// How many bytes of each value are recorded, if any.
    pub record_values: Option<usize>,
    /// Whether values say whose data keys are.
    pub learns: bool,
    /// Under which what is too long to be kept has its digest: the key of the rules.
    pub digest_key: [u8; 32],
}

impl Context {
    /// By a configuration, for commands of this table. Digests are under `digest_key`.
    pub(crate) fn new(config: &Config, table: CommandTable, digest_key: [u8; 32]) -> Self {
        Context {
            table,
            policy: config.policy,
            limits: config.limits,
            mode: config.mode,
            unfollowable: config.unfollowable,
            record_values: config.record_values,
            learns: config.rules.iter().any(|rule| rule.lesson.is_some()),
            digest_key,
        }
    }

    /// Bytes that are kept of commands that are not answered.
    pub(super) fn most_kept(&self) -> usize {
        self.limits.kept.saturating_mul(8)
    }

    /// Bytes that are kept of a transaction. The server has all of it, which is more.
    pub(super) fn most_queued(&self) -> usize {
        self.limits.kept.saturating_mul(256)
    }

    /// How much to keep of an argument, and which digest of it is wanted.
    pub(crate) fn keep(&self, so_far: &Arguments, index: u64, length: u64) -> (usize, Digest) {
        const WORD: u64 = CommandTable::WORD as u64;
        if index == 0 {
            return (CommandTable::WORD, Digest::None);
        }
        match until_zero(so_far, 0) {
            // Of what authenticates only the name.
            Some(name) if name.eq_ignore_ascii_case(b"auth") => {
                return (if index == 1 && so_far.count() > 2 { MAX_STRING } else { 0 }, Digest::None);
            }
            Some(name) if name.eq_ignore_ascii_case(b"hello") => {
                return (if Hello::keeps(so_far, index) { MAX_STRING } else { 0 }, Digest::None);
            }
            Some(name) if special::is_own(name) => return (MAX_CLAIM + 1, Digest::None),
            Some(name) if names_client(name, so_far, index) => return (MAX_CLAIM, Digest::None),
            Some(name) if is_script(name, so_far, index) => return (CommandTable::WORD, Digest::OfScript),
            _ => {}
        }
        match () {
            () if length <= WORD => (CommandTable::WORD, Digest::None),
            () if self.table.may_be_key(so_far, index) => (MAX_STRING, Digest::OfCut),
            () if self.learns => (self.limits.kept, Digest::None),
            () => (self.record_values.unwrap_or(CommandTable::WORD), Digest::None),
        }
    }

    /// What is kept of a command.
    pub(crate) fn request_limits(&self) -> Limits {
        Limits { bytes: self.limits.kept, items: self.limits.kept_items, text: MAX_STRING }
    }
}

/// Whether argument `index` of a command of this name is how the client calls itself.
fn names_client(name: &[u8], so_far: &Arguments, index: u64) -> bool {
    index == 2
        && name.eq_ignore_ascii_case(b"client")
        && until_zero(so_far, 1).is_some_and(|said| said.eq_ignore_ascii_case(b"setname"))
}

/// Whether argument `index` of a command of this name is code that the server runs, or keeps to run it.
fn is_script(name: &[u8], so_far: &Arguments, index: u64) -> bool {
    let is_container = |container: &[u8], subcommands: &[&[u8]]| {
        let said = until_zero(so_far, 1).filter(|_| index > 1 && name.eq_ignore_ascii_case(container));
        said.is_some_and(|said| subcommands.iter().any(|subcommand| said.eq_ignore_ascii_case(subcommand)))
    };
    match name.len() {
        4 => index == 1 && name.eq_ignore_ascii_case(b"eval"),
        7 => index == 1 && name.eq_ignore_ascii_case(b"eval_ro"),
        6 => index == 2 && is_container(b"script", &[b"load"]),
        // `LOAD [REPLACE] code` and `RESTORE dump [policy]`.
        8 => {
            index == 2 && is_container(b"function", &[b"restore"])
                || index + 1 == so_far.count() && is_container(b"function", &[b"load"])
        }
        _ => false,
    }
}
