//! [`Settings`]: what of the configuration may change while the proxy runs.
//!
//! All of it is made at once of a configuration, so that one with something wrong in it, or in a file that it names, changes nothing.

use crate::command::CommandTable;
use crate::config::{Config, Limits, Network, Treatment, Unrecordable, UpstreamPlace};
use crate::counters::Counters;
use crate::recorder::Recording;
use crate::session;
use crate::subject::{Learned, Rules};
use crate::tls::{Acceptor, Connector, TlsError};
use crate::upstream;
use crate::warnings::Warnings;
use bulla::{Error, ErrorKind};
use std::sync::Arc;

/// See the module.
pub(crate) struct Settings {
    pub(crate) context: Arc<session::Context>,
    pub(crate) recording: Arc<Recording>,
    pub(crate) limits: Limits,
    pub(crate) unrecordable: Unrecordable,
    /// The peers that send PROXY headers.
    pub(crate) proxy_protocol: Vec<Network>,
    /// Where clients come over TLS.
    pub(crate) acceptor: Option<Acceptor>,
    /// Where the server is.
    pub(crate) place: UpstreamPlace,
    pub(crate) connector: Option<Connector>,
}

/// What stays whatever the configuration says later.
pub(crate) struct Lasting {
    pub(crate) table: CommandTable,
    pub(crate) digest_key: [u8; 32],
    pub(crate) learned: Arc<Learned>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) warnings: Arc<Warnings>,
}

impl Settings {
    /// By a configuration, and the files that it names.
    ///
    /// # Errors
    /// `Invalid` for a file that is not what it has to be; `Refused` where commands that nobody knows would be let through.
    pub(crate) fn new(config: &Config, lasting: &Lasting) -> bulla::Result<Settings> {
        let Lasting { table, digest_key, learned, counters, warnings } = lasting;
        refuse_renamed(config, table)?;
        let rules = Rules::new(config.rules.clone(), config.default_subject.clone(), *digest_key);
        Ok(Settings {
            context: Arc::new(session::Context::new(config, table.clone(), *digest_key)),
            recording: Arc::new(Recording {
                rules,
                learned: learned.clone(),
                unrecordable: config.unrecordable,
                claims: config.claims.clone(),
                record_values: config.record_values,
                counters: counters.clone(),
                warnings: warnings.clone(),
            }),
            limits: config.limits,
            unrecordable: config.unrecordable,
            proxy_protocol: config.listen.proxy_protocol.clone(),
            acceptor: config.listen.tls.as_ref().map(Acceptor::new).transpose().map_err(unusable)?,
            place: config.upstream.place.clone(),
            connector: connector(config)?,
        })
    }
}

/// Under a name that the server does not tell, a command could do anything: authenticate, change the database, run a script.
fn refuse_renamed(config: &Config, table: &CommandTable) -> bulla::Result<()> {
    if table.renamed().is_empty() || config.policy.undescribed == Treatment::Refuse {
        return Ok(());
    }
    let message = format!(
        "{} has commands under other names (`rename-command`): {}. What it calls them it does not tell, so whoever knows these names \
         would go around the log: set `policy.undescribed` to \"refuse\", or have the server rename nothing. `rename-command NAME \"\"`, \
         which takes a command away, is no hindrance",
        upstream::name(&config.upstream),
        table.renamed().join(", ")
    );
    Err(Error::new(ErrorKind::Refused, message))
}

/// What agrees with the server on TLS, where that is configured.
pub(crate) fn connector(config: &Config) -> bulla::Result<Option<Connector>> {
    config.upstream.tls.as_ref().map(Connector::new).transpose().map_err(unusable)
}

fn unusable(error: TlsError) -> Error {
    Error::new(ErrorKind::Invalid, error.what)
}
