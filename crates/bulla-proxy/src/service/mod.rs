//! What the proxy tells the service manager that started it, such as systemd: when it serves clients, when it reads its
//! configuration anew, and when it ends. `packaging/` has the service.
//! <https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>

#[cfg(test)]
mod tests;

use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// What the proxy is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It serves clients: it has begun to, or goes on with a configuration that it has read anew, or with the old one where that
    /// one is wrong.
    Ready,
    /// It reads its configuration anew. [`State::Ready`] has to follow.
    Reloading,
    /// It takes no more clients, and ends once those that are there have what they began.
    Stopping,
}

/// Whoever started the proxy, and wants to be told; or nobody.
#[derive(Debug)]
pub struct ServiceManager {
    listening: Option<(UnixDatagram, SocketAddr)>,
}

impl ServiceManager {
    /// Nobody, who is told nothing.
    pub fn nobody() -> Self {
        ServiceManager { listening: None }
    }

    /// The service manager that listens on a socket, which it names in the environment: `NOTIFY_SOCKET`. Where that is not set
    /// there is nobody to be told.
    ///
    /// # Errors
    /// It is no address of a Unix socket.
    pub fn new(notify_socket: Option<&OsStr>) -> io::Result<Self> {
        let Some(name) = notify_socket else {
            return Ok(ServiceManager::nobody());
        };
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(name),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a path nor `@` and a name")),
        };
        let address = address.map_err(|error| unreachable(name, &error))?;
        let socket = UnixDatagram::unbound()?;
        // What it does not take at once is not waited for: clients are.
        socket.set_nonblocking(true)?;
        Ok(ServiceManager { listening: Some((socket, address)) })
    }

    /// Tells it a state, and in one line what people are to read beside it.
    ///
    /// # Errors
    /// It cannot be reached: no reason to end, for it says itself what it has not heard.
    pub fn tell(&self, state: State, status: &str) -> io::Result<()> {
        let Some((socket, address)) = &self.listening else {
            return Ok(());
        };
        let state = match state {
            State::Ready => "READY=1".to_owned(),
            State::Reloading => {
                let now = clock_gettime(ClockId::Monotonic);
                format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
            }
            State::Stopping => "STOPPING=1".to_owned(),
        };
        // The end of a line would begin another message.
        let status = status.replace(char::is_control, " ");
        let sent = socket.send_to_addr(format!("{state}\nSTATUS={status}\n").as_bytes(), address);
        sent.map(drop).map_err(|error| {
            let name = address.as_pathname().map(|path| path.as_os_str());
            unreachable(name.unwrap_or(OsStr::new("an abstract name")), &error)
        })
    }
}

fn unreachable(name: &OsStr, error: &io::Error) -> io::Error {
    let what =
        format!("the service manager is not told anything: NOTIFY_SOCKET is {}: {error}", name.display());
    io::Error::new(error.kind(), what)
}
