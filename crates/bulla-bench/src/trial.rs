//! One run of one program, in a process of its own: memory and caches are its own then.

use crate::baseline::{conventional, sqlite};
use crate::knobs::Knobs;
use crate::load::Load;
use crate::outcome::{Failure, Outcome};
use crate::proxied::{
    self, gdprbench::Asked, latency::Latency as ProxyLatency, memory::Memory, throughput::Throughput,
};
use crate::{access, append, command, erase, integrity, languages, latency, limits, slow};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Task {
    /// Bulla appends a workload, and verifies it.
    Append(Load),
    /// The same, and exports it.
    Export(Load),
    /// The conventional pipeline appends it.
    Conventional(Load),
    /// Bulla appends the log in this file.
    Access(PathBuf),
    /// Bulla appends and proves the lines of the integrity benchmark.
    Proofs,
    /// One of that benchmark's schemes does.
    Sqlite(sqlite::Scheme),
    /// The command appends the lines of `tenants` that it generates.
    Command,
    /// Bulla appends what little happens.
    Slow,
    /// Bulla appends at times that are set beforehand.
    Latency(Load),
    /// What a workload's rows take by themselves.
    Limits(Load),
    /// Bulla erases beside appends.
    Erase,
    /// Clients send commands to a server, through the proxy or not.
    Throughput(Throughput),
    /// They do at half the load that is possible.
    ProxyLatency(ProxyLatency),
    /// The proxy has idle clients, and a great value passes it.
    ProxyMemory(Memory),
    /// A role of GDPRbench asks a server, through the proxy or not.
    Gdprbench(Asked),
    /// Bulla from another language or process, or what that is compared with.
    Language(languages::Run),
}

/// A run that is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) task: Task,
    /// For what appends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) knobs: Option<Knobs>,
}

impl Trial {
    /// Runs it in a child process, which keeps its files in a directory below `place` that is gone afterwards.
    pub(crate) fn run_apart(&self, place: &Path) -> Result<Outcome, Failure> {
        let directory = tempfile::Builder::new().prefix("bulla-bench-").tempdir_in(place)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("trial").arg(serde_json::to_string(self)?).arg(directory.path());
        let ran = command.stderr(Stdio::inherit()).output()?;
        if !ran.status.success() {
            return Err(format!("a run ended with {}", ran.status).into());
        }
        Ok(serde_json::from_slice(&ran.stdout)?)
    }

    /// Runs it in this process, with its files in `directory`.
    pub(crate) fn run(&self, directory: &Path) -> Result<Outcome, Failure> {
        let knobs = || self.knobs.as_ref().ok_or("a run that appends has no knobs");
        match &self.task {
            Task::Append(load) => append::run(load.0, knobs()?, directory),
            Task::Export(load) => append::run_and_export(load.0, knobs()?, directory),
            Task::Conventional(load) => conventional::run(load.0, knobs()?, directory),
            Task::Access(file) => access::run(file, knobs()?, directory),
            Task::Proofs => integrity::run(knobs()?, directory),
            Task::Sqlite(scheme) => sqlite::run(*scheme, knobs()?, directory),
            Task::Command => command::run(knobs()?, directory),
            Task::Slow => slow::run(knobs()?, directory),
            Task::Latency(load) => latency::run(load.0, knobs()?, directory),
            Task::Limits(load) => limits::run(load.0, knobs()?),
            Task::Erase => erase::run(knobs()?, directory),
            Task::Throughput(run) => proxied::throughput::run(run, directory),
            Task::ProxyLatency(run) => proxied::latency::run(run, directory),
            Task::ProxyMemory(run) => proxied::memory::run(run, directory),
            Task::Gdprbench(asked) => proxied::gdprbench::run(asked, directory),
            Task::Language(run) => languages::run(run, directory),
        }
    }
}
