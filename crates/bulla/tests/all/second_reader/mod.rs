//! `scripts/reference_reader.py`, another implementation of the format, reads what the engine writes, and objects to
//! what is damaged.

use crate::damage::image::Image;
use crate::damage::world::{Level, Made, large, small};
use bulla::VerifierKey;
use std::path::Path;
use std::process::{Command, Output};

/// The script, on a log with this key.
pub(crate) fn reference_reader(directory: &Path, key: &VerifierKey) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/reference_reader.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(directory).arg("--vkey").arg(key.to_string());
    command
}

fn read(directory: &Path, made: &Made, seal_key: bool) -> Output {
    let mut command = reference_reader(directory, &made.key);
    if seal_key {
        let path = directory.with_extension("seal-key");
        std::fs::write(&path, &made.seal_key).unwrap();
        command.arg("--seal-key").arg(path);
    }
    command.output().expect("python3 is there")
}

fn with_files<T>(image: &Image, work: impl FnOnce(&Path) -> T) -> T {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("audit");
    image.write_to(&directory);
    work(&directory)
}

#[test]
fn another_implementation_reads_the_log() {
    for made in [small(), large()] {
        let report = made.verify(&made.image, Level::SealKey).unwrap();
        for seal_key in [false, true] {
            let output = with_files(&made.image, |directory| read(directory, &made, seal_key));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(read["entries"], report.entries);
            assert_eq!(read["blocks"], report.blocks);
            assert_eq!(read["tree_size"], report.tree_size);
            assert_eq!(read["root"], report.root.to_string());
            assert_eq!(read["pending"], 0);
        }
    }
}

/// Bytes all over the log: it objects where Verify does, and does not where Verify does not.
#[test]
fn another_implementation_objects_to_damage() {
    let made = small();
    let mut objections = 0;
    for path in made.image.paths() {
        let length = made.image.get(&path).len();
        let places = [0, 12, 30, 180, length / 2, length.saturating_sub(1)];
        for at in places.into_iter().filter(|at| *at < length) {
            let damaged = made.image.flipped(&path, at, |byte| byte ^ 4);
            for (seal_key, level) in [(false, Level::Key), (true, Level::SealKey)] {
                if seal_key && !path.ends_with(".seg") {
                    continue;
                }
                let output = with_files(&damaged, |directory| read(directory, &made, seal_key));
                let sound = made.verify(&damaged, level).is_ok_and(|report| report.ok);
                let told = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.success(), sound, "{path} at {at}, {level:?}: {told}");
                assert!(sound || told.starts_with("not sound: "), "{path} at {at}: {told}");
                objections += u32::from(!sound);
            }
        }
    }
    assert!(objections > 40, "{objections}");
}
