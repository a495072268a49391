//! Results as pictures.

use super::format::{short, time, trimmed, whole};
use super::languages::is_here;
use super::svg::{Anchor, COLOURS, Picture, Scale};
use super::tables::{STAGES, is_append, stages_of};
use crate::contest::Case;
use crate::languages::APPENDED;
use crate::measure::figure;
use crate::outcome::{Failure, Outcome};
use crate::results::Results;
use crate::suite::{BULLA, CONVENTIONAL};
use std::path::Path;

const WIDTH: f64 = 820.0;
/// Where bars begin, and how long the longest is.
const LEFT: f64 = 160.0;
const LENGTH: f64 = 560.0;
const TOP: f64 = 62.0;
const BAR: f64 = 14.0;
const GAP: f64 = 12.0;
const PROGRAMS: [(&str, &str); 2] = [(BULLA, COLOURS[0]), (CONVENTIONAL, COLOURS[1])];

/// Writes what there is to plot to a directory.
pub(crate) fn plot(results: &Results, directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory)?;
    let cases = results.cases.iter().filter(|case| is_append(case) && case.contender(BULLA).is_some());
    let cases = cases.collect::<Vec<_>>();
    let plots = [
        ("throughput", bars(&cases, "Entries a second", figure::RATE, None)),
        (
            "bytes",
            bars(&cases, "Bytes on disk an entry", figure::DISK, Some((figure::BOUND, "entropy bound"))),
        ),
        (
            "memory",
            bars(&cases, "Resident memory, MiB, without the entries held ready", figure::MEMORY, None),
        ),
        ("stages", stages(&cases)),
        ("latency", latency(results, "append", "Latency of an append at half load, by percentile")),
        (
            "proxy-latency",
            latency(results, "proxy", "Latency of a command at half load of haproxy, by percentile"),
        ),
        ("languages", ways(results)),
        (
            "batches",
            latency(results, APPENDED, "Latency of a batch of 4096 entries at saturation, by percentile"),
        ),
    ];
    for (name, plot) in plots {
        if let Some(plot) = plot {
            std::fs::write(directory.join(format!("{name}.svg")), plot)?;
        }
    }
    Ok(())
}

/// A bar for each program in each case, on a logarithmic scale, and a mark at another figure of the first program.
fn bars(cases: &[&Case], title: &str, figure: &str, mark: Option<(&str, &str)>) -> Option<String> {
    let runs = || cases.iter().flat_map(|case| &case.contenders);
    let values = runs().flat_map(|run| [run.median(figure), mark.and_then(|(mark, _)| run.median(mark))]);
    let scale = Scale::over(values.flatten(), LEFT, LENGTH)?;
    let height = TOP + cases.iter().map(|case| group_height(case)).sum::<f64>() + 30.0;
    let mut picture = Picture::new(WIDTH, height, title);
    let mut names = PROGRAMS.to_vec();
    names.extend(mark.map(|(_, about)| (about, "#777")));
    picture.legend(LEFT, 46.0, &names);
    for tick in scale.ticks() {
        picture.stroke((scale.at(tick), TOP - 4.0), (scale.at(tick), height - 26.0), "grid");
        picture.text(scale.at(tick), height - 10.0, &trimmed(&short(tick)), Anchor::Middle);
    }
    let mut y = TOP;
    for case in cases {
        let bottom = y + group_height(case) - GAP;
        picture.text(LEFT - 8.0, f64::midpoint(y, bottom) + 4.0, &case.name, Anchor::End);
        for (run, colour) in
            PROGRAMS.iter().filter_map(|(name, colour)| Some((case.contender(name)?, colour)))
        {
            let Some(value) = run.median(figure) else { continue };
            let end = scale.at(value);
            picture.bar(
                LEFT,
                y,
                end - LEFT,
                BAR,
                colour,
                &format!("{}, {}: {}", case.name, run.name, short(value)),
            );
            picture.text(end + 5.0, y + BAR - 3.0, &short(value), Anchor::Start);
            y += BAR;
        }
        let marked = mark.and_then(|(mark, _)| case.contender(BULLA)?.median(mark));
        if let Some(value) = marked {
            picture.stroke(
                (scale.at(value), bottom - BAR * case.contenders.len() as f64 - 2.0),
                (scale.at(value), bottom + 2.0),
                "mark",
            );
        }
        y = bottom + GAP;
    }
    picture.stroke((LEFT, TOP - 4.0), (LEFT, height - 26.0), "axis");
    Some(picture.finish())
}

/// A bar for each way of each case of languages, on a logarithmic scale.
fn ways(results: &Results) -> Option<String> {
    let cases = results.cases.iter().filter(|case| is_here(case)).collect::<Vec<_>>();
    let runs = || cases.iter().flat_map(|case| &case.contenders);
    let scale = Scale::over(runs().filter_map(|run| run.median(figure::RATE)), LEFT, LENGTH - 140.0)?;
    let height = TOP + cases.iter().map(|case| group_height(case)).sum::<f64>() + 30.0;
    let mut picture = Picture::new(WIDTH, height, "Entries a second, from other languages and processes");
    for tick in scale.ticks() {
        picture.stroke((scale.at(tick), TOP - 4.0), (scale.at(tick), height - 26.0), "grid");
        picture.text(scale.at(tick), height - 10.0, &trimmed(&short(tick)), Anchor::Middle);
    }
    let mut y = TOP;
    for case in cases {
        let bottom = y + group_height(case) - GAP;
        picture.text(LEFT - 8.0, f64::midpoint(y, bottom) + 4.0, &case.name, Anchor::End);
        for (run, colour) in case.contenders.iter().zip(COLOURS) {
            if let Some(value) = run.median(figure::RATE) {
                let (end, about) = (scale.at(value), format!("{}: {}", run.name, short(value)));
                picture.bar(LEFT, y, end - LEFT, BAR, colour, &format!("{}, {about}", case.name));
                picture.text(end + 5.0, y + BAR - 3.0, &about, Anchor::Start);
            }
            y += BAR;
        }
        y = bottom + GAP;
    }
    picture.stroke((LEFT, TOP - 4.0), (LEFT, height - 26.0), "axis");
    Some(picture.finish())
}

fn group_height(case: &Case) -> f64 {
    BAR * case.contenders.len() as f64 + GAP
}

/// What each stage takes of a program's processor time.
fn stages(cases: &[&Case]) -> Option<String> {
    let rows = cases
        .iter()
        .flat_map(|case| case.contenders.iter().map(move |run| (case, run, stages_of(run))))
        .filter(|(_, _, stages)| stages.iter().map(|(_, time)| time).sum::<f64>() > 0.0)
        .collect::<Vec<_>>();
    let has = |name: &&str| rows.iter().any(|(_, _, stages)| stages.iter().any(|(stage, _)| stage == name));
    let names = STAGES.into_iter().filter(has).collect::<Vec<_>>();
    let colour = |name: &str| {
        names
            .iter()
            .position(|known| *known == name)
            .map_or(COLOURS[0], |index| COLOURS[index % COLOURS.len()])
    };
    let height = TOP + rows.len() as f64 * (BAR + GAP) + 8.0;
    let mut picture = Picture::new(WIDTH, height, "Processor time of an entry, by stage");
    picture.legend(16.0, 46.0, &names.iter().map(|&name| (name, colour(name))).collect::<Vec<_>>());
    for (index, (case, run, stages)) in rows.iter().enumerate() {
        let (mut x, y) = (LEFT + 90.0, TOP + index as f64 * (BAR + GAP));
        picture.text(x - 8.0, y + BAR - 3.0, &format!("{}: {}", case.name, run.name), Anchor::End);
        let total = stages.iter().map(|(_, time)| time).sum::<f64>();
        for (name, taken) in stages {
            let width = taken / total * (LENGTH - 90.0);
            picture.bar(x, y, width, BAR, colour(name), &format!("{name}: {} ns", short(*taken)));
            x += width;
        }
        picture.text(x + 5.0, y + BAR - 3.0, &format!("{} ns", whole(total)), Anchor::Start);
    }
    (!rows.is_empty()).then(|| picture.finish())
}

/// Latencies by percentile, of the runs that have this kind of them: of the round in the middle by its median.
fn latency(results: &Results, kind: &str, title: &str) -> Option<String> {
    const HEIGHT: f64 = 300.0;
    const BOTTOM: f64 = TOP + HEIGHT;
    const LINE: f64 = 13.0;
    let mut curves = Vec::new();
    for case in &results.cases {
        for run in &case.contenders {
            let mut rounds =
                run.rounds.iter().filter(|round| round.latencies.contains_key(kind)).collect::<Vec<_>>();
            let middle = |round: &&Outcome| round.get(&format!("{kind}_p50_ns")).unwrap_or_default();
            rounds.sort_by(|one, other| middle(one).total_cmp(&middle(other)));
            if let Some(round) = rounds.get(rounds.len() / 2) {
                // Of a case with one contender that goes without saying.
                let name = match case.contenders.len() {
                    1 => case.name.clone(),
                    _ => format!("{}, {}", case.name, run.name),
                };
                curves.extend(round.latencies.iter().map(|(kind, points)| (name.clone(), kind, points)));
            }
        }
    }
    let values = curves.iter().flat_map(|(_, _, points)| points.iter().map(|(_, value)| *value));
    let up = Scale::over(values, BOTTOM, -HEIGHT)?;
    // A percentile stands where its distance from all is: 90, 99, 99.9 equally far apart.
    let across = Scale::over([1.0, 1e5].into_iter(), 90.0, 520.0)?;
    let place = |percentile: f64| across.at(100.0 / (100.0 - percentile).max(1e-3));
    let mut picture = Picture::new(WIDTH, BOTTOM + 40.0, title);
    for tick in up.ticks() {
        picture.stroke((90.0, up.at(tick)), (610.0, up.at(tick)), "grid");
        picture.text(82.0, up.at(tick) + 4.0, &trimmed(&time(tick)), Anchor::End);
    }
    for (percentile, name) in [
        (0.0, "0"),
        (50.0, "50"),
        (90.0, "90"),
        (99.0, "99"),
        (99.9, "99.9"),
        (99.99, "99.99"),
        (100.0, "100"),
    ] {
        picture.stroke((place(percentile), TOP), (place(percentile), BOTTOM), "grid");
        picture.text(place(percentile), BOTTOM + 16.0, name, Anchor::Middle);
    }
    picture.text(350.0, BOTTOM + 34.0, "percentile", Anchor::Middle);
    let mut labels = Vec::new();
    let mut colours = COLOURS.iter().cycle();
    let mut colour = COLOURS[0];
    for (name, kind, points) in &curves {
        // What is only there to compare with has the colour of what is compared.
        let dashed = kind.starts_with("copy");
        if !dashed {
            colour = colours.next().unwrap_or(&COLOURS[0]);
        }
        picture.curve(
            points.iter().map(|(percentile, value)| (place(*percentile), up.at(*value))),
            colour,
            dashed,
        );
        let last = points.last().map_or(BOTTOM, |(_, value)| up.at(*value));
        labels.push((last + 4.0, format!("{name}: {kind}")));
    }
    labels.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = TOP;
    for (wished, label) in labels {
        picture.text(616.0, free.max(wished), &label, Anchor::Start);
        free = free.max(wished) + LINE;
    }
    Some(picture.finish())
}
