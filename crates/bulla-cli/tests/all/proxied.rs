//! A running proxy before a running redis-server, for tests that look at the entries it leaves.

use crate::support::{Place, command, exit, finish, parse_lines, signal};
use bulla_testkit::RedisServer;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};

/// A proxy, its log, and the server behind it.
pub(crate) struct Proxied {
    pub(crate) place: Place,
    pub(crate) address: String,
    child: Child,
    told: BufReader<ChildStderr>,
    server: RedisServer,
    /// Its configuration.
    file: String,
    _folder: tempfile::TempDir,
}

impl Proxied {
    /// With these lines at the beginning of the configuration, and those at its end.
    pub(crate) fn start(head: &str, tail: &str) -> Proxied {
        let (place, folder) = (Place::new(), tempfile::tempdir().unwrap());
        let server = RedisServer::start(folder.path(), &[]);
        let (audit, socket) = (place.audit(), server.socket());
        let config = format!(
            "{head}\n[log]\ndirectory = {audit:?}\n[listen]\naddress = \"127.0.0.1:0\"\n[upstream]\nunix = {socket:?}\n{tail}\n"
        );
        let file = place.write("proxy.toml", config.as_bytes());
        let (child, told, address) = listening(&file);
        Proxied { place, address, child, told, server, file, _folder: folder }
    }

    /// Starts it again, once it was killed or ended.
    pub(crate) fn start_again(&mut self) {
        (self.child, self.told, self.address) = listening(&self.file);
    }

    /// Ends it in order. The server goes on.
    pub(crate) fn end(&mut self) {
        signal(&self.child, Signal::TERM);
        self.told.read_to_string(&mut String::new()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// A connection to the server, around the proxy.
    pub(crate) fn around(&self) -> UnixStream {
        UnixStream::connect(self.server.socket()).unwrap()
    }

    /// Sends lines that end with `QUIT`, and reads whatever comes.
    pub(crate) fn quit_after(&self, lines: &str) -> String {
        let mut client = self.connect();
        client.write_all(format!("{lines}QUIT\r\n").as_bytes()).unwrap();
        let mut replies = Vec::new();
        client.read_to_end(&mut replies).unwrap();
        String::from_utf8_lossy(&replies).into_owned()
    }

    /// Ends the proxy in order; its entries, with their payloads.
    pub(crate) fn entries(mut self) -> Vec<(Value, Value)> {
        signal(&self.child, Signal::TERM);
        self.told.read_to_string(&mut String::new()).unwrap();
        finish(self.child).exits(exit::DONE);
        exported(&self.place)
    }

    /// Kills the proxy. The server goes on.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Where a proxy listens, by a line that it tells, as text or in an object.
pub(crate) fn listens_at(line: &str) -> Option<String> {
    let object = serde_json::from_str::<Value>(line).ok();
    let message = object.as_ref().map_or(line.trim_end(), |object| object["message"].as_str().unwrap());
    message.strip_prefix("listening at ").map(str::to_owned)
}

/// A proxy that listens, what it says besides, and where it listens.
fn listening(file: &str) -> (Child, BufReader<ChildStderr>, String) {
    let mut child = command(["proxy", file, "--json"]).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut before = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(told.read_line(&mut line).unwrap() > 0, "{before}");
        match listens_at(&line) {
            Some(address) => break address,
            // After a kill, what was recovered.
            None => before += &line,
        }
    };
    (child, told, address)
}

/// All entries of a log, with their payloads.
pub(crate) fn exported(place: &Place) -> Vec<(Value, Value)> {
    let entries = parse_lines(&place.run("export", &[]).exits(exit::DONE).out);
    let payload = |entry: &Value| serde_json::from_str(entry["payload"].as_str().unwrap()).unwrap();
    entries.into_iter().map(|entry| (entry.clone(), payload(&entry))).collect()
}
