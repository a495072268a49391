//! What a run of the proxy needs of the machine.

use crate::command;
use crate::outcome::Failure;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(clap::Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// The command that is measured [default: the `bulla` beside this one]
    #[arg(long, value_name = "FILE")]
    pub(crate) bulla: Option<PathBuf>,

    /// The processors that client, proxy and server share [default: two]
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,

    /// Threads of the proxy that relay
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,
}

impl Setup {
    /// With what was left to the machine said, so that results tell it.
    pub(crate) fn resolved(mut self) -> Result<Self, Failure> {
        if self.cores.is_empty() {
            let allowed = sched_getaffinity(None)?;
            self.cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).take(2).collect();
        }
        let bulla = match self.bulla {
            Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?,
            None => command::program().map_err(|error| format!("{error}; --bulla names another one"))?,
        };
        self.bulla = Some(bulla);
        Ok(self)
    }

    /// Has this process, and all that it starts from here on, run on these processors alone, with as many files as it may have.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        let mut set = CpuSet::new();
        for &core in self.cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
            set.set(core);
        }
        sched_setaffinity(None, &set)
            .map_err(|error| format!("there are no processors {:?} to run on: {error}", self.cores))?;
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
        Ok(())
    }
}
