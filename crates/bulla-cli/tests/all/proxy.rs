//! `proxy`: before a running redis-server, until it is told to end.

use crate::support::{Place, Ran, bulla, bulla_with, command, exit, finish, parse_lines, signal};
use bulla_testkit::RedisServer;
use rustix::process::Signal;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStderr, Command};

const RULE: &str = "[[rules]]\nkey = \"user:{subject}:*\"\n";

/// A configuration of a proxy before a server, with these tables.
fn config(place: &Place, server: &RedisServer, tables: &str) -> String {
    let (audit, socket) = (place.audit(), server.socket());
    format!(
        "[log]\ndirectory = {audit:?}\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nunix = {socket:?}\n{tables}"
    )
}

/// Starts a proxy: the process, what it tells, and a client of it.
fn start(mut command: Command) -> (Child, BufReader<ChildStderr>, TcpStream) {
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let line = line(&mut told);
    let address = line.strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}"));
    let client = TcpStream::connect(address).unwrap();
    (child, told, client)
}

/// The next line.
fn line(told: &mut impl BufRead) -> String {
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// Runs the proxy with JSON, while one client sets and gets a key of ada's; what it printed.
pub(crate) fn serve(place: &Place) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &[]);
    let file = place.write("proxy.toml", config(place, &server, RULE).as_bytes());
    let (child, mut told, mut client) = start(command(["proxy", &file, "--json"]));
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
    assert_eq!(
        told,
        serde_json::json!({ "clients": 1, "recorded": 2, "unmapped": 0, "unrecorded": 0, "cut_off": 0 })
    );
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

#[test]
fn sighup_has_the_configuration_read_anew_and_a_wrong_one_changes_nothing() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let file = place.write("proxy.toml", config(&place, &server, "").as_bytes());
    let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    let mut command = command(["proxy", &file]);
    command.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let (child, mut told, mut client) = start(command);
    let state = || {
        let mut room = [0; 1024];
        let length = notified.recv(&mut room).unwrap();
        String::from_utf8_lossy(&room[..length]).lines().next().unwrap().to_owned()
    };
    let mut ask = |command: &[u8], reply: &[u8]| {
        client.write_all(command).unwrap();
        let mut came = vec![0; reply.len()];
        client.read_exact(&mut came).unwrap();
        assert_eq!(came, reply);
    };
    assert_eq!(state(), "READY=1");
    ask(b"SET user:ada:name x\r\n", b"+OK\r\n");
    for (text, problem) in [
        ("mod = 1\n", "proxy.toml: line 1, column 1: there is no key `mod`"),
        ("mode = \"before-send\"\n", "`mode` cannot change while the proxy runs"),
    ] {
        place.write("proxy.toml", format!("{text}{}", config(&place, &server, RULE)).as_bytes());
        signal(&child, Signal::HUP);
        let line = line(&mut told);
        assert!(line.starts_with("the configuration stays as it was: ") && line.contains(problem), "{line}");
        assert_eq!([state(), state()], ["RELOADING=1", "READY=1"]);
    }
    ask(b"SET user:ada:name x\r\n", b"+OK\r\n");
    let refused = format!("[policy]\nadministrative = \"refuse\"\n{RULE}");
    place.write("proxy.toml", config(&place, &server, &refused).as_bytes());
    signal(&child, Signal::HUP);
    assert_eq!(line(&mut told), format!("{file}: this configuration holds from now on"));
    assert_eq!([state(), state()], ["RELOADING=1", "READY=1"]);
    // The thread of this client hears of it a little later.
    let mut reply = [0; 6];
    while &reply != b"-BULLA" {
        client.write_all(b"CONFIG GET nothing\r\n").unwrap();
        client.read_exact(&mut reply[..4]).unwrap();
        if &reply[..4] != b"*0\r\n" {
            client.read_exact(&mut reply[4..]).unwrap();
        }
    }
    let mut client = BufReader::new(client);
    line(&mut client);
    client.get_mut().write_all(b"GET user:ada:name\r\n").unwrap();
    assert_eq!([line(&mut client), line(&mut client)], ["$1", "x"]);
    signal(&child, Signal::TERM);
    assert_eq!(state(), "STOPPING=1");
    finish(child).exits(exit::DONE);
    let exported = place.run("export", &["--subject", "ada"]).exits(exit::DONE);
    assert_eq!(parse_lines(&exported.out).len(), 1, "{exported:?}");
}

#[test]
fn clients_that_were_cut_off_are_told_and_the_command_does_not_end_well() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let file = place
        .write("proxy.toml", config(&place, &server, "[limits]\ndrain_timeout = \"10 ms\"\n").as_bytes());
    let (child, mut told, mut client) = start(command(["proxy", &file, "--json"]));
    client.write_all(b"PING\r\nMULTI\r\n").unwrap();
    client.read_exact(&mut [0; 12]).unwrap();
    signal(&child, Signal::TERM);
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert!(
        rest.ends_with(
            "1 clients were cut off while they waited for something: `limits.drain_timeout` was over\n"
        ),
        "{rest}"
    );
    assert_eq!(finish(child).exits(exit::INTERRUPTED).json()["cut_off"], 1);
}

#[test]
fn warnings_are_objects_where_json_is_asked_for() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let file = place.write("proxy.toml", config(&place, &server, "").as_bytes());
    let (child, mut told, mut client) = start(command(["proxy", &file, "--json"]));
    client.write_all(b"PROXY UNKNOWN\r\n").unwrap();
    let warning = parse_lines(&line(&mut told)).remove(0);
    assert_eq!(warning["warning"], "proxy_header");
    assert!(warning["message"].as_str().unwrap().contains("must not send any"), "{warning}");
    assert!(warning["time"].as_str().unwrap().ends_with('Z'), "{warning}");
    signal(&child, Signal::TERM);
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    finish(child).exits(exit::DONE);
}

/// Shows what would be recorded of a capture; gives `look` the words and what was printed.
pub(crate) fn dry_run(place: &Place, mut look: impl FnMut(&[OsString], &str)) {
    let file = place.write("proxy.toml", format!("[log]\ndirectory = \"none\"\n{RULE}").as_bytes());
    let capture = place.write(
        "capture",
        b"1700000000.000001 [0 127.0.0.1:1] \"SET\" \"user:ada:name\" \"x\"\n\
          1700000000.000002 [3 127.0.0.1:1] \"GET\" \"other\"\n\
          1700000000.000003 [0 127.0.0.1:1] \"EVAL\" \"return 1\" \"0\"\n",
    );
    let words = ["proxy", &file, "--dry-run", &capture, "--json"].map(OsString::from);
    look(&words, &bulla(&words).exits(exit::DONE).out);
}

#[test]
fn what_would_be_recorded_of_a_capture_is_shown_in_a_table() {
    let place = Place::empty();
    dry_run(&place, |words, out| {
        let rows = parse_lines(out);
        assert_eq!(rows.len(), 3);
        assert_eq!((&rows[0]["subject"], &rows[2]["refused_by"]), (&"ada".into(), &"policy.scripts".into()));
        let ran = bulla(&words[..4]).exits(exit::DONE);
        let expected = "\
LINE  DB  COMMAND  OPERATION  FATE                       SUBJECT     LOCATION
   1   0  set      write      recorded                   ada         user:ada:name
   2   3  get      read       recorded                   (unmapped)  other
   3   0  eval     eval       refused by policy.scripts  -           -
";
        assert_eq!(ran.out, expected);
        assert!(ran.err.starts_with("3 commands: 2 entries, 1 of them unmapped; 1 refused"), "{}", ran.err);
    });
    let file = place.write("proxy.toml", b"[log]\ndirectory = \"none\"\n");
    let ran = bulla_with(["proxy", &file, "--dry-run", "-"], b"what is this\n").exits(exit::SOME_REFUSED);
    assert!(ran.err.contains("1 lines say no command"), "{ran:?}");
}
