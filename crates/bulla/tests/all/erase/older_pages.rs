//! Parts of the vault that are put back to what they were: authentic each, and older than the rest.

use super::restored::put_back;
use super::world::{World, copy};
use bulla::{ErrorKind, Log, Options, Query};
use bulla_vault::Access;
use std::path::Path;

/// The bytes of a page of the database.
const PAGE: usize = 4096;
/// Who came after the vault was copied, and the entries of theirs.
const NEW: &str = "user_45";
const ENTRIES: u64 = 1;

fn database(keys: &Path) -> std::path::PathBuf {
    keys.join("vault/vault.db")
}

/// A log, and what its vault was before its last entry, which is of somebody new.
fn with_somebody_new() -> (World, tempfile::TempDir) {
    let world = World::new();
    world.append(0..45);
    let before = copy(&world.keys());
    world.append(45..46);
    (world, before)
}

/// What a query for somebody found, and what it said that it cannot tell of; nothing where it says that the vault is damaged.
fn asked_for(world: &World, subject: &str) -> Option<(u64, u64)> {
    match world.reader().for_each(&Query::new().subject(subject), |_, _| Ok(())) {
        Ok(read) => Some((read.entries, read.undecided)),
        Err(error) => {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{text}");
            assert!(text.contains("is damaged (") && text.contains("restore `vault` and `roots`"), "{text}");
            None
        }
    }
}

/// Every page that differs is put back, and any of them together, all of them too.
#[test]
fn whatever_part_of_the_vault_is_put_back_nobody_is_hidden() {
    let (world, before) = with_somebody_new();
    let older = std::fs::read(database(before.path())).unwrap();
    let newer = std::fs::read(database(&world.keys())).unwrap();
    assert_eq!(older.len(), newer.len());
    let differs = |page: &usize| older[page * PAGE..][..PAGE] != newer[page * PAGE..][..PAGE];
    let pages = (0..newer.len() / PAGE).filter(differs).collect::<Vec<_>>();
    // The records, the row of people, and maybe the page that counts changes. To who is new no row of the index leads yet.
    assert!((2..=8).contains(&pages.len()), "{pages:?}");
    let (mut damaged, mut undecided) = (0, 0);
    for chosen in 0..1_u32 << pages.len() {
        let mut bytes = newer.clone();
        for (_, page) in pages.iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1) {
            bytes[page * PAGE..][..PAGE].copy_from_slice(&older[page * PAGE..][..PAGE]);
        }
        let copied = world.copied();
        std::fs::write(database(&copied.keys()), &bytes).unwrap();
        // Everybody's entries are there, or it is said that something is not told.
        for (subject, entries) in [(NEW, ENTRIES), ("user_7", 1), ("nobody", 0)] {
            match asked_for(&copied, subject) {
                Some((found, 0)) => assert_eq!(found, entries, "{chosen:b}: {subject}"),
                Some(_) => undecided += 1,
                None => damaged += 1,
            }
        }
        let verified = std::panic::catch_unwind(|| copied.verified());
        // Who is to be erased is erased, or it is told why not: never that nobody knows them.
        let erased = Log::open(&copied.directory, Options::default()).and_then(|log| {
            let erased = log.erase(&copied.order(&[NEW]));
            drop(log);
            erased
        });
        match erased {
            Ok(erased) => assert_eq!((&erased.numbers[..], verified.unwrap().ok), (&[45][..], true)),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("is damaged (") || text.contains("is older than the log"), "{text}");
            }
        }
    }
    assert!(damaged > 0 && undecided > 0, "{damaged} {undecided}");
}

/// An older vault with the newer records, which say how far it has come: a number that it says was given is nobody's.
#[test]
fn an_older_vault_that_says_it_is_newer_hides_nobody() {
    let (world, before) = with_somebody_new();
    let newer = std::fs::read(database(&world.keys())).unwrap();
    put_back(before.path(), &world.keys(), &["vault", "roots"]);
    let mut bytes = std::fs::read(database(&world.keys())).unwrap();
    let records = |page: &&[u8]| page.windows(8).any(|bytes| bytes == b"bullaVM5");
    let (place, page) = newer.chunks(PAGE).enumerate().find(|(_, page)| records(page)).unwrap();
    assert_ne!(bytes[place * PAGE..][..PAGE], *page);
    bytes[place * PAGE..][..PAGE].copy_from_slice(page);
    std::fs::write(database(&world.keys()), bytes).unwrap();
    assert_eq!(world.vault(Access::Read).next_number().unwrap(), 46);
    for (subject, entries) in [(NEW, 0), ("user_7", 1), ("nobody", 0)] {
        assert_eq!(asked_for(&world, subject), Some((entries, ENTRIES)), "{subject}");
    }
    assert!(!world.verified().ok);
    // Of what is asked for without a name, all that nobody can open is counted.
    let read = world.reader().for_each(&Query::new().stream("default"), |_, _| Ok(())).unwrap();
    assert_eq!((read.entries, read.undecided), (45, ENTRIES));
}

/// Whoever holds and releases looks somebody up by name as well.
#[test]
fn nobody_is_held_by_a_vault_that_hides_somebody() {
    let (world, before) = with_somebody_new();
    let older = std::fs::read(database(before.path())).unwrap();
    let newer = std::fs::read(database(&world.keys())).unwrap();
    let mut refused = 0;
    for page in 0..newer.len() / PAGE {
        let copied = world.copied();
        let mut bytes = newer.clone();
        bytes[page * PAGE..][..PAGE].copy_from_slice(&older[page * PAGE..][..PAGE]);
        std::fs::write(database(&copied.keys()), &bytes).unwrap();
        let Ok(log) = Log::open(&copied.directory, Options::default()) else { continue };
        match log.hold(&world.hold(NEW, "legal", "case 4711")) {
            Ok(added) => assert!(added),
            Err(error) => {
                assert!(error.to_string().contains("is damaged ("), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);
}
