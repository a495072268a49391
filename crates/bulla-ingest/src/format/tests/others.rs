//! Apache's error log, syslog, logfmt, columns, Redis and PostgreSQL: on examples of their own documents, and of what programs write.

use super::{Format, json, refused};
use crate::format::{FormatOptions, Parsed, Parser};
use crate::framing::FramingKind;

/// Apache's documentation, "Error Log", of versions 2.4 and 2.2, and messages of its modules.
#[test]
fn apache_s_errors() {
    for (line, members) in [
        (
            "[Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 35708:tid 4328636416] [client 72.15.99.187] File does not exist: /usr/local/apache2/htdocs/favicon.ico",
            r#"{"time":"Fri Sep 09 10:42:29.902022 2011","module":"core","level":"error","pid":35708,"tid":4328636416,"client":"72.15.99.187","message":"File does not exist: /usr/local/apache2/htdocs/favicon.ico"}"#,
        ),
        (
            "[Wed Oct 11 14:32:52 2000] [error] [client 127.0.0.1] client denied by server configuration: /export/home/live/ap/htdocs/test",
            r#"{"time":"Wed Oct 11 14:32:52 2000","level":"error","client":"127.0.0.1","message":"client denied by server configuration: /export/home/live/ap/htdocs/test"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00.000001 2026] [authz_core:error] [pid 7] [client 192.0.2.7:51514] AH01630: client denied by server configuration: /srv/a, referer: https://example.com/, b",
            r#"{"time":"Thu Nov 26 10:00:00.000001 2026","module":"authz_core","level":"error","pid":7,"client":"192.0.2.7","port":51514,"code":"AH01630","message":"client denied by server configuration: /srv/a","referer":"https://example.com/, b"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00.000001 2026] [core:error] [pid 7:tid 8] (13)Permission denied: [client 2001:db8::7:51514] AH00035: access to /foo denied",
            r#"{"time":"Thu Nov 26 10:00:00.000001 2026","module":"core","level":"error","pid":7,"tid":8,"error_number":13,"error":"Permission denied","client":"2001:db8::7","port":51514,"code":"AH00035","message":"access to /foo denied"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00.000001 2026] [proxy:error] [pid 7:tid 8] (111)Connection refused: AH00957: HTTP: attempt to connect to 127.0.0.1:8080 (localhost) failed",
            r#"{"time":"Thu Nov 26 10:00:00.000001 2026","module":"proxy","level":"error","pid":7,"tid":8,"error_number":111,"error":"Connection refused","code":"AH00957","message":"HTTP: attempt to connect to 127.0.0.1:8080 (localhost) failed"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00.000001 2026] [ssl:debug] [pid 7:tid 8] ssl_engine_kernel.c(1875): [client ::1:4433] AH02034: [x] y",
            r#"{"time":"Thu Nov 26 10:00:00.000001 2026","module":"ssl","level":"debug","pid":7,"tid":8,"source":"ssl_engine_kernel.c(1875)","client":"::1","port":4433,"code":"AH02034","message":"[x] y"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00 2026] [:error] [pid 7] [client 192.0.2.7] [client 192.0.2.8] ModSecurity: [id \"1\"]",
            r#"{"time":"Thu Nov 26 10:00:00 2026","level":"error","pid":7,"client":"192.0.2.7","message":"[client 192.0.2.8] ModSecurity: [id \"1\"]"}"#,
        ),
        (
            "[Wed Oct 11 14:32:52 2000] [error] [client 2001:db8::7] x",
            r#"{"time":"Wed Oct 11 14:32:52 2000","level":"error","client":"2001:db8::7","message":"x"}"#,
        ),
        (
            "[Thu Nov 26 10:00:00 2026] [mpm_event:notice] [pid 1:tid 2] AH00489: Apache/2.4.62 (Debian) configured -- resuming normal operations",
            r#"{"time":"Thu Nov 26 10:00:00 2026","module":"mpm_event","level":"notice","pid":1,"tid":2,"code":"AH00489","message":"Apache/2.4.62 (Debian) configured -- resuming normal operations"}"#,
        ),
    ] {
        assert_eq!(json(Format::ApacheError, line), members);
    }
    for (line, reason) in [
        ("", "the line is empty"),
        ("secret", "the time is not in brackets, such as [Fri Sep 09 10:42:29.902022 2011]"),
        ("[secret] [error] x", "the time is not in brackets, such as [Fri Sep 09 10:42:29.902022 2011]"),
        ("[Wed Oct 11 14:32:52 2000] x", "the level is not in brackets behind the time"),
    ] {
        assert_eq!(refused(Format::ApacheError, line).to_string(), reason);
    }
}

/// RFC 5424, 6.5, and RFC 3164, 5.4.
#[test]
fn the_examples_of_the_rfcs_of_syslog() {
    for (line, members) in [
        (
            "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed for lonvick on /dev/pts/8",
            r#"{"priority":34,"facility":"auth","severity":"crit","version":1,"time":"2003-10-11T22:14:15.003Z","host":"mymachine.example.com","app":"su","msgid":"ID47","message":"'su root' failed for lonvick on /dev/pts/8"}"#,
        ),
        (
            "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
            r#"{"priority":165,"facility":"local4","severity":"notice","version":1,"time":"2003-08-24T05:14:15.000003-07:00","host":"192.0.2.1","app":"myproc","pid":"8710","message":"%% It's time to make the do-nuts."}"#,
        ),
        (
            "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut=\"3\" eventSource=\"Application\" eventID=\"1011\"] \u{feff}An application event log entry...",
            r#"{"priority":165,"facility":"local4","severity":"notice","version":1,"time":"2003-10-11T22:14:15.003Z","host":"mymachine.example.com","app":"evntslog","msgid":"ID47","structured":{"exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}},"message":"An application event log entry..."}"#,
        ),
        (
            "<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut=\"3\"][examplePriority@32473 class=\"high\"]",
            r#"{"priority":165,"facility":"local4","severity":"notice","version":1,"time":"2003-10-11T22:14:15.003Z","host":"mymachine.example.com","app":"evntslog","msgid":"ID47","structured":{"exampleSDID@32473":{"iut":"3"},"examplePriority@32473":{"class":"high"}}}"#,
        ),
        (
            r#"<13>1 - - - - - [a b="1\]\"\\\n" b="2"][c] "#,
            r#"{"priority":13,"facility":"user","severity":"notice","version":1,"structured":{"a":{"b":["1]\"\\\\n","2"]},"c":{}},"message":""}"#,
        ),
        (
            "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
            r#"{"priority":34,"facility":"auth","severity":"crit","time":"Oct 11 22:14:15","host":"mymachine","app":"su","message":"'su root' failed for lonvick on /dev/pts/8"}"#,
        ),
        (
            "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
            r#"{"priority":13,"facility":"user","severity":"notice","time":"Feb  5 17:32:18","host":"10.0.0.99","message":"Use the BFG!"}"#,
        ),
        ("Use the BFG!", ""),
        (
            "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!",
            r#"{"priority":0,"facility":"kern","severity":"emerg","message":"1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!"}"#,
        ),
    ] {
        match members {
            "" => drop(refused(Format::Syslog, line)),
            members => assert_eq!(json(Format::Syslog, line), members),
        }
    }
}

/// What rsyslog writes to files by its two templates, what `logger` sends to the local socket, and programs' own habits.
#[test]
fn syslog_as_daemons_write_it() {
    for (line, members) in [
        (
            "2026-11-26T10:00:00.123456+01:00 host sshd[712]: Accepted publickey for ada from 192.0.2.7 port 51514 ssh2: ED25519 SHA256:x",
            r#"{"time":"2026-11-26T10:00:00.123456+01:00","host":"host","app":"sshd","pid":"712","message":"Accepted publickey for ada from 192.0.2.7 port 51514 ssh2: ED25519 SHA256:x"}"#,
        ),
        (
            "Nov 26 10:00:00 host sudo:      ada : TTY=pts/0 ; PWD=/home/ada ; USER=root ; COMMAND=/usr/bin/id",
            r#"{"time":"Nov 26 10:00:00","host":"host","app":"sudo","message":"     ada : TTY=pts/0 ; PWD=/home/ada ; USER=root ; COMMAND=/usr/bin/id"}"#,
        ),
        (
            "<85>Nov 26 10:00:00 sudo[9]: x",
            r#"{"priority":85,"facility":"authpriv","severity":"notice","time":"Nov 26 10:00:00","app":"sudo","pid":"9","message":"x"}"#,
        ),
        (
            "Nov  6 10:00:00 host kernel: [    0.000000] Linux version 6.1",
            r#"{"time":"Nov  6 10:00:00","host":"host","app":"kernel","message":"[    0.000000] Linux version 6.1"}"#,
        ),
        (
            "Nov 26 10:00:00 host CRON[1]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)",
            r#"{"time":"Nov 26 10:00:00","host":"host","app":"CRON","pid":"1","message":"pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)"}"#,
        ),
        (
            "Nov 26 10:00:00 host postfix/smtpd[12]: connect from a[192.0.2.7]",
            r#"{"time":"Nov 26 10:00:00","host":"host","app":"postfix/smtpd","pid":"12","message":"connect from a[192.0.2.7]"}"#,
        ),
        (
            "Nov 26 10:00:00 host message repeated 2 times: [ x]",
            r#"{"time":"Nov 26 10:00:00","host":"host","message":"message repeated 2 times: [ x]"}"#,
        ),
        (
            "Nov 26 2026 10:00:00.5 fw : %ASA-6-106100: y",
            r#"{"time":"Nov 26 2026 10:00:00.5","host":"fw","message":": %ASA-6-106100: y"}"#,
        ),
        (
            "<30>Nov 26 10:00:00 2001:db8::7 app: z",
            r#"{"priority":30,"facility":"daemon","severity":"info","time":"Nov 26 10:00:00","host":"2001:db8::7","app":"app","message":"z"}"#,
        ),
        ("Nov 26 10:00:00 host", r#"{"time":"Nov 26 10:00:00","host":"host","message":""}"#),
        ("Nov 26 10:00:00", r#"{"time":"Nov 26 10:00:00","message":""}"#),
        ("<13>su: x", r#"{"priority":13,"facility":"user","severity":"notice","app":"su","message":"x"}"#),
    ] {
        assert_eq!(json(Format::Syslog, line), members);
    }
    for (line, reason) in [
        (
            "secret: x",
            "there is neither a priority nor a time such as `Nov 26 10:00:00` or 2026-11-26T10:00:00Z at the beginning",
        ),
        ("<192>x", "the priority is not a whole number from 0 to 191 in `<` and `>`"),
        ("<>x", "the priority is not a whole number from 0 to 191 in `<` and `>`"),
        ("<secret>x", "the priority is not a whole number from 0 to 191 in `<` and `>`"),
        ("<1>1 ", "the time is missing"),
        ("<1>1 yesterday h a p m -", "the time is neither - nor as RFC 3339 has it"),
        ("<1>1 - h a p", "the kind of message is missing"),
        ("<1>1 - h a p m x", "the structured data is neither - nor elements in brackets at column 16"),
        ("<1>1 - h a p m -x", "the structured data is neither - nor elements in brackets at column 16"),
        ("<1>1 - h a p m [] x", "an element of structured data has no name at column 17"),
        ("<1>1 - h a p m [a b] x", "a parameter of structured data has no name at column 19"),
        ("<1>1 - h a p m [a b=c] x", "a parameter of structured data has no quoted value at column 20"),
        ("<1>1 - h a p m [a b=\"c] x", "a value of structured data has no closing quote at column 22"),
        ("<1>1 - h a p m [a b=\"c\"x", "an element of structured data does not end at column 24"),
        ("<1>1 - h a p m [a][a] x", "an element of structured data is there twice at column 19"),
    ] {
        assert_eq!(refused(Format::Syslog, line).to_string(), reason, "{line}");
    }
}

/// Heroku's router, Go's `log/slog` and go-kit's `logfmt`.
#[test]
fn logfmt_pairs() {
    for (line, members) in [
        (
            r#"at=info method=GET path=/ host=mutelight.org fwd="124.133.52.161" dyno=web.2 connect=4ms service=8ms status=200 bytes=1653"#,
            r#"{"at":"info","method":"GET","path":"/","host":"mutelight.org","fwd":"124.133.52.161","dyno":"web.2","connect":"4ms","service":"8ms","status":"200","bytes":"1653"}"#,
        ),
        (
            r#"time=2023-04-11T19:20:30.123+02:00 level=INFO msg="hello \"a\"\tb" user.id=42 empty= none  a=1 a="2 3""#,
            r#"{"time":"2023-04-11T19:20:30.123+02:00","level":"INFO","msg":"hello \"a\"\tb","user.id":"42","empty":"","none":null,"a":["1","2 3"]}"#,
        ),
        (r#"a="\u00e9\ud83d\ude00\x41\U0001F600" b="\xff""#, r#"{"a":"é😀A😀","b":[255]}"#),
        (r#"a=b=c d={"e":1}"#, r#"{"a":"b=c","d":"{\"e\":1}"}"#),
    ] {
        assert_eq!(json(Format::Logfmt, line), members);
    }
    for (line, reason) in [
        ("just a secret", "there is no `name=value`"),
        ("=secret", "there is no name at column 1"),
        ("a=1 \"secret\"", "there is no name at column 5"),
        ("a=1 b=\"secret", "there is no closing quote behind the name that begins at column 5"),
        ("a=\"b\"secret", "there is no space behind the quoted value whose name begins at column 1"),
        (r#"a="\q""#, "there is an unknown escape in the value whose name begins at column 1"),
        (r#"a="\ud800""#, "there is an unknown escape in the value whose name begins at column 1"),
    ] {
        assert_eq!(refused(Format::Logfmt, line).to_string(), reason, "{line}");
    }
}

/// RFC 4180, 2.
#[test]
fn columns_have_the_header_s_names() {
    let mut parser = Parser::new(Format::Csv, &FormatOptions::default());
    assert!(parser.has_header());
    assert_eq!(parser.parse(b"\xef\xbb\xbfaaa,\"b \"\"b\",ccc\r"), Ok(Parsed::Header));
    let mut of = |record: &[u8]| match parser.parse(record) {
        Ok(Parsed::Fields(fields)) => {
            let mut json = Vec::new();
            fields.write_json(&mut json);
            String::from_utf8(json).unwrap()
        }
        other => format!("{other:?}"),
    };
    assert_eq!(of(b"zzz,yyy,xxx"), r#"{"aaa":"zzz","b \"b":"yyy","ccc":"xxx"}"#);
    assert_eq!(
        of(b"\"aaa\",\"b \r\nbb\",\"c,\"\"\xc3\xa9\"\r"),
        r#"{"aaa":"aaa","b \"b":"b \r\nbb","ccc":"c,\"é"}"#
    );
    assert_eq!(of(b",\"\",\xff"), r#"{"aaa":"","b \"b":"","ccc":[255]}"#);
    assert!(of(b"1,2").contains("there are 2 columns, and the header names 3"));
    assert!(of(b"1,2,3,").contains("there are 4 columns, and the header names 3"));
    assert!(of(b"1,2,\"3").contains("a column has no closing quote"));
    assert!(of(b"1,2\n,3").contains("there is more than one record: a line ends at column 4"));
    for (header, reason) in [
        ("a,,c", "the header has no name for column 2"),
        ("a,b,a", "the header has the name of column 3 twice"),
    ] {
        assert_eq!(refused(Format::Csv, header).to_string(), reason);
    }

    let columns = Some(vec!["a".to_owned(), "b".to_owned()]);
    let options = FormatOptions { delimiter: b'\t', columns, ..FormatOptions::default() };
    let mut parser = Parser::new(Format::Csv, &options);
    assert!(!parser.has_header() && matches!(parser.framing(), FramingKind::Csv { delimiter: b'\t' }));
    let Ok(Parsed::Fields(fields)) = parser.parse(b"1,5\t2") else { panic!() };
    assert_eq!(fields.get("a"), Some(&crate::Value::text("1,5")));
}

/// The documentation of MONITOR, and what Redis 7 says of scripts, sockets and what it keeps secret.
#[test]
fn redis_tells_what_it_does() {
    assert_eq!(json(Format::RedisMonitor, "OK"), "header");
    for (line, members) in [
        (
            r#"1339518083.107412 [0 127.0.0.1:60866] "keys" "*""#,
            r#"{"time":"1339518083.107412","database":0,"client":"127.0.0.1","port":60866,"command":"keys","arguments":["*"]}"#,
        ),
        (
            r#"+1339518099.363765 [12 [::1]:60866] "SET" "a \"b\"] \"" "\xff\x00\n\\""#,
            r#"{"time":"1339518099.363765","database":12,"client":"::1","port":60866,"command":"SET","arguments":["a \"b\"] \"",[255,0,10,92]]}"#,
        ),
        (
            r#"1.5 [0 lua] "get" "k""#,
            r#"{"time":"1.5","database":0,"client":"lua","command":"get","arguments":["k"]}"#,
        ),
        (
            r#"1.5 [0 unix:/tmp/r [1].sock:7] "AUTH" "(redacted)""#,
            r#"{"time":"1.5","database":0,"client":"unix:/tmp/r [1].sock:7","command":"AUTH","arguments":["(redacted)"]}"#,
        ),
    ] {
        assert_eq!(json(Format::RedisMonitor, line), members);
    }
    for (line, reason) in [
        ("secret", "the time is not in seconds with a fraction"),
        ("1 [0 lua] \"x\"", "the time is not in seconds with a fraction"),
        ("1.5 [0 lua]", "there is no [database client] behind the time"),
        ("1.5 [x lua] \"x\"", "there is no [database client] behind the time"),
        ("1.5 [0 lua] \"x\" secret", "there is no quote at column 17"),
        ("1.5 [0 lua] \"x\"\"y\"", "there is no space at column 16"),
        ("1.5 [0 lua] \"secret", "there is no closing quote for the one at column 13"),
        (r#"1.5 [0 lua] "\q""#, "there is an unknown escape in the argument at column 13"),
    ] {
        assert_eq!(refused(Format::RedisMonitor, line).to_string(), reason, "{line}");
    }
}

/// A `csvlog` of PostgreSQL 15, and of the columns that versions 12 and 13 have.
#[test]
fn postgresql_s_columns() {
    let to_12 = r#"2026-11-26 10:00:00.123 UTC,"ada","crm",712,"192.0.2.7:51514",6926d3b0.2c8,3,"SELECT",2026-11-26 09:59:59 UTC,3/17,0,ERROR,42P01,"relation ""t"" does not exist",,,,,,"select *
from ""t""",15,,"psql""#;
    let members = r#"{"log_time":"2026-11-26 10:00:00.123 UTC","user_name":"ada","database_name":"crm","process_id":712,"connection_from":"192.0.2.7:51514","client":"192.0.2.7","port":51514,"session_id":"6926d3b0.2c8","session_line_num":3,"command_tag":"SELECT","session_start_time":"2026-11-26 09:59:59 UTC","virtual_transaction_id":"3/17","transaction_id":0,"error_severity":"ERROR","sql_state_code":"42P01","message":"relation \"t\" does not exist","query":"select *\nfrom \"t\"","query_pos":15,"application_name":"psql""#;
    assert_eq!(json(Format::PostgresCsv, to_12), format!("{members}}}"));
    assert_eq!(
        json(Format::PostgresCsv, format!("{to_12},\"client backend\"")),
        format!("{members},\"backend_type\":\"client backend\"}}")
    );
    assert_eq!(
        json(Format::PostgresCsv, format!("{to_12},\"client backend\",,-7513")),
        format!("{members},\"backend_type\":\"client backend\",\"query_id\":-7513}}")
    );
    let local = to_12.replace("192.0.2.7:51514", "[local]").replace("\"psql\"", "\"\"");
    let members = json(Format::PostgresCsv, local);
    assert!(members.contains(r#""connection_from":"[local]","client":"[local]","session_id""#), "{members}");
    assert!(members.ends_with(r#""application_name":""}"#), "{members}");
    let reason = refused(Format::PostgresCsv, "a,b").to_string();
    assert_eq!(reason, "there are 2 columns, and csvlog has 23, 24 or 26");
}

/// pgaudit's documentation, "Examples", within a `csvlog`.
#[test]
fn pgaudit_s_messages_are_taken_apart() {
    let line = |message: &str| {
        let message = message.replace('"', "\"\"");
        format!(
            r#"2026-11-26 10:00:00.123 UTC,,,7,,6.2,3,,2026-11-26 09:59:59 UTC,,0,LOG,00000,"{message}",,,,,,,,,"","x",,0"#
        )
    };
    for (message, audit) in [
        (
            "AUDIT: SESSION,1,1,READ,SELECT,TABLE,public.t,\"select a, \"\"b\"\" from t\",<none>",
            r#"{"type":"SESSION","statement_id":1,"substatement_id":1,"class":"READ","command":"SELECT","object_type":"TABLE","object_name":"public.t","statement":"select a, \"b\" from t"}"#,
        ),
        (
            "AUDIT: SESSION,33,1,FUNCTION,DO,,,\"DO $$\nBEGIN\n    EXECUTE 'CREATE TABLE import' || 'ant_table (id INT)';\nEND $$;\",",
            r#"{"type":"SESSION","statement_id":33,"substatement_id":1,"class":"FUNCTION","command":"DO","statement":"DO $$\nBEGIN\n    EXECUTE 'CREATE TABLE import' || 'ant_table (id INT)';\nEND $$;"}"#,
        ),
        (
            "AUDIT: OBJECT,2,1,READ,SELECT,TABLE,public.account,select password from account,<not logged>,12",
            r#"{"type":"OBJECT","statement_id":2,"substatement_id":1,"class":"READ","command":"SELECT","object_type":"TABLE","object_name":"public.account","statement":"select password from account","parameter":"<not logged>","rows":12}"#,
        ),
    ] {
        let members = json(Format::PostgresCsv, line(message));
        let begins = members.find("\"audit\":").unwrap();
        assert!(
            members[begins..].starts_with(&format!("\"audit\":{audit},\"application_name\":\"\"")),
            "{members}"
        );
        assert!(members.contains("\"message\":\"AUDIT: "));
    }
    for message in ["AUDIT: SESSION,1", "AUDIT: \"", "statement: AUDIT: SESSION,1,1,READ,SELECT,,,x,y"] {
        assert!(!json(Format::PostgresCsv, line(message)).contains("\"audit\""), "{message}");
    }
}

#[test]
fn a_raw_record_is_one_member() {
    let line = "2025-06-24 14:36:25 upgrade libsystemd0:amd64 252.36-1~deb12u1 252.38-1~deb12u1";
    assert_eq!(json(Format::Raw, line), format!("{{\"record\":\"{line}\"}}"));
    assert_eq!(json(Format::Raw, b"\xff\n a"), r#"{"record":[255,10,32,97]}"#);
    assert_eq!(refused(Format::Raw, " ").to_string(), "the line is empty");
}

/// What this machine's package manager wrote, where there is one: every line is a record.
#[test]
fn a_log_that_nobody_made_for_this_test_is_read() {
    let Ok(log) = std::fs::read("/var/log/dpkg.log") else {
        println!("not tested: no /var/log/dpkg.log");
        return;
    };
    for line in log.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        json(Format::Raw, line);
    }
}
