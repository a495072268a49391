//! A server of a test's own.
#![allow(clippy::disallowed_methods, reason = "tests start servers")]

use crate::fuzzing::ALL;
use crate::resp::{Replies, Reply};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// A `redis-server` without persistence, on a socket in a temporary directory. It ends with this.
pub(crate) struct Server {
    process: Child,
    folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(socket);
        let started = command.current_dir(folder.path()).stdout(Stdio::piped()).spawn();
        let process = started.expect("redis-server is installed: `make setup` does it");
        let mut server = Server { process, folder };
        let log = BufReader::new(server.process.stdout.take().unwrap());
        let mut lines = log.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("eady to accept connections")), "redis-server did not start");
        // It may go on to write.
        std::thread::spawn(|| lines.for_each(drop));
        server
    }

    pub(crate) fn connect(&self) -> Connection {
        let stream = UnixStream::connect(self.folder.path().join("socket")).unwrap();
        Connection { stream, replies: Replies::new(ALL) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) struct Connection {
    pub(crate) stream: UnixStream,
    replies: Replies,
}

impl Connection {
    /// The reply to one command.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> Reply {
        self.stream.write_all(bytes).unwrap();
        let mut buffer = [0; 4096];
        loop {
            let length = self.stream.read(&mut buffer).unwrap();
            assert!(length > 0, "the server closed the connection");
            let progress = self.replies.next(&buffer[..length]).unwrap();
            if progress.complete {
                assert_eq!(progress.consumed, length);
                return self.replies.reply().clone();
            }
        }
    }
}
