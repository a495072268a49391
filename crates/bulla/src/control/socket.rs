//! The socket's file, and connections to it.
//!
//! A socket's address has room for 107 bytes of path. The directory is opened, and reached through `/proc/self/fd`: that
//! is short wherever it lies.
#![expect(clippy::disallowed_methods, reason = "a socket lies in a directory, and no store makes one")]

use super::SOCKET;
use bulla_store::FileSystem;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// While it is being made.
const TEMPORARY: &str = "control.sock.tmp";
/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 32;

/// A socket that listens, and the directory that it is in.
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    directory: Directory,
}

struct Directory(OwnedFd);

impl Directory {
    fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Directory(rustix::fs::open(path, flags, Mode::empty())?))
    }

    fn address(&self, name: &str) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))?)
    }

    fn has_socket(&self, name: &str) -> bool {
        let found = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Socket)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Listener {
    /// Makes the socket, in the place of one that nobody listens on any more. The caller holds the lock that says so.
    ///
    /// It has its mode before anybody can connect to it, and its name only then.
    pub(super) fn new(directory: &FileSystem) -> io::Result<Self> {
        let directory = Directory::open(&directory.held_path()?)?;
        directory.remove(TEMPORARY)?;
        let socket = new_socket()?;
        rustix::net::bind(&socket, &directory.address(TEMPORARY)?)?;
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::chmodat(&directory.0, TEMPORARY, mode, AtFlags::empty())?;
        rustix::net::listen(&socket, BACKLOG)?;
        rustix::fs::renameat(&directory.0, TEMPORARY, &directory.0, SOCKET)?;
        Ok(Listener { socket, directory })
    }

    /// Takes the name away. The caller still holds the lock: it is the name of this socket.
    pub(super) fn remove(&self) {
        // One that stays is found to be nobody's.
        let _ = self.directory.remove(SOCKET);
    }
}

/// A connection to whoever listens; `None` where nobody does.
pub(super) fn connect(directory: &Path) -> io::Result<Option<OwnedFd>> {
    let directory = match Directory::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // Connecting would follow a link. What is no socket was made by no writer, and is nobody's.
    if !directory.has_socket(SOCKET) {
        return Ok(None);
    }
    let socket = new_socket()?;
    match rustix::net::connect(&socket, &directory.address(SOCKET)?) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}
