//! Symbolic links in the place of a log's files and directories.

use super::{Place, contents, options};
use crate::helpers::hold_order;
use bulla::keys::files;
use bulla::keys::identities::IdentityFile;
use bulla::{Configure, Entry, Export, Init, Log, Pseudonyms, Reader, Verify, default_keys};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A closed log with a file of every kind.
fn filled() -> Place {
    let place = Place::new(Init::default());
    append(&place, 3);
    let log = Log::open(place.path("audit"), options()).unwrap();
    log.hold(&hold_order(&place.path("audit"), "s", "legal", "case 4711").unwrap()).unwrap();
    log.close().unwrap();
    place
}

fn append(place: &Place, entries: u32) {
    let log = Log::open(place.path("audit"), options()).unwrap();
    let mut producer = log.producer().unwrap();
    for number in 0..entries {
        producer.append(&Entry::new("read", &number.to_string()).subject("s")).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
    drop(producer);
    log.close().unwrap();
}

fn identity(place: &Place) -> Arc<IdentityFile> {
    let text = fs::read_to_string(place.path("audit.keys/identity.age")).unwrap();
    Arc::new(IdentityFile::parse(&text).unwrap())
}

/// Reads all entries; how many there are.
fn read(reader: &Reader) -> bulla::Result<u64> {
    let mut entries = 0;
    let query = bulla::Query::new().subject("s");
    reader.for_each(&query, |_, _| {
        entries += 1;
        Ok(())
    })?;
    Ok(entries)
}

/// Puts what is at `path` elsewhere, and a link to it in its place. The directory that is elsewhere.
fn link(place: &Place, path: &Path) -> PathBuf {
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::rename(path, outside.join("target")).unwrap();
    symlink(outside.join("target"), path).unwrap();
    outside
}

/// The paths of all files and directories below one.
fn below(directory: &Path) -> Vec<PathBuf> {
    let paths = contents(directory).into_keys();
    paths.map(|path| path.strip_prefix(directory).unwrap().to_owned()).collect()
}

/// What may be a link: a secret that is only read. The others of the key directory the writer writes, or lists.
const SECRETS: [&str; 4] = [files::SIGNING, files::SEAL_KEY, files::IDENTITY, files::ERASURE_KEY];

#[test]
fn a_link_in_the_place_of_what_a_log_has_is_named_and_not_followed() {
    let original = filled();
    let paths = |directory: &str| {
        let path = original.path(directory);
        below(&path).into_iter().map(move |below| (path.clone(), below)).collect::<Vec<_>>()
    };
    let all = [paths("audit"), paths("audit.keys")].concat();
    let mut tried = Vec::new();
    for (directory, path) in all {
        let in_log = directory.ends_with("audit");
        let name = path.display().to_string();
        if !in_log && SECRETS.contains(&&*name) {
            continue;
        }
        let copy = Place { directory: tempfile::tempdir().unwrap() };
        let own = [original.path("audit"), original.path("audit.keys"), copy.directory.path().to_owned()];
        assert!(std::process::Command::new("cp").arg("-a").args(own).status().unwrap().success());
        let directory = copy.path(if in_log { "audit" } else { "audit.keys" });
        let outside = link(&copy, &directory.join(&path));
        let before = contents(&outside);
        let told = |outcome: String| assert!(outcome.contains(&name), "{name}: {outcome}");

        // Readers first: they see the log as the link makes it, before a writer comes.
        if in_log {
            let verified =
                Verify::open(copy.path("audit")).and_then(|verify| verify.identity(identity(&copy)).run());
            told(verified.map_or_else(|error| error.to_string(), |report| format!("{:?}", report.findings)));
            let mut out = Vec::new();
            let export = Export::open(copy.path("audit"))
                .and_then(|export| export.identity(identity(&copy)).run(&mut out));
            let index = name.starts_with("index");
            let spare = index || name.starts_with("tile") || name == "checkpoint.cose";
            assert!(export.is_err() || spare, "{name}");
            // As `bulla export --record` and every query do, which make the index up.
            let _ =
                Reader::open(copy.path("audit")).and_then(|reader| read(&reader.identity(identity(&copy))));
        }
        if name.starts_with("vault") {
            let reader = Reader::open_with_keys(copy.path("audit"), copy.path("audit.keys")).unwrap();
            told(read(&reader).unwrap_err().to_string());
        }
        let hold = hold_order(&original.path("audit"), "new", "legal", "case 4712").unwrap();
        let written = Log::open(copy.path("audit"), options()).and_then(|log| {
            let mut producer = log.producer()?;
            producer.append(&Entry::new("read", "x").subject("new"))?;
            producer.flush()?.checkpointed()?;
            log.hold(&hold)?;
            drop(producer);
            log.close()
        });
        match written {
            Err(error) => told(error.to_string()),
            // Nothing rests on the index, nor on tiles that later ones have replaced, nor on the head as COSE, which is replaced itself.
            Ok(()) => {
                let spare = ["index", "tile", "checkpoint.cose"].iter().any(|spare| name.starts_with(spare));
                assert!(in_log && spare, "{name}");
            }
        }
        assert!(contents(&outside) == before, "{name}: something was written through it");
        tried.push(name);
    }
    for kind in
        ["segments", "tile/0", "tile/entries", "index", "vault", "roots", "vault/vault.db", "holds", "LOCK"]
    {
        assert!(tried.iter().any(|name| name == kind), "{kind} is not in {tried:?}");
    }
}

/// An auditor's export makes up what is missing of the index, and must not do so elsewhere.
#[test]
fn an_export_makes_no_files_where_a_link_in_the_log_leads() {
    let place = filled();
    fs::remove_dir_all(place.path("audit/index")).unwrap();
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, place.path("audit/index")).unwrap();
    let reader = Reader::open_with_keys(place.path("audit"), place.path("audit.keys")).unwrap();
    assert_eq!(read(&reader).unwrap(), 3);
    assert!(contents(&outside).is_empty());
    // Without the link it does, in the log.
    fs::remove_file(place.path("audit/index")).unwrap();
    let reader = Reader::open_with_keys(place.path("audit"), place.path("audit.keys")).unwrap();
    read(&reader).unwrap();
    assert!(!contents(&place.path("audit/index")).is_empty());
}

/// Recovery tells the digest of what it does not adopt, which of a file elsewhere nobody may learn.
#[test]
fn recovery_tells_nothing_of_a_file_that_a_link_leads_to() {
    let place = filled();
    let secret = place.path("shadow");
    fs::write(&secret, "root:$6$salt$hash").unwrap();
    let next = bulla::info(place.path("audit")).unwrap().tree_size;
    let name = format!("segments/{next:020}.seg");
    symlink(&secret, place.path("audit").join(&name)).unwrap();
    let before = contents(&place.path("audit"));
    let error = super::unavailable(Log::open(place.path("audit"), options()));
    assert!(error.contains(&format!("`{name}` is a symbolic link")), "{error}");
    let digest = bulla_proof::hash::sha256(&[b"root:$6$salt$hash"]).to_string();
    for (path, content) in contents(&place.path("audit")) {
        let found = content.windows(digest.len()).any(|text| text == digest.as_bytes());
        assert!(!found, "{} has the digest", path.display());
    }
    assert!(contents(&place.path("audit")) == before);
    fs::remove_file(place.path("audit").join(&name)).unwrap();
    append(&place, 1);
}

/// A link that comes while a writer is at work.
#[test]
fn a_link_that_comes_under_a_writer_is_not_written_through() {
    for (path, fails) in
        [("segments", true), ("tile/0", true), ("tile", true), ("index", false), ("checkpoint", false)]
    {
        let place = filled();
        let log =
            Log::open(place.path("audit"), options().segment_size(64 << 10).block_size(4 << 10)).unwrap();
        let outside = link(&place, &place.path("audit").join(path));
        let before = contents(&outside);
        let count = before.len();
        let mut producer = log.producer().unwrap();
        let payload = [7; 3000];
        // Enough for another segment, and so for another epoch's index.
        for number in 0..100_u32 {
            let _ = producer.append(&Entry::new("read", &number.to_string()).payload(&payload).subject("s"));
            let _ = producer.flush().and_then(|receipt| receipt.durable());
            if number % 25 == 0 {
                let _ = log.rotate();
            }
        }
        drop(producer);
        let closed = log.close();
        assert_eq!(closed.is_err(), fails, "{path}: {closed:?}");
        if let Err(error) = closed {
            assert!(error.to_string().contains(path), "{path}: {error}");
        }
        let mut after = contents(&outside);
        if path == "segments" {
            // The segment that was open stays so, wherever it is.
            let open = |path: &PathBuf, _: &mut Vec<u8>| path.extension().is_none_or(|it| it != "seg");
            after.retain(open);
            let mut before = before.clone();
            before.retain(open);
            assert!(after == before);
            assert_eq!(contents(&outside).len(), count, "there is no other segment than before");
        } else {
            assert!(after == before, "{path}: something was written through it");
        }
    }
}

/// As Kubernetes mounts secrets: each file is a link through a link.
#[test]
fn secrets_that_are_only_read_may_be_links() {
    let init = Init::default().erasure(false).field("actor", "pseudonymise");
    let place = Place::new(init);
    let keys = place.path("audit.keys");
    let mounted = place.path("run/secrets");
    fs::create_dir_all(mounted.join("..2026_01")).unwrap();
    symlink("..2026_01", mounted.join("..data")).unwrap();
    for secret in [files::SIGNING, files::SEAL_KEY, files::IDENTITY, files::PSEUDONYM] {
        fs::rename(keys.join(secret), mounted.join("..2026_01").join(secret)).unwrap();
        symlink(format!("..data/{secret}"), mounted.join(secret)).unwrap();
        symlink(mounted.join(secret), keys.join(secret)).unwrap();
    }
    let mounted_before = contents(&mounted);
    append(&place, 2);
    // The rule goes and comes back: its key is the one that there is.
    Configure::default().field("actor", "keep").unwrap().apply(place.path("audit")).unwrap();
    Configure::default().field("actor", "pseudonymise").unwrap().apply(place.path("audit")).unwrap();
    append(&place, 1);
    Pseudonyms::open(place.path("audit"), &keys, "actor").unwrap();
    let reader = Reader::open_with_keys(place.path("audit"), default_keys(&place.path("audit"))).unwrap();
    assert_eq!(read(&reader).unwrap(), 3);
    assert_eq!(place.verified("audit", "audit.keys"), 3);
    assert!(contents(&mounted) == mounted_before);
    for secret in [files::SIGNING, files::PSEUDONYM] {
        assert!(keys.join(secret).is_symlink(), "{secret} is still the link");
    }
}
