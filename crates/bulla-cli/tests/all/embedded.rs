//! `proxy --embedded`: a server of its own, which nobody else reaches, and which ends with it.

use crate::proxied::listens_at;
use crate::support::{Place, arguments, bulla, command, exit, finish, parse_lines, signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpgid, kill_process, pidfd_open};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr};

/// A proxy with its server.
struct Running {
    child: Child,
    told: BufReader<ChildStderr>,
    /// What was told before it listened.
    before: String,
    address: String,
}

impl Running {
    fn start(trial: impl AsRef<OsStr>) -> Running {
        Running::start_telling(trial, |_| {})
    }

    /// The same, and `hear` is given each line that is told before it listens.
    fn start_telling(trial: impl AsRef<OsStr>, mut hear: impl FnMut(&str)) -> Running {
        let words = [OsStr::new("proxy"), OsStr::new("--embedded"), trial.as_ref(), OsStr::new("--json")];
        let mut child = command(words).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let (mut before, mut line) = (String::new(), String::new());
        while listens_at(&line).is_none() {
            hear(&line);
            before += &line;
            line.clear();
            if told.read_line(&mut line).unwrap() == 0 {
                break;
            }
        }
        let address = listens_at(&line).unwrap_or_else(|| panic!("{before}{line}"));
        Running { child, told, before, address }
    }

    /// The reply to one command, if it ends with this.
    fn ask(&self, command: &str, end: &str) -> String {
        let mut client = TcpStream::connect(&self.address).unwrap();
        client.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(end.as_bytes()) {
            let mut byte = [0];
            assert_eq!(client.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&reply));
            reply.push(byte[0]);
        }
        String::from_utf8(reply).unwrap()
    }

    fn server(&self) -> (Pid, OwnedFd) {
        let told = self.ask("INFO server", "\r\nuptime_in_seconds");
        let number = told.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap();
        let pid = Pid::from_raw(number.parse().unwrap()).unwrap();
        (pid, pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }

    /// Ends it in order; what it printed, and told.
    fn stop(mut self) -> (serde_json::Value, String) {
        signal(&self.child, Signal::TERM);
        let mut rest = String::new();
        self.told.read_to_string(&mut rest).unwrap();
        (finish(self.child).exits(exit::DONE).json(), rest)
    }
}

/// Whether a process ends, within a minute.
fn ends(process: &OwnedFd) -> bool {
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec { tv_sec: 60, tv_nsec: 0 })) == Ok(1)
}

/// A directory for a trial, whose configuration is there already and has this address.
fn trial(place: &Place, address: &str) -> PathBuf {
    let trial = place.path("trial");
    std::fs::create_dir(&trial).unwrap();
    let (log, socket) = (trial.join("audit"), trial.join("server/socket"));
    let config = format!(
        "[log]\ndirectory = {log:?}\n[listen]\naddress = \"{address}\"\n[upstream]\nunix = {socket:?}\n\
         [[rules]]\nkey = \"user:{{subject}}*\"\n"
    );
    place.write("trial/proxy.toml", config.as_bytes());
    trial
}

#[test]
fn one_command_makes_all_that_a_first_try_needs_and_takes_it_up_again() {
    let place = Place::empty();
    let trial = place.path("trial");
    let first = Running::start(&trial);
    for told in ["Made the log", "audit.keys", "proxy.toml", "redis-cli -p"] {
        assert!(first.before.contains(told), "{told}: {}", first.before);
    }
    assert!(first.address.starts_with("127.0.0.1:"), "{}", first.address);
    assert_eq!(first.ask("SET user:ada:email x", "\n"), "+OK\r\n");
    assert_eq!(first.ask("HSET key17 USR bob", "\n"), ":1\r\n");
    assert_eq!(first.ask("GET key17", "\n").split(' ').next(), Some("-WRONGTYPE"));
    // Nobody comes to the server but through the proxy, and who may enter its folder.
    assert!(first.ask("CONFIG GET port", "0\r\n").contains("port\r\n"));
    let mode = std::fs::metadata(trial.join("server")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let (server, process) = first.server();
    // What an interrupt at the terminal reaches.
    assert_eq!(getpgid(Some(server)).unwrap(), server);
    let (told, rest) = first.stop();
    assert_eq!(told["unmapped"], 0);
    assert!(!rest.contains("redis-server ended"), "{rest}");
    assert!(ends(&process), "the server goes on without the proxy");

    let again = Running::start(&trial);
    assert!(!again.before.contains("Made"), "{}", again.before);
    assert_eq!(again.ask("GET user:ada:email", "x\r\n"), "$1\r\nx\r\n");
    again.stop();
    let entries = |subject| {
        let ran = bulla(arguments!["export", trial.join("audit"), "--subject", subject]).exits(exit::DONE);
        let entries = parse_lines(&ran.out);
        // Each thread of the proxy has an order of its own.
        let operations = entries.iter().map(|entry| entry["operation"].as_str().unwrap().to_owned());
        operations.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(entries("ada"), ["read", "write"]);
    assert_eq!(entries("bob"), ["read", "write"]);
}

#[test]
fn the_server_ends_with_a_proxy_that_is_killed() {
    let place = Place::empty();
    let trial = trial(&place, "127.0.0.1:0");
    let mut running = Running::start(&trial);
    assert_eq!(running.ask("SET user:ada x", "\n"), "+OK\r\n");
    let (_, process) = running.server();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert!(ends(&process), "the server goes on without the proxy");
    let again = Running::start(&trial);
    assert_eq!(again.ask("GET user:ada", "x\r\n"), "$1\r\nx\r\n");
    again.stop();
}

#[test]
fn a_server_is_not_started_before_the_one_of_a_killed_proxy_has_ended() {
    let place = Place::empty();
    let trial = trial(&place, "127.0.0.1:0");
    let mut running = Running::start(&trial);
    assert_eq!(running.ask("SET user:ada x", "\n"), "+OK\r\n");
    let (server, process) = running.server();
    // It is told to end, and takes its time.
    kill_process(server, Signal::STOP).unwrap();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    // Where its group is left to itself by that, the kernel has it go on at once, and nothing is waited for.
    let again = Running::start_telling(&trial, |line| {
        if line.contains("waiting for the server to end") {
            kill_process(server, Signal::CONT).unwrap();
        }
    });
    // A process that ends lets go of its files a moment before it has ended.
    let moment = Timespec { tv_sec: 1, tv_nsec: 0 };
    let has_ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&moment)) == Ok(1);
    // Whatever was seen, nothing is left behind.
    let _ = kill_process(server, Signal::CONT);
    assert!(has_ended, "{}", again.before);
    assert_eq!(again.ask("GET user:ada", "x\r\n"), "$1\r\nx\r\n");
    again.stop();
}

#[test]
fn what_a_server_that_does_not_start_does_is_said() {
    let place = Place::empty();
    let trial = trial(&place, "127.0.0.1:0");
    let programs = place.path("programs");
    std::fs::create_dir(&programs).unwrap();
    let path = std::env::join_paths(
        std::iter::once(programs.clone()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let path = path.unwrap();
    let start = |script: &str| {
        let program = place.write("programs/redis-server", format!("#!/bin/sh\n{script}\n").as_bytes());
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
        command(arguments!["proxy", "--embedded", &trial]).env("PATH", &path).spawn().unwrap()
    };
    let ran = finish(start("exit 3")).exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("redis-server ended (exit status: 3)"), "{ran:?}");
    let mut silent = start("exec sleep 600");
    let told = BufReader::new(silent.stderr.take().unwrap());
    assert!(told.lines().any(|line| line.unwrap().contains("waiting for redis-server to answer")));
    silent.kill().unwrap();
    silent.wait().unwrap();
}

#[test]
fn a_server_that_ends_before_the_proxy_is_told_of_at_once() {
    let place = Place::empty();
    let mut running = Running::start(trial(&place, "127.0.0.1:0"));
    let (server, process) = running.server();
    kill_process(server, Signal::KILL).unwrap();
    assert!(ends(&process));
    let mut line = String::new();
    running.told.read_line(&mut line).unwrap();
    assert!(line.contains("redis-server ended (signal: 9 (SIGKILL))"), "{line}");
    running.stop();
}

#[test]
fn a_port_that_is_taken_is_told_and_the_next_one_used() {
    let place = Place::empty();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let running = Running::start(trial(&place, &taken.to_string()));
    assert!(running.before.contains(&format!("port {} is taken", taken.port())), "{}", running.before);
    assert_ne!(running.address, taken.to_string());
    running.stop();
}

#[test]
fn sighup_has_its_configuration_read_anew_though_it_listens_at_another_port() {
    let place = Place::empty();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let trial = trial(&place, &holder.local_addr().unwrap().to_string());
    let mut running = Running::start(&trial);
    let file = trial.join("proxy.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}[policy]\nadministrative = \"refuse\"\n")).unwrap();
    signal(&running.child, Signal::HUP);
    let mut line = String::new();
    running.told.read_line(&mut line).unwrap();
    assert!(line.contains("this configuration holds from now on"), "{line}");
    // The threads of clients hear of it a little later.
    while !running.ask("CONFIG GET nothing", "\r\n").starts_with("-BULLA") {}
    // Its server stays its own.
    std::fs::write(&file, text.replace("server/socket", "server/another")).unwrap();
    signal(&running.child, Signal::HUP);
    line.clear();
    running.told.read_line(&mut line).unwrap();
    assert!(line.contains("stays as it was: `upstream.address` cannot change"), "{line}");
    assert_eq!(running.ask("SET user:ada:email x", "\n"), "+OK\r\n");
    running.stop();
}

#[test]
fn what_cannot_be_embedded_is_refused_and_said_why() {
    let place = Place::new();
    let ran = bulla(arguments!["proxy", "--embedded", place.audit()]).exits(exit::USAGE);
    assert!(ran.err.contains("audit is a log"), "{ran:?}");
    let long = place.path(&"long".repeat(30));
    let ran = bulla(arguments!["proxy", "--embedded", &long]).exits(exit::USAGE);
    assert!(ran.err.contains("at most 107 bytes") && !long.exists(), "{ran:?}");
    let trial = trial(&place, "127.0.0.1:0");
    // Without any program that could be a server.
    let words = arguments!["proxy", "--embedded", &trial];
    let ran = finish(command(&words).env("PATH", place.path("nowhere")).spawn().unwrap());
    let ran = ran.exits(exit::ENVIRONMENT);
    assert!(ran.err.contains("apt-get install redis-server"), "{ran:?}");
    assert!(!ran.err.contains("Made") && !trial.join("audit").exists(), "{ran:?}");
    let config = format!("[log]\ndirectory = {:?}\n", place.audit());
    place.write("trial/proxy.toml", config.as_bytes());
    let ran = bulla(&words).exits(exit::USAGE);
    assert!(ran.err.contains("proxy.toml has another log or server"), "{ran:?}");
    // The log that it names is not where it was, and nobody is told to make one there.
    let config = format!("[log]\ndirectory = {:?}\n", place.path("moved/audit"));
    place.write("trial/proxy.toml", config.as_bytes());
    let ran = bulla(&words).exits(exit::USAGE);
    assert!(ran.err.contains("where this directory was moved"), "{ran:?}");
    bulla(["proxy", "proxy.toml", "--embedded", "trial"]).exits(exit::USAGE);
    // A dry run is of a configuration.
    let ran = bulla(arguments!["proxy", "--embedded", place.audit(), "--dry-run", "-"]).exits(exit::USAGE);
    assert!(ran.err.contains("'--embedded [<DIR>]' cannot be used with '--dry-run <CAPTURE>'"), "{ran:?}");
}
