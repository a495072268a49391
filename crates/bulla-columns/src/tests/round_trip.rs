//! What goes in comes out, byte for byte.

use super::*;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn assert_round_trip(rows: &[Vec<u8>], level: i32) {
    let plaintext = pad(encode(rows, level));
    let back = decode(&plaintext, rows.len(), content(rows)).unwrap();
    assert_eq!(back.len(), rows.len());
    assert!(back.iter().eq(rows.iter().map(Vec::as_slice)));
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(&back[index], row);
        assert_eq!(back.entry(index), Entry::decode(row));
    }
    if !rows.is_empty() {
        let error = decode(&plaintext, rows.len(), content(rows) - 1).unwrap_err();
        assert_eq!(error.fault, crate::Fault::TooLarge);
    }
}

fn any_row() -> impl Strategy<Value = Vec<u8>> {
    let text = || of("\\PC{0,12}");
    let bytes = || of(vec(any::<u8>(), 0..40));
    let roles = (text(), text(), text(), text(), text(), text());
    let integers = (of(any::<u32>()), of(any::<u64>()), of(0_u64..300), of(any::<u32>()), any::<i64>());
    (".{1,9}", roles, integers, bytes(), bytes(), of(vec("[a-c]{0,3}", 0..5))).prop_map(
        |(operation, roles, integers, location, payload, subjects)| {
            row(&Entry {
                time: Some(integers.4),
                operation: &operation,
                location: location.as_deref(),
                subjects: subjects.as_ref().map(|subjects| subjects.iter().map(String::as_str).collect()),
                controller: roles.0.as_deref(),
                processor: roles.1.as_deref(),
                purpose: roles.2.as_deref(),
                actor: roles.3.as_deref(),
                client: roles.4.as_deref(),
                stream: roles.5.as_deref(),
                status: integers.0,
                duration: integers.1,
                size: integers.2,
                flags: integers.3,
                payload: payload.as_deref(),
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_rows(rows in vec(any_row(), 0..40), level in 0..4) {
        assert_round_trip(&rows, level);
    }

    #[test]
    fn any_row_many_times(row in any_row(), count in 1..700_usize, level in 0..4) {
        assert_round_trip(&vec![row; count], level);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20) })]

    #[test]
    fn integers_of_any_shape(
        base in any::<u64>(), bits in 0..64_u32, step in any::<u32>(), count in 1..3000_u64, repeat in 1..40_u64,
    ) {
        let mut random = Random(base);
        let rows: Vec<Vec<u8>> = (0..count)
            .map(|index| {
                let noise = random.below(u64::MAX) >> bits;
                let stepped = base.wrapping_add(index.wrapping_mul(u64::from(step)));
                row(&Entry::new("x", "")
                    .time(stepped.cast_signed())
                    .duration(noise.wrapping_mul(u64::from(step)))
                    .size(base.wrapping_add(index / repeat))
                    .status((noise % repeat) as u32))
            })
            .collect();
        assert_round_trip(&rows, 1);
    }
}

#[test]
fn rows_at_their_limits() {
    let long = "x".repeat(MAX_STRING);
    let payload = Random(1).bytes(MAX_PAYLOAD);
    let mut largest = Entry::new("o", &long)
        .time(i64::MIN)
        .status(u32::MAX)
        .flags(u32::MAX)
        .size(u64::MAX)
        .duration(u64::MAX)
        .payload(&payload);
    largest.subjects = Some((0..64).map(|_| "").collect());
    assert_round_trip(&[row(&largest)], 1);
    assert_round_trip(&[row(&largest), row(&Entry::default_of("o")), row(&largest)], 1);
    let long_subjects = long.as_str();
    let mut subjects = Entry::default_of(long_subjects);
    subjects.subjects = Some((0..64).map(|_| long_subjects).collect());
    assert_round_trip(&[row(&subjects)], 3);
}

trait DefaultOf<'a> {
    fn default_of(operation: &'a str) -> Entry<'a>;
}

impl<'a> DefaultOf<'a> for Entry<'a> {
    fn default_of(operation: &'a str) -> Entry<'a> {
        Entry { operation, ..Entry::default() }
    }
}

#[test]
fn many_rows_and_few_at_every_level() {
    for count in [0, 1, 2, 7, 8, 9, 511, 512, 513, 5000] {
        for level in [0, 1, 3, 9] {
            assert_round_trip(&mixed_rows(count), level);
        }
    }
}

#[test]
fn absent_zero_and_empty_differ() {
    let absent = Entry::default_of("x");
    let mut none = absent.clone();
    none.subjects = Some(Default::default());
    let rows = [
        row(&absent),
        row(&absent.clone().status(0).duration(0).size(0).flags(0)),
        row(&Entry::new("x", "")
            .controller("")
            .processor("")
            .purpose("")
            .client("")
            .actor("")
            .stream("")
            .payload("")),
        row(&none),
        row(&absent.subject("")),
    ];
    assert_round_trip(&rows, 0);
    for row in rows {
        assert_round_trip(&[row], 0);
    }
}

#[test]
fn an_absent_column_costs_a_byte() {
    // Version, entries, time, operation, thirteen columns, personal groups.
    assert_eq!(encode(&[row(&Entry::default_of("x"))], 1).len(), 1 + 1 + 2 + 4 + 13 + 1);
}

#[test]
fn the_bytes_depend_on_rows_and_level_only() {
    let mut encoder = Encoder::new(Compression::new(2).unwrap());
    let mut decoder = Decoder::new();
    let mut back = Rows::default();
    for count in [3000, 5, 900, 3000, 0, 60, 3000] {
        let rows = mixed_rows(count);
        let views: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let mut plaintext = Vec::new();
        encoder.encode(&views, &mut plaintext).unwrap();
        assert_eq!(plaintext, encode(&rows, 2));
        decoder.decode(&pad(plaintext), count, content(&rows), &mut back).unwrap();
        assert!(back.iter().eq(views));
    }
}

#[test]
fn what_is_no_row_is_refused_and_leaves_nothing() {
    let good = row(&Entry::default_of("x"));
    let mut out = vec![1, 2, 3];
    let mut encoder = Encoder::new(Compression::NONE);
    assert!(encoder.encode(&[&good, &good[..5]], &mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
    encoder.encode(&[&good], &mut out).unwrap();
    assert_eq!(out[3..], encode(&[good], 0));
}

#[test]
fn levels() {
    assert_eq!(Compression::new(0), Some(Compression::NONE));
    assert_eq!(Compression::new(19).map(Compression::level), Some(19));
    assert_eq!((Compression::new(-1), Compression::new(20)), (None, None));
}
