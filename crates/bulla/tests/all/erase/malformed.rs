//! An event that is signed and is none of this version: what it was to tell nobody knows, so nothing that rests on it is answered.

use super::world::World;
use crate::damage::image::Image;
use crate::damage::layout::{HEAD, Layout, SEAL};
use crate::damage::world::{in_tree, signed};
use bulla::keys::signing::SigningKey;
use bulla::store::FileSystem;
use bulla::{ErrorKind, Export, FindingKind, Log, Options, Query, Verify};
use bulla_proof::commitment::Commitment;
use bulla_proof::hash::sha256;
use bulla_vault::Access;
use std::sync::Arc;

/// A log that tells of an erasure in these words, as whoever has its signing key can make it, and the frame of the event. The new
/// words are as long as the old ones.
fn told_in(from: &str, to: &str) -> (World, u64) {
    assert_eq!(from.len(), to.len());
    let world = World::new();
    world.append(0..60);
    let log = Log::open(&world.directory, Options::default()).unwrap();
    let event = log.erase(&world.order(&["user_7"])).unwrap().frame;
    log.close().unwrap();
    let image = Image::of_store(&FileSystem::new(&world.directory));
    let layout = Layout::of(&image);
    let frame = layout.frame(event);
    let path = format!("segments/{}", frame.segment);
    let mut content = image.get(&path).to_vec();
    let (head, body) = (frame.offset + 24..frame.offset + HEAD, frame.offset + HEAD..frame.end() - SEAL);
    let text = String::from_utf8(content[body.clone()].to_vec()).unwrap();
    assert!(text.contains(from), "{text}");
    content[body.clone()].copy_from_slice(text.replacen(from, to, 1).as_bytes());
    let mut commitment = Commitment::decode(&content[head.clone()]).unwrap();
    commitment.body_digest = sha256(&[&content[body]]);
    content[head].copy_from_slice(&commitment.encode());
    let image = in_tree(image.with(&path, content), layout.size, event, &commitment.encode());
    let signing = std::fs::read_to_string(world.keys().join("signing.key")).unwrap();
    let signing = SigningKey::parse(&signing).unwrap();
    signed(image, layout.size, &world.key, &signing).write_to(&world.directory);
    (world, event)
}

#[test]
fn an_erasure_with_one_member_more_is_no_event_and_no_reader_answers_as_if_nobody_were_erased() {
    const REMAINS: &str = r#""remains":["shared-fields","common-items","copies","key-backups","medium"]"#;
    let more = r#""remains":["copies","key-backups"],"note":"ab""#.to_owned();
    let more = more.replace("ab", &"-".repeat(REMAINS.len() + 2 - more.len()));
    let (world, event) = told_in(REMAINS, &more);
    let report = Verify::open(&world.directory).unwrap().key(world.key.clone()).run().unwrap();
    let told = report.findings.iter().map(|finding| (finding.kind, finding.frame)).collect::<Vec<_>>();
    assert_eq!(told, [(FindingKind::EventInvalid, Some(event))], "{:#?}", report.findings);
    assert!(!report.ok && report.anchored);

    let vault = || Arc::new(world.vault(Access::Read));
    let export = Export::open(&world.directory).unwrap().identity(world.identity());
    let exported = export.group_keys(vault()).run(&mut Vec::new()).map(|exported| exported.entries);
    let queried = world.reader().for_each(&Query::new().subject("user_7"), |_, _| Ok(()));
    // It is of another history than this was made.
    std::fs::remove_file(world.keys().join("seal.state")).unwrap();
    let holds = bulla::holds(&world.directory, world.keys()).map(|held| held.holds.len() as u64);
    let proven = world.reader().prove_event(event).map(|_| 0);
    let told = [
        ("export", exported),
        ("query", queried.map(|answer| answer.entries)),
        ("holds", holds),
        ("prove", proven),
    ];
    for (how, answered) in told {
        let error = answered.map_err(|error| (error.kind(), error.to_string())).unwrap_err();
        // A vault has followed the log that this was made of.
        let expected = match how {
            "export" | "query" => (ErrorKind::Refused, "followed other frames"),
            _ => (ErrorKind::Tampered, "event"),
        };
        assert_eq!(error.0, expected.0, "{how}: {}", error.1);
        assert!(error.1.contains(expected.1), "{how}: {}", error.1);
    }
}
