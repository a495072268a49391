//! `bulla proxy --embedded`: all that a first try needs, in one directory. What is not there is made, and what is there is used.
//!
//! | In the directory | What it is |
//! |---|---|
//! | `audit`, `audit.keys` | the log and its keys |
//! | `proxy.toml` | the configuration, with rules as an example; whoever runs it may change it |
//! | `server/` | the server's data, its socket and what it tells of itself; nobody else may enter |

use super::server::{Installed, Server};
use crate::exit::{Exit, Failure};
use crate::init;
use crate::new_file;
use bulla::store::FileSystem;
use bulla_proxy::config::{Config, UpstreamPlace};
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// So many ports are tried, from the configured one on.
const PORTS: u16 = 100;
/// The longest path that a Unix socket can have, in bytes.
const LONGEST_SOCKET: usize = 107;
/// The configuration but for its paths.
const RULES: &str = include_str!("embedded.toml");

/// See the module.
pub(super) struct Embedded {
    /// Absolute.
    directory: PathBuf,
    installed: Installed,
}

impl Embedded {
    /// Makes what is missing in `directory`, but for the server.
    pub(super) fn prepare(directory: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::io(directory.display(), &error);
        let absolute = std::path::absolute(directory).map_err(failed)?;
        if directory.join("bulla.toml").exists() {
            let message = format!(
                "{} is a log: --embedded wants a directory in which it makes one of its own",
                directory.display()
            );
            return Err(Failure::usage(message));
        }
        if socket(&absolute).as_os_str().len() > LONGEST_SOCKET {
            let message = format!(
                "{} has no room for a socket: the path of one has at most {LONGEST_SOCKET} bytes; take a directory with a shorter path",
                directory.display()
            );
            return Err(Failure::usage(message));
        }
        // Before anything is made that nobody could use.
        let embedded = Embedded { directory: absolute, installed: Installed::find()? };
        embedded.make_directories().map_err(failed)?;
        embedded.make_log()?;
        embedded.make_config()?;
        Ok(embedded)
    }

    /// The file with the configuration.
    pub(super) fn config(&self) -> PathBuf {
        self.directory.join("proxy.toml")
    }

    /// That a configuration is about the log and the server of this directory.
    pub(super) fn check(&self, config: &Config) -> Result<(), Failure> {
        let place = UpstreamPlace::Unix(self.socket());
        if config.log.directory == self.log() && config.log.keys.is_none() && config.upstream.place == place {
            return Ok(());
        }
        let message = format!(
            "{} has another log or server than --embedded makes, as where this directory was moved: `log.directory` has to be {}, \
             `upstream.unix` {}, and `log.keys` is left out; `bulla proxy FILE` takes any",
            self.config().display(),
            self.log().display(),
            self.socket().display()
        );
        Err(Failure::usage(message))
    }

    /// Starts the server, and has the proxy listen at the next port where its own is taken. Only who has opened the log may: so the
    /// server is one, too.
    pub(super) fn start(&self, config: &mut Config) -> Result<Server, Failure> {
        let server = self.installed.start(&self.folder(), &self.socket())?;
        config.listen.more_ports = PORTS;
        Ok(server)
    }

    /// Says what there is, and what to try with it.
    pub(super) fn tell(&self, server: &Server, config: &Config, address: Option<std::net::SocketAddr>) {
        let (folder, log) = (self.folder(), self.log());
        note!("{} runs in {}, and keeps its data there", server.name(), folder.display());
        let configured = config.listen.address.map(|address| address.port());
        if let (Some(first @ 1..), Some(address)) = (configured, address)
            && address.port() != first
        {
            note!("port {first} is taken");
        }
        note!("whose data keys are, {} says; reply mode: {}", self.config().display(), mode(config));
        if let Some(address) = address {
            note!("try: redis-cli -p {} SET user:ada:email ada@example.com", address.port());
        }
        note!("then: bulla export {} --subject ada", log.display());
    }

    fn log(&self) -> PathBuf {
        self.directory.join("audit")
    }

    fn folder(&self) -> PathBuf {
        folder(&self.directory)
    }

    fn socket(&self) -> PathBuf {
        socket(&self.directory)
    }

    fn make_directories(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder())?;
        // Who enters it reads what the server stores, and goes around the proxy.
        std::fs::set_permissions(self.folder(), Permissions::from_mode(0o700))
    }

    fn make_log(&self) -> Result<(), Failure> {
        let log = self.log();
        if log.join("bulla.toml").exists() {
            return Ok(());
        }
        let keys = bulla::default_keys(&log);
        let stores = (FileSystem::new(&log), FileSystem::new(&keys));
        let created =
            bulla::Init::default().create_in(&stores.0, &stores.1, &crate::terminal::environment())?;
        crate::output::note_lines(&init::text(&created, &log, &keys));
        Ok(())
    }

    fn make_config(&self) -> Result<(), Failure> {
        let path = self.config();
        let text = configuration(&self.log(), &self.socket())?;
        match new_file::make(&path, text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(Failure::new(Exit::Environment, format!("{}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

/// The configuration with these paths in it.
fn configuration(log: &Path, socket: &Path) -> Result<String, Failure> {
    let (log, socket) = (quoted(log)?, quoted(socket)?);
    let line = |line: &str| match line {
        "directory = LOG" => format!("directory = {log}\n"),
        "unix = SOCKET" => format!("unix = {socket}\n"),
        _ => format!("{line}\n"),
    };
    Ok(RULES.lines().map(line).collect())
}

/// A path as a string of TOML.
fn quoted(path: &Path) -> Result<String, Failure> {
    // JSON escapes what TOML has to have escaped, but for this one character.
    let text = path.to_str().and_then(|text| serde_json::to_string(text).ok());
    text.map(|text| text.replace('\u{7f}', "\\u007f")).ok_or_else(|| {
        Failure::usage(format!("{} cannot be written in TOML: take a path in UTF-8", path.display()))
    })
}

fn folder(directory: &Path) -> PathBuf {
    directory.join("server")
}

fn socket(directory: &Path) -> PathBuf {
    folder(directory).join("socket")
}

fn mode(config: &Config) -> &'static str {
    use bulla_proxy::config::Mode;
    match config.mode {
        Mode::Async => "async",
        Mode::BeforeReply => "before-reply",
        Mode::BeforeSend => "before-send",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_stands_in_the_configuration_as_it_is() {
        for name in ["trial", "SOCKETdir", "LOG", "a \"b\"\\c", "unix = SOCKET", "\u{e4}\u{7f}\t\n"] {
            let (log, socket) =
                (Path::new("/").join(name).join("audit"), Path::new("/").join(name).join("socket"));
            let config = Config::parse(configuration(&log, &socket).unwrap().as_bytes()).unwrap();
            assert_eq!((config.log.directory, config.upstream.place), (log, UpstreamPlace::Unix(socket)));
        }
    }
}
