use super::*;
use bulla::keys::signing::SigningKey;
use bulla::{Entry, Init, Log, Options, Query, Reader};
use bulla_proof::{CosignerKey, SignedNote};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

/// A log with both keys, and a witness.
struct World {
    place: tempfile::TempDir,
    directory: PathBuf,
    key: String,
    ml_dsa: String,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("audit");
        let made = Init::default().origin("example.com/c").erasure(false).ml_dsa(true).create(&directory);
        let made = made.unwrap();
        let ml_dsa = made.ml_dsa_key.unwrap().to_string();
        let world = World { place, directory, key: made.verifier_key.to_string(), ml_dsa };
        world.append();
        world
    }

    fn append(&self) {
        let log = Log::open(&self.directory, Options::default()).unwrap();
        log.producer().unwrap().append(&Entry::new("read", "email")).unwrap();
        log.close().unwrap();
    }

    /// A policy that asks for the witness.
    fn policy(&self) -> String {
        format!("witness w {}\nquorum w\n", witness().1)
    }

    /// Has the witness cosign the checkpoint.
    #[allow(clippy::disallowed_methods, reason = "a test plays the witness")]
    fn cosign(&self) {
        let path = self.directory.join("checkpoint");
        let note = std::fs::read_to_string(&path).unwrap();
        let (secret, key) = witness();
        let text = SignedNote::parse(note.as_bytes()).unwrap().text;
        let signature = secret.sign(&key.message(text, 1_700_000_000).unwrap());
        std::fs::write(&path, note.clone() + &key.signature_line(1_700_000_000, &signature)).unwrap();
    }

    fn proof(&self) -> Vec<u8> {
        let identity = std::sync::Arc::new(identity(&self.directory));
        let reader = Reader::open(&self.directory).unwrap().identity(identity);
        reader.prove(&Query::new().entries(0..=0)).unwrap().file
    }

    fn verify(&self, trust: &bulla_trust) -> (bulla_status, bulla_verified, Vec<String>) {
        let path = text(self.directory.as_os_str().as_bytes());
        let report =
            bulla_report { ok: false, anchored: false, entries: 0, blocks: 0, tree_size: 0, pending: 0 };
        let mut found = bulla_verified {
            report,
            witnessed: 7,
            pinned_before: 7,
            pinned: 7,
            pin_made: true,
            pin_failed: true,
        };
        let mut lines = Vec::<String>::new();
        let context = (&raw mut lines).cast();
        // SAFETY: texts end with a zero, places are places, and the callback gets what it is for.
        let status =
            unsafe { bulla_verify_by(path.as_ptr(), trust, Some(keep_line), context, &raw mut found) };
        (status, found, lines)
    }
}

#[allow(clippy::disallowed_methods, reason = "a test reads the identity")]
fn identity(directory: &Path) -> bulla::keys::recipients::IdentityFile {
    let path = bulla::default_keys(directory).join("identity.age");
    bulla::keys::recipients::IdentityFile::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn witness() -> (SigningKey, CosignerKey) {
    let secret = SigningKey::from_seed("w.example/1", &[5; 32]).unwrap();
    let key = CosignerKey::ed25519("w.example/1", *secret.verifier().public_key()).unwrap();
    (secret, key)
}

fn text(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap()
}

fn trust(key: Option<&CString>, policy: &str, pin: Option<&CString>) -> bulla_trust {
    let pointer = |text: Option<&CString>| text.map_or(std::ptr::null(), |text| text.as_ptr());
    let policy = bulla_bytes::of((!policy.is_empty()).then_some(policy.as_bytes()));
    bulla_trust { key: pointer(key), policy, pin: pointer(pin) }
}

unsafe extern "C" fn keep_line(kept: *mut c_void, bytes: bulla_bytes) -> i32 {
    // SAFETY: the test gives a vector, and the library bytes.
    unsafe {
        let bytes = bytes.get("bytes").ok().flatten().unwrap_or_default();
        (*kept.cast::<Vec<String>>()).push(String::from_utf8_lossy(bytes).into_owned());
    }
    0
}

fn check(proof: &[u8], trust: &bulla_trust) -> (bulla_status, bulla_checked) {
    let mut checked = bulla_checked { anchored: false, entries: 0, withheld: 0, tree_size: 0 };
    let (proof, none) = (bulla_bytes::of(Some(proof)), std::ptr::null_mut());
    // SAFETY: places are places.
    let status = unsafe { bulla_check_by(proof, trust, None, none, &raw mut checked) };
    (status, checked)
}

#[test]
fn a_log_and_a_proof_are_believed_by_either_key_and_by_a_policy() {
    let world = World::new();
    let (key, ml_dsa) = (text(world.key.as_bytes()), text(world.ml_dsa.as_bytes()));
    for key in [&key, &ml_dsa] {
        let (status, found, _) = world.verify(&trust(Some(key), "", None));
        assert_eq!(status, bulla_status::BULLA_OK);
        assert!(found.report.ok && found.report.anchored);
        assert_eq!((found.witnessed, found.pinned, found.pin_made, found.pin_failed), (0, 0, false, false));
        let (status, checked) = check(&world.proof(), &trust(Some(key), "", None));
        assert!(status == bulla_status::BULLA_OK && checked.anchored);
    }
    let policy = world.policy();
    let asked = trust(Some(&ml_dsa), &policy, None);
    let (status, found, lines) = world.verify(&asked);
    assert!(status == bulla_status::BULLA_OK && !found.report.ok);
    assert!(lines.iter().any(|line| line.starts_with("violation unwitnessed: ")), "{lines:?}");
    assert_eq!(check(&world.proof(), &asked).0, bulla_status::BULLA_TAMPERED);
    world.cosign();
    let (status, found, lines) = world.verify(&asked);
    assert!(status == bulla_status::BULLA_OK && found.report.ok && found.report.anchored, "{lines:?}");
    assert_eq!(found.witnessed, found.report.tree_size);
    let (status, checked) = check(&world.proof(), &asked);
    assert!(status == bulla_status::BULLA_OK && checked.anchored);

    // A witness that is not asked for has witnessed nothing that anybody asked for.
    let unasked = policy.replace("quorum w", "quorum none");
    let (status, found, _) = world.verify(&trust(Some(&ml_dsa), &unasked, None));
    assert!(status == bulla_status::BULLA_OK && found.report.ok && found.witnessed == 0);

    let other = World::new();
    // A key beside a policy that names logs takes nothing from it: one of these has to have signed, too.
    for (log, holds) in [(&world.key, true), (&other.key, false)] {
        let names = format!("log {log}\nquorum none\n");
        let both = trust(Some(&key), &names, None);
        let (status, found, lines) = world.verify(&both);
        assert!(status == bulla_status::BULLA_OK && found.report.ok == holds, "{lines:?}");
        let expected = if holds { bulla_status::BULLA_OK } else { bulla_status::BULLA_TAMPERED };
        assert_eq!(check(&world.proof(), &both).0, expected);
    }
    // Another log's keys, and what is no policy or does not say whose log it is.
    for key in [other.key, other.ml_dsa] {
        let key = text(key.as_bytes());
        let (status, found, _) = world.verify(&trust(Some(&key), &policy, None));
        assert!(status == bulla_status::BULLA_OK && !found.report.ok && !found.report.anchored);
        let checked = check(&world.proof(), &trust(Some(&key), &policy, None));
        assert_eq!(checked.0, bulla_status::BULLA_TAMPERED);
    }
    for wrong in ["quorum", &policy] {
        assert_eq!(world.verify(&trust(None, wrong, None)).0, bulla_status::BULLA_INVALID);
        assert_eq!(check(&world.proof(), &trust(None, wrong, None)).0, bulla_status::BULLA_INVALID);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test puts something in the pin's way")]
fn a_pin_is_made_advanced_and_binds_the_log() {
    let world = World::new();
    let key = text(world.key.as_bytes());
    let pin = text(world.place.path().join("audit.pin").as_os_str().as_bytes());
    let pinned = trust(Some(&key), "", Some(&pin));
    assert_eq!(world.verify(&trust(None, "", Some(&pin))).0, bulla_status::BULLA_INVALID, "whose is it?");
    let (status, first, _) = world.verify(&pinned);
    assert_eq!(status, bulla_status::BULLA_OK);
    assert!(first.pin_made && first.pinned_before == 0 && first.pinned == first.report.tree_size);
    world.append();
    let (status, second, _) = world.verify(&pinned);
    assert_eq!(status, bulla_status::BULLA_OK);
    assert!(!second.pin_made && second.pinned_before == first.pinned && second.pinned > first.pinned);
    // The pin of another log.
    let (status, found, lines) = World::new().verify(&trust(None, "", Some(&pin)));
    assert!(status == bulla_status::BULLA_OK && !found.report.ok, "{lines:?}");
    // One that would be put back with the log.
    let inside = text(world.directory.join("pin").as_os_str().as_bytes());
    assert_eq!(world.verify(&trust(Some(&key), "", Some(&inside))).0, bulla_status::BULLA_REFUSED);
    // One that cannot be advanced: what was found is told all the same.
    let lock = world.place.path().join("audit.pin.lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    world.append();
    let (status, third, lines) = world.verify(&pinned);
    assert_eq!(status, bulla_status::BULLA_UNAVAILABLE);
    assert!(third.pin_failed && !second.pin_failed && third.report.ok, "{lines:?}");
    assert_eq!((third.pinned_before, third.pinned), (second.pinned, second.pinned));
    assert!(third.report.tree_size > second.report.tree_size);
    // A proof is compared with none.
    assert_eq!(check(&world.proof(), &pinned).0, bulla_status::BULLA_INVALID);
}

/// The keys alone know on which paths a log lies, and how far it had come.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test changes a name")]
fn keys_that_lie_elsewhere_are_verified_with_where_they_are_named() {
    let world = World::new();
    let (own, keys) = (bulla::default_keys(&world.directory), world.place.path().join("elsewhere"));
    std::fs::rename(&own, &keys).unwrap();
    std::fs::write(keys.join("settings.toml"), "[settings]\nbackup_paths = [\"/nonexistent/second\"]\n")
        .unwrap();
    let directory = text(world.directory.as_os_str().as_bytes());
    let verified_with = |keys: Option<&Path>| {
        let keys = keys.map(|keys| text(keys.as_os_str().as_bytes()));
        let report =
            bulla_report { ok: false, anchored: false, entries: 0, blocks: 0, tree_size: 0, pending: 0 };
        let mut found = bulla_verified {
            report,
            witnessed: 0,
            pinned_before: 0,
            pinned: 0,
            pin_made: false,
            pin_failed: false,
        };
        let mut lines = Vec::<String>::new();
        // SAFETY: texts end with a zero, places are places, and the callback gets what it is for.
        let status = unsafe {
            bulla_verify_with_keys(
                directory.as_ptr(),
                keys.as_ref().map_or(std::ptr::null(), |keys| keys.as_ptr()),
                std::ptr::null(),
                Some(keep_line),
                (&raw mut lines).cast(),
                &raw mut found,
            )
        };
        (status, found.report.ok, lines)
    };
    // Where nothing is named, and the key directory of its name is not there, nothing tells of another path.
    assert!(matches!(verified_with(None), (bulla_status::BULLA_OK, true, _)));
    let (status, ok, lines) = verified_with(Some(&keys));
    assert!(status == bulla_status::BULLA_OK && !ok, "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("/nonexistent/second")), "{lines:?}");
    let (status, ..) = verified_with(Some(&own));
    assert_eq!(status, bulla_status::BULLA_REFUSED, "what is named and is not there is a slip");
}
