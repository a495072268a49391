//! How long a command takes at half the load that is possible through HAProxy: on the way there is without anything in between, through
//! HAProxy, and through the proxy, one after the other.
//!
//! It is an open loop: a command is due at a time that is set beforehand, on one of fifty connections in their turn, whether or not what
//! that one sent before is answered; and its latency counts from then, so that waiting behind a slow one counts. One thread sends and receives,
//! and sleeps in between: what it takes of the processors is load, too.

use super::audited::{Audit, Audited};
use super::client::{Reply, encode, parse};
use super::haproxy::Haproxy;
use super::load::{CONNECTIONS, KEYS, VALUE, load};
use super::server::Server;
use super::setup::Setup;
use crate::latency::{LONGEST, tell};
use crate::outcome::{Failure, Outcome};
use crate::statistics::whole;
use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{self, PollFd, PollFlags, Timespec, epoll};
use rustix::thread::set_current_timer_slack;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long no reply may come.
const SILENCE: Duration = Duration::from_secs(30);
/// What is received at once, in bytes.
const CHUNK: usize = 64 << 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) audit: Audit,
    /// Of `SET` and of `GET` each, that show how many there can be.
    pub(crate) commands: u64,
    /// How long each way is measured.
    pub(crate) seconds: f64,
    pub(crate) setup: Setup,
}

pub(crate) fn run(run: &Latency, place: &Path) -> Result<Outcome, Failure> {
    let Latency { audit, commands, seconds, setup } = run;
    setup.apply()?;
    let server = Server::start(place)?;
    let haproxy = Haproxy::start(server.port(), place)?;
    let audited = Audited::start(*audit, server.port(), setup, place)?;
    let possible = load(haproxy.port(), *commands, 1)?.both();
    let pace = Pace { rate: possible / 2.0, count: whole(seconds * possible / 2.0).max(1) };

    let mut outcome = Outcome::default();
    outcome.set("haproxy_commands_per_second", possible);
    outcome.set("rate_per_second", pace.rate);
    for (name, port) in [("direct", server.port()), ("haproxy", haproxy.port()), ("proxy", audited.port())] {
        tell(name, &pace.keep(port)?, &mut outcome);
    }
    for percentile in ["p50", "p99"] {
        let of = |way: &str| outcome.get(&format!("{way}_{percentile}_ns"));
        if let (Some(proxy), Some(haproxy)) = (of("proxy"), of("haproxy")) {
            outcome.set(format!("added_{percentile}_us"), (proxy - haproxy) / 1e3);
        }
    }
    let ended = audited.end()?;
    ended.check(pace.count)?;
    ended.tell(&mut outcome);
    Ok(outcome)
}

struct Pace {
    /// Commands a second.
    rate: f64,
    count: u64,
}

impl Pace {
    fn due(&self, start: Instant, number: u64) -> Instant {
        start + Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// Sends all commands, each when it is due; how long after that each was answered, in nanoseconds.
    fn keep(&self, port: u16) -> Result<Histogram<u64>, Failure> {
        // A wait ends when a command is due, and not within the 50 us after that which a thread is given without this.
        set_current_timer_slack(NonZeroU64::new(1))?;
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::new();
        for index in 0..u64::from(CONNECTIONS) {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nodelay(true)?;
            epoll::add(&poll, &stream, epoll::EventData::new_u64(index), epoll::EventFlags::IN)?;
            connections.push(Connection { stream, received: Vec::new(), answered: 0 });
        }
        let mut latencies = Histogram::new_with_bounds(1, LONGEST, 3)?;
        let (mut command, mut chunk) = (Vec::new(), vec![0; CHUNK]);
        let mut events = Vec::with_capacity(connections.len());
        let (start, mut sent, mut heard) = (Instant::now(), 0, Instant::now());
        while latencies.len() < self.count {
            let now = Instant::now();
            while sent < self.count && self.due(start, sent) <= now {
                command.clear();
                encode_command(sent, &mut command);
                connections[usize::try_from(sent % u64::from(CONNECTIONS))?].stream.write_all(&command)?;
                sent += 1;
            }
            let next = if sent < self.count { self.due(start, sent) } else { heard + SILENCE };
            if !wait(&poll, next.saturating_duration_since(Instant::now()), &mut events)? {
                if heard.elapsed() >= SILENCE {
                    return Err(format!("no reply came for {} s", SILENCE.as_secs()).into());
                }
                continue;
            }
            heard = Instant::now();
            for event in &events {
                let index = event.data.u64();
                let connection = &mut connections[usize::try_from(index)?];
                let count = connection.stream.read(&mut chunk)?;
                let now = Instant::now();
                if count == 0 {
                    return Err("a connection was closed".into());
                }
                connection.received.extend_from_slice(&chunk[..count]);
                for _ in 0..connection.take_replies()? {
                    let number = connection.answered * u64::from(CONNECTIONS) + index;
                    connection.answered += 1;
                    let late = now.saturating_duration_since(self.due(start, number)).as_nanos();
                    latencies.saturating_record(u64::try_from(late).unwrap_or(LONGEST).clamp(1, LONGEST));
                }
            }
        }
        Ok(latencies)
    }
}

/// Waits until there is something to receive, no longer than `timeout`. Whether there is.
fn wait(poll: &OwnedFd, timeout: Duration, events: &mut Vec<epoll::Event>) -> Result<bool, Failure> {
    events.clear();
    // epoll_wait(2) knows milliseconds only.
    if event::poll(&mut [PollFd::new(poll, PollFlags::IN)], Some(&timeout.try_into()?))? == 0 {
        return Ok(false);
    }
    Ok(epoll::wait(poll, spare_capacity(events), Some(&Timespec::default()))? > 0)
}

/// One connection, and what was received of it.
struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    answered: u64,
}

impl Connection {
    /// How many replies there are now; they are gone then.
    fn take_replies(&mut self) -> Result<u64, Failure> {
        let (mut at, mut count) = (0, 0);
        while let Some((reply, length)) = parse(&self.received[at..])? {
            if let Reply::Error(error) = reply {
                return Err(format!("the server answered {error}").into());
            }
            at += length;
            count += 1;
        }
        self.received.drain(..at);
        Ok(count)
    }
}

/// A `SET` or a `GET`, as `redis-benchmark` sends them.
fn encode_command(number: u64, out: &mut Vec<u8>) {
    // The golden ratio spreads numbers that follow each other.
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let key = format!("key:{:012}", (spread >> 1) % u64::from(KEYS));
    match spread & 1 {
        0 => encode(&[b"SET".as_slice(), key.as_bytes(), &[b'v'; VALUE]], out),
        _ => encode(&["GET", &key], out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers every command of its connections; on one of them waits for so long once the first is there.
    fn answering(listener: &TcpListener, delay: Duration) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            for number in 0..CONNECTIONS {
                let (mut stream, _) = listener.accept()?;
                scope.spawn(move || {
                    let (mut bytes, mut delay) = ([0; 4096], Some(delay).filter(|_| number == 0));
                    while let Ok(count @ 1..) = stream.read(&mut bytes) {
                        delay.take().into_iter().for_each(std::thread::sleep);
                        let commands = bytes[..count].iter().filter(|byte| **byte == b'*').count();
                        if stream.write_all("+OK\r\n".repeat(commands).as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
            Ok(())
        })
    }

    #[test]
    fn who_waits_behind_a_slow_one_is_slow() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let pace = Pace { rate: 1e6, count: 10 * u64::from(CONNECTIONS) };
        let latencies = std::thread::scope(|scope| {
            scope.spawn(|| answering(&listener, Duration::from_millis(50)));
            pace.keep(port).unwrap()
        });
        assert_eq!(latencies.len(), pace.count);
        // All of them were due within half a millisecond, those of one connection behind one that took fifty.
        let slow = latencies.count_between(40_000_000, LONGEST);
        assert!(slow >= 10, "{slow}");
    }

    #[test]
    fn both_commands_are_sent_on_every_connection() {
        let mut sent = vec![[0; 2]; CONNECTIONS as usize];
        let mut connections = (0..sent.len()).cycle();
        for number in 0..u64::from(CONNECTIONS) * 100 {
            let mut command = Vec::new();
            encode_command(number, &mut command);
            let Some((Reply::Items(words), length)) = parse(&command).unwrap() else { panic!() };
            assert_eq!(length, command.len());
            sent[connections.next().unwrap()][words.len() - 2] += 1;
        }
        assert!(sent.iter().flatten().all(|count| *count > 20), "{sent:?}");
    }
}
