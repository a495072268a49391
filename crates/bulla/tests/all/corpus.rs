//! The fuzz targets on their corpus, and on every file of it with each byte changed and each end cut off.

use crate::helpers::in_turn;
use bulla::fuzzing::TARGETS;
use std::path::{Path, PathBuf};

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let items = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = items.map(|item| item.unwrap().path()).collect::<Vec<_>>();
    files.sort();
    files
}

#[test]
fn every_target_holds_on_its_corpus_and_close_to_it() {
    for (name, target) in TARGETS {
        let files = corpus(name);
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in files {
            let content = std::fs::read(&file).unwrap();
            target(&content);
            let step = content.len().div_ceil(500).max(1);
            for at in (0..content.len()).step_by(step) {
                target(&content[..at]);
                for change in in_turn(&[0x01, 0x80, 0xff], (at / step) as u64) {
                    let mut changed = content.clone();
                    changed[at] ^= change;
                    target(&changed);
                }
            }
        }
    }
}

#[test]
fn every_target_is_driven_by_the_fuzzer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut driven = std::fs::read_dir(folder).unwrap();
    let mut names = driven
        .by_ref()
        .map(|item| item.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect::<Vec<_>>();
    names.sort();
    let mut targets = TARGETS.map(|(name, _)| name.to_owned()).to_vec();
    targets.sort();
    assert_eq!(names, targets);
}
