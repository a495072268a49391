//! What the fuzz target `vault` runs: every parser of what the vault keeps, but for SQLite's pages, which are SQLite's.
//!
//! What checksums and ciphers keep a mutation from reaching is tried with those made good, too.

use super::index::{Bucket, END, Entry, IndexCipher};
use super::keys::{HEAD, Keys, MAGIC, file_key};
use super::pseudonym::Pseudonym;
use super::record::{Changes, Erasing, Meta, Skipped, with_check};
use super::root::{Root, RootFile, RootKey};
use super::roots::RootsFile;
use super::rows::{Person, Row, RowCipher};
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
    let again = [
        Meta::decode(bytes).map(|meta| meta.encode()),
        Changes::decode(bytes).map(Changes::encode),
        Erasing::decode(bytes).map(|erasing| Erasing::encode(erasing.as_ref())),
        Skipped::decode(bytes).map(|skipped| skipped.encode()),
    ];
    for again in again.into_iter().flatten() {
        assert_eq!(again, bytes, "a record has one spelling");
    }
    if let Some(Skipped(ranges)) = Skipped::decode(bytes) {
        assert!(ranges.iter().all(|(first, end)| Skipped(ranges.clone()).covers(*first, *end)));
    }
}

fn bucket(bytes: &[u8]) {
    let Some((start, content)) = bytes.split_first_chunk::<2>() else { return };
    let start = u64::from(u16::from_be_bytes(*start));
    if let Some(bucket) = Bucket::decode(start, content) {
        assert_eq!(bucket.encode(), *content, "a bucket has one spelling");
        assert!(u32::from(bucket.start) < bucket.end && bucket.end <= END, "a bucket has a prefix");
    }
}

fn row(bytes: &[u8]) {
    let Some((id, bytes)) = bytes.split_first_chunk::<8>() else { return };
    let id = u64::from_be_bytes(*id);
    let cipher = RowCipher::new(&Secret([1; 32]), LOG).expect("a key of its length");
    let seal = |row: &Row| cipher.seal(id, row).expect("a row is short");
    if let Some(row) = cipher.open(id, bytes) {
        assert_eq!(seal(&row)[..], *bytes, "a row has one spelling");
    }
    let mut row = Row::empty();
    for (place, person) in bytes.as_chunks::<48>().0.iter().take(16).enumerate() {
        let (key, pseudonym) = person.split_first_chunk::<32>().expect("48 bytes are 32 and 16");
        let pseudonym = Pseudonym(pseudonym.try_into().expect("48 bytes are 32 and 16"));
        row.set(place, Some(&Person { key: Secret(*key), pseudonym }));
        assert!(
            row.person(place).is_some_and(|person| person.key.0 == *key && person.pseudonym == pseudonym)
        );
    }
    let opened = cipher.open(id, &seal(&row)).expect("what was sealed opens");
    assert_eq!(opened.people().count(), bytes.as_chunks::<48>().0.len().min(16));
}

fn entry(bytes: &[u8]) {
    let Some((place, bytes)) = bytes.split_first() else { return };
    let cipher = IndexCipher::new(5, &Secret([2; 32]), LOG).expect("a key of its length");
    if let Some(entries) = cipher.open(*place, bytes) {
        assert_eq!(cipher.seal(*place, &entries).expect("it is short"), bytes, "a row has one spelling");
    }
    let entries = bytes.as_chunks::<12>().0.iter().map(|entry| {
        let (half, number) = entry.split_first_chunk().expect("12 bytes are 8 and 4");
        Entry { half: *half, number: u32::from_le_bytes(number.try_into().expect("12 bytes are 8 and 4")) }
    });
    let entries = entries.collect::<Vec<_>>();
    let opened = cipher.open(*place, &cipher.seal(*place, &entries).expect("it is short"));
    assert_eq!(opened.is_some(), entries.is_sorted_by(|one, next| one < next), "entries ascend");
    assert!(opened.is_none_or(|opened| opened == entries));
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
