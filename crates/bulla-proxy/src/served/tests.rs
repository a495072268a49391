//! Requests as clients send them, and as nobody should.

use super::*;
use crate::metrics::{Value, format};
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::net::TcpStream;

#[derive(Default)]
struct Proxy {
    full: AtomicBool,
    /// Whether it has a defect, and of how many it was told.
    defective: AtomicBool,
    defects: AtomicUsize,
    /// How often it was told that nobody can come.
    not_listening: AtomicUsize,
}

impl Observed for Proxy {
    fn metrics(&self) -> Vec<Metric> {
        assert!(!self.defective.load(Ordering::Relaxed), "the test wants it");
        let value = Value::Counter(7);
        vec![Metric { name: "bulla_proxy_clients_total", help: "Clients that came.", labels: &[], value }]
    }

    fn ready(&self) -> Result<(), String> {
        match self.full.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err("the log takes no entries".to_owned()),
        }
    }

    fn not_accepted(&self, error: &io::Error) {
        panic!("{error}");
    }

    fn not_listening(&self, error: &io::Error) {
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::INVAL.raw_os_error()));
        self.not_listening.fetch_add(1, Ordering::Relaxed);
    }

    fn defective(&self) {
        self.defects.fetch_add(1, Ordering::Relaxed);
    }
}

/// Status and body of a response.
fn read(response: &[u8]) -> (u16, String) {
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut head = httparse::Response::new(&mut fields);
    let body = head.parse(response).unwrap();
    let httparse::Status::Complete(body) = body else { panic!("{}", response.escape_ascii()) };
    let field = |name: &str| head.headers.iter().find(|field| field.name == name).map(|field| field.value);
    let body = std::str::from_utf8(&response[body..]).unwrap();
    let length: usize = std::str::from_utf8(field("Content-Length").unwrap()).unwrap().parse().unwrap();
    assert!(length == body.len() || body.is_empty(), "{length} {body}");
    assert_eq!(field("Connection"), Some(&b"close"[..]));
    (head.code.unwrap(), body.to_owned())
}

/// What is said to a request, which nothing is said to before it is there as a whole.
fn said(request: &str, proxy: &Proxy) -> (u16, String) {
    for cut in 0..request.len() {
        assert_eq!(respond(&request.as_bytes()[..cut], proxy), None, "{}", &request[..cut]);
    }
    read(&respond(request.as_bytes(), proxy).unwrap())
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost:9121\r\nAccept: */*\r\n\r\n")
}

#[test]
fn metrics_and_health_are_told() {
    let proxy = Proxy::default();
    for target in ["/metrics", "/metrics?name[]=x", "http://localhost:9121/metrics"] {
        let (status, body) = said(&get(target), &proxy);
        assert_eq!(
            (status, format::read(&body).unwrap()["bulla_proxy_clients_total"]),
            (200, 7.0),
            "{target}"
        );
    }
    assert_eq!(said("GET /metrics HTTP/1.0\r\n\r\n", &proxy).0, 200);
    let told = |target| said(&get(target), &proxy);
    let text = |status, body: &str| (status, body.to_owned());
    assert_eq!(told("/healthz"), text(200, "ok\n"));
    assert_eq!(told("/readyz"), text(200, "ready\n"));
    proxy.full.store(true, Ordering::Relaxed);
    assert_eq!(told("/readyz"), text(503, "not ready: the log takes no entries\n"));
    assert_eq!(told("/healthz"), text(200, "ok\n"));
    for target in ["/", "/metrics/", "/Metrics", "*", "/../metrics", "http://localhost", "metrics"] {
        assert_eq!(told(target), text(404, "there is /metrics, /healthz and /readyz\n"), "{target}");
    }
    assert_eq!(said(&get("/readyz").replace("GET", "HEAD"), &proxy), text(503, ""));
    let head = |name: &str| respond(format!("{name} /metrics HTTP/1.0\r\n\r\n").as_bytes(), &proxy).unwrap();
    let [with_body, without] = [head("GET"), head("HEAD")];
    assert!(with_body.starts_with(&without) && with_body.len() > without.len());
}

#[test]
fn what_is_no_request_is_refused() {
    let proxy = Proxy::default();
    let no_host = "a request of HTTP/1.1 has one field `Host`\n";
    let no_method = "there is GET and HEAD, and no other method\n";
    for (request, status, body) in [
        ("GET /metrics HTTP/1.1\r\n\r\n".to_owned(), 400, no_host),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n".to_owned(), 400, no_host),
        (get("/metrics").replace("GET", "POST"), 405, no_method),
        (get("/metrics").replace("GET", "get"), 405, no_method),
    ] {
        assert_eq!(said(&request, &proxy), (status, body.to_owned()), "{request}");
    }
    let too_large = "the head of a request has at most 8 KiB and 64 fields\n";
    let no_request = "this is no request of HTTP/1.1\n";
    for (request, status, body) in [
        (format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(HEAD)), 431, too_large),
        (format!("GET /{}", "x".repeat(HEAD)), 431, too_large),
        (format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(FIELDS + 1)), 431, too_large),
        ("*1\r\n$4\r\nPING\r\n".to_owned(), 400, no_request),
        ("GET /metrics HTTP/2.0\r\n\r\n".to_owned(), 400, no_request),
        ("GET /metrics HTTP/1.1\r\nHost\r\n\r\n".to_owned(), 400, no_request),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\n b\r\n\r\n".to_owned(), 400, no_request),
        ("\x16\x03\x01".to_owned(), 400, no_request),
    ] {
        assert_eq!(
            read(&respond(request.as_bytes(), &proxy).unwrap()),
            (status, body.to_owned()),
            "{request}"
        );
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// All that comes back over a connection of its own.
async fn ask(address: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    Ok(response)
}

#[test]
fn many_are_served_over_tcp() {
    runtime().block_on(async {
        let served = Served::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = served.address();
        let taken = Served::listen(address).await.map(drop).unwrap_err().to_string();
        assert!(taken.starts_with(&format!("metrics cannot be served on `metrics`, {address}: ")), "{taken}");
        let server = tokio::spawn(served.run(Arc::new(Proxy::default())));
        // Those that say nothing hold nobody up while one more can be served.
        let mut held = Vec::new();
        for _ in 1..CONNECTIONS {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        for _ in 0..3 * CONNECTIONS {
            assert_eq!(
                read(&ask(address, get("/readyz").as_bytes()).await.unwrap()),
                (200, "ready\n".to_owned())
            );
        }
        drop(held);
        let mut requests = JoinSet::new();
        for _ in 0..10 * CONNECTIONS {
            requests.spawn(async move { ask(address, get("/metrics").as_bytes()).await.unwrap() });
        }
        for response in requests.join_all().await {
            assert_eq!(read(&response).0, 200);
        }
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        assert!(ask(address, b"").await.is_err());
    });
}

#[test]
fn no_more_are_served_at_once_than_is_said_and_those_that_are_slow_hold_nobody_up() {
    runtime().block_on(async {
        let served = Served::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = served.address();
        tokio::spawn(served.run(Arc::new(Proxy::default())));
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(b"GET /metrics HTTP/1.1\r\n").await.unwrap();
            held.push(slow);
        }
        // Those that came first make room for those who ask.
        for _ in 0..2 {
            let response = ask(address, get("/healthz").as_bytes()).await.unwrap();
            assert_eq!(read(&response), (200, "ok\n".to_owned()));
        }
        // The second may have come before the first had left.
        let mut ended = 0;
        for slow in &mut held {
            slow.write_all(b"Host: localhost\r\n\r\n").await.unwrap_or_default();
            let mut response = Vec::new();
            let _ = slow.read_to_end(&mut response).await;
            ended += u32::from(response.is_empty());
        }
        assert!((1..=2).contains(&ended), "{ended}");
    });
}

#[test]
fn what_comes_behind_a_request_is_taken_but_not_without_end() {
    let proxy = Proxy::default();
    let sent = |length: usize| {
        runtime().block_on(async {
            let (mut near, far) = tokio::io::duplex(1000);
            let client = async {
                near.write_all(get("/healthz").as_bytes()).await?;
                near.write_all(&vec![b'x'; length]).await?;
                near.shutdown().await?;
                let mut response = Vec::new();
                near.read_to_end(&mut response).await?;
                io::Result::Ok(read(&response))
            };
            tokio::join!(client, serve(far, &proxy, Duration::MAX)).0
        })
    };
    assert_eq!(sent(60_000).unwrap(), (200, "ok\n".to_owned()));
    assert_eq!(sent(100_000).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn nobody_is_waited_for_longer_than_is_said() {
    let proxy = Proxy::default();
    runtime().block_on(async {
        for sent in [String::new(), "GET /metrics HTTP/1.1\r\n".to_owned(), get("/metrics")] {
            // The first two never go on; the third does not read what it asked for, or does not end.
            for room in [1, 10_000] {
                let (mut near, far) = tokio::io::duplex(room);
                let client = async {
                    let _ = near.write_all(sent.as_bytes()).await;
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    () = client => {}
                    () = serve(far, &proxy, Duration::from_millis(5)) => {}
                }
            }
        }
        // Who goes away is not waited for at all.
        for sent in ["", "GET /metrics HTTP/1.1\r\n"] {
            let (mut near, far) = tokio::io::duplex(1000);
            near.write_all(sent.as_bytes()).await.unwrap();
            near.shutdown().await.unwrap();
            serve(far, &proxy, Duration::MAX).await;
            let mut response = Vec::new();
            assert_eq!(near.read_to_end(&mut response).await.unwrap(), 0);
        }
    });
}

proptest! {
    #[test]
    fn no_bytes_break_the_server(bytes: Vec<u8>, target: String, field: String) {
        let proxy = Proxy::default();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {field}\r\n\r\n");
        for bytes in [bytes, request.into_bytes()] {
            if let Some(response) = respond(&bytes, &proxy) {
                read(&response);
            }
        }
    }
}

#[test]
fn an_answer_that_ends_by_a_defect_is_told_of_and_others_are_given() {
    runtime().block_on(async {
        let served = Served::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, proxy) = (served.address(), Arc::new(Proxy::default()));
        tokio::spawn(served.run(proxy.clone()));
        proxy.defective.store(true, Ordering::Relaxed);
        assert_eq!(ask(address, get("/metrics").as_bytes()).await.unwrap_or_default(), b"");
        assert_eq!(proxy.defects.load(Ordering::Relaxed), 1);
        proxy.defective.store(false, Ordering::Relaxed);
        assert_eq!(read(&ask(address, get("/metrics").as_bytes()).await.unwrap()).0, 200);
    });
}

#[test]
fn where_the_socket_has_failed_it_is_listened_anew() {
    runtime().block_on(async {
        let served = Served::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, proxy) = (served.address(), Arc::new(Proxy::default()));
        rustix::net::shutdown(&served.listener, rustix::net::Shutdown::Both).unwrap();
        tokio::spawn(served.run(proxy.clone()));
        while proxy.not_listening.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let response = loop {
            match ask(address, get("/healthz").as_bytes()).await {
                Ok(response) => break response,
                Err(_) => tokio::time::sleep(HELD).await,
            }
        };
        assert_eq!(read(&response), (200, "ok\n".to_owned()));
        assert_eq!(proxy.not_listening.load(Ordering::Relaxed), 1);
    });
}
