//! `vectors/seal/`: whole small logs that a second implementation made, from secrets and rows to signatures.
//!
//! Both ways: what it wrote is read here, and what is written here from the same secrets and rows is the same, but
//! for the bodies of blocks, whose encoding is the writer's choice.

use crate::damage::image::Image;
use crate::damage::world::{Level, Made, Mask, RECIPIENT, short};
use bulla::environment::{AesGcm, Clock, Environment, Interrupt, Random};
use bulla::keys::epoch::{EpochKeys, EpochSecret};
use bulla::keys::seal_chain::parse_seal_key;
use bulla::store::Store;
use bulla::{Entry, ErrorKind, Export, Init, Log, Options, Place, Result, SourceId, SourceState, Step};
use bulla_proof::commitment::{Commitment, LogId};
use bulla_proof::hash::HashId;
use bulla_proof::unit;
use bulla_testkit::Memory;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn logs() -> Vec<Value> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/seal");
    let read = |name: &HashId| std::fs::read_to_string(format!("{directory}/{}.json", name.name())).unwrap();
    HashId::ALL.iter().map(|name| serde_json::from_str(&read(name)).unwrap()).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field}"))
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn bytes<const N: usize>(value: &Value, field: &str) -> [u8; N] {
    unhex(text(value, field)).try_into().unwrap()
}

fn blocks(log: &Value) -> impl Iterator<Item = &Value> {
    log["frames"].as_array().unwrap().iter().filter(|frame| frame["kind"] == "block")
}

fn list(frame: &Value, field: &str) -> Vec<Vec<u8>> {
    frame[field].as_array().unwrap().iter().map(|item| unhex(item.as_str().unwrap())).collect()
}

#[test]
fn what_the_other_implementation_wrote_is_read() {
    for log in logs() {
        let mut image = Image::default();
        for (path, content) in log["files"].as_object().unwrap() {
            image.put(path, unhex(content.as_str().unwrap()));
        }
        let (key, seal_key) = (text(&log, "vkey").parse().unwrap(), text(&log, "seal_key").to_owned());
        let made = Made { image, key, seal_key };
        for level in Level::ALL {
            let report = made.verify(&made.image, level).unwrap();
            assert_eq!(
                report.findings.iter().map(short).collect::<Vec<_>>(),
                Vec::<String>::new(),
                "{level:?}"
            );
            assert_eq!(report.anchored, level >= Level::Key);
        }
        let mut out = Vec::new();
        let export = Export::open_store(Arc::new(made.image.clone())).unwrap().identity(Arc::new(Mask));
        export.run(&mut out).unwrap();
        let mut expected = Vec::new();
        let rows = blocks(&log).flat_map(|block| list(block, "rows")).collect::<Vec<_>>();
        for (number, row) in (0..).zip(&rows) {
            bulla::text::jsonl::write_entry(&Entry::decode(row).unwrap(), number, &mut expected);
        }
        assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected).unwrap());
    }
}

#[test]
fn keys_units_and_seals() {
    for log in logs() {
        let id = LogId(bytes(&log, "log_id"));
        let secret = EpochSecret::from(bytes::<32>(&log, "epoch_secret"));
        let keys = EpochKeys::derive(&secret, bytes(&log, "epoch_random"), id, 0).unwrap();
        assert_eq!(keys.commitment().0, bytes(&log, "key_commitment"));
        let hash = HashId::from_name(text(&log, "hash")).unwrap();
        let mut chain = parse_seal_key(text(&log, "seal_key"), id).unwrap();
        for frame in log["frames"].as_array().unwrap() {
            let commitment = unhex(text(frame, "commitment"));
            let decoded = Commitment::decode(&commitment).unwrap();
            assert_eq!(decoded.encode().to_vec(), commitment);
            assert_eq!(decoded.additional_data().to_vec(), unhex(text(frame, "additional_data")));
            let seal = chain.seal(frame["group"].as_u64().unwrap(), &commitment);
            assert_eq!(seal, bytes(frame, "seal"));
            if frame["kind"] != "block" {
                continue;
            }
            let salts = list(frame, "salts").into_iter().map(|salt| <[u8; 16]>::try_from(salt).unwrap());
            let rows = list(frame, "rows");
            let units = salts.zip(&rows).zip(0..);
            let mut units =
                units.map(|((salt, row), place)| unit::row_unit(hash, &salt, place, row)).collect::<Vec<_>>();
            assert_eq!(units.iter().map(|unit| unit.0.to_vec()).collect::<Vec<_>>(), list(frame, "units"));
            assert_eq!(unit::block_root(hash, &mut units, 0).0, bytes(frame, "root"));
        }
    }
}

/// A key directory with nothing but the key of sources.
fn keys_of_sources(log: &Value) -> Memory {
    let keys = Memory::new();
    bulla::store::replace(&keys, "sources.key", text(log, "sources_key").as_bytes()).unwrap();
    keys
}

/// What all blocks of a log say of its sources. The first of them has ended.
fn sources(log: &Value) -> Vec<SourceState> {
    let blocks = blocks(log).collect::<Vec<_>>();
    let told = blocks.iter().flat_map(|block| {
        let sources = block["sources"].as_array().unwrap().iter();
        sources.map(|source| (block["frame"].as_u64().unwrap(), source))
    });
    let (_, ended) =
        told.clone().find(|(_, source)| source["ranges"].as_array().unwrap().is_empty()).unwrap();
    let left = told.filter(|(_, source)| source["id"] != ended["id"]).map(|(frame, source)| {
        let ranges = source["ranges"].as_array().unwrap();
        let number = |range: &Value, at: usize| range[at].as_u64().unwrap();
        (
            text(source, "id").to_owned(),
            unhex(text(source, "label")),
            ranges.iter().map(|range| number(range, 0)..number(range, 1)).collect::<Vec<_>>(),
            ranges.iter().map(|range| number(range, 2)).collect::<Vec<_>>(),
            frame,
        )
    });
    let left = left.collect::<Vec<_>>();
    let found = bulla::sources_of(Arc::new(store_of(log)), &keys_of_sources(log)).unwrap();
    let told = found.iter().map(|state| {
        let SourceState { id, label, ranges, checks, last_frame, .. } = state.clone();
        (id.to_string(), label, ranges, checks, last_frame)
    });
    assert_eq!(told.collect::<Vec<_>>(), left);
    found
}

/// The files that the other implementation wrote.
pub(crate) fn store_of(log: &Value) -> Memory {
    let store = Memory::new();
    for (path, content) in log["files"].as_object().unwrap() {
        let directories = path.match_indices('/').map(|(end, _)| &path[..end]);
        directories.for_each(|directory| store.create_directory(directory).unwrap());
        bulla::store::replace(&store, path, &unhex(content.as_str().unwrap())).unwrap();
    }
    store
}

#[test]
fn what_the_other_implementation_wrote_of_sources_is_read() {
    for log in logs() {
        assert_eq!(sources(&log).len(), 1);
        let wrong = logs().into_iter().find(|other| other["hash"] != log["hash"]).unwrap();
        let refused = bulla::sources_of(Arc::new(store_of(&log)), &keys_of_sources(&wrong)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    }
}

/// What is kept spares reading blocks: it is used although none of them can be read.
#[test]
fn what_the_other_implementation_kept_of_sources_is_read() {
    for log in logs() {
        let (store, keys) = (store_of(&log), keys_of_sources(&log));
        let path = "segments/00000000000000000000.seg";
        let mut segment = Image::of_store(&store).get(path).to_vec();
        for block in blocks(&log).filter(|block| !text(block, "section").is_empty()) {
            let body = unhex(text(block, "body"));
            let at = segment.windows(body.len()).position(|bytes| bytes == body).unwrap();
            segment[at + body.len() - 1] ^= 1;
        }
        bulla::store::replace(&store, path, &segment).unwrap();
        let store = Arc::new(store);
        assert_eq!(bulla::sources_of(store.clone(), &keys).unwrap_err().kind(), ErrorKind::Tampered);
        bulla::store::replace(&keys, "sources.state", &unhex(text(&log, "sources_state"))).unwrap();
        assert_eq!(bulla::sources_of(store, &keys).unwrap(), sources(&log));
    }
}

/// Gives the given bytes, in order.
struct Given(Mutex<Vec<u8>>);

impl Random for Given {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        let mut rest = self.0.lock().unwrap();
        let given = rest.drain(..bytes.len()).collect::<Vec<_>>();
        bytes.copy_from_slice(&given);
        Ok(())
    }
}

/// Stands still.
struct Still(i64);

impl Clock for Still {
    fn now(&self) -> i64 {
        self.0
    }

    fn wait(&self, _: Duration, _: &Interrupt) {}
}

#[test]
fn what_is_written_from_the_same_secrets_is_the_same() {
    for log in logs() {
        let secrets =
            ["log_id", "signing_seed", "seal_state", "epoch_secret", "epoch_random", "sources_secret"];
        let environment = Environment {
            clock: Arc::new(Still(log["seconds"].as_i64().unwrap() * 1_000_000_000)),
            random: Arc::new(Given(Mutex::new(
                // The last are for the part of the index and for what is kept of sources.
                secrets.iter().flat_map(|name| unhex(text(&log, name))).chain([0; 64]).collect(),
            ))),
            cipher: Arc::new(AesGcm),
            key_wrap: Arc::new(Mask),
            subjects: None,
            trying_again: None,
            pins: None,
            path_replaced: None,
            backup_paths: None,
        };
        let (store, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
        let init = Init::default().erasure(false).origin(text(&log, "origin")).recipient(RECIPIENT);
        let hash = HashId::from_name(text(&log, "hash")).unwrap();
        let created = init.hash(hash).create_in(&*store, &*keys, &environment).unwrap();
        assert_eq!(created.verifier_key.to_string(), text(&log, "vkey"));
        let secrets = Image::of_store(&*keys);
        assert_eq!(secrets.get("signing.key"), text(&log, "signing_key").as_bytes());
        assert_eq!(secrets.get("seal.key"), text(&log, "seal_key").as_bytes());
        let opened =
            Log::open_stepped(store.clone(), keys.clone(), Options::default().memory(64 << 20), environment)
                .unwrap();
        let mut producer = opened.producer().unwrap();
        let labels = log["labels"].as_object().unwrap().iter();
        let sources_by_id = labels
            .map(|(id, label)| {
                let (own, label) = (SourceId(unhex(id).try_into().unwrap()), unhex(label.as_str().unwrap()));
                (id.clone(), opened.source(own, &label).unwrap())
            })
            .collect::<BTreeMap<_, _>>();
        assert_eq!(Image::of_store(&*keys).get("sources.key"), text(&log, "sources_key").as_bytes());
        for block in blocks(&log) {
            let ended = block["ended"].as_array().unwrap().iter();
            ended.for_each(|id| sources_by_id[id.as_str().unwrap()].end());
            for (row, place) in list(block, "rows").iter().zip(block["places"].as_array().unwrap()) {
                let entry = Entry::decode(row).unwrap();
                if place.is_null() {
                    producer.append(&entry).unwrap();
                    continue;
                }
                let number = |field: &str| place[field].as_u64().unwrap();
                let range = number("start")..number("end");
                let source = &sources_by_id[text(place, "source")];
                producer.append_from(&entry, source, &Place { range, check: number("check") }).unwrap();
            }
            let _ = producer.flush().unwrap();
            while opened.step(Step::Seal).unwrap() {
                opened.step(Step::Commit).unwrap();
            }
        }
        drop(producer);
        opened.close().unwrap();
        let image = Image::of_store(&*store);
        assert_eq!(image.get("bulla.toml"), text(&log, "config").as_bytes());
        let segment = image.get("segments/00000000000000000000.seg");
        let mut chain = parse_seal_key(text(&log, "seal_key"), created.id).unwrap();
        let mut at = 0;
        for frame in log["frames"].as_array().unwrap() {
            let body = u32::from_le_bytes(segment[at + 8..at + 12].try_into().unwrap()) as usize;
            let (commitment, theirs) = (&segment[at + 24..at + 176], unhex(text(frame, "commitment")));
            let group = u64::from_le_bytes(segment[at + 12..at + 20].try_into().unwrap());
            assert_eq!(commitment[..112], theirs[..112], "all but the length and digest of the body");
            // Each is sealed with the length of its own body, so that what says the same is other bytes.
            let (own, other) =
                (Commitment::decode(commitment).unwrap(), Commitment::decode(&theirs).unwrap());
            let plain = unhex(frame["section"].as_str().unwrap_or_default()).len() as u32;
            assert_eq!(own.sources_length, if plain == 0 { 0 } else { plain + 16 });
            assert_eq!(own.sources_length, other.sources_length);
            if frame["kind"] == "epoch" {
                assert_eq!(segment[at + 176..at + 176 + body], unhex(text(frame, "body")));
                assert_eq!(commitment, theirs);
            }
            assert_eq!(Some(group), frame["group"].as_u64());
            let seal = &segment[at + 176 + body..at + 208 + body];
            assert_eq!(seal, chain.seal(group, commitment));
            at += 208 + body;
        }
        assert_eq!(at, segment.len());
        assert_eq!(bulla::sources_of(store, &*keys).unwrap(), sources(&log));
    }
}
