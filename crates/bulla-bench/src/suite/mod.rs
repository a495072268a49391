//! The cases of each command.

pub(crate) mod languages;
pub(crate) mod proxy;

use crate::baseline::sqlite::Scheme;
use crate::contest::{Case, Contender};
use crate::knobs::{Effort, Knobs, Mode, Switch};
use crate::load::Load;
use crate::trial::{Task, Trial};
use bulla_workload::Workload;
use std::path::{Path, PathBuf};

/// Names of contenders.
pub(crate) const BULLA: &str = "bulla";
pub(crate) const CONVENTIONAL: &str = "conventional";

/// Names of contenders that are Bulla in a profile: the profile's.
pub(crate) const BALANCED: &str = "balanced";
pub(crate) const MAX: &str = "max";

/// Names of the cases that claims are about; those of workloads are the workloads' own.
pub(crate) mod name {
    /// As the thesis measures: no keys for data subjects, synced at rotation.
    pub(crate) const GDPR_OS: &str = "gdpr, no erasure, os";
    pub(crate) const GDPR_WRITERS: &str = "gdpr, writers";
    pub(crate) const WEB_ONE: &str = "web, 1 producer";
    pub(crate) const ADVERSARIAL_MAX: &str = "web-adversarial, max";
    pub(crate) const ACCESS: &str = "access";
    pub(crate) const INTEGRITY: &str = "integrity";
    /// A hundred thousand lines, through the command.
    pub(crate) const TENANTS_COMMAND: &str = "tenants, 100,000 entries, the command";
    pub(crate) const SLOW: &str = "slow";
    pub(crate) const SLOW_PLAIN: &str = "slow, no erasure";
    pub(crate) const SIZE_SMALL: &str = "100 B";
    pub(crate) const SIZE_LARGE: &str = "4 KiB";
    pub(crate) const LATENCY_SMALL: &str = "latency, 100 B";
    pub(crate) const LATENCY_LARGE: &str = "latency, 4 KiB";
    pub(crate) const ERASE: &str = "erase";
}

/// Bulla appends a workload, and beside it, if wished, the conventional pipeline.
pub(crate) fn appends(name: &str, workload: Workload, knobs: &Knobs, baseline: bool) -> Case {
    let mut contenders = vec![contender(BULLA, Task::Append(Load(workload)), knobs)];
    if baseline {
        contenders.push(contender(CONVENTIONAL, Task::Conventional(Load(workload)), knobs));
    }
    case(name, contenders)
}

/// The real log, in the profiles that are set against zstd, unless another one is asked for.
pub(crate) fn access(file: &Path, knobs: &Knobs) -> Case {
    let profiles = match knobs.profile {
        Effort::Balanced => vec![(BALANCED, Effort::Balanced), (MAX, Effort::Max)],
        Effort::Fast => vec![("fast", Effort::Fast)],
        Effort::Max => vec![(MAX, Effort::Max)],
    };
    let contenders = profiles.into_iter().map(|(name, profile)| {
        let knobs = Knobs { erasure: Switch::Off, ..in_profile(profile, knobs) };
        contender(name, Task::Access(file.to_owned()), &knobs)
    });
    case(name::ACCESS, contenders.collect())
}

pub(crate) fn integrity(knobs: &Knobs, baseline: bool) -> Case {
    let mut contenders = vec![contender(BULLA, Task::Proofs, knobs)];
    if baseline {
        let schemes = [("sqlite-a", Scheme::A), ("sqlite-b", Scheme::B), ("sqlite-c", Scheme::C)];
        contenders.extend(schemes.map(|(name, scheme)| contender(name, Task::Sqlite(scheme), knobs)));
    }
    case(name::INTEGRITY, contenders)
}

pub(crate) fn slow(name: &str, knobs: &Knobs) -> Case {
    case(name, vec![contender(BULLA, Task::Slow, knobs)])
}

/// Entries of about 100 bytes and of about 4 KiB: appended, verified, exported.
pub(crate) fn sizes(knobs: &Knobs) -> [Case; 2] {
    [(name::SIZE_SMALL, Workload::Slow), (name::SIZE_LARGE, Workload::Gdpr)]
        .map(|(name, workload)| case(name, vec![contender(BULLA, Task::Export(Load(workload)), knobs)]))
}

/// Entries of about 100 bytes and of about 4 KiB.
pub(crate) fn latency(knobs: &Knobs) -> [Case; 2] {
    [(name::LATENCY_SMALL, Workload::Slow), (name::LATENCY_LARGE, Workload::Gdpr)]
        .map(|(name, workload)| case(name, vec![contender(BULLA, Task::Latency(Load(workload)), knobs)]))
}

pub(crate) fn limits(knobs: &Knobs) -> Vec<Case> {
    let workloads = [Workload::Gdpr, Workload::Json, Workload::Web];
    let one = |workload: Workload| contender("limits", Task::Limits(Load(workload)), knobs);
    workloads.map(|workload| case(&format!("limits, {workload}"), vec![one(workload)])).into()
}

pub(crate) fn erase(knobs: &Knobs) -> Case {
    case(name::ERASE, vec![contender(BULLA, Task::Erase, knobs)])
}

/// All of it.
pub(crate) fn all(knobs: &Knobs, access_log: Option<&PathBuf>) -> Vec<Case> {
    let published = Knobs { erasure: Switch::Off, durability: Mode::Os, ..knobs.clone() };
    let one = Knobs { producers: 1, ..knobs.clone() };
    let writers = [1, 2].map(|writers| {
        let knobs = Knobs { writers: Some(writers), ..knobs.clone() };
        contender(&format!("{writers} writers"), Task::Append(Load(Workload::Gdpr)), &knobs)
    });
    let mut cases = vec![
        appends(name::GDPR_OS, Workload::Gdpr, &published, true),
        appends(Workload::Gdpr.name(), Workload::Gdpr, knobs, true),
        case(name::GDPR_WRITERS, writers.into()),
    ];
    for workload in [Workload::Gdpr50, Workload::Json, Workload::Tenants] {
        cases.push(appends(workload.name(), workload, knobs, true));
    }
    cases.push(appends(name::WEB_ONE, Workload::Web, &one, true));
    for workload in [Workload::Web, Workload::WebSubjects, Workload::WebAdversarial] {
        cases.push(appends(workload.name(), workload, knobs, true));
    }
    let max = in_profile(Effort::Max, knobs);
    cases.push(appends(name::ADVERSARIAL_MAX, Workload::WebAdversarial, &max, false));
    cases.extend(access_log.map(|file| access(file, knobs)));
    cases.push(integrity(knobs, true));
    cases.push(case(name::TENANTS_COMMAND, vec![contender(BULLA, Task::Command, knobs)]));
    cases.push(slow(name::SLOW, knobs));
    cases.push(slow(name::SLOW_PLAIN, &Knobs { erasure: Switch::Off, ..knobs.clone() }));
    cases.extend(latency(knobs));
    cases.push(erase(knobs));
    cases.extend(limits(knobs));
    cases
}

/// `max` has as much memory as it needs, if not more.
fn in_profile(profile: Effort, knobs: &Knobs) -> Knobs {
    const LEAST_OF_MAX: usize = 320;
    let least = if profile == Effort::Max { LEAST_OF_MAX } else { 0 };
    Knobs { profile, memory: knobs.memory.map(|memory| memory.max(least)), ..knobs.clone() }
}

fn case(name: &str, contenders: Vec<Contender>) -> Case {
    Case { name: name.to_owned(), contenders }
}

fn contender(name: &str, task: Task, knobs: &Knobs) -> Contender {
    Contender::new(name, Trial { task, knobs: Some(knobs.clone()) })
}
