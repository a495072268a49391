//! What a configuration says, and what is said of one that is none.

use super::read::KEYS;
use super::*;
use crate::subject::{Key, Lesson, Match};
use proptest::prelude::*;
use std::net::IpAddr;

const LEAST: &str = "[log]\ndirectory = \"/audit\"\n";

fn parse(text: &str) -> Config {
    Config::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What is said of a file that begins with the log.
fn refused(text: &str) -> String {
    Config::parse(format!("{LEAST}{text}").as_bytes()).unwrap_err().to_string()
}

/// What is said of a file that ends with the log.
fn refused_before(text: &str) -> String {
    Config::parse(format!("{text}\n{LEAST}").as_bytes()).unwrap_err().to_string()
}

/// The example with what it has in comments as a part of the file.
fn everything() -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') => {
            format!("{rest}\n")
        }
        _ => format!("{line}\n"),
    };
    EXAMPLE.lines().map(line).collect()
}

#[test]
fn the_example_says_what_the_proxy_does_where_nothing_is_said() {
    let example = parse(EXAMPLE);
    let least = parse(&LEAST.replace("/audit", "/var/lib/bulla/audit"));
    assert_eq!(format!("{example:#?}"), format!("{least:#?}"));
}

#[test]
fn the_example_has_every_key() {
    let all = everything();
    for (table, keys) in KEYS {
        for key in keys {
            let (header, rules) = (format!("[{table}.{key}]"), format!("[[{key}]]"));
            let names = [format!("\n{key} = "), format!("\n[{key}]\n"), header, rules];
            assert!(names.iter().any(|name| all.contains(name)), "{table} {key}");
        }
    }
    // There is one server.
    let config = parse(&all.replace("unix = \"/run/redis/redis.sock\"\n", ""));
    assert_eq!(config.workers, Some(2));
    assert_eq!(config.default_subject.as_deref(), Some("unknown"));
    assert_eq!(config.log.keys, Some("/var/lib/bulla/audit.keys".into()));
    assert_eq!(config.listen.unix, Some("/run/bulla/proxy.sock".into()));
    assert_eq!(config.listen.unix_mode, 0o660);
    assert_eq!(config.listen.tls.unwrap().client_ca, Some("/etc/bulla/clients.pem".into()));
    let tls = config.upstream.tls.unwrap();
    assert_eq!(tls.server_name, "redis.example.com");
    assert_eq!(tls.certificate, Some(("/etc/bulla/proxy.pem".into(), "/etc/bulla/proxy.key".into())));
    let [user, session, key, cart] = config.rules.try_into().unwrap();
    let subject = |rule: &Rule, key: &str| rule.template.find(Key { bytes: key.as_bytes(), whole: true });
    assert_eq!(subject(&user, "user:42:email"), Match::Yes(Some(5..7)));
    assert_eq!(subject(&session, "session/a:b/42"), Match::Yes(Some(12..14)));
    assert_eq!(session.databases, [0, 3]);
    assert_eq!(
        (subject(&key, "key17"), key.lesson),
        (Match::Yes(None), Some(Lesson::HashField("USR".to_owned())))
    );
    assert_eq!(subject(&cart, "cart:{7}:items"), Match::Yes(None));
}

#[test]
fn what_is_said_is_what_counts() {
    let config = parse(
        r#"
        mode = "before-send"
        unrecordable = "pass"
        unfollowable = "relay"
        record_values = "4 KiB"
        claims = ["billing", "web"]
        metrics = "[::1]:9121"
        log = { directory = "audit" }
        listen.unix = "proxy.sock"
        listen.unix_mode = "0666"
        listen.proxy_protocol = []
        upstream.unix = "redis.sock"
        [policy]
        scripts = "record"
        administrative = "refuse"
        [limits]
        clients = 0x10
        kept = "1 MiB"
        idle_timeout = "5 min"
        connect_timeout = "250 ms"
        "#,
    );
    assert_eq!(config.mode, Mode::BeforeSend);
    assert_eq!((config.unrecordable, config.unfollowable), (Unrecordable::Pass, Unfollowable::Relay));
    assert_eq!(config.record_values, Some(4096));
    assert_eq!(config.claims, ["billing", "web"]);
    assert_eq!(config.metrics, Some("[::1]:9121".parse().unwrap()));
    assert_eq!(config.log, LogPlace { directory: "audit".into(), keys: None });
    assert_eq!(config.listen.address, None, "on a Unix socket alone");
    assert_eq!((config.listen.unix_mode, config.listen.proxy_protocol), (0o666, Vec::new()));
    assert_eq!(config.upstream.place, UpstreamPlace::Unix("redis.sock".into()));
    let policy = config.policy;
    let classes = [
        (Unknowable::Script, Treatment::Record),
        (Unknowable::Pattern, Treatment::Refuse),
        (Unknowable::Whole, Treatment::Refuse),
        (Unknowable::Undescribed, Treatment::Record),
        (Unknowable::TooMany, Treatment::Refuse),
    ];
    assert!(classes.iter().all(|(class, treatment)| policy.of(*class) == *treatment));
    assert_eq!(policy.administrative, Treatment::Refuse);
    assert_eq!((config.limits.clients, config.limits.kept), (Some(16), 1 << 20));
    assert_eq!(config.limits.idle_timeout, Some(Duration::from_secs(300)));
    assert_eq!(config.limits.connect_timeout, Duration::from_millis(250));
    let tls = parse(&format!("{LEAST}[upstream]\naddress = \"[fd00::1]:6379\"\ntls = {{ ca = \"ca.pem\" }}"))
        .upstream;
    assert_eq!(tls.place, UpstreamPlace::Tcp("fd00::1".to_owned(), 6379));
    assert_eq!(tls.tls.unwrap().server_name, "fd00::1", "the name is the server's");
}

#[test]
fn a_key_that_is_not_known_is_refused_with_the_one_that_was_meant() {
    for (text, expected) in [
        ("mod = \"async\"", "line 1, column 1: there is no key `mod`; did you mean `mode`?"),
        ("Mode = \"async\"", "line 1, column 1: there is no key `Mode`; did you mean `mode`?"),
        (
            "\n [listen]\n adress = 1",
            "line 3, column 2: there is no key `adress` in `[listen]`; did you mean `address`?",
        ),
        (
            "listen.tls.cert = 1",
            "line 1, column 12: there is no key `cert` in `[listen.tls]`; there are \"certificate\", \"key\", \"client_ca\"",
        ),
        (
            "[upstream]\npassword = \"s3cret\"",
            "line 2, column 1: there is no key `password` in `[upstream]`; there are \"address\", \"unix\", \"user\", \"password_file\", \"tls\"",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\n[[rules]]\nkey = \"{subject}\"\ndatabase = 1",
            "line 5, column 1: there is no key `database` in `[rules]`; did you mean `databases`?",
        ),
        (
            "[limits]\nidle-timeout = \"1 s\"",
            "line 2, column 1: there is no key `idle-timeout` in `[limits]`; did you mean `idle_timeout`?",
        ),
        (
            "[policy]\nscript = \"record\"",
            "line 2, column 1: there is no key `script` in `[policy]`; did you mean `scripts`?",
        ),
    ] {
        assert_eq!(refused_before(text), expected, "{text}");
    }
    let error = Config::parse(b"[logs]\ndirectory = \"/audit\"").unwrap_err().to_string();
    assert_eq!(error, "line 1, column 2: there is no key `logs`; did you mean `log`?");
}

#[test]
fn a_value_that_is_not_allowed_is_refused_with_those_that_are() {
    let cases = [
        (
            "mode = \"asink\"",
            "line 1, column 8: `mode` is \"asink\"; it may be one of \"async\", \"before-reply\", \"before-send\"",
        ),
        ("mode = true", "line 1, column 8: `mode` is a boolean; it has to be a string"),
        ("mode = \"\"", "line 1, column 8: `mode` is empty"),
        (
            "unrecordable = \"drop\"",
            "line 1, column 16: `unrecordable` is \"drop\"; it may be one of \"refuse\", \"pass\"",
        ),
        (
            "unfollowable = \"ä\"",
            "line 1, column 16: `unfollowable` is \"ä\"; it may be one of \"close\", \"relay\"",
        ),
        ("workers = 0", "line 1, column 11: `workers` is 0; it may be a whole number from 1 to 256"),
        ("workers = -1", "line 1, column 11: `workers` is -1; it may be a whole number from 1 to 256"),
        (
            "workers = 99999999999999999999",
            "line 1, column 11: `workers` is 99999999999999999999; it may be a whole number from 1 to 256",
        ),
        (
            "workers = 2.5",
            "line 1, column 11: `workers` is a number that is not whole; it has to be a whole number from 1 to 256",
        ),
        (
            "workers = \"2\"",
            "line 1, column 11: `workers` is a string; it has to be a whole number from 1 to 256",
        ),
        ("claims = \"billing\"", "line 1, column 10: `claims` is a string; it has to be an array"),
        ("claims = [\"billing\", 7]", "line 1, column 22: `claims` is a whole number; it has to be a string"),
        (
            "metrics = \"localhost:9121\"",
            "line 1, column 11: `metrics` is \"localhost:9121\"; it may be an IP address and a port, such as \"127.0.0.1:6380\" or \"[::1]:6380\"",
        ),
        ("log = 7", "line 1, column 7: `log` is a whole number; it has to be a table"),
    ];
    for (text, expected) in &cases[..13] {
        assert_eq!(refused_before(text), *expected, "{text}");
    }
    let (text, expected) = cases[13];
    assert_eq!(Config::parse(text.as_bytes()).unwrap_err().to_string(), expected);
    let long = format!("default_subject = \"{}\"", "x".repeat(65537));
    assert_eq!(
        refused_before(&long),
        "line 1, column 19: `default_subject` has 65537 bytes; 65536 is the most"
    );
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (text, expected) in [
        (
            "[listen]\naddress = \"6380\"",
            "line 4, column 11: `listen.address` is \"6380\"; it may be an IP address and a port, such as \"127.0.0.1:6380\" or \"[::1]:6380\"",
        ),
        (
            "[listen]\nunix = \"s\"\n[listen.tls]\ncertificate = \"c\"\nkey = \"k\"",
            "line 5, column 1: `listen.tls` is for TCP, and `listen.address` is missing",
        ),
        (
            "[listen]\nunix = \"s\"\nproxy_protocol = [\"::1\"]",
            "line 5, column 18: `listen.proxy_protocol` is for TCP, and `listen.address` is missing",
        ),
        (
            "[listen]\nproxy_protocol = [\"10.0.0.0/8\", \"10.0.0.1/8\"]",
            "line 4, column 33: `listen.proxy_protocol`: \"10.0.0.1/8\" has bits behind its first 8: \"10.0.0.0/8\" is that network",
        ),
        (
            "[listen]\nunix_mode = \"0660\"",
            "line 4, column 13: `listen.unix_mode` is for `listen.unix`, which is missing",
        ),
        (
            "[listen]\nunix = \"s\"\nunix_mode = \"1777\"",
            "line 5, column 13: `listen.unix_mode` is \"1777\"; it may be permissions in octal, such as \"0660\"",
        ),
        (
            "[listen.tls]\nkey = \"k\"",
            "line 3, column 1: `certificate` is missing in `[listen.tls]`: a file in PEM",
        ),
        ("[listen]\ntls = true", "line 4, column 7: `listen.tls` is a boolean; it has to be a table"),
        (
            "[upstream]\naddress = \"redis\"",
            "line 4, column 11: `upstream.address` is \"redis\"; it may be a name or an address and a port, such as \"redis.example.com:6379\" or \"[::1]:6379\"",
        ),
        (
            "[upstream]\naddress = \"redis:6379\"\nunix = \"s\"",
            "line 5, column 8: there is one server: `upstream.address` and `upstream.unix` cannot both be given",
        ),
        ("[upstream]\nuser = \"bulla\"", "line 4, column 8: `upstream.user` needs `upstream.password_file`"),
        (
            "[upstream]\nunix = \"s\"\n[upstream.tls]\nca = \"c\"",
            "line 5, column 1: `upstream.tls` is for TCP, and the server is on a Unix socket",
        ),
        (
            "[upstream.tls]\nserver_name = \"x\"",
            "line 3, column 1: `ca` is missing in `[upstream.tls]`: a file in PEM",
        ),
        (
            "[upstream.tls]\nca = \"c\"\ncertificate = \"x\"",
            "line 5, column 15: `upstream.tls.certificate` needs `upstream.tls.key`",
        ),
        (
            "[upstream.tls]\nca = \"c\"\nkey = \"x\"",
            "line 5, column 7: `upstream.tls.key` needs `upstream.tls.certificate`",
        ),
        (
            "[policy]\nscripts = \"deny\"",
            "line 4, column 11: `policy.scripts` is \"deny\"; it may be one of \"refuse\", \"record\"",
        ),
        (
            "[limits]\npipeline = 0",
            "line 4, column 12: `limits.pipeline` is 0; it may be a whole number from 1 to 1000000",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn a_size_or_duration_that_is_none_is_refused_with_its_units() {
    const SIZE: &str = ": a whole number and its unit, B, KiB, MiB, GiB or TiB";
    const DURATION: &str = ": a whole number and its unit, ns, us, ms, s, m (or min), h or d";
    for (key, wanted) in [
        ("record_values", format!("\"off\" or a size from \"1 KiB\" to \"1 MiB\"{SIZE}")),
        ("limits.kept", format!("a size from \"128 KiB\" to \"16 MiB\"{SIZE}")),
        ("limits.learned", format!("a size from \"1 MiB\" to \"65536 MiB\"{SIZE}")),
        ("limits.connect_timeout", format!("a duration from \"10 ms\" to \"3600 s\"{DURATION}")),
        ("limits.handshake_timeout", format!("a duration from \"10 ms\" to \"3600 s\"{DURATION}")),
        ("limits.idle_timeout", format!("\"off\" or a duration from \"1 s\" to \"86400 s\"{DURATION}")),
        ("limits.drain_timeout", format!("a duration from \"10 ms\" to \"3600 s\"{DURATION}")),
    ] {
        let column = key.len() + 4;
        for (value, said) in [
            ("\"64\"", format!("is \"64\", without a unit; it may be {wanted}")),
            ("\"64 hours\"", format!("is \"64 hours\"; it may be {wanted}")),
            ("\"999999 TiB\"", format!("is \"999999 TiB\"; it may be {wanted}")),
            ("\"1 ns\"", format!("is \"1 ns\"; it may be {wanted}")),
            ("\"\"", format!("is \"\"; it may be {wanted}")),
            ("64", format!("is a whole number; it has to be a string, {wanted}")),
            ("true", format!("is a boolean; it has to be a string, {wanted}")),
        ] {
            let expected = format!("line 1, column {column}: `{key}` {said}");
            assert_eq!(refused_before(&format!("{key} = {value}")), expected);
        }
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_said_of_its_place() {
    for (text, expected) in [
        (
            "[rules]\nkey = \"{subject}\"",
            "line 3, column 1: `rules` are several: the header of each is `[[rules]]`",
        ),
        (
            "[[rules]]\nseparator = \":\"",
            "line 3, column 1: `key` is missing in `[rules]`: which keys the rule is about, such as \"user:{subject}:*\"",
        ),
        (
            "[[rules]]\nkey = \"user:{id}\"",
            "line 4, column 13: `rules.key`: there is no `{id}`: `{subject}` is whose data it is, and `{}` any other part of a key; one that is in keys is written `\\{`",
        ),
        (
            "[[rules]]\nkey = \"ä:{}{subject}\"",
            "line 4, column 12: `rules.key`: nothing says where this begins: put some text before it",
        ),
        (
            "[[rules]]\nkey = \"\\u0061*b*\"",
            "line 4, column 7: `rules.key`: there is one `*` already; `{}` stands for a part of a key, too",
        ),
        (
            "[[rules]]\nkey = \"user:*\"",
            "line 4, column 7: nothing says whose data these keys are: put `{subject}` into `key`, or name a `hash_field` or a `json_path`",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\nhash_field = \"USR\"",
            "line 4, column 7: `{subject}` in `key` says whose data it is already: take it out, or `hash_field` and `json_path`",
        ),
        (
            "[[rules]]\nkey = \"*\"\nhash_field = \"USR\"\njson_path = \"$.id\"",
            "line 6, column 13: a rule has `hash_field` or `json_path`, not both: two rules can be about the same keys",
        ),
        (
            "[[rules]]\nkey = \"*\"\njson_path = \"user.id\"",
            "line 5, column 13: `rules.json_path`: a path is `$`, and a dot and a name for each member, such as `$.user.id`",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\nseparator = \"::\"",
            "line 5, column 13: `rules.separator` is \"::\"; it may be one ASCII character other than `{`, `}`, `*` and `\\`",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\ndatabases = []",
            "line 5, column 13: `rules.databases` is empty: leave it out for all databases",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\ndatabases = [0, -1]",
            "line 5, column 17: `rules.databases` is -1; it may be a whole number from 0 to 2147483647",
        ),
        (
            "[[rules]]\nkey = \"{subject}\"\ndatabases = 0",
            "line 5, column 13: `rules.databases` is a whole number; it has to be an array",
        ),
    ] {
        assert_eq!(refused(text), expected, "{text}");
    }
    let many = "[[rules]]\nkey = \"{subject}\"\n".repeat(1001);
    assert_eq!(refused(&many), "line 2003, column 1: there are 1001 rules; 1000 is the most");
}

#[test]
fn a_file_that_is_none_is_refused_where_it_ends_to_be_one() {
    for (bytes, expected) in [
        (&b""[..], "line 1, column 1: `log` is missing: `[log]` says where the log is"),
        (
            b"[log]\n",
            "line 1, column 1: `directory` is missing in `[log]`: the directory that `bulla init` made",
        ),
        (b"mode = \"async\"\n\xff", "line 2, column 1: this is not UTF-8"),
        (
            b"\xef\xbb\xbfmode = 1",
            "line 1, column 1: it begins with a byte-order mark, which stands for nothing in it: take it out",
        ),
        (b"mode = \"a\"\nmode = \"b\"", "line 2, column 1: this is no TOML: duplicate key"),
    ] {
        assert_eq!(Config::parse(bytes).unwrap_err().to_string(), expected);
    }
    let unfinished = Config::parse(b"[log]\ndirectory = \"s3cret\nx = 1").unwrap_err();
    assert_eq!((unfinished.line, unfinished.what.contains("s3cret")), (2, false), "{unfinished}");
    let large = Config::parse(&vec![b'#'; (1 << 20) + 1]).unwrap_err().to_string();
    assert_eq!(large, "line 1, column 1: it has 1048577 bytes; no configuration is over 1048576");
    let deep = Config::parse(format!("x = {}", "[".repeat(1 << 19)).as_bytes()).unwrap_err();
    assert_eq!(deep.line, 1);
}

#[test]
fn a_network_has_the_addresses_that_begin_as_it_does() {
    for (network, within, beyond) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
        ("0.0.0.0/0", "255.255.255.255", "::1"),
        ("::/0", "2001:db8::1", "192.0.2.1"),
        ("fd00::/8", "fdff::1", "fe00::"),
        ("::1", "::1", "::2"),
        ("192.0.2.128/25", "192.0.2.255", "192.0.2.127"),
    ] {
        let parsed = Network::parse(network).unwrap();
        let contains = |address: &str| parsed.contains(address.parse().unwrap());
        assert!(contains(within) && !contains(beyond), "{network}");
    }
    for (text, expected) in [
        ("", "\"\" is no network such as \"10.0.0.0/8\" or \"::1\""),
        ("localhost", "\"localhost\" is no network such as \"10.0.0.0/8\" or \"::1\""),
        ("10.0.0.0/+8", "\"10.0.0.0/+8\" is no network such as \"10.0.0.0/8\" or \"::1\""),
        ("10.0.0.0/", "\"10.0.0.0/\" is no network such as \"10.0.0.0/8\" or \"::1\""),
        ("10.0.0.0/999", "\"10.0.0.0/999\" is no network such as \"10.0.0.0/8\" or \"::1\""),
        ("10.0.0.0/33", "\"10.0.0.0/33\" counts 33 bits of an address that has 32"),
        ("10.0.0.1/8", "\"10.0.0.1/8\" has bits behind its first 8: \"10.0.0.0/8\" is that network"),
        (
            "::ffff:10.0.0.0/104",
            "\"::ffff:10.0.0.0/104\" is an IPv4 address in IPv6: write it as one of IPv4",
        ),
    ] {
        assert_eq!(Network::parse(text).unwrap_err(), expected);
    }
}

proptest! {
    /// Bit by bit.
    #[test]
    fn a_network_is_told_from_its_neighbours(address: [u8; 16], other: [u8; 16], bits in 0_u8..=128, same in 0_usize..=16) {
        let other = [&address[..same], &other[same..]].concat();
        let bit = |bytes: &[u8], index: u8| bytes[usize::from(index / 8)] >> (7 - index % 8) & 1;
        let mut network = address;
        for index in bits..128 {
            network[usize::from(index / 8)] &= !(1 << (7 - index % 8));
        }
        let ip = |bytes: &[u8]| IpAddr::from(<[u8; 16]>::try_from(bytes).unwrap());
        prop_assume!(ip(&network) == ip(&network).to_canonical() && ip(&other) == ip(&other).to_canonical());
        let parsed = Network::parse(&format!("{}/{bits}", ip(&network))).unwrap();
        let expected = (0..bits).all(|index| bit(&network, index) == bit(&other, index));
        prop_assert_eq!(parsed.contains(ip(&other)), expected);
    }

    #[test]
    fn no_file_breaks_the_reader(lines in proptest::collection::vec(prop_oneof![
        proptest::sample::select(EXAMPLE.lines().collect::<Vec<_>>()).prop_map(|line| line.trim_start_matches('#').to_owned()),
        "[a-z\\[\\]={}\"'#\\\\ .0-9\\n]{0,20}",
    ], 0..12)) {
        let text = lines.join("\n");
        if let Err(error) = Config::parse(text.as_bytes()) {
            let line = text.split('\n').nth(error.line - 1);
            prop_assert!(line.is_some_and(|line| error.column <= line.chars().count() + 1), "{} {}", error, text);
        }
    }
}
