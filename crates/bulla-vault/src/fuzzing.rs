//! What the fuzz target `vault` runs: every parser of what the vault keeps, but for LMDB's pages, which are LMDB's.
//!
//! What checksums and ciphers keep a mutation from reaching is tried with those made good, too.

use super::index::{Bucket, Entry, IndexCipher};
use super::keys::{HEAD, Keys, MAGIC, file_key};
use super::pseudonym::Pseudonym;
use super::record::{Changes, Erasing, Follows, Meta, with_check};
use super::root::{Root, RootFile, RootKey};
use super::roots::RootsFile;
use super::rows::{self, Row, RowCipher};
use bulla_crypto::environment::{AesGcm, Cipher, Random};
use bulla_crypto::subject::Secret;
use bulla_proof::commitment::LogId;
use bulla_store::Result;

const LOG: LogId = LogId([7; 16]);
const GENERATION: u64 = 3;

/// All of them.
pub fn vault(bytes: &[u8]) {
    record(bytes);
    record(&with_check(bytes.to_vec()));
    bucket(bytes);
    row(bytes);
    entry(bytes);
    root_file(bytes);
    if let Ok(name) = std::str::from_utf8(bytes)
        && let Some(file) = RootsFile::parse(name.to_owned())
    {
        let kind = if file.root { "root" } else { "keys" };
        let end = if file.temporary { ".tmp" } else { "" };
        assert_eq!(format!("{}.{kind}{end}", file.generation), name, "a file of the roots has one name");
    }
    keys_file(bytes);
    if let Some((counts, text)) = bytes.split_first_chunk::<8>() {
        keys_file(&sealed(counts, text));
    }
}

fn record(bytes: &[u8]) {
    if let Some(meta) = Meta::decode(bytes) {
        assert_eq!(meta.encode(), bytes, "a record has one spelling");
    }
    if let Some(follows) = Follows::decode(bytes) {
        assert_eq!(follows.encode(), bytes, "a record has one spelling");
    }
    if let Some(changes) = Changes::decode(bytes) {
        assert_eq!(changes.encode(), bytes, "a record has one spelling");
    }
    if let Some(erasing) = Erasing::decode(bytes) {
        assert_eq!(erasing.encode(), bytes, "a record has one spelling");
    }
}

fn bucket(bytes: &[u8]) {
    let Some((start, value)) = bytes.split_first_chunk::<2>() else { return };
    let mut checked = value.to_vec();
    if let ([id, entries, ..], _) = value.as_chunks::<4>() {
        let [id, entries] = [id, entries].map(|number| u32::from_le_bytes(*number));
        let bucket = Bucket { start: u16::from_be_bytes(*start), id, entries };
        checked = bucket.encode().to_vec();
        assert_eq!(Bucket::decode(start, &checked), Some(bucket), "what was encoded decodes");
    }
    for value in [value, &checked] {
        if let Some(bucket) = Bucket::decode(start, value) {
            assert_eq!(bucket.encode()[..], *value, "a bucket has one spelling");
        }
    }
}

fn row(bytes: &[u8]) {
    let Some((key, bytes)) = bytes.split_first_chunk::<8>() else { return };
    let number = rows::parse_number(key).ok().expect("eight bytes are a number");
    let cipher = RowCipher::new(&Secret([1; 32]), LOG).expect("a key of its length");
    let seal = |row: &Row| cipher.seal(number, row).expect("a row is short");
    if let Some(row) = cipher.open(number, bytes) {
        assert_eq!(seal(&row)[..], *bytes, "a row has one spelling");
    }
    let Some((key, rest)) = bytes.split_first_chunk::<32>() else { return };
    let Some(pseudonym) = rest.first_chunk::<16>() else { return };
    let row = Row { key: Secret(*key), pseudonym: Pseudonym(*pseudonym) };
    let opened = cipher.open(number, &seal(&row)).expect("what was sealed opens");
    assert!(opened.key.0 == *key && opened.pseudonym.0 == *pseudonym);
}

fn entry(bytes: &[u8]) {
    const ID: u32 = 5;
    let cipher = IndexCipher::new(ID, &Secret([2; 32])).expect("a key of its length");
    let (key, value) = bytes.split_at(bytes.len().min(20));
    if let Ok(Entry { pseudonym, number }) = cipher.open(key, value) {
        let (again, number) = cipher.seal(Entry { pseudonym, number }).expect("an entry is one block");
        assert_eq!((&again[4..], &number[..]), (&key[4..], value), "an entry has one spelling");
    }
}

fn root_file(bytes: &[u8]) {
    if let Ok(root) = RootFile.unwrap(bytes, LOG, GENERATION) {
        assert_eq!(
            **RootFile.wrap(&root, LOG, GENERATION).expect("a file"),
            *bytes,
            "a root has one spelling"
        );
    }
}

fn root() -> RootKey {
    RootKey::new([3; 32])
}

/// The file of keys that says to hold as many as `counts`, and holds `text`.
fn sealed(counts: &[u8; 8], text: &[u8]) -> Vec<u8> {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    head[8..24].copy_from_slice(&LOG.0);
    head[24..32].copy_from_slice(&GENERATION.to_le_bytes());
    head[32..40].copy_from_slice(counts);
    let mut text = text.to_vec();
    AesGcm.seal(&file_key(&root(), &head), 0, &head, &mut text).expect("the text is short");
    [&head[..], &text].concat()
}

fn keys_file(bytes: &[u8]) {
    /// The random bytes of a file.
    struct Same<'a>(&'a [u8]);
    impl Random for Same<'_> {
        fn fill(&self, bytes: &mut [u8]) -> Result<()> {
            bytes.copy_from_slice(self.0);
            Ok(())
        }
    }
    if let Ok(keys) = Keys::open(bytes, LOG, GENERATION, &root()) {
        assert!(keys.index.is_sorted_by(|one, next| one.0 < next.0), "buckets ascend");
        let again = keys.seal(&Same(&bytes[40..HEAD])).expect("the keys are few");
        assert_eq!(again, bytes, "a file of keys has one spelling");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_target_holds_on_its_corpus_and_close_to_it() {
        bulla_testkit::corpus::check(&[("vault", super::vault)]);
    }
}
