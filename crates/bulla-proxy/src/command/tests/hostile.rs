//! Any arguments and any replies.

use super::*;
use crate::command::pinned::COMMANDS;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Words that decide, numbers at the edges, and anything else.
fn word() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&str] = &[
        "GET",
        "NX",
        "XX",
        "EX",
        "STORE",
        "STOREDIST",
        "BY",
        "LIMIT",
        "COUNT",
        "KEYS",
        "COPY",
        "AUTH",
        "AUTH2",
        "STREAMS",
        "BLOCK",
        "GROUP",
        "REPLACE",
        "DB",
        "OVERFLOW",
        "INCR",
        "NOMKSTREAM",
        "MAXLEN",
        "MKSTREAM",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "2147483648",
        "9223372036854775807",
        "18446744073709551616",
        "",
        "w*",
        "no",
        "one",
        "off",
        "ack",
        "IFEQ",
    ];
    prop_oneof![
        4 => select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..12),
    ]
}

fn line() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let name = (0..COMMANDS.len())
        .prop_map(|at| COMMANDS[at].name.split('|').map(|part| part.as_bytes().to_vec()).collect());
    (prop_oneof![9 => name, 1 => vec(word(), 1..2)], vec(word(), 0..12)).prop_map(
        |(mut line, words): (Vec<Vec<u8>>, Vec<Vec<u8>>)| {
            line.extend(words);
            line
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

    #[test]
    fn whatever_the_arguments_keys_are_among_them_in_order_and_what_was_cut_is_told(
        line in line(),
        items in 0_usize..14,
        bytes in 0_usize..12,
    ) {
        let table = CommandTable::pinned();
        let expected = RefCell::new(BTreeSet::new());
        let whole = table.effect(&parse(&line, ALL, |so_far, index, length| {
            if table.may_be_key(so_far, index) {
                expected.borrow_mut().insert(index);
            }
            (usize::try_from(length).unwrap(), Digest::None)
        }));
        prop_assert!(whole.keys.is_sorted() && whole.unknowable != Some(Unknowable::TooMany));
        for used in &whole.keys {
            prop_assert!(0 < used.argument && used.argument < line.len() as u64);
            prop_assert!(expected.borrow().contains(&used.argument), "{used:?} was not expected");
        }
        let keep = |_: &Arguments, _, length: u64| (usize::try_from(length).unwrap().min(bytes), Digest::None);
        let cut = table.effect(&parse(&line, Limits { items, ..ALL }, keep));
        if cut.unknowable == whole.unknowable {
            prop_assert!(cut.keys == whole.keys || whole.unknowable.is_some(), "{cut:?} {whole:?}");
        } else {
            prop_assert!(cut.unknowable.is_some());
        }
    }

    #[test]
    fn no_reply_makes_a_table_or_an_outcome_panic(
        line in line(),
        shape in vec((0_u8..8, 0_usize..5, word()), 1..30),
    ) {
        let mut bytes = Vec::new();
        for (kind, children, text) in shape {
            let text = String::from_utf8_lossy(&text).replace(['\r', '\n'], "");
            bytes.extend_from_slice(match kind {
                0..4 => format!("*{children}\r\n"),
                4 => format!("${}\r\n{text}\r\n", text.len()),
                5 => format!(":{}\r\n", text.parse::<i64>().unwrap_or(children as i64)),
                6 => format!("%{children}\r\n"),
                _ => "_\r\n".to_owned(),
            }.as_bytes());
        }
        let mut replies = Replies::new(ALL);
        let _ = replies.next(&bytes);
        let reply = replies.reply();
        let _ = CommandTable::from_reply(reply);
        let effect = CommandTable::pinned().effect(&arguments(&line));
        for used in &effect.keys {
            for at in 0..=reply.nodes().len() {
                effect.refine(used.access, Some(&line[0]), reply, at);
            }
        }
    }
}
