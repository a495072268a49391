//! What lies beside `checkpoint` and is shipped with it: the tree head as COSE, and what witnesses have cosigned.
//!
//! All of it is read from the source before `checkpoint` is, and was published there after the checkpoint that it is of: so it covers no
//! more, beside a writer too.
//!
//! Invariants:
//! - nothing is kept that the log's key has not signed, of the destination's own tree, nor a cosignature of a witness of the log's own
//!   policy that does not verify;
//! - a file is written once the checkpoint is durable that covers as much, and only in the place of one that says less: so it never goes
//!   back, and no reader finds one that is ahead of the checkpoint;
//! - before a checkpoint is replaced that is cosigned as the log's policy asks for, such a one is in `checkpoint.witnessed`: so a mirror
//!   that its witnesses have seen stays one.

use super::damaged;
use crate::format::config::LogConfig;
use crate::format::files;
use crate::scan::finding::{Finding, FindingKind};
use crate::scan::{cose, cosignatures, stored_tree, trust};
use bulla_proof::checkpoint::{MAX_NOTE, SignedNote, open_checkpoint};
use bulla_proof::cose::MAX_COSE_CHECKPOINT;
use bulla_proof::cosignature::CosignerKey;
use bulla_proof::tree::TreeHead;
use bulla_store::{Error, Result, Store};
use std::collections::BTreeMap;
use std::io;

/// A file beside `checkpoint`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Cose,
    Witnessed,
    /// Of the witness whose key has this id.
    Cosigned(u32),
}

impl Name {
    fn path(&self) -> String {
        match self {
            Name::Cose => files::COSE_CHECKPOINT.to_owned(),
            Name::Witnessed => files::WITNESSED.to_owned(),
            Name::Cosigned(key_id) => files::cosigned_path(*key_id),
        }
    }

    /// What stands in the file; nothing where there is none, and no bytes where it is longer than any may be.
    fn read(&self, store: &dyn Store) -> Result<Option<Vec<u8>>> {
        let most = if *self == Name::Cose { MAX_COSE_CHECKPOINT } else { MAX_NOTE };
        match bulla_store::read_small(store, &self.path(), most as u64) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.io_error().map(io::Error::kind) {
                Some(io::ErrorKind::NotFound) => Ok(None),
                None => Ok(Some(Vec::new())),
                Some(_) => Err(error),
            },
        }
    }
}

/// What a source has beside its checkpoint.
pub(super) struct Offered(Vec<(Name, Vec<u8>)>);

impl Offered {
    /// Reads it. To be read before `checkpoint` is.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(super) fn read(source: &dyn Store, config: &LogConfig) -> Result<Self> {
        let mut names = vec![Name::Cose];
        if let Some(policy) = &config.witness_policy {
            names.extend(policy.asked().iter().map(|witness| Name::Cosigned(witness.key.key_id())));
            names.push(Name::Witnessed);
        }
        let mut offered = Vec::new();
        for name in names {
            if let Some(bytes) = name.read(source)? {
                offered.push((name, bytes));
            }
        }
        Ok(Offered(offered))
    }
}

/// How much a file says: of how many frames; how many witnesses of the policy have signed it; the newest time among these.
type Says = (u64, usize, u64);

/// What a file is.
enum Judged {
    /// It may cover more than the tree that it was held against.
    Sound(Says),
    /// Nothing that the log, or a witness, has signed. With a finding where that says of a log that it is damaged.
    Nothing(Option<Finding>),
    /// It is signed by the log's key, and of another tree than the log's.
    OtherTree(Finding),
}

/// The log that files are held against: its tree is that of `head`, whose tiles are in `store`.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) config: &'a LogConfig,
    pub(super) head: TreeHead,
}

impl Tree<'_> {
    fn judge(&self, name: &Name, bytes: &[u8]) -> Result<Judged> {
        match name {
            Name::Cose => self.judge_cose(bytes),
            Name::Witnessed => self.judge_note(name, bytes, &|note| {
                let judgement = self.config.witness_policy.as_ref()?.policy().judge(note).ok()?;
                let met = judgement.is_met();
                let times =
                    judgement.witnesses.iter().filter_map(|witness| Some(witness.cosignature?.timestamp));
                met.then(|| (times.clone().count(), times.max().unwrap_or_default()))
            }),
            Name::Cosigned(key_id) => self.judge_note(name, bytes, &|note| {
                let key = self.asked(*key_id)?;
                key.verify(note).ok().map(|cosignature| (1, cosignature.timestamp))
            }),
        }
    }

    fn asked(&self, key_id: u32) -> Option<&CosignerKey> {
        let asked = self.config.witness_policy.as_ref()?.asked();
        asked.iter().map(|witness| &witness.key).find(|key| key.key_id() == key_id)
    }

    fn judge_cose(&self, bytes: &[u8]) -> Result<Judged> {
        let wrong = |why| Judged::Nothing(Some(cose::mismatch(why)));
        let signed = match cose::signed(bytes, self.config) {
            Ok(signed) => signed,
            Err(why) => return Ok(wrong(why)),
        };
        let found = cose::compare(&signed, self.store, self.head)?;
        Ok(found.map_or(Judged::Sound((signed.size(), 0, 0)), Judged::OtherTree))
    }

    /// Judges a checkpoint of which `witnesses` says how many have signed it, and when.
    fn judge_note(
        &self,
        name: &Name,
        bytes: &[u8],
        witnesses: &dyn Fn(&SignedNote<'_>) -> Option<(usize, u64)>,
    ) -> Result<Judged> {
        let Ok(checkpoint) = open_checkpoint(bytes, &self.config.verifier_key) else {
            return Ok(Judged::Nothing(None));
        };
        if checkpoint.size < self.head.size {
            let root = stored_tree::root_at(self.store, self.head, checkpoint.size)?;
            if root.is_some_and(|root| root != checkpoint.root) {
                return Ok(other_tree(name, checkpoint.size));
            }
        } else if checkpoint.size == self.head.size && checkpoint.root != self.head.root {
            return Ok(other_tree(name, checkpoint.size));
        }
        let says = SignedNote::parse(bytes).ok().and_then(|note| witnesses(&note));
        Ok(says.map_or(Judged::Nothing(None), |(count, time)| Judged::Sound((checkpoint.size, count, time))))
    }
}

fn other_tree(name: &Name, size: u64) -> Judged {
    Judged::OtherTree(Finding::new(FindingKind::WitnessMismatch, trust::other_tree(&name.path(), size)))
}

/// What the destination has, as far as it was looked at, and what of the source was dealt with.
#[derive(Default)]
pub(super) struct Beside {
    /// Nothing where there is no file, or one that counts for nothing.
    held: BTreeMap<Name, Option<Says>>,
    dealt_with: BTreeMap<Name, Vec<u8>>,
}

impl Beside {
    /// Takes up what the source offers of the destination's tree, once that is published.
    ///
    /// # Errors
    /// `Tampered` where the source has something else there that the log's key has signed, or a tree head as COSE that it has not; or
    /// where the destination has. `Unavailable` where a file cannot be read or written.
    pub(super) fn take_up(&mut self, tree: Tree<'_>, Offered(offered): &Offered) -> Result<()> {
        for (name, bytes) in offered {
            self.take(tree, (name, bytes), tree.head.size)?;
        }
        Ok(())
    }

    /// Before the checkpoint of `tree` takes the place of the note `published`, which is of `before` frames: has the newest one that is
    /// cosigned as the policy asks for be in `checkpoint.witnessed`.
    ///
    /// # Errors
    /// As [`Beside::take_up`].
    pub(super) fn keep_witnessed(
        &mut self,
        tree: Tree<'_>,
        published: Option<(&[u8], u64)>,
        Offered(offered): &Offered,
    ) -> Result<()> {
        if tree.config.witness_policy.is_none() {
            return Ok(());
        }
        // Of a first checkpoint nobody reads anything before it is there.
        let most = published.map_or(tree.head.size, |(_, before)| before);
        let of_source =
            offered.iter().find(|(name, _)| *name == Name::Witnessed).map(|(_, bytes)| &bytes[..]);
        for bytes in [published.map(|(note, _)| note), of_source].into_iter().flatten() {
            self.take(tree, (&Name::Witnessed, bytes), most)?;
        }
        Ok(())
    }

    /// Takes a file up where it covers at most so many frames, and says more than what is there.
    fn take(&mut self, tree: Tree<'_>, (name, bytes): (&Name, &[u8]), most: u64) -> Result<()> {
        if self.dealt_with.get(name).is_some_and(|before| before == bytes) {
            return Ok(());
        }
        let held = self.held(tree, name)?;
        match tree.judge(name, bytes)? {
            Judged::Sound(says) if says.0 > most => return Ok(()),
            Judged::Sound(says) if held < Some(says) => {
                let path = name.path();
                let written = cosignatures::replace(tree.store, &path, bytes);
                written
                    .map_err(|error| Error::io(format!("writing {}", tree.store.describe(&path)), error))?;
                self.held.insert(name.clone(), Some(says));
            }
            Judged::OtherTree(finding) | Judged::Nothing(Some(finding)) => return Err(damaged(&finding)),
            Judged::Sound(_) | Judged::Nothing(None) => {}
        }
        self.dealt_with.insert(name.clone(), bytes.to_vec());
        Ok(())
    }

    /// How much the destination's own file says.
    fn held(&mut self, tree: Tree<'_>, name: &Name) -> Result<Option<Says>> {
        if let Some(held) = self.held.get(name) {
            return Ok(*held);
        }
        let judged = name.read(tree.store)?.map(|bytes| tree.judge(name, &bytes)).transpose()?;
        let held = match judged {
            Some(Judged::Sound(says)) => Some(says),
            Some(Judged::OtherTree(finding)) => {
                return Err(Error::tampered(format!("the destination: {finding}; nothing is written to it")));
            }
            None | Some(Judged::Nothing(_)) => None,
        };
        self.held.insert(name.clone(), held);
        Ok(held)
    }
}
