use crate::vectors::{bytes, items, read};
use bulla_proof::entry::{MAX_PAYLOAD, MAX_ROW, MAX_STRING, MAX_SUBJECTS, RawRow};
use bulla_proof::{Entry, EntryError, varint};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn rows_are_as_the_vectors_say() {
    for vector in items(&read("rows.json")) {
        let text = |key: &str| vector[key].as_str();
        let blob = |key: &str| vector.get(key).map(|_| bytes(vector, key));
        let small = |key: &str| vector[key].as_u64().map(|value| u32::try_from(value).unwrap());
        let (location, payload) = (blob("location"), blob("payload"));
        let entry = Entry {
            time: vector["time"].as_i64(),
            operation: text("operation").unwrap(),
            location: location.as_deref(),
            subjects: vector["subjects"]
                .as_array()
                .map(|subjects| subjects.iter().filter_map(Value::as_str).collect()),
            controller: text("controller"),
            processor: text("processor"),
            purpose: text("purpose"),
            actor: text("actor"),
            client: text("client"),
            stream: text("stream"),
            status: small("status"),
            duration: vector["duration"].as_u64(),
            size: vector["size"].as_u64(),
            flags: small("flags"),
            payload: payload.as_deref(),
        };
        let row = bytes(vector, "row");
        assert_eq!(encode(&entry), row);
        assert_reads(&row, &entry);
    }
}

#[test]
fn the_limits_hold() {
    let long = "x".repeat(MAX_STRING);
    let longer = "x".repeat(MAX_STRING + 1);
    let payload = vec![0; MAX_PAYLOAD + 1];
    let mut entry = Entry::new(&long, &long).controller(&long).processor(&long).purpose(&long).actor(&long);
    entry =
        entry.client(&long).stream(&long).status(u32::MAX).duration(u64::MAX).size(u64::MAX).flags(u32::MAX);
    entry = entry.payload(&payload[1..]).time(0);
    for _ in 0..MAX_SUBJECTS {
        entry = entry.subject(&long);
    }
    let length = entry.measure().unwrap();
    assert!(length <= MAX_ROW && MAX_ROW - length < 64, "{length}, {MAX_ROW}");
    let row = encode(&entry);
    assert_eq!(encode(&Entry::decode(&row).unwrap()), row);

    let too_long = |field| Err(EntryError::TooLong { field, limit: MAX_STRING });
    assert_eq!(Entry::new(&longer, "x").measure(), too_long("operation"));
    assert_eq!(Entry::new("x", &longer).measure(), too_long("location"));
    assert_eq!(Entry::new("x", "x").stream(&longer).measure(), too_long("stream"));
    assert_eq!(Entry::new("x", "x").subject(&longer).measure(), too_long("subject"));
    let field = "payload";
    let limit = MAX_PAYLOAD;
    assert_eq!(Entry::new("x", "x").payload(&payload).measure(), Err(EntryError::TooLong { field, limit }));
    assert_eq!(entry.subject("one more").measure(), Err(EntryError::TooManySubjects));
    assert_eq!(Entry::new("", "x").measure(), Err(EntryError::NoOperation));
}

#[test]
fn other_rows_are_refused() {
    let head = |presence: u16| [&presence.to_le_bytes()[..], &[0; 8], b"\x01x"].concat();
    let row = |presence, rest: &[u8]| [&head(presence), rest].concat();
    for (row, error) in [
        (vec![], EntryError::Truncated),
        (head(0)[..11].to_vec(), EntryError::Truncated),
        (row(0, &[0]), EntryError::LeftOver),
        (row(1 << 13, &[]), EntryError::UnknownField),
        (row(1 << 15, &[]), EntryError::UnknownField),
        (row(1, &[2, b'x']), EntryError::Truncated),
        (row(1, &[1, 0xff]), EntryError::NotText { field: "controller" }),
        (row(1, &[0x81, 0x00, b'x']), EntryError::NotMinimal),
        (row(1, &[0xff; 9]), EntryError::Truncated),
        (row(1, &[0xff; 10]), EntryError::NotMinimal),
        (row(1, &[&[0xff; 9][..], &[1]].concat()), EntryError::Truncated),
        (row(1, &[&[0xff; 9][..], &[2]].concat()), EntryError::NotMinimal),
        (row(1, &[&[0xff; 9][..], &[3]].concat()), EntryError::NotMinimal),
        (row(1 << 3, &[0x80, 0x80, 0x80, 0x80, 0x10]), EntryError::TooLarge { field: "status" }),
        (row(1 << 6, &[0x80, 0x80, 0x80, 0x80, 0x10]), EntryError::TooLarge { field: "flags" }),
        (row(1 << 12, &[65]), EntryError::TooManySubjects),
        (row(1 << 12, &[&[0xff; 9][..], &[1]].concat()), EntryError::TooManySubjects),
        (row(1 << 12, &[2, 0]), EntryError::Truncated),
        (row(1 << 12, &[1, 1, 0xff]), EntryError::NotText { field: "subject" }),
        ([&[0; 10][..], &[0]].concat(), EntryError::NoOperation),
    ] {
        assert_eq!(Entry::decode(&row), Err(error), "{row:x?}");
    }
}

#[test]
fn the_location_need_not_be_text() {
    let entry = Entry::new("read", &[0xff, 0x00]).time(1);
    assert_reads(&encode(&entry), &entry);
}

#[test]
fn the_time_given_is_for_entries_without_one() {
    let entry = Entry::new("read", "x");
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(77, &mut row);
    assert_reads(&row, &entry.clone().time(77));
    entry.clone().time(5).encode(77, &mut row);
    assert_reads(&row, &entry.time(5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn decodes_what_it_encodes(entry in any_entry()) {
        let entry = entry.borrow();
        assert_reads(&encode(&entry), &entry);
    }

    #[test]
    fn an_entry_has_one_row(row in prop::collection::vec(any::<u8>(), 0..40)) {
        assert_canonical(&row);
    }

    #[test]
    fn an_entry_has_one_row_near_real_ones(
        entry in any_entry(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut row = encode(&entry.borrow());
        assert!(RawRow::parse(&row[..cut.index(row.len())]).is_err());
        for (at, mask) in flips {
            let at = at.index(row.len());
            row[at] ^= mask;
        }
        assert_canonical(&row);
    }

    #[test]
    fn the_data_subjects_of_a_row_are_found_without_the_rest(
        entry in any_entry(),
        flip in any::<prop::sample::Index>(),
        mask in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut row = encode(&entry.borrow());
        let listed = |row: &[u8]| {
            RawRow::subjects_of(row).map(|subjects| subjects.map(|list| list.map(<[u8]>::to_vec).collect::<Vec<_>>()))
        };
        let names = entry.borrow().subjects.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect());
        prop_assert_eq!(listed(&row), Ok(names.clone()));
        let cut = &row[..cut.index(row.len())];
        prop_assert!(names.is_none() || cut.len() < 2 || listed(cut).is_err());
        let at = flip.index(row.len());
        row[at] ^= mask;
        if let Ok(whole) = RawRow::parse(&row) {
            prop_assert_eq!(listed(&row), Ok(whole.subjects.map(|list| list.map(<[u8]>::to_vec).collect())));
        }
    }

    #[test]
    fn a_varint_has_one_spelling(value in any::<u64>(), shift in 0..64, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let value = value >> shift;
        let mut out = Vec::new();
        varint::push(value, &mut out);
        prop_assert_eq!(out.len(), varint::length(value));
        prop_assert_eq!(varint::take(&mut &out[..]), Ok(value));
        prop_assert!(varint::take(&mut &out[..out.len() - 1]).is_err());
        let mut rest = &bytes[..];
        if let Ok(value) = varint::take(&mut rest) {
            out.clear();
            varint::push(value, &mut out);
            prop_assert_eq!(&bytes[..bytes.len() - rest.len()], &out[..]);
        }
    }
}

fn encode(entry: &Entry<'_>) -> Vec<u8> {
    let mut row = vec![0; entry.measure().unwrap()];
    entry.encode(0, &mut row);
    row
}

/// Compares what is shown: an entry's lifetime is invariant, so that two of them are seldom of one type.
fn assert_reads(row: &[u8], entry: &Entry<'_>) {
    assert_eq!(format!("{:?}", Entry::decode(row).unwrap()), format!("{entry:?}"));
}

fn assert_canonical(row: &[u8]) {
    if let Ok(entry) = Entry::decode(row) {
        assert_eq!(encode(&entry), row);
    }
}

/// The strings, numbers and bytes of an entry, for a test to borrow from.
#[derive(Debug)]
struct Owned {
    time: i64,
    texts: [Option<String>; 7],
    numbers: [Option<u64>; 4],
    bytes: [Option<Vec<u8>>; 2],
    subjects: Option<Vec<String>>,
}

impl Owned {
    fn borrow(&self) -> Entry<'_> {
        let [operation, controller, processor, purpose, actor, client, stream] =
            self.texts.each_ref().map(Option::as_deref);
        let [status, duration, size, flags] = self.numbers;
        let small = |value: Option<u64>| value.map(|value| u32::try_from(value >> 32).unwrap());
        Entry {
            time: Some(self.time),
            operation: operation.filter(|operation| !operation.is_empty()).unwrap_or("read"),
            location: self.bytes[0].as_deref(),
            subjects: self.subjects.as_ref().map(|subjects| subjects.iter().map(String::as_str).collect()),
            controller,
            processor,
            purpose,
            actor,
            client,
            stream,
            status: small(status),
            duration,
            size,
            flags: small(flags),
            payload: self.bytes[1].as_deref(),
        }
    }
}

fn any_entry() -> impl Strategy<Value = Owned> {
    let text = || prop::option::of("\\PC{0,9}");
    let bytes = || prop::option::of(prop::collection::vec(any::<u8>(), 0..140));
    let texts = [text(), text(), text(), text(), text(), text(), text()];
    let subjects = prop::option::of(prop::collection::vec("\\PC{0,9}", 0..5));
    (any::<i64>(), texts, any::<[Option<u64>; 4]>(), [bytes(), bytes()], subjects)
        .prop_map(|(time, texts, numbers, bytes, subjects)| Owned { time, texts, numbers, bytes, subjects })
}
