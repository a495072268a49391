//! What other languages are meant to reach: medians, over the rounds, of what two runs of one round are to each other.

use super::{Claim, Claims};
use crate::contest::Case;
use crate::measure::figure::RATE;
use crate::suite::languages::{
    ARROW, C, DICTS, FILE, HANDLER, PARQUET, PIPE, RUST, TABLE, THESIS, WINDOW, name,
};

/// The claims about the cases that were measured.
pub(crate) fn check(cases: &[Case]) -> Vec<Claim> {
    let mut claims = Claims { cases, checked: Vec::new() };
    for case in [name::WEB, name::GDPR] {
        claims.time(case, C, RUST, "C: time against Rust", 1.2);
    }
    for case in name::THESIS {
        claims.rate(case, THESIS, RUST, "thesis's interface: entries/s against Rust", 0.9);
    }
    claims.rate(name::WEB, DICTS, RUST, "Python, dicts: entries/s against Rust", 0.15);
    claims.rate(name::WEB, ARROW, RUST, "Python, Arrow table: entries/s against Rust", 0.7);
    claims.time(name::LOGGING, HANDLER, FILE, "time of a call against FileHandler", 3.0);
    claims.rate(name::QUERY, TABLE, PARQUET, "to an Arrow table: entries/s against export to Parquet", 0.7);
    claims.rate(name::SOCKET, WINDOW, PIPE, "four processes: entries/s against a pipe", 0.5);
    claims.checked
}

impl Claims<'_> {
    fn rate(&mut self, case: &str, one: &str, other: &str, about: &str, least: f64) {
        if let Some(ratio) = self.case(case).and_then(|case| case.ratio(one, other, RATE)) {
            self.push(case, about, ratio.median, (ratio.median >= least, Some(least), None));
        }
    }

    /// Of as many entries.
    fn time(&mut self, case: &str, one: &str, other: &str, about: &str, most: f64) {
        if let Some(ratio) = self.case(case).and_then(|case| case.ratio(other, one, RATE)) {
            self.push(case, about, ratio.median, (ratio.median <= most, None, Some(most)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::tests::case;

    fn held(name: &str, one: (&str, f64), other: (&str, f64)) -> Vec<bool> {
        let case = case(name, RATE, &[(one.0, &[one.1]), (other.0, &[other.1])]);
        check(&[case]).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn bars_hold_up_to_their_bounds() {
        for (name, one, other, least) in [
            (name::THESIS[2], THESIS, RUST, 0.9),
            (name::WEB, DICTS, RUST, 0.15),
            (name::WEB, ARROW, RUST, 0.7),
            (name::QUERY, TABLE, PARQUET, 0.7),
            (name::SOCKET, WINDOW, PIPE, 0.5),
        ] {
            for (rate, holds) in [(least * 1000.0, true), (least * 1000.0 - 0.1, false)] {
                assert_eq!(held(name, (one, rate), (other, 1000.0)), [holds], "{name}, {one}: {rate}");
            }
        }
        for (name, one, other, most) in
            [(name::WEB, C, RUST, 1.2), (name::GDPR, C, RUST, 1.2), (name::LOGGING, HANDLER, FILE, 3.0)]
        {
            // As much slower as it may be, and slower than that.
            for (rate, holds) in [(1000.0, true), (999.0, false)] {
                assert_eq!(held(name, (one, rate), (other, most * 1000.0)), [holds], "{name}, {one}: {rate}");
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_not_claimed() {
        assert!(check(&[]).is_empty());
        assert!(check(&[case(name::SOCKET, RATE, &[(PIPE, &[1.0])])]).is_empty());
    }
}
