//! What is told of numbers, and that the rules of the format hold for it.

use super::format::read;
use super::*;
use proptest::prelude::*;

fn metric(name: &'static str, labels: &'static [(&'static str, &'static str)], value: Value) -> Metric {
    Metric { name, help: "What it is.", labels, value }
}

#[test]
fn metrics_are_told_by_family() {
    let clients = |outcome, count| metric("bulla_proxy_clients_total", outcome, Value::Counter(count));
    let metrics = [
        clients(&[("outcome", "accepted")], 7),
        Metric {
            name: "bulla_proxy_memory_bytes",
            help: "A \\ and\na line.",
            labels: &[("a", "\"\\\n"), ("b", "")],
            value: Value::Gauge(0.5),
        },
        // Of the first family, though another is between them.
        clients(&[("outcome", "refused")], u64::MAX),
        metric("bulla_proxy_up", &[], Value::Gauge(f64::NEG_INFINITY)),
    ];
    let expected = r#"# HELP bulla_proxy_clients_total What it is.
# TYPE bulla_proxy_clients_total counter
bulla_proxy_clients_total{outcome="accepted"} 7
bulla_proxy_clients_total{outcome="refused"} 18446744073709551615
# HELP bulla_proxy_memory_bytes A \\ and\na line.
# TYPE bulla_proxy_memory_bytes gauge
bulla_proxy_memory_bytes{a="\"\\\n",b=""} 0.5
# HELP bulla_proxy_up What it is.
# TYPE bulla_proxy_up gauge
bulla_proxy_up -Inf
"#;
    assert_eq!(exposition(&metrics), expected);
    assert_eq!(read(expected).unwrap().len(), 4);
    assert_eq!(exposition(&[]), "");
}

#[test]
fn a_histogram_counts_how_long_things_took() {
    let histogram = Histogram::default();
    for nanoseconds in [0, 50_000, 50_001, 1_000_000, 10_000_000_000, 10_000_000_001] {
        histogram.observe(Duration::from_nanos(nanoseconds));
    }
    let other = Histogram::default();
    other.observe(Duration::from_micros(60));
    let mut both = histogram.distribution();
    both.add(&other.distribution());
    let text = exposition(&[metric("bulla_proxy_x_seconds", &[("mode", "async")], Value::Histogram(both))]);
    let expected = [
        ("0.00005", 2),
        ("0.0001", 4),
        ("0.00025", 4),
        ("0.0005", 4),
        ("0.001", 5),
        ("0.0025", 5),
        ("0.005", 5),
        ("0.01", 5),
        ("0.025", 5),
        ("0.05", 5),
        ("0.1", 5),
        ("0.25", 5),
        ("0.5", 5),
        ("1", 5),
        ("2.5", 5),
        ("5", 5),
        ("10", 6),
        ("+Inf", 7),
    ];
    let mut lines = text.lines().skip(2);
    for (bound, count) in expected {
        let expected = format!("bulla_proxy_x_seconds_bucket{{mode=\"async\",le=\"{bound}\"}} {count}");
        assert_eq!(lines.next(), Some(expected.as_str()));
    }
    assert_eq!(lines.next(), Some("bulla_proxy_x_seconds_sum{mode=\"async\"} 20.001160002"));
    assert_eq!(lines.next(), Some("bulla_proxy_x_seconds_count{mode=\"async\"} 7"));
    assert_eq!(lines.next(), None);
    read(&text).unwrap();
    for (bound, written) in BOUNDS {
        assert_eq!(written.parse::<f64>().unwrap(), bound.as_secs_f64());
    }
}

/// Else the tests that read with it would show nothing.
#[test]
fn the_reader_refuses_what_breaks_a_rule() {
    let good = "# HELP a_total x\n# TYPE a_total counter\na_total{b=\"c\"} 1\n";
    read(good).unwrap();
    for (bad, rule) in [
        (good.trim_end().to_owned(), "the last line has no end"),
        (good.repeat(2), "a family comes twice"),
        (good.replace("a_total", "a"), "a counter's name ends with _total"),
        (good.replace("HELP", "help"), "a family begins with HELP"),
        (good.replace("# TYPE", "#TYPE"), "TYPE comes behind HELP"),
        (good.replace("counter", "meter"), "a type that is none"),
        (good.replace("a_total{", "b_total{"), "a sample of another family"),
        (good.replace("} 1", "} -1"), "a sample that its type has not"),
        (good.replace("} 1", "} 1 2"), "labels that are none"),
        (good.replace("} 1", "} one"), "a value that is none"),
        (good.replace("\"c\"", "c"), "labels that are none"),
        (good.replace("c\"", "\\c\""), "labels that are none"),
        (good.replace("b=\"c\"", "b=\"c\",b=\"d\""), "a label twice"),
        (good.replace("b=\"c\"", "le=\"1\""), "a label twice, or `le`"),
        (good.to_owned() + "a_total{b=\"c\"} 2\n", "a sample comes twice"),
        ("# HELP a x\n# TYPE a gauge\n".to_owned(), "a family without samples"),
        ("# HELP a x\n# TYPE a histogram\na_sum 1\na_count 1\n".to_owned(), "the last bucket has everything"),
        (
            "# HELP a x\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n".to_owned(),
            "buckets of a histogram grow",
        ),
        (
            "# HELP a x\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 2\n".to_owned(),
            "the last bucket has everything",
        ),
    ] {
        let said = read(&bad).unwrap_err();
        assert!(said.starts_with(rule), "{said}\n{bad}");
    }
}

proptest! {
    #[test]
    fn every_number_comes_back(counters: [u64; 3], gauges: [f64; 3], took: Vec<u64>) {
        const LABELS: [&[(&str, &str)]; 3] = [&[], &[("kind", "a\\\"\n")], &[("kind", "b")]];
        let histogram = Histogram::default();
        for nanoseconds in &took {
            histogram.observe(Duration::from_nanos(*nanoseconds));
        }
        let of_three = |index: usize| [
            metric("c_total", LABELS[index], Value::Counter(counters[index])),
            metric("g", LABELS[index], Value::Gauge(gauges[index])),
            metric("h_seconds", LABELS[index], Value::Histogram(histogram.distribution())),
        ];
        let text = exposition(&[of_three(0), of_three(1), of_three(2)].concat());
        let samples = read(&text).map_err(TestCaseError::fail)?;
        for (index, labels) in ["", "{kind=\"a\\\\\\\"\\n\"}", "{kind=\"b\"}"].into_iter().enumerate() {
            prop_assert_eq!(samples[&format!("c_total{labels}")], counters[index] as f64);
            let gauge = samples[&format!("g{labels}")];
            prop_assert!(gauge == gauges[index] || gauge.is_nan() && gauges[index].is_nan());
            prop_assert_eq!(samples[&format!("h_seconds_count{labels}")], took.len() as f64);
        }
    }
}
