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

/// Says that whoever is on the way between a client and the proxy reads and changes what travels, where the proxy listens at more than this
/// machine's loopback interface, without TLS. What it listens at does not change while it runs.
pub(super) fn tell_plain_listener(config: &Config) {
    let address = config.listen.address.filter(|_| config.listen.tls.is_none());
    if let Some(address) = address.filter(|address| !address.ip().to_canonical().is_loopback()) {
        note!(
            "`listen.address` {address} is beyond the loopback interface, and there is no `[listen.tls]`: what clients send and are told, \
             passwords too, can be read and changed on the way, and who they are the server alone asks"
        );
    }
}

/// Whether users may read a file who are neither its owner nor of its group. What is not there is told of by whoever reads it.
fn everybody_reads(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|it| it.permissions().mode() & 0o004 != 0)
}
