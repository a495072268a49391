//! How much memory the proxy has: without clients, while a great value passes, and with connections that are idle.
//!
//! It is what the process has resident, by the kernel's count; of the value the peak while it is set and read. Both are told less what the
//! process had before any client came.

use super::audited::{Audit, Audited};
use super::client::{Client, Reply};
use super::process::Running;
use super::server::Server;
use super::setup::Setup;
use crate::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::Path;

/// What is sent and received at once, in bytes.
const CHUNK: usize = 1 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) audit: Audit,
    /// Connections that are idle.
    pub(crate) idle: u32,
    /// Bytes of the value.
    pub(crate) value: u64,
    pub(crate) setup: Setup,
}

/// In MB, which bars are in.
fn megabytes(bytes: f64) -> f64 {
    bytes / 1e6
}

pub(crate) fn run(run: &Memory, place: &Path) -> Result<Outcome, Failure> {
    let Memory { audit, idle, value, setup } = run;
    setup.apply()?;
    let server = Server::start(place)?;
    let audited = Audited::start(*audit, server.port(), setup, place)?;
    let now = |running: &Running| Ok::<_, Failure>(running.memory()?.0);
    let none = now(audited.running())?;

    // First, while nothing is left of other connections that it could use.
    audited.running().forget_peak()?;
    let mut client = Client::connect(audited.port())?;
    set(&mut client, *value)?;
    get(&mut client, *value)?;
    let peak = audited.running().memory()?.1;
    drop(client);

    let mut clients = Vec::new();
    for number in 0..*idle {
        let mut client = Client::connect(audited.port())?;
        client.ask(&["SET", &format!("key:{number}"), "value"])?;
        clients.push(client);
    }
    let with_idle = now(audited.running())?;
    drop(clients);

    let mut outcome = Outcome::default();
    outcome.set("alone_mb", megabytes(none));
    outcome.set("idle_extra_mb", megabytes(with_idle - none));
    outcome.set("value_extra_mb", megabytes(peak - none));
    let ended = audited.end()?;
    ended.check(u64::from(*idle) + 2)?;
    Ok(outcome)
}

fn set(client: &mut Client, length: u64) -> Result<(), Failure> {
    let (chunk, mut left) = (vec![b'v'; CHUNK], length);
    let stream = client.stream();
    write!(stream, "*3\r\n$3\r\nSET\r\n$9\r\nkey:great\r\n${length}\r\n")?;
    while left > 0 {
        let part = left.min(CHUNK as u64);
        stream.write_all(&chunk[..usize::try_from(part)?])?;
        left -= part;
    }
    stream.write_all(b"\r\n")?;
    match client.receive()? {
        Reply::Line(line) if line == "OK" => Ok(()),
        other => Err(format!("SET was answered {other:?}").into()),
    }
}

/// Reads the value without keeping it.
fn get(client: &mut Client, length: u64) -> Result<(), Failure> {
    let stream = client.stream();
    stream.write_all(b"*2\r\n$3\r\nGET\r\n$9\r\nkey:great\r\n")?;
    let head = format!("${length}\r\n");
    let mut first = vec![0; head.len()];
    stream.read_exact(&mut first)?;
    if first != head.as_bytes() {
        return Err(format!("GET was answered {}", String::from_utf8_lossy(&first)).into());
    }
    let (mut chunk, mut left) = (vec![0; CHUNK], length + 2);
    while left > 0 {
        let part = usize::try_from(left.min(CHUNK as u64))?;
        match stream.read(&mut chunk[..part])? {
            0 => return Err("the connection was closed".into()),
            count => left -= count as u64,
        }
    }
    Ok(())
}
