//! The cases of the proxy: what it takes of a server's commands, of their latency and of memory; and GDPRbench's roles.

use crate::contest::{Case, Contender};
use crate::proxied::gdprbench::{Asked, Asking};
use crate::proxied::latency::Latency;
use crate::proxied::memory::Memory;
use crate::proxied::throughput::Throughput;
use crate::proxied::{Audit, ReplyMode, Rule, Setup, Way};
use crate::trial::{Task, Trial};
use bulla_workload::gdprbench::Role;

/// Names of cases; those of GDPRbench are its roles'.
pub(crate) mod name {
    pub(crate) const EACH: &str = "proxy, no pipeline";
    pub(crate) const PIPELINE: &str = "proxy, pipeline 16";
    pub(crate) const LATENCY: &str = "proxy, latency";
    pub(crate) const MEMORY: &str = "proxy, memory";
}

/// Names of contenders.
pub(crate) const DIRECT: &str = "direct";
pub(crate) const HAPROXY: &str = "haproxy";
pub(crate) const MAPPED: &str = "async, mapped";
pub(crate) const UNMAPPED: &str = "async, unmapped, no erasure";
pub(crate) const BEFORE_REPLY: &str = "before-reply, mapped";
/// The proxy as it is by default.
pub(crate) const PROXY: &str = "proxy";

const MAPPED_AUDIT: Audit = Audit { mode: ReplyMode::Async, rule: Some(Rule::Key), erasure: true };

#[derive(clap::Args)]
pub(crate) struct Loads {
    /// SET and GET each, of a run, by whichever way; eight times as many in pipelines
    #[arg(long, value_name = "N", default_value_t = 450_000, value_parser = clap::value_parser!(u64).range(6..))]
    commands: u64,

    /// How long latency is measured on each way
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = crate::knobs::seconds)]
    seconds: f64,

    /// Connections that are idle
    #[arg(long, value_name = "N", default_value_t = 1000)]
    idle: u32,

    /// Mebibytes of the value that is set and read
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=512))]
    value: u64,
}

pub(crate) fn proxy(loads: &Loads, setup: &Setup) -> Vec<Case> {
    const PIPELINE: u32 = 16;
    vec![
        throughput(name::EACH, 1, loads.commands, setup),
        throughput(name::PIPELINE, PIPELINE, loads.commands * 8, setup),
        case(name::LATENCY, [(PROXY, Task::ProxyLatency(latency(loads, setup)))]),
        case(name::MEMORY, [(PROXY, Task::ProxyMemory(memory(loads, setup)))]),
    ]
}

fn throughput(name: &str, pipeline: u32, commands: u64, setup: &Setup) -> Case {
    let ways = [
        (DIRECT, Way::Direct),
        (HAPROXY, Way::Haproxy),
        (MAPPED, Way::Proxy(MAPPED_AUDIT)),
        (UNMAPPED, Way::proxy(ReplyMode::Async, None, false)),
        (BEFORE_REPLY, Way::Proxy(Audit { mode: ReplyMode::BeforeReply, ..MAPPED_AUDIT })),
    ];
    // As many by each way, so that those who are new are as large a part of each.
    let contenders = ways.map(|(contender, way)| {
        (contender, Task::Throughput(Throughput { way, pipeline, commands, setup: setup.clone() }))
    });
    case(name, contenders)
}

fn latency(loads: &Loads, setup: &Setup) -> Latency {
    let Loads { commands, seconds, .. } = *loads;
    // They pass HAProxy alone, to show how many can.
    let commands = commands.div_ceil(6);
    Latency { audit: MAPPED_AUDIT, commands, seconds, setup: setup.clone() }
}

fn memory(loads: &Loads, setup: &Setup) -> Memory {
    Memory { audit: MAPPED_AUDIT, idle: loads.idle, value: loads.value << 20, setup: setup.clone() }
}

#[derive(clap::Args)]
pub(crate) struct Roles {
    /// Records that are there when a role begins
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    records: u32,

    /// Operations of each role
    #[arg(long, value_name = "N", default_value_t = 1000)]
    operations: u64,

    /// What records and operations are drawn from
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Each role, directly and through the proxy.
pub(crate) fn gdprbench(roles: &Roles, setup: &Setup) -> Vec<Case> {
    let Roles { records, operations, seed } = *roles;
    let of = |role: Role| {
        let by_field = |mode| Way::proxy(mode, Some(Rule::HashField), true);
        let ways = [
            (DIRECT, Way::Direct),
            ("async", by_field(ReplyMode::Async)),
            ("before-reply", by_field(ReplyMode::BeforeReply)),
        ];
        let contenders = ways.map(|(contender, way)| {
            let (role, setup) = (Asking(role), setup.clone());
            (contender, Task::Gdprbench(Asked { role, way, records, operations, seed, setup }))
        });
        case(role.name(), contenders)
    };
    Role::ALL.map(of).into()
}

fn case<const N: usize>(name: &str, contenders: [(&str, Task); N]) -> Case {
    let contenders =
        contenders.map(|(contender, task)| Contender::new(contender, Trial { task, knobs: None }));
    Case { name: name.to_owned(), contenders: contenders.into() }
}
