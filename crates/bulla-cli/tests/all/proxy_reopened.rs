//! `proxy`: a log that has failed for good and is opened again while clients are served.

use crate::proxy::{config, limit_files, line, start_telling};
use crate::support::{Place, command, eventually, exit, finish, signal};
use bulla_testkit::RedisServer;
use rustix::process::{Resource, Signal, getrlimit};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

const RULES: &str = "[[rules]]\nkey = \"key*\"\nhash_field = \"USR\"";

/// What is told over HTTP at a path.
fn told_at(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told
}

#[test]
fn it_goes_on_by_itself_and_knows_what_it_knew_and_whoever_is_erased_is_forgotten() {
    let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
    // By itself it tries what fails for a quarter of an hour.
    place.run("config", &["set", "retries", "3"]).exits(exit::DONE);
    let server = RedisServer::start(folder.path(), &[]);
    let text = format!("workers = 2\nmetrics = \"127.0.0.1:0\"\n{}", config(&place, &server, RULES));
    let file = place.write("proxy.toml", text.as_bytes());
    let (child, mut told, client, before) = start_telling(command(["proxy", &file]));
    let metrics = before.lines().find_map(|line| line.strip_prefix("metrics are at http://"));
    let metrics = metrics.and_then(|rest| rest.strip_suffix("/metrics")).unwrap().parse().unwrap();
    let mut client = BufReader::new(client);
    let address = client.get_ref().peer_addr().unwrap();
    let mut ask = |command: &str| {
        client.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
        line(&mut client)
    };
    for person in ["ada", "bob"] {
        assert_eq!(ask(&format!("HSET key-{person} USR {person}")), ":1");
    }
    eventually("the first entries are durable", || place.info("entries").as_u64() == Some(2));
    limit_files(&child, Some(0));
    // What was done last may not have been refused yet; a reply that is not recorded ends its connection.
    let another = |command: &str| {
        let mut client = BufReader::new(TcpStream::connect(address).unwrap());
        client.get_mut().write_all(format!("{command}\r\n").as_bytes()).unwrap();
        line(&mut client)
    };
    eventually("the log has failed", || {
        another("HGET key-ada USR");
        told_at(metrics, "/metrics").contains("\nbulla_proxy_log_failed 1\n")
    });
    let said = "the log has failed, and it is tried to open it again: ";
    eventually("that is said", || line(&mut told).starts_with(said));
    let ready = told_at(metrics, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("not opened again yet"), "{ready}");
    limit_files(&child, getrlimit(Resource::Fsize).maximum);
    eventually("the log is opened again", || line(&mut told).starts_with("the log takes entries again"));
    assert!(told_at(metrics, "/metrics").contains("\nbulla_proxy_log_reopened_total 1\n"));
    eventually("commands are recorded", || another("HGET key-ada none") == "$-1");
    eventually("it is ready", || told_at(metrics, "/readyz").starts_with("HTTP/1.1 200"));
    // The one that was opened again takes requests of others.
    place.run("erase", &["--subject", "bob", "--yes"]).exits(exit::DONE);
    assert_eq!(another("HGET key-bob none"), "$-1");
    signal(&child, Signal::TERM);
    finish(child).exits(exit::DONE);
    place.run("verify", &["--strict"]).exits(exit::DONE);
    let entries = place.entries();
    let gaps = entries.iter().filter(|entry| entry["operation"] == "gap").collect::<Vec<_>>();
    assert_eq!(gaps.len(), 1, "{entries:?}");
    let payload = serde_json::from_str::<serde_json::Value>(gaps[0]["payload"].as_str().unwrap()).unwrap();
    assert!(payload["unrecorded"].is_u64() && payload["lost_at_most"].is_u64(), "{payload}");
    let at = entries.iter().position(|entry| entry["operation"] == "gap").unwrap();
    let subject_of = |key: &str| {
        let told = entries[at..].iter().rfind(|entry| entry["location"] == key);
        told.and_then(|entry| entry["subject"].as_str().map(str::to_owned))
    };
    assert_eq!((subject_of("key-ada").as_deref(), subject_of("key-bob")), (Some("ada"), None), "{entries:?}");
}
