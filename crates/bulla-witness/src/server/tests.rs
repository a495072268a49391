//! Requests over the network, by the client of this project and by hand.

use super::*;
use crate::SIZE_TYPE;
use bulla_crypto::environment::{SystemClock, SystemRandom};
use bulla_crypto::signing::SigningKey;
use bulla_http::{Address, Client, Options, Roots};
use bulla_proof::CosignatureAlgorithm;
use bulla_proof::checkpoint::{Checkpoint, sign_checkpoint};
use bulla_proof::tree;
use bulla_testkit::Memory;
use std::io::{Read, Write};
use std::thread::JoinHandle;

struct Running {
    address: SocketAddr,
    stop: Stop,
    server: Option<JoinHandle<io::Result<()>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        self.server.take().unwrap().join().unwrap().unwrap();
    }
}

fn log() -> SigningKey {
    SigningKey::from_seed("example.com/log", &[3; 32]).unwrap()
}

fn run(tls: Option<Tls>) -> Running {
    let (state, keys) = (Arc::new(Memory::new()), Arc::new(Memory::new()));
    Witness::begin("w.example/1", CosignatureAlgorithm::Ed25519, &*state, &*keys, &SystemRandom).unwrap();
    let tell: Tell = Arc::new(|_: &str| {});
    let logs = vec![log().verifier().clone().into()];
    let witness = Arc::new(Witness::open((state, keys), logs, Arc::new(SystemClock), tell.clone()).unwrap());
    let server = Server::listen("127.0.0.1:0".parse().unwrap(), tls).unwrap();
    let (address, stop) = (server.address(), server.stopper());
    Running { address, stop, server: Some(std::thread::spawn(move || server.run(&witness, &tell))) }
}

/// A request for the empty tree, which there always is.
fn request() -> String {
    let checkpoint = Checkpoint::new("example.com/log", 0, tree::empty_root());
    format!("old 0\n\n{}", sign_checkpoint(&checkpoint, log().verifier(), |text| log().sign(text)))
}

fn posted(body: &str) -> String {
    format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Sends bytes, and reads until the other side closes.
fn exchange(running: &Running, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(running.address).unwrap();
    // It may close before all was sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn a_checkpoint_that_is_posted_is_cosigned() {
    let running = run(None);
    let options = Options { plain_loopback: true, ..Options::default() };
    let address =
        Address::parse(&format!("http://{}", running.address), &options).unwrap().below(crate::request::PATH);
    let client = Client::new(&Options { roots: roots().0, ..options }).unwrap();
    for _ in 0..3 {
        let answer = client.post(&address, "text/plain", request().as_bytes()).unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.body.starts_with("\u{2014} w.example/1 ".as_bytes()));
    }
    let answer =
        client.post(&address, "text/plain", request().replacen("old 0", "old 1", 1).as_bytes()).unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(client.get(&address).unwrap().status, 405);
}

#[test]
fn requests_follow_each_other_on_a_connection() {
    let running = run(None);
    let three = [posted(&request()), posted("old 0\n\nx\n1\n"), posted(&request())].concat();
    let answer = exchange(&running, three.as_bytes());
    let statuses: Vec<_> =
        answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "400", "200"], "{answer}");
    assert!(!answer.contains("Connection: close"));
    // Byte by byte, too.
    let mut stream = TcpStream::connect(running.address).unwrap();
    for byte in posted(&request()).replacen("Host", "Connection: close\r\nHost", 1).as_bytes() {
        stream.write_all(&[*byte]).unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Connection: close"), "{answer}");
}

#[test]
fn what_is_no_request_is_refused_and_the_next_one_served() {
    let running = run(None);
    let with = |head: &str| format!("{head}\r\n\r\n");
    let many = "A: b\r\n".repeat(65);
    let long = format!("A: {}", "b".repeat(9000));
    for (bytes, status) in [
        (with("GET / HTTP/1.1\r\nHost: w"), "404"),
        (with("GET /add-checkpoint HTTP/1.1\r\nHost: w"), "405"),
        (with("POST /add-checkpoint/ HTTP/1.1\r\nHost: w\r\nContent-Length: 0"), "404"),
        (with("POST /add-checkpoint HTTP/1.1\r\nContent-Length: 0"), "400"),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nHost: v\r\nContent-Length: 0"), "400"),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w"), "411"),
        (
            with(
                "POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\nContent-Length: 3",
            ),
            "411",
        ),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: +3"), "400"),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 3\r\nContent-Length: 4"), "400"),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 65537"), "413"),
        (with("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 99999999999999999999999"), "400"),
        (with(&format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n{many}Content-Length: 0")), "431"),
        (with(&format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n{long}")), "431"),
        ("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n".to_owned(), "400"),
        (with("nothing"), "400"),
    ] {
        let answer = exchange(&running, bytes.as_bytes());
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{}: {answer}",
            &bytes[..bytes.len().min(120)]
        );
        assert!(answer.contains("Connection: close\r\n"), "{answer}");
    }
    let head = exchange(&running, with("HEAD /nothing HTTP/1.1\r\nHost: w").as_bytes());
    assert!(head.starts_with("HTTP/1.1 404 ") && head.ends_with("\r\n\r\n"), "{head}");
    // Cut off anywhere, nothing is answered and nobody else disturbed.
    let whole = posted(&request());
    for end in (0..whole.len()).step_by(7) {
        assert_eq!(exchange(&running, &whole.as_bytes()[..end]), "");
    }
    assert!(exchange(&running, whole.as_bytes()).starts_with("HTTP/1.1 200 "));
}

#[test]
fn who_waits_for_leave_to_send_the_body_gets_it() {
    let running = run(None);
    let whole = posted(&request()).replacen("Host", "Expect: 100-continue\r\nHost", 1);
    let answer = exchange(&running, whole.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{answer}");
}

#[test]
fn the_size_that_the_witness_has_is_of_its_own_type() {
    let answer = connection::tests::rendered(&Answer::conflict(7));
    assert!(answer.contains(&format!("Content-Type: {SIZE_TYPE}\r\nContent-Length: 2\r\n")), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 409 Conflict\r\n") && answer.ends_with("\r\n\r\n7\n"), "{answer}");
}

/// Those that say nothing end after [`TIME`], and then the next one is served: as it came last, not before one of them ended.
#[test]
fn more_connections_than_there_are_places_wait_and_those_that_say_nothing_keep_nobody_out_for_ever() {
    let running = run(None);
    let silent: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(running.address).unwrap()).collect();
    let answer = exchange(&running, posted(&request()).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let ended = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    };
    assert!(silent.iter().any(ended), "it was served beside as many as there are places");
}

#[test]
fn a_place_is_waited_for_until_one_is_given_back_or_the_server_is_stopped() {
    let server = Server::listen("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let stop = server.stopper();
    let take = || {
        let (places, (sender, receiver)) = (stop.places.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || sender.send(places.take()));
        receiver
    };
    let mut taken: Vec<_> = (0..CONNECTIONS).map(|_| stop.places.take().unwrap()).collect();
    let next = take();
    next.recv_timeout(Duration::from_millis(50)).map(drop).unwrap_err();
    taken.pop();
    taken.push(next.recv().unwrap().expect("one was given back"));
    let (waiting, begun) = (take(), stop.places.now().taken);
    assert_eq!(begun, CONNECTIONS);
    stop.stop();
    assert!(waiting.recv().unwrap().is_none(), "nobody gets one any more");
}

/// Authorities for a client, and a certificate and its key for 127.0.0.1 of theirs.
fn roots() -> (Roots, String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    (Roots::Pem(authority.pem().into_bytes()), certificate.pem(), key.serialize_pem())
}

#[test]
fn the_same_over_tls() {
    let (roots, certificate, key) = roots();
    let running = run(Some(Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap()));
    let options = Options { roots, ..Options::default() };
    let address = Address::parse(&format!("https://{}", running.address), &options)
        .unwrap()
        .below(crate::request::PATH);
    let client = Client::new(&options).unwrap();
    for _ in 0..3 {
        assert_eq!(client.post(&address, "text/plain", request().as_bytes()).unwrap().status, 200);
    }
    // Who speaks no TLS gets no answer of HTTP.
    assert!(!exchange(&running, posted(&request()).as_bytes()).contains("HTTP/1.1"));
    assert_eq!(client.post(&address, "text/plain", request().as_bytes()).unwrap().status, 200);
}

#[test]
fn a_certificate_that_is_none_is_refused_without_repeating_the_key() {
    let (_, certificate, key) = roots();
    let (_, _, other) = roots();
    for (certificate, key) in [("", &key[..]), (&certificate[..], ""), (&certificate, &other), (&key, &key)] {
        let refused = Tls::new(certificate.as_bytes(), key.as_bytes()).unwrap_err().to_string();
        assert!(!key.lines().any(|line| line.len() > 20 && refused.contains(line)), "{refused}");
    }
}
