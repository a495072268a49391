//! What headers say, and that nothing else is taken for one.

use super::*;
use crate::fuzzing;
use proptest::prelude::*;

/// What a header says, of which no shorter beginning says anything, and behind which anything may stand.
fn said(header: &[u8]) -> Source {
    for cut in 0..header.len() {
        assert_eq!(Expected::Required.read(&header[..cut]), Ok(None), "{}", header[..cut].escape_ascii());
    }
    let read = |behind: &[u8]| Expected::Required.read(&[header, behind].concat());
    let found = read(b"").unwrap_or_else(|error| panic!("{error}: {}", header.escape_ascii())).unwrap();
    assert_eq!(found.length, header.len());
    for behind in [&b"\n"[..], b"\r\n", b"PROXY ", b"*1\r\n$4\r\nPING\r\n", &[0; 300]] {
        assert_eq!(read(behind), Ok(Some(found)), "{}", header.escape_ascii());
    }
    found.source
}

fn client(address: &str) -> Source {
    Source::Client(address.parse().unwrap())
}

/// What is said of bytes that are no header.
fn refused(bytes: &[u8]) -> &'static str {
    match Expected::Required.read(bytes) {
        Err(error) => error.what,
        other => panic!("{other:?}: {}", bytes.escape_ascii()),
    }
}

/// A header of version 2.
fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[command, family], &length, body].concat()
}

fn record(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind], &u16::try_from(value.len()).unwrap().to_be_bytes()[..], value].concat()
}

/// CRC32C, bit by bit.
fn slow_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

/// The header with a record behind it that has the checksum over all of it, and behind that `rest`.
fn with_checksum(command: u8, family: u8, body: &[u8], rest: &[u8]) -> Vec<u8> {
    let mut header = v2(command, family, &[body, &record(CRC32C, &[0; 4]), rest].concat());
    let sum = slow_crc32c(&header).to_be_bytes();
    let at = FIXED_V2 + body.len() + 3;
    header[at..at + 4].copy_from_slice(&sum);
    header
}

const IPV4: [u8; 12] = [192, 0, 2, 7, 10, 0, 0, 1, 0xdc, 0x04, 0x18, 0xeb];
const END_V1: &str = "a PROXY header of version 1 ends with \\r\\n, after 107 bytes at most";
const FORM_V1: &str = "behind PROXY stand TCP4 or TCP6, two addresses of that kind and two ports, or UNKNOWN, with one space \
                       between them";
const RECORD: &str = "a record of the PROXY header is longer than what is left of it";
const CHECKSUM: &str = "the checksum of the PROXY header is not that of its bytes";
const ONE_CHECKSUM: &str = "the PROXY header has one checksum at most, and it has four bytes";
const SHORT: &str = "the PROXY header is too short for the addresses of its family";
const MISSING: &str = "there is no PROXY header, and this peer has to send one: have it send one, or take its address out of \
                       `listen.proxy_protocol`";

#[test]
fn a_line_says_the_address_of_a_client() {
    for (header, expected) in [
        ("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", client("192.168.0.1:56324")),
        ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", client("255.255.255.255:65535")),
        ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", client("0.0.0.0:0")),
        ("PROXY TCP6 2001:db8::1 ::1 56324 6379\r\n", client("[2001:db8::1]:56324")),
        ("PROXY TCP6 ::ffff:192.0.2.7 ::ffff:10.0.0.1 1 2\r\n", client("[::ffff:192.0.2.7]:1")),
        (
            "PROXY TCP6 FFFF:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            client("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
        ),
        ("PROXY UNKNOWN\r\n", Source::Unknown),
        ("PROXY UNKNOWN 192.168.0.1 x\0\u{e9}\r\n", Source::Unknown),
    ] {
        assert_eq!(said(header.as_bytes()), expected, "{header}");
    }
    let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(MOST_V1 - 16));
    assert_eq!((longest.len(), said(longest.as_bytes())), (MOST_V1, Source::Unknown));
}

#[test]
fn a_line_that_says_nothing_certain_is_refused() {
    let long = |length: usize| format!("PROXY UNKNOWN {}", "x".repeat(length - 14));
    for (line, expected) in [
        (long(MOST_V1), END_V1),
        (long(MOST_V1 - 1) + "\r\n", END_V1),
        ("PROXY UNKNOWN\n".to_owned(), END_V1),
        ("PROXY UNKNOWN\r\r\n".to_owned(), END_V1),
        ("PROXY UNKNOWNS\r\n".to_owned(), FORM_V1),
        ("PROXY \r\n".to_owned(), FORM_V1),
        ("PROXY unknown\r\n".to_owned(), FORM_V1),
        ("PROXY TCP5 192.0.2.7 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY  TCP4 192.0.2.7 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1 2 \r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.07 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.256 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 ::1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 ::1 ::1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP6 ::1::2 ::1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 00 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 +1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 -1 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 65536 2\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1 \r\n".to_owned(), FORM_V1),
        ("PROXY TCP4 192.0.2.7 10.0.0.1 1 \u{0662}\r\n".to_owned(), FORM_V1),
    ] {
        assert_eq!(refused(line.as_bytes()), expected, "{line}");
    }
    assert_eq!(refused(b"PROXY TCP4 \xff 10.0.0.1 1 2\r\n"), FORM_V1);
}

#[test]
fn the_second_version_says_the_address_of_a_client() {
    let ipv6 = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 11], &[1], &[0; 15], &[2], &[0xdc, 4, 0x18, 0xeb]].concat();
    let unix = [&b"/run/client.sock"[..], &[0; 92], b"/run/proxy.sock", &[0; 93]].concat();
    let records = [record(0x01, b"h2"), record(0x04, b""), record(0xee, &[7; 3000])].concat();
    for (family, addresses, expected) in [
        (0x11, &IPV4[..], client("192.0.2.7:56324")),
        (0x21, &ipv6, client("[2001:db8::1]:56324")),
        (0x31, &unix, Source::Unix),
    ] {
        assert_eq!(said(&v2(0x21, family, addresses)), expected);
        assert_eq!(said(&v2(0x21, family, &[addresses, &records].concat())), expected);
        assert_eq!(said(&with_checksum(0x21, family, addresses, b"")), expected);
        assert_eq!(said(&with_checksum(0x21, family, addresses, &records)), expected);
        for cut in 0..addresses.len() {
            assert_eq!(refused(&v2(0x21, family, &addresses[..cut])), SHORT);
        }
    }
    assert_eq!(said(&v2(0x21, 0x00, b"")), Source::Unknown);
    assert_eq!(said(&v2(0x21, 0x00, b"anything")), Source::Unknown);
    // Of `LOCAL` everything else is ignored, and nothing of it is believed.
    for family in 0..=u8::MAX {
        assert_eq!(said(&v2(0x20, family, b"")), Source::Peer);
        assert_eq!(said(&v2(0x20, family, &[0xff; 40])), Source::Peer);
    }
    let longest = v2(0x21, 0x11, &[&IPV4[..], &record(0xee, &vec![0; MOST_V2 - 16 - 12 - 3])].concat());
    assert_eq!((longest.len(), said(&longest)), (MOST_V2, client("192.0.2.7:56324")));
}

#[test]
fn what_haproxy_2_6_sent_is_read() {
    for (header, expected) in [
        (&b"PROXY TCP4 127.0.0.1 127.0.0.1 58298 17001\r\n"[..], client("127.0.0.1:58298")),
        (b"PROXY TCP6 ::1 ::1 58904 17005\r\n", client("[::1]:58904")),
        (b"PROXY UNKNOWN\r\n", Source::Unknown),
        (
            b"\r\n\r\n\x00\r\nQUIT\n!\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\xea\xb4Bj",
            client("127.0.0.1:60084"),
        ),
        // With `proxy-v2-options crc32c,unique-id`.
        (
            b"\r\n\r\n\x00\r\nQUIT\n!\x11\x00#\x7f\x00\x00\x01\x7f\x00\x00\x01\xacZBk\x03\x00\x04\xc1\xea\x98p\x05\x00\r7F000001:AC5A",
            client("127.0.0.1:44122"),
        ),
        (
            b"\r\n\r\n\x00\r\nQUIT\n!!\x00+\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\xad6Bl\x03\x00\x04\xa5\xb1\r*",
            client("[::1]:44342"),
        ),
        // A health check, and a client on a Unix socket.
        (b"\r\n\r\n\x00\r\nQUIT\n \x00\x00\x00", Source::Peer),
        (b"\r\n\r\n\x00\r\nQUIT\n \x00\x00\x07\x03\x00\x04\xa9\xb8~\x8f", Source::Peer),
    ] {
        assert_eq!(said(header), expected, "{}", header.escape_ascii());
    }
}

#[test]
fn a_header_of_the_second_version_that_says_nothing_certain_is_refused() {
    let family = "the PROXY header names a family of addresses that the protocol has not";
    for other in (0..=u8::MAX).filter(|it| ![0x00, 0x11, 0x12, 0x21, 0x22, 0x31, 0x32].contains(it)) {
        assert_eq!(refused(&v2(0x21, other, &[0; 216])), family, "{other:#x}");
    }
    for datagrams in [0x12, 0x22, 0x32] {
        let expected = "the PROXY header is one of datagrams, and this is a connection";
        assert_eq!(refused(&v2(0x21, datagrams, &[0; 216])), expected);
    }
    for command in 0x22..=0x2f {
        let expected = "the PROXY header names a command that is neither LOCAL nor PROXY";
        assert_eq!(refused(&v2(command, 0x11, &IPV4)), expected);
    }
    for version in (0..=u8::MAX).filter(|it| it >> 4 != 2) {
        let expected = "the signature is that of version 2 of the PROXY protocol, and the version is another";
        assert_eq!(refused(&v2(version, 0x11, &IPV4)), expected);
    }
    // Before any of what is behind the fixed fields has come.
    let long = v2(0x20, 0x00, &vec![0; MOST_V2 - 15]);
    assert_eq!(refused(&long[..FIXED_V2]), "a PROXY header has at most 16 KiB");
    for (records, expected) in [
        (vec![1], RECORD),
        (vec![1, 0], RECORD),
        (vec![1, 0, 1], RECORD),
        (vec![1, 0xff, 0xff, 0], RECORD),
        ([record(1, b"h2"), vec![1, 0, 2, 0]].concat(), RECORD),
        (record(CRC32C, &[0; 4]), CHECKSUM),
        (record(CRC32C, b""), ONE_CHECKSUM),
        (record(CRC32C, &[0; 5]), ONE_CHECKSUM),
        ([record(CRC32C, &[0; 4]), record(CRC32C, &[0; 4])].concat(), ONE_CHECKSUM),
    ] {
        assert_eq!(refused(&v2(0x21, 0x11, &[&IPV4[..], &records].concat())), expected, "{records:?}");
    }
}

#[test]
fn any_damage_to_a_header_with_a_checksum_is_seen() {
    assert_eq!(slow_crc32c(b"123456789"), 0xe306_9283);
    let header = with_checksum(0x21, 0x11, &IPV4, &record(0x01, b"h2"));
    for at in 0..header.len() {
        for other in 0..=u8::MAX {
            let mut damaged = header.clone();
            damaged[at] = other;
            match Expected::Required.read(&damaged) {
                Err(_) => assert_ne!(damaged, header),
                Ok(None) => assert!(at < FIXED_V2 && damaged != header, "{at} {other:#x}"),
                Ok(Some(found)) => {
                    // Commands and families that say nothing have no checksum; nor has what ends before it, or goes without one.
                    let silent = matches!(found.source, Source::Peer | Source::Unknown);
                    let type_of_checksum = at == FIXED_V2 + IPV4.len();
                    let same = damaged == header;
                    assert!(
                        same || silent || type_of_checksum || at == 15 && found.length == 28,
                        "{at} {other:#x} {found:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn whether_there_is_a_header_is_never_guessed() {
    let senders = ["10.0.0.0/8", "::1"].map(|text| Network::parse(text).unwrap());
    let expected = |address: &str| Expected::of(&senders, address.parse().unwrap());
    for address in ["10.1.2.3", "::ffff:10.1.2.3", "::1"] {
        assert_eq!(expected(address), Expected::Required, "{address}");
    }
    for address in ["11.1.2.3", "127.0.0.1", "::2"] {
        assert_eq!(expected(address), Expected::Refused, "{address}");
    }
    assert_eq!(Expected::of(&[], "127.0.0.1".parse().unwrap()), Expected::Refused);

    let header = b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n".to_vec();
    let told = "there is a PROXY header, and this peer must not send any: have it send none, or put its address into \
                `listen.proxy_protocol`";
    for header in
        [header, v2(0x21, 0x11, &IPV4), v2(0x20, 0, b""), b"PROXY nonsense".to_vec(), v2(0, 0xff, b"")]
    {
        assert_eq!(Expected::Refused.read(&header).unwrap_err().what, told);
    }
    let own = Header { length: 0, source: Source::Peer };
    for bytes in [
        &b"*1\r\n$4\r\nPING\r\n"[..],
        b"PING\r\n",
        b"PROXY\r\n",
        b"proxy ",
        b"\r\nPING\r\n",
        b"\r\n\r\n\0\r\nQUIT\r",
        b"\x16\x03\x01",
        b"\n",
    ] {
        assert_eq!(Expected::Refused.read(bytes), Ok(Some(own)), "{}", bytes.escape_ascii());
        assert_eq!(refused(bytes), MISSING, "{}", bytes.escape_ascii());
    }
    for bytes in [&b""[..], b"P", b"PROXY", b"\r", b"\r\n\r\n\0\r\nQUIT"] {
        assert_eq!(Expected::Refused.read(bytes), Ok(None), "{}", bytes.escape_ascii());
        assert_eq!(Expected::Required.read(bytes), Ok(None), "{}", bytes.escape_ascii());
    }
}

proptest! {
    #[test]
    fn every_address_comes_back(source: SocketAddrParts, destination: SocketAddrParts, kinds: Vec<u8>) {
        let (source, destination) = (source.of(destination.ipv6), destination.of(destination.ipv6));
        let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
        let line = format!(
            "PROXY {family} {} {} {} {}\r\n",
            source.ip(), destination.ip(), source.port(), destination.port(),
        );
        prop_assert_eq!(said(line.as_bytes()), Source::Client(source));

        let octets = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
        let body = [octets(source.ip()), octets(destination.ip()), ports].concat();
        let family = if source.is_ipv4() { 0x11 } else { 0x21 };
        let records: Vec<u8> = kinds.into_iter().filter(|kind| *kind != CRC32C).flat_map(|kind| record(kind, &[kind; 3])).collect();
        prop_assert_eq!(said(&v2(0x21, family, &[&body[..], &records].concat())), Source::Client(source));
        prop_assert_eq!(said(&with_checksum(0x21, family, &body, &records)), Source::Client(source));
    }

    #[test]
    fn no_bytes_break_the_reader(command: u8, family: u8, length: u16, rest: Vec<u8>, line: String, cut: usize) {
        let fixed = [SIGNATURE_V2, &[command, family], &length.to_be_bytes()].concat();
        let second = v2(0x20 | command & 1, 0x11, &rest);
        for bytes in [[&fixed[..], &rest].concat(), second, format!("PROXY {line}\r\n").into_bytes(), rest.clone()] {
            fuzzing::proxy_header(&bytes[..cut % (bytes.len() + 1)]);
        }
    }
}

/// An address of either kind.
#[derive(Clone, Copy, Debug)]
struct SocketAddrParts {
    ip: [u8; 16],
    port: u16,
    ipv6: bool,
}

impl SocketAddrParts {
    fn of(self, ipv6: bool) -> SocketAddr {
        let ip = match self.ip.first_chunk::<4>() {
            Some(first) if !ipv6 => IpAddr::from(*first),
            _ => IpAddr::from(self.ip),
        };
        SocketAddr::new(ip, self.port)
    }
}

impl Arbitrary for SocketAddrParts {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        (any::<[u8; 16]>(), any::<u16>(), any::<bool>())
            .prop_map(|(ip, port, ipv6)| SocketAddrParts { ip, port, ipv6 })
            .boxed()
    }
}
