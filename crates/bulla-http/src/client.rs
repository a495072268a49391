//! The client.

#[cfg(test)]
mod tests;

use crate::{Address, Answer, Error, ErrorKind, MOST_HEADERS, Options, Roots};
use http::Response;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

/// Asks services of others. Connections are kept for the next request; a clone shares them.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    options: Options,
    /// Asks this machine, without TLS.
    plain: Agent,
    /// Asks everybody else. Nothing before the first address that takes it: a system without authorities keeps nobody from this machine.
    by_tls: Mutex<Option<Agent>>,
}

impl Client {
    /// A client by these options. The system's authorities, where these are to be believed, are read for the first address with `https`.
    ///
    /// # Errors
    /// `Invalid`: the PEM is none, or has no authorities.
    pub fn new(options: &Options) -> Result<Self, Error> {
        let by_tls = match &options.roots {
            Roots::System => None,
            Roots::Pem(_) => Some(agent(options, authorities(&options.roots)?)),
        };
        let plain = agent(options, Vec::new());
        Ok(Client {
            shared: Arc::new(Shared { options: options.clone(), plain, by_tls: Mutex::new(by_tls) }),
        })
    }

    /// The agent that asks there.
    fn agent(&self, address: &Address) -> Result<Agent, Error> {
        let Shared { options, plain, by_tls } = &*self.shared;
        if address.is_plain() {
            return Ok(plain.clone());
        }
        let mut by_tls = by_tls.lock().unwrap_or_else(PoisonError::into_inner);
        match &*by_tls {
            Some(agent) => Ok(agent.clone()),
            None => Ok(by_tls.insert(agent(options, authorities(&options.roots)?)).clone()),
        }
    }

    /// Posts `body`.
    ///
    /// # Errors
    /// There is no answer, or one that redirects, is too long or is none; `Invalid` where the system has no authorities. An answer of
    /// whatever other status is no error.
    pub fn post(&self, address: &Address, content_type: &str, body: &[u8]) -> Result<Answer, Error> {
        let request = self.agent(address)?.post(address.as_str()).header("content-type", content_type);
        self.answer(address, request.send(body))
    }

    /// Gets what is at an address.
    ///
    /// # Errors
    /// As for [`post`](Client::post).
    pub fn get(&self, address: &Address) -> Result<Answer, Error> {
        self.answer(address, self.agent(address)?.get(address.as_str()).call())
    }

    fn answer(
        &self,
        address: &Address,
        response: Result<Response<Body>, ureq::Error>,
    ) -> Result<Answer, Error> {
        let mut response = response.map_err(|error| self.failed(address, &error))?;
        let status = response.status().as_u16();
        if response.status().is_redirection() {
            return Err(Error::new(
                ErrorKind::Answer,
                format!(
                    "{address} redirects ({status}), which is not followed: name the address that it leads to"
                ),
            ));
        }
        let content_type = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let content_type = content_type.map(str::to_owned);
        // One byte more than may be read, as that many are an error.
        let limit = self.shared.options.body as u64 + 1;
        let body = response.body_mut().with_config().limit(limit).read_to_vec();
        let too_long = || {
            Error::new(
                ErrorKind::Answer,
                format!(
                    "{address} answers ({status}) with more than {} bytes, which are not read",
                    self.shared.options.body
                ),
            )
        };
        match body {
            Ok(body) if body.len() > self.shared.options.body => Err(too_long()),
            Ok(body) => Ok(Answer { status, content_type, body }),
            Err(ureq::Error::BodyExceedsLimit(_)) => Err(too_long()),
            Err(error) => Err(self.failed(address, &error)),
        }
    }

    fn failed(&self, address: &Address, error: &ureq::Error) -> Error {
        let (kind, what) = match error {
            ureq::Error::Timeout(_) => (
                ErrorKind::Timeout,
                format!(
                    "did not answer in time ({} s to reach it, {} s in all)",
                    self.shared.options.connect.as_secs_f32(),
                    self.shared.options.total.as_secs_f32()
                ),
            ),
            ureq::Error::Rustls(rustls::Error::InvalidCertificate(wrong)) => {
                (ErrorKind::Certificate, format!("has a certificate that is refused: {wrong}"))
            }
            ureq::Error::Io(io) => return self.failed_io(address, io),
            ureq::Error::HostNotFound => {
                (ErrorKind::Unreachable, "is not found: there is no such host".to_owned())
            }
            ureq::Error::ConnectionFailed => (ErrorKind::Unreachable, "cannot be reached".to_owned()),
            ureq::Error::Protocol(_) | ureq::Error::Http(_) | ureq::Error::LargeResponseHeader(..) => {
                (ErrorKind::Answer, format!("answers what is no HTTP that is read: {error}"))
            }
            ureq::Error::Rustls(_) | ureq::Error::Tls(_) => {
                (ErrorKind::Unreachable, format!("has no TLS: {error}"))
            }
            other => (ErrorKind::Unreachable, format!("does not answer: {other}")),
        };
        Error::new(kind, format!("{address} {what}"))
    }

    fn failed_io(&self, address: &Address, error: &std::io::Error) -> Error {
        let inner = error.get_ref();
        if let Some(inner) = inner.and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
            return self.failed(address, inner);
        }
        if let Some(rustls::Error::InvalidCertificate(wrong)) = inner.and_then(|inner| inner.downcast_ref()) {
            return Error::new(
                ErrorKind::Certificate,
                format!("{address} has a certificate that is refused: {wrong}"),
            );
        }
        let kind = match error.kind() {
            std::io::ErrorKind::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::Unreachable,
        };
        Error::new(kind, format!("{address} cannot be reached: {error}"))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// Asks by these options, and believes these authorities alone.
fn agent(options: &Options, authorities: Vec<Certificate<'static>>) -> Agent {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .root_certs(RootCerts::Specific(Arc::new(authorities)))
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .https_only(!options.plain_loopback)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("bulla/", env!("CARGO_PKG_VERSION")))
        .max_response_header_size(MOST_HEADERS)
        .max_idle_connections_per_host(1)
        .timeout_connect(Some(options.connect))
        .timeout_global(Some(options.total))
        .build();
    config.new_agent()
}

/// The certificates to believe. There is at least one.
fn authorities(roots: &Roots) -> Result<Vec<Certificate<'static>>, Error> {
    let (found, missing) = match roots {
        Roots::System => (
            rustls_native_certs::load_native_certs().certs,
            "this system has no authorities whose certificates it believes: install its package `ca-certificates`, or name a file \
             with those that are to be believed",
        ),
        Roots::Pem(pem) => {
            let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
            let found = found.map_err(|_| {
                Error::new(
                    ErrorKind::Invalid,
                    "the authorities' certificates are no PEM: one is cut off or is no base64",
                )
            })?;
            (found, "there is no certificate of an authority in PEM (-----BEGIN CERTIFICATE-----)")
        }
    };
    if found.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, missing));
    }
    // What cannot be an authority's is left out of the system's, which are many, and is an error of the caller's, who named it.
    if let Roots::Pem(_) = roots {
        let mut store = rustls::RootCertStore::empty();
        for certificate in &found {
            store.add(certificate.clone()).map_err(|error| {
                Error::new(
                    ErrorKind::Invalid,
                    format!("one of the certificates cannot be an authority's: {error}"),
                )
            })?;
        }
    }
    Ok(found.iter().map(|der| Certificate::from_der(der).to_owned()).collect())
}
