//! Truncation of network addresses: the bits below the prefix become zero.
//!
//! Invariant: what comes out depends on the prefix of the address alone. Port and zone go, too: together with the time a
//! port tells the users of one address apart, and a zone names an interface of the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many bits of an address are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) v4: u8,
    pub(crate) v6: u8,
}

impl Prefixes {
    /// Truncates an address as it occurs in the wild: with or without a port, brackets, a zone; `None` where it is none.
    pub(crate) fn truncate(self, text: &str) -> Option<IpAddr> {
        Some(match parse(text)? {
            IpAddr::V4(address) => IpAddr::V4(self.v4_prefix(address)),
            IpAddr::V6(address) => IpAddr::V6(self.v6_prefix(address)),
        })
    }

    fn v4_prefix(self, address: Ipv4Addr) -> Ipv4Addr {
        let kept = u32::MAX.checked_shl(32 - u32::from(self.v4)).unwrap_or(0);
        Ipv4Addr::from(u32::from(address) & kept)
    }

    fn v6_prefix(self, address: Ipv6Addr) -> Ipv6Addr {
        // An address of 6to4 (RFC 3056) has a whole IPv4 address behind its first 16 bits.
        let bits = match address.segments()[0] {
            0x2002 => self.v6.min(16 + self.v4),
            _ => self.v6,
        };
        let kept = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
        Ipv6Addr::from(u128::from(address) & kept)
    }
}

/// Parses `1.2.3.4`, `1.2.3.4:80`, `::1`, `fe80::1%eth0`, `[::1]`, `[fe80::1%eth0]:80`. An IPv4 address that is mapped into IPv6 is
/// taken as the IPv4 address.
fn parse(text: &str) -> Option<IpAddr> {
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (inside, behind) = rest.split_once(']')?;
            if !behind.is_empty() && !is_port(behind.strip_prefix(':')?) {
                return None;
            }
            IpAddr::V6(parse_v6(inside)?)
        }
        None => match text.split_once(':') {
            None => IpAddr::V4(text.parse().ok()?),
            Some((host, port)) if host.contains('.') && is_port(port) => IpAddr::V4(host.parse().ok()?),
            Some(_) => IpAddr::V6(parse_v6(text)?),
        },
    };
    Some(address.to_canonical())
}

fn parse_v6(text: &str) -> Option<Ipv6Addr> {
    match text.split_once('%') {
        None => text.parse().ok(),
        Some((address, zone)) if !zone.is_empty() => address.parse().ok(),
        Some(_) => None,
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn truncate(text: &str, v4: u8, v6: u8) -> Option<String> {
        Prefixes { v4, v6 }.truncate(text).map(|address| address.to_string())
    }

    #[test]
    fn addresses_as_they_occur_in_the_wild() {
        for (text, expected) in [
            // IPv4.
            ("192.0.2.17", "192.0.2.0"),
            ("255.255.255.255", "255.255.255.0"),
            ("0.0.0.0", "0.0.0.0"),
            ("127.0.0.1", "127.0.0.0"),
            ("192.0.2.17:443", "192.0.2.0"),
            ("192.0.2.17:0", "192.0.2.0"),
            ("192.0.2.17:65535", "192.0.2.0"),
            // IPv6, in every spelling.
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
            ("2001:0DB8:0001:0002:0003:0004:0005:0006", "2001:db8:1::"),
            ("2001:db8::", "2001:db8::"),
            ("2001:db8::1", "2001:db8::"),
            ("2001:db8:0:0:1::1", "2001:db8::"),
            ("2001:db8:1:2:3:4:192.0.2.17", "2001:db8:1::"),
            ("::", "::"),
            ("::1", "::"),
            ("[::1]", "::"),
            ("[::1]:80", "::"),
            ("[2001:db8:1:2::3]:65535", "2001:db8:1::"),
            ("fe80::1", "fe80::"),
            ("fe80::1%eth0", "fe80::"),
            ("fe80::1%25", "fe80::"),
            ("[fe80::1%eth0]", "fe80::"),
            ("[fe80::1%en0]:8080", "fe80::"),
            ("::1:80", "::"),
            // IPv4 inside IPv6.
            ("::ffff:192.0.2.17", "192.0.2.0"),
            ("::FFFF:c000:0211", "192.0.2.0"),
            ("[::ffff:192.0.2.17]", "192.0.2.0"),
            ("[::ffff:192.0.2.17]:80", "192.0.2.0"),
            ("::ffff:192.0.2.17%eth0", "192.0.2.0"),
            ("::192.0.2.17", "::"),
            ("64:ff9b::192.0.2.17", "64:ff9b::"),
            ("2002:c000:0211::1", "2002:c000:200::"),
        ] {
            assert_eq!(truncate(text, 24, 48).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            " ",
            "-",
            "unknown",
            "localhost",
            "host-1-2-3-4.example.com",
            "alice@192.0.2.17",
            "192.0.2",
            "192.0.2.17.5",
            "192.0.2.256",
            "192.0.2.017",
            "0xc0000211",
            "3221225985",
            "192.0.2.17 ",
            " 192.0.2.17",
            "192.0.2.17\n",
            "192.0.2.17/32",
            "192.0.2.17:",
            "192.0.2.17:+80",
            "192.0.2.17:65536",
            "192.0.2.17:80:80",
            "192.0.2.17%eth0",
            "192.0.2.17, 198.51.100.1",
            "[192.0.2.17]",
            "[192.0.2.17]:80",
            "１９２.0.2.17",
            "::1::",
            ":",
            ":::",
            "[::1",
            "::1]",
            "[::1]80",
            "[::1]:",
            "[::1]: 80",
            "[]",
            "[]:80",
            "[::1]]",
            "fe80::1%",
            "[fe80::1%]:80",
            "2001:db8::/32",
            "2001:db8:1:2:3:4:5:6:7",
            "2001:db8:g::",
            "/run/redis.sock:0",
            "unix:",
        ] {
            assert_eq!(truncate(text, 24, 48), None, "{text:?}");
        }
    }

    #[test]
    fn every_level() {
        let v6 = "2001:db8:1234:5678:9abc:def0:1234:5678";
        for (v4, expected) in [(24, "192.168.254.0"), (16, "192.168.0.0"), (8, "192.0.0.0")] {
            assert_eq!(truncate("192.168.254.255", v4, 48).as_deref(), Some(expected));
            let mapped = truncate("::ffff:192.168.254.255", v4, 32);
            assert_eq!(mapped.as_deref(), Some(expected));
        }
        for (bits, expected) in [(64, "2001:db8:1234:5678::"), (48, "2001:db8:1234::"), (32, "2001:db8::")] {
            assert_eq!(truncate(v6, 24, bits).as_deref(), Some(expected));
        }
        // 6to4: no more of the IPv4 address than of one that comes by itself.
        for (v4, v6, expected) in [
            (24, 64, "2002:c0a8:fe00::"),
            (16, 64, "2002:c0a8::"),
            (8, 64, "2002:c000::"),
            (24, 32, "2002:c0a8::"),
            (8, 32, "2002:c000::"),
        ] {
            assert_eq!(truncate("2002:c0a8:feff:1234::1", v4, v6).as_deref(), Some(expected), "{v4} {v6}");
        }
    }

    fn levels() -> impl Strategy<Value = (u8, u8)> {
        (prop::sample::select(vec![24, 16, 8]), prop::sample::select(vec![64, 48, 32]))
    }

    /// Mostly those whose first bits are special.
    fn v6() -> impl Strategy<Value = u128> {
        let mapped = any::<u32>().prop_map(|low| 0xffff_0000_0000 | u128::from(low));
        let starting = |start: u128| any::<u128>().prop_map(move |low| start << 112 | low >> 16);
        prop_oneof![any::<u128>(), mapped, starting(0x2002), starting(0xfe80), starting(0)]
    }

    proptest! {
        /// Two addresses with one prefix cannot be told apart, and an address with another prefix can.
        #[test]
        fn nothing_below_the_prefix_comes_out((v4, v6_bits) in levels(), a: u32, b: u32) {
            let below = u32::MAX >> v4;
            let other = Ipv4Addr::from(a & !below | b & below);
            let address = Ipv4Addr::from(a);
            prop_assert_eq!(
                truncate(&address.to_string(), v4, v6_bits),
                truncate(&format!("{other}:{}", b >> 16), v4, v6_bits)
            );
            let neighbour = Ipv4Addr::from(a ^ (below + 1));
            prop_assert_ne!(
                truncate(&address.to_string(), v4, v6_bits),
                truncate(&neighbour.to_string(), v4, v6_bits)
            );
        }

        #[test]
        fn nor_does_it_of_ipv6((v4, bits) in levels(), a in v6(), b: u128, port: u16) {
            let below = u128::MAX >> bits;
            let (address, other) = (Ipv6Addr::from(a), Ipv6Addr::from(a & !below | b & below));
            // What is mapped is IPv4's, as the prefix of its neighbours is not.
            prop_assume!(address.to_ipv4_mapped().is_none() && other.to_ipv4_mapped().is_none());
            let forms = [other.to_string(), format!("[{other}]:{port}"), format!("{other}%eth0")];
            for form in forms {
                prop_assert_eq!(truncate(&address.to_string(), v4, bits), truncate(&form, v4, bits));
            }
            let neighbour = Ipv6Addr::from(a ^ (below + 1));
            let is_6to4 = address.segments()[0] == 0x2002 && bits > 16 + v4;
            prop_assert_eq!(
                truncate(&address.to_string(), v4, bits) == truncate(&neighbour.to_string(), v4, bits),
                is_6to4
            );
        }

        #[test]
        fn of_ipv4_inside_6to4_or_mapped_no_more_comes_out((v4, bits) in levels(), a: u32, b: u32, low: u128) {
            let other = a & !(u32::MAX >> v4) | b & (u32::MAX >> v4);
            let within = |v4: u32| Ipv6Addr::from(0x2002_u128 << 112 | u128::from(v4) << 80 | low >> 48);
            let mapped = |v4: u32| Ipv4Addr::from(v4).to_ipv6_mapped();
            prop_assert_eq!(
                truncate(&within(a).to_string(), v4, bits),
                truncate(&within(other).to_string(), v4, bits)
            );
            prop_assert_eq!(truncate(&mapped(a).to_string(), v4, bits), truncate(&mapped(other).to_string(), v4, bits));
            prop_assert_eq!(
                truncate(&mapped(a).to_string(), v4, bits),
                truncate(&Ipv4Addr::from(a).to_string(), v4, bits)
            );
        }

        #[test]
        fn what_was_truncated_stays_as_it_is((v4, bits) in levels(), a in v6(), b: u32) {
            for address in [Ipv6Addr::from(a).to_string(), Ipv4Addr::from(b).to_string()] {
                let once = truncate(&address, v4, bits).unwrap();
                prop_assert_eq!(truncate(&once, v4, bits), Some(once));
            }
        }

        /// Whatever the text is, what comes out is the canonical text of an address.
        #[test]
        fn no_text_passes(text in "[0-9a-f.:%\\[\\]x /]{0,40}|\\PC{0,40}", (v4, bits) in levels()) {
            if let Some(address) = truncate(&text, v4, bits) {
                prop_assert_eq!(address.parse::<IpAddr>().unwrap().to_string(), address);
            }
        }
    }
}
