//! What is said of frames that are gone, and of those that lie whole where they do not count: no more is told than anybody can know.

use super::{in_use_is_lost, note, paths, world};
use crate::support::{Place, exit};
use std::fs;

/// What a salvage with these options says is left out, and whether it says in JSON that nobody can tell how much that is.
fn left_out(place: &Place, more: &[&str]) -> (String, bool) {
    let file = place.path("salvaged").into_os_string().into_string().unwrap();
    let options = [&["--salvage", "--json", "-o", &file], more].concat();
    let ran = place.run("export", &options).exits(exit::VIOLATION);
    let said = ran.err.lines().find_map(|line| line.strip_prefix("left out: ")).unwrap().to_owned();
    let told = ran.json();
    fs::remove_file(&file).unwrap();
    assert_eq!(told["left_out"], 0, "{ran:?}");
    (said, told["left_out_unknown"].as_bool().unwrap())
}

/// While the path in use is missed, and once it counts as lost. Nobody has the commitments of what lay there.
#[test]
fn how_many_entries_are_left_out_is_not_known_behind_the_end_of_what_is_there() {
    let (place, _) = in_use_is_lost();
    for noted in [false, true] {
        if noted {
            place.run("config", &["set", "backup_paths", &paths(&place, &["third"])]).exits(exit::DONE);
        }
        // All of dora's are gone.
        for more in [&[][..], &["--subject", "dora"], &["--entries", "1.."]] {
            let (said, unknown) = left_out(&place, more);
            assert!(unknown, "{more:?}: {said}");
            assert!(
                said.contains("is not known: frames are missing whose entries nobody can count"),
                "{more:?}: {said}"
            );
            assert!(!said.contains("no entry"), "{more:?}: {said}");
        }
        // What is missing comes behind these.
        let (said, unknown) = left_out(&place, &["--entries", "0..1"]);
        assert!(!unknown && said.starts_with("no entry"), "{said}");
    }
    let file = place.path("salvaged.parquet").into_os_string().into_string().unwrap();
    place.run("export", &["--salvage", "--format", "parquet", "-o", &file]).exits(exit::VIOLATION);
    let written = fs::read(&file).unwrap();
    let name = b"bulla.left_out_unknown";
    let at = written.windows(name.len()).position(|window| window == name).unwrap();
    assert!(written[at + name.len()..].iter().skip(2).zip(b"true").all(|(one, other)| one == other));
}

/// The storage of one path can name a file so that frames should be in it: that file is named, and not the path that is lost.
#[test]
fn a_file_with_the_name_of_a_segment_is_named_and_what_is_lost_is_not() {
    let place = world();
    note(&place);
    let lost = place.info("lost_with_path");
    let first_lost = lost["frames"][0][0].as_u64().unwrap();
    assert!(first_lost > 4, "{lost}");
    let junk = place.path("third/segments/00000000000000000002.seg");
    for content in [&[b'x'; 256][..], b"x"] {
        fs::write(&junk, content).unwrap();
        for (command, more) in [
            ("append", &[][..]),
            ("hold", &["list"]),
            ("events", &[]),
            ("erase", &["--subject", "fay", "--yes"]),
        ] {
            let ran = place.run(command, more).exits(exit::VIOLATION);
            let named = format!("{} is no segment of the log", junk.display());
            assert!(ran.err.contains(&named), "{command}: {ran:?}");
            let range = format!("frames 2 to {} lie in another segment", first_lost - 1);
            assert!(ran.err.contains(&range), "{command}: {ran:?}");
            assert!(ran.err.contains("Move it away") && !ran.err.contains("is lost"), "{command}: {ran:?}");
        }
    }
    fs::remove_file(&junk).unwrap();
    place.run("events", &[]).exits(exit::DONE);
    place.append(&[], b"").exits(exit::DONE);
}
