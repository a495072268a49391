//! `interop/bulla_reader`, another implementation of the format, reads what the engine writes, and objects to
//! what is damaged.

use crate::damage::image::Image;
use crate::damage::world::{Level, Made, large, small};
use bulla::VerifierKey;
use serde_json::Value;
use std::process::Command;

/// It, for logs with this key.
pub(crate) fn second_reader(key: &VerifierKey) -> Command {
    let mut command = bulla_testkit::second_reader("verify");
    command.arg("--json").arg("--vkey").arg(key.to_string());
    command
}

/// What it says of each of some logs.
fn read(images: &[Image], made: &Made, seal_key: bool) -> Vec<Value> {
    let place = tempfile::tempdir().unwrap();
    let mut command = second_reader(&made.key);
    if seal_key {
        let path = place.path().join("seal-key");
        std::fs::write(&path, &made.seal_key).unwrap();
        command.arg("--seal-key").arg(path);
    }
    command.arg("--");
    for (number, image) in images.iter().enumerate() {
        let directory = place.path().join(number.to_string());
        image.write_to(&directory);
        command.arg(directory);
    }
    let output = command.output().expect("python3 is there");
    let lines = String::from_utf8(output.stdout).unwrap();
    let said = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    assert_eq!(said.len(), images.len(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.success(), said.iter().all(|one| one["ok"] == true));
    said
}

#[test]
fn another_implementation_reads_the_log() {
    for made in [small(), large()] {
        let report = made.verify(&made.image, Level::SealKey).unwrap();
        for seal_key in [false, true] {
            let read = read(std::slice::from_ref(&made.image), &made, seal_key).remove(0);
            assert_eq!(read["entries"], report.entries);
            assert_eq!(read["blocks"], report.blocks);
            assert_eq!(read["tree_size"], report.tree_size);
            assert_eq!(read["root"], report.root.to_base64());
            assert_eq!(read["pending"], 0);
        }
        // A file without a byte is no segment.
        let names = ["00000000000000000003.seg", "00000000000000000000-7.seg", "00000000000000009999.seg"];
        let path = |name: &str| format!("segments/{name}");
        let image = names.iter().fold(made.image.clone(), |image, name| image.with(&path(name), Vec::new()));
        let said = read(std::slice::from_ref(&image), &made, true).remove(0);
        assert_eq!(said["entries"], made.verify(&made.image, Level::SealKey).unwrap().entries, "{said}");
        assert!(made.verify(&image, Level::SealKey).unwrap().ok);
    }
}

/// Bytes all over the log: it objects where Verify does, and does not where Verify does not.
#[test]
fn another_implementation_objects_to_damage() {
    let made = small();
    let mut flips = Vec::new();
    for path in made.image.paths() {
        let length = made.image.get(&path).len();
        let places = [0, 12, 30, 180, length / 2, length.saturating_sub(1)];
        flips.extend(places.into_iter().filter(|at| *at < length).map(|at| (path.clone(), at)));
    }
    let mut objections = 0;
    for (seal_key, level) in [(false, Level::Key), (true, Level::SealKey)] {
        let flips = flips.iter().filter(|(path, _)| !seal_key || path.ends_with(".seg"));
        let damaged = flips.map(|(path, at)| (path, at, made.image.flipped(path, *at, |byte| byte ^ 4)));
        let damaged = damaged.collect::<Vec<_>>();
        let images = damaged.iter().map(|(_, _, image)| image.clone()).collect::<Vec<_>>();
        for ((path, at, image), said) in damaged.iter().zip(read(&images, &made, seal_key)) {
            let sound = made.verify(image, level).is_ok_and(|report| report.ok);
            assert_eq!(said["ok"] == true, sound, "{path} at {at}, {level:?}: {said}");
            objections += u32::from(!sound);
        }
    }
    assert!(objections > 40, "{objections}");
}
