//! What is told of captures: one that is written here, and one that a server prints.

use super::*;
use crate::resp::write_command;
use crate::world::Server;
use proptest::prelude::*;

const LOG: &str = "[log]\ndirectory = \"/audit\"\n";
const RULES: &str = r#"
[[rules]]
key = "user:{subject}:*"
[[rules]]
key = "session:{subject}"
databases = [1]
[[rules]]
key = "key*"
hash_field = "USR"
"#;

/// Rows, lines that say nothing, and how many there were of what.
fn run(config: &str, capture: &[u8]) -> (Vec<Row>, Vec<MonitorError>, Tally) {
    let config = Config::parse(config.as_bytes()).unwrap();
    let mut input = capture;
    let mut dry_run = DryRun::new(&config, &mut input);
    let (mut rows, mut unreadable) = (Vec::new(), Vec::new());
    while let Some(row) = dry_run.next_row().unwrap() {
        match row {
            Ok(row) => rows.push(row),
            Err(error) => unreadable.push(error),
        }
    }
    (rows, unreadable, dry_run.tally())
}

#[test]
fn a_capture_says_what_would_be_recorded() {
    let capture = br#"OK
1700000000.123456 [0 10.0.0.1:1234] "SET" "user:ada:mail" "x"
1700000001.000000 [0 10.0.0.1:1234] "getdel" "user:ada:mail"
1700000002.000000 [0 10.0.0.1:1234] "HSET" "key17" "USR" "grace"
1700000003.000000 [0 10.0.0.1:1234] "hget" "key17" "FIELD0"
nothing
1700000004.000000 [1 unix:/run/a.sock] "get" "session:ada"
1700000005.000000 [0 10.0.0.1:1234] "get" "session:ada"
1700000006.000000 [0 10.0.0.1:1234] "ping"
1700000007.000000 [0 10.0.0.1:1234] "eval" "return redis.call('get','user:eve:mail')" "1" "user:ada:mail"
1700000007.000001 [0 lua] "get" "user:eve:mail"
1700000008.000000 [0 10.0.0.1:1234] "copy" "key17" "key18" "DB" "1"
1700000009.000000 [0 10.0.0.1:1234] "rename" "key17" "\x1b[2J\xff"
1700000010.000000 [1 10.0.0.1:1234] "hget" "key18" "FIELD0"
1700000011.000000 [0 10.0.0.1:1234] "hget" "key17" "FIELD0"
1700000012.000000 [0 10.0.0.1:1234] "scan" "0"
1700000013.000000 [0 10.0.0.1:1234] "flushdb"
1700000014.000000 [0 10.0.0.1:1234] "Mystery.Command" "user:ada:mail"
"#;
    let (rows, unreadable, tally) = run(&format!("{LOG}{RULES}"), capture);
    assert_eq!(
        table(&rows),
        "LINE  DB  COMMAND          OPERATION   FATE                       SUBJECT     LOCATION
   2   0  set              write       recorded                   ada         user:ada:mail
   3   0  getdel           read        recorded                   ada         user:ada:mail
   3   0  getdel           delete      recorded                   ada         user:ada:mail
   4   0  hset             write       recorded                   grace       key17
   5   0  hget             read        recorded                   grace       key17
   7   1  get              read        recorded                   ada         session:ada
   8   0  get              read        recorded                   (unmapped)  session:ada
  10   0  eval             execute     refused by policy.scripts  -           -
  11   0  get              read        unseen                     eve         user:eve:mail
  12   0  copy             read        recorded                   grace       key17
  12   1  copy             create      recorded                   grace       key18
  13   0  rename           read        recorded                   grace       key17
  13   0  rename           delete      recorded                   grace       key17
  13   0  rename           write       recorded                   (unmapped)  \\u{1b}[2J%FF
  14   1  hget             read        recorded                   grace       key18
  15   0  hget             read        recorded                   (unmapped)  key17
  16   0  scan             list        recorded                   -           -
  17   0  flushdb          administer  recorded                   -           -
  18   0  mystery.command  access      recorded                   -           -
"
    );
    assert_eq!(unreadable.len(), 1);
    assert_eq!(unreadable[0].line, 6);
    let expected = Tally {
        commands: 15,
        without_data: 1,
        refused: 1,
        unseen: 1,
        entries: 17,
        unmapped: 3,
        unreadable: 1,
    };
    assert_eq!(tally, expected);
}

#[test]
fn the_configuration_says_what_is_refused_and_whose_the_rest_is() {
    let capture = br#"
1.0 [0 1.1.1.1:1] "eval" "return 1" "1" "user:ada:mail"
1.0 [0 1.1.1.1:1] "sort" "ids" "BY" "nosort" "GET" "user:*:mail"
1.0 [0 1.1.1.1:1] "get" "user:ada:mail"
1.0 [0 1.1.1.1:1] "migrate" "h" "1" "" "0" "1" "KEYS" "user:ada:mail"
1.0 [0 1.1.1.1:1] "mystery"
1.0 [0 1.1.1.1:1] "flushall"
"#;
    let told = |policy: &str| {
        let config = format!("default_subject = \"somebody\"\n{LOG}{RULES}{policy}");
        let (rows, _, tally) = run(&config, capture);
        let told = rows.iter().map(|row| match (&row.refused_by, &row.subject) {
            (Some(by), _) => format!("{} {by}", row.line),
            (None, Some(subject)) => format!("{} {} {subject}", row.line, row.operation),
            (None, None) => format!("{} {}", row.line, row.operation),
        });
        (told.collect::<Vec<_>>().join(", "), tally.refused)
    };
    let expected = "2 policy.scripts, 3 policy.patterns, 4 read ada, 5 policy.whole, 6 access, 7 administer";
    assert_eq!(told(""), (expected.to_owned(), 3));
    let record = "[policy]\nscripts = \"record\"\npatterns = \"record\"\nwhole = \"record\"\n";
    let (rows, refused) = told(record);
    let expected = "2 read ada, 2 write ada, 2 execute, 3 read somebody, 3 access, 4 read ada, 5 read ada, \
                    5 delete ada, 5 access, 6 access, 7 administer";
    assert_eq!(rows, expected);
    assert_eq!(refused, 0);
    let refuse = "[policy]\nadministrative = \"refuse\"\nundescribed = \"refuse\"\n";
    assert!(told(refuse).0.ends_with("6 policy.undescribed, 7 policy.administrative"));
}

#[test]
fn a_row_is_one_json_object() {
    let capture = br#"1700000000.5 [2 unix:/a b] "get" "user:ada:mail"
1700000000.5 [0 [::1]:1] "flushall"
"#;
    let (rows, ..) = run(&format!("{LOG}{RULES}"), capture);
    let lines: Vec<_> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
    assert_eq!(
        lines,
        [
            r#"{"line":1,"time":"2023-11-14T22:13:20.5Z","client":"unix:/a b","database":2,"command":"get","operation":"read","location":"user:ada:mail","subject":"ada","mapping":"rule","fate":"recorded"}"#,
            r#"{"line":2,"time":"2023-11-14T22:13:20.5Z","client":"[::1]:1","database":0,"command":"flushall","operation":"administer","fate":"recorded"}"#,
        ]
    );
    let refused = Row { fate: Fate::Refused, refused_by: Some("policy.whole".to_owned()), ..rows[1].clone() };
    let refused = serde_json::to_string(&refused).unwrap();
    assert!(refused.ends_with(r#","fate":"refused","refused_by":"policy.whole"}"#), "{refused}");
}

#[test]
fn what_a_server_prints_is_what_clients_sent_it() {
    let server = Server::start();
    let (mut monitor, mut client) = (server.connect(), server.connect());
    monitor.ask(b"MONITOR\r\n");
    for words in [
        &["SELECT", "1"][..],
        &["SET", "session:ada", "x"],
        &["MULTI"],
        &["HSET", "key17", "USR", "gr\u{e4}ce"],
        &["HGET", "key17", "F"],
        &["EXEC"],
        &["EVAL", "return redis.call('get', 'user:eve:mail')", "0"],
        &["GET", "the end"],
    ] {
        let mut bytes = Vec::new();
        write_command(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), &mut bytes);
        client.ask(&bytes);
    }
    let mut capture = Vec::new();
    let mut lines = io::BufReader::new(&mut monitor.stream);
    while !capture.ends_with(b"\"the end\"\r\n") {
        assert!(lines.read_until(b'\n', &mut capture).unwrap() > 0);
    }
    let (rows, unreadable, tally) = run(&format!("{LOG}{RULES}[policy]\nscripts = \"record\"\n"), &capture);
    assert_eq!(unreadable, []);
    for row in &rows {
        let client = if row.fate == Fate::Unseen { "lua" } else { "unix:" };
        assert!(row.database == 1 && row.client.starts_with(client), "{row:?}");
    }
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.operation.as_str(), row.location.as_deref(), row.subject.as_deref(), row.fate))
        .collect();
    let recorded = |operation, location, subject| (operation, Some(location), subject, Fate::Recorded);
    assert_eq!(
        told,
        [
            recorded("write", "session:ada", Some("ada")),
            recorded("write", "key17", Some("gr\u{e4}ce")),
            recorded("read", "key17", Some("gr\u{e4}ce")),
            ("execute", None, None, Fate::Recorded),
            ("read", Some("user:eve:mail"), Some("eve"), Fate::Unseen),
            recorded("read", "the end", None),
        ]
    );
    // SELECT, MULTI and EXEC.
    assert_eq!((tally.commands, tally.without_data, tally.unseen), (8, 3, 1));
}

proptest! {
    #[test]
    fn no_capture_breaks_it(words: Vec<Vec<u8>>, name in "[a-z]{2,9}", script: bool, rest: Vec<u8>) {
        let client = if script { "lua" } else { "1.1.1.1:1" };
        let mut capture = format!("1.5 [0 {client}] \"{name}\"").into_bytes();
        for word in words {
            capture.extend(b" \"");
            capture.extend(word.iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()));
            capture.extend(b"\"");
        }
        capture.push(b'\n');
        capture.extend(rest);
        let (rows, _, tally) = run(&format!("{LOG}{RULES}"), &capture);
        let recorded = rows.iter().filter(|row| row.fate == Fate::Recorded).count() as u64;
        prop_assert_eq!(recorded, tally.entries);
        prop_assert!(tally.commands + tally.unseen >= 1);
        prop_assert_eq!(table(&rows).lines().count(), rows.len() + 1);
    }
}

#[test]
fn a_time_that_was_over_when_it_was_given_is_a_deletion() {
    let capture = br#"1700000000.5 [0 10.0.0.1:1234] "HSET" "key1" "USR" "ada"
1700000001.5 [0 10.0.0.1:1234] "expireat" "key1" "1700000100"
1700000200.5 [0 10.0.0.1:1234] "expireat" "key1" "1700000100"
1700000201.5 [0 10.0.0.1:1234] "hset" "key1" "NAME" "x"
"#;
    let (rows, ..) = run(&format!("{LOG}{RULES}"), capture);
    let told = rows.iter().map(|row| (row.operation.as_str(), row.subject.as_deref()));
    let ada = Some("ada");
    let expected = [("write", ada), ("update", ada), ("delete", ada), ("write", None)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}
