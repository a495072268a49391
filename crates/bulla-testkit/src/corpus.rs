//! Fuzz targets as plain tests: on their corpus, and on every file of it with bytes changed and ends cut off.

use crate::sweep::in_turn;
use std::path::{Path, PathBuf};

/// A parser under test: it takes any bytes, and panics where what must hold does not.
pub type Target = fn(&[u8]);

/// Runs each target on the files of its corpus, `fuzz/corpus/<name>`, and close to them.
///
/// # Panics
/// Where a target does, where it has no corpus, or where no program in `fuzz/fuzz_targets` drives it.
pub fn check(targets: &[(&str, Target)]) {
    for (name, target) in targets {
        let driver = fuzz().join("fuzz_targets").join(name).with_extension("rs");
        assert!(driver.is_file(), "no fuzzer drives {name}");
        for file in corpus(name) {
            check_close_to(&std::fs::read(file).expect("a file of the corpus can be read"), *target);
        }
    }
}

fn check_close_to(content: &[u8], target: Target) {
    target(content);
    let step = content.len().div_ceil(500).max(1);
    for at in (0..content.len()).step_by(step) {
        target(&content[..at]);
        for change in in_turn(&[0x01, 0x80, 0xff], (at / step) as u64) {
            let mut changed = content.to_vec();
            changed[at] ^= change;
            target(&changed);
        }
    }
}

/// The contents of the files of a target's corpus whose names begin so, with their names.
///
/// # Panics
/// Where there is none.
pub fn seeds(target: &str, prefix: &str) -> Vec<(String, Vec<u8>)> {
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
    let read = |path: PathBuf| {
        let name = name(&path).filter(|name| name.starts_with(prefix))?;
        Some((name, std::fs::read(path).expect("a file of the corpus can be read")))
    };
    let seeds = corpus(target).into_iter().filter_map(read).collect::<Vec<_>>();
    assert!(!seeds.is_empty(), "{target} has no seed {prefix}");
    seeds
}

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = fuzz().join("corpus").join(target);
    let items = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files = items.map(|item| item.expect("a folder can be read").path()).collect::<Vec<_>>();
    files.sort();
    assert!(!files.is_empty(), "{target} has no corpus");
    files
}

/// The folder of the fuzzer.
pub fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}
