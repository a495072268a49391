//! Common items that every reader must read, and others that it must refuse.

use super::Parts;

type Case = (&'static str, Vec<u8>, usize, usize, &'static str, &'static str);

/// Items by their lengths, which fit a byte each unless there is one alone, and their bytes, which fit one that is stored as it is.
fn list(items: &[&[u8]]) -> Vec<u8> {
    if items.is_empty() {
        return vec![0];
    }
    let mut out = vec![u8::try_from(items.len()).unwrap()];
    if let [one] = items
        && one.len() > 255
    {
        // Constant, in two bytes.
        out.extend([0, one.len().to_le_bytes()[0] | 0x80, u8::try_from(one.len() >> 7).unwrap()]);
    } else {
        // Packed from 0 on, in eight bits.
        out.extend([1, 0, 1, 0, 8]);
        out.extend(items.iter().map(|item| u8::try_from(item.len()).unwrap()));
    }
    if items.iter().any(|item| !item.is_empty()) {
        out.push(0);
        out.extend(items.concat());
    }
    out
}

fn with(items: Vec<u8>) -> Vec<u8> {
    Parts::grouped(|parts| parts.items = items)
}

fn shapes(shapes: &[&[u8]]) -> Vec<u8> {
    with([list(shapes), list(&[])].concat())
}

fn words(words: &[&[u8]]) -> Vec<u8> {
    with([list(&[]), list(words)].concat())
}

/// So many of one length, and how many that is: every length takes no byte, and the text would be zeros by a frame that is not there.
fn many(count: [u8; 2], length: [u8; 2]) -> Vec<u8> {
    [&count[..], &[0], &length].concat()
}

/// Two entries in a group, in a block of these.
pub(super) fn made_by_hand() -> [(&'static str, Vec<u8>); 3] {
    [
        ("a shape without a slot, and one of slots alone", shapes(&[b"\0\0\0\x01\0\x40", b"/a"])),
        (
            "shapes and words in two lists, an item before a longer one",
            with([list(&[b"/a", b"/a/", b"/b"]), list(&[b"\0", b"/a", b"a", b"ab", b"\xff"])].concat()),
        ),
        ("a shape of 128 slots", with([list(&[&[0, 1].repeat(128)]), list(&[])].concat())),
    ]
}

pub(super) fn malformed() -> Vec<Case> {
    let cases = [
        ("shapes out of order", shapes(&[b"/b", b"/a"]), "Items"),
        ("a shape twice", shapes(&[b"/a", b"/a"]), "Items"),
        ("words out of order", words(&[b"b", b"a"]), "Items"),
        ("a word twice", words(&[b"a", b"a"]), "Items"),
        ("an empty shape", shapes(&[b""]), "Range"),
        ("an empty word", words(&[b"", b"a"]), "Range"),
        ("a shape that ends in a slot", shapes(&[b"/\0"]), "Form"),
        ("a slot of 20 digits", shapes(&[b"/\0\x15"]), "Form"),
        ("a slot of no digits that are hexadecimal", shapes(&[b"/\0\x1f"]), "Form"),
        ("a slot of an unknown kind", shapes(&[b"/\0\x41"]), "Form"),
        ("a shape of 129 slots", shapes(&[&[0, 1].repeat(129)]), "Range"),
        ("a shape of 513 bytes", with([many([1, 0], [0x81, 4]), vec![0]].concat()), "Range"),
        ("a word of 256 bytes", with([&[0][..], &[1, 0, 0x80, 2]].concat()), "Range"),
        ("more shapes than there may be", with(many([0x81, 8], [0x80, 1])), "Range"),
        ("more words than there may be", with([&[0][..], &many([0xfd, 0x1f], [1, 0])].concat()), "Range"),
        (
            "shapes of more bytes than there may be",
            with(many([0x80, 8], [0x41, 0])[..4].to_vec()),
            "TooLarge",
        ),
        ("words of more bytes than there may be", with([&[0, 0x89, 8, 0, 0xff, 1][..]].concat()), "TooLarge"),
        ("no common items at all", Parts::grouped(|parts| parts.items.clear()), "Form"),
    ];
    cases.map(|(name, plaintext, fault)| (name, plaintext, 2, 1000, "group", fault)).into()
}
