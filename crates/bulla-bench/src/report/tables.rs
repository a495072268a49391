//! All results as text: appends beside what was published and what the machine can do, then the rest, then the claims.

use super::format::{short, whole};
use super::table::{Table, cell};
use super::{languages, proxied};
use crate::claims::Claim;
use crate::contest::{Case, Contender};
use crate::load::Load;
use crate::measure::figure;
use crate::published::{INTEGRITY, PUBLISHED, Published};
use crate::results::Results;
use crate::suite::{CONVENTIONAL, name};
use crate::trial::Task;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Of the table of appends.
const COLUMNS: usize = 14;

const LIMITS: [(&str, &str); 4] =
    [("memcpy", "memcpy"), ("aes_256_gcm", "AES-256-GCM"), ("sha_256", "SHA-256"), ("zstd_1", "zstd -1")];

pub(crate) fn text(results: &Results) -> String {
    let mut out = String::new();
    let machine = &results.machine;
    let _ = writeln!(
        out,
        "{}, {} processors ({}), {} MiB, Linux {}, {}\n{}\ncommit {}, {}, medians of {} rounds\n",
        machine.processor,
        machine.processors,
        machine.features.join(" "),
        whole(machine.memory_mib as f64),
        machine.kernel,
        machine.file_system,
        results.command,
        results.commit,
        results.started,
        results.rounds,
    );
    appends(results, &mut out);
    stages(results, &mut out);
    proxied::throughput(results, &mut out);
    proxied::gdprbench(results, &mut out);
    languages::languages(results, &mut out);
    let has_a_table =
        |case: &Case| is_append(case) || is_limit(case) || proxied::is_here(case) || languages::is_here(case);
    for case in results.cases.iter().filter(|case| !has_a_table(case)) {
        others(case, &mut out);
    }
    claims(results, &mut out);
    results.not_measured.iter().for_each(|what| out.push_str(&format!("not measured: {what}\n")));
    out
}

/// The workload that a contender appends as it can.
fn appended(contender: &Contender) -> Option<Load> {
    match contender.trial.task {
        Task::Append(load) | Task::Conventional(load) => Some(load),
        _ => None,
    }
}

pub(super) fn is_append(case: &Case) -> bool {
    case.contenders.iter().all(|contender| appended(contender).is_some())
}

fn limited(case: &Case) -> Option<(Load, &Contender)> {
    case.contenders.iter().find_map(|contender| match contender.trial.task {
        Task::Limits(load) => Some((load, contender)),
        _ => None,
    })
}

fn is_limit(case: &Case) -> bool {
    limited(case).is_some()
}

fn appends(results: &Results, out: &mut String) {
    let head: [&str; COLUMNS] = [
        "case",
        "program",
        "entries/s",
        "±%",
        "GiB/s",
        "B/entry",
        "B/person",
        "rows/B",
        "text/B",
        "B/bound",
        "CPU ns",
        "MiB",
        "verify/s",
        "against",
    ];
    let mut table = Table::new(&head, 2);
    for case in results.cases.iter().filter(|case| is_append(case)) {
        case.contenders.iter().for_each(|contender| table.row(append_row(case, contender)));
    }
    for published in &PUBLISHED {
        let shown = |case: &Case| case.contenders.iter().any(|run| is_of(run, published));
        if results.cases.iter().any(|case| is_append(case) && shown(case)) {
            table.row(published_row(published));
        }
    }
    for (load, limits) in results.cases.iter().filter_map(limited) {
        for (key, about) in LIMITS {
            table.row(limit_row(load, limits, key, about));
        }
    }
    if !table.is_empty() {
        table.print(out);
        out.push_str(
            "B/entry: of the log's directory; B/person: of the vault, for each data subject that it knows; rows/B, text/B: rows\n\
             and lines of text against bytes on disk; B/bound: bytes on disk against the entropy bound;\n\
             MiB: most resident memory, less the entries that were held ready; against: entries/s against the conventional\n\
             pipeline, round by round; published figures are of other machines; limits are of one processor\n\n",
        );
    }
}

fn is_of(contender: &Contender, published: &Published) -> bool {
    appended(contender).is_some_and(|load| load.0.name() == published.workload)
}

fn append_row(case: &Case, contender: &Contender) -> Vec<String> {
    let of = |figure: &str| contender.median(figure);
    let over = |one: &str, other: &str| Some(of(one)? / of(other)?);
    let spread = contender
        .summary
        .get(figure::RATE)
        .map(|rate| format!("{:.0}", (rate.most - rate.least) / 2.0 / rate.median * 100.0));
    let against =
        case.ratio(&contender.name, CONVENTIONAL, figure::RATE).filter(|_| contender.name != CONVENTIONAL);
    vec![
        case.name.clone(),
        contender.name.clone(),
        cell(of(figure::RATE), whole),
        spread.unwrap_or_default(),
        cell(of(figure::LOGICAL_RATE), short),
        cell(of(figure::DISK), short),
        cell(of(figure::VAULT), short),
        cell(over(figure::LOGICAL, figure::DISK), short),
        cell(over(figure::TEXT, figure::DISK), short),
        cell(over(figure::DISK, figure::BOUND), short),
        cell(of(figure::CPU), whole),
        cell(of(figure::MEMORY), whole),
        cell(of(figure::VERIFIED), whole),
        cell(against.map(|ratio| ratio.median), |ratio| format!("{ratio:.2}x")),
    ]
}

fn published_row(published: &Published) -> Vec<String> {
    let mut row = vec![String::new(); COLUMNS];
    row[0] = published.workload.to_owned();
    row[1] = published.by.to_owned();
    row[2] = whole(published.entries_per_second);
    row[4] = cell(published.gib_per_second, short);
    row[7] = cell(published.ratio_to_rows, short);
    row[8] = cell(published.ratio_to_text, short);
    row[11] = cell(published.memory_mib, whole);
    row
}

fn limit_row(load: Load, limits: &Contender, key: &str, about: &str) -> Vec<String> {
    let each = limits.median(&format!("{key}_ns_per_entry"));
    let gib = limits.median(&format!("{key}_gb_per_second")).map(|gb| gb * 1e9 / f64::from(1 << 30));
    let mut row = vec![String::new(); COLUMNS];
    row[0] = load.0.name().to_owned();
    row[1] = format!("limit: {about}");
    row[2] = cell(each.map(|each| 1e9 / each), whole);
    row[4] = cell(gib, short);
    row[10] = cell(each, short);
    row
}

/// Stages in the order in which an entry meets them.
pub(super) const STAGES: [&str; 10] =
    ["stage", "copy", "group", "encode", "compress", "hash", "encrypt", "commit", "write", "checkpoint"];

/// Processor time of each stage.
pub(super) fn stages_of(contender: &Contender) -> Vec<(&'static str, f64)> {
    let time = |stage: &str| contender.median(&format!("{}{stage}", figure::STAGE_PREFIX));
    STAGES.into_iter().filter_map(|stage| Some((stage, time(stage)?))).collect()
}

fn stages(results: &Results, out: &mut String) {
    let head = ["CPU ns an entry", "program", "feed"].into_iter().chain(STAGES).collect::<Vec<_>>();
    let mut table = Table::new(&head, 2);
    for case in results.cases.iter().filter(|case| is_append(case)) {
        for run in &case.contenders {
            let stages = stages_of(run);
            let of = |name: &str| stages.iter().find(|(stage, _)| *stage == name).map(|(_, time)| *time);
            let mut row = vec![case.name.clone(), run.name.clone(), cell(run.median(figure::FEED), short)];
            row.extend(STAGES.map(|stage| cell(of(stage), short)));
            table.row(row);
        }
    }
    if !table.is_empty() {
        table.print(out);
        out.push_str("feed: taking an entry from where it is held; stage, copy: the append itself\n\n");
    }
}

/// Every figure of a case, a column a contender.
fn others(case: &Case, out: &mut String) {
    let head = [case.name.as_str()].into_iter().chain(case.contenders.iter().map(|run| run.name.as_str()));
    let mut table = Table::new(&head.collect::<Vec<_>>(), 1);
    let names = case.contenders.iter().flat_map(|run| run.summary.keys()).collect::<BTreeSet<_>>();
    for name in names {
        let mut row = vec![name.clone()];
        row.extend(case.contenders.iter().map(|run| cell(run.median(name), short)));
        table.row(row);
    }
    table.print(out);
    if case.name == name::INTEGRITY {
        out.push_str(INTEGRITY);
        out.push('\n');
    }
    out.push('\n');
}

/// By how much, of what was to be reached.
fn missed(claim: &Claim) -> String {
    let by = claim.least.map(|least| least - claim.value).filter(|by| *by > 0.0);
    let by = by.or(claim.most.map(|most| claim.value - most)).unwrap_or_default();
    let of = claim.least.or(claim.most).unwrap_or(1.0);
    format!("MISSED by {} ({:.0} %)", short(by), by / of * 100.0)
}

fn claims(results: &Results, out: &mut String) {
    let mut table = Table::new(&["to reach", "", "is", "at least", "at most", ""], 2);
    for claim in &results.claims {
        table.row(vec![
            claim.case.clone(),
            claim.about.clone(),
            short(claim.value),
            cell(claim.least, short),
            cell(claim.most, short),
            if claim.holds { "reached".to_owned() } else { missed(claim) },
        ]);
    }
    if !table.is_empty() {
        table.print(out);
    }
}
