//! Which process is at the other end of a local socket, as the kernel says.
//!
//! A process of another namespace has the number 0 there (a client outside of the container that a log is written in), for
//! which rustix's credentials have no room: what the kernel says is read here.
#![allow(unsafe_code)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::c_int;
use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The bytes of credentials: three numbers of four bytes each.
const LENGTH: usize = size_of::<libc::ucred>();

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The process; 0 where it is in another namespace of processes.
    pub(crate) process: u32,
    /// The user that it ran as; where the namespace of this process has no number for it, the kernel's for all such (65534).
    pub(crate) user: u32,
}

impl Credentials {
    fn from_bytes(bytes: &[u8; LENGTH]) -> Self {
        let number = |at: usize| {
            let bytes = bytes[at..].first_chunk::<4>().expect("each of the numbers has four bytes");
            u32::from_ne_bytes(*bytes)
        };
        Credentials {
            process: number(offset_of!(libc::ucred, pid)),
            user: number(offset_of!(libc::ucred, uid)),
        }
    }
}

/// Who connected, or who listens: whoever is at the other end of this connection.
///
/// # Errors
/// What the kernel says.
pub(crate) fn of_connection(socket: &OwnedFd) -> io::Result<Credentials> {
    Ok(Credentials::from_bytes(&option(socket, libc::SO_PEERCRED)?))
}

/// A datagram that was received.
#[derive(Debug)]
pub(crate) struct Received {
    /// So many bytes of the buffer are its.
    pub(crate) bytes: usize,
    /// Whether it had more.
    pub(crate) is_cut_off: bool,
    /// Who sent it.
    pub(crate) from: Option<Credentials>,
}

/// What comes beside a datagram: its head, and credentials behind that.
#[repr(C)]
struct Beside {
    head: libc::cmsghdr,
    credentials: [u8; LENGTH],
}

#[expect(clippy::cast_possible_truncation, reason = "it is 12")]
// SAFETY: it computes with a number.
const SPACE: usize = unsafe { libc::CMSG_SPACE(LENGTH as u32) } as usize;
const _: () = assert!(size_of::<Beside>() == SPACE);

/// Takes a datagram that is here, of a socket that was told to say who sends (`SO_PASSCRED`). There is no room for files that a sender
/// passes: the kernel lets go of them.
///
/// # Errors
/// `WOULDBLOCK` where none is here, and else what the kernel says.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: both are numbers and pointers, of which zero is one.
    let (mut beside, mut message) = unsafe { (zeroed::<Beside>(), zeroed::<libc::msghdr>()) };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut beside).cast();
    message.msg_controllen = size_of::<Beside>() as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: `message` names a buffer and a place for what comes beside it, each with its length and borrowed until the end.
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let bytes = usize::try_from(bytes).map_err(|_| last_error())?;
    #[allow(clippy::unnecessary_cast, reason = "not in every C library are they of this type")]
    let (came, length) = (message.msg_controllen as usize, beside.head.cmsg_len as usize);
    let kind = (beside.head.cmsg_level, beside.head.cmsg_type);
    let whole = offset_of!(Beside, credentials) + LENGTH;
    let has_them = came >= whole && length == whole && kind == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
    Ok(Received {
        bytes,
        is_cut_off: message.msg_flags & libc::MSG_TRUNC != 0,
        from: has_them.then(|| Credentials::from_bytes(&beside.credentials)),
    })
}

/// The process that listens at the other end of a connection.
#[derive(Debug)]
pub(super) enum Listener {
    /// Of this there is something to read once it is gone.
    Watched(OwnedFd),
    /// It is gone, and what it had open a child has, or another process to which it passed that on.
    Gone,
    /// The kernel cannot say: before Linux 5.3, or 6.5 of one in another namespace, or for want of descriptors.
    Unknown,
}

/// Watches the process that listens at the other end of this connection.
pub(super) fn watch_listener(connection: &OwnedFd) -> Listener {
    let process = match option(connection, libc::SO_PEERPIDFD) {
        // SAFETY: the kernel has opened it for this call, and nobody else has it.
        Ok(bytes) => Ok(unsafe { OwnedFd::from_raw_fd(c_int::from_ne_bytes(bytes)) }),
        Err(Errno::NOPROTOOPT) => open_by_number(connection),
        // So it says of one that is gone.
        Err(Errno::INVAL) => Err(Errno::SRCH),
        Err(error) => Err(error),
    };
    match process {
        Ok(process) if is_readable(&process) => Listener::Gone,
        Ok(process) => Listener::Watched(process),
        Err(Errno::SRCH) => Listener::Gone,
        Err(_) => Listener::Unknown,
    }
}

fn open_by_number(connection: &OwnedFd) -> Result<OwnedFd, Errno> {
    let credentials = Credentials::from_bytes(&option(connection, libc::SO_PEERCRED)?);
    let process = i32::try_from(credentials.process).ok().and_then(Pid::from_raw);
    // One of another namespace has no number here.
    pidfd_open(process.ok_or(Errno::NODATA)?, PidfdFlags::empty())
}

/// Whether there is something to read, or an end, at once.
pub(super) fn is_readable(file: &OwnedFd) -> bool {
    matches!(poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&Timespec::default())), Ok(1..))
}

/// What the kernel says of a socket, where it is as long as it should be.
fn option<const N: usize>(socket: &OwnedFd, name: c_int) -> Result<[u8; N], Errno> {
    let mut value = [0_u8; N];
    let mut length = libc::socklen_t::try_from(N).expect("a few bytes");
    let place = value.as_mut_ptr().cast();
    // SAFETY: the kernel writes to `value` as many bytes at most as `length` says, which are there, and to `length`.
    let asked =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, place, &raw mut length) };
    match asked {
        0 if length as usize == N => Ok(value),
        0 => Err(Errno::PROTO),
        _ => Err(last_error()),
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::set_socket_passcred;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    fn own() -> Credentials {
        Credentials { process: std::process::id(), user: rustix::process::geteuid().as_raw() }
    }

    #[test]
    fn a_process_of_another_namespace_has_the_number_0_and_its_user() {
        let bytes = [0_u32, 1000, 100].map(u32::to_ne_bytes).concat().try_into().unwrap();
        assert_eq!(Credentials::from_bytes(&bytes), Credentials { process: 0, user: 1000 });
    }

    #[test]
    fn the_kernel_says_who_is_at_the_other_end() {
        let (one, other) = UnixStream::pair().unwrap();
        let one = OwnedFd::from(one);
        assert_eq!(of_connection(&one).unwrap(), own());
        assert!(!matches!(watch_listener(&one), Listener::Gone), "this process runs");
        assert!(!is_readable(&one));
        drop(other);
        assert!(is_readable(&one));
    }

    #[test]
    fn a_datagram_comes_with_its_length_and_its_sender() {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        let receiver = OwnedFd::from(receiver);
        let mut buffer = [0; 4];
        assert_eq!(receive(&receiver, &mut buffer).unwrap_err(), Errno::WOULDBLOCK);
        sender.send(b"abc").unwrap();
        let unknown = receive(&receiver, &mut buffer).unwrap();
        assert_eq!((unknown.bytes, unknown.from), (3, None), "nobody asked who it is");
        set_socket_passcred(&receiver, true).unwrap();
        for (sent, bytes, is_cut_off) in [(&b"abcd"[..], 4, false), (b"abcde", 4, true), (b"", 0, false)] {
            sender.send(sent).unwrap();
            let received = receive(&receiver, &mut buffer).unwrap();
            assert_eq!((received.bytes, received.is_cut_off), (bytes, is_cut_off));
            assert_eq!(received.from, Some(own()));
        }
    }
}
