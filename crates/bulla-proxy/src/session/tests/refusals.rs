//! What the proxy answers itself takes its place among the replies.

use super::*;

#[test]
fn refusals_take_their_place_and_the_server_gets_nothing_of_them() {
    let mut world = World::new();
    world.asks("GET a\r\nEVAL x 0\r\nGET b\r\n*3\r\n$5\r\nDEBUG\r\n$6\r\nRELOAD\r\n$1\r\nx\r\nGET c\r\n");
    assert_eq!(world.sent(), "GET a GET b GET c");
    assert_eq!(world.got(), "");
    world.says("$1\r\n1\r\n");
    assert!(world.got().starts_with("$1 1 -BULLA eval runs a script"));
    world.says("$1\r\n2\r\n$1\r\n3\r\n");
    let got = world.got();
    assert!(got.starts_with("$1 2 -BULLA debug ") && got.ends_with("$1 3"), "{got}");
    assert_eq!(world.noted(), ["read a get Done", "read b get Done", "read c get Done"]);
}

/// The server waits for its end, so nothing can follow.
#[test]
fn what_is_refused_for_its_keys_after_it_has_begun_to_leave_ends_the_connection() {
    let key = vec![b'k'; 60 << 10];
    let mut bytes = Vec::new();
    crate::resp::write_command(&[&b"MGET"[..], &key, &key, &key, &key, &key], &mut bytes);
    let mut world = World::with(|context| context.policy.too_many = Treatment::Refuse);
    for piece in bytes.chunks(16 << 10) {
        world.asks(piece);
    }
    world.asks("GET a\r\n");
    assert!((HELD..bytes.len()).contains(&world.server.len()), "it has begun, and never gets its end");
    assert!(world.got().starts_with("-BULLA mget has more arguments, or longer keys, than the proxy keeps"));
    assert!(world.session.is_over() && !world.session.wants_client());
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), [""; 0]);
}

/// Of a command that is so long that it would have to begin to leave, what refuses it is told as of any other, and the connection ends.
#[test]
fn what_is_refused_for_its_kind_says_why_however_long_it_is() {
    for (command, says) in [
        (
            &b"EVAL"[..],
            "-BULLA eval runs a script that may touch keys that it does not declare (`policy.scripts`)",
        ),
        (b"BULLA.PURPOSE", "-BULLA commands of the proxy are no longer than some 64 KiB"),
    ] {
        let mut bytes = Vec::new();
        crate::resp::write_command(&[command, &[b'x'; 70 << 10], b"0"], &mut bytes);
        let mut world = World::new();
        for piece in bytes.chunks(16 << 10) {
            world.asks(piece);
        }
        assert!(world.got().starts_with(says), "{}", world.got());
        assert_eq!(world.sent(), "");
        assert!(world.session.is_over());
    }
}

#[test]
fn what_the_policy_records_passes_and_is_recorded() {
    let mut world = World::with(|context| context.policy.scripts = Treatment::Record);
    world.asks("EVALSHA ab12 1 a\r\nCONFIG GET x\r\nNOSUCH x\r\n").says("$-1\r\n*0\r\n-ERR unknown\r\n");
    assert_eq!(
        world.noted(),
        [
            "read a evalsha Done",
            "write a evalsha Done",
            "unknowable(script, ab12) evalsha Done",
            "server config|get Done",
            "unknowable(undescribed, -) NOSUCH Failed error=ERR",
        ]
    );
    let mut world = World::with(|context| context.policy.administrative = Treatment::Refuse);
    world.asks("CONFIG GET x\r\nFLUSHALL\r\n");
    assert_eq!((world.sent().as_str(), world.got().matches("-BULLA").count()), ("", 2));
}

/// The digests are those of `sha1sum`.
#[test]
fn whatever_brings_a_script_is_recorded_with_its_digest_however_long_it_is() {
    let long = format!("return 1{}", " ".repeat(1 << 20));
    let short = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let digest_of_long = "85a5f4e84e293ca354036c6355b8fe42c1c66d1f";
    for (words, expected) in [
        (vec!["EVAL", "return 1", "0"], format!("unknowable(script, {short}) eval Done")),
        (vec!["eval_ro", "return 1", "0"], format!("unknowable(script, {short}) eval_ro Done")),
        (vec!["EVAL", &long, "0"], format!("unknowable(script, {digest_of_long}) eval Done")),
        (vec!["SCRIPT", "LOAD", "return 1"], format!("server({short}) script|load Done")),
        (vec!["script", "load", &long], format!("server({digest_of_long}) script|load Done")),
        (vec!["SCRIPT", "FLUSH"], "server script|flush Done".to_owned()),
        (vec!["FUNCTION", "LOAD", "return 1"], format!("server({short}) function|load Done")),
        (vec!["FUNCTION", "LOAD", "REPLACE", &long], format!("server({digest_of_long}) function|load Done")),
        (vec!["FUNCTION", "RESTORE", "return 1", "FLUSH"], format!("server({short}) function|restore Done")),
        (vec!["FUNCTION", "DELETE", "lib_1"], "server(lib_1) function|delete Done".to_owned()),
        (vec!["FUNCTION", "DELETE", "a person's"], "server function|delete Done".to_owned()),
    ] {
        for piece in [usize::MAX, 1000] {
            let mut world = World::with(|context| context.policy.scripts = Treatment::Record);
            let mut bytes = Vec::new();
            crate::resp::write_command(
                &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(),
                &mut bytes,
            );
            for piece in bytes.chunks(piece) {
                world.asks(piece);
            }
            world.says("+OK\r\n");
            assert_eq!(world.noted(), [expected.as_str()], "{}", words[1]);
            assert_eq!(world.server, bytes);
        }
    }
}

#[test]
fn nothing_that_has_to_be_recorded_passes_while_the_log_takes_nothing() {
    let mut world = World::new();
    world.notes.room = Some(0);
    world.asks("GET a\r\nPING\r\n").says("+PONG\r\n");
    assert_eq!(world.sent(), "PING");
    assert!(world.got().starts_with("-BULLA the audit log takes no entries"));
    world.notes.room = None;
    world.asks("GET a\r\n");
    world.notes.room = Some(0);
    let answered = world.session.from_server(b"$6\r\nsecret\r\n", 0, &mut world.notes);
    assert_eq!(answered, Err(Ended::Unrecorded));
    world.drain();
    assert_eq!(world.got(), "", "the reply stays here");
    world.session.tell_unrecorded();
    world.drain();
    assert!(world.got().starts_with("-BULLA the audit log did not keep what this was"));
}

#[test]
fn a_long_command_begins_to_leave_before_its_end_has_come_and_one_that_is_refused_never_ends() {
    let mut world = World::new();
    let value = vec![b'x'; 3 << 20];
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    world.asks(&head);
    let mut most = 0;
    for piece in value.chunks(16 << 10) {
        world.asks(piece);
        most = most.max(world.session.to_server.waiting());
    }
    world.asks("\r\n").says("+OK\r\n");
    assert_eq!(world.server.len(), head.len() + value.len() + 2);
    assert!(most <= HELD, "{most} bytes were held");
    assert_eq!(world.noted(), ["write k set Done"]);

    let mut world = World::new();
    let key = "x".repeat(70 << 10);
    world.asks(format!("GET a\r\n*4\r\n$4\r\nSORT\r\n${}\r\n{key}\r\n", key.len()));
    assert!(world.server.len() > HELD);
    world.asks("$2\r\nBY\r\n$2\r\nw*\r\nGET b\r\n").says("$-1\r\n");
    assert!(!text(&world.server).contains("w*"), "it has no end");
    assert!(world.got().starts_with("$-1 -BULLA sort names keys by patterns"));
    assert!(world.session.is_over());

    let mut world = World::new();
    world.asks(format!("*3\r\n$4\r\nEVAL\r\n${}\r\n{key}", 2 * key.len()));
    assert_eq!(world.server.len(), 0);
    assert!(world.got().starts_with("-BULLA") && world.session.is_over());
}

#[test]
fn a_command_that_says_that_it_will_be_long_begins_to_leave_and_the_server_refuses_it_by_itself() {
    let announces = |name: &str, length: usize| format!("*3\r\n$3\r\n{name}\r\n$1\r\nk\r\n${length}\r\n");
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let mut world = World::with(|context| context.mode = mode);
        let head = announces("SET", 2_000_000_000);
        world.asks(&head[..head.len() - 1]);
        assert_eq!(world.server, b"", "its length is not known yet");
        world.asks("\n");
        assert_eq!(world.server, head.as_bytes());
        world.says("-ERR Protocol error: invalid bulk length\r\n");
        assert_eq!(world.got(), "-ERR Protocol error: invalid bulk length");
        assert_eq!(world.noted(), [""; 0], "it was never there as a whole");
    }
    // What is not longer than what is held back is held back.
    let mut world = World::new();
    let length = HELD - announces("SET", HELD).len() - 2;
    world.asks(announces("SET", length)).asks("x".repeat(length)).asks("\r");
    assert_eq!(world.server, b"");
    world.asks("\n");
    assert_eq!(world.server.len(), HELD);
    let mut world = World::new();
    world.asks(announces("SET", length + 1));
    assert_eq!(world.server.len(), HELD - length - 2);
    // Nothing of what is refused leaves.
    let mut world = World::with(|context| context.policy.administrative = Treatment::Refuse);
    world.asks("*3\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$70000\r\n");
    assert_eq!(world.server, b"");
    assert!(world.got().starts_with("-BULLA") && world.session.is_over());
}

#[test]
fn replies_are_withheld_as_the_client_wants_and_what_is_done_is_known_all_the_same() {
    let mut world = World::new();
    world.asks("CLIENT REPLY SKIP\r\nSET a x\r\nGET a\r\nCLIENT REPLY OFF\r\nSET b x\r\nEVAL x 0\r\nCLIENT REPLY ON\r\nGET b\r\n");
    assert_eq!(world.sent(), "SET a x GET a SET b x GET b");
    world.says("+OK\r\n$1\r\nx\r\n-OOM no\r\n$-1\r\n");
    assert_eq!(world.got(), "$1 x +OK $-1");
    assert_eq!(
        world.noted(),
        ["write a set Done", "read a get Done", "write b set Failed error=OOM", "read b get Done"]
    );
    world.asks("CLIENT REPLY OFF\r\nGET large\r\n").says(format!("${}\r\n", 3 << 20));
    world.says_so_often(48, &[b'x'; 64 << 10]);
    assert!(world.session.to_client.waiting() <= 64 << 10);
    world.says("\r\n").asks("RESET\r\n").says("+RESET\r\n");
    assert_eq!(world.got(), "+RESET");
}

/// The server reads words as C strings, and looks at every pair of `REPLCONF`.
#[test]
fn nobody_shifts_replies_against_their_commands() {
    let mut world = World::with(|context| context.policy.whole = Treatment::Record);
    let without_reply = [
        "*2\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n",
        "REPLCONF ACK 0\r\n",
        "REPLCONF capa eof ACK 1\r\n",
        "REPLCONF capa eof GETACK *\r\n",
        "*3\r\n$8\r\nREPLCONF\r\n$5\r\nack\0x\r\n$1\r\n1\r\n",
        "CLIENT REPLY SKIP x\r\n",
    ];
    for asked in without_reply {
        world.asks(asked);
        assert_eq!(world.sent(), "", "{asked:?}");
        assert!(world.got().contains(" is not relayed like this"), "{asked:?}");
    }
    world.asks("AUTH eve guess\r\nGET a\r\n").answers("-WRONGPASS no\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done"]);
    assert_eq!(world.got(), "-WRONGPASS no $-1");

    let mut world = World::new();
    world.asks("*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$5\r\nskip\0\r\nGET a\r\nGET b\r\n");
    world.asks("*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$6\r\noff\0no\r\nGET c\r\n");
    assert_eq!(world.sent(), "GET a GET b GET c");
    world.says("$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n");
    assert_eq!(world.got(), "$1 2");
    let mut world = World::new();
    world.asks("MULTI\r\n*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$5\r\nskip\0\r\nEXEC\r\n");
    assert_eq!(world.sent(), "MULTI *1 $7 DISCARD");
}

/// A script says what it likes, and a transaction that leaves no entry waits for none.
#[test]
fn what_a_script_says_is_its_reply() {
    let mut world = World::with(|context| context.policy.scripts = Treatment::Record);
    world.asks("EVAL x 0\r\nGET a\r\n").says("+QUEUED\r\n$-1\r\n");
    assert_eq!(world.got(), "+QUEUED $-1");
}

/// Whatever shifted them: what is answered with what it cannot be is not told, and nobody knows what became of it.
#[test]
fn a_reply_that_a_command_cannot_have_ends_the_connection() {
    let cases: [(&str, &str); 10] = [
        ("MULTI\r\nSET a x\r\nEXEC\r\n", "$1\r\nx\r\n"),
        ("MULTI\r\nSET a x\r\nEXEC\r\n", "+PONG\r\n"),
        ("MULTI\r\nSET a x\r\nEXEC\r\n", "+OK\r\n+OK\r\n"),
        ("MULTI\r\nSET a x\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n"),
        ("SET a x\r\n", "+QUEUED\r\n"),
        ("AUTH eve guess\r\nSET a x\r\n", ":1\r\n"),
        ("SELECT 1\r\nSET a x\r\n", "$2\r\nOK\r\n"),
        ("RESET\r\nSET a x\r\n", "+OK\r\n"),
        ("HELLO 3\r\nSET a x\r\n", "+OK\r\n"),
        ("SUBSCRIBE c\r\nSET a x\r\n", "$1\r\nc\r\n"),
    ];
    for (asked, said) in cases {
        let mut world = World::new();
        world.asks(asked);
        let ended = world.session.from_server(said.as_bytes(), 5, &mut world.notes);
        assert_eq!(ended, Err(Ended::NotItsReply), "{asked:?} {said:?}");
        world.session.end(9, &mut world.notes);
        // What stands behind an AUTH waits for its answer: the server never got it.
        let noted: &[&str] = match asked.split(' ').next() {
            Some("AUTH") => &[],
            Some("SELECT") => &["write a set Unknown db=1"],
            _ => &["write a set Unknown"],
        };
        assert_eq!(world.noted(), noted, "{asked:?} {said:?}");
        world.drain();
        let told = said.rsplit_once("\r\n").and_then(|(said, _)| said.rsplit_once("\r\n"));
        let told = told.filter(|_| said.starts_with('+')).map_or("", |(told, _)| told);
        assert_eq!(world.got(), told.replace("\r\n", " "), "{asked:?} {said:?}");
    }
}

/// Nobody can have answered what has not left yet.
#[test]
fn a_reply_that_nothing_which_has_left_waits_for_ends_the_connection() {
    let cases = [
        // Of a reply too much: the last one would be that of AUTH, which goes alone.
        ("GET a\r\nAUTH billing guess\r\nGET b\r\n", "$-1\r\n+OK\r\n"),
        ("GET a\r\nHELLO 3 AUTH billing guess\r\nGET b\r\n", "$-1\r\n%0\r\n"),
        ("GET a\r\n", "$-1\r\n$-1\r\n"),
        ("PING\r\nGET a\r\n", "+PONG\r\n$-1\r\n*1\r\n:1\r\n"),
    ];
    for (asked, said) in cases {
        let mut world = World::new();
        world.asks(asked);
        let ended = world.session.from_server(said.as_bytes(), 5, &mut world.notes);
        assert_eq!(ended, Err(Ended::NotItsReply), "{asked:?}");
        world.drain();
        assert!(world.got().ends_with("$-1"), "{asked:?}");
        world.session.end(9, &mut world.notes);
        assert_eq!(world.noted(), ["read a get Done"], "{asked:?}");
    }
    // That it began before the command came changes nothing.
    let mut world = World::new();
    world.says("$").asks("GET a\r\n");
    let ended = world.session.from_server(b"1\r\nx\r\n", 5, &mut world.notes);
    assert_eq!((ended, world.got().as_str()), (Err(Ended::NotItsReply), ""));
    let mut world = World::new();
    let ended = world.session.from_server(b"$1000\r\nx", 5, &mut world.notes);
    assert_eq!((ended, world.got().as_str()), (Err(Ended::NotItsReply), ""), "no part of it leaves");
    // Nor is anything known of what waits for its intent, or has left in part.
    let mut world = World::with(|context| context.mode = Mode::BeforeSend);
    world.durable = 0;
    world.asks("GET a\r\n");
    assert_eq!(world.session.from_server(b"$-1\r\n", 5, &mut world.notes), Err(Ended::NotItsReply));
}

/// A server says why it reads no further, and closes the connection.
#[test]
fn an_error_that_answers_nothing_is_the_last_that_is_told() {
    let mut world = World::new();
    world.asks("GET a\r\n").says("$-1\r\n-ERR max").says("imum\r\n").asks("SET b x\r\n");
    assert_eq!((world.got().as_str(), world.sent().as_str()), ("$-1 -ERR maximum", "GET a"));
    assert!(world.session.is_over() && !world.session.wants_client());
    let mut world = World::with(|context| context.mode = Mode::BeforeSend);
    world.durable = 0;
    world.asks("SET a x\r\n").says("-ERR no\r\n");
    world.durable = Ticket::MAX;
    world.drain();
    assert_eq!((world.got().as_str(), world.sent().as_str()), ("-ERR no", ""));
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["write a set Unknown stage=Intended"]);
}

#[test]
fn what_is_no_command_ends_the_connection_once_all_before_it_is_answered() {
    let mut world = World::new();
    world.asks("GET a\r\n*1\r\n!\r\nGET b\r\n");
    assert_eq!(world.sent(), "GET a");
    assert!(!world.session.is_over());
    world.says("$-1\r\n");
    assert_eq!(world.got(), "$-1 -ERR Protocol error: expected '$' before an argument");
    assert!(world.session.is_over() && world.session.is_violated());
    let mut world = World::with(|context| context.unfollowable = Unfollowable::Relay);
    world.asks("GET a\r\n*1\r\n!\r\nGET b\r\n").says("what?");
    assert_eq!(world.sent(), "GET a *1 ! GET b");
    assert_eq!(world.got(), "what?");
    assert_eq!(world.noted(), ["read a get Unknown", "unaudited  Unknown"]);
}
