//! A socket's file at a path that the user chose.
#![expect(
    clippy::disallowed_methods,
    reason = "a socket lies in a directory, which no store makes, and how long connecting may take"
)]

use bulla_store::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_passcred, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Connections that the kernel keeps until they are accepted, where it may keep so many (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// A socket that listens, and its name.
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    place: Place,
    /// By which the name is known to be still this socket's.
    inode: (u64, u64),
}

/// The bytes of path that a socket's address has room for.
const ADDRESS: usize = 107;

/// A name in a directory, which is open: where its path is too long for a socket's address, `/proc/self/fd` is short wherever the
/// directory lies.
struct Place {
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Place {
    fn open(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or_else(|| {
            Error::invalid(format!("{:?} names no socket: give the path of one", path.display().to_string()))
        })?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty());
        let directory =
            directory.map_err(|error| Error::io(format!("opening {}", parent.display()), error.into()))?;
        Ok(Place { directory, name: name.to_owned(), path: path.to_owned() })
    }

    /// Whether it is the same name, by whatever path.
    fn is(&self, other: &Place) -> Result<bool> {
        let directory = |place: &Place| {
            let found = rustix::fs::fstat(&place.directory);
            found.map(|found| (found.st_dev, found.st_ino)).map_err(|error| {
                Error::io(format!("looking at the directory of {}", place.path.display()), error.into())
            })
        };
        Ok(self.name == other.name && directory(self)? == directory(other)?)
    }

    fn address(&self, name: &OsStr) -> io::Result<SocketAddrUnix> {
        let plain = self.path.with_file_name(name);
        let length = plain.as_os_str().len();
        if length <= ADDRESS {
            return Ok(SocketAddrUnix::new(plain)?);
        }
        let directory = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        if !directory.exists() {
            return Err(io::Error::other(format!(
                "the path has {length} bytes, and more than {ADDRESS} need /proc, which is not mounted: mount it, or listen at a shorter path"
            )));
        }
        Ok(SocketAddrUnix::new(directory.join(name))?)
    }

    /// What kind of file the name is, if any, and which.
    fn look(&self) -> io::Result<Option<(FileType, (u64, u64))>> {
        match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some((FileType::from_raw_mode(found.st_mode), (found.st_dev, found.st_ino)))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn connect(&self, kind: SocketType) -> io::Result<OwnedFd> {
        let socket = new_socket(kind)?;
        rustix::net::connect(&socket, &self.address(&self.name)?)?;
        Ok(socket)
    }

    /// Connects, and waits until `deadline` where as many as there is room for wait to be accepted.
    fn connect_by(&self, kind: SocketType, deadline: Instant) -> io::Result<OwnedFd> {
        let socket = new_socket(kind)?;
        ioctl_fionbio(&socket, false)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            set_socket_timeout(&socket, Timeout::Send, Some(left))?;
            match rustix::net::connect(&socket, &self.address(&self.name)?) {
                Ok(()) => break,
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        ioctl_fionbio(&socket, true)?;
        Ok(socket)
    }

    /// Refuses what is no socket, and one that somebody listens on.
    fn check_free(&self, kind: SocketType) -> Result<()> {
        let path = self.path.display();
        let looked = self.look().map_err(|error| Error::io(format!("looking at {path}"), error))?;
        match looked {
            None => Ok(()),
            Some((FileType::Socket, _)) => match self.connect(kind) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
                // It is full, say, or another kind of socket: somebody's in any case.
                _ => Err(Error::new(ErrorKind::Locked, format!("{path}: somebody listens there already"))),
            },
            Some(_) => Err(Error::invalid(format!("{path} is there already, and is no socket"))),
        }
    }
}

impl Listener {
    /// Makes the sockets that are named, each at its path and of its kind, as [`Listener::bind`] does, or none.
    ///
    /// # Errors
    /// As that; `Invalid` where two are named by one path, in whatever words.
    pub(super) fn bind_all<const COUNT: usize>(
        sockets: [Option<(&Path, SocketType)>; COUNT],
        mode: u32,
    ) -> Result<[Option<Self>; COUNT]> {
        let mut bound = [const { None::<Self> }; COUNT];
        for (at, socket) in sockets.into_iter().enumerate() {
            let Some((path, kind)) = socket else { continue };
            let one = Place::open(path).and_then(|place| {
                for other in bound.iter().flatten() {
                    if place.is(&other.place)? {
                        return Err(Error::invalid("each socket needs a path of its own"));
                    }
                }
                Self::bind(place, kind, mode)
            });
            match one {
                Ok(listener) => bound[at] = Some(listener),
                Err(error) => {
                    bound.iter().flatten().for_each(Self::remove);
                    return Err(error);
                }
            }
        }
        Ok(bound)
    }

    /// Makes a socket of this kind at a place, instead of one that nobody listens on any more. It has its mode before anybody can
    /// connect to it, and its name only then.
    ///
    /// # Errors
    /// `Locked` where somebody listens there, `Invalid` where something else is there, else `Unavailable`.
    fn bind(place: Place, kind: SocketType, mode: u32) -> Result<Self> {
        place.check_free(kind)?;
        let failed = |error| Error::io(format!("making the socket {}", place.path.display()), error);
        let mut temporary = place.name.clone();
        temporary.push(format!(".{}", std::process::id()));
        let listener = (|| {
            place.remove(&temporary)?;
            let socket = new_socket(kind)?;
            if kind == SocketType::DGRAM {
                // Of what is sent before that nobody can say who did.
                set_socket_passcred(&socket, true)?;
            }
            rustix::net::bind(&socket, &place.address(&temporary)?)?;
            rustix::fs::chmodat(&place.directory, &temporary, Mode::from_raw_mode(mode), AtFlags::empty())?;
            if kind == SocketType::STREAM {
                rustix::net::listen(&socket, BACKLOG)?;
            }
            rustix::fs::renameat(&place.directory, &temporary, &place.directory, &place.name)?;
            let (_, inode) = place.look()?.ok_or(io::ErrorKind::NotFound)?;
            Ok((socket, inode))
        })();
        let (socket, inode) = listener.map_err(|error| {
            let _ = place.remove(&temporary);
            failed(error)
        })?;
        Ok(Listener { socket, place, inode })
    }

    /// Takes the name away, unless it is another socket's by now.
    pub(super) fn remove(&self) {
        if self.place.look().is_ok_and(|found| found.is_some_and(|(_, inode)| inode == self.inode)) {
            // One that stays is found to be nobody's.
            let _ = self.place.remove(&self.place.name);
        }
    }
}

/// Connects to the socket at `path`, until `deadline` where many do at once.
///
/// # Errors
/// `Unavailable` where nobody listens there, this user may not ask, or it took too long.
pub(super) fn connect(path: &Path, deadline: Instant) -> Result<OwnedFd> {
    let connected = Place::open(path)?.connect_by(SocketType::STREAM, deadline);
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Error::unavailable(format!(
            "{}: nobody listens there; start `bulla append DIR --listen {}` first",
            path.display(),
            path.display()
        )),
        io::ErrorKind::TimedOut => Error::unavailable(format!(
            "{}: many wait there to be let in, and there was no room for this one in time: connect again later",
            path.display()
        )),
        _ => Error::io(format!("connecting to {}", path.display()), error),
    })
}

fn new_socket(kind: SocketType) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?)
}

#[cfg(test)]
mod tests {
    use super::Place;
    use std::path::Path;

    #[test]
    fn a_path_that_an_address_has_room_for_needs_no_proc() {
        let place = tempfile::tempdir().unwrap();
        let address = |path: &Path| Place::open(path).unwrap().address(path.file_name().unwrap()).unwrap();
        let path_of = |path: &Path| {
            let address = address(path).path().unwrap().into_owned().into_string().unwrap();
            address.trim_end_matches('\0').to_owned()
        };
        let fits = place.path().join("s".repeat(super::ADDRESS - place.path().as_os_str().len() - 1));
        assert_eq!(path_of(&fits), fits.to_str().unwrap());
        assert_eq!(path_of(Path::new("audit.sock")), "audit.sock");
        let deep = place.path().join("d".repeat(150));
        std::fs::create_dir(&deep).unwrap();
        assert!(path_of(&deep.join("audit.sock")).starts_with("/proc/self/fd/"));
    }
}
