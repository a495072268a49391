use super::*;
use arrow_array::builder::{LargeListBuilder, ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::{
    ArrayRef, DurationMillisecondArray, Int8Array, Int64Array, NullArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt64Array,
};
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn operations() -> ArrayRef {
    Arc::new(StringArray::from(vec!["read", "write"]))
}

/// What the second row of a column becomes, beside an operation; the first has nothing.
fn second<T>(name: &str, array: ArrayRef, field: impl Fn(&Entry<'_>) -> T) -> (T, T) {
    let batch = batch(vec![("operation", operations()), (name, array)]);
    let entries = Rows::new(&batch, 0).entries().unwrap();
    assert_eq!((entries[0].operation, entries[1].operation), ("read", "write"));
    (field(&entries[0]), field(&entries[1]))
}

fn refused(columns: Vec<(&str, ArrayRef)>) -> String {
    Rows::new(&batch(columns), 100).entries().unwrap_err().to_string()
}

#[test]
fn texts_of_every_type_are_texts() {
    let mut dictionary = StringDictionaryBuilder::<Int8Type>::new();
    dictionary.append_null();
    dictionary.append_value("ada");
    let arrays: [ArrayRef; 4] = [
        Arc::new(StringArray::from(vec![None, Some("ada")])),
        Arc::new(LargeStringArray::from(vec![None, Some("ada")])),
        Arc::new(StringViewArray::from(vec![None, Some("ada")])),
        Arc::new(dictionary.finish()),
    ];
    for array in arrays {
        for (name, field) in [
            ("actor", (|entry| entry.actor.map(str::to_owned)) as fn(&Entry<'_>) -> Option<String>),
            ("client", |entry| entry.client.map(str::to_owned)),
            ("controller", |entry| entry.controller.map(str::to_owned)),
            ("processor", |entry| entry.processor.map(str::to_owned)),
            ("purpose", |entry| entry.purpose.map(str::to_owned)),
            ("stream", |entry| entry.stream.map(str::to_owned)),
            ("location", |entry| entry.location.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())),
            ("payload", |entry| entry.payload.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())),
            ("subject", |entry| entry.subjects.as_ref().map(|names| names.join("+"))),
        ] {
            assert_eq!(
                second(name, array.clone(), field),
                (None, Some("ada".to_owned())),
                "{name} {array:?}"
            );
        }
    }
    let none: ArrayRef = Arc::new(NullArray::new(2));
    assert_eq!(second("actor", none, |entry| entry.actor.is_some()), (false, false));
}

#[test]
fn bytes_are_bytes_and_those_of_a_second_column_come_after_texts() {
    let bytes: [Option<&[u8]>; 2] = [None, Some(b"\xff\0")];
    let arrays: [ArrayRef; 3] = [
        Arc::new(BinaryArray::from(bytes.to_vec())),
        Arc::new(LargeBinaryArray::from(bytes.to_vec())),
        Arc::new(BinaryViewArray::from(bytes.to_vec())),
    ];
    for array in arrays {
        for name in ["payload", "payload_bytes"] {
            let got = second(name, array.clone(), |entry| entry.payload.map(<[u8]>::to_vec));
            assert_eq!(got, (None, Some(b"\xff\0".to_vec())));
        }
    }
    let batch = batch(vec![
        ("location_bytes", Arc::new(BinaryArray::from(vec![Some(&b"bytes"[..]), Some(b"\xff")]))),
        ("operation", operations()),
        ("location", Arc::new(StringArray::from(vec![Some("text"), None]))),
    ]);
    let entries = Rows::new(&batch, 0).entries().unwrap();
    assert_eq!((entries[0].location, entries[1].location), (Some(&b"text"[..]), Some(&b"\xff"[..])));
}

#[test]
fn lists_of_subjects_are_absent_empty_or_have_names_whatever_part_of_them_is_taken() {
    let mut small = ListBuilder::new(StringBuilder::new());
    let mut large = LargeListBuilder::new(StringBuilder::new());
    for names in [Some(vec!["x"]), None, Some(vec![]), Some(vec!["ada", "bob"])] {
        for name in names.iter().flatten() {
            small.values().append_value(name);
            large.values().append_value(name);
        }
        small.append(names.is_some());
        large.append(names.is_some());
    }
    for array in [Arc::new(small.finish()) as ArrayRef, Arc::new(large.finish())] {
        let operations: ArrayRef = Arc::new(StringArray::from(vec!["read"; 4]));
        let whole = batch(vec![("operation", operations), ("subject", array)]);
        let part = whole.slice(1, 3);
        let entries = Rows::new(&part, 0).entries().unwrap();
        let names = entries.iter().map(|entry| entry.subjects.as_ref().map(|names| names.to_vec()));
        assert_eq!(names.collect::<Vec<_>>(), [None, Some(vec![]), Some(vec!["ada", "bob"])]);
    }
    let mut with_null = ListBuilder::new(StringBuilder::new());
    with_null.values().append_null();
    with_null.append(true);
    with_null.append(false);
    let told = refused(vec![("operation", operations()), ("subject", Arc::new(with_null.finish()))]);
    assert_eq!(told, "column `subject`, row 100: it has to be a list without nulls");
}

#[test]
fn numbers_of_every_width_fit_or_are_refused_by_row() {
    let small: ArrayRef = Arc::new(Int8Array::from(vec![None, Some(7)]));
    assert_eq!(second("status", small.clone(), |entry| entry.status), (None, Some(7)));
    assert_eq!(second("flags", small.clone(), |entry| entry.flags), (None, Some(7)));
    assert_eq!(second("size", small.clone(), |entry| entry.size), (None, Some(7)));
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![None, Some(u64::MAX)]));
    assert_eq!(second("size", large.clone(), |entry| entry.size), (None, Some(u64::MAX)));
    assert_eq!(second("duration", large.clone(), |entry| entry.duration), (None, Some(u64::MAX)));
    let digits: ArrayRef = Arc::new(StringArray::from(vec![None, Some("18446744073709551615")]));
    assert_eq!(second("size_digits", digits.clone(), |entry| entry.size), (None, Some(u64::MAX)));
    assert_eq!(second("duration_digits", digits, |entry| entry.duration), (None, Some(u64::MAX)));
    let told = refused(vec![("operation", operations()), ("status", large)]);
    assert_eq!(told, "column `status`, row 101: it has to be a whole number from 0 to 4294967295");
    let negative: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), Some(0)]));
    let told = refused(vec![("operation", operations()), ("size", negative)]);
    assert_eq!(told, "column `size`, row 100: it has to be a whole number from 0 to 18446744073709551615");
}

#[test]
fn times_are_of_any_unit_and_have_a_time_zone() {
    let millis = TimestampMillisecondArray::from(vec![None, Some(-1)]);
    let zoned: ArrayRef = Arc::new(millis.clone().with_timezone("UTC"));
    assert_eq!(second("time", zoned, |entry| entry.time), (None, Some(-1_000_000)));
    let nanos: ArrayRef =
        Arc::new(TimestampNanosecondArray::from(vec![None, Some(5)]).with_timezone("+02:00"));
    assert_eq!(second("time", nanos, |entry| entry.time), (None, Some(5)));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(i64::MIN)]));
    assert_eq!(second("time", whole.clone(), |entry| entry.time), (None, Some(i64::MIN)));
    assert_eq!(second("time_nanoseconds", whole, |entry| entry.time), (None, Some(i64::MIN)));
    let told = refused(vec![("operation", operations()), ("time", Arc::new(millis))]);
    assert!(told.starts_with("column `time` has no time zone"), "{told}");
    let far: ArrayRef =
        Arc::new(TimestampMillisecondArray::from(vec![Some(0), Some(i64::MAX)]).with_timezone("UTC"));
    let told = refused(vec![("operation", operations()), ("time", far)]);
    assert_eq!(told, "column `time`, row 101: it has to be within what 64 bits have of nanoseconds");
    let lasting: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![None, Some(3)]));
    assert_eq!(second("duration", lasting, |entry| entry.duration), (None, Some(3_000_000)));
    let negative: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![Some(0), Some(-3)]));
    let told = refused(vec![("operation", operations()), ("duration", negative)]);
    assert_eq!(told, "column `duration`, row 101: it has to be a duration that is not negative");
}

#[test]
fn columns_that_are_none_are_named_as_far_as_they_look_like_names() {
    let told = refused(vec![("operation", operations()), ("subjects", operations())]);
    assert!(told.starts_with("`subjects` is not a field; the fields are time, operation"), "{told}");
    let told = refused(vec![("operation", operations()), ("ada@example.com", operations())]);
    assert!(told.starts_with("a name in the entry is not a field"), "{told}");
    let told = refused(vec![("actor", operations())]);
    assert_eq!(told, "the table has no column `operation`, which every entry has");
    let told = refused(vec![("operation", operations()), ("operation", operations())]);
    assert_eq!(told, "the table has two columns `operation`");
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let told = refused(vec![("operation", operations()), ("actor", numbers)]);
    assert_eq!(told, "column `actor` has to have texts, and has Int64");
    let told = refused(vec![("operation", operations()), ("status", operations())]);
    assert_eq!(told, "column `status` has to have integers, and has Utf8");
    // What a query gives beside the fields says nothing.
    let entry: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let is_operation_only = |entry: &Entry<'_>| *entry == Entry { operation: "read", ..Entry::default() };
    assert!(second("entry", entry, is_operation_only).0);
}
