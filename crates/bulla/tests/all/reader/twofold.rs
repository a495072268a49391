//! A writer that has every key, and lies: the ciphertext of a group opens under another key than the one that the group commits to, and is
//! exactly what was to be logged. Whoever brings that other key, by any way on which keys come, is told so, and gets none of it: a reader that decrypted
//! first would have had sense to give out. Vaults that were put back, and the control socket of their writer, are in `erase/another_vault.rs`; a
//! proof's secret is in `disclosed.rs`.

use super::world::*;
use crate::damage::world::Mask;
use bulla::environment::{AesGcm, Cipher, apply_key_stream};
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret};
use bulla::keys::identities::generate;
use bulla::keys::plugin::DEFAULT_TIMEOUT;
use bulla::keys::recipients::{Age, IdentityFile};
use bulla::{ErrorKind, Export, FindingKind, Grant, Query, Result};
use bulla_proof::commitment::Commitment;
use bulla_proof::varint;
use std::sync::Arc;

/// The secret under which everything opens, and to which nothing commits.
fn other() -> GroupSecret {
    GroupSecret::new([77; 32])
}

/// Encrypts each group under the key of that.
struct Liar;

impl Cipher for Liar {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.seal(key, frame, additional, text)
    }

    fn seal_group(&self, _: &[u8; 32], text: &mut [u8]) -> Result<()> {
        apply_key_stream(&other().key().key, text);
        Ok(())
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        AesGcm.open(key, frame, additional, text)
    }
}

/// Says of each group that this is its secret.
struct Other;

impl GroupKeys for Other {
    fn number(&self, subject: &str) -> Result<Option<u64>> {
        Ok(subject.strip_prefix("user_").and_then(|number| number.parse().ok()))
    }

    fn secrets(&self, _: BlockContext<'_>, groups: &[&[u64]]) -> Result<Vec<Option<GroupSecret>>> {
        Ok(groups.iter().map(|_| Some(other())).collect())
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn erased_up_to(&self) -> Result<Followed> {
        Ok(Followed::NOTHING)
    }
}

const PEOPLE: u64 = 4;

/// A block of two entries of each of some people, between two blocks of entries of nobody, which are in no group.
fn twofold() -> (World, Commitment) {
    let mut world = World::grouped_by(31, Arc::new(Liar));
    let log = world.open();
    world.block(&log, vec![Row::new(0, "read")], 1);
    let row = |number: u64| Row::new(1, "read").subject(&format!("user_{}", number % PEOPLE));
    world.block(&log, (0..2 * PEOPLE).map(row).collect(), 1);
    world.block(&log, vec![Row::new(2, "read")], 1);
    log.close().unwrap();
    let block = blocks(&world.image())[1].clone();
    assert_eq!((block.first_entry, block.entries, block.units), (1, 2 * PEOPLE, PEOPLE));
    (world, block)
}

/// It names the place, and says that it is the key.
#[track_caller]
fn told(what: &str, finding: &str, block: &Commitment) {
    assert!(finding.contains("is not under the key that it commits to"), "{what}: {finding}");
    assert!(finding.contains(&format!("frame {}", block.frame)), "{what}: {finding}");
}

#[test]
fn who_was_given_the_keys_that_are_committed_to_cannot_read_it_either() {
    let (world, block) = twofold();
    let error = answer(&world.reader(world.image()), &Query::new()).unwrap_err().to_string();
    assert!(error.contains(&format!("frame {}", block.frame)), "{error}");
    assert!(!error.contains("commits to"), "these are the keys: {error}");
}

#[test]
fn no_query_export_proof_grant_or_follower_reads_it_with_another_key() {
    let (world, block) = twofold();
    let reader = || reader(world.image(), &world.key).group_keys(Arc::new(Other));
    let mut given = Vec::new();
    let refused = |what: &str, result: Result<()>, given: &[u64]| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{what}: {error}");
        told(what, &error.to_string(), &block);
        // No more than what comes before it.
        assert!(given.iter().all(|&number| number < block.first_entry), "{what}: {given:?}");
    };
    for query in [Query::new(), Query::new().subject("user_1"), Query::new().location(b"3")] {
        given.clear();
        let read = reader().for_each(&query, |number, _| {
            given.push(number);
            Ok(())
        });
        refused("query", read.map(drop), &given);
        refused("proof", reader().prove(&query).map(drop), &[]);
        refused("grant", reader().grant(&query).map(drop), &[]);
        given.clear();
        let followed = reader();
        let polled = followed.follow(&query).unwrap().poll(|followed| {
            given.push(followed.number);
            Ok(())
        });
        refused("follower", polled.map(drop), &given);
        let export = Export::open_store(Arc::new(world.image())).unwrap().key(world.key.clone());
        let export = export.identity(Arc::new(Mask)).group_keys(Arc::new(Other)).query(query);
        let mut out = Vec::new();
        refused("export", export.run(&mut out).map(drop), &[]);
        let numbers = out.split_inclusive(|&byte| byte == b'\n').map(entry_number).collect::<Vec<_>>();
        assert_eq!(numbers, [] as [u64; 0], "an export verifies first");
    }
}

#[test]
fn a_verification_finds_it() {
    let (world, block) = twofold();
    let report = world.verify(world.image()).group_keys(Arc::new(Other)).run().unwrap();
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((finding.kind, finding.frame), (FindingKind::BlockInvalid, Some(block.frame)));
    told("verify", &finding.to_string(), &block);
    assert!(!report.ok);
}

#[test]
fn salvage_leaves_the_block_out_and_says_so() {
    let (world, block) = twofold();
    let export = Export::open_store(Arc::new(world.image())).unwrap().key(world.key.clone());
    let export = export.identity(Arc::new(Mask)).group_keys(Arc::new(Other)).salvage(true);
    let mut out = Vec::new();
    let exported = export.run(&mut out).unwrap();
    let numbers = out.split_inclusive(|&byte| byte == b'\n').map(entry_number).collect::<Vec<_>>();
    assert_eq!(numbers, [0, 1 + block.entries]);
    assert_eq!((exported.entries, exported.left_out), (2, block.entries));
    let [finding] = &exported.findings[..] else { panic!("{:?}", exported.findings) };
    told("salvage", &finding.to_string(), &block);
}

/// The file of a grant, as whoever has a vault can make it, with that secret for each of the block's groups.
fn grant_file(world: &World, block: &Commitment) -> Vec<u8> {
    let register = world.register.as_ref().unwrap();
    let names = (0..PEOPLE).map(|person| format!("user_{person}")).collect::<Vec<_>>();
    let mut numbers = names.iter().map(|name| register.number_of(name)).collect::<Vec<_>>();
    let mut file = b"BulG\x01".to_vec();
    file.extend(block.log_id.0);
    file.extend((block.frame + 2).to_le_bytes());
    varint::push(PEOPLE, &mut file);
    for (name, number) in names.iter().zip(&numbers) {
        varint::push(name.len() as u64, &mut file);
        file.extend(name.as_bytes());
        varint::push(*number, &mut file);
    }
    varint::push(PEOPLE, &mut file);
    numbers.sort_unstable();
    for (place, number) in numbers.into_iter().enumerate() {
        varint::push(if place == 0 { block.frame } else { 0 }, &mut file);
        varint::push(1, &mut file);
        varint::push(number, &mut file);
        file.extend(other().as_bytes());
    }
    file
}

#[test]
fn nobody_reads_it_with_a_grant_of_another_key() {
    let (world, block) = twofold();
    let (identity, recipient) = generate();
    let file = Age::default().encrypt(&[recipient], &grant_file(&world, &block), DEFAULT_TIMEOUT).unwrap();
    let identity = IdentityFile::parse(&identity).unwrap();
    let grant = Arc::new(Grant::open(&file, &identity, block.log_id).unwrap());
    let auditor = reader(world.image(), &world.key).group_keys(grant);
    for query in [Query::new(), Query::new().subject("user_2")] {
        let mut given = Vec::new();
        let error = auditor.for_each(&query, |number, _| {
            given.push(number);
            Ok(())
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
        told("grant", &error.to_string(), &block);
        assert!(given.iter().all(|&number| number < block.first_entry), "{given:?}");
    }
}
