//! Addresses that may be asked.

use crate::{Error, ErrorKind, Options};
use http::Uri;
use std::fmt;
use std::net::IpAddr;

/// The longest address, in bytes.
const MOST: usize = 2048;

/// The address of a service: a URL with `https`, a host, and perhaps a port and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
}

impl Address {
    /// Reads an address. `http` is for this machine alone (127.0.0.0/8 and `[::1]`, by their numbers, as a name can lead elsewhere), and
    /// only where `options` allow it.
    ///
    /// # Errors
    /// `Invalid`: a URL that is none, has another scheme, a user, a query or a fragment, is too long, or would go elsewhere without TLS.
    pub fn parse(text: &str, options: &Options) -> Result<Self, Error> {
        let wrong = |what: &str| {
            let shown: String = text.chars().take(200).flat_map(char::escape_debug).collect();
            Err(Error::new(ErrorKind::Invalid, format!("{shown}: {what}")))
        };
        if text.len() > MOST {
            return wrong("an address has at most 2,048 bytes");
        }
        let Ok(uri) = text.parse::<Uri>() else {
            return wrong("this is no URL, such as https://witness.example/path");
        };
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return wrong("a URL has a scheme and a host, as https://witness.example has");
        };
        if authority.as_str().contains('@') {
            return wrong("an address has no user and no password");
        }
        if authority.host().is_empty() {
            return wrong("there is no host in it");
        }
        if authority.as_str().len() > authority.host().len()
            && authority.port_u16().is_none_or(|port| port == 0)
        {
            return wrong("what is behind the host's colon is no port from 1 to 65535");
        }
        if uri.query().is_some() || text.contains('#') {
            return wrong("an address has no query (?) and no fragment (#)");
        }
        match scheme {
            "https" => {}
            "http" if options.plain_loopback && is_loopback(authority.host()) => {}
            "http" if options.plain_loopback => {
                return wrong("http is for this machine alone, as 127.0.0.1 or [::1]: say https");
            }
            "http" => {
                return wrong("only https is asked: http is for this machine alone, where that is allowed");
            }
            _ => return wrong("only https is asked"),
        }
        Ok(Address { text: text.trim_end_matches('/').to_owned() })
    }

    /// The address of `path` below this one, as C2SP's prefixes have it: `add-checkpoint` below `https://witness.example/w1`.
    ///
    /// `path` is the program's and no input: it has letters, digits, `-`, `_`, `.` and `/` only.
    #[must_use]
    pub fn below(&self, path: &str) -> Self {
        debug_assert!(path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)));
        Address { text: format!("{}/{path}", self.text) }
    }

    /// Whether this machine is asked, without TLS.
    #[cfg(feature = "client")]
    pub(crate) fn is_plain(&self) -> bool {
        // A scheme is the same in whatever case.
        !self.text.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }

    /// The address as a URL, without a `/` at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, plain_loopback: bool) -> Result<String, String> {
        let options = Options { plain_loopback, ..Options::default() };
        Address::parse(text, &options).map(|address| address.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn https_is_asked_wherever_it_leads() {
        for text in [
            "https://w.example",
            "https://w.example:8443/a/b",
            "https://10.0.0.7/x",
            "https://[2001:db8::1]:4/x",
        ] {
            assert_eq!(parse(text, false), Ok(text.to_owned()));
        }
        assert_eq!(parse("https://w.example/", false).unwrap(), "https://w.example");
        let below =
            Address::parse("https://w.example/w1/", &Options::default()).unwrap().below("add-checkpoint");
        assert_eq!(below.as_str(), "https://w.example/w1/add-checkpoint");
    }

    #[test]
    fn http_is_for_this_machine_alone_and_only_where_it_is_allowed() {
        for text in ["http://127.0.0.1:8080/w", "http://127.8.9.1", "http://[::1]:80"] {
            assert_eq!(parse(text, true), Ok(text.to_owned()));
            assert!(parse(text, false).is_err(), "{text}");
        }
        for text in [
            "http://w.example",
            "http://localhost:80",
            "http://10.0.0.1",
            "http://127.0.0.1.example",
            "http://[::ffff:8.8.8.8]",
            "http://2130706433",
            "http://0.0.0.0",
        ] {
            assert!(parse(text, true).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_address_is_refused_by_name() {
        for (text, why) in [
            ("", "no URL"),
            ("/add-checkpoint", "a scheme and a host"),
            ("w.example", "a scheme and a host"),
            ("ftp://w.example", "only https"),
            ("file:///etc/passwd", "no URL"),
            ("https://", "no URL"),
            ("https://user:secret@w.example", "no user"),
            ("https://w.example?x=1", "no query"),
            ("https://w.example/#x", "no fragment"),
            ("https://w.example:0/", "no port"),
            ("https://w.example:/", "no port"),
            ("https://w.example:99999/", "no port"),
            ("https://w.example/a b", "no URL"),
            ("https://w.example/\r\nHost: x", "no URL"),
        ] {
            let error = parse(text, true).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
            assert!(!error.contains('\n'));
        }
        assert!(
            parse(&format!("https://w.example/{}", "a".repeat(MOST)), true).unwrap_err().contains("2,048")
        );
    }
}
