//! What a hostile storage can put under a reader or a writer.

use bulla::keys::recipients::IdentityFile;
use bulla::store::{FileSystem, Item, Lock, Store, StoreFile};
use bulla::{Durability, Entry, ErrorKind, Export, FindingKind, Init, Log, Options, Verify, default_keys};
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

fn made() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    Init::default().create(&directory).unwrap();
    (place, directory)
}

fn append(directory: &Path, options: Options, entries: u32) {
    let log = Log::open(directory, options).unwrap();
    let mut producer = log.producer().unwrap();
    for number in 0..entries {
        producer.append(&Entry::new("read", &format!("{number}"))).unwrap();
        producer.flush().unwrap().durable().unwrap();
    }
    drop(producer);
    log.close().unwrap();
}

fn identity(directory: &Path) -> Arc<IdentityFile> {
    let text = fs::read_to_string(default_keys(directory).join("identity.age")).unwrap();
    Arc::new(IdentityFile::parse(&text).unwrap())
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(directory.join("segments")).unwrap();
    let mut segments = items.map(|item| item.unwrap().path()).collect::<Vec<_>>();
    segments.sort();
    segments
}

fn kinds(directory: &Path) -> Vec<FindingKind> {
    Verify::open(directory).unwrap().run().unwrap().findings.iter().map(|finding| finding.kind).collect()
}

/// The length of the frame at the beginning of `bytes`.
fn frame_length(bytes: &[u8]) -> usize {
    24 + 152 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize + 32
}

/// A store that is another one from some moment on.
#[derive(Debug)]
struct Changing {
    before: FileSystem,
    after: FileSystem,
    changed: AtomicBool,
}

impl Changing {
    fn now(&self) -> &FileSystem {
        if self.changed.load(Ordering::Relaxed) { &self.after } else { &self.before }
    }
}

impl Store for Changing {
    fn create(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.now().create(path)
    }
    fn open(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.now().open(path)
    }
    fn open_write(&self, path: &str) -> io::Result<Box<dyn StoreFile>> {
        self.now().open_write(path)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.now().rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.now().remove(path)
    }
    fn list(&self, directory: &str) -> io::Result<Vec<Item>> {
        self.now().list(directory)
    }
    fn create_directory(&self, path: &str) -> io::Result<()> {
        self.now().create_directory(path)
    }
    fn remove_directory(&self, path: &str) -> io::Result<()> {
        self.now().remove_directory(path)
    }
    fn sync_directory(&self, path: &str) -> io::Result<()> {
        self.now().sync_directory(path)
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn Lock>> {
        self.now().lock(path)
    }
    fn is_locked(&self, path: &str) -> io::Result<bool> {
        self.now().is_locked(path)
    }
    fn describe(&self, path: &str) -> String {
        self.now().describe(path)
    }
}

#[test]
fn an_export_writes_nothing_that_changed_after_it_was_verified() {
    let (place, directory) = made();
    append(&directory, Options::default(), 3);
    let info = bulla::info(&directory).unwrap();
    // Made without any key of the log: encrypted to its recipient, as anyone can.
    let forged = place.path().join("forged");
    Init::default().origin(info.origin).recipient(&info.recipients[0]).create(&forged).unwrap();
    append(&forged, Options::default(), 3);
    let store = Arc::new(Changing {
        before: FileSystem::new(&directory),
        after: FileSystem::new(&forged),
        changed: AtomicBool::new(false),
    });
    let changing = store.clone();
    let mut out = Vec::new();
    let export = Export::open_store(store).unwrap().identity(identity(&directory));
    let export = export.progress(move |step| {
        // Both passes end with it; the first time is the end of the verification.
        changing.changed.store(step.entries == 3, Ordering::Relaxed);
    });
    let error = export.run(&mut out).unwrap_err();
    assert_eq!(
        (error.kind(), String::from_utf8(out).unwrap().as_str()),
        (ErrorKind::Tampered, ""),
        "{error}"
    );
}

#[test]
fn a_copied_epoch_frame_is_where_it_belongs_and_nowhere_else() {
    let (_place, directory) = made();
    let small = Options::default().segment_size(64 << 10).block_size(4 << 10).durability(Durability::Group);
    append(&directory, small, 400);
    let segments = segments(&directory);
    assert!(segments.len() > 1 && kinds(&directory).is_empty());
    let (first, second) = (fs::read(&segments[0]).unwrap(), fs::read(&segments[1]).unwrap());
    fs::write(&segments[1], [&first[..frame_length(&first)], &second].concat()).unwrap();
    assert_eq!(kinds(&directory), [FindingKind::FrameDamaged]);
}

#[test]
fn a_copied_epoch_frame_is_missed() {
    let (place, directory) = made();
    // Cut off before its first checkpoint but the one over its first entry.
    let log =
        Log::open(&directory, Options::default().checkpoint_interval(Duration::from_secs(3600))).unwrap();
    let mut producer = log.producer().unwrap();
    producer.append(&Entry::new("read", "1")).unwrap();
    producer.flush().unwrap().checkpointed().unwrap();
    producer.append(&Entry::new("read", "2")).unwrap();
    producer.flush().unwrap().durable().unwrap();
    let killed = place.path().join("killed");
    for (from, to) in [(&directory, &killed), (&default_keys(&directory), &default_keys(&killed))] {
        let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
    }
    append(&killed, Options::default(), 1);
    let segments = segments(&killed);
    assert!(!kinds(&killed).iter().any(|kind| *kind != FindingKind::Abandoned));
    let adopted = fs::read(&segments[1]).unwrap();
    fs::write(&segments[1], &adopted[frame_length(&adopted)..]).unwrap();
    assert!(kinds(&killed).contains(&FindingKind::FrameDamaged));
}

#[test]
fn a_link_in_the_tree_does_not_have_the_writer_remove_what_is_behind_it() {
    let (place, directory) = made();
    let precious = place.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("signing.key"), "").unwrap();
    // No checkpoint comes by itself, which would be one over some of the 300: it could not be written through the link.
    let options = Options::default().checkpoint_interval(Duration::from_secs(3600));
    let log = Log::open(&directory, options).unwrap();
    let mut producer = log.producer().unwrap();
    let mut one = || {
        producer.append(&Entry::new("read", "1")).unwrap();
        producer.flush().unwrap().durable().unwrap();
    };
    one();
    log.flush().unwrap();
    let partial = directory.join("tile/0/000.p");
    fs::remove_dir_all(&partial).unwrap();
    symlink(&precious, &partial).unwrap();
    (0..300).for_each(|_| one());
    log.flush().unwrap();
    assert!(directory.join("tile/0/000").exists());
    assert!(precious.join("signing.key").exists());
}

#[test]
fn what_no_seal_vouches_for_explains_nothing_below_the_checkpoint() {
    let (_place, directory) = made();
    let small = Options::default().segment_size(64 << 10).block_size(4 << 10);
    append(&directory, small, 400);
    let segments = segments(&directory);
    let first = fs::read(&segments[0]).unwrap();
    fs::write(&segments[0], [&first[..], b"hidden"].concat()).unwrap();
    assert_eq!(kinds(&directory), [FindingKind::SurplusBytes]);

    // An event that nobody sealed, while somebody holds the lock.
    let info = bulla::info(&directory).unwrap();
    let name = segments[0].file_name().unwrap().to_str().unwrap();
    let body = format!(
        "{{\"event\":\"abandoned\",\"segment\":\"{name}\",\"next_frame\":1,\"offset\":{},\"reason\":\"none\"}}",
        first.len()
    );
    let mut commitment = first[24..176].to_vec();
    commitment[1] = 3;
    commitment[24..32].copy_from_slice(&info.tree_size.to_le_bytes());
    commitment[32..40].copy_from_slice(&info.entries.to_le_bytes());
    commitment[64..72].copy_from_slice(&(info.tree_size - 1).to_le_bytes());
    commitment[112..120].copy_from_slice(&(body.len() as u64).to_le_bytes());
    let mut head = first[..24].to_vec();
    head[5] = 3;
    head[8..12].copy_from_slice(&u32::try_from(body.len()).unwrap().to_le_bytes());
    let crc = crc32c::crc32c(&head[..20]);
    head[20..24].copy_from_slice(&crc.to_le_bytes());
    let last = segments.last().unwrap();
    let tail = [&fs::read(last).unwrap()[..], &head, &commitment, body.as_bytes(), &[0; 32]].concat();
    fs::write(last, tail).unwrap();
    let _lock = FileSystem::new(&directory).lock("LOCK").unwrap();
    let report = Verify::open(&directory).unwrap().run().unwrap();
    assert_eq!(report.pending, 1, "{report:?}");
    assert_eq!(report.findings.iter().map(|one| one.kind).collect::<Vec<_>>(), [FindingKind::SurplusBytes]);
}

#[test]
fn a_log_closed_under_its_producers_keeps_what_was_staged_and_refuses_the_rest() {
    let (_place, directory) = made();
    for durability in [Durability::Group, Durability::Interval(Duration::from_millis(5)), Durability::Os] {
        let before = bulla::info(&directory).unwrap().entries;
        let log = Log::open(&directory, Options::default().durability(durability)).unwrap();
        let mut producers = (0..3).map(|_| log.producer().unwrap()).collect::<Vec<_>>();
        producers.iter_mut().for_each(|producer| producer.append(&Entry::new("read", "1")).unwrap());
        let receipt = producers[0].flush().unwrap();
        receipt.checkpointed().unwrap();
        log.close().unwrap();
        receipt.checkpointed().unwrap();
        for producer in &mut producers {
            let error = producer.append(&Entry::new("read", "2")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Closed, "{durability:?}");
        }
        drop(producers);
        assert_eq!(bulla::info(&directory).unwrap().entries, before + 3, "{durability:?}");
    }
    let none = Options::default().durability(Durability::Interval(Duration::ZERO));
    assert_eq!(Log::open(&directory, none).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_log_whose_keys_nobody_could_unwrap_is_not_made() {
    let (place, directory) = made();
    let recipient = bulla::info(&directory).unwrap().recipients.remove(0);
    let with = |count: usize| {
        let many = place.path().join(count.to_string());
        let init = (0..count).fold(Init::default(), |init, _| init.recipient(&recipient));
        init.create(&many).map(|_| append(&many, Options::default(), 1)).map(|()| many)
    };
    let many = with(300).unwrap();
    let mut out = Vec::new();
    Export::open(many).unwrap().identity(identity(&directory)).run(&mut out).unwrap();
    assert!(!out.is_empty());
    assert_eq!(with(1000).unwrap_err().kind(), ErrorKind::Invalid);
}

/// A log of three entries, and its only segment, which has a hole of so many bytes at its end; nothing where the file system
/// has none.
fn with_a_hole(hole: u64) -> Option<(TempDir, PathBuf, PathBuf)> {
    let (place, directory) = made();
    append(&directory, Options::default(), 3);
    let segment = segments(&directory).remove(0);
    let signed = fs::metadata(&segment).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
    if file.set_len(signed + hole).is_err() {
        println!("not tested: the file system takes no file of {hole} bytes");
        return None;
    }
    let path = format!("segments/{}", segment.file_name().unwrap().to_str().unwrap());
    let (store, end) = (FileSystem::new(&directory), signed.next_multiple_of(1 << 20));
    if store.open(&path).unwrap().next_data(end).unwrap() != signed + hole {
        println!("not tested: the file system keeps no account of holes");
        return None;
    }
    Some((place, directory, segment))
}

/// Whoever holds the storage makes a file long in no time, by a hole.
#[test]
fn a_file_that_was_made_long_is_neither_read_through_nor_filled() {
    let Some((_place, directory, segment)) = with_a_hole(8 << 30) else { return };
    let taken = || fs::metadata(&segment).unwrap().blocks() * 512;
    let before = taken();
    let seal_key = fs::read_to_string(default_keys(&directory).join("seal.key")).unwrap();
    let kinds = || {
        let report = Verify::open(&directory).unwrap().seal_key(&seal_key).unwrap().run().unwrap();
        assert!(report.ok, "{:?}", report.findings);
        report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(), [FindingKind::UnsignedTail]);
    append(&directory, Options::default(), 2);
    assert_eq!(kinds(), [FindingKind::Abandoned]);
    assert_eq!(bulla::info(&directory).unwrap().entries, 5);
    assert!(taken() <= before.max(1 << 20), "{} bytes are taken", taken());
}

#[test]
fn holes_of_a_tail_that_recovery_keeps_stay_holes() {
    const HOLE: u64 = 64 << 20;
    let Some((_place, directory, segment)) = with_a_hole(HOLE) else { return };
    let file = fs::OpenOptions::new().read(true).write(true).open(&segment).unwrap();
    // An earlier frame behind each half of it, which no crash can have left.
    let length = file.metadata().unwrap().len();
    let mut first = vec![0; 8 << 10];
    file.read_exact_at(&mut first, 0).unwrap();
    for at in [length - HOLE / 2, length] {
        file.write_all_at(&first, at).unwrap();
    }
    let taken = || fs::metadata(&segment).unwrap().blocks() * 512;
    let before = taken();
    let seal_key = fs::read_to_string(default_keys(&directory).join("seal.key")).unwrap();
    let kinds = || {
        let report = Verify::open(&directory).unwrap().seal_key(&seal_key).unwrap().run().unwrap();
        report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(), [FindingKind::TailDamaged]);
    append(&directory, Options::default(), 2);
    // The event has the digest of all of it, zeros included.
    assert_eq!(kinds(), [FindingKind::Abandoned]);
    assert!(taken() <= before, "{} bytes are taken, and {before} were", taken());
    file.write_all_at(b"?", length - HOLE / 4).unwrap();
    assert_eq!(kinds(), [FindingKind::SurplusBytes]);
}
