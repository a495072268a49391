//! Figures as text.

/// A whole number, its thousands set apart.
pub(super) fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for start in (first..digits.len()).step_by(3) {
        if !text.is_empty() && text != "-" {
            text.push(',');
        }
        text.push_str(&digits[start..start + 3]);
    }
    text
}

/// Three significant digits, or all of a number that has more before its point.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => whole(value),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Nanoseconds in the unit that suits them.
pub(super) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{} ns", short(ns)),
        ns if ns < 1e6 => format!("{} µs", short(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", short(ns / 1e6)),
        ns => format!("{} s", short(ns / 1e9)),
    }
}

/// Without zeros behind the point, and without the point where nothing is left.
pub(super) fn trimmed(text: &str) -> String {
    let (number, unit) = text.split_once(' ').map_or((text, None), |(number, unit)| (number, Some(unit)));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    unit.map_or_else(|| number.to_owned(), |unit| format!("{number} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        for (value, text) in [
            (0.0, "0"),
            (0.001_234, "0.0012"),
            (0.25, "0.25"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1234.0, "1,234"),
            (-1234.0, "-1,234"),
            (-123.0, "-123"),
            (12_345_678.0, "12,345,678"),
        ] {
            assert_eq!(short(value), text);
        }
        for (text, plain) in
            [("10.0", "10"), ("1.00 ms", "1 ms"), ("100", "100"), ("0.10", "0.1"), ("10 s", "10 s")]
        {
            assert_eq!(trimmed(text), plain);
        }
        assert_eq!(time(45.6), "45.6 ns");
        assert_eq!(time(1_500_000.0), "1.50 ms");
    }
}
