//! Everybody of a log is erased in turn, each from a copy of it, and then all of them from one: what remains, byte by byte, in the log's directory and in
//! that of its keys, as it lies there and decrypted with all keys that are left.

use super::copies::files;
use super::world::World;
use bulla::environment::{AesGcm, Cipher, apply_key_stream};
use bulla::keys::group::{BlockContext, GroupKeys};
use bulla::keys::recipients::Identity;
use bulla::{Entry, Init, Log, Options};
use bulla_columns::{Decoder, Rows};
use bulla_crypto::epoch::EpochKeys;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_vault::Access;
use std::collections::BTreeMap;
use std::time::Duration;

const PEOPLE: u64 = 24;
const COMMON: u32 = 8;
const HEAD: usize = 24;
const SEAL: usize = 32;

/// What nobody else has: a name, a place, a word.
fn own(person: u64) -> [String; 3] {
    [format!("person_{person}_"), format!("/of{person}/"), format!("own{person}word")]
}

/// What stays of each entry of theirs: its row without personal fields.
fn shared(time: i64) -> Vec<u8> {
    let entry = Entry { operation: "read", purpose: Some("billing"), status: Some(200), ..Entry::default() };
    encode(&entry.time(time))
}

fn encode(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(0, &mut row);
    row
}

/// A log with one block, of two entries of each person.
fn log() -> World {
    let world = World::made(Init::default().erasure(true).common(Some(COMMON)));
    // A flush is a block: nothing else hands over what is staged.
    let options = Options::default().linger(Duration::from_secs(3600));
    let log = Log::open(&world.directory, options).unwrap();
    let mut producer = log.producer().unwrap();
    for number in 0..2 * PEOPLE {
        let [name, path, word] = own(number / 2);
        let payload = format!("{{\"what\":\"everybody has it\",\"own\":\"{word}\",\"turn\":{}}}", number % 2);
        let entry = Entry::new("read", &path).time(number.cast_signed()).subject(&name);
        let entry = entry.purpose("billing").status(200).payload(&payload);
        producer.append(&entry).unwrap();
    }
    producer.flush().unwrap().durable().unwrap();
    drop(producer);
    log.close().unwrap();
    world
}

/// All that can be read of a log.
struct Left {
    /// Every byte of every file, as it is.
    raw: Vec<u8>,
    /// All that comes out of these files' blocks: shared rows, common items, groups as far as they open.
    decrypted: Vec<u8>,
    items: Vec<Vec<u8>>,
    /// Of each entry its shared row, and the whole one where its group opens.
    entries: BTreeMap<u64, (Vec<u8>, Option<Vec<u8>>)>,
}

impl Left {
    fn of(world: &World) -> Self {
        let raw = [files(&world.directory), files(&world.keys())].concat();
        let mut left = Left {
            raw: raw.iter().flat_map(|(_, content)| content).copied().collect(),
            decrypted: Vec::new(),
            items: Vec::new(),
            entries: BTreeMap::new(),
        };
        let mut keys = BTreeMap::new();
        let mut segments = raw.iter().filter(|(name, _)| name.ends_with(".seg")).collect::<Vec<_>>();
        segments.sort();
        for (_, segment) in segments {
            let mut rest = &segment[..];
            while !rest.is_empty() {
                let commitment = Commitment::decode(&rest[HEAD..][..Commitment::LENGTH]).unwrap();
                let length = usize::try_from(commitment.body_length).unwrap();
                let body = &rest[HEAD + Commitment::LENGTH..][..length];
                rest = &rest[HEAD + Commitment::LENGTH + length + SEAL..];
                match commitment.kind {
                    FrameKind::Epoch => {
                        let secret = world.identity().unwrap(&body[136..]).unwrap().unwrap();
                        let random = *body[4..].first_chunk().unwrap();
                        let of_epoch =
                            EpochKeys::derive(&secret, random, world.id, commitment.frame).unwrap();
                        keys.insert(commitment.frame, of_epoch);
                    }
                    FrameKind::Block => left.read(world, &commitment, body, &keys[&commitment.epoch]),
                    _ => {}
                }
            }
        }
        left
    }

    /// Takes in a block, with the keys of everybody who has one left.
    fn read(&mut self, world: &World, commitment: &Commitment, body: &[u8], keys: &EpochKeys) {
        let mut text = body.to_vec();
        AesGcm.open(keys.body(), commitment.frame, &commitment.additional_data(), &mut text).unwrap();
        let (mut decoder, mut rows, mut pieces) = (Decoder::new(), Rows::default(), Rows::default());
        let entries = usize::try_from(commitment.entries).unwrap();
        decoder.decode(&text, entries, 1 << commitment.content_log2, &mut rows).unwrap();
        for (number, row) in (commitment.first_entry..).zip(rows.iter()) {
            self.decrypted.extend(row);
            self.entries.insert(number, (row.to_vec(), None));
        }
        self.items = decoder.items().iter().map(<[u8]>::to_vec).collect();
        self.decrypted.extend(self.items.concat());
        let vault = world.vault(Access::Read);
        let place = BlockContext { log: world.id, epoch_random: keys.random(), frame: commitment.frame };
        let numbers = (0..PEOPLE).map(|number| vec![number]).collect::<Vec<_>>();
        let numbers = numbers.iter().map(Vec::as_slice).collect::<Vec<_>>();
        let secrets = vault.secrets(place, &numbers).unwrap();
        for group in 0..decoder.groups().len() {
            // Whoever's key it is that opens it.
            let content = decoder.groups().content(group);
            let opens = secrets.iter().flatten().map(|secret| secret.key());
            let Some(key) = opens.into_iter().find(|key| key.commitment == *content.commitment) else {
                continue;
            };
            let mut text = content.ciphertext.to_vec();
            apply_key_stream(&key.key, &mut text);
            let (personal, of_row) =
                (content.personal, |row: &usize| decoder.groups().of_row(*row) == Some(group));
            let members = (0..entries).filter(of_row).collect::<Vec<_>>();
            let mut room = decoder.left();
            decoder.decode_group(&text, members.len(), personal, &mut room, &mut pieces).unwrap();
            for (row, piece) in members.into_iter().zip(pieces.iter()) {
                self.decrypted.extend(piece);
                self.entries.get_mut(&(commitment.first_entry + row as u64)).unwrap().1 =
                    Some(piece.to_vec());
            }
        }
    }

    /// Whether anything of somebody's own is in it: all of it or nothing.
    fn has(&self, person: u64) -> bool {
        let has = |word: &String| self.decrypted.windows(word.len()).any(|part| part == word.as_bytes());
        let found = own(person).iter().map(has).collect::<Vec<_>>();
        assert!(found.iter().all(|one| *one == found[0]), "{person}: {found:?}");
        assert!(
            !own(person).iter().any(|word| self.raw.windows(word.len()).any(|part| part == word.as_bytes()))
        );
        found[0]
    }
}

/// Erases somebody, as `bulla erase` does.
fn erase(world: &World, person: u64) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    assert_eq!(log.erase(&world.order(&[&own(person)[0]])).unwrap().numbers.len(), 1);
    log.close().unwrap();
}

/// That of these people nothing is left but their entries' shared rows, and of all others everything.
#[track_caller]
fn only_shared_rows_are_left_of(erased: &dyn Fn(u64) -> bool, left: &Left, before: &Left) {
    assert_eq!(left.items, before.items, "what is common stays as it was");
    assert_eq!(left.entries.len() as u64, 2 * PEOPLE);
    for (number, (row, personal)) in &left.entries {
        assert_eq!(*row, shared(number.cast_signed()));
        let whole = &before.entries[number].1;
        assert!(whole.is_some() && *personal == whole.clone().filter(|_| !erased(number / 2)), "{number}");
    }
    for person in 0..PEOPLE {
        assert_eq!(left.has(person), !erased(person), "{person}");
    }
}

#[test]
fn of_each_who_is_erased_their_shared_rows_remain_and_what_many_have_in_common() {
    let world = log();
    let before = Left::of(&world);
    only_shared_rows_are_left_of(&|_| false, &before, &before);
    // It is by these that anything could remain.
    let common =
        |word: &[u8]| before.items.iter().any(|item| item.windows(word.len()).any(|part| part == word));
    assert!(common(b"everybody has it"), "{:?}", before.items);
    for person in 0..PEOPLE {
        let world = world.copied();
        erase(&world, person);
        only_shared_rows_are_left_of(&|one| one == person, &Left::of(&world), &before);
    }
    for person in 0..PEOPLE {
        erase(&world, person);
    }
    let left = Left::of(&world);
    only_shared_rows_are_left_of(&|_| true, &left, &before);
    // All that is left to be read, to the byte.
    let rows = (0..2 * PEOPLE).flat_map(|number| shared(number.cast_signed()));
    assert_eq!(left.decrypted, rows.chain(before.items.concat()).collect::<Vec<_>>());
}
