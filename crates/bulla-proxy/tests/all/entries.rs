//! Entries: one a key and role, of whom, and why.

use super::world::{Client, MODES, World, plain};
use std::net::TcpStream;

const RULES: &str = "[[rules]]\nkey = \"user:{subject}:*\"\n[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"";

#[test]
fn every_key_that_is_used_has_its_entries_with_whose_data_it_is() {
    for mode in MODES {
        let world = World::new(&format!("mode = \"{mode}\""), RULES, &[]);
        let mut client = world.connect();
        let replies = client.ask_all(&[
            "SET user:42:name ada",
            "GET user:42:name",
            "GETDEL user:42:name",
            "MSET user:1:a x user:2:a y other z",
            "DEL user:1:a none",
            "HSET key7 USR eve NAME x",
            "HGET key7 NAME",
            "RENAME key7 key8",
            "HGETALL key8",
            "LPUSH other x",
            "SELECT 3",
            "SET user:3:a x",
            "KEYS *",
            "PING",
        ]);
        assert_eq!(replies[..6], ["OK", "ada", "ada", "OK", "1", "2"]);
        let told = world.entries();
        let shown = plain(&told).into_iter().filter(|_| true).collect::<Vec<_>>();
        let over = told.iter().zip(shown).filter(|(entry, _)| !entry.contains("intended"));
        let expected = [
            "write user:42:name 0 subject=42",
            "read user:42:name 0 subject=42",
            "read user:42:name 0 subject=42",
            "delete user:42:name 0 subject=42",
            "write user:1:a 0 subject=1",
            "write user:2:a 0 subject=2",
            "write other 0",
            "delete user:1:a 3 subject=1",
            "delete none 3",
            "write key7 0 subject=eve",
            "read key7 0 subject=eve",
            "read key7 0 subject=eve",
            "delete key7 0 subject=eve",
            "write key8 0 subject=eve",
            "read key8 0 subject=eve",
            "write other 1",
            "write user:3:a 0 subject=3",
            "read user:3:a 0 subject=3",
        ];
        assert_eq!(over.map(|(_, shown)| shown).collect::<Vec<_>>(), expected, "{mode}");
        let intended = told.iter().filter(|entry| entry.contains("\"stage\":\"intended\"")).count();
        assert_eq!(intended > 0, mode == "before-send", "{mode}");
        let wrong = told.iter().find(|entry| entry.starts_with("write other 1")).unwrap();
        assert!(
            wrong.ends_with(r#"payload={"command":"lpush","database":0,"error":"WRONGTYPE"}"#),
            "{wrong}"
        );
        assert!(told.last().unwrap().contains(r#""command":"keys","database":3"#));
    }
}

#[test]
fn who_acts_and_why_is_told_as_the_server_and_the_client_say() {
    let world = World::new("claims = [\"ada\"]", RULES, &[]);
    let mut admin = world.connect();
    assert_eq!(admin.ask("ACL SETUSER ada on >secret ~* +@all"), "OK");
    let mut client = world.connect();
    let replies = client.ask_all(&[
        "GET a",
        "AUTH ada wrong",
        "GET b",
        "AUTH ada secret",
        "BULLA.PURPOSE support",
        "GET c",
        "GET d",
        "BULLA.PURPOSE SESSION billing",
        "CLIENT SETNAME web",
        "GET e",
        "RESET",
        "BULLA.PURPOSE guess",
        "GET f",
    ]);
    assert!(replies[1].starts_with("WRONGPASS") && replies[4] == "OK", "{replies:?}");
    let told = world.entries();
    let reads = told.iter().filter(|entry| entry.starts_with("read")).map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        reads,
        [
            r#"read a 0 payload={"command":"get","database":0}"#,
            r#"read b 0 payload={"command":"get","database":0}"#,
            r#"read c 0 actor=ada purpose=support payload={"command":"get","database":0}"#,
            r#"read d 0 actor=ada payload={"command":"get","database":0}"#,
            r#"read e 0 actor=ada purpose=billing payload={"command":"get","database":0,"name":"web"}"#,
            r#"read f 0 payload={"command":"get","database":0,"claimed_purpose":"guess"}"#,
        ]
    );
    assert!(!told.concat().contains("secret"), "nothing of what authenticates is kept");
}

#[test]
fn transactions_are_recorded_as_they_were_carried_out() {
    for mode in ["async", "before-reply"] {
        let world = World::of_workers(1, &format!("mode = \"{mode}\""), RULES, &[]);
        let mut client = world.connect();
        let replies = client.ask_all(&[
            "SET text x",
            "MULTI",
            "SET a x",
            "LPUSH text y",
            "SELECT 2",
            "GET b",
            "EXEC",
            "MULTI",
            "SET c x",
            "DISCARD",
            "GET d",
        ]);
        assert!(replies[6].starts_with("Array(4) OK WRONGTYPE"), "{replies:?}");
        // Another client changes what is watched.
        assert_eq!(client.ask_all(&["WATCH a", "MULTI", "SET a y"]), ["OK", "OK", "QUEUED"]);
        assert_eq!(world.connect().ask_all(&["SELECT 2", "SET a z"]), ["OK", "OK"]);
        assert_eq!(client.ask("EXEC"), "null");
        let told = world.entries();
        let expected =
            ["write text 0", "write a 0", "write text 1", "read b 0", "read d 0", "read a 0", "write a 0"];
        assert_eq!(plain(&told), expected, "{mode}");
    }
}

#[test]
fn what_a_script_is_named_by_is_told_and_keys_beyond_those_that_are_listed_have_a_digest() {
    let world = World::edged("", None, &[]);
    let tables = "[policy]\nscripts = \"record\"\n[limits]\nlisted_keys = 2";
    let (mut sha, mut of_long) = (String::new(), String::new());
    // Another proxy of the same log has the same digests.
    for _ in 0..2 {
        let proxy = world.start_with(&world.config("", None, tables)).unwrap();
        let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
        assert_eq!(client.ask("MSET a 1 b 2 c 3"), "OK");
        sha = client.ask("SCRIPT LOAD \"return {1,2,3}\"");
        // More than the proxy keeps of a command.
        let long = format!("return 1{}", " ".repeat(1 << 20));
        of_long = client.command(&[b"SCRIPT", b"LOAD", long.as_bytes()]).told();
        assert_eq!(client.command(&[b"EVAL", long.as_bytes(), b"0"]).told(), "1");
        assert!(client.ask("SCRIPT LOAD \"return (\"").starts_with("ERR "));
        assert_eq!(client.ask("EVAL \"return {1,2,3}\" 0"), "Array(3) 1 2 3");
        assert!(client.ask("KEYS *").starts_with("Array(3)"));
        // What is queued is no reply that names keys.
        assert_eq!(client.ask_all(&["MULTI", "KEYS *", "DISCARD"])[1], "QUEUED");
        assert!(client.ask("KEYS *").starts_with("Array(3)"));
    }
    let told = world.entries();
    assert_eq!(sha.len(), 40, "{sha}");
    let evals =
        told.iter().filter(|it| it.contains("\"eval\"") && it.contains(&format!("\"script\":\"{sha}\"")));
    assert_eq!(evals.count(), 2, "{told:?}");
    for name in [&sha, &of_long] {
        let named = told.iter().filter(|it| it.contains(&format!("\"script\":\"{name}\"")));
        let words = named.map(|it| it.split(' ').next().unwrap()).collect::<Vec<_>>();
        assert_eq!(words, ["administer", "execute"].repeat(2), "{told:?}");
    }
    assert_eq!(told.iter().filter(|it| it.starts_with("administer  1")).count(), 2, "{told:?}");
    let mut lists = told.iter().filter(|it| it.starts_with("list ")).collect::<Vec<_>>();
    assert_eq!(lists.len(), 4, "{told:?}");
    lists.dedup();
    assert!(lists.len() == 1 && lists[0].contains("\"unlisted\":1,\"reply_digest\":\""), "{lists:?}");
}

#[test]
fn values_are_recorded_where_that_is_asked_for_and_no_one_elses() {
    let tables = format!("{RULES}\n[policy]\nwhole = \"record\"");
    let world = World::of_workers(1, "record_values = \"1 KiB\"", &tables, &[]);
    let mut client = world.connect();
    let long = "x".repeat(2000);
    client.command(&[b"SET", b"user:1:a", b"\xffsecret\""]).told();
    client.command(&[b"SET", b"user:1:long", long.as_bytes()]).told();
    for line in [
        "GET user:1:a",
        "GET user:1:long",
        "MSET user:1:b one user:2:b two",
        "MGET user:1:b user:2:b",
        "SET other theirs",
        "GET other",
        "RPUSH user:3:l p q",
        "LRANGE user:3:l 0 -1",
        "SET user:3:l p NX",
        "SADD user:1:s p",
        "SADD user:2:s q",
        "SUNION user:1:s user:2:s",
        "WATCH user:1:a",
        "MIGRATE 127.0.0.1 1 user:1:nothing 0 100 COPY",
    ] {
        client.ask(line);
    }
    let told = world.entries();
    let values = told.iter().map(|entry| {
        let payload = entry.split_once(" payload=").unwrap().1;
        let payload: serde_json::Value = serde_json::from_str(payload).unwrap();
        (payload["values"].clone(), payload["values_cut"] == true)
    });
    let none = serde_json::Value::Null;
    let cut = &long[..1024];
    let expected = [
        (serde_json::json!(["%FFsecret\""]), false),
        (serde_json::json!([cut]), true),
        (serde_json::json!(["%FFsecret\""]), false),
        (serde_json::json!([cut]), true),
        (serde_json::json!(["one"]), false),
        (serde_json::json!(["two"]), false),
        (serde_json::json!(["one"]), false),
        (serde_json::json!(["two"]), false),
        (none.clone(), false),
        (none.clone(), false),
        (serde_json::json!(["p", "q"]), false),
        (serde_json::json!(["p", "q"]), false),
        (none.clone(), false),
        (serde_json::json!(["p"]), false),
        (serde_json::json!(["q"]), false),
        // What both have could not be erased with either.
        (none.clone(), false),
        (none.clone(), false),
        // `OK` and `NOKEY` are the server's words.
        (none.clone(), false),
        (none.clone(), false),
        (none, false),
    ];
    assert_eq!(values.collect::<Vec<_>>(), expected, "{told:?}");
    assert_eq!(told.concat().matches("theirs").count(), 0);
}
