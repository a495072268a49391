//! Attacks on a log that a witness cosigns, a real one, and on what is kept of its cosignatures: what finds them with the log's key, and with
//! a policy that asks for the witness; what becomes of a writer; and what the witness says once that asks it.

use super::document::{compare, kinds};
use super::scene::block;
use super::{Controls, Writer, told};
use crate::erase::world::copy_into;
use crate::witnesses::{Serving, Witnessing, free, init, policy};
use bulla::environment::Environment;
use bulla::keys::signing::SigningKey;
use bulla::policy::Policy;
use bulla::store::FileSystem;
use bulla::{ErrorKind, Init, Log, Options, SignedNote, VerifierKey, Verify, default_keys};
use bulla_proof::CosignatureAlgorithm;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::hash::Hash;
use bulla_witness::key::WitnessKey;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const HEAD: &str = "| What is changed, of a witnessed log | By whom | `--key` | `--policy` | Writer | Its witness | Else |\n|---|---|---|---|---|---|---|\n";
const WITNESSED: &str = "checkpoint.witnessed";

/// What the witness says once a writer asks it for more of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Cosigns,
    /// The log was put back to an earlier time.
    PutBack,
    /// The log's key has signed two histories.
    TwoHistories,
    /// Nobody asks it.
    Nothing,
}

struct Attack {
    name: &'static str,
    controls: Controls,
    carry_out: fn(&Watched),
    /// What is found with the log's key, and besides that with a policy.
    found: [&'static [&'static str]; 2],
    writer: Writer,
    says: Says,
    elsewhere: &'static str,
}

const NOTHING: Attack = Attack {
    name: "",
    controls: Controls::Storage,
    carry_out: |_| (),
    found: [&[], &[]],
    writer: Writer::Opens,
    says: Says::Cosigns,
    elsewhere: "",
};

/// A log, and the witness that has cosigned all of it. Frames 0 to 2 are of the first writer, of which there is a copy, and 3 to 6 of the second.
struct Watched {
    place: TempDir,
    directory: PathBuf,
    key: VerifierKey,
    policy: String,
    address: String,
    _serving: Serving,
}

fn options() -> Options {
    let options = Options::default().memory(64 << 20).writers(1).retries(0);
    options.checkpoint_interval(Duration::from_secs(3600)).witness_interval(Duration::from_millis(1))
}

impl Watched {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("now")).unwrap();
        let directory = place.path().join("now/audit");
        let witness = Witnessing::begin("w.example/1", CosignatureAlgorithm::Ed25519);
        let address = free();
        let policy = policy(&[("w", &witness.key, address)], "all");
        let key = init(&directory, &policy);
        let serving = witness.serve(&[&key], address);
        let watched =
            Watched { place, directory, key, policy, address: address.to_string(), _serving: serving };
        watched.go_on(2);
        copy_into(&watched.place.path().join("now"), &watched.place.path().join("early"));
        watched.go_on(3);
        watched
    }

    /// Opens the log, and appends so many blocks. Why the witness did not cosign last, if it did not.
    fn write(&self, blocks: usize) -> bulla::Result<String> {
        let keys = Arc::new(FileSystem::new(default_keys(&self.directory)));
        let log = Arc::new(FileSystem::new(&self.directory));
        let log = Log::open_stores(log, keys, options(), Environment::default())?;
        let mut producer = log.producer()?;
        (0..blocks).for_each(|_| block(&mut producer, &["nobody"]));
        drop(producer);
        let (told, closed) = log.close_with_telemetry();
        closed?;
        Ok(told.witnesses.into_iter().filter_map(|witness| witness.failure).collect())
    }

    fn go_on(&self, blocks: usize) {
        self.write(blocks).unwrap();
    }

    /// What becomes of a writer, and what the witness says to it.
    fn asks(&self) -> (Writer, Says) {
        let told = match self.write(1) {
            Ok(told) => told,
            Err(error) => return (Writer::Fails(error.kind()), Says::Nothing),
        };
        let info = bulla::info(&self.directory).unwrap();
        let newest = info.witnesses[0].newest.map(|(frames, _)| frames);
        let says = match newest == Some(info.tree_size) {
            true => Says::Cosigns,
            false if told.contains("put back to an earlier time") => Says::PutBack,
            false if told.contains("two histories") => Says::TwoHistories,
            false => panic!("{newest:?} of {}: {told}", info.tree_size),
        };
        (Writer::Opens, says)
    }

    /// What is found with the log's key, or a policy besides.
    fn findings(&self, by_policy: bool) -> Vec<String> {
        let mut verify = Verify::open(&self.directory).unwrap().key(self.key.clone());
        if by_policy {
            verify = verify.policy(self.policy.parse::<Policy>().unwrap());
        }
        verify.run().unwrap().findings.iter().map(told).collect()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap()
    }

    fn early(&self, name: &str) -> String {
        fs::read_to_string(self.place.path().join("early/audit").join(name)).unwrap()
    }

    fn put(&self, name: &str, content: &str) {
        fs::write(self.directory.join(name), content).unwrap();
    }

    /// Puts log and keys back to what they were.
    fn put_back(&self) {
        let now = self.place.path().join("now");
        fs::remove_dir_all(&now).unwrap();
        copy_into(&self.place.path().join("early"), &now);
    }

    /// Takes the witness's lines from `checkpoint`.
    fn strip(&self) {
        self.put("checkpoint", &signed_by(&self.read("checkpoint"), "example.com/log"));
    }
}

/// A note with the signature lines of this name alone.
fn signed_by(note: &str, name: &str) -> String {
    let mut parsed = SignedNote::parse(note.as_bytes()).unwrap();
    parsed.signatures.retain(|line| line.name == name);
    parsed.to_string()
}

/// The signature lines of this name.
fn lines_of(note: &str, name: &str) -> String {
    let parsed = SignedNote::parse(note.as_bytes()).unwrap();
    parsed.signatures.iter().filter(|line| line.name == name).map(ToString::to_string).collect()
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "the log put back whole, with its keys",
        controls: Controls::Both,
        carry_out: Watched::put_back,
        says: Says::PutBack,
        elsewhere: "the witness, when it is asked next; a pin",
        ..NOTHING
    },
    Attack {
        name: "a longer second history, signed with a stolen key, what was witnessed put back too",
        controls: Controls::Both,
        carry_out: |watched| {
            watched.put_back();
            watched.go_on(9);
        },
        found: [&[], &["told: unwitnessed-tail f3-12"]],
        says: Says::TwoHistories,
        elsewhere: "the witness, when it is asked next; a pin",
        ..NOTHING
    },
    Attack {
        name: "log and keys put back, `checkpoint.witnessed` as it was",
        controls: Controls::Both,
        carry_out: |watched| {
            let kept = watched.read(WITNESSED);
            watched.put_back();
            watched.put(WITNESSED, &kept);
        },
        found: [&["witness-mismatch f3-6"], &["witness-mismatch f3-6"]],
        writer: Writer::Fails(ErrorKind::Tampered),
        says: Says::Nothing,
        ..NOTHING
    },
    Attack {
        name: "a longer second history, signed with a stolen key, `checkpoint.witnessed` as it was",
        controls: Controls::Both,
        carry_out: |watched| {
            let kept = watched.read(WITNESSED);
            watched.put_back();
            watched.go_on(9);
            watched.put(WITNESSED, &kept);
        },
        found: [&["witness-mismatch f0-6"], &["witness-mismatch f0-6"]],
        writer: Writer::Fails(ErrorKind::Tampered),
        says: Says::Nothing,
        ..NOTHING
    },
    Attack {
        name: "`checkpoint.witnessed` removed",
        carry_out: |watched| fs::remove_file(watched.directory.join(WITNESSED)).unwrap(),
        elsewhere: "nothing has to: `checkpoint` is cosigned",
        ..NOTHING
    },
    Attack {
        name: "`checkpoint.witnessed` removed, and `checkpoint` without cosignatures",
        carry_out: |watched| {
            watched.strip();
            fs::remove_file(watched.directory.join(WITNESSED)).unwrap();
        },
        elsewhere: "nothing has to: `cosigned/` has them",
        ..NOTHING
    },
    Attack {
        name: "all cosignatures removed",
        carry_out: |watched| {
            watched.strip();
            fs::remove_file(watched.directory.join(WITNESSED)).unwrap();
            fs::remove_dir_all(watched.directory.join("cosigned")).unwrap();
        },
        found: [&[], &["unwitnessed"]],
        ..NOTHING
    },
    Attack {
        name: "`checkpoint.witnessed` put back to an earlier one, and no other cosignatures",
        carry_out: |watched| {
            watched.strip();
            fs::remove_dir_all(watched.directory.join("cosigned")).unwrap();
            watched.put(WITNESSED, &watched.early(WITNESSED));
        },
        found: [&[], &["told: unwitnessed-tail f3-6"]],
        elsewhere: "the next writer has it cosigned anew",
        ..NOTHING
    },
    Attack {
        name: "`checkpoint.witnessed` of another log, and no other cosignatures",
        carry_out: |watched| {
            let other = watched.place.path().join("other");
            Init::default().origin("example.com/other").create(&other).unwrap();
            watched.strip();
            fs::remove_dir_all(watched.directory.join("cosigned")).unwrap();
            watched.put(WITNESSED, &fs::read_to_string(other.join("checkpoint")).unwrap());
        },
        found: [&[], &["unwitnessed"]],
        ..NOTHING
    },
    Attack {
        name: "`checkpoint.witnessed` of a larger tree, signed with a stolen key",
        controls: Controls::Both,
        carry_out: |watched| {
            let key = fs::read_to_string(default_keys(&watched.directory).join("signing.key")).unwrap();
            let key = SigningKey::parse(&key).unwrap();
            let larger = Checkpoint::new("example.com/log", 1000, Hash([7; 32]));
            watched.put(WITNESSED, &sign_checkpoint(&larger, &watched.key, |text| key.sign(text)));
        },
        found: [&["witness-mismatch f7-999"], &["witness-mismatch f7-999"]],
        writer: Writer::Fails(ErrorKind::Tampered),
        says: Says::Nothing,
        elsewhere: "it has no cosignature, and is signed all the same",
    },
    Attack {
        name: "cosignatures by a key that the policy does not name, and no others",
        carry_out: |watched| {
            let stranger = WitnessKey::from_seed("w.example/2", CosignatureAlgorithm::Ed25519, &[9; 32]);
            watched.strip();
            let note = watched.read("checkpoint");
            let text = SignedNote::parse(note.as_bytes()).unwrap().text.to_owned();
            let cosigned = note.clone() + &stranger.unwrap().cosign(&text, 1_800_000_000).unwrap();
            watched.put("checkpoint", &cosigned);
            fs::remove_dir_all(watched.directory.join("cosigned")).unwrap();
            watched.put(WITNESSED, &cosigned);
        },
        found: [&[], &["unwitnessed"]],
        ..NOTHING
    },
    Attack {
        name: "a cosignature under the name and key id of the witness, by another key",
        carry_out: |watched| {
            let own = lines_of(&watched.read("checkpoint"), "w.example/1");
            watched.strip();
            // The last characters are of the signature.
            let at = own.len() - 8;
            let other = if &own[at..=at] == "A" { "B" } else { "A" };
            let forged = format!("{}{}{other}{}", watched.read("checkpoint"), &own[..at], &own[at + 1..]);
            watched.put("checkpoint", &forged);
        },
        found: [&[], &["cosignature-invalid"]],
        ..NOTHING
    },
    Attack {
        name: "a cosignature moved from an earlier checkpoint",
        carry_out: |watched| {
            let moved = lines_of(&watched.early("checkpoint"), "w.example/1");
            watched.strip();
            watched.put("checkpoint", &(watched.read("checkpoint") + &moved));
            fs::remove_file(watched.directory.join(WITNESSED)).unwrap();
        },
        found: [&[], &["cosignature-invalid"]],
        ..NOTHING
    },
    Attack {
        name: "the witness's address in `bulla.toml`",
        carry_out: |watched| {
            let text = watched.read("bulla.toml");
            assert!(text.contains(&watched.address), "{text}");
            watched.put("bulla.toml", &text.replace(&watched.address, "127.0.0.1:1"));
        },
        found: [&["config-mismatch 0.seg f0-0"], &["config-mismatch 0.seg f0-0"]],
        writer: Writer::Fails(ErrorKind::Refused),
        says: Says::Nothing,
        ..NOTHING
    },
    Attack {
        name: "`witness_policy` taken out of `bulla.toml`",
        carry_out: |watched| {
            let text = watched.read("bulla.toml");
            let begins = text.find("\nwitness_policy").unwrap();
            let (end, quotes) = text[begins..].match_indices("'''").nth(1).unwrap();
            let ends = begins + end + quotes.len();
            watched.put("bulla.toml", &[&text[..begins], &text[ends..]].concat());
        },
        found: [&["config-mismatch 0.seg f0-0"], &["config-mismatch 0.seg f0-0"]],
        writer: Writer::Fails(ErrorKind::Refused),
        says: Says::Nothing,
        ..NOTHING
    },
];

#[test]
fn attacks_on_a_log_that_is_witnessed() {
    let mut wrong = String::new();
    for attack in ATTACKS {
        let watched = Watched::new();
        (attack.carry_out)(&watched);
        for (by_policy, expected) in [false, true].into_iter().zip(attack.found) {
            let found = watched.findings(by_policy);
            if found != expected {
                wrong += &format!("{}: policy {by_policy}: {found:?}, and not {expected:?}\n", attack.name);
            }
        }
        let came = watched.asks();
        if came != (attack.writer, attack.says) {
            wrong += &format!("{}: {came:?}, and not {:?}\n", attack.name, (attack.writer, attack.says));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Else an attack could seem to be found where something else is.
#[test]
fn nothing_is_found_of_a_witnessed_log_where_nobody_attacks() {
    let watched = Watched::new();
    assert_eq!(
        [false, true].map(|by_policy| watched.findings(by_policy)),
        [Vec::<String>::new(), Vec::new()]
    );
    assert_eq!(watched.asks(), (Writer::Opens, Says::Cosigns));
}

#[test]
fn the_document_has_these_attacks_and_what_finds_them() {
    let row = |Attack { name, controls, found: [key, policy], writer, says, elsewhere, .. }: &Attack| {
        let by_policy = if key == policy && !key.is_empty() { String::new() } else { kinds(policy) };
        let writer = match writer {
            Writer::Opens => "opens".to_owned(),
            Writer::Fails(kind) => format!("refuses (`{kind:?}`)"),
        };
        let says = match says {
            Says::Cosigns => "cosigns",
            Says::PutBack => "refuses: the log was put back",
            Says::TwoHistories => "refuses: two histories",
            Says::Nothing => "is not asked",
        };
        let is_found = [*key, *policy].concat().iter().any(|found| !found.starts_with("told: "));
        assert!(is_found || !elsewhere.is_empty(), "{name}");
        format!(
            "| {name} | {} | {} | {by_policy} | {writer} | {says} | {elsewhere} |\n",
            controls.name(),
            kinds(key)
        )
    };
    compare(HEAD, &(HEAD.to_owned() + &ATTACKS.iter().map(row).collect::<String>()));
}
