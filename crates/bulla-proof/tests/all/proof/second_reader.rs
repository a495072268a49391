//! `interop/bulla_reader`, another implementation, finds in proofs what this one does.

use super::world::{World, encode};
use bulla_proof::{Entry, HashId, ProofFile, VerifierKey};
use std::path::Path;
use std::process::Output;

/// What it finds in `files`: its output, and whether it took each.
pub(crate) fn check(test: &str, files: &[Vec<u8>], key: Option<&VerifierKey>) -> (Output, Vec<bool>) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = bulla_testkit::second_reader("check");
    command.current_dir(&folder);
    for (number, file) in files.iter().enumerate() {
        std::fs::write(folder.join(number.to_string()), file).unwrap();
        command.arg(number.to_string());
    }
    if let Some(key) = key {
        command.args(["--vkey", &key.to_string()]);
    }
    let output = command.output().expect("python3 is there");
    std::fs::remove_dir_all(&folder).unwrap();
    let proven = if key.is_some() { ": proven" } else { ": agrees with itself; " };
    let verdict = |(number, line): (usize, &str)| {
        let rest = line.strip_prefix(&number.to_string()).unwrap_or_else(|| panic!("{line}"));
        let refused = [": not proven: ", ": proof: the first line must be that of a kind of proof"];
        assert!(rest.starts_with(proven) || refused.iter().any(|no| rest.starts_with(no)), "{line}");
        rest.starts_with(proven)
    };
    let told = std::str::from_utf8(&output.stderr).unwrap();
    let verdicts: Vec<bool> = told.lines().enumerate().map(verdict).collect();
    assert_eq!(verdicts.len(), files.len(), "{told}");
    assert_eq!(output.status.success(), verdicts.iter().all(|&proven| proven), "{told}");
    (output, verdicts)
}

fn lines(test: &str, files: &[Vec<u8>], key: &VerifierKey) -> Vec<serde_json::Value> {
    let (output, verdicts) = check(test, files, Some(key));
    assert!(verdicts.iter().all(|&proven| proven), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn another_implementation_finds_the_same_entries() {
    let (mut files, mut expected) = (Vec::new(), Vec::new());
    let mut key = None;
    for hash in HashId::ALL {
        let world = World::new(hash, &[5, 0, 300, 1, 17]);
        for chosen in [
            &[(1, &[0][..])][..],
            &[(3, &[0, 1, 2, 127, 128, 255, 256, 299])],
            &[(5, &[16])],
            &[(1, &[0, 1, 2, 3, 4]), (4, &[0]), (5, &[3, 5])],
        ] {
            let proof = world.proof(chosen);
            // As text, and as a receipt.
            for _ in 0..2 {
                for (number, entry) in proof.verify(Some(&world.key)).unwrap().entries() {
                    expected.push((number, String::from_utf8(entry.location.unwrap().to_vec()).unwrap()));
                }
            }
            files.push(proof.render().into_bytes());
            files.push(world.receipt(chosen).render());
        }
        key = Some(world.key);
    }
    let found = lines("entries", &files, &key.unwrap());
    assert_eq!(found.len(), expected.len());
    for (found, (number, location)) in found.iter().zip(expected) {
        assert_eq!((&found["entry"], &found["location"]), (&number.into(), &location.into()));
    }
}

/// Every field, in the words and the order of `bulla export`.
#[test]
fn another_implementation_prints_every_field() {
    let full = |number: u64| {
        let mut entry = Entry::new("upd\u{e4}te", b"\xff\x00".as_slice())
            .time(1_431_857_103_250_000_000)
            .controller("hospital")
            .processor("")
            .purpose("a \"quote\" \\ \u{1}\n\u{7f}\u{2028}")
            .actor("nurse")
            .client("192.0.2.7")
            .stream("ward")
            .status(u32::MAX)
            .duration(u64::MAX)
            .size(0)
            .flags(1)
            .payload("text");
        if number > 0 {
            entry = entry.subject("anna");
        }
        if number > 1 {
            entry = entry.subject("b\u{f6}b");
        }
        encode(&entry)
    };
    let world = World::with_rows(HashId::Sha256, &[3], full);
    let file = world.proof(&[(1, &[0, 1, 2])]).render().into_bytes();
    let (output, _) = check("fields", &[file], Some(&world.key));
    let rest = concat!(
        r#""controller":"hospital","processor":"","purpose":"a \"quote\" \\ \u0001\n\u007f"#,
        "\u{2028}",
        r#"","actor":"nurse","client":"192.0.2.7","stream":"ward","status":4294967295,"#,
        r#""duration":18446744073709551615,"size":0,"flags":1,"payload":"text"}"#,
        "\n"
    );
    let expected: String = [(0, ""), (1, r#""subject":"anna","#), (2, r#""subject":["anna","böb"],"#)]
        .map(|(number, subject)| {
            let head = r#""time":"2015-05-17T10:05:03.25Z","operation":"updäte","location_base64":"/wA=","#;
            format!("{{\"entry\":{number},{head}{subject}{rest}")
        })
        .concat();
    assert_eq!(std::str::from_utf8(&output.stdout), Ok(&expected[..]));
}

#[test]
fn another_implementation_follows_growth() {
    let world = World::new(HashId::Sha256, &[1; 20]);
    let sizes = [(0, 0), (0, 21), (1, 2), (8, 21), (13, 20), (20, 21), (21, 21)];
    let files = sizes.map(|(old, new)| world.growth(old, new).render().into_bytes());
    let found = lines("growth", &files, &world.key);
    let found: Vec<_> =
        found.iter().map(|line| (line["old_size"].as_u64(), line["new_size"].as_u64())).collect();
    assert_eq!(found, sizes.map(|(old, new)| (Some(old as u64), Some(new as u64))));
}

#[test]
fn another_implementation_reads_events() {
    let world = World::new(HashId::Sha256, &[2, 0, 3, 0, 0]);
    let files = [2, 4, 5].map(|frame| world.event(frame).render().into_bytes());
    let found = lines("events", &files, &world.key);
    let expected = [2, 4, 5].map(|frame| serde_json::from_slice(&super::world::body(frame)).unwrap());
    assert_eq!(found, expected as [serde_json::Value; 3]);
}

/// Bytes all over the files: it objects where this implementation does, with the key and without.
#[test]
fn another_implementation_objects_to_the_same_damage() {
    let world = World::new(HashId::Sha256, &[5, 0, 3]);
    let files = [
        world.proof(&[(1, &[1, 3])]).render().into_bytes(),
        world.proof(&[(1, &[0]), (3, &[2])]).render().into_bytes(),
        world.growth(3, 4).render().into_bytes(),
        world.event(2).render().into_bytes(),
        world.receipt(&[(1, &[1, 3])]).render(),
        world.receipt(&[(1, &[0]), (3, &[2])]).render(),
    ];
    for (key, step) in [(Some(&world.key), 7), (None, 11)] {
        let (mut damaged, mut expected) = (Vec::new(), Vec::new());
        for file in &files {
            for at in (0..file.len()).step_by(step) {
                let mut bytes = file.clone();
                bytes[at] ^= 2;
                expected.push(match ProofFile::parse(&bytes) {
                    Ok(ProofFile::Entries(proof)) => proof.verify(key).is_ok(),
                    Ok(ProofFile::Consistency(proof)) => proof.verify(key).is_ok(),
                    Ok(ProofFile::Event(proof)) => proof.verify(key).is_ok(),
                    Ok(ProofFile::Receipt(receipt)) => receipt.verify(key).is_ok(),
                    Err(_) => false,
                });
                damaged.push(bytes);
            }
        }
        assert_eq!(expected.iter().all(|holds| !holds), key.is_some(), "only a key sees every damage");
        let (output, verdicts) = check(if key.is_some() { "damage" } else { "damage-alone" }, &damaged, key);
        assert_eq!(verdicts, expected, "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The refused vectors, with the same verdict, though in other words.
#[test]
fn another_implementation_refuses_what_the_vectors_refuse() {
    let vectors = crate::vectors::read("proofs.json");
    let key: VerifierKey = crate::vectors::text(&vectors, "vkey").parse().unwrap();
    for list in ["refused", "consistency_refused"] {
        let files = crate::vectors::items(&vectors[list]);
        let files: Vec<_> = files.iter().map(|vector| crate::vectors::text(vector, "file").into()).collect();
        let (output, verdicts) = check(list, &files, Some(&key));
        assert!(verdicts.iter().all(|holds| !holds), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// What is in the log and no event that a reader takes: the proof of it holds, and tells of nothing.
#[test]
fn another_implementation_refuses_what_is_no_event() {
    let vectors = crate::vectors::read("events.json");
    let key: VerifierKey = crate::vectors::text(&vectors, "vkey").parse().unwrap();
    let files = |list: &str| -> Vec<Vec<u8>> {
        let vectors = crate::vectors::items(&vectors[list]).iter();
        vectors.map(|vector| crate::vectors::text(vector, "file").into()).collect()
    };
    let taken = [files("events"), files("bodies_taken")].concat();
    let (output, verdicts) = check("events-taken", &taken, Some(&key));
    assert!(verdicts.iter().all(|taken| *taken), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = files("bodies_refused");
    for file in &refused {
        let Ok(ProofFile::Event(proof)) = ProofFile::parse(file) else { panic!("it is a proof of an event") };
        assert!(proof.verify(Some(&key)).is_ok());
    }
    let (output, verdicts) = check("bodies-refused", &refused, Some(&key));
    assert!(verdicts.iter().all(|taken| !taken), "{}", String::from_utf8_lossy(&output.stderr));
}
