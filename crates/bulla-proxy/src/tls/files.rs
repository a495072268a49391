//! Certificates and keys as files in PEM.
#![expect(
    clippy::disallowed_methods,
    reason = "people name these files; they are no part of a log and are read before there is one"
)]

use super::TlsError;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use zeroize::Zeroizing;

/// The longest file that is read, in bytes: all the authorities that a system trusts have a quarter of it.
const MOST: usize = 1 << 20;

/// All certificates of a file. There is at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => {
            wrong(path, "there is no certificate in it: it needs one in PEM (-----BEGIN CERTIFICATE-----)")
        }
        Err(_) => wrong(path, "this is no PEM: a certificate in it is cut off or is no base64"),
    }
}

/// The private key of a file. What is wrong with one is said without repeating any of it.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let pem = read(path)?;
    let found = PrivateKeyDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let Ok(mut found) = found else {
        return wrong(path, "this is no PEM: a key in it is cut off or is no base64");
    };
    match (found.pop(), found.is_empty()) {
        (Some(key), true) => Ok(key),
        (Some(_), false) => {
            wrong(path, "there are several keys in it: it has to have the certificate's and no other")
        }
        (None, _) if pem.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED) => wrong(
            path,
            "the key in it is encrypted: the proxy needs it without a passphrase (`openssl pkey -in … -out …`)",
        ),
        (None, _) => {
            wrong(path, "there is no private key in it: it needs one in PEM (-----BEGIN PRIVATE KEY-----)")
        }
    }
}

const ENCRYPTED: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    // As long as it may be at once, so that what is in it is nowhere left behind by growing.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MOST + 1));
    let file = File::open(path).and_then(|file| file.take(MOST as u64 + 1).read_to_end(&mut bytes));
    match file {
        Ok(length) if length <= MOST => Ok(bytes),
        Ok(_) => wrong(path, "it has over 1 MiB, which no file of certificates or keys has"),
        Err(error) => wrong(path, &format!("it cannot be read: {error}")),
    }
}

fn wrong<T>(path: &Path, what: &str) -> Result<T, TlsError> {
    Err(TlsError { what: format!("{}: {what}", path.display()) })
}
