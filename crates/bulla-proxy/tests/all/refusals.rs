//! What the proxy refuses, in its place among the replies of a running server.

use super::world::{Client, MODES, World, plain};
use bulla_testkit::RedisServer;
use std::net::TcpStream;

#[test]
fn refusals_stand_in_their_place_and_abort_transactions() {
    let world = World::new("mode = \"before-reply\"", "", &[]);
    let mut client = world.connect();
    let eval = "EVAL \"return redis.call('get','user:42')\" 0";
    let replies =
        client.ask_all(&["SET a 1", eval, "GET a", "MULTI", "SET a 2", eval, "INCR a", "EXEC", "GET a"]);
    assert!(replies[1].starts_with("BULLA eval runs a script"), "{replies:?}");
    assert!(replies[5].starts_with("BULLA ") && replies[7].starts_with("EXECABORT"), "{replies:?}");
    assert_eq!((replies[2].as_str(), replies[8].as_str()), ("1", "1"));
    let replies = client.ask_all(&["MULTI", "INCR a", "EXEC", "MULTI", "BULLA.PURPOSE x", "EXEC", "GET a"]);
    assert!(replies[4].starts_with("BULLA ") && replies[5].starts_with("EXECABORT"), "{replies:?}");
    assert_eq!((replies[2].as_str(), replies[6].as_str()), ("Array(1) 2", "2"));
    // INCR reads what it changes, too.
    let incremented = ["read a 0", "write a 0"];
    let expected = [&["write a 0", "read a 0", "read a 0"][..], &incremented, &["read a 0"]].concat();
    assert_eq!(plain(&world.entries()), expected);
}

/// Whoever could, would read what is somebody's without an entry that says so.
#[test]
fn a_key_behind_more_than_is_kept_is_read_by_nobody() {
    let world = World::new("", "[[rules]]\nkey = \"user:{subject}\"", &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("SET user:ada secret"), "OK");
    let behind = |others: usize, key: &str| {
        let mut words = vec![key.as_bytes(); others + 1];
        words[0] = b"MGET";
        words.push(b"user:ada");
        words.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let mut ask = |words: &[Vec<u8>]| {
        let words = words.iter().map(Vec::as_slice).collect::<Vec<_>>();
        client.command(&words).told()
    };
    assert!(ask(&behind(4094, "none")).ends_with(" secret"));
    let refused = ask(&behind(4095, "none"));
    assert!(refused.contains("(`policy.too_many`)"), "{refused}");
    // One of which the beginning has gone to the server is not carried out either.
    let long = "n".repeat(100);
    let refused = ask(&behind(4095, &long));
    assert!(refused.contains("(`policy.too_many`)"), "{refused}");
    assert_eq!(client.told(), "the end");
    let entries = world.entries();
    let of_ada = entries.iter().filter(|entry| entry.contains(" user:ada ")).count();
    assert_eq!((of_ada, entries.len()), (2, 2 + 4094));
}

#[test]
fn replies_that_are_not_wanted_do_not_come() {
    let world = World::new("", "", &[]);
    let mut client = world.connect();
    client.send("CLIENT REPLY OFF\r\nSET a 1\r\nGET a\r\nCLIENT REPLY ON\r\n");
    assert_eq!(client.told(), "OK");
    client.send("CLIENT REPLY SKIP\r\nGET a\r\nSTRLEN a\r\n");
    assert_eq!(client.told(), "1");
    assert_eq!(client.ask("GET a"), "1");
    assert_eq!(plain(&world.entries()), ["write a 0", "read a 0", "read a 0", "read a 0", "read a 0"]);
}

#[test]
fn a_server_of_a_cluster_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new("", "", &[]);
    let cluster = RedisServer::start(folder.path(), &["--cluster-enabled", "yes", "--port", "0"]);
    let path = cluster.socket().display().to_string();
    let refused = world.start_before(cluster.socket(), "").err().unwrap();
    assert_eq!(refused.kind(), bulla::ErrorKind::Refused);
    assert!(refused.to_string().contains(&path) && refused.to_string().contains("cluster mode"), "{refused}");
}

#[test]
fn the_proxys_own_user_needs_the_table_of_commands_and_nothing_else() {
    let world = World::new("", "", &[]);
    let folder = tempfile::tempdir().unwrap();
    let user = "bulla on >ours -@all +command";
    let words = user.split(' ').collect::<Vec<_>>();
    let arguments = [&["--requirepass", "theirs", "--user"][..], &words].concat();
    let server = RedisServer::start(folder.path(), &arguments);
    let file = folder.path().join("password");
    let start = |password: &str, more: &str| {
        std::fs::write(&file, password).unwrap();
        world.start_before(server.socket(), &format!("password_file = {file:?}\n{more}"))
    };
    let refused = world.start_before(server.socket(), "").err().unwrap().to_string();
    assert!(refused.contains("wants a password"), "{refused}");
    let refused = start("guess\n", "user = \"bulla\"").err().unwrap().to_string();
    assert!(refused.contains("does not let bulla in") && refused.contains("WRONGPASS"), "{refused}");
    let refused = start("\n", "").err().unwrap().to_string();
    assert!(refused.contains("has no password in it"), "{refused}");
    let proxy = start("ours\n", "user = \"bulla\"").unwrap();
    assert_eq!(proxy.pinned(), None);
    // The client says itself who it is, to the server.
    let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
    let replies = client.ask_all(&["GET a", "AUTH theirs", "GET a"]);
    assert_eq!(replies[1..], ["OK", "null"]);
    assert!(replies[0].starts_with("NOAUTH"), "{replies:?}");
}

#[test]
fn a_command_of_which_the_server_refuses_how_long_it_says_to_be_is_refused_before_it_has_come() {
    for mode in MODES {
        let world = World::new(&format!("mode = \"{mode}\""), "", &[]);
        let mut client = world.connect();
        client.send("SET a 1\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$2000000000\r\n");
        assert_eq!(client.told(), "OK");
        assert_eq!(client.told(), "ERR Protocol error: invalid bulk length", "{mode}");
        assert_eq!(client.told(), "the end", "{mode}");
        let told = world.entries();
        assert!(told.iter().all(|entry| entry.starts_with("write a ")), "{told:?}");
    }
}

/// A server tells commands that it has under other names under their old ones.
#[test]
fn a_server_that_renamed_commands_is_stood_before_only_where_unknown_names_are_refused() {
    let world = World::new("", "", &[]);
    let folder = tempfile::tempdir().unwrap();
    let renamed = ["EVAL run", "GET fetch", "AUTH get", "CONFIG"];
    let arguments = renamed.iter().flat_map(|it| {
        let (old, new) = it.split_once(' ').unwrap_or((it, ""));
        ["--rename-command", old, new]
    });
    let server = RedisServer::start(folder.path(), &arguments.collect::<Vec<_>>());
    let refused = world.start_before(server.socket(), "").err().unwrap().to_string();
    assert!(refused.contains(": auth, eval, get") && refused.contains("`policy.undescribed`"), "{refused}");
    assert!(!refused.contains("config"), "what nobody can call is no danger: {refused}");
    let upstream = format!("unix = {:?}", server.socket());
    let config = |policy: &str| world.config("", Some(&upstream), &format!("[policy]\n{policy}"));
    let proxy = world.start_with(&config("undescribed = \"refuse\"\nscripts = \"record\"")).unwrap();
    let refused = proxy.reloader().reload(&config("undescribed = \"record\"")).unwrap_err().to_string();
    assert!(refused.contains(": auth, eval, get"), "{refused}");
    let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
    for asked in ["run x 0", "fetch a", "GET default x", "EVAL x 0", "CONFIG GET x"] {
        let told = client.ask(asked);
        assert!(told.starts_with("BULLA ") && told.contains("`policy.undescribed`"), "{asked}: {told}");
    }
    assert_eq!(client.ask("SET a 1"), "OK");
}
