use crate::generator;
use bulla_proof::Entry;
use bulla_workload::{Workload, text};

fn line(entry: &Entry<'_>, sequence: u64) -> String {
    let mut line = Vec::new();
    text::write(entry, sequence, &mut line);
    String::from_utf8(line).unwrap()
}

#[test]
fn a_line_has_the_published_form() {
    let entry = Entry::new("GET", "/path_0042.png")
        .time(1_767_225_600_000_042_999)
        .client("192.0.2.1")
        .status(404)
        .duration(65_535_000_000)
        .size(0)
        .flags(255);
    assert_eq!(
        line(&entry, 1234),
        "[1234][2026-01-01T00:00:00.000042Z][/path_0042.png][192.0.2.1][404][GET][65535ms][0b][255]\n"
    );
    assert_eq!(line(&Entry { operation: "log", ..Entry::default() }, 0), "[0][][][][][log][][][]\n");
    let entry = Entry { operation: "log", ..Entry::default() }.payload("text");
    assert_eq!(line(&entry, 0), "[0][][][][][log][][][][text]\n");
}

#[test]
fn a_length_is_that_of_the_line() {
    for workload in Workload::ALL {
        let mut generator = generator(workload);
        for sequence in (0..20_000_000).step_by(9973) {
            let entry = generator.next_entry();
            assert_eq!(text::length(&entry, sequence), line(&entry, sequence).len(), "{workload}: {entry:?}");
        }
    }
}
