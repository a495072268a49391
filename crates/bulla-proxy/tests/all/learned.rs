//! What values taught of whose data keys are: it outlives the proxy, and goes with the person.

use super::world::{MODES, Warned, World, plain};
use bulla_proxy::warnings::Kind;

const RULES: &str = "[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"";

/// A proxy of one worker, whose entries are in the order of the replies.
fn world() -> World {
    World::of_workers(1, "", RULES, &[])
}

/// The last entries, without their payloads.
fn last(entries: &[String], count: usize) -> Vec<&str> {
    let shown = plain(entries);
    shown[shown.len() - count..].to_vec()
}

#[test]
fn it_outlives_the_proxy_and_nothing_of_it_is_in_clear() {
    let (mut world, warned) = (world(), Warned::default());
    let commands = [
        "HSET key-one USR adalovelace",
        "HSET key-two USR bob",
        "DEL key-two",
        "HSET key-three USR bob",
        "RENAME key-one key-four",
    ];
    world.connect().ask_all(&commands);
    world.restart(RULES, &warned, |world| {
        let kept = std::fs::read(world.keys().join("learned")).unwrap();
        let kept = String::from_utf8_lossy(&kept);
        assert!(!kept.contains("lovelace") && !kept.contains("key-"));
    });
    let reads = ["HGETALL key-three", "HGETALL key-four", "HSET key-one a b", "HSET key-two a b"];
    world.connect().ask_all(&reads);
    // Once more: what was read back is kept as well, and what has changed since.
    world.connect().ask_all(&["DEL key-three", "HSET key-three a b"]);
    world.restart(RULES, &warned, |_| ());
    world.connect().ask_all(&["HGETALL key-three", "HGETALL key-four"]);
    assert_eq!(*warned.lock().unwrap(), []);
    let expected = [
        "read key-three 0 subject=bob",
        "read key-four 0 subject=adalovelace",
        "write key-one 0",
        "write key-two 0",
        "delete key-three 0 subject=bob",
        "write key-three 0",
        "read key-three 0",
        "read key-four 0 subject=adalovelace",
    ];
    assert_eq!(last(&world.entries(), 8), expected);
}

#[test]
fn what_a_key_becomes_is_of_the_same_person_at_once() {
    let world = world();
    let commands =
        ["HSET key1 USR ada", "RENAME key1 key2", "RENAME key2 key2", "COPY key2 key3", "MOVE key3 1"];
    world.connect().ask_all(&commands);
    let expected = [
        "write key1 0 subject=ada",
        "read key1 0 subject=ada",
        "delete key1 0 subject=ada",
        "write key2 0 subject=ada",
        "read key2 0 subject=ada",
        "delete key2 0 subject=ada",
        "write key2 0 subject=ada",
        "read key2 0 subject=ada",
        "create key3 0 subject=ada",
    ];
    let entries = world.entries();
    let entries = plain(&entries);
    assert_eq!(entries[..expected.len()], expected);
    let moved = &entries[expected.len()..];
    assert!(!moved.is_empty() && moved.iter().all(|entry| entry.ends_with("subject=ada")), "{moved:?}");
}

#[test]
fn whoever_is_erased_is_known_of_no_key_once_that_is_acknowledged_nor_later() {
    let (mut world, warned) = (world(), Warned::default());
    let mut client = world.connect();
    client.ask_all(&["HSET key1 USR ada", "HSET key2 USR bob", "HSET key3 USR ada"]);
    world.flush();
    world.erase("ada");
    assert_eq!(client.ask("HGET key1 USR"), "ada", "the server still has it");
    client.ask_all(&["HGET key2 USR", "HSET key3 USR ada", "HGET key3 USR"]);
    drop(client);
    world.restart(RULES, &warned, |_| ());
    world.connect().ask_all(&["HGET key1 USR", "HGET key2 USR", "HGET key3 USR"]);
    let expected = [
        "read key1 0",
        "read key2 0 subject=bob",
        "write key3 0 subject=ada",
        "read key3 0 subject=ada",
        "read key1 0",
        "read key2 0 subject=bob",
        "read key3 0 subject=ada",
    ];
    assert_eq!(*warned.lock().unwrap(), []);
    assert_eq!(last(&world.entries_left(), 7), expected);
}

#[test]
fn whoever_is_erased_while_there_is_no_proxy_is_known_of_no_key_whatever_file_is_put_back() {
    let (mut world, warned) = (world(), Warned::default());
    world.connect().ask_all(&["HSET key1 USR ada", "HSET key2 USR bob"]);
    let mut older = Vec::new();
    world.restart(RULES, &warned, |world| {
        older = std::fs::read(world.keys().join("learned")).unwrap();
        world.erase("ada");
    });
    world.connect().ask_all(&["HGET key1 USR", "HGET key2 USR"]);
    world.restart(RULES, &warned, |world| {
        let file = world.keys().join("learned");
        assert!(
            std::fs::metadata(&file).unwrap().len() < older.len() as u64,
            "of the erased nothing is left"
        );
        std::fs::write(file, &older).unwrap();
    });
    world.connect().ask_all(&["HGET key1 USR", "HGET key2 USR"]);
    assert_eq!(*warned.lock().unwrap(), []);
    let expected = ["read key1 0", "read key2 0 subject=bob", "read key1 0", "read key2 0 subject=bob"];
    assert_eq!(last(&world.entries_left(), 4), expected);
}

#[test]
fn a_file_that_is_damaged_is_warned_of_and_teaches_nothing() {
    let (mut world, warned) = (world(), Warned::default());
    world.connect().ask_all(&["HSET key1 USR ada", "HSET key2 USR bob"]);
    world.restart(RULES, &warned, |world| {
        let file = world.keys().join("learned");
        let mut bytes = std::fs::read(&file).unwrap();
        let end = bytes.len() - 40;
        bytes[end] ^= 1;
        std::fs::write(file, bytes).unwrap();
    });
    world.connect().ask_all(&["HGET key1 USR", "HGET key2 USR", "HSET key2 USR bob"]);
    assert_eq!(*warned.lock().unwrap(), [Kind::Recalled]);
    world.restart(RULES, &warned, |_| ());
    world.connect().ask("HGET key2 USR");
    assert_eq!(warned.lock().unwrap().len(), 1, "there is a new one");
    let expected = ["read key1 0", "read key2 0", "write key2 0 subject=bob", "read key2 0 subject=bob"];
    assert_eq!(last(&world.entries(), 4), expected);
}

#[test]
fn a_key_of_which_the_server_says_that_it_is_gone_or_new_is_nobodys() {
    let world = world();
    let mut client = world.connect();
    for key in ["key1", "key2", "key3"] {
        client.ask_all(&[&format!("HSET {key} USR ada"), &format!("PEXPIRE {key} 1")]);
    }
    // The server takes it away by itself, and a reply says so.
    while client.ask("EXISTS key1") == "1" {}
    while client.ask("TYPE key3") != "none" {}
    while client.ask("DBSIZE") != "0" {}
    client.ask_all(&["HSET key1 NAME x", "HGET key1 NAME", "HSET key3 NAME x", "RPUSH key2 x", "LLEN key2"]);
    let expected = ["write key1 0", "read key1 0", "write key3 0", "create key2 0", "read key2 0"];
    assert_eq!(last(&world.entries(), 5), expected);
}

#[test]
fn a_log_without_erasure_keeps_nothing_of_it() {
    let (mut world, warned) = (World::without_erasure(RULES), Warned::default());
    world.connect().ask_all(&["HSET key1 USR ada", "HGET key1 USR"]);
    world.restart(RULES, &warned, |world| assert!(!world.keys().join("learned").exists()));
    world.connect().ask("HGET key1 USR");
    assert_eq!(last(&world.entries(), 2), ["read key1 0 subject=ada", "read key1 0"]);
}

#[test]
fn a_key_is_of_its_person_until_it_is_gone_whatever_a_command_tried() {
    let (world, mut expected) = (world(), Vec::new());
    let mut client = world.connect();
    for (command, told, subject) in [
        ("EXPIRE key1 -1 XX", "0", " subject=ada"),
        ("EXPIREAT key1 1 XX", "0", " subject=ada"),
        ("EXPIREAT key1 4102444800", "1", " subject=ada"),
        ("EXPIREAT key1 1", "1", ""),
        ("EXPIRE key1 -1", "1", ""),
        ("DEL key1 none", "1", ""),
        ("UNLINK none key1", "1", ""),
        ("SET key1 x EXAT 1", "OK", ""),
    ] {
        client.ask("HSET key1 USR ada");
        assert_eq!(client.ask(command), told, "{command}");
        client.ask_all(&["HSET key1 NAME x", "HGET key1 NAME", "DEL key1"]);
        expected.push(format!("read key1 0{subject}"));
    }
    let entries = world.entries();
    let reads = plain(&entries).into_iter().filter(|entry| entry.starts_with("read"));
    assert_eq!(reads.collect::<Vec<_>>(), expected);
}

#[test]
fn a_key_that_is_given_a_time_that_is_over_is_deleted_in_every_mode() {
    for mode in MODES {
        let world = World::of_workers(1, &format!("mode = \"{mode}\""), RULES, &[]);
        let mut client = world.connect();
        client.ask("HSET key1 USR ada");
        let commands = ["EXPIREAT key1 1", "SET a v", "GETEX a PXAT 1", "MULTI", "SET a v EXAT 1", "EXEC"];
        client.ask_all(&commands);
        let told = world.entries();
        let told = told.iter().filter(|entry| entry.starts_with("delete"));
        let told = told.cloned().collect::<Vec<_>>();
        let (intended, over) =
            (plain(&told).into_iter()).partition::<Vec<_>, _>(|entry| entry.contains(" 3"));
        let each = ["delete key1 0 subject=ada", "delete a 0", "delete a 0"];
        assert_eq!(over, each, "{mode}");
        let each = each.map(|entry| entry.replace(" 0", " 3"));
        assert_eq!(intended, if mode == "before-send" { each.to_vec() } else { Vec::new() });
    }
}

#[test]
fn a_part_of_a_value_that_is_changed_teaches_what_it_says_and_no_more() {
    let rules = format!("{RULES}\n[[rules]]\nkey = \"cart*\"\njson_path = \"$.id\"");
    let world = World::of_workers(1, "", &rules, &[]);
    let mut client = world.connect();
    let mut expected = Vec::new();
    for (value, command, told, key, subject) in [
        ("HSET key1 USR 42", "HINCRBY key1 USR 1", "43", "key1", " subject=43"),
        ("HSET key1 USR 42 N 1", "HINCRBY key1 N 1", "2", "key1", " subject=42"),
        ("HSET key1 USR 42", "HINCRBYFLOAT key1 USR 1", "43", "key1", ""),
        ("SET cart1 {\"id\":\"ada\"}", "SETRANGE cart1 0 {\"id\":\"eve\"}", "12", "cart1", " subject=eve"),
        ("SET cart1 {\"id\":\"ada\"}", "SETRANGE cart1 0 {\"id\":\"ev", "12", "cart1", " subject=ada"),
        ("SET cart1 {\"id\":\"ada\"}", "SETRANGE cart1 0 123456789012", "12", "cart1", ""),
        ("SET cart1 {\"id\":\"ada\"}", "APPEND cart1 x", "13", "cart1", " subject=ada"),
    ] {
        let word = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        let mut say =
            |line: &str| client.command(&word(line).iter().map(Vec::as_slice).collect::<Vec<_>>()).told();
        say(value);
        assert_eq!(say(command), told, "{command}");
        say(&format!("EXISTS {key}"));
        say(&format!("DEL {key}"));
        expected.push(format!("read {key} 0{subject}"));
    }
    let entries = world.entries();
    let reads = entries.iter().filter(|entry| entry.contains("\"exists\"")).cloned().collect::<Vec<_>>();
    assert_eq!(plain(&reads), expected);
}

#[test]
fn a_key_that_two_clients_change_at_once_is_nobodys_until_one_changes_it_alone() {
    let world = World::of_workers(2, "", RULES, &[]);
    let (mut one, mut other, mut around) = (world.connect(), world.connect(), world.around());
    let lines = [("HSET key1 USR ada", "DEL key1"), ("DEL key2", "HSET key2 USR ada")];
    for (first, second) in lines {
        // The server keeps both waiting until it has both.
        assert_eq!(around.ask("CLIENT PAUSE 600000 WRITE"), "OK");
        for (count, (client, line)) in [(&mut one, first), (&mut other, second)].into_iter().enumerate() {
            client.send(format!("{line}\r\n"));
            let blocked = format!("blocked_clients:{}", count + 1);
            while !around.ask("INFO clients").contains(&blocked) {}
        }
        around.ask("CLIENT UNPAUSE");
        one.told();
        other.told();
    }
    one.ask_all(&["HSET key1 NAME x", "HSET key2 NAME x", "HSET key1 USR ada", "HGET key1 NAME"]);
    let expected = ["write key1 0", "write key2 0", "write key1 0 subject=ada", "read key1 0 subject=ada"];
    let entries = world.entries();
    let entries =
        plain(&entries).into_iter().filter(|entry| !entry.starts_with("delete")).collect::<Vec<_>>();
    // Whoever says whose a key is has said so, whatever becomes of it. That entry is of another worker, so it is anywhere in the log.
    let (taught, of_one) =
        (entries.iter()).partition::<Vec<&str>, _>(|it| **it == "write key2 0 subject=ada");
    assert_eq!(taught.len(), 1, "{entries:?}");
    assert_eq!(of_one[of_one.len() - expected.len()..], expected, "{entries:?}");
}
