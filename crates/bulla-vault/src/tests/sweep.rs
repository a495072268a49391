//! Damage to the files of the database, wherever it strikes: it changes nothing, or is an error that names the file; nobody gets
//! somebody else's key, nobody who is there gets a new one, and a replica is as good as ever.

use super::*;
use bulla_testkit::sweep::{in_full, in_turn};
use std::collections::HashMap;

const DATABASE: &str = "vault/vault.db";
const LOG_OF_CHANGES: &str = "vault/vault.db-wal";
const PAGE: usize = 4096;

/// A vault as it was left: all of it in the database, or some in the log of changes alone, as after SIGKILL.
struct Left {
    files: HashMap<String, Vec<u8>>,
    /// Who had a number and a key.
    people: Vec<(String, u64, [u8; 32])>,
    /// How many of them were there before anything in the log was.
    settled: usize,
    settings: Settings,
}

impl Left {
    fn new(killed: bool) -> Self {
        // The index leads to some of them alone.
        let world = World::with(Settings { cache: 0, index_every: 6, ..Settings::default() });
        let vault = world.open();
        let mut people = Vec::new();
        let mut add = |prefix: &str, count| {
            for (index, subject) in fill(&vault, prefix, count).into_iter().enumerate() {
                people.push((format!("{prefix}{index}"), subject.number, *subject.key.bytes()));
            }
        };
        add("s", 100);
        vault.shared.database.settle();
        (0..3).for_each(|batch| add(&format!("b{batch}/"), 5));
        if !killed {
            vault.shared.database.settle();
        }
        let mut files = HashMap::new();
        for name in [DATABASE, LOG_OF_CHANGES, "roots/0.root", "roots/0.keys"] {
            files.insert(name.to_owned(), std::fs::read(world.file(name)).unwrap());
        }
        let settled = if killed { 100 } else { people.len() };
        Left { files, people, settled, settings: world.settings.clone() }
    }

    /// Puts the files back, but for one, which is `bytes`.
    fn with(&self, place: &Path, name: &str, bytes: &[u8]) -> World {
        let world = World { place: tempfile::tempdir_in(place).unwrap(), settings: self.settings.clone() };
        for directory in ["vault", "roots"] {
            std::fs::create_dir(world.file(directory)).unwrap();
        }
        for (other, content) in &self.files {
            std::fs::write(world.file(other), if other == name { bytes } else { content }).unwrap();
        }
        world
    }

    /// Uses the vault as a log does, and says whether the damage was noticed.
    fn judge(&self, world: &World, what: &str) -> bool {
        let mut noticed = false;
        let mut notice = |error: Error| {
            let text = error.to_string();
            // Where the number of the version is damaged.
            let is_earlier =
                error.kind() == ErrorKind::Refused && text.contains("a vault of an earlier version");
            assert!(is_earlier || error.kind() == ErrorKind::Unavailable, "{what}: {text}");
            assert!(text.contains("vault.db") || text.contains("holds no vault"), "{what}: {text}");
            noticed = true;
        };
        let reader = Vault::open(world.path(), LOG, Access::Read, &self.settings);
        // A log of changes that was cut off is an older vault: the log of entries tells, by the numbers that it has given.
        let older = reader.as_ref().is_ok_and(|vault| {
            vault.next_number().is_ok_and(|next| (self.settled..self.people.len()).contains(&(next as usize)))
        });
        match reader {
            Err(error) => notice(error),
            Ok(vault) => self.look_up(&vault, older, what, &mut notice),
        }
        match world.try_open() {
            Err(error) => notice(error),
            Ok(vault) => {
                self.look_up(&vault, older, what, &mut notice);
                match vault.resolve(&["somebody new", "s7"]) {
                    Err(error) => notice(error),
                    Ok(found) => {
                        assert_eq!(
                            (found[1].number, found[1].key.bytes()),
                            (self.people[7].1, &self.people[7].2)
                        );
                        assert!(older || found[0].number == self.people.len() as u64, "{what}");
                    }
                }
                let erased = vault
                    .begin_erasure(&["s9"])
                    .and_then(|begun| begun.map(|begun| begun.commit()?.destroy()).transpose());
                match erased {
                    Err(error) => notice(error),
                    Ok(erased) => assert_eq!(erased.unwrap().numbers(), [9], "{what}"),
                }
                let _ = vault.check(&|_| true, &|_| ()).map_err(&mut notice);
            }
        }
        noticed || older
    }

    fn look_up(&self, vault: &Vault, older: bool, what: &str, notice: &mut dyn FnMut(Error)) {
        for (index, (name, number, key)) in self.people.iter().enumerate() {
            let gone = older && index >= self.settled;
            match vault.find(name) {
                Err(error) => notice(error),
                Ok(None) => assert!(gone, "{what}: {name} is nobody"),
                Ok(Some(found)) => {
                    assert!((found.number, found.key.bytes()) == (*number, key), "{what}: {name}")
                }
            }
            match vault.key(*number) {
                Err(error) => notice(error),
                Ok(None) => assert!(gone, "{what}: {number} is nobody's"),
                Ok(Some(found)) => assert!(found.bytes() == key, "{what}: {number}"),
            }
        }
    }
}

/// What a medium, a hand or a copy may do to a file.
enum Harm {
    Change(usize, u8),
    CutOff(usize),
    Fill(usize, u8),
    Exchange(usize, usize),
    Repeat(usize, usize),
}

impl Harm {
    /// All of it, to so many bytes.
    fn all(length: usize) -> Vec<Harm> {
        // Every byte of the headers, and bytes all over the rest.
        let places = (0..length).filter(|at| at % PAGE < 16 || *at < 120 || at % 97 == 0);
        let changes = places.enumerate().flat_map(|(turn, at)| {
            in_turn(&[0x01, 0x80, 0xff], turn as u64).into_iter().map(move |change| Harm::Change(at, change))
        });
        let cuts = (0..length).step_by(1367).map(Harm::CutOff);
        let pages = length / PAGE;
        let fills = (0..pages).flat_map(|page| [0, 0xff].map(|fill| Harm::Fill(page, fill)));
        let pairs = (0..pages).flat_map(|page| {
            let others = (page + 1..pages).step_by(3);
            others.flat_map(move |other| [Harm::Exchange(page, other), Harm::Repeat(page, other)])
        });
        changes.chain(cuts).chain(fills).chain(pairs).collect()
    }

    fn done_to(&self, content: &[u8]) -> (String, Vec<u8>) {
        let mut bytes = content.to_vec();
        let page = |page: usize| page * PAGE..(page + 1) * PAGE;
        let what = match *self {
            Harm::Change(at, change) => {
                bytes[at] ^= change;
                format!("byte {at} ^ {change:#x}")
            }
            Harm::CutOff(length) => {
                bytes.truncate(length);
                format!("cut off at {length}")
            }
            Harm::Fill(number, fill) => {
                bytes[page(number)].fill(fill);
                format!("page {number} is full of {fill:#x}")
            }
            Harm::Exchange(one, other) => {
                let (first, second) = bytes.split_at_mut(other * PAGE);
                first[page(one)].swap_with_slice(&mut second[..PAGE]);
                format!("page {one} is exchanged with {other}")
            }
            Harm::Repeat(one, other) => {
                bytes.copy_within(page(one), other * PAGE);
                format!("page {one} is at {other} as well")
            }
        };
        (what, bytes)
    }
}

#[test]
fn damage_to_the_files_is_harmless_or_named() {
    let place = tempfile::tempdir().unwrap();
    // Not all of it in a change: every so many.
    let step = if in_full() { 1 } else { 37 };
    for (name, killed) in [(DATABASE, false), (DATABASE, true), (LOG_OF_CHANGES, true)] {
        let left = Left::new(killed);
        let content = &left.files[name];
        let (mut noticed, mut harmless) = (0, 0);
        for harm in Harm::all(content.len()).iter().step_by(step) {
            let (what, bytes) = harm.done_to(content);
            match left.judge(&left.with(place.path(), name, &bytes), &format!("{name}: {what}")) {
                true => noticed += 1,
                false => harmless += 1,
            }
        }
        println!("swept: {name}: {noticed} damages noticed, {harmless} harmless");
        // Half of the bytes of so small a database are nobody's, more or less.
        assert!(noticed > 5 && (killed || 2 * noticed > harmless), "{name}: {noticed} {harmless}");
    }
}

/// Whatever is in the way of the log of changes or of the memory that processes share: neither is believed.
#[test]
fn files_beside_the_database_are_not_believed() {
    let left = Left::new(true);
    let place = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("vault/vault.db-shm", vec![0xff; 32 << 10]),
        ("vault/vault.db-shm", vec![0; 100]),
        ("vault/vault.db.tmp", vec![1; 5000]),
    ] {
        let world = left.with(place.path(), DATABASE, &left.files[DATABASE]);
        std::fs::write(world.file(name), bytes).unwrap();
        assert!(!left.judge(&world, name), "{name}");
    }
}

/// A vault that is damaged is refused, and the replica in its place has everybody.
#[test]
fn a_replica_takes_the_place_of_a_damaged_vault() {
    let replica = tempfile::tempdir().unwrap();
    let replicas = vec![ReplicaLocation::new(replica.path())];
    let world = World::with(Settings { replicas, cache: 0, ..Settings::default() });
    let people = fill(&world.open(), "s", 300);
    let data = world.file("vault/vault.db");
    let whole = std::fs::read(&data).unwrap();
    for page in 0..whole.len() / PAGE {
        let mut bytes = whole.clone();
        bytes[page * PAGE..][..PAGE].fill(0x55);
        std::fs::write(&data, bytes).unwrap();
        let opened = Vault::open(world.path(), LOG, Access::Read, &world.settings);
        let found = opened.and_then(|vault| {
            (0..300)
                .try_for_each(|index| vault.find(&format!("s{index}")).map(|found| assert!(found.is_some())))
        });
        let error = found.expect_err("every page counts");
        assert!(error.to_string().contains("vault.db is damaged"), "page {page}: {error}");
    }
    for name in ["vault", "roots"] {
        std::fs::remove_dir_all(world.file(name)).unwrap();
        copy(&replica.path().join(name), &world.file(name));
    }
    let vault = world.open();
    assert_sound(&vault);
    for (index, subject) in people.iter().enumerate() {
        assert!(key(&vault, &format!("s{index}")) == *subject.key.bytes());
    }
}
