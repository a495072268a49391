//! What a client trusts, allows and waits for.

use std::time::Duration;

/// What a [`Client`](crate::Client) trusts, allows and waits for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose certificates are believed. The system's by default.
    pub roots: Roots,
    /// Whether addresses of this machine may be asked without TLS. False by default.
    pub plain_loopback: bool,
    /// How long finding and reaching a service may take. 5 seconds by default.
    pub connect: Duration,
    /// How long a request may take from its beginning to the last byte of the answer. 10 seconds by default.
    pub total: Duration,
    /// The longest body of an answer, in bytes. 65,536 by default.
    pub body: usize,
}

/// The authorities whose certificates a [`Client`](crate::Client) believes.
#[derive(Clone, Debug)]
pub enum Roots {
    /// Those of this system (`/etc/ssl/certs`, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name).
    System,
    /// Those of this PEM, and no others.
    Pem(Vec<u8>),
}

impl Default for Options {
    fn default() -> Self {
        Options {
            roots: Roots::System,
            plain_loopback: false,
            connect: Duration::from_secs(5),
            total: Duration::from_secs(10),
            body: 64 << 10,
        }
    }
}
