//! What a service manager hears, and that the service of `packaging/` is one for the configuration that is the default.
#![allow(clippy::disallowed_methods, reason = "tests ask systemd's tools")]

use super::*;
use crate::config::{Config, EXAMPLE, Limits};
use std::process::Command;
use std::time::Duration;

const UNIT: &str = include_str!("../../../../packaging/bulla-proxy.service");
const CONTAINER: &str = include_str!("../../../../packaging/Containerfile");

#[test]
fn a_service_manager_hears_what_the_proxy_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let name = format!("bulla-test-{}", std::process::id());
    let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
    let sockets = [
        (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (UnixDatagram::bind_addr(&abstract_address).unwrap(), format!("@{name}")),
    ];
    for (socket, name) in sockets {
        socket.set_nonblocking(true).unwrap();
        let manager = ServiceManager::new(Some(OsStr::new(&name))).unwrap();
        let heard = |state, status| {
            manager.tell(state, status).unwrap();
            let mut buffer = [0; 1000];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(socket.recv(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        assert_eq!(heard(State::Ready, "serving clients"), "READY=1\nSTATUS=serving clients\n");
        let times = [(); 2].map(|()| {
            let told = heard(State::Reloading, "");
            let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
            time.strip_suffix("\nSTATUS=\n").unwrap().parse::<u64>().unwrap()
        });
        assert!(0 < times[0] && times[0] <= times[1]);
        // One message, whatever is in it.
        let told = "READY=1\nSTATUS=the configuration is wrong: READY=0 \n";
        assert_eq!(heard(State::Ready, "the configuration is wrong:\nREADY=0\0"), told);
        assert_eq!(heard(State::Stopping, "7 clients are left"), "STOPPING=1\nSTATUS=7 clients are left\n");
    }
}

#[test]
fn nobody_is_told_where_nobody_listens() {
    ServiceManager::new(None).unwrap().tell(State::Ready, "").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let manager = ServiceManager::new(Some(gone.as_os_str())).unwrap();
    let said = manager.tell(State::Ready, "").unwrap_err();
    assert_eq!(said.kind(), io::ErrorKind::NotFound);
    let begins = format!("the service manager is not told anything: NOTIFY_SOCKET is {}: ", gone.display());
    assert!(said.to_string().starts_with(&begins), "{said}");
    for name in ["", "notify", "vsock:2:1234"] {
        let said = ServiceManager::new(Some(OsStr::new(name))).unwrap_err().to_string();
        assert!(said.ends_with("it is neither a path nor `@` and a name"), "{said}");
    }
    let long = "/x".repeat(100);
    assert!(ServiceManager::new(Some(OsStr::new(&long))).unwrap_err().to_string().contains(&long));
    // One that does not listen any more, for a while or for good, holds nobody up.
    let full = UnixDatagram::bind(&gone).unwrap();
    let kinds = std::iter::repeat_with(|| manager.tell(State::Ready, "").map_err(|error| error.kind()));
    assert!(kinds.take(100_000).any(|told| told == Err(io::ErrorKind::WouldBlock)));
    drop(full);
}

/// The value of a key of the service.
fn unit(key: &str) -> &'static str {
    let found = UNIT.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("the service has no {key}"))
}

#[test]
fn the_service_is_one_for_the_defaults() {
    let config = Config::parse(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(unit("Type"), "notify");
    assert_eq!(unit("ExecStart"), "/usr/bin/bulla proxy /etc/bulla/proxy.toml");
    assert!(config.log.directory.starts_with(format!("/var/lib/{}", unit("StateDirectory"))));
    let stop: u64 = unit("TimeoutStopSec").strip_suffix('s').unwrap().parse().unwrap();
    assert!(Duration::from_secs(stop) >= 2 * config.limits.drain_timeout);
    let descriptors: usize = unit("LimitNOFILE").parse().unwrap();
    assert!(descriptors > 2 * Limits::CLIENTS + 1000);
    // The places that the example names for what it has none by default.
    for named in ["/run/bulla/proxy.sock", "/etc/bulla/proxy.pem"] {
        assert!(EXAMPLE.contains(named), "{named}");
    }
    assert_eq!(unit("RuntimeDirectory"), "bulla");

    let container = |line: &str| assert!(CONTAINER.lines().any(|other| other == line), "{line}");
    container("ENTRYPOINT [\"/usr/bin/bulla\"]");
    container("CMD [\"proxy\", \"/etc/bulla/proxy.toml\"]");
    container("VOLUME /var/lib/bulla");
    container("EXPOSE 6380 9121");
    container("USER 65532:65532");
    assert_eq!(config.listen.address.unwrap().port(), 6380);
    assert!(EXAMPLE.contains("127.0.0.1:9121"));
}

/// 0 is a service that can do nothing, 10 one that can do everything.
#[test]
fn the_service_may_do_little_beyond_what_it_is_for() {
    const MOST: u32 = 20;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/bulla-proxy.service");
    let threshold = format!("--threshold={MOST}");
    let asked = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--no-pager", &threshold, file])
        .output();
    let Ok(asked) = asked else {
        return println!("not tested: how much the service may do: systemd-analyze is not here");
    };
    let told = String::from_utf8_lossy(&asked.stdout);
    if !told.contains("Overall exposure level") {
        return println!(
            "not tested: how much the service may do: this systemd-analyze cannot tell it of a file"
        );
    }
    assert!(asked.status.success(), "{told}");
}
