use super::*;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::time::Instant;

/// A server that does with each connection what `serve` does, and its port. It ends with the process.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let serve = Arc::new(serve);
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Reads a request: its header, and as much of a body as that says.
fn request(stream: &mut impl Read) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !read.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return String::from_utf8(read).unwrap();
        }
        read.push(byte[0]);
    }
    let header = String::from_utf8(read).unwrap();
    let length = header
        .to_lowercase()
        .split("content-length: ")
        .nth(1)
        .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    header + &String::from_utf8(body).unwrap()
}

/// A server that answers each request with these bytes and then closes.
fn answering(answer: impl Into<Vec<u8>>) -> u16 {
    let answer = answer.into();
    server(move |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(&answer);
    })
}

fn plain() -> Options {
    let patience = Duration::from_secs(60);
    Options { plain_loopback: true, connect: patience, total: patience, ..with_roots(&authority("a")) }
}

fn get(options: &Options, port: u16) -> Result<Answer, Error> {
    let address = Address::parse(&format!("http://127.0.0.1:{port}/x"), options).unwrap();
    Client::new(options).unwrap().get(&address)
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn with_roots(authority: &CertifiedIssuer<'static, KeyPair>) -> Options {
    Options { roots: Roots::Pem(authority.pem().into_bytes()), ..Options::default() }
}

/// A server by TLS for `name`, by a certificate of `issuer`, that answers one request with 200 and `ok`.
fn tls_server(issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    server(move |stream| {
        let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
        if !request(&mut tls).is_empty() {
            let _ = tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
    })
}

fn get_tls(options: &Options, port: u16, host: &str) -> Result<Answer, Error> {
    let address = Address::parse(&format!("https://{host}:{port}"), options).unwrap();
    Client::new(options).unwrap().get(&address)
}

#[test]
fn what_is_posted_arrives_and_what_is_answered_comes_back_whatever_its_status() {
    let port = server(|mut stream| {
        let got = request(&mut stream);
        assert!(got.starts_with("POST /w/add-checkpoint HTTP/1.1\r\n"), "{got}");
        assert!(got.to_lowercase().contains("content-type: text/plain\r\n"), "{got}");
        assert!(got.contains(concat!("bulla/", env!("CARGO_PKG_VERSION"))), "{got}");
        assert!(got.ends_with("\r\n\r\nold 0\n"), "{got}");
        stream
            .write_all(
                b"HTTP/1.1 409 Conflict\r\nContent-Type: text/x.tlog.size\r\nContent-Length: 3\r\n\r\n17\n",
            )
            .unwrap();
    });
    let options = plain();
    let address =
        Address::parse(&format!("http://127.0.0.1:{port}/w/"), &options).unwrap().below("add-checkpoint");
    let answer = Client::new(&options).unwrap().post(&address, "text/plain", b"old 0\n").unwrap();
    assert_eq!(
        answer,
        Answer { status: 409, content_type: Some("text/x.tlog.size".to_owned()), body: b"17\n".to_vec() }
    );
    for status in [200, 204, 400, 403, 404, 422, 500, 503] {
        let port = answering(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(get(&options, port).unwrap().status, status);
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let there = Arc::clone(&asked);
    let elsewhere = server(move |_| {
        there.fetch_add(1, Ordering::SeqCst);
    });
    for status in [301, 302, 303, 307, 308] {
        let port = answering(format!(
            "HTTP/1.1 {status} x\r\nLocation: http://127.0.0.1:{elsewhere}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        let options = plain();
        let address = Address::parse(&format!("http://127.0.0.1:{port}"), &options).unwrap();
        let client = Client::new(&options).unwrap();
        for answer in [client.get(&address), client.post(&address, "text/plain", b"x")] {
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Answer, "{error}");
            assert!(error.to_string().contains(&format!("redirects ({status})")), "{error}");
        }
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn an_answer_is_read_up_to_the_limit_and_refused_beyond_it() {
    let most = Options::default().body;
    assert_eq!(most, 65_536);
    for (length, fits) in [(most, true), (most + 1, false), (most + 1024, false)] {
        let body = "a".repeat(length);
        let told = answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"));
        let chunked = answering(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        ));
        let to_the_end = answering(format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{body}"));
        for port in [told, chunked, to_the_end] {
            let answer = get(&plain(), port);
            if fits {
                assert_eq!(answer.unwrap().body.len(), length);
            } else {
                let error = answer.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Answer);
                assert!(error.to_string().contains("more than 65536 bytes"), "{error}");
            }
        }
    }
    // One that only says that it is long, and one that never ends.
    let lies = answering("HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n");
    assert!(get(&plain(), lies).is_err());
    let endless = server(|mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    assert_eq!(get(&plain(), endless).unwrap_err().kind(), ErrorKind::Answer);
    let endless_header = server(|mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream
            .write_all(b"A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
            .is_ok()
        {}
    });
    assert_eq!(get(&plain(), endless_header).unwrap_err().kind(), ErrorKind::Answer);
}

#[test]
fn what_is_no_answer_is_an_error() {
    for answer in [
        "",
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/1.1 two hundred\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    ] {
        let error = get(&plain(), answering(answer)).unwrap_err();
        assert!(error.to_string().starts_with("http://127.0.0.1:"), "{error}");
        assert_ne!(error.kind(), ErrorKind::Timeout, "{error}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(get(&plain(), closed).unwrap_err().kind(), ErrorKind::Unreachable);
}

/// However a service delays, at each place of an answer, the total limit ends it. What is held is that it ends, and as what; the
/// limit is far below the time that the service would take.
#[test]
fn whoever_delays_is_given_up_in_time() {
    let forever = Duration::from_secs(600);
    let drip = |stream: &mut TcpStream, bytes: &[u8]| {
        for byte in bytes.iter().cycle() {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let silent = server(move |stream| {
        std::thread::sleep(forever);
        drop(stream);
    });
    let header = server(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nA: ");
        drip(&mut stream, b"a");
    });
    let body = server(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n");
        drip(&mut stream, b"a");
    });
    // A record of a handshake that comes byte by byte.
    let handshake = server(move |mut stream| {
        let _ = stream.write_all(&[0x16, 3, 3, 0x30, 0, 2, 0, 0x2f, 0xf0]);
        drip(&mut stream, &[3]);
    });
    let limit = Duration::from_millis(500);
    let options = Options { total: limit, connect: limit, ..plain() };
    for port in [silent, header, body] {
        let began = Instant::now();
        let error = get(&options, port).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(began.elapsed() < forever / 10);
    }
    for port in [silent, handshake] {
        let began = Instant::now();
        let error = get_tls(&options, port, "127.0.0.1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(began.elapsed() < forever / 10);
    }
}

#[test]
fn a_service_has_to_show_a_certificate_of_an_authority_that_is_believed_for_its_name() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let patience = Duration::from_secs(60);
    let options = Options { connect: patience, total: patience, ..with_roots(&ours) };
    assert_eq!(get_tls(&options, tls_server(&ours, "127.0.0.1"), "127.0.0.1").unwrap().body, b"ok");
    for port in [
        tls_server(&theirs, "127.0.0.1"),
        tls_server(&ours, "w.example"),
        tls_server(&authority("ours"), "127.0.0.1"),
    ] {
        let error = get_tls(&options, port, "127.0.0.1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Certificate, "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
    // One that speaks no TLS.
    let plain =
        server(|mut stream| stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap());
    assert!(get_tls(&options, plain, "127.0.0.1").is_err());
    // An address of TLS is never asked without it, whatever is allowed.
    let options = Options { plain_loopback: true, ..options };
    assert_eq!(get_tls(&options, tls_server(&ours, "127.0.0.1"), "127.0.0.1").unwrap().body, b"ok");
}

#[test]
fn authorities_that_are_none_are_refused() {
    let with = |pem: &[u8]| {
        Client::new(&Options { roots: Roots::Pem(pem.to_vec()), ..Options::default() }).unwrap_err()
    };
    for (pem, why) in [
        (&b""[..], "no certificate"),
        (b"nothing", "no certificate"),
        (b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "no PEM"),
        (b"-----BEGIN CERTIFICATE-----\naGFsbG8=\n-----END CERTIFICATE-----\n", "cannot be an authority's"),
    ] {
        let error = with(pem);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// A proxy of the environment would see what is asked, and could answer. This runs itself again with one that is named.
#[test]
fn proxies_of_the_environment_are_not_used() {
    let mine = "client::tests::proxies_of_the_environment_are_not_used";
    if std::env::var_os("BULLA_TEST_PROXY").is_some() {
        let port = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(get(&plain(), port).unwrap().body, b"ok");
        return;
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let there = Arc::clone(&asked);
    let proxy = server(move |_| {
        there.fetch_add(1, Ordering::SeqCst);
    });
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([mine, "--exact"]).env("BULLA_TEST_PROXY", "1").env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, format!("http://127.0.0.1:{proxy}"));
    }
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}
