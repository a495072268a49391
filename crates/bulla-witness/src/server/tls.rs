//! TLS 1.2 and 1.3 by rustls on AWS-LC.

use bulla_store::{Error, Result};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// The certificate and the key of a server.
#[derive(Clone)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
}

impl Tls {
    /// Takes the certificate, with those between it and its authority behind it, and its key, both in PEM.
    ///
    /// # Errors
    /// `Invalid` where either is none, or they do not belong together. Nothing of the key is repeated.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self> {
        let chain = CertificateDer::pem_slice_iter(certificates).collect::<std::result::Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| {
            Error::invalid("there is no whole certificate in PEM (-----BEGIN CERTIFICATE-----)")
        })?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            Error::invalid(
                "there is no whole private key in PEM, without a passphrase (-----BEGIN PRIVATE KEY-----)",
            )
        })?;
        let unusable = |error: rustls::Error| {
            Error::invalid(format!("the certificate and its key cannot be used: {error}"))
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        Ok(Tls { config: Arc::new(config) })
    }
}

impl Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
