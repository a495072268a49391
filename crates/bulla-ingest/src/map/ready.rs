//! The maps that come with Bulla.

use super::Map;
use crate::format::Format;

/// A map that comes with Bulla.
#[derive(Debug)]
pub struct Ready {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// What it is for, in a line.
    pub description: &'static str,
    /// The map; it begins with what it maps, who the data subjects are and what is not known.
    pub toml: &'static str,
}

impl Ready {
    /// The map, compiled.
    pub(super) fn map(&self) -> Map {
        match Map::parse(self.name, self.toml) {
            Ok(map) => map,
            Err(error) => unreachable!("a ready map is a map: {error}"),
        }
    }
}

macro_rules! ready {
    ($($name:literal: $description:literal,)*) => {
        &[$(Ready { name: $name, description: $description, toml: include_str!(concat!("../../maps/", $name, ".toml")) }),*]
    };
}

pub(super) static READY: &[Ready] = ready! {
    "apache": "access log of Apache, with what may be appended to it",
    "apache-error": "error log of Apache",
    "audit": "the kernel's audit trail, as auditd writes it",
    "aws-cloudtrail": "events of AWS CloudTrail, one a line",
    "combined": "access log of Apache and nginx, `combined`",
    "common": "access log of Apache and others, `common`",
    "csv": "columns of any names",
    "ecs": "events of the Elastic Common Schema",
    "journal-export": "journald, as `journalctl -o export` prints it",
    "journal-json": "journald, as `journalctl -o json` prints it",
    "json": "JSON objects of any shape",
    "kubernetes-audit": "audit log of Kubernetes' API server",
    "logfmt": "`name=value` pairs of any names",
    "mysql-audit": "audit log of MySQL Enterprise and Percona Server, in JSON",
    "nginx": "access log of nginx, with `$request_time` where it is appended",
    "nginx-error": "error log of nginx",
    "ocsf": "events of the Open Cybersecurity Schema Framework",
    "opentelemetry": "logs of OpenTelemetry, as JSON, a record a line",
    "postgresql": "csvlog of PostgreSQL, with pgaudit",
    "raw": "lines of anything",
    "redis-monitor": "what Redis and Valkey answer to MONITOR",
    "sshd": "messages of OpenSSH's server in auth.log or secure",
    "sudo": "messages of sudo in auth.log or secure",
    "syslog": "syslog of any program",
};

/// The map for a format of which nothing else is known.
pub(super) fn for_format(format: Format) -> &'static Ready {
    let name = match format {
        Format::Raw => "raw",
        Format::Json => "json",
        Format::Combined => "combined",
        Format::Common => "common",
        Format::ApacheError => "apache-error",
        Format::Syslog => "syslog",
        Format::JournalJson => "journal-json",
        Format::JournalExport => "journal-export",
        Format::Logfmt => "logfmt",
        Format::Csv => "csv",
        Format::RedisMonitor => "redis-monitor",
        Format::PostgresCsv => "postgresql",
    };
    let ready = READY.iter().find(|ready| ready.name == name);
    ready.unwrap_or_else(|| unreachable!("every format has a ready map"))
}
