//! Groups as records: what goes in comes out, what is common is what many have, and no name is.

use super::*;
use crate::{Fault, Groups, Items, PERSONAL, Partition};
use bulla_proof::EntryError;
use bulla_proof::entry::RawRow;
use bulla_proof::hash::Hash;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A block whose groups are these, each of its entries' rows; nothing is encrypted.
struct Sealed {
    decoder: Decoder,
    texts: Vec<Vec<u8>>,
    groups: Vec<Vec<Vec<u8>>>,
}

impl Sealed {
    fn new(groups: Vec<Vec<Vec<u8>>>, least: u32) -> Self {
        Self::counting(groups, least, |_| true)
    }

    fn counting(groups: Vec<Vec<Vec<u8>>>, least: u32, counts: impl Fn(usize) -> bool) -> Self {
        let rows = groups.iter().flatten().map(Vec::as_slice).collect::<Vec<_>>();
        let of_row = (1..).zip(&groups).flat_map(|(number, group)| std::iter::repeat_n(number, group.len()));
        let member = of_row.collect::<Vec<u64>>();
        let partition = Partition { member: &member, groups: groups.len(), personal: PERSONAL };
        let (mut encoder, mut block) = (Encoder::new(Compression::FAST), Vec::new());
        encoder.encode_and_tell(&rows, &partition, &mut block, |_, _| {}).unwrap();
        let views = |group: &'_ Vec<Vec<u8>>| group.to_vec();
        let all = groups.iter().map(views).collect::<Vec<_>>();
        let surveyed =
            (0..).zip(&all).map(|(number, group)| (group.iter().map(Vec::as_slice), counts(number)));
        encoder.survey_groups(surveyed, rows.len(), PERSONAL, least).unwrap();
        let (mut kept, mut texts) = (Groups::default(), Vec::new());
        for (number, group) in (0..).zip(&groups) {
            let mut text = Vec::new();
            encoder.encode_group(group.iter().map(Vec::as_slice), PERSONAL, &mut text).unwrap();
            let push = |out: &mut Vec<u8>| {
                out.extend_from_slice(&text);
                Ok::<(), EntryError>(())
            };
            kept.push(&[number], Hash::ZERO, push).unwrap();
            texts.push(text);
        }
        encoder.end_groups(&kept, &mut block);
        let mut decoder = Decoder::new();
        let all = groups.iter().flatten().cloned().collect::<Vec<_>>();
        decoder.decode(&pad(block), rows.len(), content(&all), &mut Rows::default()).unwrap();
        assert!(encoder.items().iter().eq(decoder.items().iter()));
        Sealed { decoder, texts, groups }
    }

    /// The common items, without the byte that says what each is.
    fn items(&self) -> Vec<Vec<u8>> {
        self.decoder.items().iter().map(|item| item[1..].to_vec()).collect()
    }

    fn has(&self, word: &[u8]) -> bool {
        self.items().iter().any(|item| item.windows(word.len()).any(|part| part == word))
    }

    /// Whether each group has the personal fields of its rows.
    fn comes_back(&mut self) {
        let mut left = self.decoder.left();
        let mut pieces = Rows::default();
        for (text, group) in self.texts.iter().zip(&self.groups) {
            self.decoder.decode_group(text, group.len(), PERSONAL, &mut left, &mut pieces).unwrap();
            for (piece, row) in pieces.iter().zip(group) {
                let row = RawRow::parse(row).unwrap();
                let piece = RawRow::parse_personal(piece).unwrap();
                let of = |row: &RawRow<'_>| {
                    let mut out = Vec::new();
                    row.write(PERSONAL, &mut out);
                    out
                };
                assert_eq!(of(&RawRow { time: row.time, operation: row.operation, ..piece }), of(&row));
            }
        }
        assert_eq!(left, 0, "what was declared is what the rows take");
    }
}

fn entry_of(subject: &str, location: &str, payload: &[u8]) -> Vec<u8> {
    row(&Entry::new("read", location).time(0).subject(subject).payload(payload))
}

/// Groups of a row each, of as many people.
fn each(count: usize, text: impl Fn(usize) -> String) -> Vec<Vec<Vec<u8>>> {
    (0..count).map(|number| vec![entry_of(&format!("user_{number}"), &text(number), b"")]).collect()
}

#[test]
fn what_fewer_groups_have_than_were_asked_for_is_no_item() {
    for (having, expected) in [(7, false), (8, true), (20, true)] {
        let groups = each(20, |number| match number < having {
            true => format!("a planted word {number}"),
            false => format!("{number}, something_else"),
        });
        let mut sealed = Sealed::new(groups, 8);
        assert_eq!(sealed.has(b"planted"), expected, "{having}");
        sealed.comes_back();
    }
    assert!(Sealed::new(each(20, |_| "off".to_owned()), 0).items().is_empty());
}

#[test]
fn a_person_with_many_groups_makes_nothing_common() {
    // All of these groups are of one person, with somebody else each: one of them counts.
    let groups = || each(30, |_| "the secret of one".to_owned());
    let sealed = Sealed::counting(groups(), 8, |group| group == 0);
    assert!(!sealed.has(b"secret"));
    assert!(Sealed::new(groups(), 8).has(b"secret"));
}

#[test]
fn no_item_has_the_name_of_a_data_subject() {
    let name = |number: usize| {
        ["Ann", "Bo Li", "carl@example.com", "@d-7", "\u{e9}mile", "\u{5c71}\u{7530}"][number % 6].to_owned()
            + &"x".repeat(number / 6)
    };
    let text = |number: usize| {
        // Of the first six everybody tells, whatever their own name is.
        format!(
            "{{\"who\":\"Ann\",\"Bo Li\":7,\"mail\":\"carl@example.com\"}} ,@d-7 told \u{e9}mile of order {number} about Ann and Bo Li, \u{201c}Ann\u{201d} \
             and Ann\u{2019}s\u{a0}Bo Li\u{a0}and \u{5c71}\u{7530}\u{3055}\u{3093}"
        )
    };
    let groups =
        (0..40).map(|number| vec![entry_of(&name(number), "here", text(number).as_bytes())]).collect();
    let mut sealed = Sealed::new(groups, 8);
    assert!(sealed.has(b"here"));
    for number in 0..40 {
        let name = name(number);
        let holds = |item: &Vec<u8>| {
            let ends = |at: usize, item: &[u8]| {
                at == 0
                    || at == item.len()
                    || item[at - 1..=at].iter().any(|byte| !byte.is_ascii_alphanumeric())
            };
            let places = item.windows(name.len()).enumerate().filter(|(_, part)| *part == name.as_bytes());
            places.into_iter().any(|(at, _)| ends(at, item) && ends(at + name.len(), item))
        };
        assert!(!sealed.items().iter().any(holds), "{name} in {:?}", sealed.items());
    }
    sealed.comes_back();
}

/// What others tell of somebody is cut where the name has a dot, a space or a hyphen, and where words stand beside it; and in a shape is a slot
/// where one of them has another name there.
#[test]
fn no_item_is_there_because_of_a_part_of_a_name() {
    let told = [
        ("ada.lovelace@corp.com", "meeting moved, cc ada.lovelace@corp.com about the transplant", "lovelace"),
        ("Ada Lovelace", "the transplant of Ada Lovelace is moved", "Lovelace"),
        ("+49 170 7654321", "call +49 170 7654321 about the transplant", "7654321"),
        (
            "550e8400-e29b-41d4-a716-4466554400a0",
            "550e8400-e29b-41d4-a716-4466554400a0 has the transplant",
            "4466554400a0",
        ),
    ];
    for (name, text, part) in told {
        for others in [0, 1] {
            let of_others = |number: usize| match number < others {
                true => text.replace(part, &"9".repeat(part.len())),
                false => text.to_owned(),
            };
            let mut groups = each(100, of_others);
            let mut without = Sealed::new(groups.clone(), 16);
            assert!(without.has(part.as_bytes()), "nobody has that name: {:?}", without.items());
            without.comes_back();
            groups.push(vec![entry_of(name, "somewhere", b"")]);
            let mut sealed = Sealed::new(groups, 16);
            assert!(!sealed.has(part.as_bytes()), "{part} in {:?}", sealed.items());
            assert!(sealed.has(b"transplant") && sealed.has(b"user"), "{:?}", sealed.items());
            sealed.comes_back();
        }
    }
}

#[test]
fn a_part_of_a_name_that_stands_alone_or_in_many_names_may_be_an_item() {
    let mut groups = each(30, |_| "the transplant of Ms Lovelace".to_owned());
    groups.push(vec![entry_of("Ada Lovelace", "somewhere", b"")]);
    assert!(Sealed::new(groups, 16).has(b"Lovelace"));
    // Each tells of somebody else, and all are called alike.
    let sealed = Sealed::new(each(30, |number| format!("a friend of user_{}", (number + 1) % 30)), 16);
    assert!(sealed.has(b"user") && !sealed.has(b"user_7"), "{:?}", sealed.items());
}

/// Of a large block every eighth group is looked at, and the names of all.
#[test]
fn what_only_other_groups_than_those_that_are_looked_at_tell_is_no_item_and_no_name_of_theirs_is() {
    let count = 20_000;
    let name = |number: usize| if number == 4_001 { "carol".to_owned() } else { format!("user_{number}") };
    let text = |number: usize| match number % 8 {
        0 => "everybody asked carol here",
        _ => "somebody",
    };
    let groups = (0..count).map(|number| vec![entry_of(&name(number), "here", text(number).as_bytes())]);
    let mut sealed = Sealed::new(groups.collect(), 16);
    assert!(sealed.has(b"everybody") && sealed.has(b"here"));
    assert!(!sealed.has(b"carol"), "a name of a group that is not looked at");
    assert!(!sealed.has(b"somebody"), "groups that are not looked at");
    sealed.comes_back();
}

#[test]
fn a_ciphertext_s_length_does_not_tell_which_item_it_refers_to() {
    let words = ["a", "somewhat", "considerably-longer-than-the-others"];
    let groups =
        (0..60).map(|number| vec![entry_of(&format!("{number:02}"), words[number % 3], b"")]).collect();
    let sealed = Sealed::new(groups, 8);
    assert!(
        words
            .iter()
            .all(|word| sealed.items().contains(&word.as_bytes().to_vec()) || sealed.has(word.as_bytes()))
    );
    assert_eq!(sealed.texts.iter().map(Vec::len).collect::<BTreeSet<_>>().len(), 1);
    assert!(
        sealed.items().is_sorted() || sealed.decoder.items().iter().is_sorted(),
        "not in the order of use"
    );
}

#[test]
fn a_reader_tells_which_items_a_group_refers_to_and_misses_those_that_are_not_there() {
    let groups = each(40, |number| format!("/{}/of/all", ["north", "south"][number % 2]));
    let mut sealed = Sealed::new(groups, 8);
    let (all, left) = (sealed.decoder.items().clone(), sealed.decoder.left());
    let read = |decoder: &mut Decoder| {
        decoder.decode_group(&sealed.texts[0], 1, PERSONAL, &mut left.clone(), &mut Rows::default())
    };
    sealed.decoder.set_items(all.clone());
    read(&mut sealed.decoder).unwrap();
    let used = sealed.decoder.used_items().collect::<Vec<_>>();
    assert!(!used.is_empty() && used.len() < all.len());
    let some = |kept: &dyn Fn(usize) -> bool| {
        let kept = (0..all.len()).filter(|position| kept(*position));
        Items::some(all.len() as u64, kept.map(|position| (position as u64, all.bytes(position).unwrap())))
            .unwrap()
    };
    sealed.decoder.set_items(some(&|position| used.contains(&position)));
    read(&mut sealed.decoder).unwrap();
    for missing in &used {
        sealed.decoder.set_items(some(&|position| position != *missing));
        assert_eq!(read(&mut sealed.decoder).unwrap_err().fault, Fault::Items);
    }
    sealed.decoder.set_items(Items::NONE);
    read(&mut sealed.decoder).unwrap_err();
}

#[test]
fn items_of_a_proof_are_items_at_positions_that_there_are() {
    let some = |count: u64, items: &[(u64, &[u8])]| {
        Items::some(count, items.iter().copied()).map_err(|error| error.fault)
    };
    assert_eq!(some(3, &[(0, b"\0/\0\0"), (2, b"\x01word")]).map(|items| items.len()), Ok(3));
    // A shape without a slot; and what only all of a block together show: a word before a shape, an order, how many shapes there are.
    assert_eq!(some(3, &[(0, b"\x01word"), (1, b"\0/b"), (2, b"\0/a")]).map(|items| items.len()), Ok(3));
    let shapes = (0..1025).map(|position| (position, &b"\0/"[..])).collect::<Vec<_>>();
    assert_eq!(some(1025, &shapes).map(|items| items.len()), Ok(1025));
    let longest = [vec![1; 256], [&[0][..], &[b'x'; 512]].concat(), [&[0][..], &[0, 1].repeat(128)].concat()];
    for item in &longest {
        assert_eq!(some(1, &[(0, item)]).map(|items| items.len()), Ok(1), "{item:?}");
    }
    let longer = [vec![1; 257], [&[0][..], &[b'x'; 513]].concat(), [&[0][..], &[0, 1].repeat(129)].concat()];
    for item in &longer {
        assert_eq!(some(1, &[(0, item)]).map(|_| ()), Err(Fault::Range), "{item:?}");
    }
    for (count, items, fault) in [
        (4093, &[][..], Fault::Range),
        (u64::MAX, &[], Fault::Range),
        (3, &[(3, &b"\x01word"[..])], Fault::Range),
        (3, &[(0, b"\x01word"), (0, b"\x01word")], Fault::Range),
        (3, &[(0, b"")], Fault::Form),
        (3, &[(0, b"\x02word")], Fault::Form),
        (3, &[(0, b"\x01")], Fault::Range),
        (3, &[(0, b"\0")], Fault::Range),
        (3, &[(0, b"\0/\0")], Fault::Form),
        (3, &[(0, b"\0/\0\x41")], Fault::Form),
    ] {
        assert_eq!(some(count, items).map(|_| ()), Err(fault), "{items:?}");
    }
}

#[test]
fn a_group_s_first_byte_is_0_or_odd() {
    let mut decoder = Decoder::new();
    let mut read = |text: &[u8]| {
        let read = decoder.decode_group(text, 1, PERSONAL, &mut 1000, &mut Rows::default());
        read.map_err(|error| error.fault)
    };
    // Of an entry without personal fields: six columns of nothing, and six bits that are 0.
    assert_eq!(read(&[0; 7]), Ok(()));
    assert_eq!(read(&[1]), Ok(()));
    assert_eq!(read(&[]), Err(Fault::Truncated));
    for first in (2..=254).step_by(2) {
        for rest in [&[][..], &[0; 6], &[0; 7]] {
            assert_eq!(read(&[&[first][..], rest].concat()), Err(Fault::Form), "{first}");
        }
    }
}

#[test]
fn a_group_of_few_bits_is_not_many_bytes() {
    // A shape of hundreds of bytes takes a few bits in each of ten thousand entries.
    let long = format!("/{}/", "x-".repeat(240));
    let groups =
        (0..20).map(|number| vec![entry_of(&format!("{number}"), &format!("{long}{number}"), b"")]).collect();
    let mut sealed = Sealed::new(groups, 8);
    let entries = 10_000;
    let mut hostile = vec![0xff; sealed.texts[0].len()];
    hostile.resize(entries * 4, 0xff);
    for first in 0..=255 {
        for left in [0, 1, 1000, 100_000] {
            hostile[0] = first | 1;
            let (mut rest, mut rows) = (left, Rows::default());
            let read = sealed.decoder.decode_group(&hostile, entries, PERSONAL, &mut rest, &mut rows);
            if read.is_err() {
                assert!(rows.is_empty() && rest == left);
                assert!(
                    rows.footprint() <= 4 * (left + 64) + 24 * entries,
                    "{} for {left}",
                    rows.footprint()
                );
            }
        }
    }
}

/// What a block's survey notes is in proportion to the block, whatever its strings are: here of ever new shapes, of as many slots as can be.
#[test]
fn strings_that_are_nothing_but_slots_come_back() {
    let shape = |number: usize| {
        let separators = ["-", "/", ".", ":", ",", ";", "+", "="];
        (0..100).map(|slot| format!("{slot}{}", separators[(number >> (slot % 12)) % 8])).collect::<String>()
    };
    let groups = (0..3000)
        .map(|number| vec![entry_of(&format!("n{number}"), &shape(number), b"1 2 3 a b c d e f g h")]);
    Sealed::new(groups.collect(), 8).comes_back();
}

/// Bits of every group of a block flipped one after the other: each time the end is an error or rows.
#[test]
fn every_flipped_bit_ends_in_an_error_or_in_rows() {
    let text = |number: usize| {
        format!("{{\"id\":{},\"at\":\"{:08x}\",\"by\":\"x {number}\"}}", 10_000 + number, number * 7919)
    };
    let groups = (0..12).map(|number| {
        let name = format!("n{number}");
        (0..3).map(|turn| entry_of(&name, &format!("{name}/{turn}"), text(number).as_bytes())).collect()
    });
    let mut sealed = Sealed::new(groups.collect(), 8);
    sealed.comes_back();
    assert!(!sealed.items().is_empty());
    let mut pieces = Rows::default();
    for text in sealed.texts.clone() {
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let mut left = 10_000;
            if sealed.decoder.decode_group(&damaged, 3, PERSONAL, &mut left, &mut pieces).is_ok() {
                assert!(pieces.iter().all(|piece| RawRow::parse_personal(piece).is_ok()));
            }
        }
        for end in 0..text.len() {
            let mut left = 10_000;
            sealed.decoder.decode_group(&text[..end], 3, PERSONAL, &mut left, &mut pieces).unwrap_err();
        }
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let word = || "[a-z]{1,9}|[A-Z][a-z]+|[0-9]{1,22}|[0-9a-f]{7,40}|[0-9A-F]{8}|\\PC{0,5}|";
    prop_oneof![
        prop::collection::vec(word(), 0..8).prop_map(|words| words.join(" ")),
        prop::collection::vec(word(), 1..6).prop_map(|words| format!("/{}", words.join("/"))),
        (word(), word(), 0..9_u32)
            .prop_map(|(a, b, n)| format!("{{\"a\":\"{a}\", \"list\":[{n},\"{b}\"],\"\":{n}}}")),
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[\0-\u{ff}]{0,30}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn any_groups_come_back(
        texts in prop::collection::vec(any_text(), 1..12), names in prop::collection::vec(any_text(), 1..8),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..8_u8), 1..60), least in 0..4_u32,
    ) {
        let groups = picks.chunks(3).map(|group| group.iter().map(|(text, name, how)| {
            let (text, name) = (text.get(&texts), name.get(&names));
            let both = format!("{name}:{text}");
            let mut entry = Entry::new("read", text.as_str()).time(0);
            if how & 1 == 1 { entry = entry.subject(name).actor(name) }
            if how & 2 == 2 { entry = entry.payload(both.as_bytes()).subject(text) }
            if how & 4 == 4 { entry = entry.stream(text).client(name) }
            row(&entry)
        }).collect()).collect();
        Sealed::new(groups, least).comes_back();
    }
}
