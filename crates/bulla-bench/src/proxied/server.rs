//! A Redis server of a run's own, at a port of 127.0.0.1, without persistence.

use super::client::{Client, Reply};
use super::process::{Running, at_a_free_port, installed};
use crate::outcome::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Server {
    port: u16,
    _running: Running,
}

impl Server {
    pub(crate) fn start(place: &Path) -> Result<Self, Failure> {
        let program = installed("redis-server")?;
        let (running, port) = at_a_free_port("redis-server", |port| {
            let mut command = Command::new(&program);
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port"]);
            command.arg(port.to_string()).current_dir(place).stdout(Stdio::null());
            Running::start(&mut command)
        })?;
        let server = Server { port, _running: running };
        let about = server.info("server")?;
        let own = format!("process_id:{}", server._running.id());
        match about.lines().any(|line| line == own) {
            true => Ok(server),
            false => Err(format!("another server answers at port {port}").into()),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// How often it carried out a command, by its own statistics.
    pub(crate) fn calls(&self, command: &str) -> Result<u64, Failure> {
        let statistics = self.info("commandstats")?;
        let prefix = format!("cmdstat_{command}:calls=");
        let calls = statistics.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
        Ok(calls.map(str::parse).transpose()?.unwrap_or_default())
    }

    fn info(&self, section: &str) -> Result<String, Failure> {
        match Client::connect(self.port)?.ask(&["INFO", section])? {
            Reply::Bytes(text) => Ok(String::from_utf8(text)?),
            other => Err(format!("INFO was answered {other:?}").into()),
        }
    }
}
