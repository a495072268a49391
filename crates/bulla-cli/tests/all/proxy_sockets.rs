//! `proxy`: sockets at which nobody can be accepted for a while, or never again, and a service manager that does not listen.

use crate::proxy::{RULE, config, line, start_telling};
use crate::support::{Place, command, exit, finish, signal};
use bulla_testkit::RedisServer;
use rustix::net::{Shutdown, getsockname, shutdown, sockopt::socket_acceptconn};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_getfd, pidfd_open, prlimit,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStderr};

/// A proxy that serves metrics, too.
struct Serving {
    place: Place,
    child: Child,
    told: BufReader<ChildStderr>,
    client: TcpStream,
    metrics: SocketAddr,
    _server: (RedisServer, tempfile::TempDir),
}

impl Serving {
    fn start() -> Serving {
        let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
        let server = RedisServer::start(folder.path(), &[]);
        let text = format!("metrics = \"127.0.0.1:0\"\n{}", config(&place, &server, RULE));
        let file = place.write("proxy.toml", text.as_bytes());
        let (child, told, mut client, before) = start_telling(command(["proxy", &file]));
        let metrics = before.lines().find_map(|line| line.strip_prefix("metrics are at http://"));
        let metrics = metrics.and_then(|rest| rest.strip_suffix("/metrics")).unwrap().parse().unwrap();
        set(&mut client);
        Serving { place, child, told, client, metrics, _server: (server, folder) }
    }

    fn clients_come_to(&self) -> SocketAddr {
        self.client.peer_addr().unwrap()
    }

    /// Ends it in order; its entries.
    fn end(self) -> usize {
        signal(&self.child, Signal::TERM);
        finish(self.child).exits(exit::DONE);
        self.place.entries().len()
    }
}

fn set(client: &mut TcpStream) {
    client.write_all(b"SET user:ada:name x\r\n").unwrap();
    told_ok(client);
}

fn told_ok(client: &mut TcpStream) {
    let mut reply = [0; 5];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"+OK\r\n");
}

/// Asks for metrics, if anybody listens there.
fn ask(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    Ok(stream)
}

/// What was counted, as the answer says.
fn counted(mut answer: TcpStream, name: &str) -> u64 {
    let mut text = String::new();
    answer.read_to_string(&mut text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

/// From now on a process may have so many descriptors.
fn limit_descriptors(child: &Child, limit: Option<u64>) {
    let limit = Rlimit { current: limit, maximum: getrlimit(Resource::Nofile).maximum };
    prlimit(Some(Pid::from_child(child)), Resource::Nofile, limit).unwrap();
}

/// Shuts the socket of a process that listens at an address, at which accept(2) answers EINVAL from then on. False where this process may
/// not.
fn shut_listening(child: &Child, address: SocketAddr) -> bool {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
    for descriptor in descriptors {
        let number = descriptor.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let Ok(it) = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) else {
            eprintln!("not tested: this process may not have descriptors of another (pidfd_getfd)");
            return false;
        };
        let is_at = getsockname(&it).is_ok_and(|at| SocketAddr::try_from(at).is_ok_and(|at| at == address));
        if is_at && socket_acceptconn(&it).unwrap() {
            shutdown(&it, Shutdown::Both).unwrap();
            return true;
        }
    }
    panic!("nobody listens at {address}");
}

#[test]
fn while_there_are_no_descriptors_left_clients_wait_and_it_is_said_and_counted() {
    let mut proxy = Serving::start();
    limit_descriptors(&proxy.child, Some(0));
    let mut client = TcpStream::connect(proxy.clients_come_to()).unwrap();
    client.write_all(b"SET user:ada:name x\r\n").unwrap();
    let answer = ask(proxy.metrics).unwrap();
    // A commit that falls into this time says that it waits, too, between the two or ahead of them.
    let mut unheard = vec![
        "a client could not be accepted: Too many open files",
        "whoever asks for metrics could not be accepted: Too many open files",
    ];
    while !unheard.is_empty() {
        let told = line(&mut proxy.told);
        let heard = unheard.iter().position(|start| told.starts_with(start));
        match heard {
            Some(heard) => drop(unheard.remove(heard)),
            None => assert!(
                told.starts_with("waiting, and trying again: ") && told.contains("Too many open files"),
                "{told}"
            ),
        }
    }
    // Those that are there are served meanwhile.
    set(&mut proxy.client);
    limit_descriptors(&proxy.child, getrlimit(Resource::Nofile).maximum);
    told_ok(&mut client);
    assert!(counted(answer, "bulla_proxy_metrics_not_accepted_total") > 0);
    assert!(counted(ask(proxy.metrics).unwrap(), "bulla_proxy_not_accepted_total") > 0);
    assert_eq!(proxy.end(), 3);
}

#[test]
fn a_socket_at_which_no_client_can_come_any_more_has_the_proxy_end_in_order() {
    let mut proxy = Serving::start();
    let address = proxy.clients_come_to();
    if !shut_listening(&proxy.child, address) {
        return;
    }
    // Whoever waits for nothing is told to go.
    assert_eq!(proxy.client.read(&mut [0]).unwrap(), 0);
    let ran = finish(proxy.child).exits(exit::ENVIRONMENT);
    let mut told = String::new();
    proxy.told.read_to_string(&mut told).unwrap();
    let why = format!("listening at {address}: ");
    assert!(told.contains(&why) && told.contains("the proxy ends"), "{told} {ran:?}");
    assert_eq!(proxy.place.entries().len(), 1);
    proxy.place.run("verify", &["--strict"]).exits(exit::DONE);
}

#[test]
fn a_socket_at_which_nobody_can_ask_for_metrics_is_made_anew_and_clients_are_served() {
    let mut proxy = Serving::start();
    if !shut_listening(&proxy.child, proxy.metrics) {
        return;
    }
    let told = line(&mut proxy.told);
    assert!(told.starts_with("metrics are not served: "), "{told}");
    set(&mut proxy.client);
    let answer = loop {
        match ask(proxy.metrics) {
            Ok(answer) => break answer,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert_eq!(counted(answer, "bulla_proxy_metrics_not_accepted_total"), 1);
    assert_eq!(proxy.end(), 2);
}

#[test]
fn a_service_manager_that_does_not_listen_is_said_and_clients_are_served() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    let server = RedisServer::start(folder.path(), &[]);
    let file = place.write("proxy.toml", config(&place, &server, RULE).as_bytes());
    let mut command = command(["proxy", &file]);
    command.env("NOTIFY_SOCKET", folder.path().join("nobody"));
    let (child, mut told, mut client, _) = start_telling(command);
    let said = "the service manager is not told anything: NOTIFY_SOCKET is ";
    assert!(line(&mut told).starts_with(said));
    set(&mut client);
    for (number, expected) in
        [(Signal::HUP, "this configuration holds from now on"), (Signal::TERM, "no more clients")]
    {
        signal(&child, number);
        let lines = [line(&mut told), line(&mut told)].concat();
        assert!(lines.contains(said) && lines.contains(expected), "{lines}");
    }
    let mut rest = String::new();
    for line in told.by_ref().lines() {
        rest += &line.unwrap();
    }
    finish(child).exits(exit::DONE);
    assert_eq!(place.entries().len(), 1, "{rest}");
}
