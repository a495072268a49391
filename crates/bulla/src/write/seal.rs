//! Sealing a block: columns, units and their root, padding, encryption.

use crate::format::groups::{self, Grouping, Leaves, Members};
use crate::format::sealed::{FrameNumbers, LogIdentity, Sealed};
use crate::index::Tokens;
use crate::write::stage::buffer::ROW_PREFIX;
use bulla_columns::account::{Account, Task};
use bulla_columns::{Compression, Encoder, Groups, Items, padme};
use bulla_crypto::environment::Cipher;
use bulla_crypto::epoch::EpochKeys;
use bulla_crypto::hashing::BulkHasher;
use bulla_proof::commitment::{Commitment, FrameKind, whole_second};
use bulla_proof::hash::{Hash, sha256};
use bulla_store::{Error, Result};
use zeroize::Zeroizing;

/// The codec id of bodies made here: columns, version 1.
pub(crate) const COLUMNS: u8 = 1;

/// What encryption adds to a body, in bytes.
const TAG: usize = 16;

/// What a block says of sources, and the key that it is encrypted under.
pub(crate) struct Section {
    pub(crate) text: Vec<u8>,
    pub(crate) key: Zeroizing<[u8; 32]>,
}

/// Seals blocks one after the other, reusing its working memory.
pub(crate) struct BlockSealer {
    encoder: Encoder,
    /// The body before it is padded and encrypted.
    encoded: Vec<u8>,
    hasher: BulkHasher,
    leaves: Vec<Hash>,
    salts: Vec<u8>,
    groups: Groups,
    members: Members,
}

impl BlockSealer {
    /// A sealer that compresses as told, and tells what it took.
    pub(crate) fn new(compression: Compression, account: Account) -> Self {
        let mut encoder = Encoder::new(compression);
        *encoder.account() = account;
        BlockSealer {
            encoder,
            encoded: Vec::new(),
            hasher: BulkHasher::default(),
            leaves: Vec::new(),
            salts: Vec::new(),
            groups: Groups::default(),
            members: Members::default(),
        }
    }

    /// What sealing took since it was last settled.
    pub(crate) fn account(&mut self) -> &mut Account {
        self.encoder.account()
    }

    /// Seals `rows`, canonical rows of which there is at least one, with what the block says of sources, if it says something. The
    /// frame depends on the arguments alone.
    ///
    /// # Errors
    /// Where bytes are no row, or the cipher refuses.
    #[expect(clippy::too_many_arguments, reason = "a block is all of this")]
    pub(crate) fn seal(
        &mut self,
        identity: LogIdentity,
        numbers: FrameNumbers,
        keys: &EpochKeys,
        cipher: &dyn Cipher,
        rows: &[&[u8]],
        grouping: &Grouping,
        section: Option<Section>,
    ) -> Result<Sealed> {
        self.account().turn_to(Some(Task::Encode));
        self.encoded.clear();
        let mut tokens = Tokens::new(keys);
        let partition = grouping.partition();
        let tell = |searched, value: Option<&[u8]>| tokens.tell(searched, value);
        let (earliest, latest) = self
            .encoder
            .encode_and_tell(rows, &partition, &mut self.encoded, tell)
            .map_err(|error| Error::invalid(format!("frame {}: {error}", numbers.frame)))?;
        let of_row = |row: usize| usize::try_from(partition.member.get(row)?.checked_sub(1)?).ok();
        self.members.fill(rows.len(), partition.groups, of_row);
        self.groups.begin(0);
        if partition.groups > 0 {
            groups::encrypt(grouping, rows, &self.members, &mut self.encoder, cipher, &mut self.groups)?;
            self.encoder.end_groups(&self.groups, &mut self.encoded);
            tokens.tell_groups(&self.groups);
        }
        self.account().turn_to(Some(Task::Hash));
        let units = rows.len() - self.members.len() + partition.groups;
        // The encoder has those of the last block that had groups.
        let items = if partition.groups > 0 { self.encoder.items() } else { &Items::NONE };
        keys.salts(numbers.frame, units, items.len(), &mut self.salts)?;
        let leaves = Leaves {
            identity,
            entries: rows.len(),
            salts: &self.salts,
            row: |row| if of_row(row).is_some() { &self.encoder.shared_rows()[row] } else { rows[row] },
            group: of_row,
            members: &self.members,
            groups: &self.groups,
            items,
        };
        leaves.hash(&mut self.hasher, &mut self.leaves);
        let root = self.hasher.block_root(identity.hash, &mut self.leaves, items.len());
        self.account().turn_to(Some(Task::Encode));
        let padded = padme(self.encoded.len());
        // The body stays in memory until it is committed, so it has no more room than it needs.
        let sources_length = section.as_ref().map_or(0, |section| section.text.len() + TAG);
        let mut body = Vec::with_capacity(padded + TAG + sources_length);
        body.extend_from_slice(&self.encoded);
        body.resize(padded, 0);

        let content: usize = rows.iter().map(|row| row.len() + ROW_PREFIX).sum();
        let mut commitment = Commitment {
            kind: FrameKind::Block,
            codec: COLUMNS,
            hash: identity.hash,
            content_log2: content_log2(content),
            sources_length: u32::try_from(sources_length).expect("what a block says of sources is bounded"),
            log_id: identity.log,
            frame: numbers.frame,
            first_entry: numbers.first_entry,
            entries: rows.len() as u64,
            earliest: whole_second(earliest),
            latest: whole_second(latest),
            epoch: numbers.epoch,
            units: units as u64,
            root,
            body_length: (body.len() + TAG + sources_length) as u64,
            body_digest: Hash::ZERO,
        };
        self.account().turn_to(Some(Task::Encrypt));
        let additional = commitment.additional_data();
        cipher.seal(keys.body(), numbers.frame, &additional, &mut body)?;
        if let Some(Section { mut text, key }) = section {
            cipher.seal(&key, numbers.frame, &additional, &mut text)?;
            body.extend_from_slice(&text);
        }
        self.account().turn_to(Some(Task::Hash));
        commitment.body_digest = sha256(&[&body]);
        self.account().turn_to(None);
        Ok(Sealed {
            tokens: tokens.finish(),
            groups: partition.groups as u64,
            ..Sealed::new(commitment, body)
        })
    }
}

/// The least k such that `content` bytes fit 2^k.
fn content_log2(content: usize) -> u8 {
    u8::try_from(content.next_power_of_two().trailing_zeros()).expect("there are 64 bits")
}
