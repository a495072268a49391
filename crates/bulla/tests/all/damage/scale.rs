//! A log of 65,536 frames and a few: tiles of levels 0 and 1 full, of level 2 partial.

use super::image::Image;
use super::layout::{BLOCK, HEAD, Layout};
use super::world::{Level, Made, Mask, environment};
use bulla::environment::AesGcm;
use bulla::store::Memory;
use bulla::{Entry, Export, Init, Log, Options, Step};
use std::sync::Arc;

const FRAMES: u64 = 65_536 + 300;

fn made() -> Made {
    let (log, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    let environment = environment(3, Arc::new(AesGcm));
    let init = Init::default().erasure(false).origin("example.com/long").recipient(super::world::RECIPIENT);
    let created = init.create_in(&*log, &*keys, &environment).unwrap();
    let options = Options::default().segment_size(8 << 20).memory(64 << 20).writers(1).compression(0);
    let open = Log::open_stepped(log.clone(), keys.clone(), options, environment).unwrap();
    let mut producer = open.producer().unwrap();
    let mut sealed = 1;
    while sealed < FRAMES {
        producer.append(&Entry::new("read", &sealed.to_string())).unwrap();
        let _ = producer.flush().unwrap();
        while open.step(Step::Seal).unwrap() {
            sealed += 1;
            open.step(Step::Commit).unwrap();
        }
    }
    drop(producer);
    open.close().unwrap();
    let image = Image::of_store(&*log);
    let seal_key = Image::of_store(&*keys).get("seal.key").to_vec();
    Made { image, key: created.verifier_key, seal_key: String::from_utf8(seal_key).unwrap() }
}

#[test]
fn a_log_of_65536_frames() {
    let made = made();
    let layout = Layout::of(&made.image);
    assert_eq!(made.image.get("tile/2/000.p/1").len(), 32);
    assert_eq!(made.image.get("tile/1/000").len(), 8192);
    let report = made.verify(&made.image, Level::Identity).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.tree_size, report.ok), (layout.size, true));

    let far = layout.counted().rfind(|frame| frame.kind == BLOCK && frame.number < 65_000).unwrap();
    let segment = format!("segments/{}", far.segment);
    let damaged = made.image.flipped(&segment, far.offset + HEAD + 3, |byte| byte ^ 1);
    assert_eq!(made.findings(&damaged, Level::Identity), [far.finding("body-damaged")]);
    let mut out = Vec::new();
    let export = Export::open_store(Arc::new(damaged)).unwrap().identity(Arc::new(Mask)).salvage(true);
    let exported = export.run(&mut out).unwrap();
    assert_eq!((exported.entries, exported.left_out), (report.entries - 1, 1));

    let damaged = made.image.flipped("tile/1/000", 200 * 32 + 5, |byte| byte ^ 1);
    let (first, last) = (200 * 256, 201 * 256 - 1);
    assert_eq!(made.findings(&damaged, Level::Key), [format!("tile-damaged f{first}-{last}")]);
    let damaged = made.image.flipped("tile/0/123", 77 * 32, |byte| byte ^ 1);
    let frame = 123 * 256 + 77;
    assert_eq!(made.findings(&damaged, Level::Key), [format!("tile-damaged f{frame}-{frame}")]);
    let damaged = made.image.flipped("tile/2/000.p/1", 1, |byte| byte ^ 1);
    assert_eq!(made.findings(&damaged, Level::Key), ["tile-damaged f0-65535"]);
}
