//! [`Server`]: an installed Redis or Valkey server, which runs for the proxy alone and ends with it.
//!
//! It listens on a Unix socket and nowhere else. When this process ends in whatever way, the kernel has the server end, too. That
//! takes it a moment, in which another proxy may start: so a server holds a lock on its folder for as long as it lives, and the next
//! one waits for that. Two servers never have the same data open.
#![allow(unsafe_code)]

use crate::exit::{Exit, Failure};
use crate::interrupt::no_room;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open, set_parent_process_death_signal,
};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The servers that are looked for, in this order.
const NAMES: [&str; 2] = ["redis-server", "valkey-server"];
/// In its folder: what it tells of itself.
const LOG: &str = "server.log";
/// In its folder: what the server that runs there has locked.
const LOCK: &str = "lock";
/// It is asked so often whether it is ready.
const PAUSE: Duration = Duration::from_millis(10);
/// After so long it is said what is waited for.
const SILENCE: Duration = Duration::from_secs(2);
/// So long a server may take to end, or to answer at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that is installed.
pub(super) struct Installed {
    name: &'static str,
    program: PathBuf,
}

impl Installed {
    /// The first one that is found.
    pub(super) fn find() -> Result<Installed, Failure> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_program = |file: &PathBuf| {
            file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        };
        let find = |name| {
            let program = std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)?;
            Some(Installed { name, program })
        };
        NAMES.into_iter().find_map(find).ok_or_else(|| {
            let message = "neither redis-server nor valkey-server is installed: \
                 `apt-get install redis-server` or `dnf install valkey` does it, or have `bulla proxy FILE` stand before a server elsewhere";
            Failure::new(Exit::Environment, message)
        })
    }

    /// Starts it: its data lie in `folder`, and it is waited for until it answers at `socket`, which is in there, too. The thread that
    /// calls this has to live as long as the server.
    pub(super) fn start(&self, folder: &Path, socket: &Path) -> Result<Server, Failure> {
        let name = self.name;
        let lock = lock(folder)?;
        let mut process = self.spawn(folder, socket, &lock)?;
        let log = folder.join(LOG);
        let mut waiting = Waiting::begin();
        loop {
            match ask(socket) {
                Answer::Ready => break,
                // However long that takes.
                Answer::Loading => waiting.renew(),
                Answer::Nothing => {}
            }
            if let Ok(Some(status)) = process.try_wait() {
                let message = format!("{name} ended ({status}): {}", last_words(&log));
                return Err(Failure::new(Exit::Environment, message));
            }
            if waiting.is_over(|| format!("{name} to answer; {} says what it does", log.display())) {
                let _ = process.kill();
                let _ = process.wait();
                let message = format!(
                    "{name} has not answered at {} for {} seconds: {}",
                    socket.display(),
                    PATIENCE.as_secs(),
                    last_words(&log)
                );
                return Err(Failure::new(Exit::Environment, message));
            }
            std::thread::sleep(PAUSE);
        }
        Server::watch(name, process, log)
    }

    fn spawn(&self, folder: &Path, socket: &Path, lock: &File) -> Result<Child, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["--port", "0", "--unixsocketperm", "700", "--unixsocket"]).arg(socket);
        // Of each write it says that it is done once the file has it, and syncs that once a second.
        command.args(["--save", "", "--appendonly", "yes", "--dir", "."]);
        command.args(["--daemonize", "no", "--logfile", LOG]).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // An interrupt at the terminal is for the proxy, which has the server end once the clients are gone.
        command.process_group(0);
        let proxy = getpid();
        let lock = lock.as_raw_fd();
        let end_with_proxy = move || {
            // SAFETY: its owner is borrowed until the child has been started, in which nothing closes it before.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(lock) }, FdFlags::empty())?;
            set_parent_process_death_signal(Some(Signal::TERM))?;
            match getppid() == Some(proxy) {
                true => Ok(()),
                // It ended before it could be said that this ends with it.
                false => Err(io::ErrorKind::BrokenPipe.into()),
            }
        };
        // SAFETY: between fork and exec, what it calls is three system calls; it takes no lock and allocates nothing.
        unsafe { command.pre_exec(end_with_proxy) };
        command.spawn().map_err(|error| Failure::io(self.program.display(), &error))
    }
}

/// See the module. It ends when this is dropped.
pub(super) struct Server {
    name: &'static str,
    /// Closing it has the server end.
    running: Option<UnixStream>,
    watching: Option<JoinHandle<()>>,
}

impl Server {
    /// Has a thread say so at once when it ends, and end it when this is dropped.
    fn watch(name: &'static str, mut process: Child, log: PathBuf) -> Result<Server, Failure> {
        let failed = |error| no_room("watching the server", &error);
        let (running, ended) = UnixStream::pair().map_err(failed)?;
        let server = pidfd_open(Pid::from_child(&process), PidfdFlags::empty());
        let server = server.map_err(|error| failed(error.into()))?;
        let watch = move || {
            if ends_first(server.as_fd(), ended.as_fd()) {
                let status =
                    process.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                let why = last_words(&log);
                note!("{name} ended ({status}), and nobody can be served until this is started anew: {why}");
                return;
            }
            // It writes what it has to, and ends.
            let _ = kill_process(Pid::from_child(&process), Signal::TERM);
            let _ = process.wait();
        };
        let thread = std::thread::Builder::new().name("bulla-server".to_owned()).spawn(watch);
        let watching = thread.map_err(|error| no_room("starting a thread", &error))?;
        Ok(Server { name, running: Some(running), watching: Some(watching) })
    }

    /// The name of the program.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.running = None;
        let _ = self.watching.take().map(JoinHandle::join);
    }
}

/// Waits until the server ends, or is to end; whether it was the first of these.
fn ends_first(server: BorrowedFd<'_>, ended: BorrowedFd<'_>) -> bool {
    let mut both =
        [PollFd::from_borrowed_fd(server, PollFlags::IN), PollFd::from_borrowed_fd(ended, PollFlags::IN)];
    while poll(&mut both, None) == Err(Errno::INTR) {}
    !both[0].revents().is_empty()
}

/// Locks the folder, once the server that ran there before has ended.
fn lock(folder: &Path) -> Result<File, Failure> {
    let path = folder.join(LOCK);
    let failed = |error| Failure::io(path.display(), &error);
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let mut waiting = Waiting::begin();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if waiting.is_over(|| format!("the server to end that ran in {} before", folder.display())) {
            let message = format!(
                "another server has run in {} for {} seconds, and has its data open: end it (`fuser {}` says which it is)",
                folder.display(),
                PATIENCE.as_secs(),
                path.display()
            );
            return Err(Failure::new(Exit::Environment, message));
        }
        std::thread::sleep(PAUSE);
    }
}

/// How long something was waited for.
struct Waiting {
    begun: Instant,
    is_said: bool,
}

impl Waiting {
    fn begin() -> Waiting {
        Waiting { begun: Instant::now(), is_said: false }
    }

    /// It goes on.
    fn renew(&mut self) {
        *self = Waiting { is_said: self.is_said, ..Waiting::begin() };
    }

    /// Whether that was too long. It is said `what` is waited for, once, where it takes a while.
    fn is_over(&mut self, what: impl FnOnce() -> String) -> bool {
        let long = self.begun.elapsed();
        if long >= SILENCE && !std::mem::replace(&mut self.is_said, true) {
            note!("waiting for {}", what());
        }
        long >= PATIENCE
    }
}

/// The last line of what a server told of itself.
fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.map_or_else(
        || format!("{} does not say why", log.display()),
        |line| format!("{line} ({})", log.display()),
    )
}

/// What a server says when it is asked whether it is there.
enum Answer {
    Nothing,
    /// It reads its data.
    Loading,
    Ready,
}

fn ask(socket: &Path) -> Answer {
    let ask = || -> io::Result<[u8; 5]> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
        Ok(reply)
    };
    match ask().as_ref() {
        Ok(b"+PONG") => Answer::Ready,
        Ok(b"-LOAD") => Answer::Loading,
        _ => Answer::Nothing,
    }
}
