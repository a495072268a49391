//! [`Server`]: an installed Redis or Valkey server, which runs for the proxy alone and ends with it.
//!
//! It listens on a Unix socket and nowhere else. When this process ends in whatever way, the kernel has the server end, too.
#![allow(unsafe_code)]

use crate::exit::{Exit, Failure};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The servers that are looked for, in this order.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];
/// In its folder: what it tells of itself.
const LOG: &str = "server.log";
/// It is asked so often whether it is ready.
const PAUSE: Duration = Duration::from_millis(10);

/// See the module. It ends when this is dropped.
pub(super) struct Server {
    name: &'static str,
    process: Child,
    log: PathBuf,
}

impl Server {
    /// Starts one whose data lie in `folder`, and waits until it answers at `socket`, which is in there, too. The thread that calls
    /// this has to live as long as the server.
    pub(super) fn start(folder: &Path, socket: &Path) -> Result<Server, Failure> {
        let Some((name, process)) = spawn(folder, socket)? else {
            let message = "neither redis-server nor valkey-server is installed: \
                 `apt-get install redis-server` or `dnf install valkey` does it, or have `bulla proxy FILE` stand before a server elsewhere";
            return Err(Failure::new(Exit::Environment, message));
        };
        let mut server = Server { name, process, log: folder.join(LOG) };
        while !is_ready(socket) {
            if !matches!(server.process.try_wait(), Ok(None)) {
                let message = format!("{name} ended: {}", server.last_words());
                return Err(Failure::new(Exit::Environment, message));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// The name of the program.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The last line of what it told of itself.
    fn last_words(&self) -> String {
        let log = self.log.display();
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().rfind(|line| !line.trim().is_empty());
        line.map_or_else(|| format!("{log} does not say why"), |line| format!("{line} ({log})"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.process.try_wait() {
            note!("{} had ended before: {}", self.name, self.last_words());
            return;
        }
        // It writes what it has to, and ends.
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Starts the first server that is installed, if any is.
fn spawn(folder: &Path, socket: &Path) -> Result<Option<(&'static str, Child)>, Failure> {
    for name in NAMES {
        let mut command = Command::new(name);
        command.args(["--port", "0", "--unixsocketperm", "700", "--unixsocket"]).arg(socket);
        // Each write is in a file at once, and on the disk within a second.
        command.args(["--save", "", "--appendonly", "yes", "--dir", "."]);
        command.args(["--daemonize", "no", "--logfile", LOG]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // An interrupt at the terminal is for the proxy, which has the server end once the clients are gone.
        command.process_group(0);
        let proxy = getpid();
        let end_with_proxy = move || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            match getppid() == Some(proxy) {
                true => Ok(()),
                // It ended before it could be said that this ends with it.
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        // SAFETY: between fork and exec, what it calls is two system calls; it takes no lock and allocates nothing.
        unsafe { command.pre_exec(end_with_proxy) };
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            spawned => {
                return spawned
                    .map(|process| Some((name, process)))
                    .map_err(|error| Failure::io(name, &error));
            }
        }
    }
    Ok(None)
}

/// Whether it answers, and has read its data.
fn is_ready(socket: &Path) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
        Ok(&reply == b"+PONG")
    };
    ask().unwrap_or(false)
}
