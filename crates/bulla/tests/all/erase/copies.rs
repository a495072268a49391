//! Copies of the log that were made before: nothing that is left opens in them what was erased.

use super::world::{World, copy};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla::keys::group::{BlockContext, Followed, GroupKeys, GroupSecret};
use bulla::proof::{DisclosedGroup, Proof};
use bulla::{Log, Options, Query};
use bulla_proof::LogId;
use bulla_vault::{Access, SubjectKey};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What a key would have to open: a group of the data subject, and the block that it is in.
struct Target {
    log: LogId,
    epoch_random: [u8; 32],
    frame: u64,
    group: DisclosedGroup,
}

/// No keys, and the last epoch that was asked for.
#[derive(Default)]
struct Asked(Mutex<Option<[u8; 32]>>);

impl GroupKeys for Asked {
    fn number(&self, _: &str) -> bulla::Result<Option<u64>> {
        Ok(None)
    }

    fn secrets(&self, place: BlockContext<'_>, groups: &[&[u64]]) -> bulla::Result<Vec<Option<GroupSecret>>> {
        *self.0.lock().unwrap() = Some(*place.epoch_random);
        Ok(vec![None; groups.len()])
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn erased_up_to(&self) -> bulla::Result<Followed> {
        Ok(Followed::NOTHING)
    }
}

impl Target {
    /// The group of the first entry of `user_7` in a copy of the log.
    fn of(world: &World, directory: &Path) -> Self {
        let asked = Arc::new(Asked::default());
        let reader = world.reader_of(directory).group_keys(asked.clone());
        let proven =
            reader.prove(&Query { first_entry: Some(7), last_entry: Some(7), ..Query::new() }).unwrap();
        let proof = Proof::parse(&proven.file).unwrap();
        let disclosed = &proof.verify(Some(&world.key)).unwrap().disclosed()[0];
        let group = disclosed.units()[0].group().unwrap().clone();
        let frame = disclosed.commitment().frame;
        let epoch_random = asked.0.lock().unwrap().unwrap();
        Target { log: world.id, epoch_random, frame, group }
    }

    /// Whether these 32 bytes are the subject's key, or the group's secret.
    fn opens_with(&self, candidate: [u8; 32]) -> bool {
        let place = BlockContext { log: self.log, epoch_random: &self.epoch_random, frame: self.frame };
        let key = SubjectKey::from(candidate);
        let derived = place.secret([(self.group.subjects[0], &key)].into_iter()).unwrap();
        [derived, GroupSecret::new(candidate)]
            .iter()
            .any(|secret| secret.key().commitment == self.group.commitment)
    }

    /// Tries every 32 bytes of what a file has, and of the base64 in it.
    fn opens_with_any(&self, content: &[u8]) -> bool {
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let words = content.split(|byte| !is_base64(byte)).filter(|word| (40..4000).contains(&word.len()));
        let decoded = words.filter_map(|word| BASE64_STANDARD.decode(word).ok());
        decoded.chain([content.to_vec()]).any(|bytes| {
            bytes.windows(32).any(|window| {
                // Of the empty pages of a database there are many.
                window != [0; 32] && self.opens_with(window.try_into().unwrap())
            })
        })
    }
}

pub(super) fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    all
}

#[test]
fn no_byte_that_is_left_opens_what_was_erased() {
    let world = World::new();
    let replica = world.with_replica();
    world.append(0..200);
    let (first, second) = (copy(&world.directory), copy(&world.directory));
    world.append(200..300);
    let key = world.vault(Access::Read).find("user_7").unwrap().unwrap().key;
    let before = files(&world.keys()).len();
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.erase(&world.order(&["user_7"])).unwrap();
    log.close().unwrap();

    let targets = [&first, &second].map(|copy| Target::of(&world, copy.path()));
    // The search finds it where it is.
    let hidden = [&[1; 77][..], key.bytes(), &[2; 9]].concat();
    let encoded = format!("key: {}\n", BASE64_STANDARD.encode(key.bytes()));
    for target in &targets {
        assert!(target.opens_with_any(&hidden) && target.opens_with_any(encoded.as_bytes()));
    }
    let left = [files(&world.directory), files(&world.keys()), files(&replica)].concat();
    assert!(left.len() > before && left.iter().filter(|(name, _)| name.ends_with("vault.db")).count() == 2);
    for (name, content) in left {
        assert!(targets.iter().all(|target| !target.opens_with_any(&content)), "{name}");
    }
    // Nor does the log's own reader, which reads everybody else's in the copy.
    let mut withheld = 0;
    let read = world.reader_of(first.path()).for_each(&Query::new(), |number, entry| {
        withheld += u64::from(entry.location.is_none());
        assert_eq!(
            entry.location.is_none(),
            World::subjects(number).contains(&"user_7".to_owned()),
            "{number}"
        );
        Ok(())
    });
    assert_eq!((read.unwrap().entries, withheld), (200, withheld.max(1)));
}

#[test]
fn proofs_about_others_are_what_they_were() {
    let world = World::new();
    world.append(0..200);
    let kept = copy(&world.directory);
    let query = Query::new().subject("user_8");
    let before = world.reader_of(kept.path()).prove(&query).unwrap().file;
    let log = Log::open(&world.directory, Options::default()).unwrap();
    log.erase(&world.order(&["user_7"])).unwrap();
    log.close().unwrap();
    // Against the same checkpoint, byte for byte; and against the new one.
    assert_eq!(world.reader_of(kept.path()).prove(&query).unwrap().file, before);
    let after = world.reader().prove(&query).unwrap().file;
    for text in [&before, &after] {
        let proof = Proof::parse(text).unwrap();
        let opened = bulla::open_proof(&proof.verify(Some(&world.key)).unwrap(), |_| Ok(())).unwrap();
        assert_eq!((opened.entries, opened.withheld), (5, 0));
    }
}
