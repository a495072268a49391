use super::table::Table;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn checked(start: u64, end: u64, check: u64) -> CheckedRange {
    CheckedRange { start, end, check }
}

fn entry(id: u8, label: Option<&[u8]>, ranges: Vec<CheckedRange>) -> SourceEntry {
    SourceEntry { id: SourceId([id; 16]), label: label.map(Arc::from), ranges: Ranges::of(ranges) }
}

#[test]
fn a_section_comes_back_and_is_padded() {
    let entries = [
        entry(1, None, vec![checked(0, 1, 5)]),
        entry(2, Some(b""), vec![checked(7, 9, u64::MAX), checked(10, u64::MAX, 0)]),
        entry(3, None, vec![]),
        entry(255, Some(&[9; MAX_LABEL]), vec![checked(u64::MAX - 1, u64::MAX, 1)]),
    ];
    for count in 1..=entries.len() {
        let text = encode(entries[..count].iter());
        assert_eq!(padme(text.len()), text.len());
        assert_eq!(decode(&text).as_deref(), Ok(&entries[..count]));
    }
}

#[test]
fn what_is_no_section_is_refused() {
    let sound = encode([entry(1, Some(b"x"), vec![checked(3, 5, 7)]), entry(2, None, vec![])].iter());
    decode(&sound).unwrap();
    for end in 0..sound.len() {
        decode(&sound[..end]).unwrap_err();
    }
    for longer in 1..9 {
        decode(&[&sound[..], &vec![0; longer]].concat()).unwrap_err();
    }
    let id = [1; 16];
    let with = |rest: &[u8]| {
        let mut text = [&[1], &id[..], rest].concat();
        text.resize(padme(text.len()), 0);
        decode(&text).map(|_| ())
    };
    let check = [0; 8];
    with(&[&[0, 1, 0, 1], &check[..]].concat()).unwrap();
    let long = [&[0x82, 0x20][..], &[b'x'; MAX_LABEL + 1], &[1, 0, 1], &check].concat();
    for (rest, why) in [
        (vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "ranges are empty or touch"),
        ([&[0, 2, 0, 1], &check[..], &[0, 1], &check].concat(), "ranges are empty or touch"),
        ([&[0, 1], &[0xff; 9][..], &[1, 1], &check].concat(), "a range overflows"),
        ([&[0, 2, 9, 1], &check[..], &[0xff; 9], &[1, 1], &check].concat(), "a range overflows"),
        (vec![2, b'x', 0], "a source that has ended has a label"),
        (long, "a label is too long"),
        (vec![0xff, 0x1f, b'x'], "it ends inside a label"),
        (vec![0x80, 0], "a number is cut short or not in its shortest form"),
    ] {
        assert_eq!(with(&rest), Err(Malformed(why)), "{rest:?}");
    }
    let reversed = [entry(2, None, vec![]), entry(1, None, vec![])];
    assert_eq!(decode(&encode(reversed.iter())), Err(Malformed("its sources are not in order")));
    assert_eq!(decode(&[0]), Err(Malformed("it names no source")));
    let padded = encode([entry(1, None, vec![checked(0, 1, 0)])].iter());
    assert_eq!(padded.len(), 1 + 16 + 1 + 1 + 10 + 1, "there is padding");
    assert_eq!(
        decode(&[&padded[..29], &[1]].concat()),
        Err(Malformed("what follows the last source is no padding"))
    );
}

/// As many sources, ranges and labels as a block can have: it is as long as a commitment can tell.
#[test]
fn the_most_that_a_block_says_fits() {
    let places = (17 << 20) / 44;
    let of_each = places / MAX_SOURCES_OF_LOG as u64;
    let mut entries = Vec::new();
    for source in 0..MAX_SOURCES_OF_LOG as u64 {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&source.to_be_bytes());
        let step = u64::MAX / of_each;
        let ranges = (0..of_each).map(|at| checked(at * step, (at + 1) * step - 1, u64::MAX)).collect();
        let label = Some([7; MAX_LABEL].into());
        entries.push(SourceEntry { id: SourceId(id), label, ranges: Ranges::of(ranges) });
    }
    bound_labels(&mut entries.iter_mut().collect::<Vec<_>>());
    assert!(entries.iter().any(|entry| entry.label.is_some()), "there is room for some");
    let text = encode(entries.iter());
    assert!(text.len() + TAG <= MAX_SOURCES as usize, "{}", text.len());
    assert_eq!(decode(&text).map(|decoded| decoded == entries), Ok(true));
}

#[test]
fn a_table_says_what_blocks_said_and_comes_back() {
    let mut table = Table::default();
    table.take(4, entry(1, Some(b"one"), vec![checked(0, 10, 1)]));
    table.take(4, entry(2, Some(b"two"), vec![checked(5, 10, 2)]));
    table.take(6, entry(1, None, vec![checked(10, 20, 3), checked(30, 40, 4)]));
    table.take(9, entry(2, None, vec![]));
    table.take(9, entry(3, Some(b""), vec![checked(1, 2, 3)]));
    let states = table.states();
    let [one, three] = &states[..] else { panic!("{states:?}") };
    assert_eq!((&one.label[..], one.last_frame), (&b"one"[..], 6));
    assert_eq!((&one.ranges[..], &one.checks[..]), (&[0..20, 30..40][..], &[3, 4][..]));
    assert_eq!(three.id, SourceId([3; 16]));
    assert_eq!((one.resume(0), one.resume(25), one.resume(39)), ((20, Some(3)), (25, None), (40, Some(4))));
    assert_eq!((one.next_held(0), one.next_held(20)), (Some(0..20), Some(30..40)));
    assert_eq!(one.next_held(40), None);
    let mut encoded = Vec::new();
    table.encode(&mut encoded);
    assert_eq!(Table::decode(&encoded), Ok(table));
    for end in 0..encoded.len() {
        Table::decode(&encoded[..end]).unwrap_err();
    }
    Table::decode(&[&encoded[..], &[0]].concat()).unwrap_err();
}

proptest! {
    /// Units in sets, and the check of the newest record that ends at each: what ranges stand for.
    #[test]
    fn ranges_are_the_units_that_were_added(
        added in prop::collection::vec(prop::collection::vec((0..60_u64, 1..8_u64), 0..6), 0..6),
    ) {
        let (mut ranges, mut units, mut check) = (Ranges::default(), BTreeMap::<u64, ()>::new(), 0);
        for block in added {
            let block = block.into_iter().map(|(start, length)| {
                check += 1;
                units.extend((start..start + length).map(|unit| (unit, ())));
                checked(start, start + length, check)
            });
            ranges.add(&Ranges::of(block.collect()));
            let (found, checks) = ranges.parts();
            prop_assert!(found.iter().flat_map(Clone::clone).eq(units.keys().copied()));
            prop_assert!(found.is_sorted_by(|one, next| one.end < next.start));
            prop_assert!(checks.iter().all(|found| (1..=check).contains(found)));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_come_back(text in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(entries) = decode(&text) {
            prop_assert_eq!(encode(entries.iter()), text);
        }
    }

    #[test]
    fn bytes_near_a_section_are_refused_or_come_back(
        flips in prop::collection::vec((0..60_usize, 0..8_u8), 1..3),
    ) {
        let mut text = encode([
            entry(1, Some(b"label"), vec![checked(3, 5, 7), checked(9, 300, 8)]),
            entry(2, None, vec![]),
        ].iter());
        flips.into_iter().for_each(|(at, bit)| {
            let length = text.len();
            text[at % length] ^= 1 << bit;
        });
        if let Ok(entries) = decode(&text) {
            prop_assert_eq!(encode(entries.iter()), text);
        }
    }
}
