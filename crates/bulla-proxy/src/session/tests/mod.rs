//! Sessions without I/O: what is recorded, and what leaves to each side.

mod allocations;
mod channels;
mod defects;
mod modes;
mod pieces;
mod refusals;
mod transactions;
mod users;

use super::*;
use crate::command::CommandTable;
use crate::config::{self, Config, Treatment};

/// In 2023, in nanoseconds since 1970.
const NOW: i64 = 1_700_000_000_000_000_000;

/// Notes operations as text.
#[derive(Default)]
struct Notes {
    operations: Vec<String>,
    /// How many more are taken, where that is bounded.
    room: Option<usize>,
    /// How many were not.
    missing: u64,
    /// At which command there is a defect, and how often it shows.
    defect: Option<(&'static str, usize)>,
}

impl Record for Notes {
    fn record(&mut self, operation: &Operation<'_>) -> Result<(), Unrecorded> {
        if let Some((at, left @ 1..)) = &mut self.defect
            && *at == operation.command
        {
            *left -= 1;
            panic!("the test wants it at {at}");
        }
        match &mut self.room {
            Some(0) => {
                self.missing += 1;
                return Err(Unrecorded);
            }
            Some(room) => *room -= 1,
            None => {}
        }
        let target = match operation.target {
            Target::Key { key, length, access, .. } => {
                let verb = format!("{access:?}").to_lowercase();
                let key = if key.len() as u64 == length { text(key) } else { format!("{length} bytes") };
                format!("{verb} {key}")
            }
            Target::Unlisted(0, _) => "unlisted(0)".to_owned(),
            Target::Unlisted(count, digest) => {
                format!("unlisted({count}{})", if digest.is_some() { ", digest" } else { "" })
            }
            Target::Unknowable(class, script) => {
                format!(
                    "unknowable({}, {})",
                    format!("{class:?}").to_lowercase(),
                    script.map_or("-".into(), text)
                )
            }
            Target::Server(None) => "server".to_owned(),
            Target::Server(Some(script)) => format!("server({})", text(script)),
            Target::Unaudited => "unaudited".to_owned(),
        };
        let mut note = format!("{target} {} {:?}", operation.command, operation.status);
        let mut tell = |name: &str, text: Option<&str>| {
            note += &text.map_or(String::new(), |text| format!(" {name}={text}"));
        };
        tell("error", operation.error);
        tell("db", Some(operation.database.to_string()).filter(|it| it != "0").as_deref());
        tell("actor", Some(operation.actor).filter(|it| *it != DEFAULT_USER));
        tell("purpose", operation.purpose);
        tell("name", operation.name);
        tell("name_cut", operation.name_is_cut.then_some("true"));
        tell("stage", Some(format!("{:?}", operation.stage)).filter(|it| it != "Over").as_deref());
        match operation.values {
            Values::None => {}
            Values::Carried(_, from, to) => note += &format!(" values={from}..{to}"),
            Values::Told(reply, from, to) => {
                let texts = reply.nodes()[from..to].iter().filter(|node| !node.is_aggregate());
                let texts = texts.map(|node| text(reply.text(node))).collect::<Vec<_>>();
                note += &format!(" told={}", texts.join(","));
            }
        }
        self.operations.push(note);
        Ok(())
    }

    fn takes(&mut self) -> bool {
        self.room != Some(0)
    }

    fn now(&mut self) -> i64 {
        NOW
    }

    fn ticket(&self) -> Ticket {
        self.operations.len() as u64
    }

    fn missed(&mut self, count: u64) {
        self.missing += count;
    }
}

/// A configuration by its default, with these lines before it.
fn config(lines: &str) -> Config {
    Config::parse(format!("{lines}\n[log]\ndirectory = \"audit\"\n").as_bytes()).unwrap()
}

fn context(change: impl FnOnce(&mut Context)) -> Arc<Context> {
    let config::Config { policy, limits, mode, unfollowable, .. } = config("");
    let table = CommandTable::pinned();
    let mut context = Context {
        table,
        policy,
        limits,
        mode,
        unfollowable,
        record_values: None,
        learns: false,
        digest_key: [7; 32],
    };
    change(&mut context);
    Arc::new(context)
}

/// A session, and what came of it so far.
struct World {
    session: Session,
    notes: Notes,
    /// What has left to each side.
    server: Vec<u8>,
    client: Vec<u8>,
    /// How many entries are durable.
    durable: Ticket,
    /// Cuts what [`World::answers`] is given.
    answers: Replies,
}

impl World {
    fn new() -> World {
        World::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Context)) -> World {
        let session = Session::new(context(change), "192.0.2.1:1234", None);
        let (server, client) = (Vec::new(), Vec::new());
        World {
            session,
            notes: Notes::default(),
            server,
            client,
            durable: Ticket::MAX,
            answers: Replies::new(LITTLE),
        }
    }

    fn asks(&mut self, bytes: impl AsRef<[u8]>) -> &mut World {
        self.session.from_client(bytes.as_ref(), 0, &mut self.notes).unwrap();
        self.drain();
        self
    }

    fn says(&mut self, bytes: impl AsRef<[u8]>) -> &mut World {
        self.session.from_server(bytes.as_ref(), 5, &mut self.notes).unwrap();
        self.drain();
        self
    }

    /// Says one reply after the other, as a server does that is sent commands meanwhile.
    fn answers(&mut self, bytes: impl AsRef<[u8]>) -> &mut World {
        let mut rest = bytes.as_ref();
        while !rest.is_empty() {
            let (reply, behind) = rest.split_at(self.answers.next(rest).unwrap().consumed);
            self.says(reply);
            rest = behind;
        }
        self
    }

    fn says_so_often(&mut self, times: usize, bytes: &[u8]) {
        for _ in 0..times {
            self.says(bytes);
        }
    }

    fn drain(&mut self) {
        for (outlet, to) in
            [(&mut self.session.to_server, &mut self.server), (&mut self.session.to_client, &mut self.client)]
        {
            let ready = outlet.ready(self.durable).to_vec();
            outlet.leave(ready.len());
            to.extend(ready);
        }
    }

    /// What was recorded since it was asked last.
    fn noted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes.operations)
    }

    /// What the client got since it was asked last.
    fn got(&mut self) -> String {
        text(&std::mem::take(&mut self.client))
    }

    /// What the server got since it was asked last.
    fn sent(&mut self) -> String {
        text(&std::mem::take(&mut self.server))
    }
}

/// Bytes as text, without ends of lines.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", " ").trim_end().to_owned()
}

#[test]
fn an_entry_is_made_of_each_key_and_role_once_the_reply_has_come() {
    let mut world = World::new();
    world.asks("SET user:1 x\r\nGETDEL user:2\r\nGET n\r\nMGET a b\r\nPING\r\nLPUSH s x\r\n");
    assert_eq!(world.noted(), [""; 0]);
    world.says("+OK\r\n$1\r\nx\r\n$-1\r\n*2\r\n$-1\r\n$-1\r\n+PONG\r\n-WRONGTYPE secret\r\n");
    assert_eq!(
        world.noted(),
        [
            "write user:1 set Done",
            "read user:2 getdel Done",
            "delete user:2 getdel Done",
            "read n get Done",
            "read a mget Done",
            "read b mget Done",
            "write s lpush Failed error=WRONGTYPE",
        ]
    );
    assert_eq!(world.got(), "+OK $1 x $-1 *2 $-1 $-1 +PONG -WRONGTYPE secret");
}

#[test]
fn what_was_never_answered_is_recorded_as_unknown_when_the_connection_ends() {
    let mut world = World::new();
    world.asks("SET a x\r\nGET b\r\nMULTI\r\nSET c x\r\nEXEC\r\nMULTI\r\nSET d x\r\nSET e");
    world.says("+OK\r\n");
    world.session.end(9, &mut world.notes);
    // Whether the server took the last MULTI, and queued what is behind it, nobody knows.
    let unknown = ["write a set Done", "read b get Unknown", "write c set Unknown", "write d set Unknown"];
    assert_eq!(world.noted(), unknown);
}

/// Else a write that may have happened is of a key of another database, where it may be nobody's.
#[test]
fn what_was_never_answered_is_of_the_database_that_was_selected_before_it() {
    let mut world = World::new();
    world.asks("SELECT 3\r\nGET a\r\nSELECT 1\r\nGET b\r\nMULTI\r\nSELECT 2\r\nGET c\r\nEXEC\r\nGET d\r\nRESET\r\nGET e\r\n");
    world.says("+OK\r\n$-1\r\n");
    world.session.end(9, &mut world.notes);
    let expected = [
        "read a get Done db=3",
        "read b get Unknown db=1",
        "read c get Unknown db=2",
        "read d get Unknown db=2",
        "read e get Unknown",
    ];
    assert_eq!(world.noted(), expected);
    // In a transaction that the server has begun, too.
    let mut world = World::new();
    world.asks("MULTI\r\nSELECT 2\r\nGET c\r\nEXEC\r\nGET d\r\n").says("+OK\r\n+QUEUED\r\n");
    world.session.end(9, &mut world.notes);
    assert_eq!(world.noted(), ["read c get Unknown db=2", "read d get Unknown db=2"]);
}

#[test]
fn databases_users_and_names_are_those_of_the_replies_before() {
    let mut world = World::new();
    world.asks(
        "AUTH ada secret\r\nGET a\r\nAUTH eve guess\r\nSELECT 3\r\nSELECT 99\r\nGET b\r\nCOPY b c DB 5\r\n",
    );
    world.answers("+OK\r\n$-1\r\n-WRONGPASS no\r\n+OK\r\n-ERR out of range\r\n$-1\r\n:1\r\n");
    world.asks("HELLO 3 AUTH bob secret SETNAME web\r\nGET d\r\nRESET\r\nGET e\r\n");
    world.answers("%1\r\n+proto\r\n:3\r\n_\r\n+RESET\r\n$-1\r\n");
    assert_eq!(
        world.noted(),
        [
            "read a get Done actor=ada",
            "read b get Done db=3 actor=ada",
            "read b copy Done db=3 actor=ada",
            "create c copy Done db=5 actor=ada",
            "read d get Done db=3 actor=bob name=web",
            "read e get Done",
        ]
    );
}

#[test]
fn purposes_last_for_the_next_command_or_transaction_or_until_somebody_else_comes() {
    let mut world = World::new();
    world.asks("BULLA.PURPOSE support\r\nGET a\r\nGET b\r\n").says("$-1\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done purpose=support", "read b get Done"]);
    assert_eq!((world.got(), world.sent()), ("+OK $-1 $-1".into(), "GET a GET b".into()));
    world.asks("BULLA.PURPOSE audit\r\nMULTI\r\nGET a\r\nEXEC\r\nGET b\r\n");
    world.says("+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done purpose=audit", "read b get Done"]);
    world.asks("bulla.purpose session billing\r\nGET a\r\nBULLA.PURPOSE once\r\nGET b\r\nGET c\r\n");
    world.asks("AUTH eve x\r\nGET d\r\n").answers("$-1\r\n$-1\r\n$-1\r\n-WRONGPASS\r\n$-1\r\n");
    let noted =
        ["a get Done purpose=billing", "b get Done purpose=once", "c get Done purpose=billing", "d get Done"];
    assert_eq!(world.noted(), noted.map(|it| format!("read {it}")));
    world.got();
    let long = "x".repeat(1025);
    world.asks(format!("BULLA.PURPOSE {long}\r\nBULLA.PURPOSE\r\nBULLA.NONE x\r\n"));
    assert_eq!(world.got().matches("-BULLA").count(), 3);
    for words in ["fulfilling request 17", "session fulfilling request", "request 17"] {
        world.asks(format!("BULLA.PURPOSE {words}\r\n"));
        assert!(world.got().starts_with("-BULLA a purpose is one argument"), "{words}");
    }
    assert_eq!(world.sent().matches("BULLA").count(), 0);
}

#[test]
fn replies_that_name_keys_list_them() {
    let mut world = World::with(|context| context.limits.listed_keys = 2);
    world.asks("KEYS *\r\nSCAN 0\r\nRANDOMKEY\r\n");
    world.says("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\nd\r\n$1\r\ne\r\n");
    let listed = [
        "read a keys Done",
        "read b keys Done",
        "unlisted(1, digest) keys Done",
        "read d scan Done",
        "read e randomkey Done",
    ];
    assert_eq!(world.noted(), listed);
    // Whoever finds none has learned that.
    world
        .asks("KEYS user:ada*\r\nSCAN 0 MATCH user:ada*\r\nRANDOMKEY\r\nMULTI\r\nKEYS user:ada*\r\nEXEC\r\n");
    world.says("*0\r\n*2\r\n$1\r\n0\r\n*0\r\n$-1\r\n+OK\r\n+QUEUED\r\n*1\r\n*0\r\n");
    let none = ["keys", "scan", "randomkey", "keys"].map(|command| format!("unlisted(0) {command} Done"));
    assert_eq!(world.noted(), none);
}
