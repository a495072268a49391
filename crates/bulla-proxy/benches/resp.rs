//! What reading a command or a reply costs beside relaying it: nanoseconds each, pipelined, in buffers of 16 KiB as the relay has
//! them. The best of many short rounds counts: one in which nothing else ran on the processor.
//!
//!     cargo bench -p bulla-proxy --bench resp
#![allow(clippy::disallowed_methods, reason = "it measures")]

use bulla_proxy::resp::{Digest, Limits, Progress, Replies, Requests, Violation, write_command};
use std::time::Instant;

const EACH: usize = 1_000;
const ROUNDS: u32 = 2_000;
const LIMITS: Limits = Limits { bytes: 16 << 10, items: 128, text: 1 << 10 };

fn main() -> Result<(), Violation> {
    let set = |key: usize, bytes: &mut Vec<u8>| {
        write_command(&[b"SET", format!("key:{key:012}").as_bytes(), &[b'x'; 64]], bytes);
    };
    let get = |key: usize, bytes: &mut Vec<u8>| {
        write_command(&[b"GET", format!("key:{key:012}").as_bytes()], bytes);
    };
    let keep_all = |length| (length, Digest::None);
    let keep_key = |length| if length > 16 { (0, Digest::OfCut) } else { (length, Digest::None) };
    println!("{:<34} {:>6}", "", "ns");
    command("SET, all kept", &set, keep_all)?;
    command("SET, a digest of the value", &set, keep_key)?;
    command("GET", &get, keep_all)?;
    reply("+OK", b"+OK\r\n")?;
    reply("$-1", b"$-1\r\n")?;
    reply("64 bytes", &[b"$64\r\n", &[b'x'; 64][..], b"\r\n"].concat())?;
    reply("ten elements", &[b"*10\r\n", &b"$8\r\nxxxxxxxx\r\n".repeat(10)[..]].concat())
}

fn command(
    name: &str,
    write: &dyn Fn(usize, &mut Vec<u8>),
    keep: fn(usize) -> (usize, Digest),
) -> Result<(), Violation> {
    let mut bytes = Vec::new();
    (0..EACH).for_each(|key| write(key, &mut bytes));
    let mut requests = Requests::new(LIMITS, [0; 32]);
    let next = |bytes: &[u8]| {
        requests.next(bytes, |_, _, length| keep(usize::try_from(length).unwrap_or(usize::MAX)))
    };
    measure(name, &bytes, next)
}

fn reply(name: &str, reply: &[u8]) -> Result<(), Violation> {
    let mut replies = Replies::new(LIMITS);
    measure(name, &reply.repeat(EACH), |bytes| replies.next(bytes))
}

fn measure(
    name: &str,
    bytes: &[u8],
    mut next: impl FnMut(&[u8]) -> Result<Progress, Violation>,
) -> Result<(), Violation> {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut complete = 0;
        for mut buffer in bytes.chunks(16 << 10) {
            while !buffer.is_empty() {
                let progress = next(buffer)?;
                complete += usize::from(progress.complete);
                buffer = &buffer[progress.consumed..];
            }
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / complete as f64);
    }
    println!("{name:<34} {best:>6.1}");
    Ok(())
}
