//! A log of 65,536 frames, whose tiles of levels 0 and 1 are all full, and the same log with a few frames more.

use super::image::Image;
use super::layout::{BLOCK, HEAD, Layout};
use super::world::{Level, Made, Mask, environment};
use bulla::environment::AesGcm;
use bulla::{Entry, Export, Init, Log, Options, Step};
use bulla_testkit::Memory;
use std::sync::Arc;

const FRAMES: u64 = 65_536;

/// The log when it has just so many frames, and later.
fn made() -> [Made; 2] {
    let (log, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    let environment = environment(3, Arc::new(AesGcm));
    let init = Init::default().erasure(false).origin("example.com/long").recipient(super::world::RECIPIENT);
    let created = init.create_in(&*log, &*keys, &environment).unwrap();
    let options = Options::default().segment_size(8 << 20).memory(64 << 20).writers(1).compression(0);
    let seal_key = String::from_utf8(Image::of_store(&*keys).get("seal.key").to_vec()).unwrap();
    let mut sealed = 0;
    [FRAMES, FRAMES + 300].map(|frames| {
        let open =
            Log::open_stepped(log.clone(), keys.clone(), options.clone(), environment.clone()).unwrap();
        let mut producer = open.producer().unwrap();
        // Opening begins an epoch.
        sealed += 1;
        while sealed < frames {
            producer.append(&Entry::new("read", &sealed.to_string())).unwrap();
            let _ = producer.flush().unwrap();
            while open.step(Step::Seal).unwrap() {
                sealed += 1;
                open.step(Step::Commit).unwrap();
            }
        }
        drop(producer);
        open.close().unwrap();
        Made { image: Image::of_store(&*log), key: created.verifier_key.clone(), seal_key: seal_key.clone() }
    })
}

/// Every level takes the log as it is, and finds damage at its end.
fn full_tiles(made: &Made) {
    let layout = Layout::of(&made.image);
    assert_eq!(layout.size, FRAMES);
    for path in ["tile/0/255", "tile/1/000", "tile/entries/255", "tile/2/000.p/1"] {
        assert!(made.image.paths().iter().any(|known| known == path), "{path}");
    }
    let last = layout.frame(FRAMES - 1);
    let segment = format!("segments/{}", last.segment);
    let body = made.image.flipped(&segment, last.offset + HEAD + 3, |byte| byte ^ 1);
    let tile = made.image.flipped("tile/0/255", 255 * 32 + 31, |byte| byte ^ 1);
    for level in Level::ALL {
        let report = made.verify(&made.image, level).unwrap();
        assert_eq!((&report.findings[..], report.tree_size, report.ok), (&[][..], FRAMES, true), "{level:?}");
    }
    for level in Level::ALL {
        assert_eq!(made.findings(&body, level), [last.finding("body-damaged")], "{level:?}");
        let told = format!("tile-damaged f{}-{}", FRAMES - 1, FRAMES - 1);
        assert_eq!(made.findings(&tile, level), [told], "{level:?}");
    }
}

#[test]
#[ignore = "it takes long: `make sweep` has it"]
fn a_log_of_65536_frames() {
    let [exact, made] = made();
    full_tiles(&exact);
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
