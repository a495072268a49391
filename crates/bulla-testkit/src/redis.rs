//! [`RedisServer`]: a `redis-server` of a test's own, or what `BULLA_TEST_SERVER` names in its place, as a `valkey-server`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A `redis-server` without persistence, on a socket in a folder of the caller's. It ends with this.
pub struct RedisServer {
    process: Child,
    socket: PathBuf,
}

impl RedisServer {
    /// Starts one, with these arguments besides, and waits until it accepts connections.
    ///
    /// # Panics
    /// It is not installed, or does not start.
    pub fn start(folder: &Path, arguments: &[&str]) -> RedisServer {
        let socket = folder.join("socket");
        let program = std::env::var_os("BULLA_TEST_SERVER").unwrap_or_else(|| "redis-server".into());
        let mut command = Command::new(program);
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(&socket);
        let started = command.args(arguments).current_dir(folder).stdout(Stdio::piped()).spawn();
        let process = started.expect("redis-server is installed: `make setup` does it");
        let mut server = RedisServer { process, socket };
        let log = BufReader::new(server.process.stdout.take().expect("it is piped"));
        let mut lines = log.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("eady to accept connections")), "redis-server did not start");
        // It may go on to write.
        std::thread::spawn(|| lines.for_each(drop));
        server
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
