//! The edges of the proxy: for whom peers say that they come, TLS on both sides, and another configuration while it runs.

use super::world::{Client, World};
use bulla_proxy::proxy::Proxy;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// What version 2 says of 192.0.2.9:256, with the address of this proxy.
pub(crate) const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x09\x7f\0\0\x01\x01\0\x18\xeb";

#[test]
fn a_configured_peer_says_for_whom_it_comes_and_what_follows_is_the_clients() {
    let world = World::edged("proxy_protocol = [\"127.0.0.0/8\"]", None, &[]);
    let said: [(&[u8], &str); 4] = [
        (b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 6379\r\n", "192.0.2.7:4711"),
        (V2, "192.0.2.9:256"),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 1 2\r\n", "[2001:db8::1]:1"),
        (b"PROXY UNKNOWN\r\n", "unknown"),
    ];
    for (header, _) in said {
        let mut client = world.connect();
        assert_eq!(client.send([header, b"GET a\r\n"].concat()).told(), "null");
    }
    // A peer that comes for itself.
    let mut client = world.connect();
    let own = client.stream.local_addr().unwrap().to_string();
    let local = [&V2[..12], b"\x20\0\0\0", b"GET a\r\n"].concat();
    for byte in local {
        client.send([byte]);
    }
    assert_eq!(client.told(), "null");
    let mut client = world.connect();
    assert!(client.ask("GET a").starts_with("BULLA there is no PROXY header"));
    assert_eq!(client.told(), "the end");
    let clients = world.entries_of_clients().into_iter().map(|(client, _)| client).collect::<Vec<_>>();
    let expected = said.iter().map(|(_, client)| (*client).to_owned()).chain([own]);
    assert_eq!(clients, expected.collect::<Vec<_>>());
}

#[test]
fn a_header_of_anybody_else_is_refused_and_nobody_waits_for_one() {
    let world = World::edged("proxy_protocol = [\"192.0.2.0/24\"]", None, &[]);
    for header in [&b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 6379\r\nGET a\r\n"[..], V2] {
        let mut client = world.connect();
        assert!(client.send(header).told().contains("this peer must not send any"));
        assert_eq!(client.told(), "the end");
    }
    assert_eq!(world.connect().ask_all(&["PING", "PROXY"])[0], "PONG");
    assert!(world.connect().ask("PROXIMITY").starts_with("ERR unknown command"));
    let told = world.entries();
    assert!(told.len() == 2 && told.iter().all(|entry| entry.starts_with("access  1 ")), "{told:?}");
}

#[test]
fn who_says_nothing_where_something_has_to_be_said_has_its_time_and_no_more() {
    let limits = "[limits]\nhandshake_timeout = \"10 ms\"";
    let world = World::edged("", None, &[]);
    let config = world.config("proxy_protocol = [\"127.0.0.1\"]", None, limits);
    let proxy = world.start_with(&config).unwrap();
    let mut client = Client::new(TcpStream::connect(proxy.address().unwrap()).unwrap());
    assert_eq!(client.told(), "the end");
    use bulla_proxy::counters::RefusedConnection::HandshakeTimeout;
    while proxy.counters().refused(HandshakeTimeout).get() == 0 {
        std::thread::yield_now();
    }
}

/// A client's side of TLS.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// An authority of a test's own, which certifies 127.0.0.1 and people.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { folder: tempfile::tempdir().unwrap(), issuer };
        authority.write("ca.pem", &authority.issuer.pem());
        authority
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Certifies an address or a name, in files of the name `file`.
    pub(crate) fn certify(&self, file: &str, common_name: &str, address: &[String]) {
        let mut params = CertificateParams::new(address).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        self.write(&format!("{file}.pem"), &certificate.pem());
        self.write(&format!("{file}.key"), &key.serialize_pem());
    }

    /// Connects over TLS, with a certificate of this name if any.
    fn connect(&self, world: &World, file: Option<&str>) -> Client<TlsStream> {
        self.connect_to(world.proxy(), file, b"")
    }

    /// The same, to any proxy, with something said before TLS begins.
    pub(crate) fn connect_to(&self, proxy: &Proxy, file: Option<&str>, before: &[u8]) -> Client<TlsStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.path("ca.pem")).unwrap()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = match file {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let certificate = CertificateDer::from_pem_file(self.path(&format!("{file}.pem"))).unwrap();
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{file}.key"))).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        let address = proxy.address().unwrap();
        let connection = ClientConnection::new(Arc::new(config), address.ip().into()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(before).unwrap();
        Client::new(StreamOwned::new(connection, stream))
    }

    /// What a server needs to speak TLS at this address, with clients that have certificates.
    pub(crate) fn server(&self, address: &str, port: u16) -> [String; 12] {
        let [ca, certificate, key] =
            ["ca.pem", "server.pem", "server.key"].map(|name| shown(&self.path(name)));
        let port = port.to_string();
        [
            ["--bind", address],
            ["--tls-port", &port],
            ["--tls-cert-file", &certificate],
            ["--tls-key-file", &key],
            ["--tls-ca-cert-file", &ca],
            ["--tls-auth-clients", "yes"],
        ]
        .concat()
        .try_into()
        .map(|words: [&str; 12]| words.map(str::to_owned))
        .unwrap()
    }

    /// What the proxy needs to speak TLS with clients that have certificates.
    pub(crate) fn listen(&self) -> String {
        let [ca, certificate, key] = ["ca.pem", "proxy.pem", "proxy.key"].map(|name| self.path(name));
        format!("[listen.tls]\ncertificate = {certificate:?}\nkey = {key:?}\nclient_ca = {ca:?}")
    }
}

/// An address of this machine that no other test has, at a port that nobody has.
pub(crate) fn free_address() -> (String, u16) {
    let [.., one, other] = std::process::id().to_be_bytes();
    let address = format!("127.{}.{}.1", 64 + one % 64, other);
    let listener = TcpListener::bind((address.as_str(), 0)).unwrap();
    (address, listener.local_addr().unwrap().port())
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn with_tls_on_both_sides_the_certificates_name_acts_until_somebody_authenticates() {
    let authority = Authority::new();
    let (address, port) = free_address();
    authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
    authority.certify("server", "the server", std::slice::from_ref(&address));
    authority.certify("ada", "ada", &[]);
    let arguments = authority.server(&address, port);
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let ca = shown(&authority.path("ca.pem"));
    let [own, own_key] = ["proxy.pem", "proxy.key"].map(|name| authority.path(name));
    let upstream = format!(
        "address = \"{address}:{port}\"\n[upstream.tls]\nca = {ca:?}\ncertificate = {own:?}\nkey = {own_key:?}"
    );
    let world = World::edged(&authority.listen(), Some(&upstream), &arguments);
    let mut client = authority.connect(&world, Some("ada"));
    let value = "x".repeat(300_000);
    assert_eq!(client.command(&[b"SET", b"a", value.as_bytes()]).told(), "OK");
    assert_eq!(client.ask("GET a"), value);
    assert_eq!(client.ask("ACL SETUSER eve on >secret ~* +@all"), "OK");
    assert_eq!(client.ask_all(&["AUTH eve wrong", "GET b", "AUTH eve secret", "GET c"])[2], "OK");
    assert_eq!(client.ask_all(&["RESET", "GET d"])[0], "RESET");
    // Who ends without saying so over TLS has ended all the same.
    client.stream.sock.shutdown(std::net::Shutdown::Write).unwrap();
    let read = client.stream.read(&mut [0]);
    assert!(matches!(read, Ok(0)), "{read:?}");
    let told = world.entries();
    let read = |key: &str| {
        let found = told.iter().find(|entry| entry.starts_with(&format!("read {key} "))).unwrap();
        assert!(found.contains("\"certificate\":\"ada\""), "{found}");
        found.split(' ').find_map(|word| word.strip_prefix("actor=")).unwrap_or("default").to_owned()
    };
    assert_eq!(["a", "b", "c", "d"].map(read), ["ada", "ada", "eve", "ada"]);
}

#[test]
fn a_client_without_a_certificate_does_not_reach_the_server() {
    let authority = Authority::new();
    authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
    let world = World::edged(&authority.listen(), None, &[]);
    let mut client = authority.connect(&world, None);
    let refused = client.stream.write_all(b"PING\r\n").and_then(|()| client.stream.read(&mut [0; 64]));
    assert!(!matches!(refused, Ok(1..)), "{refused:?}");
    use bulla_proxy::counters::RefusedConnection::Tls;
    while world.proxy().counters().refused(Tls).get() == 0 {
        std::thread::yield_now();
    }
    // Nor one that speaks no TLS, and none whose header nobody asked for.
    for said in ["PING\r\n", "PROXY UNKNOWN\r\n"] {
        let mut client = world.connect();
        client.send(said).finish();
        let mut answer = Vec::new();
        // An alert at most.
        let _ = client.stream.read_to_end(&mut answer);
        assert!(answer.first().is_none_or(|kind| *kind == 0x15), "{said}: {answer:?}");
    }
    assert_eq!(world.entries(), [""; 0]);
}

#[test]
fn another_configuration_holds_at_once_or_not_at_all() {
    let authority = Authority::new();
    authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
    let world = World::edged("", None, &[]);
    let mut client = world.connect();
    assert_eq!(client.ask("SET user:ada:x 1"), "OK");
    let eval = "EVAL \"return 1\" 0";
    assert!(client.ask(eval).starts_with("BULLA "));
    let reload = world.proxy().reloader();
    let rule = "[policy]\nscripts = \"record\"\n[[rules]]\nkey = \"user:{subject}:*\"\n";
    for (listen, tables, key) in [
        ("unix = \"other.sock\"", "", "`listen.unix`"),
        ("", "[limits]\nlearned = \"1 MiB\"", "`limits.learned`"),
        (authority.listen().as_str(), "", "`listen.tls`"),
    ] {
        let config = world.config(listen, None, &format!("{tables}\n{rule}"));
        let refused = reload.reload(&config).unwrap_err();
        assert!(refused.to_string().starts_with(key), "{refused}");
    }
    assert!(client.ask(eval).starts_with("BULLA "));
    reload.reload(&world.config("", None, rule)).unwrap();
    // Whoever comes now comes after it.
    while client.ask(eval) != "1" {}
    assert_eq!(client.ask("GET user:ada:x"), "1");
    let told = world.entries();
    assert!(told[0].starts_with("write user:ada:x 0 payload="), "{told:?}");
    assert!(told.last().unwrap().starts_with("read user:ada:x 0 subject=ada"), "{told:?}");
}

/// What is told over HTTP: the status and the text.
fn got(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: proxy\r\n\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn what_is_counted_and_whether_clients_are_served_is_told_over_http() {
    let mut world = World::new(
        "mode = \"before-reply\"\nmetrics = \"127.0.0.1:0\"",
        "[[rules]]\nkey = \"user:{subject}:*\"",
        &[],
    );
    let mut client = world.connect();
    assert_eq!(client.ask_all(&["SET user:ada:x 1", "SET other 1"]), ["OK", "OK"]);
    for line in ["EVAL \"return 1\" 0", "MONITOR", "GET other", "RESET"] {
        client.ask(line);
    }
    client.command(&[b"EVAL", b"return 1", b"0"]).told();
    let address = world.proxy().metrics_address().unwrap();
    let (status, text) = got(address, "/metrics");
    assert_eq!(status, 200);
    let number = |series: &str| {
        let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
        let line = line.unwrap_or_else(|| panic!("{series} in {text}"));
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    for (series, expected) in [
        ("bulla_proxy_clients", 1.0),
        ("bulla_proxy_connections_total", 1.0),
        // MONITOR is an entry, too.
        ("bulla_proxy_recorded_total", 3.0),
        ("bulla_proxy_unmapped_total", 1.0),
        ("bulla_proxy_unrecorded_total", 0.0),
        ("bulla_proxy_refused_commands_total{reason=\"scripts\"}", 2.0),
        ("bulla_proxy_refused_commands_total{reason=\"not_relayed\"}", 1.0),
        ("bulla_proxy_refused_connections_total{reason=\"tls\"}", 0.0),
        ("bulla_proxy_lost_at_most", 0.0),
        ("bulla_log_lost_total", 0.0),
        ("bulla_log_dropped_total", 0.0),
        // What was answered is durable, and nothing else was taken.
        ("bulla_log_pending_entries", 0.0),
        ("bulla_log_lag_seconds", 0.0),
        ("bulla_log_replicas_left_out", 0.0),
        ("bulla_log_failovers_total", 0.0),
        ("bulla_log_failing_paths", 0.0),
    ] {
        assert_eq!(number(series), expected, "{series}");
    }
    assert!(number("bulla_proxy_client_bytes_total") > 50.0, "{text}");
    assert!(number("bulla_log_durable_total") >= 3.0, "{text}");
    assert!(number("bulla_proxy_durability_wait_seconds_count") >= 1.0, "{text}");
    assert_eq!(got(address, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(got(address, "/readyz"), (200, "ready\n".to_owned()));
    world.close_log();
    assert!(world.connect().ask("GET other").starts_with("BULLA the audit log did not keep"));
    assert_eq!(got(address, "/readyz"), (503, "not ready: the log takes no entries\n".to_owned()));
    assert_eq!(client.ask("MULTI"), "OK");
    world.proxy().stopper().stop();
    let ends = "not ready: the proxy ends, and takes no more clients\n";
    assert_eq!(got(address, "/readyz"), (503, ends.to_owned()));
}
