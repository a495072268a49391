//! How the proxy ends where a client is there, and its connection to the server is not yet.

use super::edges::{Authority, free_address};
use super::world::{Client, World, plain};
use bulla_proxy::config::{Config, Mode};
use bulla_proxy::proxy::Proxy;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// For what comes in any case: a test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A way to a server that speaks TLS, on which the first two connections come through at once (the proxy's own, and that of one client),
/// and each further one once it is let through: until then it is not made, since TLS is not agreed on.
struct Gate {
    address: SocketAddr,
    /// Says that one stands before it.
    came: Receiver<()>,
    /// Lets it through.
    open: Sender<()>,
}

impl Gate {
    fn before(server: (String, u16)) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((comes, came), (open, opened)) = (channel(), channel());
        std::thread::spawn(move || {
            for (number, proxy) in listener.incoming().enumerate() {
                // Once the test has ended nobody is told, and nobody says that one may come through.
                if number >= 2 && (comes.send(()).is_err() || opened.recv().is_err()) {
                    return;
                }
                let (proxy, server) =
                    (proxy.unwrap(), TcpStream::connect((server.0.as_str(), server.1)).unwrap());
                pass(proxy.try_clone().unwrap(), server.try_clone().unwrap());
                pass(server, proxy);
            }
        });
        Gate { address, came, open }
    }

    /// Waits until a connection stands before it.
    fn wait(&self) {
        self.came.recv_timeout(PATIENCE).unwrap();
    }
}

/// Has one side get what the other one says, and its end.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// A server behind a gate; the proxy of the world itself stands before neither.
struct Gated {
    world: World,
    gate: Gate,
    authority: Authority,
}

impl Gated {
    fn new() -> Gated {
        let authority = Authority::new();
        let (address, port) = free_address();
        authority.certify("server", "the server", &[address.clone(), "127.0.0.1".to_owned()]);
        authority.certify("proxy", "the proxy", &[]);
        let arguments = authority.server(&address, port);
        let world = World::edged("", None, &arguments.each_ref().map(String::as_str));
        Gated { world, gate: Gate::before((address, port)), authority }
    }

    fn config(&self, limits: &str) -> Config {
        let [ca, certificate, key] =
            ["ca.pem", "proxy.pem", "proxy.key"].map(|name| self.authority.path(name));
        let address = self.gate.address;
        let upstream = format!(
            "address = \"{address}\"\n[upstream.tls]\nca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}"
        );
        self.world.config("", Some(&upstream), &format!("[limits]\n{limits}"))
    }

    /// A proxy before the gate that has been told to end, and knows it: a client that says this, and whose connection to the server is
    /// not made by then.
    fn stopped(&self, config: &Config, says: &str) -> (Proxy, Client) {
        let proxy = self.world.start_with(config).unwrap();
        let connect = || {
            let client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
            client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
            client
        };
        let mut idle = connect();
        assert_eq!(idle.ask("PING"), "PONG");
        let mut client = connect();
        client.send(says);
        self.gate.wait();
        proxy.stopper().stop();
        // There is one thread for both, which tells all of its connections at once.
        assert_eq!(idle.told(), "the end");
        (proxy, client)
    }
}

#[test]
fn what_was_sent_before_the_proxy_began_to_end_is_answered_though_the_server_is_reached_later() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let gated = Gated::new();
        let config = Config { mode, ..gated.config("connect_timeout = \"60 s\"") };
        let (proxy, mut client) = gated.stopped(&config, &"INCR a\r\n".repeat(16));
        gated.gate.open.send(()).unwrap();
        assert!((1..=16).all(|number| client.told() == number.to_string()), "{mode:?}");
        assert_eq!(client.told(), "the end", "{mode:?}");
        assert_eq!(proxy.counters().cut_off.get(), 0, "{mode:?}");
        proxy.join().unwrap();
        let told = gated.world.entries();
        let intended = told.iter().filter(|entry| entry.contains("\"stage\":\"intended\"")).count();
        let done = plain(&told).iter().filter(|entry| **entry == "write a 0").count();
        assert_eq!(
            (intended, done),
            (if mode == Mode::BeforeSend { 32 } else { 0 }, 16),
            "{mode:?}: {told:?}"
        );
    }
}

#[test]
fn who_began_a_transaction_before_the_server_was_reached_may_finish_it_though_the_proxy_is_ending() {
    let gated = Gated::new();
    let (proxy, mut client) =
        gated.stopped(&gated.config("connect_timeout = \"60 s\""), "MULTI\r\nSET a 1\r\n");
    gated.gate.open.send(()).unwrap();
    assert_eq!((client.told(), client.told()), ("OK".into(), "QUEUED".into()));
    assert_eq!((client.ask("EXEC"), client.told()), ("Array(1) OK".into(), "the end".into()));
    proxy.join().unwrap();
    assert_eq!(plain(&gated.world.entries()), ["write a 0"]);
}

#[test]
fn who_has_sent_nothing_is_closed_once_the_server_is_reached_by_a_proxy_that_is_ending() {
    let gated = Gated::new();
    let (proxy, mut client) = gated.stopped(&gated.config("connect_timeout = \"60 s\""), "");
    gated.gate.open.send(()).unwrap();
    assert_eq!(client.told(), "the end");
    assert_eq!(proxy.counters().cut_off.get(), 0);
    proxy.join().unwrap();
    assert_eq!(gated.world.entries(), [""; 0]);
}

#[test]
fn what_was_sent_before_the_server_was_reached_is_not_done_where_the_proxy_cuts_off() {
    let gated = Gated::new();
    let (proxy, mut client) = gated.stopped(&gated.config("connect_timeout = \"3600 s\""), "SET a 1\r\n");
    proxy.stopper().cut_off();
    // It is reset, since what it sent was not read.
    let read = client.stream.read(&mut [0; 64]);
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    let counters = proxy.counters().clone();
    proxy.join().unwrap();
    assert_eq!(counters.cut_off.get(), 1);
    assert_eq!(gated.world.around().ask("EXISTS a"), "0");
    assert_eq!(gated.world.entries(), [""; 0]);
}

#[test]
fn a_connection_that_is_not_made_has_no_longer_than_the_clients_have() {
    let gated = Gated::new();
    let limits = "connect_timeout = \"3600 s\"\ndrain_timeout = \"10 ms\"";
    let (proxy, mut client) = gated.stopped(&gated.config(limits), "SET a 1\r\n");
    let read = client.stream.read(&mut [0; 64]);
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    let counters = proxy.counters().clone();
    proxy.join().unwrap();
    assert_eq!(counters.cut_off.get(), 1);
    assert_eq!(gated.world.entries(), [""; 0]);
}

#[test]
fn whoever_was_accepted_and_has_sent_something_is_answered() {
    let world = World::new("", "", &[]);
    let proxy = world.start_with(&world.config("", None, "")).unwrap();
    let address = proxy.address().unwrap();
    let clients = std::iter::repeat_with(|| {
        let mut client = Client::new(TcpStream::connect(address).unwrap());
        client.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send("PING\r\n");
        client
    });
    let mut clients: Vec<_> = clients.take(200).collect();
    proxy.stopper().stop();
    let counters = proxy.counters().clone();
    // Those that were not accepted are reset.
    let answered = clients
        .iter_mut()
        .filter_map(|client| client.stream.read(&mut [0; 7]).ok())
        .filter(|read| *read == 7);
    let answered = answered.count() as u64;
    drop(clients);
    proxy.join().unwrap();
    assert_eq!(answered, counters.accepted.get());
}
