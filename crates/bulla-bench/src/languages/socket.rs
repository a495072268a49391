//! Entries of four processes over the local socket, against one process that pipes them as lines.
//!
//! Both are whole runs of the command: from before it starts until it has ended, and everything is durable and signed. Clients are
//! there before, and wait.

use super::program::{self, Limits, Told, finish, rust};
use super::{Extent, records};
use crate::command;
use crate::outcome::{Failure, Outcome};
use crate::proxied::Running;
use bulla::Init;
use bulla::socket::{Connection, RemoteReceipt};
use bulla::text::jsonl;
use bulla_workload::Workload;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WORKLOAD: Workload = Workload::Web;
const CLIENTS: u32 = 4;
const BATCH: usize = 100;
/// Batches that may be under way, as the greeting of the socket says.
const WINDOW: usize = 64;
/// Lines that are written to the pipe at once.
const CHUNK: u64 = 512;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Way {
    /// Lines of JSON, on standard input.
    Pipe,
    /// Each client has as many batches under way as it may.
    Window,
    /// Each client waits for a batch before it sends the next.
    OneByOne,
}

pub(super) fn run(way: Way, extent: &Extent, place: &Path) -> Result<Outcome, Failure> {
    let directory = place.join("audit");
    Init::default().create(&directory)?;
    let socket = place.join("audit.sock");
    let told = match way {
        Way::Pipe => pipe(extent, &directory)?,
        Way::Window => connected(WINDOW, extent, &directory, &socket)?,
        Way::OneByOne => connected(1, extent, &directory, &socket)?,
    };
    let mut outcome = told.outcome(ACKNOWLEDGED)?;
    program::check(&directory, &told, &mut outcome)?;
    Ok(outcome)
}

fn append(directory: &Path) -> Result<Command, Failure> {
    let mut command = Command::new(command::program()?);
    command.arg("append").arg(directory).stdout(Stdio::null());
    Ok(command)
}

fn pipe(extent: &Extent, directory: &Path) -> Result<Told, Failure> {
    let chunks = chunks(extent);
    let limits = extent.limits(1);
    let start = Instant::now();
    let mut running = Running::start(append(directory)?.stdin(Stdio::piped()))?;
    let mut entries = 0;
    if let Some(mut input) = running.child().stdin.take() {
        for (count, lines) in chunks.iter().cycle() {
            if limits.are_reached(start, entries) {
                break;
            }
            input.write_all(lines)?;
            entries += count;
        }
    }
    let status = running.child().wait()?;
    if !status.success() {
        return Err(format!("bulla append ended with {status}").into());
    }
    Ok(Told { entries, seconds: start.elapsed().as_secs_f64(), ..Told::default() })
}

/// Lines, and how many of them are together.
fn chunks(extent: &Extent) -> Vec<(u64, Vec<u8>)> {
    let mut generator = WORKLOAD.generator(extent.seed, 0);
    let mut left = records::held(WORKLOAD, extent.seed, extent.entries);
    let mut chunks = Vec::new();
    while left > 0 {
        let (count, mut lines) = (left.min(CHUNK), Vec::new());
        (0..count).for_each(|_| jsonl::write_unnumbered(&generator.next_entry(), &mut lines));
        chunks.push((count, lines));
        left -= count;
    }
    chunks
}

/// Clients, each with so many batches under way.
fn connected(window: usize, extent: &Extent, directory: &Path, socket: &Path) -> Result<Told, Failure> {
    let limits = extent.limits(CLIENTS);
    let held = records::held(WORKLOAD, extent.seed, Some(limits.entries));
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut command = rust("client")?;
        command.arg(socket).arg(window.to_string()).args(limits.arguments());
        let mut client = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let mut input = client.child().stdin.take().ok_or("a client has no standard input")?;
        // Each has other entries.
        input.write_all(&records::records(WORKLOAD, extent.seed + u64::from(number), 1, held))?;
        let output = client.child().stdout.as_mut().ok_or("a client has no standard output")?;
        output.read_exact(&mut [0; READY.len()])?;
        clients.push((client, input));
    }
    let start = Instant::now();
    let mut command = append(directory)?;
    let mut listening = Running::start(command.arg("--listen").arg(socket).stderr(Stdio::piped()))?;
    let mut said = BufReader::new(listening.child().stderr.take().ok_or("nothing is piped")?);
    let mut text = String::new();
    while !text.contains("listening at") {
        if said.read_line(&mut text)? == 0 {
            return Err(format!("bulla append does not listen: {text}").into());
        }
    }
    // The end of their input is what they wait for.
    let (clients, inputs): (Vec<_>, Vec<_>) = clients.into_iter().unzip();
    drop(inputs);
    let told = std::thread::scope(|scope| {
        let threads = clients.into_iter().map(|client| scope.spawn(|| finish(client))).collect::<Vec<_>>();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "waiting for a client panicked")?);
        joined.collect::<Result<Vec<_>, Failure>>()
    })?;
    let status = listening.end()?;
    let seconds = start.elapsed().as_secs_f64();
    if !status.success() {
        said.read_to_string(&mut text)?;
        return Err(format!("bulla append ended with {status}: {text}").into());
    }
    let entries = told.iter().map(|client| client.entries).sum();
    let latencies_ns = told.into_iter().flat_map(|client| client.latencies_ns).collect();
    Ok(Told { entries, seconds, latencies_ns, ..Told::default() })
}

/// The kind of what is timed: from before a batch is sent until its client knows that it is durable.
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
/// What a client says once it has its entries.
const READY: &[u8] = b"ready\n";

/// A client: sends batches of what comes on standard input, again and again, from the end of that on.
pub(super) fn client(socket: &Path, window: usize, limits: Limits) -> Result<Told, Failure> {
    let mut input = std::io::stdin();
    let bytes = records::receive(&mut input)?;
    let entries = records::parse(&bytes)?;
    std::io::stdout().write_all(READY)?;
    std::io::stdout().flush()?;
    input.read_to_end(&mut Vec::new())?;

    let start = Instant::now();
    let connection = Connection::open(socket)?.append_timeout(Duration::from_secs(120));
    let mut producer = connection.producer()?;
    let mut under_way = VecDeque::new();
    let (mut appended, mut latencies_ns) = (0, Vec::new());
    let mut settle = |(begun, receipt): (Instant, RemoteReceipt)| -> Result<(), Failure> {
        receipt.durable()?;
        latencies_ns.push(u64::try_from(begun.elapsed().as_nanos())?);
        Ok(())
    };
    for batch in entries.chunks(BATCH).cycle() {
        if limits.are_reached(start, appended) {
            break;
        }
        let begun = Instant::now();
        producer.append_batch(batch).map_err(|error| error.error)?;
        under_way.push_back((begun, producer.flush()?));
        appended += batch.len() as u64;
        if under_way.len() >= window
            && let Some(oldest) = under_way.pop_front()
        {
            settle(oldest)?;
        }
    }
    under_way.into_iter().try_for_each(&mut settle)?;
    drop(producer);
    connection.close()?;
    Ok(Told { entries: appended, seconds: start.elapsed().as_secs_f64(), latencies_ns, ..Told::default() })
}
