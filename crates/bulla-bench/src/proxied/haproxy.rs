//! HAProxy as a relay of TCP, with one thread.

use super::process::{Running, at_a_free_port, installed};
use crate::outcome::Failure;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Haproxy {
    port: u16,
    _running: Running,
}

impl Haproxy {
    pub(crate) fn start(server: u16, place: &Path) -> Result<Self, Failure> {
        let program = installed("haproxy")?;
        let file = place.join("haproxy.cfg");
        let (running, port) = at_a_free_port("haproxy", |port| {
            std::fs::write(&file, configuration(port, server))?;
            let mut command = Command::new(&program);
            command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null());
            Running::start(&mut command)
        })?;
        Ok(Haproxy { port, _running: running })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

fn configuration(port: u16, server: u16) -> String {
    format!(
        "global\n    nbthread 1\n    maxconn 1000\n\
         defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 1h\n    timeout server 1h\n\
         listen redis\n    bind 127.0.0.1:{port}\n    server redis 127.0.0.1:{server}\n"
    )
}
