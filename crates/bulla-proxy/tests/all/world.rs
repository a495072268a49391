//! A server, a proxy before it, and the log that it writes.

use bulla::environment::Environment;
use bulla::keys::recipients::IdentityFile;
use bulla::keys::signing::SigningKey;
use bulla::{ErasureOrder, Init, Log, Options, Query, Reader, default_keys};
use bulla_proxy::config::Config;
use bulla_proxy::proxy::Proxy;
use bulla_proxy::resp::{Limits, Replies, Reply, write_command};
use bulla_proxy::warnings::Kind;
use bulla_testkit::RedisServer;
use bulla_testkit::fault::Faults;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Limits that keep all of what a test has.
const ALL: Limits = Limits { bytes: usize::MAX, items: usize::MAX, text: usize::MAX };

/// The modes, as the configuration names them.
pub(crate) const MODES: [&str; 3] = ["async", "before-reply", "before-send"];

/// What was warned of.
pub(crate) type Warned = Arc<Mutex<Vec<Kind>>>;

/// See the module. The proxy ends first.
pub(crate) struct World {
    proxy: Option<Proxy>,
    log: Option<Log>,
    server: Option<RedisServer>,
    folder: tempfile::TempDir,
    workers: usize,
    /// On whose disk the log is, where it is a simulated one.
    machine: Option<Faults>,
}

impl World {
    /// With these lines of configuration, and these arguments of the server.
    pub(crate) fn new(top: &str, tables: &str, arguments: &[&str]) -> World {
        World::of_workers(2, top, tables, arguments)
    }

    /// With so many workers: the entries of one are in the order of the replies, whichever client they are to.
    pub(crate) fn of_workers(workers: usize, top: &str, tables: &str, arguments: &[&str]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = RedisServer::start(folder.path(), arguments);
        let mut world =
            World { proxy: None, log: None, server: Some(server), folder, workers, machine: None };
        world.create_log();
        world.proxy = Some(world.start(top, tables).unwrap());
        world
    }

    /// With one worker, and a log on the disk of `machine`, which has no erasure and is opened like this.
    pub(crate) fn on(
        machine: &Faults,
        options: Options,
        environment: Environment,
        top: &str,
        tables: &str,
    ) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = Some(RedisServer::start(folder.path(), &[]));
        let (log, keys) = (machine.store("audit"), machine.store("keys"));
        Init::default().erasure(false).create_in(&log, &keys, &Environment::default()).unwrap();
        let log = Some(Log::open_stores(Arc::new(log), Arc::new(keys), options, environment).unwrap());
        let mut world =
            World { proxy: None, log, server, folder, workers: 1, machine: Some(machine.clone()) };
        world.proxy = Some(world.start(top, tables).unwrap());
        world
    }

    /// With one worker, and a log that has no vault.
    pub(crate) fn without_erasure(tables: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = RedisServer::start(folder.path(), &[]);
        let mut world =
            World { proxy: None, log: None, server: Some(server), folder, workers: 1, machine: None };
        Init::default().erasure(false).create(world.directory()).unwrap();
        world.log = Some(Log::open(world.directory(), Options::default()).unwrap());
        world.proxy = Some(world.start("", tables).unwrap());
        world
    }

    /// With these lines of `[listen]` and, where the server is not on its socket, of `[upstream]`.
    pub(crate) fn edged(listen: &str, upstream: Option<&str>, arguments: &[&str]) -> World {
        let folder = tempfile::tempdir().unwrap();
        let server = RedisServer::start(folder.path(), arguments);
        let mut world =
            World { proxy: None, log: None, server: Some(server), folder, workers: 1, machine: None };
        world.create_log();
        let config = world.config(listen, upstream, "");
        world.proxy = Some(world.start_with(&config).unwrap());
        world
    }

    /// A configuration with these lines, as [`World::edged`], and those before or behind them.
    pub(crate) fn config(&self, listen: &str, upstream: Option<&str>, tables: &str) -> Config {
        let (directory, workers) = (self.directory(), self.workers);
        let socket = format!("unix = {:?}", self.server.as_ref().unwrap().socket());
        let upstream = upstream.unwrap_or(&socket);
        let text = format!(
            "workers = {workers}\n[log]\ndirectory = {directory:?}\n[upstream]\n{upstream}\n[listen]\n\
             address = \"127.0.0.1:0\"\n{listen}\n{tables}\n"
        );
        Config::parse(text.as_bytes()).unwrap()
    }

    /// A proxy of this configuration, which writes the world's log.
    pub(crate) fn start_with(&self, config: &Config) -> bulla::Result<Proxy> {
        Proxy::start(config, self.log.as_ref().unwrap(), &Environment::default())
    }

    /// Ends the proxy, and has another one, which `start` starts, in its place.
    pub(crate) fn replace(&mut self, start: impl FnOnce(&Log) -> Proxy) {
        self.proxy = None;
        self.proxy = Some(start(self.log()));
    }

    /// Ends the proxy, and gives the log away; `start` starts another one that has it.
    pub(crate) fn give_log(&mut self, start: impl FnOnce(Log) -> Proxy) {
        self.proxy = None;
        self.proxy = self.log.take().map(start);
    }

    /// Ends a proxy that was started so.
    pub(crate) fn end_proxy(&mut self) {
        let proxy = self.proxy.take().unwrap();
        proxy.stopper().stop();
        proxy.join().unwrap();
    }

    fn create_log(&mut self) {
        Init::default().create(self.directory()).unwrap();
        self.log = Some(Log::open(self.directory(), Options::default()).unwrap());
    }

    fn start(&self, top: &str, tables: &str) -> bulla::Result<Proxy> {
        self.start_at(self.server.as_ref().unwrap().socket(), top, tables)
    }

    /// A proxy before another server, with these lines of `[upstream]`.
    pub(crate) fn start_before(&self, socket: &Path, upstream: &str) -> bulla::Result<Proxy> {
        self.start_at(socket, "", upstream)
    }

    fn start_at(&self, socket: &Path, top: &str, tables: &str) -> bulla::Result<Proxy> {
        let (directory, workers) = (self.directory(), self.workers);
        let text = format!(
            "workers = {workers}\n{top}\n[log]\ndirectory = {directory:?}\n[listen]\naddress = \"127.0.0.1:0\"\n\
             [upstream]\nunix = {socket:?}\n{tables}\n"
        );
        let config = Config::parse(text.as_bytes()).unwrap();
        self.start_with(&config)
    }

    /// Ends the proxy and closes the log, has `meanwhile` done, and starts both again, with what is warned of in `warned`.
    pub(crate) fn restart(&mut self, tables: &str, warned: &Warned, meanwhile: impl FnOnce(&World)) {
        self.proxy = None;
        self.close_log();
        meanwhile(self);
        self.log = Some(Log::open(self.directory(), Options::default()).unwrap());
        let (log, warned) = (self.log.as_ref().unwrap(), warned.clone());
        let warn = Arc::new(move |kind: Kind, _: &str| warned.lock().unwrap().push(kind));
        let config = self.config("", None, tables);
        self.proxy = Some(Proxy::start_warning(&config, log, &Environment::default(), warn).unwrap());
    }

    /// Erases somebody, in the log that the proxy writes or, where it is closed, in the log opened for that.
    pub(crate) fn erase(&self, subject: &str) {
        let key = std::fs::read_to_string(self.keys().join("erasure.key")).unwrap();
        let key = SigningKey::parse(&key).unwrap();
        let id = bulla::info(self.directory()).unwrap().id;
        let order = ErasureOrder::give(&key, id, &[subject], None, &Environment::default()).unwrap();
        match &self.log {
            Some(log) => drop(log.erase(&order).unwrap()),
            None => {
                let log = Log::open(self.directory(), Options::default()).unwrap();
                log.erase(&order).unwrap();
                log.close().unwrap();
            }
        }
    }

    pub(crate) fn keys(&self) -> PathBuf {
        default_keys(&self.directory())
    }

    /// Waits until all that clients were told of is in the log.
    pub(crate) fn flush(&self) {
        self.log.as_ref().unwrap().flush().unwrap();
    }

    /// The log takes nothing any more.
    pub(crate) fn close_log(&mut self) {
        self.log.take().unwrap().close().unwrap();
    }

    pub(crate) fn kill_server(&mut self) {
        self.server = None;
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.proxy().address().unwrap()).unwrap())
    }

    /// The socket of the server.
    pub(crate) fn socket(&self) -> &Path {
        self.server.as_ref().unwrap().socket()
    }

    /// A connection to the server, around the proxy.
    pub(crate) fn around(&self) -> Client<UnixStream> {
        Client::new(UnixStream::connect(self.socket()).unwrap())
    }

    pub(crate) fn proxy(&self) -> &Proxy {
        self.proxy.as_ref().unwrap()
    }

    /// Ends the proxy and the log, and gives all entries: operation, location, and what else is told of them.
    pub(crate) fn entries(self) -> Vec<String> {
        let entry = |(client, entry): (String, String)| {
            assert!(client.starts_with("127.0.0.1:") || entry.starts_with("gap "), "{client}");
            entry
        };
        self.entries_of_clients().into_iter().map(entry).collect()
    }

    /// The same where somebody was erased, whose entries are not among them.
    pub(crate) fn entries_left(self) -> Vec<String> {
        self.told(true).into_iter().map(|(_, entry)| entry).collect()
    }

    /// The same, each with the address of its client.
    pub(crate) fn entries_of_clients(self) -> Vec<(String, String)> {
        self.told(false)
    }

    fn told(mut self, some_are_erased: bool) -> Vec<(String, String)> {
        self.end().unwrap();
        self.read(some_are_erased)
    }

    /// Ends the proxy, and closes the log.
    pub(crate) fn end(&mut self) -> bulla::Result<()> {
        if let Some(proxy) = self.proxy.take() {
            proxy.stopper().stop();
            proxy.join().unwrap();
        }
        self.log.take().unwrap().close()
    }

    /// A log that takes the place of the one that was closed.
    pub(crate) fn reopen(&mut self) {
        let machine = self.machine.as_ref().unwrap();
        let (log, keys) = (machine.store("audit"), machine.store("keys"));
        let log = Log::open_stores(Arc::new(log), Arc::new(keys), Options::default(), Environment::default());
        self.log = Some(log.unwrap());
    }

    pub(crate) fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    /// All entries of the log, as [`World::entries_of_clients`] gives them.
    pub(crate) fn read(&self, some_are_erased: bool) -> Vec<(String, String)> {
        let keys = default_keys(&self.directory());
        let (reader, identity) = match &self.machine {
            None => {
                let identity = std::fs::read_to_string(keys.join("identity.age")).unwrap();
                (Reader::open_with_keys(self.directory(), keys).unwrap(), identity)
            }
            Some(machine) => {
                let identity = String::from_utf8(machine.read("keys/identity.age").unwrap()).unwrap();
                (Reader::open_store(Arc::new(machine.store("audit"))).unwrap(), identity)
            }
        };
        let reader = reader.identity(Arc::new(IdentityFile::parse(&identity).unwrap()));
        let mut entries = Vec::new();
        let told = |number, entry: &bulla::Entry<'_>| {
            // Where a block was lost, numbers are missing.
            assert!(number >= entries.len() as u64);
            // What tells of a gap is nobody's.
            let client = entry.client.unwrap_or_default();
            if some_are_erased && (entry.client.is_none() || entry.location.is_none()) {
                return Ok(());
            }
            let location = String::from_utf8_lossy(entry.location.unwrap_or_default());
            let status = entry.status.map_or("-".to_owned(), |status| status.to_string());
            let mut line = format!("{} {location} {status}", entry.operation);
            let subjects = entry.subjects.clone().unwrap_or_default().join("+");
            for (name, value) in [
                ("subject", Some(subjects.as_str()).filter(|it| !it.is_empty())),
                ("actor", entry.actor.filter(|it| *it != "default")),
                ("purpose", entry.purpose),
                ("payload", entry.payload.map(|payload| std::str::from_utf8(payload).unwrap())),
            ] {
                line += &value.map_or(String::new(), |value| format!(" {name}={value}"));
            }
            entries.push((client.to_owned(), line));
            Ok(())
        };
        reader.for_each(&Query::new(), told).unwrap();
        entries
    }
}

/// Entries without their payloads.
pub(crate) fn plain(entries: &[String]) -> Vec<&str> {
    entries.iter().map(|entry| entry.split(" payload=").next().unwrap()).collect()
}

/// A client of the proxy.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    replies: Replies,
    /// What came and is not read.
    rest: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn new(stream: S) -> Client<S> {
        Client { stream, replies: Replies::new(ALL), rest: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    pub(crate) fn command(&mut self, words: &[&[u8]]) -> &mut Self {
        let mut bytes = Vec::new();
        write_command(words, &mut bytes);
        self.send(bytes)
    }

    /// The next reply or push; `None` at the end.
    pub(crate) fn reply(&mut self) -> Option<Reply> {
        let mut room = vec![0; 64 << 10];
        loop {
            if self.rest.is_empty() {
                match self.stream.read(&mut room).unwrap() {
                    0 => return None,
                    length => self.rest.extend_from_slice(&room[..length]),
                }
            }
            let progress = self.replies.next(&self.rest).unwrap();
            self.rest.drain(..progress.consumed);
            if progress.complete {
                return Some(self.replies.reply().clone());
            }
        }
    }

    /// The next reply as text: the texts of its values.
    pub(crate) fn told(&mut self) -> String {
        let Some(reply) = self.reply() else { return "the end".to_owned() };
        let texts = reply.nodes().iter().map(|node| match node.kind {
            bulla_proxy::resp::Kind::Null => "null".to_owned(),
            _ if node.is_aggregate() => format!("{:?}({})", node.kind, node.length),
            _ => String::from_utf8_lossy(reply.text(node)).into_owned(),
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    /// What a line of commands, one after the other, is answered with.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(format!("{line}\r\n")).told()
    }

    /// Asks all at once; what each is answered with.
    pub(crate) fn ask_all(&mut self, lines: &[&str]) -> Vec<String> {
        self.send(lines.iter().map(|line| format!("{line}\r\n")).collect::<String>());
        lines.iter().map(|_| self.told()).collect()
    }
}

impl Client {
    /// Says that nothing more will come.
    pub(crate) fn finish(&mut self) -> &mut Client {
        self.stream.shutdown(Shutdown::Write).unwrap();
        self
    }
}
