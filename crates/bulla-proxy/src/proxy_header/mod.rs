//! Headers of the PROXY protocol, versions 1 and 2: with one, a load balancer says at the beginning of a connection for whom it comes.
//!
//! Whether a connection begins with a header is never guessed from its bytes: peers that the configuration names have to send one,
//! and of all others one is refused ([`Expected`]), for whoever may send a header may claim any address. A header is read as a
//! whole or not at all, from the bytes that have come so far, which the caller keeps: at most [`MOST`].
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

#[cfg(test)]
mod tests;

use crate::config::Network;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header of version 1, in bytes, with the end of its line.
pub const MOST_V1: usize = 107;
/// The longest header of version 2 that is read, in bytes. The protocol's own limit is four times as much; what is in use has some
/// hundreds, and some thousands where a certificate is in it.
pub const MOST_V2: usize = 16 << 10;
/// How many bytes it takes at most to know what a header says.
pub const MOST: usize = if MOST_V1 > MOST_V2 { MOST_V1 } else { MOST_V2 };

const SIGNATURE_V1: &[u8] = b"PROXY ";
const SIGNATURE_V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const FIXED_V2: usize = 16;
/// The type of the record that has a checksum over the whole header.
const CRC32C: u8 = 0x03;

/// Whether a peer has to begin with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It has to.
    Required,
    /// It must not.
    Refused,
}

/// What the beginning of a connection says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How many bytes the header has; what is behind them is the client's. None, where there is no header.
    pub length: usize,
    /// For whom the peer comes.
    pub source: Source,
}

/// For whom a peer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// For nobody else: it sent no header, and had to send none; or one that says so (`LOCAL`), as of health checks, and by some
    /// peers of clients that have no address.
    Peer,
    /// For a client with this address.
    Client(SocketAddr),
    /// For a client on a Unix socket of its machine.
    Unix,
    /// For somebody of whom it cannot say who it is (`UNKNOWN`, `UNSPEC`).
    Unknown,
}

/// Bytes that are not the header that they have to be. The connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderError {
    /// What was expected in the place of what came, without repeating what came.
    pub what: &'static str,
}

impl Expected {
    /// What is expected of the peer at an address, where these have to send headers.
    pub fn of(senders: &[Network], peer: IpAddr) -> Self {
        match senders.iter().any(|network| network.contains(peer)) {
            true => Expected::Required,
            false => Expected::Refused,
        }
    }

    /// What the first bytes of a connection say; `None` while there are too few of them to know. Of a peer that must not send a
    /// header that is only as long as its bytes could still become one: no command begins as headers do for more than a few bytes.
    ///
    /// # Errors
    /// A header that must not be there; one that is missing, or says nothing that can be believed.
    pub fn read(self, bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
        match self {
            Expected::Required => read(bytes),
            Expected::Refused => match signature(bytes) {
                Signature::Unfinished => Ok(None),
                Signature::None => Ok(Some(Header { length: 0, source: Source::Peer })),
                Signature::V1 | Signature::V2 => Err(HeaderError {
                    what: "there is a PROXY header, and this peer must not send any: have it send none, or put its address \
                           into `listen.proxy_protocol`",
                }),
            },
        }
    }
}

/// What a connection begins with.
enum Signature {
    V1,
    V2,
    /// Neither.
    None,
    /// Too few bytes to tell.
    Unfinished,
}

fn signature(bytes: &[u8]) -> Signature {
    if bytes.starts_with(SIGNATURE_V1) {
        Signature::V1
    } else if bytes.starts_with(SIGNATURE_V2) {
        Signature::V2
    } else if SIGNATURE_V1.starts_with(bytes) || SIGNATURE_V2.starts_with(bytes) {
        Signature::Unfinished
    } else {
        Signature::None
    }
}

/// The header that bytes begin with; `None` while it is not there as a whole.
fn read(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    match signature(bytes) {
        Signature::V1 => version_1(bytes),
        Signature::V2 => version_2(bytes),
        Signature::Unfinished => Ok(None),
        Signature::None => wrong(
            "there is no PROXY header, and this peer has to send one: have it send one, or take its address out of \
             `listen.proxy_protocol`",
        ),
    }
}

/// One line of text.
fn version_1(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    const END: &str = "a PROXY header of version 1 ends with \\r\\n, after 107 bytes at most";
    let within = &bytes[..bytes.len().min(MOST_V1)];
    let Some(end) = within.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
        return if within.len() < MOST_V1 { Ok(None) } else { wrong(END) };
    };
    match within[end..] {
        [b'\r', b'\n', ..] => {}
        [b'\r'] if within.len() < MOST_V1 => return Ok(None),
        _ => return wrong(END),
    }
    let source = line(&within[SIGNATURE_V1.len()..end])?;
    Ok(Some(Header { length: end + 2, source }))
}

/// What the line says behind its signature.
fn line(text: &[u8]) -> Result<Source, HeaderError> {
    const FORM: &str = "behind PROXY stand TCP4 or TCP6, two addresses of that kind and two ports, or UNKNOWN, with one space \
                        between them";
    if text == b"UNKNOWN" || text.starts_with(b"UNKNOWN ") {
        // What is behind it says nothing.
        return Ok(Source::Unknown);
    }
    let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
    let [family, source, destination, source_port, destination_port] = words[..] else {
        return wrong(FORM);
    };
    let address: fn(&str) -> Option<IpAddr> = match family {
        b"TCP4" => |text| text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        b"TCP6" => |text| text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        _ => return wrong(FORM),
    };
    let end = |ip: &[u8], number: &[u8]| {
        let ip = address(std::str::from_utf8(ip).ok()?)?;
        Some(SocketAddr::new(ip, port(std::str::from_utf8(number).ok()?)?))
    };
    match (end(source, source_port), end(destination, destination_port)) {
        (Some(source), Some(_)) => Ok(Source::Client(source)),
        _ => wrong(FORM),
    }
}

/// A port as a number without a sign and without zeros before it.
fn port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| plain)
}

/// Fixed fields, addresses, and records of a type, a length and a value.
fn version_2(bytes: &[u8]) -> Result<Option<Header>, HeaderError> {
    let Some(fixed) = bytes.first_chunk::<FIXED_V2>() else {
        return Ok(None);
    };
    let [.., command, family, length_high, length_low] = *fixed;
    let length = FIXED_V2 + usize::from(u16::from_be_bytes([length_high, length_low]));
    if command >> 4 != 2 {
        return wrong("the signature is that of version 2 of the PROXY protocol, and the version is another");
    }
    if length > MOST_V2 {
        return wrong("a PROXY header has at most 16 KiB");
    }
    // Whatever can be wrong with these fields is said at once.
    let read: fn(&[u8]) -> Option<(Source, usize)> = match (command & 0xf, family) {
        // Nothing that is behind a command for the peer itself, or for a family that has no addresses, is to be looked at.
        (0, _) => return Ok((bytes.len() >= length).then_some(Header { length, source: Source::Peer })),
        (1, 0x00) => return Ok((bytes.len() >= length).then_some(Header { length, source: Source::Unknown })),
        (1, 0x11) => |body| {
            let (source, port) = (body.first_chunk::<4>()?, body.get(8..12)?.first_chunk::<2>()?);
            Some((Source::Client((*source, u16::from_be_bytes(*port)).into()), 12))
        },
        (1, 0x21) => |body| {
            let (source, port) = (body.first_chunk::<16>()?, body.get(32..36)?.first_chunk::<2>()?);
            Some((Source::Client((*source, u16::from_be_bytes(*port)).into()), 36))
        },
        (1, 0x31) => |body| body.get(..216).map(|paths| (Source::Unix, paths.len())),
        (1, 0x12 | 0x22 | 0x32) => {
            return wrong("the PROXY header is one of datagrams, and this is a connection");
        }
        (1, _) => return wrong("the PROXY header names a family of addresses that the protocol has not"),
        _ => return wrong("the PROXY header names a command that is neither LOCAL nor PROXY"),
    };
    let Some(header) = bytes.get(..length) else {
        return Ok(None);
    };
    let Some((source, records_at)) = read(&header[FIXED_V2..]) else {
        return wrong("the PROXY header is too short for the addresses of its family");
    };
    records(header, FIXED_V2 + records_at)?;
    Ok(Some(Header { length, source }))
}

/// Checks the records that begin at a byte of a header of version 2, and its checksum where one of them has it. What else they
/// say is not used.
fn records(header: &[u8], mut at: usize) -> Result<(), HeaderError> {
    const LENGTH: &str = "a record of the PROXY header is longer than what is left of it";
    let mut checksum: Option<usize> = None;
    while at < header.len() {
        let Some([kind, length_high, length_low]) = header[at..].first_chunk() else {
            return wrong(LENGTH);
        };
        let value = at + 3;
        at = value + usize::from(u16::from_be_bytes([*length_high, *length_low]));
        if at > header.len() {
            return wrong(LENGTH);
        }
        if *kind == CRC32C && (at - value != 4 || checksum.replace(value).is_some()) {
            return wrong("the PROXY header has one checksum at most, and it has four bytes");
        }
    }
    // The checksum is over the header with zeros in its own place.
    let Some((before, Some((found, after)))) =
        checksum.map(|at| (&header[..at], header[at..].split_first_chunk()))
    else {
        return Ok(());
    };
    let computed = [&[0; 4], after].into_iter().fold(crc32c::crc32c(before), crc32c::crc32c_append);
    match computed == u32::from_be_bytes(*found) {
        true => Ok(()),
        false => wrong("the checksum of the PROXY header is not that of its bytes"),
    }
}

fn wrong<T>(what: &'static str) -> Result<T, HeaderError> {
    Err(HeaderError { what })
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.what)
    }
}

impl std::error::Error for HeaderError {}
