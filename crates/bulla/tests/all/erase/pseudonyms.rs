//! Pseudonyms of fields: a name keeps its own as long as there is the log, and nobody resolves it without the vault.

use super::restored::put_back;
use super::world::{World, copy};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla::environment::{Environment, Random, SystemRandom};
use bulla::keys::recipients::IdentityFile;
use bulla::store::FileSystem;
use bulla::{
    Configure, Entry, ErrorKind, Init, Log, LogId, Options, Pseudonym, Pseudonyms, Query, Reader, Restore,
    Result, default_keys,
};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::path::Path;
use std::sync::{Arc, Mutex};

fn open(world: &World, field: &str) -> Result<Pseudonyms> {
    Pseudonyms::open(&world.directory, world.keys(), field)
}

/// A log that pseudonymises, and who writes in it.
fn made() -> World {
    let world = World::new();
    let rules = Configure::default().field("processor", "pseudonymise").unwrap();
    rules.field("actor", "pseudonymise").unwrap().apply(&world.directory).unwrap();
    world
}

fn append(world: &World, subject: &str) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let mut producer = log.producer().unwrap();
    let entry = Entry::new("read", "a").subject(subject).processor("Example Ltd").actor("alice");
    producer.append(&entry).unwrap();
    drop(producer);
    log.close().unwrap();
}

fn erase(world: &World, subject: &str) {
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.erase(&world.order(&[subject])).unwrap();
    log.close().unwrap();
}

/// Processors and actors of all entries, as far as they can be read.
fn names(world: &World) -> (Vec<String>, Vec<String>) {
    let (mut processors, mut actors) = (Vec::new(), Vec::new());
    let read = world.reader().for_each(&Query::new(), |_, entry| {
        processors.extend(entry.processor.map(str::to_owned));
        actors.extend(entry.actor.map(str::to_owned));
        Ok(())
    });
    read.unwrap();
    (processors, actors)
}

#[test]
fn a_name_keeps_its_pseudonym_whatever_becomes_of_the_vault() {
    let world = made();
    let (processor, actor) = (open(&world, "processor").unwrap(), open(&world, "actor").unwrap());
    let (example, alice) = (processor.of("Example Ltd"), actor.of("alice"));
    assert!(processor.of("alice") != alice && actor.of("alicf") != alice);
    append(&world, "user_1");
    append(&world, "user_2");
    let backup = copy(&world.keys());
    // Another generation of keys, and then a third.
    erase(&world, "user_1");
    append(&world, "user_3");
    erase(&world, "user_2");
    append(&world, "user_4");
    let all = |entries: usize, read: usize| {
        let (processors, actors) = names(&world);
        assert_eq!(processors, vec![example.to_string(); entries]);
        assert_eq!(actors, vec![alice.to_string(); read], "the actor of who was erased is not read");
        assert_eq!(open(&world, "processor").unwrap().of("Example Ltd"), example);
        let query = Query::new().processor(example.to_string());
        assert_eq!(world.reader().for_each(&query, |_, _| Ok(())).unwrap().entries, entries as u64);
        assert_eq!(
            world.reader().for_each(&Query::new().processor("Example Ltd"), |_, _| Ok(())).unwrap().entries,
            0
        );
    };
    all(4, 2);

    // A key directory from before all that, taken up again.
    std::fs::remove_dir_all(world.keys()).unwrap();
    super::world::copy_into(backup.path(), &world.keys());
    assert_eq!(Restore::new(&world.directory, world.identity()).run().unwrap().lost, 2);
    append(&world, "user_5");
    all(5, 1);

    // The vault alone, from before an erasure.
    let backup = copy(&world.keys());
    erase(&world, "user_5");
    put_back(backup.path(), &world.keys(), &["vault", "roots"]);
    append(&world, "user_6");
    all(6, 1);
}

#[test]
fn it_is_made_beside_a_writer_that_has_the_vault() {
    let world = made();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let beside = open(&world, "actor").unwrap().of("alice");
    log.close().unwrap();
    assert_eq!(open(&world, "actor").unwrap().of("alice"), beside);
}

#[test]
fn without_the_vault_nobody_resolves_one_and_nothing_is_logged() {
    let world = made();
    append(&world, "user_1");
    let frames = || bulla::info(&world.directory).unwrap().tree_size;
    let before = frames();
    let refused = |named: &str| {
        let error = open(&world, "actor").unwrap_err();
        assert!(error.kind() == ErrorKind::NoKey && error.to_string().contains(named), "{error}");
        let error = Log::open(&world.directory, Options::default()).map(drop).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(frames(), before);
    };
    for (name, named) in [("vault", "audit.keys/vault"), ("roots", "audit.keys/roots")] {
        std::fs::rename(world.keys().join(name), world.keys().join("away")).unwrap();
        refused(named);
        std::fs::rename(world.keys().join("away"), world.keys().join(name)).unwrap();
    }
    append(&world, "user_2");
}

#[test]
fn a_field_that_is_not_pseudonymised_has_none() {
    let world = made();
    Configure::default().field("client", "drop").unwrap().apply(&world.directory).unwrap();
    for (field, why) in [
        ("purpose", "`purpose` is kept"),
        ("client", "has the rule `drop`"),
        ("subject", "`subject` is always kept"),
        ("nobody", "an entry has no field `nobody`"),
    ] {
        let error = open(&world, field).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(why), "{error}");
    }
}

/// A rule that somebody else wrote into the log's file is not the log's.
#[test]
fn an_edited_configuration_has_no_pseudonyms() {
    let world = made();
    append(&world, "user_1");
    open(&world, "actor").unwrap();
    let file = world.directory.join("bulla.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let edited = text.replacen("actor = ", "client = \"pseudonymise\"\nactor = ", 1);
    assert_ne!(edited, text);
    std::fs::write(&file, edited).unwrap();
    for field in ["client", "actor"] {
        let error = open(&world, field).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Tampered && error.to_string().contains("config-mismatch"),
            "{error}"
        );
    }
}

#[test]
fn a_log_without_a_vault_has_its_key_in_a_file() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    let init = Init::default().erasure(false).field("actor", "pseudonymise");
    assert!(init.create(&directory).unwrap().made_pseudonym_key);
    let keys = default_keys(&directory);
    let open = || Pseudonyms::open(&directory, &keys, "actor");
    let alice = open().unwrap().of("alice");
    let log = Log::open(&directory, Options::default()).unwrap();
    log.producer().unwrap().append(&Entry::new("read", "a").actor("alice")).unwrap();
    log.close().unwrap();
    assert_eq!(open().unwrap().of("alice"), alice);
    std::fs::remove_file(keys.join("pseudonym.key")).unwrap();
    let error = open().unwrap_err();
    assert!(
        error.kind() == ErrorKind::NoKey && error.to_string().contains("pseudonym.key is missing"),
        "{error}"
    );
}

#[test]
fn what_is_no_pseudonym_is_refused() {
    let text = "p-4c75c78bd0a93d68e641ad76bf0246d7";
    assert_eq!(Pseudonym::parse(text).unwrap().to_string(), text);
    for wrong in [
        "",
        "p-",
        &text[1..],
        &text[..33],
        &format!("{text}0"),
        &text.to_uppercase(),
        &text.replace('4', "g"),
    ] {
        assert_eq!(Pseudonym::parse(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
    }
}

/// Random bytes of the system, all of which are kept.
#[derive(Default)]
struct Recorder(Mutex<Vec<u8>>);

impl Random for Recorder {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        SystemRandom.fill(bytes)?;
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }
}

fn derived(log: LogId, key: &[u8], information: &[u8]) -> [u8; 32] {
    let mut derived = [0; 32];
    Hkdf::<Sha256>::new(Some(&log.0), key).expand(information, &mut derived).unwrap();
    derived
}

/// The keys that an actor's pseudonym is made with, by `docs/format.md`, from the key that all of them follow from.
fn keys_of(log: LogId, key: &[u8], of_vault: bool) -> Vec<[u8; 32]> {
    let mut keys = vec![key.try_into().unwrap()];
    if of_vault {
        keys.push(derived(log, key, b"bulla vault field pseudonyms v1"));
    }
    keys.push(derived(log, keys.last().unwrap(), b"bulla pseudonym key v1\x09"));
    keys
}

fn pseudonym(key: &[u8; 32], value: &str) -> String {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(value.as_bytes());
    let digits =
        mac.finalize().into_bytes().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("p-{digits}")
}

/// Every byte of every file below a directory.
fn bytes(directory: &Path) -> Vec<u8> {
    let items = std::fs::read_dir(directory).unwrap().map(|item| item.unwrap().path());
    items
        .flat_map(|path| if path.is_dir() { bytes(&path) } else { std::fs::read(path).unwrap_or_default() })
        .collect()
}

/// How many of the keys that the actors' pseudonyms of a log are made with lie in a file as they are, or in base64.
fn keys_in_clear(erasure: bool) -> usize {
    let place = tempfile::tempdir().unwrap();
    let directories = ["audit", "audit.keys"].map(|name| place.path().join(name));
    let [log, keys] = directories.each_ref().map(FileSystem::new);
    let random = Arc::new(Recorder::default());
    let environment = Environment { random: random.clone(), ..Environment::default() };
    let init = Init::default().erasure(erasure).field("actor", "pseudonymise");
    let created = init.create_in(&log, &keys, &environment).unwrap();
    let [log, keys] = [log, keys].map(Arc::new);
    let log = Log::open_stores(log, keys, Options::default(), environment).unwrap();
    log.producer().unwrap().append(&Entry::new("read", "a").actor("alice")).unwrap();
    log.close().unwrap();

    let identity = std::fs::read_to_string(directories[1].join("identity.age")).unwrap();
    let reader =
        Reader::open(&directories[0]).unwrap().identity(Arc::new(IdentityFile::parse(&identity).unwrap()));
    let mut actor = String::new();
    let read = reader.for_each(&Query::new(), |_, entry| {
        actor.push_str(entry.actor.unwrap());
        Ok(())
    });
    read.unwrap();
    let made = random.0.lock().unwrap().clone();
    let mut all = made.windows(32).map(|key| keys_of(created.id, key, erasure));
    let keys =
        all.find(|keys| pseudonym(keys.last().unwrap(), "alice") == actor).expect("the log made its key");
    let files = directories.iter().flat_map(|directory| bytes(directory)).collect::<Vec<_>>();
    let has = |wanted: &[u8]| files.windows(wanted.len()).any(|window| window == wanted);
    keys.iter().filter(|key| has(&key[..]) || has(BASE64_STANDARD.encode(key).as_bytes())).count()
}

#[test]
fn with_a_vault_no_key_of_a_pseudonym_lies_in_any_file() {
    assert_eq!(keys_in_clear(true), 0);
    // The search finds the one that lies in a file.
    assert_eq!(keys_in_clear(false), 1);
}
