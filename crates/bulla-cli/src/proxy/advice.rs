//! What an operator should know of a configuration before clients are served by it.

use bulla_proxy::config::Config;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Says it.
pub(super) fn tell(file: &Path, config: &Config) {
    if config.rules.is_empty() && config.default_subject.is_none() {
        note!(
            "{}: there are neither `rules` nor a `default_subject`: every key is recorded as nobody's, and no access request finds it",
            file.display()
        );
    }
    let (listen, upstream) = (config.listen.tls.as_ref(), config.upstream.tls.as_ref());
    let of_server = upstream.and_then(|tls| tls.certificate.as_ref()).map(|(_, key)| key);
    let secrets = [
        ("upstream.password_file", config.upstream.password_file.as_ref()),
        ("listen.tls.key", listen.map(|tls| &tls.key)),
        ("upstream.tls.key", of_server),
    ];
    for (key, secret) in secrets {
        if let Some(secret) = secret.filter(|secret| everybody_reads(secret)) {
            let secret = secret.display();
            note!("`{key}` {secret} may be read by everybody on this machine: `chmod o= {secret}`");
        }
    }
}

/// Whether users may read a file who are neither its owner nor of its group. What is not there is told of by whoever reads it.
fn everybody_reads(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|it| it.permissions().mode() & 0o004 != 0)
}
