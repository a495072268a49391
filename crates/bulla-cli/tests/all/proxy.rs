//! `proxy`: before a running redis-server, until it is told to end.

use crate::support::{Place, Ran, bulla, command, exit, finish, parse_lines, signal};
use bulla_testkit::RedisServer;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Runs the proxy with JSON, while one client sets and gets a key of ada's; what it printed.
pub(crate) fn serve(place: &Place) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &[]);
    let (audit, socket) = (place.audit(), server.socket());
    let config = format!(
        "[log]\ndirectory = {audit:?}\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nunix = {socket:?}\n\
         [[rules]]\nkey = \"user:{{subject}}:*\"\n"
    );
    let file = place.write("proxy.toml", config.as_bytes());
    let mut child = command(["proxy", &file, "--json"]).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address =
        line.trim_end().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).to_owned();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"SET user:ada:name x\r\nGET user:ada:name\r\n").unwrap();
    let mut replies = [0; 12];
    client.read_exact(&mut replies).unwrap();
    assert_eq!(&replies, b"+OK\r\n$1\r\nx\r\n");
    signal(&child, Signal::TERM);
    // Whoever waits for nothing is told to go.
    assert_eq!(client.read(&mut replies).unwrap(), 0);
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "no more clients are accepted; another signal ends those that are there\n");
    finish(child)
}

#[test]
fn what_a_client_does_is_in_the_log_once_it_was_told_to_end() {
    let place = Place::new();
    let told = serve(&place).exits(exit::DONE).json();
    assert_eq!(told, serde_json::json!({ "clients": 1, "recorded": 2, "unmapped": 0, "unrecorded": 0 }));
    let exported = place.run("export", &["--subject", "ada"]).exits(exit::DONE);
    let entries = parse_lines(&exported.out);
    let operations = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(operations, ["write", "read"]);
    assert_eq!(entries[0]["location"], "user:ada:name");
    place.run("verify", &[]).exits(exit::DONE);
}

#[test]
fn the_example_is_a_configuration_and_what_is_wrong_with_one_is_named() {
    let place = Place::empty();
    let example = bulla(["proxy", "--example"]).exits(exit::DONE).out;
    let file = place.write("proxy.toml", example.as_bytes());
    // Its log is not there.
    let ran = bulla(["proxy", &file]).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("/var/lib/bulla/audit"), "{ran:?}");
    let file = place.write("proxy.toml", b"[log]\ndirectory = \"audit\"\nmod = \"async\"\n");
    let ran = bulla(["proxy", &file]).exits(exit::USAGE);
    assert!(ran.err.contains("proxy.toml: line 3, column 1"), "{ran:?}");
}
