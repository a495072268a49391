//! `proxy`: before a running redis-server, until it is told to end.

use crate::proxied::listens_at;
use crate::support::{Place, Ran, bulla, bulla_with, command, eventually, exit, finish, parse_lines, signal};
use bulla_testkit::RedisServer;
use rustix::process::Signal;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, ChildStderr, Command};

pub(crate) const RULE: &str = "[[rules]]\nkey = \"user:{subject}:*\"\n";

/// A configuration of a proxy before a server, with these tables.
pub(crate) fn config(place: &Place, server: &RedisServer, tables: &str) -> String {
    let (audit, socket) = (place.audit(), server.socket());
    format!(
        "[log]\ndirectory = {audit:?}\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nunix = {socket:?}\n{tables}"
    )
}

/// Starts a proxy: the process, what it tells from then on, and a client of it.
fn start(command: Command) -> (Child, BufReader<ChildStderr>, TcpStream) {
    let (child, told, client, _) = start_telling(command);
    (child, told, client)
}

/// The same, with what it tells before it listens.
pub(crate) fn start_telling(mut command: Command) -> (Child, BufReader<ChildStderr>, TcpStream, String) {
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let (before, address) = before_listening(&mut told);
    (child, told, TcpStream::connect(address).unwrap(), before)
}

/// What is told before the line that says where it listens, and where that is.
fn before_listening(told: &mut impl BufRead) -> (String, String) {
    let mut before = String::new();
    loop {
        let line = line(told);
        match listens_at(&line) {
            Some(address) => return (before, address),
            None if line.is_empty() => panic!("{before}"),
            None => before += &(line + "\n"),
        }
    }
}

/// The next line.
pub(crate) fn line(told: &mut impl BufRead) -> String {
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
    let told = parse_lines(&rest);
    assert_eq!(told.len(), 1, "{rest}");
    assert_eq!(told[0]["message"], "no more clients are accepted; another signal ends those that are there");
    finish(child)
}

#[test]
fn what_a_client_does_is_in_the_log_once_it_was_told_to_end() {
    let place = Place::new();
    let told = serve(&place).exits(exit::DONE).json();
    assert_eq!(
        told,
        serde_json::json!({
            "clients": 1, "recorded": 2, "unmapped": 0, "unrecorded": 0, "untold": 0, "lost_at_most": 0, "cut_off": 0,
        })
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
    let told = parse_lines(&rest).pop().unwrap();
    assert_eq!(told["message"], "1 client was cut off while it waited for something");
    assert_eq!(finish(child).exits(exit::INTERRUPTED).json()["cut_off"], 1);
}

#[test]
fn warnings_and_all_other_lines_are_objects_where_json_is_asked_for() {
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
    assert!(parse_lines(&rest).iter().all(|line| line["message"].is_string() && line["time"].is_string()));
    finish(child).exits(exit::DONE);
    let ran = bulla(["proxy", "nowhere.toml", "--json"]).exits(exit::ENVIRONMENT);
    assert!(parse_lines(&ran.err)[0]["message"].as_str().unwrap().contains("nowhere.toml"), "{ran:?}");
}

#[test]
fn a_second_signal_ends_clients_that_wait_for_something() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    // Nobody waits for that.
    let tables = "[limits]\ndrain_timeout = \"1 h\"\n";
    let file = place.write("proxy.toml", config(&place, &server, tables).as_bytes());
    let (child, mut told, mut client) = start(command(["proxy", &file, "--json"]));
    client.write_all(b"PING\r\nBLPOP nothing 0\r\n").unwrap();
    client.read_exact(&mut [0; 7]).unwrap();
    signal(&child, Signal::TERM);
    assert!(line(&mut told).contains("no more clients are accepted"));
    signal(&child, Signal::TERM);
    let second = line(&mut told);
    assert!(second.contains("are cut off") && second.contains("another signal ends it at once"), "{second}");
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    let counted = line(&mut told);
    assert!(counted.contains("1 client was cut off while it waited for something"), "{counted}");
    assert_eq!(finish(child).exits(exit::INTERRUPTED).json()["cut_off"], 1);
    let operations = place.entries();
    assert!(operations.iter().all(|entry| entry["status"] == 3) && !operations.is_empty(), "{operations:?}");
}

/// Waits until the process deals with a signal itself.
fn wait_until_caught(child: &Child, signal: Signal) {
    eventually("the signal is caught", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
    });
}

#[test]
fn sighup_before_it_listens_has_the_configuration_read_anew_once_it_does() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    // Reading it waits until there is something.
    let file = place.path("proxy.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let mut child = command(["proxy".as_ref(), file.as_os_str()]).spawn().unwrap();
    wait_until_caught(&child, Signal::HUP);
    signal(&child, Signal::HUP);
    let text = config(&place, &server, RULE);
    std::fs::write(&file, &text).unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    before_listening(&mut told);
    std::fs::write(&file, &text).unwrap();
    assert!(line(&mut told).ends_with("this configuration holds from now on"));
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
}

#[test]
fn sigterm_before_it_serves_clients_ends_it_in_order() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    // A server that answers when it is let.
    let socket = folder.path().join("slow");
    let listener = UnixListener::bind(&socket).unwrap();
    let config = config(&place, &server, RULE);
    let config = config.replace(server.socket().to_str().unwrap(), socket.to_str().unwrap());
    let file = place.write("proxy.toml", config.as_bytes());
    let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    let mut child =
        command(["proxy", &file]).env("NOTIFY_SOCKET", folder.path().join("notify")).spawn().unwrap();
    let (mut asking, _) = listener.accept().unwrap();
    signal(&child, Signal::TERM);
    let mut told = BufReader::new(child.stderr.take().unwrap());
    while !line(&mut told).starts_with("no client is accepted") {}
    let mut answering = UnixStream::connect(server.socket()).unwrap();
    let (mut from, mut to) = (answering.try_clone().unwrap(), asking.try_clone().unwrap());
    std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
    std::thread::spawn(move || drop(std::io::copy(&mut asking, &mut answering)));
    told.read_to_string(&mut String::new()).unwrap();
    finish(child).exits(exit::DONE);
    // What it told last is how it is.
    let states = [(); 2].map(|()| {
        let mut room = [0; 1024];
        let length = notified.recv(&mut room).unwrap();
        String::from_utf8_lossy(&room[..length]).lines().next().unwrap().to_owned()
    });
    assert_eq!(states, ["READY=1", "STOPPING=1"]);
    assert!(place.info("entries").as_u64() == Some(0));
    place.run("verify", &["--strict"]).exits(exit::DONE);
}

/// From now on the files that a process writes may have so many bytes.
pub(crate) fn limit_files(child: &Child, bytes: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let limit = Rlimit { current: bytes, maximum: getrlimit(Resource::Fsize).maximum };
    prlimit(Some(Pid::from_child(child)), Resource::Fsize, limit).unwrap();
}

/// Runs a proxy that lets commands pass unrecorded until its log has failed for good; what it printed and told, and how many of these
/// commands were done.
fn fail(place: &Place, mended: bool) -> (Ran, String, u64) {
    // By itself the proxy tries for a quarter of an hour.
    place.run("config", &["set", "retries", "3"]).exits(exit::DONE);
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &[]);
    let text = format!("unrecordable = \"pass\"\nworkers = 1\n{}", config(place, &server, ""));
    let file = place.write("proxy.toml", text.as_bytes());
    let (child, told, client) = start(command(["proxy", &file, "--json"]));
    let mut client = BufReader::new(client);
    let mut set = || {
        client.get_mut().write_all(b"SET a x\r\n").unwrap();
        assert_eq!(line(&mut client), "+OK");
    };
    set();
    eventually("the first entry is durable", || place.info("entries").as_u64() == Some(1));
    limit_files(&child, Some(0));
    let mut told = told;
    let mut count = 0;
    // The log fails a little after it was given something.
    let mut lines = String::new();
    let (sender, failed) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        while told.read_line(&mut lines).unwrap() > 0 {
            if lines.contains("\"unrecorded\"") {
                let _ = sender.send(());
            }
        }
        lines
    });
    while failed.try_recv().is_err() {
        set();
        count += 1;
    }
    set();
    count += 1;
    if mended {
        limit_files(&child, rustix::process::getrlimit(rustix::process::Resource::Fsize).maximum);
    }
    signal(&child, Signal::TERM);
    let ran = finish(child);
    (ran, reader.join().unwrap(), count)
}

#[test]
fn what_passed_while_the_log_had_failed_is_told_in_it_at_the_end_if_it_can_be() {
    let place = Place::new();
    let (ran, lines, count) = fail(&place, true);
    let told = ran.json();
    // On a machine that is slow it may have been opened again before the end.
    let code = if told["error"].is_string() { exit::ENVIRONMENT } else { exit::DONE };
    assert!(ran.code == code && told["untold"] == 0, "{told}");
    assert!(lines.contains("and an entry `gap` says"), "{lines}");
    let entries = place.entries();
    let gap = entries.last().unwrap();
    let payload = serde_json::from_str::<serde_json::Value>(gap["payload"].as_str().unwrap()).unwrap();
    assert_eq!((&gap["operation"], entries.len()), (&"gap".into(), 2), "{entries:?}");
    assert_eq!(payload["unrecorded"], told["unrecorded"]);
    let all = [&payload["unrecorded"], &payload["lost_at_most"]].map(|count| count.as_u64().unwrap());
    assert_eq!(all.iter().sum::<u64>(), count, "{payload}");
    assert!(all[0] > 0);
}

#[test]
fn what_passed_while_the_log_had_failed_is_said_where_the_log_cannot_say_it() {
    let place = Place::new();
    let (ran, lines, count) = fail(&place, false);
    let told = ran.exits(exit::ENVIRONMENT).json();
    assert!(lines.contains("and the log does not say so"), "{lines}");
    assert_eq!(told["untold"], told["unrecorded"]);
    assert_eq!(told["untold"].as_u64().unwrap() + told["lost_at_most"].as_u64().unwrap(), count, "{told}");
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
   3   0  eval     execute    refused by policy.scripts  -           -
";
        assert_eq!(ran.out, expected);
        assert!(ran.err.starts_with("3 commands: 2 entries, 1 of them unmapped; 1 refused"), "{}", ran.err);
    });
    let file = place.write("proxy.toml", b"[log]\ndirectory = \"none\"\n");
    let ran = bulla_with(["proxy", &file, "--dry-run", "-"], b"what is this\n").exits(exit::SOME_REFUSED);
    assert!(ran.err.contains("1 line says no command"), "{ran:?}");
}
