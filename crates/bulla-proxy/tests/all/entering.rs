//! What has to be so together before the first command: TLS and PROXY headers, sockets, certificates that are replaced, and the
//! example configuration with every key of it.

use super::edges::{Authority, TlsStream, V2, free_address, shown};
use super::world::{Client, World, plain};
use bulla_proxy::config::{Config, EXAMPLE};
use bulla_proxy::counters::RefusedConnection;
use bulla_testkit::RedisServer;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// Headers of both versions, and which address each says.
const HEADERS: [(&[u8], &str); 3] = [
    (b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 6379\r\n", "192.0.2.7:4711"),
    (b"PROXY TCP6 ::ffff:192.0.2.8 ::1 4711 6379\r\n", "192.0.2.8:4711"),
    (V2, "192.0.2.9:256"),
];

#[test]
fn with_tls_the_header_of_a_configured_peer_stands_before_it() {
    let authority = Authority::new();
    authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
    authority.certify("ada", "ada", &[]);
    let world = World::edged(&format!("proxy_protocol = [\"127.0.0.1\"]\n{}", authority.listen()), None, &[]);
    let header = b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 6379\r\n";
    let mut client = authority.connect_to(world.proxy(), Some("ada"), header);
    assert_eq!(client.ask("SET a 1"), "OK");
    // Without one nobody comes in, nor with one inside.
    for (before, inside) in [(&b""[..], &b"PING\r\n"[..]), (&b""[..], &header[..])] {
        let mut client = authority.connect_to(world.proxy(), Some("ada"), before);
        let refused = client.stream.write_all(inside).and_then(|()| client.stream.read(&mut [0; 64]));
        assert!(!matches!(refused, Ok(1..)), "{refused:?}");
    }
    while world.proxy().counters().refused(RefusedConnection::ProxyHeader).get() < 2 {
        std::thread::yield_now();
    }
    let entries = world.entries_of_clients();
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (client, entry) = &entries[0];
    assert!(client == "192.0.2.7:4711" && entry.starts_with("write a 0 actor=ada"), "{entries:?}");
}

#[test]
fn whoever_comes_over_a_socket_must_not_send_a_header() {
    let world = World::edged("proxy_protocol = [\"0.0.0.0/0\"]", None, &[]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("clients");
    let config = world.config(&format!("proxy_protocol = [\"0.0.0.0/0\"]\nunix = {socket:?}"), None, "");
    let proxy = world.start_with(&config).unwrap();
    let connect = || Client::new(UnixStream::connect(&socket).unwrap());
    assert_eq!(connect().ask("SET a 1"), "OK");
    for header in [&b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 6379\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        let mut client = connect();
        // At once: the connection is closed as soon as the header is there.
        let sent = [header, b"SET b 1\r\n"].concat();
        assert!(client.send(&sent).told().contains("this peer must not send any"));
    }
    assert_eq!(proxy.counters().refused(RefusedConnection::ProxyHeader).get(), 2);
    drop(proxy);
    let clients = world.entries_of_clients();
    assert!(
        clients.len() == 1 && clients[0].0 == "unix" && clients[0].1.starts_with("write a 0"),
        "{clients:?}"
    );
}

#[test]
fn whoever_may_connect_to_a_socket_is_configured() {
    let world = World::edged("", None, &[]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("clients");
    for (lines, expected) in [("", 0o660), ("\nunix_mode = \"0606\"", 0o606)] {
        let config = world.config(&format!("unix = {socket:?}{lines}"), None, "");
        let proxy = world.start_with(&config).unwrap();
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected);
        assert_eq!(Client::new(UnixStream::connect(&socket).unwrap()).ask("PING"), "PONG");
        let other = world.config(&format!("unix = {socket:?}\nunix_mode = \"0600\""), None, "");
        let refused = proxy.reloader().reload(&other).unwrap_err();
        assert!(refused.to_string().starts_with("`listen.unix_mode`"), "{refused}");
        drop(proxy);
        assert!(!socket.exists());
    }
}

/// What the proxy shows.
fn shows(client: &Client<TlsStream>) -> Vec<u8> {
    client.stream.conn.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn certificates_that_are_replaced_are_shown_to_those_who_come_after_the_reload() {
    let authority = Authority::new();
    let certify = || {
        authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
        CertificateDer::from_pem_file(authority.path("proxy.pem")).unwrap().to_vec()
    };
    let first = certify();
    authority.certify("ada", "ada", &[]);
    let world = World::edged(&authority.listen(), None, &[]);
    let connect = || {
        let mut client = authority.connect_to(world.proxy(), Some("ada"), b"");
        assert_eq!(client.ask("PING"), "PONG");
        client
    };
    let mut before = connect();
    assert_eq!(shows(&before), first);
    let second = certify();
    assert_eq!(shows(&connect()), first, "nobody has said that it should be read anew");
    let reload = world.proxy().reloader();
    let config = world.config(&authority.listen(), None, "");
    // One that does not fit its key changes nothing.
    let key = authority.path("proxy.key");
    let whole = std::fs::read(&key).unwrap();
    std::fs::write(&key, "nonsense").unwrap();
    reload.reload(&config).unwrap_err();
    assert_eq!(shows(&connect()), first);
    std::fs::write(&key, whole).unwrap();
    reload.reload(&config).unwrap();
    // The thread of clients hears of it a little later.
    while shows(&connect()) == first {}
    assert_eq!(shows(&connect()), second);
    assert_eq!(before.ask("PING"), "PONG");
}

#[test]
fn a_server_that_wants_certificates_takes_the_proxys_and_no_other() {
    let authority = Authority::new();
    let (address, port) = free_address();
    authority.certify("server", "the server", std::slice::from_ref(&address));
    let arguments = authority.server(&address, port);
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let world = World::edged("", None, &arguments);
    let without =
        format!("address = \"{address}:{port}\"\n[upstream.tls]\nca = {:?}", authority.path("ca.pem"));
    assert!(world.start_with(&world.config("", Some(&without), "")).is_err());
    let plainly = format!("address = \"{address}:{port}\"");
    assert!(world.start_with(&world.config("", Some(&plainly), "")).is_err());
    let stranger = Authority::new();
    stranger.certify("proxy", "the proxy", &[]);
    let certificates = |authority: &Authority| {
        let [certificate, key] = ["proxy.pem", "proxy.key"].map(|name| authority.path(name));
        format!("{without}\ncertificate = {certificate:?}\nkey = {key:?}")
    };
    assert!(world.start_with(&world.config("", Some(&certificates(&stranger)), "")).is_err());
    authority.certify("proxy", "the proxy", &[]);
    world.start_with(&world.config("", Some(&certificates(&authority)), "")).unwrap();
}

/// An authority that has certified the proxy, ada, and a server with TLS; where that is to listen, and by which arguments it does.
fn everybody() -> (Authority, (String, u16), [String; 12]) {
    let authority = Authority::new();
    let (address, port) = free_address();
    authority.certify("server", "the server", std::slice::from_ref(&address));
    authority.certify("proxy", "the proxy", &["127.0.0.1".to_owned()]);
    authority.certify("ada", "ada", &[]);
    let arguments = authority.server(&address, port);
    (authority, (address, port), arguments)
}

#[test]
fn tls_on_both_sides_and_the_header_of_a_configured_peer_stand_together() {
    let (authority, (address, port), arguments) = everybody();
    let world = World::edged("", None, &arguments.each_ref().map(String::as_str));
    let [ca, certificate, key] = ["ca.pem", "proxy.pem", "proxy.key"].map(|name| authority.path(name));
    let upstream = format!(
        "address = \"{address}:{port}\"\n[upstream.tls]\nca = {ca:?}\ncertificate = {certificate:?}\nkey = {key:?}"
    );
    let listen = format!("proxy_protocol = [\"127.0.0.0/8\"]\n{}", authority.listen());
    let proxy = world.start_with(&world.config(&listen, Some(&upstream), "")).unwrap();
    for (header, _) in HEADERS {
        let mut client = authority.connect_to(&proxy, Some("ada"), header);
        // More than TLS has in one record, both ways.
        let value = "x".repeat(100_000);
        assert_eq!(client.command(&[b"SET", b"a", value.as_bytes()]).told(), "OK");
        assert_eq!(client.ask("GET a"), value);
    }
    // Whoever says nothing, or has no certificate, does not come in.
    for (header, file) in [(&b""[..], Some("ada")), (HEADERS[0].0, None)] {
        let mut client = authority.connect_to(&proxy, file, header);
        let refused = client.stream.write_all(b"SET b 1\r\n").and_then(|()| client.stream.read(&mut [0; 64]));
        assert!(!matches!(refused, Ok(1..)), "{refused:?}");
    }
    assert_eq!(world.around().ask("EXISTS b"), "0");
    drop(proxy);
    let told = world.entries_of_clients();
    let expected = HEADERS.iter().flat_map(|(_, client)| [("write a 0", *client), ("read a 0", *client)]);
    assert_eq!(told.len(), expected.clone().count());
    for ((client, entry), (operation, address)) in told.iter().zip(expected) {
        assert!(client == address && entry.starts_with(&format!("{operation} actor=ada")), "{told:?}");
    }
}

/// The example with every key that it has, also those that have no default.
fn everything() -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_proxy_starts_with_the_example_and_every_key_in_it() {
    let (authority, (address, port), arguments) = everybody();
    let folder = tempfile::tempdir().unwrap();
    let server = RedisServer::start(folder.path(), &arguments.each_ref().map(String::as_str));
    let mut direct = Client::new(UnixStream::connect(server.socket()).unwrap());
    assert_eq!(direct.ask("ACL SETUSER bulla on >secret -@all +command"), "OK");
    std::fs::write(folder.path().join("password"), "secret\n").unwrap();
    let world = World::edged("", None, &[]);
    let mut text = everything();
    for (example, here) in [
        ("/var/lib/bulla/audit.keys", shown(&world.directory().with_extension("keys"))),
        ("/var/lib/bulla/audit", shown(&world.directory())),
        ("127.0.0.1:6380", "127.0.0.1:0".to_owned()),
        ("127.0.0.1:9121", "127.0.0.1:0".to_owned()),
        ("/run/bulla/proxy.sock", shown(&folder.path().join("clients"))),
        ("unix = \"/run/redis/redis.sock\"\n", String::new()),
        ("127.0.0.1:6379", format!("{address}:{port}")),
        ("redis.example.com", address.clone()),
        ("/etc/bulla/redis.password", shown(&folder.path().join("password"))),
        ("/etc/bulla/redis-ca.pem", shown(&authority.path("ca.pem"))),
        ("/etc/bulla/clients.pem", shown(&authority.path("ca.pem"))),
        ("/etc/bulla/proxy.pem", shown(&authority.path("proxy.pem"))),
        ("/etc/bulla/proxy.key", shown(&authority.path("proxy.key"))),
    ] {
        assert!(text.contains(example), "{example}");
        text = text.replace(example, &here);
    }
    let proxy = world.start_with(&Config::parse(text.as_bytes()).unwrap()).unwrap();
    assert!(proxy.metrics_address().is_some());
    let mut client = authority.connect_to(&proxy, Some("ada"), b"");
    assert_eq!(client.ask_all(&["SET user:42:email x", "SET other x"]), ["OK", "OK"]);
    let mut client = Client::new(UnixStream::connect(folder.path().join("clients")).unwrap());
    assert_eq!(client.ask("GET session/web/7"), "null");
    // Nobody comes in without a certificate: an alert is all that there is.
    let mut plainly = TcpStream::connect(proxy.address().unwrap()).unwrap();
    plainly.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plainly.read_to_end(&mut answer);
    assert!(answer.first().is_none_or(|kind| *kind == 0x15), "{answer:?}");
    drop(proxy);
    let entries = world.entries_of_clients().into_iter().map(|(_, entry)| entry).collect::<Vec<_>>();
    let mut entries = plain(&entries);
    entries.sort_unstable();
    assert_eq!(
        entries,
        [
            "read session/web/7 0 subject=7",
            "write other 0 subject=unknown actor=ada",
            "write user:42:email 0 subject=42 actor=ada",
        ]
    );
}
