use super::{read_entry, skip, write_entry};
use crate::tests::entries;
use bulla_proof::Entry;
use proptest::collection::vec;
use proptest::prelude::*;

/// A map of fields whose values are written as given.
fn map(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = vec![0x80 | u8::try_from(fields.len()).unwrap()];
    for (name, value) in fields {
        out.push(0xa0 | u8::try_from(name.len()).unwrap());
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(value);
    }
    out
}

fn reason(bytes: &[u8]) -> String {
    read_entry(&mut &*bytes).unwrap_err().to_string()
}

const READ: (&str, &[u8]) = ("operation", b"\xa4read");

#[test]
fn an_entry_has_these_bytes() {
    // As the specification of MessagePack has them: fixmap, fixstr, int64, bin8, fixarray, uint8.
    let expected =
        b"\x85\xa4time\xd3\xff\xff\xff\xfe\x00\x00\x00\x00\xa9operation\xa4read\xa8location\xc4\x02k\xff\
        \xa7subject\x92\xa1a\xa0\xa6status\xcc\xc8";
    let mut out = Vec::new();
    let entry = Entry {
        operation: "read",
        location: Some(b"k\xff"),
        subjects: Some(["a", ""].into_iter().collect()),
        status: Some(200),
        ..Entry::default()
    };
    write_entry(&entry, Some(-(2 << 32)), &mut out);
    assert_eq!(out, expected);
    let mut bytes = &out[..];
    assert_eq!(read_entry(&mut bytes), Ok(entry.time(-(2 << 32))));
    assert_eq!(bytes, b"");
}

#[test]
fn every_spelling_of_a_value_is_read() {
    for (time, nanoseconds) in [
        (&b"\xb42015-05-17T10:05:03Z"[..], 1_431_857_103_000_000_000),
        (b"\x05", 5),
        (b"\xff", -1),
        (b"\xcf\0\0\0\0\0\0\0\x09", 9),
        (b"\xd1\xff\xfe", -2),
    ] {
        let bytes = map(&[("time", time), READ]);
        assert_eq!(read_entry(&mut &bytes[..]).unwrap().time, Some(nanoseconds));
    }
    for (payload, read) in [
        (&b"\xa1x"[..], &b"x"[..]),
        (b"\xd9\x01x", b"x"),
        (b"\xc5\0\x02\xff\0", b"\xff\0"),
        (b"\xc6\0\0\0\0", b""),
    ] {
        let bytes = map(&[READ, ("payload", payload)]);
        assert_eq!(read_entry(&mut &bytes[..]).unwrap().payload, Some(read));
    }
    for (subject, read) in [
        (&b"\xa1a"[..], vec!["a"]),
        (b"\x90", vec![]),
        (b"\xdc\0\x02\xa1a\xa1b", vec!["a", "b"]),
        (b"\xdd\0\0\0\x02\xa1a\xa1b", vec!["a", "b"]),
    ] {
        let bytes = map(&[READ, ("subject", subject)]);
        assert_eq!(read_entry(&mut &bytes[..]).unwrap().subjects.unwrap().to_vec(), read);
    }
    let nothing =
        map(&[READ, ("subject", b"\xc0"), ("size", b"\xc0"), ("payload", b"\xc0"), ("time", b"\xc0")]);
    assert_eq!(read_entry(&mut &nothing[..]), Ok(Entry { operation: "read", ..Entry::default() }));
    // A map may say its length in more bytes than it needs.
    let long = [b"\xdf\0\0\0\x01".to_vec(), map(&[READ])[1..].to_vec()].concat();
    assert_eq!(read_entry(&mut &long[..]).unwrap().operation, "read");
}

#[test]
fn an_entry_is_refused_with_the_field_and_what_it_takes() {
    let many = [b"\xdd\0\x01\0\0".to_vec(), b"\xa0".repeat(65536)].concat();
    let sixty_five = [b"\xdc\0\x41".to_vec(), b"\xa0".repeat(65)].concat();
    for (fields, says) in [
        (
            &[("time", &b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff"[..]), READ][..],
            "`time` must be a whole number of nanoseconds",
        ),
        (&[("time", b"\xa5today"), READ], "`time` must be a whole number of nanoseconds"),
        (&[READ, ("status", b"\xff")], "`status` must be a whole number from 0 to 4294967295"),
        (&[READ, ("size", b"\xcb\0\0\0\0\0\0\0\0")], "`size` must be a whole number"),
        (&[READ, ("actor", b"\xa1\xff")], "`actor` must be a string"),
        (&[READ, ("actor", b"\xc4\x01x")], "`actor` must be a string"),
        (&[READ, ("location", b"\x01")], "`location` must be a string or binary"),
        (&[READ, ("subject", &sixty_five)], "`subject` must be a string or an array of at most 64 strings"),
        (&[READ, ("subject", b"\x91\x01")], "`subject` must be"),
        (&[READ, ("subject", &many)], "`subject` must be"),
        (&[READ, READ], "`operation` is given twice"),
        (&[READ, ("colour", b"\xa1x")], "`colour` is not a field"),
        (&[READ, ("payload_base64", b"\xa1x")], "`payload_base64` is not a field"),
        (&[READ, ("entry", b"\x01")], "`entry` is assigned by the log"),
        (&[READ, ("a b", b"\x01")], "a name in the entry is not a field"),
        (&[("operation", b"\xc0")], "operation"),
        (&[], "operation"),
    ] {
        let mut bytes = map(fields);
        assert!(reason(&bytes).contains(says), "{}", reason(&bytes));
        // And what is behind it is read.
        bytes.extend(map(&[READ]));
        let mut rest = &bytes[..];
        read_entry(&mut rest).unwrap_err();
        assert_eq!(read_entry(&mut rest).map(|entry| entry.operation), Ok("read"), "{says}");
    }
    for bytes in [
        &b"\xc1"[..],
        b"\x81",
        b"\x81\xa9opera",
        b"\x81\xa9operation\xda\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa7subject\xdd\xff\xff\xff\xff",
    ] {
        let mut rest = bytes;
        read_entry(&mut rest).unwrap_err();
        assert_eq!(rest, b"", "nobody knows where the next one begins");
    }
    let mut list = &b"\x91\x01\x81\xa9operation\xa4read"[..];
    assert!(read_entry(&mut list).unwrap_err().to_string().contains("not a MessagePack map"));
    assert_eq!(read_entry(&mut list).unwrap().operation, "read");
}

#[test]
fn every_kind_of_value_is_gone_behind() {
    for (bytes, length) in [
        (&b"\x7f"[..], 1),
        (b"\xe0", 1),
        (b"\xc0", 1),
        (b"\xc2", 1),
        (b"\xc3", 1),
        (b"\xcc.", 2),
        (b"\xcd..", 3),
        (b"\xce....", 5),
        (b"\xcf........", 9),
        (b"\xd0.", 2),
        (b"\xd1..", 3),
        (b"\xd2....", 5),
        (b"\xd3........", 9),
        (b"\xca....", 5),
        (b"\xcb........", 9),
        (b"\xa2..", 3),
        (b"\xd9\x02..", 4),
        (b"\xda\0\x02..", 5),
        (b"\xdb\0\0\0\x02..", 7),
        (b"\xc4\x02..", 4),
        (b"\xc5\0\x02..", 5),
        (b"\xc6\0\0\0\x02..", 7),
        (b"\xd4t.", 3),
        (b"\xd5t..", 4),
        (b"\xd6t....", 6),
        (b"\xd7t........", 10),
        (b"\xd8t................", 18),
        (b"\xc7\x02t..", 5),
        (b"\xc8\0\x02t..", 6),
        (b"\xc9\0\0\0\x02t..", 8),
        (b"\x92\x01\x91\x02", 4),
        (b"\xdc\0\x01\x01", 4),
        (b"\xdd\0\0\0\x01\x01", 6),
        (b"\x81\x01\x02", 3),
        (b"\xde\0\x01\x01\x02", 5),
        (b"\xdf\0\0\0\x01\x01\x02", 7),
    ] {
        assert_eq!(bytes.len(), length);
        let more = [bytes, b"!"].concat();
        let mut rest = &more[..];
        assert_eq!((skip(&mut rest), rest), (Some(()), &b"!"[..]), "{bytes:x?}");
        assert_eq!(skip(&mut &bytes[..length - 1]), None, "{bytes:x?}, cut off");
    }
    // However deep it is nested, there is no recursion.
    assert_eq!(skip(&mut &[b"\x91".repeat(1 << 20), b"\x01".to_vec()].concat()[..]), Some(()));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entry in entries(), behind in vec(any::<u8>(), 0..4)) {
        let mut out = Vec::new();
        write_entry(&entry.entry(), entry.time, &mut out);
        let (mut rest, whole) = (&out[..], out.len());
        skip(&mut rest).unwrap();
        prop_assert_eq!(rest, b"");
        out.extend(&behind);
        let mut rest = &out[..];
        prop_assert_eq!(read_entry(&mut rest).unwrap(), entry.entry());
        prop_assert_eq!(rest, &behind[..]);
        for cut in 0..whole {
            prop_assert!(read_entry(&mut &out[..cut]).is_err());
        }
    }

    #[test]
    fn what_is_damaged_is_an_entry_or_refused(
        entry in entries(), at: prop::sample::Index, patch in vec(any::<u8>(), 1..4),
    ) {
        let mut out = Vec::new();
        write_entry(&entry.entry(), entry.time, &mut out);
        let at = at.index(out.len());
        let end = (at + patch.len()).min(out.len());
        out.splice(at..end, patch);
        crate::fuzzing::msgpack(&out);
    }
}
