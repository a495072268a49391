//! The cases of languages as text: entries a second of each, against the first of its case.

use super::format::{short, time, whole};
use super::proxied::{against, spread};
use super::table::{Table, cell};
use crate::contest::{Case, Contender};
use crate::measure::figure;
use crate::results::Results;
use crate::suite::languages::part;
use std::collections::BTreeSet;

/// Whether a case has a table here.
pub(super) fn is_here(case: &Case) -> bool {
    case.contenders.iter().all(|run| part(run).is_some())
}

pub(super) fn languages(results: &Results, out: &mut String) {
    let head =
        ["case", "way", "entries/s", "±%", "against", "entries", "CPU ns", "B/entry", "p50", "p99", "max"];
    let mut table = Table::new(&head, 2);
    for case in results.cases.iter().filter(|case| is_here(case)) {
        let first = case.contenders.first().map(|run| run.name.as_str()).unwrap_or_default();
        for run in &case.contenders {
            let of = |figure: &str| run.median(figure);
            let mut row = vec![
                case.name.clone(),
                run.name.clone(),
                cell(of(figure::RATE), whole),
                spread(run, figure::RATE),
                against(case, run, first, figure::RATE),
                cell(of(figure::ENTRIES), whole),
                cell(of(figure::CPU), whole),
                cell(of(figure::DISK), short),
            ];
            row.extend(["p50", "p99", "max"].map(|percentile| cell(latency(run, percentile), time)));
            table.row(row);
        }
    }
    if !table.is_empty() {
        table.print(out);
        out.push_str(
            "entries/s: of whole runs, from opening the log until all is durable, signed and closed; of logging, calls a second, without closing;\n\
             of query, entries that are read; of socket, whole runs of the command that has the log open; against: entries/s against the first of\n\
             the case, round by round; CPU ns: of the process that appends, all its threads; p50, p99, max: of thesis, how long a batch of 4096 takes to be\n\
             appended; of socket, from sending a batch of 100 until its client knows that it is durable\n\n",
        );
    }
}

/// Of whatever calls of the run were timed.
fn latency(run: &Contender, percentile: &str) -> Option<f64> {
    let kinds = run.rounds.iter().flat_map(|round| round.latencies.keys()).collect::<BTreeSet<_>>();
    run.median(&format!("{}_{percentile}_ns", kinds.first()?))
}
