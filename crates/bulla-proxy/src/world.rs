//! A server of a test's own, and a connection to it.

use crate::fuzzing::ALL;
use crate::resp::{Replies, Reply};
use bulla_testkit::RedisServer;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// A server in a temporary directory. It ends with this.
pub(crate) struct Server {
    server: RedisServer,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        Server { server: RedisServer::start(folder.path(), &[]), _folder: folder }
    }

    pub(crate) fn connect(&self) -> Connection {
        let stream = UnixStream::connect(self.server.socket()).unwrap();
        Connection { stream, replies: Replies::new(ALL) }
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
