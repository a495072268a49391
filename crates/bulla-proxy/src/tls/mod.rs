//! TLS with clients and with the server: versions 1.2 and 1.3, by rustls on AWS-LC.
//!
//! The server's certificate is always verified, and so is its name. Where clients need a certificate, the one that a client has
//! shown to own says who it is ([`Established`]); it shows it anew on every connection, for no session is taken up again. Files
//! are read once, when an [`Acceptor`] or a [`Connector`] is made: another one is made of what has changed, and what goes
//! on goes on with what it began with. Lists of revoked certificates are not looked at.

mod files;
mod name;
#[cfg(test)]
mod tests;

use crate::config::{ListenTls, UpstreamTls};
use rustls_pki_types::ServerName;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

/// Agrees on TLS with clients.
#[derive(Clone)]
pub struct Acceptor {
    inner: TlsAcceptor,
    /// The file that clients' certificates are held against.
    client_ca: Option<PathBuf>,
}

/// Agrees on TLS with the server.
#[derive(Clone)]
pub struct Connector {
    inner: TlsConnector,
    server_name: ServerName<'static>,
    /// The file that the server's certificate is held against.
    ca: PathBuf,
}

/// Who a client is, which its certificate establishes: the subject's common name; without one the first URI, and without that
/// the first DNS name, among the subject's alternative names. A subject with several common names has none that
/// says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Established {
    /// The name. It has no characters that a terminal obeys, and is as long as an entry's actor may be at most.
    pub name: String,
}

/// Why there is no TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// What is wrong with which file, or what the other side did, and what to do about it.
    pub what: String,
}

impl Acceptor {
    /// Reads what TLS with clients needs.
    ///
    /// # Errors
    /// A file that cannot be read, or is not what it has to be.
    pub fn new(config: &ListenTls) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(no_versions)?;
        let builder = match &config.client_ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = Arc::new(authorities(ca)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| unusable(ca, &error))?)
            }
        };
        let (chain, key) = (files::certificates(&config.certificate)?, files::private_key(&config.key)?);
        let mut server = builder
            .with_single_cert(chain, key)
            .map_err(|error| mismatched(&config.certificate, &config.key, &error))?;
        if config.client_ca.is_some() {
            server.session_storage = Arc::new(NoServerSessionStorage {});
            server.send_tls13_tickets = 0;
        }
        Ok(Acceptor { inner: TlsAcceptor::from(Arc::new(server)), client_ca: config.client_ca.clone() })
    }

    /// Agrees with a client on TLS; who it is, where clients need a certificate and its one has a name. Takes as long as the client
    /// does: whoever calls sets a limit.
    ///
    /// # Errors
    /// The client does not speak TLS, has not the certificate that it needs, or goes away.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<(server::TlsStream<S>, Option<Established>), TlsError> {
        let stream = self.inner.accept(stream).await.map_err(|error| self.refused(&error))?;
        // Without `client_ca` nobody is asked for a certificate.
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        let established = certificate.and_then(name::of).map(|name| Established { name });
        Ok((stream, established))
    }

    fn refused(&self, error: &std::io::Error) -> TlsError {
        let cause = match (rustls_error(error), &self.client_ca) {
            (Some(Error::NoCertificatesPresented), Some(ca)) => {
                format!("it has no certificate; it needs one of an authority in {}", ca.display())
            }
            (Some(Error::InvalidCertificate(wrong)), Some(ca)) if is_another_authoritys(wrong) => {
                format!("its certificate is of no authority in {}", ca.display())
            }
            (Some(Error::InvalidCertificate(wrong)), _) => format!("its certificate is refused: {wrong}"),
            (Some(other), _) => other.to_string(),
            (None, _) => error.to_string(),
        };
        TlsError { what: format!("no TLS with a client: {cause}") }
    }
}

impl Connector {
    /// Reads what TLS with the server needs.
    ///
    /// # Errors
    /// A file that cannot be read, or is not what it has to be; a name that no certificate can have.
    pub fn new(config: &UpstreamTls) -> Result<Self, TlsError> {
        let server_name = ServerName::try_from(config.server_name.clone()).map_err(|_| TlsError {
            what: format!(
                "`upstream.tls.server_name` is \"{}\", which no certificate can be for: it has to be a DNS name or an IP address",
                config.server_name.escape_debug()
            ),
        })?;
        let roots = Arc::new(authorities(&config.ca)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(no_versions)?
            .with_webpki_verifier(verifier.map_err(|error| unusable(&config.ca, &error))?);
        let client = match &config.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(files::certificates(certificate)?, files::private_key(key)?)
                .map_err(|error| mismatched(certificate, key, &error))?,
        };
        Ok(Connector { inner: TlsConnector::from(Arc::new(client)), server_name, ca: config.ca.clone() })
    }

    /// Agrees with the server on TLS, and verifies that it is the server. Takes as long as the server does: whoever calls sets a
    /// limit. With TLS 1.3 a server that refuses the proxy's certificate says so only to the first that is read.
    ///
    /// # Errors
    /// The server does not speak TLS, its certificate is not what it has to be, it wants another one of the proxy, or goes away.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> Result<client::TlsStream<S>, TlsError> {
        let connected = self.inner.connect(self.server_name.clone(), stream).await;
        connected.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &std::io::Error) -> TlsError {
        let cause = match rustls_error(error) {
            Some(Error::InvalidCertificate(wrong)) if is_another_authoritys(wrong) => {
                format!(
                    "its certificate is of no authority in {}, which `upstream.tls.ca` names",
                    self.ca.display()
                )
            }
            Some(Error::InvalidCertificate(
                wrong @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
            )) => format!("{wrong}; `upstream.tls.server_name` has to be a name that it is for"),
            Some(Error::InvalidCertificate(wrong)) => format!("its certificate is refused: {wrong}"),
            Some(other) => other.to_string(),
            None => error.to_string(),
        };
        TlsError { what: format!("no TLS with the server: {cause}") }
    }
}

/// AWS-LC, which is Bulla's one cryptographic library for everything that has to be fast.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The certificates of a file as those of authorities.
fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in files::certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError { what: format!("{}: a certificate in it cannot be an authority's: {error}", path.display()) }
}

fn mismatched(certificate: &Path, key: &Path, error: &Error) -> TlsError {
    let (certificate, key) = (certificate.display(), key.display());
    TlsError {
        what: match error {
            Error::InconsistentKeys(_) => {
                format!("{key}: this is not the key of the first certificate in {certificate}")
            }
            Error::InvalidCertificate(wrong) => {
                format!("{certificate}: its first certificate cannot be used: {wrong}")
            }
            other => format!("{key}: this key cannot be used with the certificate in {certificate}: {other}"),
        },
    }
}

/// That the provider lacks what versions 1.2 and 1.3 need, which AWS-LC has.
fn no_versions(error: Error) -> TlsError {
    TlsError { what: format!("there is no TLS: {error}") }
}

/// Whether none of the authorities has signed a certificate: none has the name of the one that did, or the one that has that name has
/// another key.
fn is_another_authoritys(wrong: &CertificateError) -> bool {
    matches!(wrong, CertificateError::UnknownIssuer | CertificateError::BadSignature)
}

fn rustls_error(error: &std::io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for TlsError {}
