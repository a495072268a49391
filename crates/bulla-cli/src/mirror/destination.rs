//! What a word names as the place of a mirror: a directory here, or one on another host.

use crate::exit::Failure;
use std::path::PathBuf;

/// See the module.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Here(PathBuf),
    There(Host),
}

/// A directory on another host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// With the user, where one is named.
    pub(super) name: String,
    pub(super) port: Option<u16>,
    pub(super) path: String,
}

impl Destination {
    /// Reads `[USER@]HOST:PATH` and `ssh://[USER@]HOST[:PORT]/PATH` as `scp` does; whatever has no colon, or a slash before it, is a
    /// directory here.
    pub(super) fn parse(word: &str) -> Result<Self, Failure> {
        let none = |why: &str| Failure::usage(format!("`{word}` is no place of a mirror: {why}"));
        if let Some(rest) = word.strip_prefix("ssh://") {
            let (authority, path) = rest.split_once('/').ok_or_else(|| none("no path follows the host"))?;
            let (user, host) =
                authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            let (host, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
                Some((host, port)) => (host, port.strip_prefix(':')),
                None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
            };
            let port = port.map(|port| port.parse().ok().filter(|port| *port > 0));
            let port = port.map(|port| port.ok_or_else(|| none("its port is none"))).transpose()?;
            return Self::there(user, host, port, format!("/{path}"), none);
        }
        let bracketed = word.split_once("]:").filter(|(host, _)| !host.contains('/'));
        let split = match bracketed {
            Some((host, path)) => host.split_once('[').map(|(user, host)| (format!("{user}{host}"), path)),
            None => word.split_once(':').map(|(host, path)| (host.to_owned(), path)),
        };
        match split.filter(|(host, _)| !host.contains('/')) {
            Some((host, path)) => {
                let (user, host) =
                    host.rsplit_once('@').map_or((None, &*host), |(user, host)| (Some(user), host));
                Self::there(user, host, None, path.to_owned(), none)
            }
            None if word.is_empty() => Err(none("it is empty")),
            None => Ok(Destination::Here(word.into())),
        }
    }

    fn there(
        user: Option<&str>,
        host: &str,
        port: Option<u16>,
        path: String,
        none: impl Fn(&str) -> Failure,
    ) -> Result<Self, Failure> {
        let name = user.map_or_else(|| host.to_owned(), |user| format!("{user}@{host}"));
        // It would be an option to whatever reaches the host.
        if host.is_empty() || name.starts_with('-') || host.starts_with('-') {
            return Err(none("its host is none"));
        }
        match path.trim_end_matches('/') {
            "" => Err(none("no directory follows the host")),
            _ => Ok(Destination::There(Host { name, port, path })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(name: &str, port: Option<u16>, path: &str) -> Destination {
        Destination::There(Host { name: name.to_owned(), port, path: path.to_owned() })
    }

    #[test]
    fn places_are_told_apart_as_scp_tells_them() {
        for (word, expected) in [
            ("copy", Destination::Here("copy".into())),
            ("/srv/a:b", Destination::Here("/srv/a:b".into())),
            ("./a:b", Destination::Here("./a:b".into())),
            ("host:copy", there("host", None, "copy")),
            ("me@host:/srv/a b", there("me@host", None, "/srv/a b")),
            ("me@[::1]:copy", there("me@::1", None, "copy")),
            ("host:a:b", there("host", None, "a:b")),
            ("ssh://host/srv/copy", there("host", None, "/srv/copy")),
            ("ssh://me@host:2222/srv/copy", there("me@host", Some(2222), "/srv/copy")),
            ("ssh://me@[fe80::1]:22/copy", there("me@fe80::1", Some(22), "/copy")),
        ] {
            assert_eq!(Destination::parse(word).unwrap(), expected, "{word}");
        }
        for word in [
            "",
            ":copy",
            "host:",
            "-oProxyCommand=x:copy",
            "-o@host:copy",
            "me@-host:copy",
            "ssh://host",
            "ssh://host/",
            "ssh:///copy",
            "ssh://host:0/copy",
            "ssh://host:x/copy",
        ] {
            assert!(Destination::parse(word).is_err(), "{word}");
        }
    }
}
