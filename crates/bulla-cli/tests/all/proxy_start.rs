//! `proxy`: what it looks at before it serves clients, and says of what it finds.

use crate::proxy::{RULE, config, line, start_telling};
use crate::support::{Place, bulla, command, command_under, exit, finish, signal};
use bulla_testkit::RedisServer;
use rustix::process::Signal;
use std::fs::Permissions;
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A proxy with this configuration, which may have so many descriptors: so many at first, and as many as the other once it asks.
fn limited(place: &Place, server: &RedisServer, text: &str, descriptors: &str) -> Command {
    let text = format!("workers = 1\nmode = \"before-reply\"\n{}", config(place, server, text));
    let file = place.write("proxy.toml", text.as_bytes());
    command_under(&["prlimit", &format!("--nofile={descriptors}")], &["proxy".into(), file.into()])
}

#[test]
fn clients_that_come_in_crowds_do_not_take_the_descriptors_of_the_log() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let (child, mut told, client, before) = start_telling(limited(&place, &server, RULE, "200:200"));
    assert_eq!(before, "", "nobody asked for more clients than there are descriptors for");
    let mut client = BufReader::new(client);
    let address = client.get_ref().peer_addr().unwrap();
    let mut set = |value: &str| {
        client.get_mut().write_all(format!("SET user:ada:name {value}\r\n").as_bytes()).unwrap();
        assert_eq!(line(&mut client), "+OK");
    };
    set("first");
    let crowd = (0..150).map(|_| TcpStream::connect(address).unwrap()).collect::<Vec<_>>();
    assert_eq!(line(&mut BufReader::new(crowd.last().unwrap())), "-ERR max number of clients reached");
    let said = line(&mut told);
    assert!(said.starts_with("there are 34 clients") && said.contains("open files"), "{said}");
    (0..100).for_each(|_| set("again"));
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    assert_eq!(place.entries().len(), 101);
}

#[test]
fn as_many_descriptors_as_the_process_may_have_are_used() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let text = format!("[limits]\nclients = 40\n{RULE}");
    let (child, _told, _client, before) = start_telling(limited(&place, &server, &text, "150:300"));
    assert_eq!(before, "");
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    let ran = finish(limited(&place, &server, &text, "100:100").spawn().unwrap()).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("may have 100 open files") && ran.err.contains("ulimit -Hn"), "{ran:?}");
}

#[test]
fn more_clients_than_there_are_descriptors_for_are_told_of_with_both_numbers() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let text = format!("[limits]\nclients = 40\n{RULE}");
    let (child, mut told, _client, before) = start_telling(limited(&place, &server, &text, "150:200"));
    let said = "`limits.clients` is 40, and the 200 open files that this process may have at most are enough for 34,";
    assert!(before.starts_with(said) && before.lines().count() == 1, "{before}");
    // Whoever reads the same again knows.
    signal(&child, Signal::HUP);
    let again = line(&mut told);
    assert!(again.ends_with("this configuration holds from now on"), "{again}");
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
}

#[test]
fn a_listener_that_other_machines_reach_without_tls_is_told_of_once() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    for (address, is_said) in [("0.0.0.0:0", true), ("127.0.0.2:0", false)] {
        let text = config(&place, &server, RULE).replace("127.0.0.1:0", address);
        let file = place.write("proxy.toml", text.as_bytes());
        let (child, mut told, _client, before) = start_telling(command(["proxy", &file]));
        let said = format!("`listen.address` {address} is beyond the loopback interface");
        assert_eq!(before.starts_with(&said), is_said, "{before}");
        assert_eq!(before.lines().count(), usize::from(is_said), "{before}");
        signal(&child, Signal::HUP);
        let again = line(&mut told);
        assert!(again.ends_with("this configuration holds from now on"), "{again}");
        signal(&child, Signal::TERM);
        finish(child).exits(exit::DONE);
    }
    let help = bulla(["proxy", "--help"]).exits(exit::DONE).out;
    assert!(help.contains("`[listen.tls]`") && help.lines().all(|line| line.len() <= 100), "{help}");
}

#[test]
fn that_every_key_is_nobodys_is_said() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let said = "there are neither `rules` nor a `default_subject`";
    for (head, tables, is_said) in
        [("", "", true), ("", RULE, false), ("default_subject = \"unknown\"\n", "", false)]
    {
        let file = place.write("proxy.toml", format!("{head}{}", config(&place, &server, tables)).as_bytes());
        let (child, mut told, _client, before) = start_telling(command(["proxy", &file]));
        assert_eq!(before.contains(said), is_said, "{before}");
        signal(&child, Signal::HUP);
        let line = line(&mut told);
        assert_eq!(line.contains(said), is_said, "{line}");
        signal(&child, Signal::TERM);
        finish(child).exits(exit::DONE);
    }
}

#[test]
fn a_password_that_everybody_may_read_is_told_of() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &["--requirepass", "secret"]);
    let password = place.write("password", b"secret\n");
    let text = config(&place, &server, RULE)
        .replace("[upstream]", &format!("[upstream]\npassword_file = {password:?}"));
    let file = place.write("proxy.toml", text.as_bytes());
    for (mode, is_said) in [(0o604, true), (0o640, false)] {
        std::fs::set_permissions(&password, Permissions::from_mode(mode)).unwrap();
        let (child, _told, _client, before) = start_telling(command(["proxy", &file]));
        let said = format!("`upstream.password_file` {password} may be read by everybody");
        assert_eq!(before.contains(&said), is_said, "{before}");
        signal(&child, Signal::TERM);
        finish(child).exits(exit::DONE);
    }
}

#[test]
fn an_address_that_is_taken_is_named_with_what_to_do() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let file =
        place.write("proxy.toml", config(&place, &server, RULE).replace("127.0.0.1:0", &taken).as_bytes());
    let ran = bulla(["proxy", &file]).exits(exit::ENVIRONMENT);
    assert!(
        ran.err.contains(&format!("listening at {taken}: ")) && ran.err.contains("`[listen]`"),
        "{ran:?}"
    );
}
