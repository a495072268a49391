//! Programs that a run starts, and ends whatever becomes of it.

use super::client::Client;
use crate::outcome::Failure;
use rustix::process::{Pid, Signal, kill_process};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a program may take until it answers, or until it has ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that ends with this, at the latest.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        let child = command
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        Ok(Running { child })
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a client is answered at this port, or the program is gone.
    pub(super) fn wait_for(&mut self, port: u16) -> Result<bool, Failure> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            if Client::connect(port).and_then(|mut client| client.ask(&["PING"])).is_ok() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(false)
    }

    /// Asks it to end; how it did.
    pub(crate) fn end(&mut self) -> Result<ExitStatus, Failure> {
        let id = Pid::from_child(&self.child);
        kill_process(id, Signal::TERM)?;
        Ok(self.child.wait()?)
    }

    /// Its resident memory now, and the most that it had since [`Running::forget_peak`], in bytes.
    pub(super) fn memory(&self) -> Result<(f64, f64), Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            let kibibytes = line.trim().trim_end_matches(" kB").parse::<f64>();
            kibibytes.map(|number| number * 1024.0).map_err(|error| format!("{name} {error}"))
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }

    pub(super) fn forget_peak(&self) -> Result<(), Failure> {
        Ok(std::fs::write(format!("/proc/{}/clear_refs", self.id()), "5")?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a program at a port that is free, and tries again where somebody else takes it meanwhile.
pub(super) fn at_a_free_port(
    name: &str,
    mut start: impl FnMut(u16) -> Result<Running, Failure>,
) -> Result<(Running, u16), Failure> {
    const TRIES: u32 = 5;
    for _ in 0..TRIES {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut running = start(port)?;
        if running.wait_for(port)? {
            return Ok((running, port));
        }
    }
    Err(format!("{name} does not start").into())
}

/// An installed program; those of administrators count, which not everybody's `PATH` has.
pub(super) fn installed(name: &str) -> Result<PathBuf, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = folders.map(|folder| folder.join(name)).find(|file| file.is_file());
    Ok(found.ok_or_else(|| {
        std::io::Error::new(ErrorKind::NotFound, format!("{name} is missing: `make setup` installs it"))
    })?)
}
