//! As whom a connection acts is what the server takes it for.

use super::*;

/// A command of these words, with whatever bytes are in them.
fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::resp::write_command(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), &mut bytes);
    bytes
}

/// What an entry says of a connection on which this was asked, and answered.
fn noted_after(words: &[&str], said: &str) -> String {
    let mut world = World::new();
    world.asks("AUTH ada secret\r\n").says("+OK\r\n");
    world.asks(command(words)).says(said).asks("GET a\r\n").says("$-1\r\n");
    world.noted().remove(0)
}

#[test]
fn who_acts_is_read_from_hello_as_the_server_reads_it() {
    const TAKEN: &str = "*0\r\n";
    let taken = [
        (&["HELLO", "3"][..], "ada"),
        (&["HELLO", "3", "AUTH", "bob", "pw"], "bob"),
        (&["hello", "3", "auth\0", "bob", "pw"], "bob"),
        (&["HELLO\0x", "2", "AUTH\0x", "bob", "pw"], "bob"),
        (&["HELLO", "3", "SETNAME", "auth", "AUTH", "bob", "pw"], "bob name=auth"),
        (&["HELLO", "3", "AUTH", "setname", "auth", "setname\0", "web"], "setname name=web"),
        (&["HELLO", "3", "SETNAME", "web"], "ada name=web"),
        (&["AUTH\0", "bob", "pw"], "bob"),
    ];
    for (words, told) in taken {
        let said = if words[0].starts_with("AUTH") { "+OK\r\n" } else { TAKEN };
        assert_eq!(noted_after(words, said), format!("read a get Done actor={told}"), "{words:?}");
    }
    let long = "x".repeat(70 << 10);
    assert_eq!(noted_after(&["AUTH", &long, "pw"], "+OK\r\n"), "read a get Done actor=?");
}

#[test]
fn a_hello_that_does_not_say_plainly_who_acts_is_not_relayed() {
    let long = "x".repeat(70 << 10);
    let refused = [
        &["HELLO", "3", "AUTH", "bob", "pw", "AUTH", "eve", "pw"][..],
        &["HELLO", "3", "SETNAME", "a", "SETNAME", "b"],
        &["HELLO", "3", "SETNAME", "a", "SETNAME", "b", "SETNAME", "c", "AUTH", "bob", "pw"],
        &["HELLO", "3", "AUTH", "bob", "pw", "x"],
        &["HELLO", "3", "AUTH", "bob"],
        &["HELLO", "3", "SETNAME"],
        &["HELLO", "3", &long, "bob", "pw"],
        &["HELLO", "3", "AUTH", &long, "pw"],
        &["HELLO", "3", "SETNAME", &long, "AUTH", "bob", "pw"],
    ];
    for words in refused {
        let mut world = World::new();
        world.asks(command(words));
        let got = world.got();
        let told = got.starts_with("-BULLA hello is not relayed like this")
            || got.starts_with("-BULLA a command of this");
        assert!(told, "{got}");
        assert!(!world.sent().contains("pw"), "nobody can be authenticated");
    }
}

#[test]
fn of_a_name_that_a_client_gives_itself_a_kibibyte_is_told_and_whether_that_is_all() {
    let long = "x".repeat(2000);
    for learns in [false, true] {
        for words in [&["CLIENT", "SETNAME"][..], &["client\0", "setname\0"], &["HELLO", "3", "SETNAME"]] {
            for (length, told) in
                [(1024, long[..1024].to_owned()), (2000, format!("{} name_cut=true", &long[..1024]))]
            {
                let mut world = World::with(|context| context.learns = learns);
                let said = if words[0] == "HELLO" { "*0\r\n" } else { "+OK\r\n" };
                world.asks(command(&[words, &[&long[..length]]].concat())).says(said);
                world.asks("GET a\r\n").says("$-1\r\n");
                assert_eq!(world.noted(), [format!("read a get Done name={told}")], "{words:?} {length}");
            }
        }
    }
}

/// Servers differ in whether they have authenticated by the time that they find something else wrong.
#[test]
fn after_a_hello_of_which_nobody_knows_what_became_nobody_is_named() {
    let asked = ["HELLO", "3", "AUTH", "bob", "pw", "SETNAME", "bad name"];
    for (said, told) in [
        ("-ERR Client names cannot contain spaces\r\n", "?"),
        ("-WRONGPASS no\r\n", "ada"),
        ("-NOPROTO no\r\n", "ada"),
        ("-NOPERM no\r\n", "ada"),
        ("*0\r\n", "bob name=bad name"),
    ] {
        assert_eq!(noted_after(&asked, said), format!("read a get Done actor={told}"), "{said}");
    }
    let told = noted_after(&["HELLO", "3", "SETNAME", "bad name"], "-ERR no\r\n");
    assert_eq!(told, "read a get Done actor=ada", "it was not about that");
}

#[test]
fn passwords_are_not_kept() {
    for words in [
        &["HELLO", "3", "AUTH", "bob", "sesame"][..],
        &["HELLO", "3", "SETNAME", "auth", "AUTH", "bob", "sesame"],
        &["hello\0", "3", "auth\0", "bob", "sesame"],
        &["AUTH", "sesame"],
        &["auth\0x", "sesame"],
        &["AUTH", "bob", "sesame"],
    ] {
        let mut world = World::new();
        world.asks(command(words));
        let kept = &world.session.pipeline.first().unwrap().arguments;
        let kept = (0..kept.count()).filter_map(|index| kept.get(index)).collect::<Vec<_>>();
        assert!(!kept.contains(&&b"sesame"[..]), "{words:?}");
    }
}
