//! [`Network`]: addresses that begin with the same bits.

use std::net::IpAddr;

/// An IP network: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// How many of its first bits count.
    bits: u8,
}

impl Network {
    /// Reads a network.
    ///
    /// # Errors
    /// It is none; or there are bits behind those that count, so that nobody knows which was meant.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("\"{}\" is no network such as \"10.0.0.0/8\" or \"::1\"", text.escape_debug());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| wanted())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => all,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().map_err(|_| wanted())?
            }
            Some(_) => return Err(wanted()),
        };
        if bits > all {
            return Err(format!("\"{text}\" counts {bits} bits of an address that has {all}"));
        }
        if address != address.to_canonical() {
            return Err(format!("\"{text}\" is an IPv4 address in IPv6: write it as one of IPv4"));
        }
        let network = Network { address: truncated(address, bits), bits };
        match network.address == address {
            true => Ok(network),
            false => {
                Err(format!("\"{text}\" has bits behind its first {bits}: \"{network}\" is that network"))
            }
        }
    }

    /// Whether an address is in it. One of IPv4 that came over IPv6 (`::ffff:192.0.2.1`) is one of IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && truncated(address, self.bits) == self.address
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn truncated(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}
