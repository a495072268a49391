//! What is no pin of the log is refused by name, and left as it is.

use super::{World, violations};
use crate::vectors;
use bulla::{Configure, ErrorKind, Verify};
use bulla_testkit::Memory;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

/// What stands at the path of the pin, and whether it is a checkpoint that is another log's.
type Misfit<'a> = (&'static str, bool, Box<dyn Fn(&Path) + 'a>);

#[test]
fn what_is_no_pin_of_the_log_is_refused_by_name() {
    let world = World::new();
    world.append(3);
    let (own, other) = (world.pinned(), World::new());
    other.append(1);
    let other = other.checkpoint();
    let signature = own.lines().last().unwrap().to_owned();
    let write = |text: String| Box::new(move |path: &Path| fs::write(path, &text).unwrap());
    let body = own.split_once("\n\n").unwrap().0.to_owned();
    let changed = |from: &str, to: &str| own.replacen(from, to, 1);
    let size = own.lines().nth(1).unwrap();
    let real = world.pin.with_file_name("real.pin");
    fs::write(&real, &own).unwrap();
    let misfits: Vec<Misfit<'_>> = vec![
        ("signed by another key of the same name", true, write(other.clone())),
        ("of another origin", true, write(changed("example.com/audit\n", "example.com/other\n"))),
        ("of another size", true, write(changed(&format!("\n{size}\n"), "\n0\n"))),
        ("with another's signature", true, write(format!("{body}\n\n{}\n", other.lines().last().unwrap()))),
        ("unsigned", false, write(format!("{body}\n"))),
        ("with half of a signature", false, write(format!("{body}\n\n{}", &signature[..20]))),
        ("no checkpoint", false, write(format!("example.com/audit\nx\n\n{signature}\n"))),
        ("of a size that is written otherwise", false, write(changed(&format!("\n{size}\n"), "\n+3\n"))),
        ("empty", false, write(String::new())),
        ("longer than any", false, write(own.repeat((2 << 20) / own.len()))),
        ("bytes", false, Box::new(|path| fs::write(path, [0xff; 300]).unwrap())),
        ("a directory", false, Box::new(|path| fs::create_dir(path).unwrap())),
        ("a link", false, Box::new(|path| symlink(&real, path).unwrap())),
        ("a link to nothing", false, Box::new(|path| symlink("/nowhere/at/all", path).unwrap())),
    ];
    for (what, is_foreign, put) in misfits {
        let _ = fs::remove_dir(&world.pin).or_else(|_| fs::remove_file(&world.pin));
        put(&world.pin);
        let before = world.files();
        let error = world.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
        assert!(error.to_string().contains(world.pin.to_str().unwrap()), "{what}: {error}");
        let set = Configure::default().set("pin", world.pin.to_str().unwrap()).unwrap();
        assert_eq!(set.apply(&world.directory).unwrap_err().kind(), ErrorKind::Refused, "{what}");
        for verify in [world.verify().pin(&world.pin), world.verify().known_pin(&world.pin)] {
            match (is_foreign, verify.run()) {
                // The log may have been put in the place of the pin's.
                (true, Ok(report)) => {
                    assert_eq!(
                        violations(&report),
                        ["pin-mismatch"].into(),
                        "{what}: {:#?}",
                        report.findings
                    );
                }
                (false, Err(error)) => {
                    assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error}");
                    assert!(error.to_string().contains(world.pin.to_str().unwrap()), "{what}: {error}");
                }
                (_, verified) => panic!("{what}: {verified:?}"),
            }
        }
        world.is_as(&before, what);
    }
}

#[test]
fn signatures_of_others_beside_the_logs_own_do_not_matter() {
    let world = World::new();
    world.append(3);
    let own = world.pinned();
    fs::write(&world.pin, format!("{own}— a.witness.example AAAAAaaaaaaaaaaaaaaaaaaaaaaa\n")).unwrap();
    assert!(world.verify().pin(&world.pin).run().unwrap().ok);
    world.append(1);
    assert_eq!(world.pinned(), world.checkpoint());
}

/// Known answers: checkpoints that the other implementation signed.
#[test]
fn a_checkpoint_that_others_signed_is_a_pin_of_its_log() {
    let mut seen = 0;
    for log in vectors::logs() {
        let (store, pins) = (Arc::new(vectors::store_of(&log)), Memory::new());
        let note = bulla::store::read_small(&*store, "checkpoint", 1 << 20).unwrap();
        bulla::store::Store::create_directory(&pins, "mnt").unwrap();
        bulla::store::replace(&pins, "mnt/log.pin", &note).unwrap();
        let verify = Verify::open_store(store).unwrap().pin("/mnt/log.pin").pins_in(Arc::new(pins));
        let report = verify.run().unwrap();
        assert!(report.ok, "{:#?}", report.findings);
        let pin = report.pin.unwrap();
        assert_eq!((pin.before, pin.frames), (Some(report.tree_size), Some(report.tree_size)));
        seen += 1;
    }
    assert!(seen > 0);
}
