//! Signature lines of a checkpoint that is mirrored: none that holds is given up for what says nothing, however much of that there is.

use super::beside::{is_witnessed, mirrored};
use super::{Source, is_sound};
use crate::policy::{cosign, witness};
use bulla_proof::checkpoint::MAX_SIGNATURES;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// So many lines, each of another name, which nobody has signed.
fn junk(lines: usize) -> String {
    (0..lines).fold(String::new(), |mut all, number| {
        writeln!(all, "\u{2014} junk{number}.example YWJjZFhYWFg=").unwrap();
        all
    })
}

fn checkpoint(directory: &Path) -> String {
    fs::read_to_string(directory.join("checkpoint")).unwrap()
}

fn publish(source: &Source, note: &str) {
    fs::write(source.directory.join("checkpoint"), note).unwrap();
}

/// Takes from the source what is kept of its witnesses, but for `checkpoint` itself.
fn forget_witnesses(source: &Source) {
    fs::remove_file(source.directory.join("checkpoint.witnessed")).unwrap();
    fs::remove_dir_all(source.directory.join("cosigned")).unwrap();
}

/// The note as the log alone has signed it.
fn bare(note: &str) -> String {
    let (text, lines) = note.split_once("\n\n").unwrap();
    format!("{text}\n\n{}\n", lines.lines().next().unwrap())
}

#[test]
fn a_line_that_holds_is_not_given_up_for_others_repeated() {
    let (source, _place, to) = mirrored();
    let whole = checkpoint(&to);
    let alone = bare(&whole);
    let one = cosign(&alone, &[1]);
    let line = one.strip_prefix(&alone).unwrap();
    publish(&source, &format!("{alone}{}", line.repeat(4)));
    source.ship(&to).unwrap();
    assert_eq!(checkpoint(&to), whole);
    is_witnessed(&source, &to);
}

#[test]
fn lines_that_hold_are_not_given_up_for_made_up_names() {
    for lines in [4, MAX_SIGNATURES - 1] {
        let source = Source::asking();
        source.append(5);
        source.cosign(true);
        forget_witnesses(&source);
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("copy");
        source.ship(&to).unwrap();
        is_witnessed(&source, &to);
        let whole = checkpoint(&to);
        publish(&source, &format!("{}{}", bare(&whole), junk(lines)));
        source.ship(&to).unwrap();
        assert!(checkpoint(&to).starts_with(&whole), "{}", checkpoint(&to));
        is_witnessed(&source, &to);
    }
}

#[test]
fn made_up_names_do_not_keep_lines_that_hold_from_arriving() {
    for lines in [9, MAX_SIGNATURES - 1] {
        let source = Source::asking();
        source.append(5);
        let alone = checkpoint(&source.directory);
        publish(&source, &format!("{alone}{}", junk(lines)));
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("copy");
        let mut mirror = source.mirror(&to).unwrap();
        mirror.poll(|_| {}).unwrap();
        let whole = cosign(&alone, &[1, 2]);
        publish(&source, &whole);
        assert!(!mirror.poll(|_| {}).unwrap().advanced);
        assert!(checkpoint(&to).starts_with(&whole), "{}", checkpoint(&to));
        is_witnessed(&source, &to);
    }
}

#[test]
fn of_a_witness_the_newest_line_that_holds_is_kept_and_none_that_does_not() {
    let source = Source::asking();
    source.append(5);
    let alone = checkpoint(&source.directory);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let both = |time| crate::policy::cosign_at(&alone, &[1, 2], time);
    publish(&source, &both(1_700_000_000));
    source.ship(&to).unwrap();
    publish(&source, &both(1_800_000_000));
    source.ship(&to).unwrap();
    assert_eq!(checkpoint(&to), both(1_800_000_000));
    publish(&source, &both(1_700_000_000));
    source.ship(&to).unwrap();
    assert_eq!(checkpoint(&to), both(1_800_000_000), "an older one");
    let lies = [1, 2].map(|seed| witness(seed).1.signature_line(1_900_000_000, &[7; 64]));
    publish(&source, &format!("{alone}{}", lies.concat()));
    source.ship(&to).unwrap();
    assert_eq!(checkpoint(&to), both(1_800_000_000), "one that does not hold");
    is_witnessed(&source, &to);
}

#[test]
fn a_line_of_whom_nobody_here_knows_is_not_replaced_by_another_of_its_name() {
    let source = Source::new();
    source.append(2);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("copy");
    let alone = checkpoint(&source.directory);
    let cosigned = cosign(&alone, &[1]);
    publish(&source, &cosigned);
    source.ship(&to).unwrap();
    let lie = format!("{alone}{}", witness(1).1.signature_line(1_900_000_000, &[7; 64]));
    publish(&source, &lie);
    source.ship(&to).unwrap();
    assert_eq!(checkpoint(&to), cosigned);
    publish(&source, &format!("{alone}{}", junk(MAX_SIGNATURES - 1)));
    source.ship(&to).unwrap();
    assert!(checkpoint(&to).starts_with(&cosigned), "{}", checkpoint(&to));
    is_sound(&source.verify(&to).run().unwrap(), "with others beside it");
}

#[test]
fn a_policy_that_the_log_has_not_allowed_does_not_say_which_lines_count() {
    let (source, _place, to) = mirrored();
    let whole = checkpoint(&to);
    let config = source.directory.join("bulla.toml");
    let text = fs::read_to_string(&config).unwrap();
    let other = text.replace(&witness(1).1.to_string(), &witness(3).1.to_string());
    assert_ne!(other, text);
    fs::write(&config, other).unwrap();
    let alone = bare(&whole);
    let lie = witness(1).1.signature_line(1_900_000_000, &[7; 64]);
    publish(&source, &format!("{alone}{lie}{}", junk(MAX_SIGNATURES - 2)));
    let _ = source.ship(&to);
    assert!(checkpoint(&to).starts_with(&whole), "{}", checkpoint(&to));
    is_witnessed(&source, &to);
}
