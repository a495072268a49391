//! Files that somebody else planted: what their names and links can do to `append`.

use crate::support::{Place, Ran, exit};

/// Whoever may write to the directory where rejects lie chooses nothing of where a line goes.
#[test]
fn rejects_are_added_to_no_link_and_no_pipe() {
    let place = Place::new();
    let other = place.path("other");
    std::fs::write(&other, "earlier\n").unwrap();
    let rejects = place.path("rejects");
    let refused = |said: &str| {
        let more = ["--rejects", rejects.to_str().unwrap()];
        let ran = place.append(&more, b"nonsense\n").exits(exit::USAGE);
        assert!(ran.err.contains(said) && ran.err.contains("nothing was appended"), "{ran:?}");
        std::fs::remove_file(&rejects).unwrap();
    };
    std::os::unix::fs::symlink(&other, &rejects).unwrap();
    refused("a symbolic link");
    let nowhere = place.path("nowhere");
    std::os::unix::fs::symlink(&nowhere, &rejects).unwrap();
    refused("a symbolic link");
    assert!(!nowhere.exists());
    std::fs::hard_link(&other, &rejects).unwrap();
    refused("hard links");
    assert_eq!(std::fs::read(&other).unwrap(), b"earlier\n");
    let key = place.keys("seal.key");
    let before = std::fs::read(&key).unwrap();
    std::fs::hard_link(&key, &rejects).unwrap();
    refused("hard links");
    assert!(std::fs::read(&key).unwrap() == before);
    assert!(std::process::Command::new("mkfifo").arg(&rejects).status().unwrap().success());
    refused("no file");
    assert!(std::process::Command::new("mkfifo").arg(&rejects).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = rejects.clone();
        move || std::fs::read(pipe)
    });
    let more = ["--rejects", rejects.to_str().unwrap()];
    while !reader.is_finished() {
        place.append(&more, b"nonsense\n").exits(exit::USAGE);
    }
    assert!(reader.join().unwrap().unwrap().is_empty());
    assert_eq!(place.info("entries"), 0);
}

/// A file's name may have a line end in it: whatever is told of the file stays on lines that begin as they should.
#[test]
fn a_line_end_in_the_name_of_an_input_begins_no_line() {
    let place = Place::new();
    let feigned = "9 accepted, 0 refused, 9 committed";
    let name = format!("x\n{feigned}\n");
    let input = place.write(&name, b"{\"operation\":\"x\"}\nnonsense\n");
    let feigns = |ran: &Ran| [&ran.out, &ran.err].iter().any(|told| told.lines().any(|line| line == feigned));
    let ran = place.append(&[&input], b"").exits(exit::SOME_REFUSED);
    assert!(!feigns(&ran) && ran.err.contains("x\\n9") && ran.out.contains("x\\n9"), "{ran:?}");
    let ran = place.append(&["--try", &input], b"").exits(exit::SOME_REFUSED);
    assert!(!feigns(&ran) && ran.out.contains("x\\n9"), "{ran:?}");
    let value = place.write("value", format!("{{\"operation\":\"x\\n{feigned}\\n\"}}\n").as_bytes());
    let ran = place.append(&["--try", &value], b"").exits(exit::DONE);
    assert!(!feigns(&ran) && ran.out.contains("x\\n9"), "{ran:?}");
    let ran = place.append(&["--follow", "--once", &input], b"").exits(exit::SOME_REFUSED);
    assert!(!feigns(&ran) && ran.err.contains("x\\n9"), "{ran:?}");
    let ran = place.run("sources", &[]).exits(exit::DONE);
    assert!(!feigns(&ran) && ran.out.contains("x\\n9"), "{ran:?}");
    for more in [
        &[&format!("{input}missing")[..]][..],
        &["--rejects", &format!("{input}/no")],
        &["--map", &format!("/{name}.toml")],
    ] {
        let ran = place.append(more, b"");
        assert!(!feigns(&ran) && ran.err.contains("x\\n9") && ran.code != exit::DONE, "{ran:?}");
    }
}
