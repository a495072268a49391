//! The proxy's cases as text: commands a second by each way, and GDPRbench's roles.

use super::format::{short, whole};
use super::table::{Table, cell};
use crate::contest::{Case, Contender};
use crate::measure::figure;
use crate::proxied::figure::{COMMAND_RATE, COMMANDS, COMPLETION, SYNC};
use crate::results::Results;
use crate::suite::proxy::{DIRECT, HAPROXY};
use crate::trial::Task;

/// Whether a case has a table here.
pub(super) fn is_here(case: &Case) -> bool {
    is_throughput(case) || is_gdprbench(case)
}

fn is_throughput(case: &Case) -> bool {
    case.contenders.iter().all(|run| matches!(run.trial.task, Task::Throughput(_)))
}

fn is_gdprbench(case: &Case) -> bool {
    case.contenders.iter().all(|run| matches!(run.trial.task, Task::Gdprbench(_)))
}

pub(super) fn throughput(results: &Results, out: &mut String) {
    let head = [
        "case",
        "way",
        "commands/s",
        "±%",
        "SET/s",
        "GET/s",
        "haproxy",
        "direct",
        "entries",
        "B/entry",
        "B/sync",
        "sync µs",
    ];
    let mut table = Table::new(&head, 2);
    for case in results.cases.iter().filter(|case| is_throughput(case)) {
        for run in &case.contenders {
            let of = |figure: &str| run.median(figure);
            table.row(vec![
                case.name.clone(),
                run.name.clone(),
                cell(of(COMMAND_RATE), whole),
                spread(run, COMMAND_RATE),
                cell(of("set_per_second"), whole),
                cell(of("get_per_second"), whole),
                against(case, run, HAPROXY, COMMAND_RATE),
                against(case, run, DIRECT, COMMAND_RATE),
                cell(of(figure::ENTRIES), whole),
                cell(of(figure::DISK), short),
                cell(of("written_bytes_per_sync"), whole),
                cell(of(SYNC), whole),
            ]);
        }
    }
    if !table.is_empty() {
        table.print(out);
        out.push_str(
            "haproxy, direct: commands/s against these, round by round; entries: as many as the server carried out, or the run fails;\n\
             sync µs: what a block of B/sync bytes takes until it is durable, beside the load and without other syncs\n\n",
        );
    }
}

pub(super) fn gdprbench(results: &Results, out: &mut String) {
    let head = [
        "role",
        "way",
        "seconds",
        "±%",
        "direct",
        "operations/s",
        "commands",
        "load s",
        "entries",
        "B/entry",
    ];
    let mut table = Table::new(&head, 2);
    for case in results.cases.iter().filter(|case| is_gdprbench(case)) {
        for run in &case.contenders {
            let of = |figure: &str| run.median(figure);
            table.row(vec![
                case.name.clone(),
                run.name.clone(),
                cell(of(COMPLETION), short),
                spread(run, COMPLETION),
                against(case, run, DIRECT, COMPLETION),
                cell(of("operations_per_second"), whole),
                cell(of(COMMANDS), whole),
                cell(of("load_seconds"), short),
                cell(of(figure::ENTRIES), whole),
                cell(of(figure::DISK), short),
            ]);
        }
    }
    if !table.is_empty() {
        table.print(out);
        out.push_str(
            "seconds: until all operations of the role are done; direct: that against the same without a proxy, round by round;\n\
             entries: of each person, and of nobody, as many as the client counted, or the run fails\n\n",
        );
    }
}

/// How far the rounds lie apart: half of that, in percent of the median.
pub(super) fn spread(run: &Contender, figure: &str) -> String {
    let spread = run.summary.get(figure);
    spread.map_or_else(String::new, |all| format!("{:.0}", (all.most - all.least) / 2.0 / all.median * 100.0))
}

/// A figure against that of another contender, round by round.
pub(super) fn against(case: &Case, run: &Contender, other: &str, figure: &str) -> String {
    let ratio = case.ratio(&run.name, other, figure).filter(|_| run.name != other);
    cell(ratio.map(|ratio| ratio.median), |ratio| format!("{ratio:.2}x"))
}
