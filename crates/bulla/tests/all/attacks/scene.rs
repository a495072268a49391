//! A real log, at several times, and what its owner keeps elsewhere.

use super::Writer;
use crate::damage::image::Image;
use crate::damage::layout::{Frame, HEAD, Layout};
use crate::erase::world::copy_into;
use bulla::environment::Environment;
use bulla::keys::group::GroupKeys;
use bulla::keys::recipients::IdentityFile;
use bulla::keys::signing::SigningKey;
use bulla::store::{FileSystem, Store};
use bulla::{
    Configure, Entry, ErasureOrder, Init, Log, Options, Producer, Result, VerifierKey, default_keys,
};
use bulla_proof::LogId;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::cose::CoseCheckpoint;
use bulla_proof::hash::sha256;
use bulla_proof::tree::{Frontier, leaf_hash};
use bulla_vault::{Access, Settings, Vault};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const ORIGIN: &str = "example.com/audit";

/// What a log is like when it is attacked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its writer closed it.
    Closed,
    /// Its writer was killed: three frames follow the checkpoint.
    Killed,
    /// A writer has it open.
    Open,
    /// It lies on three paths: its writer went on in `second` when the log's directory was away, and was closed. `third` was never used.
    Paths,
}

/// The log at the times that attackers have copies of: when it was made, after its first writer, after its last, and while that was at work.
pub(super) struct Template {
    place: TempDir,
    key: VerifierKey,
    id: LogId,
}

/// A log that is attacked, and what its owner keeps elsewhere.
pub(super) struct Scene {
    place: TempDir,
    pub(super) directory: PathBuf,
    pub(super) key: VerifierKey,
    pub(super) seal_key: String,
    pub(super) identity: Arc<IdentityFile>,
    pub(super) pin: PathBuf,
    id: LogId,
    /// Where all lies in the log before the attack.
    pub(super) layout: Layout,
    /// Copies of the log and its keys from earlier, by their names in [`Template`].
    earlier: PathBuf,
    /// The writer that has it open.
    writer: Option<(Log, Producer)>,
    /// What became of that.
    failed: Option<Writer>,
    /// Whether it lies on several paths.
    paths: bool,
}

fn options() -> Options {
    // No checkpoint comes by itself.
    let options = Options::default().memory(64 << 20).writers(1).retries(0);
    options.checkpoint_interval(Duration::from_secs(3600))
}

/// A block with an entry about each of these people.
pub(super) fn block(producer: &mut Producer, people: &[&str]) {
    for person in people {
        let location = format!("{person}/email");
        let entry = Entry::new("read", &location).purpose("support");
        let entry = if *person == "nobody" { entry } else { entry.subject(person) };
        producer.append(&entry).unwrap();
    }
    producer.flush().unwrap().durable().unwrap();
}

/// Has the log in a place lie on three paths, and its writer go on in the second.
fn go_on_in_second(place: &Path) {
    let (directory, away) = (place.join("audit"), place.join("away"));
    let paths = ["second", "third"].map(|name| place.join(name).to_str().unwrap().to_owned());
    Configure::default().set("backup_paths", &paths.join(",")).unwrap().apply(&directory).unwrap();
    let log = Log::open(&directory, options()).unwrap();
    let mut producer = log.producer().unwrap();
    block(&mut producer, &["ann"]);
    log.flush().unwrap();
    fs::rename(&directory, &away).unwrap();
    block(&mut producer, &["bob"]);
    block(&mut producer, &["nobody"]);
    drop(producer);
    log.close().unwrap();
    fs::rename(&away, &directory).unwrap();
}

impl Template {
    /// Frames 0 to 2 are of the first writer: an epoch and two blocks. Frames 3 to 7 are of the second, in the same segment: an epoch, a block, an
    /// erasure and two blocks. Frames 8 to 10 are the second segment, an epoch and two blocks; where it was closed, blocks 11 to 13 too.
    pub(super) fn new() -> Template {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("now/audit");
        fs::create_dir(place.path().join("now")).unwrap();
        let created = Init::default().origin(ORIGIN).create(&directory).unwrap();
        let template = Template { place, key: created.verifier_key, id: created.id };
        template.keep("empty");

        let log = Log::open(&directory, options()).unwrap();
        let mut producer = log.producer().unwrap();
        block(&mut producer, &["ann", "bob", "nobody"]);
        block(&mut producer, &["carol", "ann"]);
        drop(producer);
        log.close().unwrap();
        template.keep("early");

        let log = Log::open(&directory, options()).unwrap();
        let mut producer = log.producer().unwrap();
        block(&mut producer, &["bob", "dave"]);
        let key = fs::read_to_string(default_keys(&directory).join("erasure.key")).unwrap();
        let key = SigningKey::parse(&key).unwrap();
        let order = ErasureOrder::give(&key, template.id, &["dave"], None, &Environment::default()).unwrap();
        log.erase(&order).unwrap();
        block(&mut producer, &["ann", "nobody"]);
        block(&mut producer, &["bob"]);
        log.rotate().unwrap();
        block(&mut producer, &["ann", "bob"]);
        block(&mut producer, &["carol"]);
        log.flush().unwrap();
        // As one is left that is killed.
        block(&mut producer, &["erin"]);
        block(&mut producer, &["ann", "nobody"]);
        block(&mut producer, &["nobody"]);
        template.keep("killed");
        drop(producer);
        log.close().unwrap();
        template
    }

    fn keep(&self, name: &str) {
        copy_into(&self.place.path().join("now"), &self.place.path().join(name));
    }

    /// A log of its own.
    pub(super) fn scene(&self, state: State) -> Scene {
        let from = self.place.path().join(if state == State::Killed { "killed" } else { "now" });
        let place = tempfile::tempdir().unwrap();
        copy_into(&from, place.path());
        let directory = place.path().join("audit");
        let keys = default_keys(&directory);
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let pin = elsewhere.join("audit.pin");
        fs::copy(directory.join("checkpoint"), &pin).unwrap();
        let text = |name: &str| fs::read_to_string(keys.join(name)).unwrap();
        let (seal_key, identity) = (text("seal.key"), IdentityFile::parse(&text("identity.age")).unwrap());
        // Both belong elsewhere.
        fs::remove_file(keys.join("seal.key")).unwrap();
        fs::remove_file(keys.join("identity.age")).unwrap();
        let layout = Layout::of(&Image::of_store(&FileSystem::new(&directory)));
        if state == State::Paths {
            go_on_in_second(place.path());
            fs::copy(place.path().join("second/checkpoint"), &pin).unwrap();
        }
        let mut scene = Scene {
            directory,
            key: self.key.clone(),
            seal_key,
            identity: Arc::new(identity),
            pin,
            id: self.id,
            layout,
            earlier: self.place.path().to_owned(),
            writer: None,
            failed: None,
            paths: state == State::Paths,
            place,
        };
        if state == State::Open {
            let log = Log::open(&scene.directory, scene.options()).unwrap();
            let mut producer = log.producer().unwrap();
            block(&mut producer, &["ann"]);
            log.flush().unwrap();
            scene.writer = Some((log, producer));
        }
        scene
    }
}

impl Scene {
    pub(super) fn options(&self) -> Options {
        options()
    }

    pub(super) fn keys(&self) -> PathBuf {
        default_keys(&self.directory)
    }

    pub(super) fn vault(&self) -> Result<Arc<dyn GroupKeys>> {
        Ok(Arc::new(Vault::open(&self.keys(), self.id, Access::Read, &Settings::default())?))
    }

    /// What becomes of the writer that has the log open, if one has: it goes on.
    pub(super) fn fails(&mut self) -> Option<Writer> {
        let (log, mut producer) = self.writer.take()?;
        producer.append(&Entry::new("read", "after")).unwrap();
        let ended =
            producer.flush().and_then(|receipt| receipt.durable()).and_then(|_| log.flush().map(drop));
        drop(producer);
        let ended = ended.and_then(|()| log.close().map(drop));
        self.failed = Some(ended.map_or_else(|error| Writer::Fails(error.kind()), |()| Writer::Opens));
        self.failed
    }

    /// The same log, keys and pin in another place.
    pub(super) fn copied(&self) -> Scene {
        let place = tempfile::tempdir().unwrap();
        let mut copy = std::process::Command::new("cp");
        copy.arg("-a").arg(self.place.path().join(".")).arg(place.path());
        assert!(copy.status().unwrap().success());
        let directory = place.path().join("audit");
        if self.paths {
            // They are named by where they lie.
            for name in ["settings.toml", "paths"].map(|name| default_keys(&directory).join(name)) {
                let (from, to) = (self.place.path().to_str().unwrap(), place.path().to_str().unwrap());
                let text = fs::read_to_string(&name).unwrap();
                fs::write(&name, text.replace(from, to)).unwrap();
            }
        }
        Scene {
            directory,
            key: self.key.clone(),
            seal_key: self.seal_key.clone(),
            identity: self.identity.clone(),
            pin: place.path().join("elsewhere/audit.pin"),
            id: self.id,
            layout: Layout::default(),
            earlier: self.earlier.clone(),
            writer: None,
            failed: None,
            paths: self.paths,
            place,
        }
    }

    /// The log with its paths: those that the key directory names, or those that whoever verifies names.
    pub(super) fn log(&self, with_keys: bool) -> Result<Arc<dyn Store>> {
        let also = ["second", "third"].map(|name| self.beside(name));
        match (self.paths, with_keys) {
            (false, _) => Ok(Arc::new(FileSystem::new(&self.directory))),
            (true, true) => bulla::open_log(&self.directory, Some(&self.keys()), &[]),
            (true, false) => bulla::open_log(&self.directory, None, &also),
        }
    }

    /// Another directory beside the log's.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Changes one bit of a file. The byte is not zero then, as one would be that a torn write has left out.
    pub(super) fn flip(&self, name: &str, at: usize) {
        let mut content = self.read(name);
        content[at] ^= if content[at] == 1 { 2 } else { 1 };
        self.write(name, &content);
    }

    /// The file that a frame is in, from the log's directory.
    pub(super) fn segment(&self, frame: u64) -> String {
        format!("segments/{}", self.frame(frame).segment)
    }

    pub(super) fn frame(&self, number: u64) -> &Frame {
        self.layout.frame(number)
    }

    /// Changes one bit of a frame, so many bytes from its beginning, or from its end.
    pub(super) fn flip_frame(&self, number: u64, at: isize) {
        let frame = self.frame(number);
        let from = if at < 0 { frame.end() } else { frame.offset };
        self.flip(&self.segment(number), from.checked_add_signed(at).unwrap());
    }

    /// Changes one bit in the middle of a frame's body.
    pub(super) fn flip_body(&self, number: u64) {
        let length = self.frame(number).length - HEAD - 32;
        self.flip_frame(number, (HEAD + length / 2) as isize);
    }

    /// Puts something else in the place of a frame.
    pub(super) fn replace_frame(&self, number: u64, with: &[u8]) {
        let frame = self.frame(number);
        let content = self.read(&self.segment(number));
        self.write(
            &self.segment(number),
            &[&content[..frame.offset], with, &content[frame.end()..]].concat(),
        );
    }

    /// A frame as it was.
    pub(super) fn bytes_of(&self, number: u64) -> Vec<u8> {
        let frame = self.frame(number);
        self.read(&self.segment(number))[frame.offset..frame.end()].to_vec()
    }

    /// Moves a file or directory away, and puts a symbolic link to it in its place.
    pub(super) fn link(&self, path: &Path) {
        let away = self.beside("away");
        fs::rename(path, &away).unwrap();
        std::os::unix::fs::symlink(away, path).unwrap();
    }

    /// Puts one of the two directories back to what it was at an earlier time.
    pub(super) fn put_back(&self, name: &str, time: &str) {
        let to = self.beside(name);
        // The owner's secrets were not on the host then either.
        fs::remove_dir_all(&to).unwrap();
        copy_into(&self.earlier.join(time).join(name), &to);
        for secret in ["seal.key", "identity.age"] {
            let _ = fs::remove_file(to.join(secret));
        }
    }

    /// Whoever has both directories goes on with the log as they like: so many blocks more.
    pub(super) fn go_on(&self, blocks: usize) {
        let log = Log::open(&self.directory, self.options()).unwrap();
        let mut producer = log.producer().unwrap();
        for _ in 0..blocks {
            block(&mut producer, &["mallory", "nobody"]);
        }
        drop(producer);
        log.close().unwrap();
    }

    /// Where something lay at an earlier time.
    pub(super) fn earlier_path(&self, name: &str) -> PathBuf {
        self.earlier.join(name)
    }

    /// What a file held at an earlier time.
    pub(super) fn earlier(&self, name: &str) -> Vec<u8> {
        fs::read(self.earlier_path(name)).unwrap()
    }

    /// The files in a directory of the log, by name.
    pub(super) fn files_in(&self, directory: &str) -> Vec<String> {
        let items = fs::read_dir(self.path(directory)).unwrap();
        let name = |item: fs::DirEntry| format!("{directory}/{}", item.file_name().into_string().unwrap());
        let mut files = items.map(|item| name(item.unwrap())).collect::<Vec<_>>();
        files.sort();
        files
    }

    /// Signs what the first so many frames come to, with the key of the log, and writes tile and bundle of them.
    fn sign(&self, commitments: &[Vec<u8>]) {
        let key = fs::read_to_string(self.keys().join("signing.key")).unwrap();
        let signing = SigningKey::parse(&key).unwrap();
        let size = commitments.len() as u64;
        let leaves = commitments.iter().map(|one| leaf_hash(one)).collect::<Vec<_>>();
        let mut tree = Frontier::new();
        leaves.iter().for_each(|leaf| tree.push(*leaf));
        let checkpoint = Checkpoint::new(ORIGIN, size, tree.root());
        let note = sign_checkpoint(&checkpoint, &self.key, |text| signing.sign(text));
        self.write("checkpoint", note.as_bytes());
        let cose = CoseCheckpoint::sign(&checkpoint, &self.key, |bytes| signing.sign(bytes));
        self.write("checkpoint.cose", &cose.render());
        // What is left of older sizes would tell.
        for directory in ["tile/0/000.p", "tile/entries/000.p"] {
            fs::remove_dir_all(self.path(directory)).unwrap();
            fs::create_dir(self.path(directory)).unwrap();
        }
        self.write(
            &format!("tile/0/000.p/{size}"),
            &leaves.iter().flat_map(|leaf| leaf.0).collect::<Vec<_>>(),
        );
        let entries = commitments.iter().flat_map(|one| [&152_u16.to_be_bytes()[..], one].concat());
        self.write(&format!("tile/entries/000.p/{size}"), &entries.collect::<Vec<_>>());
    }

    fn commitments(&self) -> Vec<Vec<u8>> {
        let commitment = |number| self.bytes_of(number)[24..HEAD].to_vec();
        (0..self.layout.size).map(commitment).collect()
    }

    /// Cuts off all frames from one on, and signs the rest.
    pub(super) fn sign_shortened(&self, size: u64) {
        let commitments = self.commitments();
        for number in (size..self.layout.size).rev() {
            self.replace_frame(number, &[]);
        }
        self.sign(&commitments[..usize::try_from(size).unwrap()]);
    }

    /// Replaces a block's body by other bytes, makes its commitment right, and signs all of it.
    pub(super) fn sign_altered(&self, number: u64) {
        let mut commitments = self.commitments();
        let mut frame = self.bytes_of(number);
        let end = frame.len() - 32;
        frame[HEAD..end].fill(7);
        let digest = sha256(&[&frame[HEAD..end]]).0;
        frame[HEAD - 32..HEAD].copy_from_slice(&digest);
        commitments[usize::try_from(number).unwrap()] = frame[24..HEAD].to_vec();
        self.replace_frame(number, &frame);
        self.sign(&commitments);
    }
}
