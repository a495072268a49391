//! What a writing host has of the epochs that it has closed: with recipients only, nothing that opens them. All of the
//! memory of a running writer is searched, as a core dump would hold it, and all of its files.

use crate::support::{Place, arguments, bulla, command, eventually, exit, incompressible};
use age_core::format::{FileKey, Stanza};
use age_core::secrecy::ExposeSecret;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bulla_proof::Commitment;
use hkdf::Hkdf;
use sha2::Sha256;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Everything that opens an epoch, or something in it, by name.
type Secrets = BTreeMap<&'static str, Vec<u8>>;

/// An identity that remembers the key of the file that it opened.
struct Watching {
    identity: age::x25519::Identity,
    key: Cell<Option<[u8; 16]>>,
    /// The key that the file's key was wrapped with.
    wrap: RefCell<Vec<u8>>,
}

impl Watching {
    fn new() -> Self {
        let (key, wrap) = (Cell::new(None), RefCell::default());
        Watching { identity: age::x25519::Identity::generate(), key, wrap }
    }

    fn wrap_key(&self, share: &str) -> Vec<u8> {
        let text = self.identity.to_string();
        let scalar = bech32::decode(text.expose_secret()).unwrap().1;
        let secret = x25519_dalek::StaticSecret::from(<[u8; 32]>::try_from(scalar).unwrap());
        let share = BASE64_STANDARD_NO_PAD.decode(share).unwrap();
        let share = <[u8; 32]>::try_from(share).unwrap();
        let shared = secret.diffie_hellman(&share.into());
        let salt = [share, x25519_dalek::PublicKey::from(&secret).to_bytes()].concat();
        let mut key = vec![0; 32];
        let hkdf = Hkdf::<Sha256>::new(Some(&salt), shared.as_bytes());
        hkdf.expand(b"age-encryption.org/v1/X25519", &mut key).unwrap();
        key
    }
}

impl age::Identity for Watching {
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, age::DecryptError>> {
        let unwrapped = self.identity.unwrap_stanza(stanza)?;
        self.key.set(unwrapped.as_ref().ok().map(|key| *key.expose_secret()));
        let wrap = self.wrap_key(&stanza.args[0]);
        let opened =
            age_core::primitives::aead_decrypt(wrap.as_slice().try_into().unwrap(), 16, &stanza.body);
        assert_eq!(opened.ok().as_deref(), self.key.get().as_ref().map(|key| &key[..]), "it is the key");
        self.wrap.replace(wrap);
        Some(unwrapped)
    }
}

/// The secrets of the epoch that a segment begins with.
fn secrets(segment: &Path, identity: &Watching) -> Secrets {
    let segment = std::fs::read(segment).unwrap();
    let commitment = Commitment::decode(&segment[24..176]).unwrap();
    let body = &segment[176..][..usize::try_from(commitment.body_length).unwrap()];
    let (random, wrapped) = (&body[4..36], &body[136..]);
    let mut secret = Vec::new();
    let decryptor = age::Decryptor::new(wrapped).unwrap();
    let mut reader = decryptor.decrypt(std::iter::once(identity as _)).unwrap();
    reader.read_to_end(&mut secret).unwrap();

    let (extracted, hkdf) = Hkdf::<Sha256>::extract(Some(random), &secret);
    let expand = |label: &str| {
        let mut key = vec![0; 32];
        let info = [label.as_bytes(), &commitment.log_id.0, &commitment.frame.to_le_bytes()];
        hkdf.expand_multi_info(&info, &mut key).unwrap();
        key
    };
    assert_eq!(expand("bulla key commitment v1"), body[36..68], "these are that epoch's keys");
    let file_key = identity.key.take().unwrap();
    let header = wrapped.windows(5).position(|window| window == b"\n--- ").unwrap() + 1;
    let payload = header + wrapped[header..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut payload_key = vec![0; 32];
    let file_hkdf = Hkdf::<Sha256>::new(Some(&wrapped[payload..payload + 16]), &file_key);
    file_hkdf.expand(b"payload", &mut payload_key).unwrap();
    let mut token = expand("bulla index token key v1");
    token.truncate(16);
    Secrets::from([
        ("epoch secret", secret),
        ("extracted key", extracted.to_vec()),
        ("extracted key, padded inside", extracted.iter().map(|byte| byte ^ 0x36).collect()),
        ("extracted key, padded outside", extracted.iter().map(|byte| byte ^ 0x5c).collect()),
        ("HMAC state inside", hmac_state(&extracted, 0x36)),
        ("HMAC state outside", hmac_state(&extracted, 0x5c)),
        ("body key", expand("bulla body key v1")),
        ("salt key", expand("bulla salt key v1")),
        ("index key", expand("bulla index key v1")),
        ("token key", token),
        ("age wrap key", identity.wrap.take()),
        ("age file key", file_key.to_vec()),
        ("age payload key", payload_key),
    ])
}

/// What HMAC-SHA-256 makes of a key before it has seen a message, which does for the key.
fn hmac_state(key: &[u8], padding: u8) -> Vec<u8> {
    let mut block = [padding; 64];
    block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
    let mut state = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    sha2::block_api::compress256(&mut state, &[block]);
    state.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect()
}

/// Where the bytes of some needles stand.
struct Search<'a> {
    needles: Vec<(String, &'a [u8])>,
    /// Whether some needle begins with these two bytes.
    begins: Vec<bool>,
}

impl<'a> Search<'a> {
    fn new(epochs: &'a [(u64, Secrets)]) -> Self {
        let mut begins = vec![false; 1 << 16];
        let mut needles = Vec::new();
        for (number, secrets) in epochs {
            for (name, secret) in secrets {
                begins[usize::from(u16::from_le_bytes([secret[0], secret[1]]))] = true;
                needles.push((format!("{name} of epoch {number}"), &secret[..]));
            }
        }
        Search { needles, begins }
    }

    fn find(&self, place: &str, bytes: &[u8], found: &mut Vec<String>) {
        for (at, pair) in bytes.windows(2).enumerate() {
            if self.begins[usize::from(u16::from_le_bytes([pair[0], pair[1]]))] {
                let here = self.needles.iter().filter(|(_, needle)| bytes[at..].starts_with(needle));
                found.extend(here.map(|(name, _)| format!("{name} in {place} at {at:#x}")));
            }
        }
    }
}

fn in_memory(child: &Child, epochs: &[(u64, Secrets)]) -> Vec<String> {
    let (search, mut found) = (Search::new(epochs), Vec::new());
    for (what, bytes) in memory(child) {
        search.find(&what, &bytes, &mut found);
    }
    found
}

/// All that a process can read of itself, with what it is.
fn memory(child: &Child) -> Vec<(String, Vec<u8>)> {
    let process = Path::new("/proc").join(child.id().to_string());
    let maps = std::fs::read_to_string(process.join("maps")).unwrap();
    let memory = File::open(process.join("mem")).unwrap();
    let mut all = Vec::new();
    for line in maps.lines().filter(|line| line.split(' ').nth(1).unwrap().starts_with('r')) {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
        // Some of the kernel's own pages cannot be read.
        if memory.read_exact_at(&mut bytes, start).is_ok() {
            all.push((line.split_whitespace().last().unwrap().to_owned(), bytes));
        }
    }
    all
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for item in std::fs::read_dir(directory).unwrap().map(|item| item.unwrap().path()) {
        match item.is_dir() {
            true => files.extend(self::files(&item)),
            false if item.is_file() => files.push(item),
            // The control socket has no content.
            false => {}
        }
    }
    files.sort();
    files
}

#[test]
fn a_writer_has_nothing_that_opens_an_epoch_that_it_closed() {
    let place = Place::empty();
    let watching = Watching::new();
    let recipient = watching.identity.to_public().to_string();
    bulla(arguments!["init", place.audit(), "--recipient", recipient]).exits(exit::DONE);
    let settings = ["set", "segment_size", "64 KiB", "checkpoint_interval", "100 ms"];
    place.run("config", &settings).exits(exit::DONE);

    let mut writer = command(place.arguments("append", &[])).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    let segments = place.audit().join("segments");
    let mut sent = 0;
    for count in 2..=5 {
        // Enough for a segment, and one entry that begins the next.
        input.write_all(&incompressible(12)).unwrap();
        input.flush().unwrap();
        sent += 12;
        eventually("a segment is closed", || files(&segments).len() >= count);
    }
    eventually("a checkpoint covers everything", || place.info("entries") == sent);
    // One is closed because somebody asked for that.
    place.run("keys", &["rotate"]).exits(exit::DONE);

    let mut epochs =
        files(&segments).iter().zip(0..).map(|(path, n)| (n, secrets(path, &watching))).collect::<Vec<_>>();
    let current = epochs.split_off(epochs.len() - 1);
    assert!(epochs.len() >= 3, "{} epochs are closed", epochs.len());
    let mut found = in_memory(&writer, &epochs);
    for _ in 0..10 {
        if found.is_empty() {
            break;
        }
        // What the writer was just about to do, it does meanwhile.
        std::thread::sleep(std::time::Duration::from_millis(200));
        found = in_memory(&writer, &epochs);
    }
    let control = in_memory(&writer, &current);
    for file in [files(&place.audit()), files(&place.path("audit.keys"))].concat() {
        let search = Search::new(&epochs);
        search.find(&file.display().to_string(), &std::fs::read(&file).unwrap(), &mut found);
    }
    drop(input);
    assert_eq!(writer.wait_with_output().unwrap().status.code(), Some(exit::DONE));
    // What is there while it is needed is found: so would be what should not be there.
    assert!(control.iter().any(|line| line.starts_with("body key")), "{control:#?}");
    assert!(found.is_empty(), "{found:#?}");
}
