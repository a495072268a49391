//! From a file to a [`Config`].

use super::table::{Table, Value, document};
use super::{
    Config, ConfigError, Limits, Listen, ListenTls, LogPlace, Mode, Network, Policy, Treatment, Unfollowable,
    Unrecordable, Upstream, UpstreamPlace, UpstreamTls,
};
use crate::subject::{JsonPath, Lesson, Rule, Template};
use bulla_proof::entry::MAX_STRING;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The longest file that is read, in bytes.
const MOST: usize = 1 << 20;
/// The most rules: every one of them is tried with a key that none is about.
const MOST_RULES: usize = 1000;
/// The most databases that a server can have.
const LAST_DATABASE: u64 = (1 << 31) - 1;

/// All keys, by the table that they are in.
pub(super) const KEYS: [(&str, &[&str]); 9] = [
    (
        "",
        &[
            "mode",
            "unrecordable",
            "unfollowable",
            "workers",
            "record_values",
            "claims",
            "metrics",
            "default_subject",
            "log",
            "listen",
            "upstream",
            "rules",
            "policy",
            "limits",
        ],
    ),
    ("log", &["directory", "keys"]),
    ("listen", &["address", "unix", "unix_mode", "proxy_protocol", "tls"]),
    ("listen.tls", &["certificate", "key", "client_ca"]),
    ("upstream", &["address", "unix", "user", "password_file", "tls"]),
    ("upstream.tls", &["ca", "server_name", "certificate", "key"]),
    ("rules", &["key", "separator", "databases", "hash_field", "json_path"]),
    ("policy", &["scripts", "patterns", "whole", "undescribed", "too_many", "administrative"]),
    (
        "limits",
        &[
            "clients",
            "pipeline",
            "transaction",
            "kept",
            "kept_items",
            "listed_keys",
            "learned",
            "connect_timeout",
            "handshake_timeout",
            "idle_timeout",
            "drain_timeout",
        ],
    ),
];

/// The keys of a table.
fn keys_of(table: &str) -> &'static [&'static str] {
    KEYS.iter().find(|(name, _)| *name == table).map_or(&[], |(_, keys)| keys)
}

pub(super) fn config(bytes: &[u8]) -> Result<Config, ConfigError> {
    if bytes.len() > MOST {
        return Err(ConfigError::new(
            "",
            0,
            format!("it has {} bytes; no configuration is over {MOST}", bytes.len()),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        ConfigError::new(&before, before.len(), "this is not UTF-8".to_owned())
    })?;
    if text.starts_with('\u{feff}') {
        let what = "it begins with a byte-order mark, which stands for nothing in it: take it out";
        return Err(ConfigError::new(text, 0, what.to_owned()));
    }
    let mut root = document(text, keys_of(""))?;
    let modes =
        [("async", Mode::Async), ("before-reply", Mode::BeforeReply), ("before-send", Mode::BeforeSend)];
    Ok(Config {
        mode: or(root.take("mode"), |it| it.word(&modes), Mode::Async)?,
        unrecordable: or(
            root.take("unrecordable"),
            |it| it.word(&[("refuse", Unrecordable::Refuse), ("pass", Unrecordable::Pass)]),
            Unrecordable::Refuse,
        )?,
        unfollowable: or(
            root.take("unfollowable"),
            |it| it.word(&[("close", Unfollowable::Close), ("relay", Unfollowable::Relay)]),
            Unfollowable::Close,
        )?,
        workers: given(root.take("workers"), |it| count(it, 1, 256))?,
        record_values: or(root.take("record_values"), |it| it.size_or_off(1 << 10..=1 << 20), None)?,
        claims: or(root.take("claims"), strings, Vec::new())?,
        metrics: given(root.take("metrics"), socket_address)?,
        default_subject: given(root.take("default_subject"), subject)?,
        log: log(&mut root)?,
        listen: listen(root.table("listen", keys_of("listen"))?)?,
        upstream: upstream(root.table("upstream", keys_of("upstream"))?)?,
        rules: or(root.take("rules"), rules, Vec::new())?,
        policy: policy(root.table("policy", keys_of("policy"))?)?,
        limits: limits(root.table("limits", keys_of("limits"))?)?,
    })
}

fn log(root: &mut Table<'_>) -> Result<LogPlace, ConfigError> {
    let mut log = root.require("log", "`[log]` says where the log is")?.table(keys_of("log"))?;
    Ok(LogPlace {
        directory: path(&log.require("directory", "the directory that `bulla init` made")?)?,
        keys: given(log.take("keys"), path)?,
    })
}

fn listen(mut table: Table<'_>) -> Result<Listen, ConfigError> {
    let address = given(table.take("address"), socket_address)?;
    let unix = given(table.take("unix"), path)?;
    let default = unix.is_none().then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 6380)));
    let unix_mode = table.take("unix_mode");
    if let Some(mode) = unix_mode.as_ref().filter(|_| unix.is_none()) {
        return Err(mode.error("`listen.unix_mode` is for `listen.unix`, which is missing".to_owned()));
    }
    let (tls, proxies) = (table.take("tls"), table.take("proxy_protocol"));
    let address = address.or(default);
    let network =
        |item: &Value<'_>| Network::parse(item.string()?).map_err(|what| item.error(named(item, &what)));
    let networks = |it: &Value<'_>| it.items()?.iter().map(network).collect::<Result<Vec<_>, _>>();
    let proxy_protocol = proxies.as_ref().map_or(Ok(Vec::new()), networks)?;
    let proxies = proxies.filter(|_| !proxy_protocol.is_empty());
    if let Some(of_tcp) = tls.as_ref().or(proxies.as_ref()).filter(|_| address.is_none()) {
        return Err(of_tcp.error(format!("`{}` is for TCP, and `listen.address` is missing", of_tcp.name)));
    }
    let tls = tls.map(|tls| {
        let mut tls = tls.table(keys_of("listen.tls"))?;
        Ok(ListenTls {
            certificate: path(&tls.require("certificate", "a file in PEM")?)?,
            key: path(&tls.require("key", "a file in PEM")?)?,
            client_ca: given(tls.take("client_ca"), path)?,
        })
    });
    Ok(Listen {
        more_ports: 0,
        address,
        unix,
        unix_mode: or(unix_mode, permissions, 0o660)?,
        tls: tls.transpose()?,
        proxy_protocol,
    })
}

fn upstream(mut table: Table<'_>) -> Result<Upstream, ConfigError> {
    let (address, unix) = (table.take("address"), table.take("unix"));
    let place = match (&address, &unix) {
        (Some(_), Some(unix)) => {
            let what = "there is one server: `upstream.address` and `upstream.unix` cannot both be given";
            return Err(unix.error(what.to_owned()));
        }
        (None, Some(unix)) => UpstreamPlace::Unix(path(unix)?),
        (Some(address), None) => {
            let wanted =
                "a name or an address and a port, such as \"redis.example.com:6379\" or \"[::1]:6379\"";
            let (host, port) = address.parsed(wanted, host_and_port)?;
            UpstreamPlace::Tcp(host, port)
        }
        (None, None) => UpstreamPlace::Tcp("127.0.0.1".to_owned(), 6379),
    };
    let user = table.take("user");
    let password_file = given(table.take("password_file"), path)?;
    if let Some(user) = user.as_ref().filter(|_| password_file.is_none()) {
        return Err(user.error("`upstream.user` needs `upstream.password_file`".to_owned()));
    }
    let tls = table.take("tls").map(|tls| match &place {
        UpstreamPlace::Unix(_) => {
            Err(tls.error("`upstream.tls` is for TCP, and the server is on a Unix socket".to_owned()))
        }
        UpstreamPlace::Tcp(host, _) => upstream_tls(tls.table(keys_of("upstream.tls"))?, host),
    });
    let tls = tls.transpose()?;
    Ok(Upstream { place, tls, user: given(user, text)?, password_file })
}

fn upstream_tls(mut table: Table<'_>, host: &str) -> Result<UpstreamTls, ConfigError> {
    let ca = path(&table.require("ca", "a file in PEM")?)?;
    let server_name = or(table.take("server_name"), text, host.to_owned())?;
    let certificate = match (table.take("certificate"), table.take("key")) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((path(&certificate)?, path(&key)?)),
        (Some(one), None) => {
            return Err(one.error("`upstream.tls.certificate` needs `upstream.tls.key`".to_owned()));
        }
        (None, Some(one)) => {
            return Err(one.error("`upstream.tls.key` needs `upstream.tls.certificate`".to_owned()));
        }
    };
    Ok(UpstreamTls { ca, server_name, certificate })
}

fn rules(value: &Value<'_>) -> Result<Vec<Rule>, ConfigError> {
    if value.is_table() {
        return Err(value.error("`rules` are several: the header of each is `[[rules]]`".to_owned()));
    }
    let tables = value.items()?;
    if let Some(first_too_many) = tables.get(MOST_RULES) {
        return Err(
            first_too_many.error(format!("there are {} rules; {MOST_RULES} is the most", tables.len()))
        );
    }
    tables.into_iter().map(rule).collect()
}

fn rule(value: Value<'_>) -> Result<Rule, ConfigError> {
    let mut rule = value.table(keys_of("rules"))?;
    let key = rule.require("key", "which keys the rule is about, such as \"user:{subject}:*\"")?;
    let separator = rule.take("separator");
    let template = match &separator {
        None => parse_template(&key, ':')?,
        Some(separator) => {
            let wanted = "one ASCII character other than `{`, `}`, `*` and `\\`";
            let character = separator.parsed(wanted, |text| {
                let mut characters = text.chars();
                let one = characters.next().filter(|it| it.is_ascii() && !"{}*\\".contains(*it))?;
                characters.next().is_none().then_some(one)
            })?;
            parse_template(&key, character)?
        }
    };
    let (field, path) = (rule.take("hash_field"), rule.take("json_path"));
    let lesson = match (&field, &path) {
        (None, None) => None,
        (Some(field), None) => Some(Lesson::HashField(text(field)?)),
        (None, Some(path)) => {
            let parsed = JsonPath::parse(path.string()?);
            Some(Lesson::Json(parsed.map_err(|what| path.error(named(path, what)))?))
        }
        (Some(_), Some(path)) => {
            let what =
                "a rule has `hash_field` or `json_path`, not both: two rules can be about the same keys";
            return Err(path.error(what.to_owned()));
        }
    };
    match (template.has_subject(), &lesson) {
        (false, None) => {
            let what = "nothing says whose data these keys are: put `{subject}` into `key`, or name a `hash_field` or a \
                        `json_path`";
            return Err(key.error(what.to_owned()));
        }
        (true, Some(_)) => {
            let what = "`{subject}` in `key` says whose data it is already: take it out, or `hash_field` and `json_path`";
            return Err(key.error(what.to_owned()));
        }
        _ => {}
    }
    let database = |item: &Value<'_>| {
        // Within bounds, so it is one.
        item.number(0..=LAST_DATABASE).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    let databases = match rule.take("databases") {
        None => Vec::new(),
        Some(value) => {
            let none = value.error("`rules.databases` is empty: leave it out for all databases".to_owned());
            let databases = value.items()?.iter().map(database).collect::<Result<Vec<_>, _>>()?;
            if databases.is_empty() {
                return Err(none);
            }
            databases
        }
    };
    Ok(Rule { template, databases, lesson })
}

fn parse_template(key: &Value<'_>, separator: char) -> Result<Template, ConfigError> {
    Template::parse(key.string()?, separator)
        .map_err(|error| key.error_within(error.at, named(key, &error.what)))
}

fn policy(mut table: Table<'_>) -> Result<Policy, ConfigError> {
    let mut class = |key, default| {
        let words = [("refuse", Treatment::Refuse), ("record", Treatment::Record)];
        or(table.take(key), |it| it.word(&words), default)
    };
    Ok(Policy {
        scripts: class("scripts", Treatment::Refuse)?,
        patterns: class("patterns", Treatment::Refuse)?,
        whole: class("whole", Treatment::Refuse)?,
        undescribed: class("undescribed", Treatment::Record)?,
        too_many: class("too_many", Treatment::Refuse)?,
        administrative: class("administrative", Treatment::Record)?,
    })
}

fn limits(mut table: Table<'_>) -> Result<Limits, ConfigError> {
    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    let idle = table.take("idle_timeout");
    let clients = given(table.take("clients"), |it| count(it, 1, 1_000_000))?;
    let mut number = |key, default, least, most| or(table.take(key), |it| count(it, least, most), default);
    let pipeline = number("pipeline", 10_000, 1, 1_000_000)?;
    let transaction = number("transaction", 100_000, 1, 1_000_000)?;
    let kept_items = number("kept_items", 4096, 64, 1 << 20)?;
    let listed_keys = number("listed_keys", 1000, 1, 100_000)?;
    let mut size = |key, default, least, most| or(table.take(key), |it| it.size(least..=most), default);
    // A key that an entry has room for is kept as a whole, with the command that it is in.
    let kept = size("kept", 256 << 10, 128 << 10, 16 << 20)?;
    let learned = size("learned", 64 << 20, 1 << 20, 64 << 30)?;
    let mut time =
        |key, default| or(table.take(key), |it| it.duration(Duration::from_millis(10)..=HOUR), default);
    Ok(Limits {
        clients,
        pipeline,
        transaction,
        kept,
        kept_items,
        listed_keys,
        learned,
        connect_timeout: time("connect_timeout", 5 * SECOND)?,
        handshake_timeout: time("handshake_timeout", 10 * SECOND)?,
        idle_timeout: or(idle, |it| it.duration_or_off(SECOND..=24 * HOUR), None)?,
        drain_timeout: time("drain_timeout", 30 * SECOND)?,
    })
}

/// What a value says; the default where there is none.
fn or<'a, T>(
    value: Option<Value<'a>>,
    read: impl FnOnce(&Value<'a>) -> Result<T, ConfigError>,
    default: T,
) -> Result<T, ConfigError> {
    value.as_ref().map_or(Ok(default), read)
}

/// What a value says, where there is one.
fn given<'a, T>(
    value: Option<Value<'a>>,
    read: impl FnOnce(&Value<'a>) -> Result<T, ConfigError>,
) -> Result<Option<T>, ConfigError> {
    value.as_ref().map(read).transpose()
}

fn text(value: &Value<'_>) -> Result<String, ConfigError> {
    value.string().map(str::to_owned)
}

fn strings(value: &Value<'_>) -> Result<Vec<String>, ConfigError> {
    value.items()?.iter().map(text).collect()
}

fn path(value: &Value<'_>) -> Result<PathBuf, ConfigError> {
    value.string().map(PathBuf::from)
}

fn subject(value: &Value<'_>) -> Result<String, ConfigError> {
    match value.string()? {
        text if text.len() <= MAX_STRING => Ok(text.to_owned()),
        text => {
            Err(value.error(format!("`{}` has {} bytes; {MAX_STRING} is the most", value.name, text.len())))
        }
    }
}

fn socket_address(value: &Value<'_>) -> Result<SocketAddr, ConfigError> {
    value.parsed("an IP address and a port, such as \"127.0.0.1:6380\" or \"[::1]:6380\"", |text| {
        text.parse().ok()
    })
}

fn permissions(value: &Value<'_>) -> Result<u32, ConfigError> {
    value.parsed("permissions in octal, such as \"0660\"", |text| {
        let is_octal = text.len() <= 4 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o777)
    })
}

fn count(value: &Value<'_>, least: u64, most: u64) -> Result<usize, ConfigError> {
    // Within bounds that any machine can count to.
    value.number(least..=most).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A name or an address in brackets or of IPv4, and a port that is not 0.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|it| *it > 0 && port.bytes().all(|byte| byte.is_ascii_digit()))?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').filter(|it| it.parse::<std::net::Ipv6Addr>().is_ok())?,
        None => {
            let in_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            Some(host).filter(|it| !it.is_empty() && it.bytes().all(in_names))?
        }
    };
    Some((host.to_owned(), port))
}

/// What is wrong with a value, after its name.
fn named(value: &Value<'_>, what: &str) -> String {
    format!("`{}`: {what}", value.name)
}
