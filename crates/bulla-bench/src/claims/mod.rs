//! What Bulla is meant to reach, against what was measured.

pub(crate) mod languages;
pub(crate) mod proxy;

use crate::contest::{Case, Contender};
use crate::latency::COPY_BESIDE;
use crate::measure::figure;
use crate::suite::{BALANCED, BULLA, CONVENTIONAL, MAX, name};
use bulla_workload::Workload;
use serde::{Deserialize, Serialize};

/// Bytes of a MiB, in MB.
const MB: f64 = 1.048_576;

/// One thing to reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) case: String,
    pub(crate) about: String,
    pub(crate) value: f64,
    pub(crate) least: Option<f64>,
    pub(crate) most: Option<f64>,
    pub(crate) holds: bool,
}

/// The claims about the cases that were measured. What was not measured is not claimed.
pub(crate) fn check(cases: &[Case]) -> Vec<Claim> {
    let mut claims = Claims { cases, checked: Vec::new() };
    let (rate, bytes) = (figure::RATE, figure::DISK);
    for (case, faster, smaller) in [
        (name::GDPR_OS, 4.5, 0.6),
        (Workload::Gdpr.name(), 4.0, 1.0),
        (Workload::Gdpr50.name(), 3.0, 0.8),
        (Workload::Json.name(), 1.3, 0.8),
        (Workload::WebSubjects.name(), 1.5, 0.6),
    ] {
        claims.against(case, rate, "entries/s against conventional", |ratio| {
            (ratio >= faster, Some(faster), None)
        });
        claims.against(case, bytes, "bytes against conventional", |ratio| {
            (ratio <= smaller, None, Some(smaller))
        });
    }
    for (case, most) in [(name::WEB_ONE, 300.0), (Workload::WebAdversarial.name(), 1200.0)] {
        claims.at_most(case, "CPU per entry, ns", most, |run| run.median(figure::CPU));
    }
    let over = |one: &'static str, other: &'static str| {
        move |run: &Contender| Some(run.median(one)? / run.median(other)?)
    };
    claims.at_most(
        name::TENANTS_COMMAND,
        "bytes against gzip -1 of the lines",
        1.0,
        over(bytes, figure::GZIP),
    );
    let memory = |run: &Contender| Some(run.median(figure::MEMORY)? * MB);
    claims.at_most(name::WEB_ONE, "bytes against the entropy bound", 1.10, over(bytes, figure::BOUND));
    claims.at_most(name::WEB_ONE, "memory, MB", 105.0, memory);
    for (case, most) in [(Workload::WebAdversarial.name(), 0.25), (name::ADVERSARIAL_MAX, 1.0 / 7.0)] {
        claims.at_most(case, "bytes against text", most, over(bytes, figure::TEXT));
        claims.at_most(case, "memory, MB", 256.0, memory);
    }
    claims.at_most(Workload::Gdpr.name(), "share for integrity", 0.01, |run| run.median(figure::INTEGRITY));
    claims.at_most(Workload::Web.name(), "share for integrity", 0.03, |run| run.median(figure::INTEGRITY));
    for case in cases {
        claims.at_least(&case.name, "verified/s against entries/s", 1.0, |run| {
            Some(run.ratio(figure::VERIFIED, rate)?.median)
        });
    }
    claims.writers();
    for (case, most) in [(name::SLOW, 90.0), (name::SLOW_PLAIN, 60.0)] {
        claims.at_most(case, "bytes per entry", most, |run| run.median(bytes));
    }
    for case in [name::LATENCY_SMALL, name::LATENCY_LARGE] {
        claims.at_most(case, "append p50 against a copy", 3.0, over("append_p50_ns", "copy_p50_ns"));
        claims.at_most(case, "append p99.9 against a copy beside busy threads", 10.0, |run| {
            Some(run.ratio("append_p99_9_ns", &format!("{COPY_BESIDE}_p99_9_ns"))?.median)
        });
    }
    for (profile, zstd, about) in [
        (BALANCED, "zstd_3_bytes_per_entry", "balanced: bytes against zstd -3"),
        (MAX, "zstd_19_bytes_per_entry", "max: bytes against zstd -19"),
    ] {
        let case = claims.case(name::ACCESS);
        if let Some(value) = case.and_then(|case| over(bytes, zstd)(case.contender(profile)?)) {
            claims.push(name::ACCESS, about, value, (value <= 1.0, None, Some(1.0)));
        }
    }
    claims.checked
}

struct Claims<'a> {
    cases: &'a [Case],
    checked: Vec<Claim>,
}

impl<'a> Claims<'a> {
    fn case(&self, name: &str) -> Option<&'a Case> {
        self.cases.iter().find(|case| case.name == name)
    }

    fn push(
        &mut self,
        case: &str,
        about: &str,
        value: f64,
        (holds, least, most): (bool, Option<f64>, Option<f64>),
    ) {
        let (case, about) = (case.to_owned(), about.to_owned());
        self.checked.push(Claim { case, about, value, least, most, holds });
    }

    fn against(
        &mut self,
        case: &str,
        figure: &str,
        about: &str,
        check: impl Fn(f64) -> (bool, Option<f64>, Option<f64>),
    ) {
        let ratio = self.case(case).and_then(|case| case.ratio(BULLA, CONVENTIONAL, figure));
        if let Some(ratio) = ratio {
            self.push(case, about, ratio.median, check(ratio.median));
        }
    }

    fn at_most(&mut self, case: &str, about: &str, most: f64, value: impl Fn(&Contender) -> Option<f64>) {
        if let Some(value) = self.case(case).and_then(|case| value(case.contender(BULLA)?)) {
            self.push(case, about, value, (value <= most, None, Some(most)));
        }
    }

    fn at_least(&mut self, case: &str, about: &str, least: f64, value: impl Fn(&Contender) -> Option<f64>) {
        if let Some(value) = self.case(case).and_then(|case| value(case.contender(BULLA)?)) {
            self.push(case, about, value, (value >= least, Some(least), None));
        }
    }

    /// That a second writer makes an entry take no more of the processors, nor less.
    fn writers(&mut self) {
        let ratio =
            self.case(name::GDPR_WRITERS).and_then(|case| case.ratio("2 writers", "1 writers", figure::CPU));
        if let Some(ratio) = ratio {
            let value = ratio.median;
            let holds = (0.9..=1.1).contains(&value);
            self.push(name::GDPR_WRITERS, "CPU per entry, 2 against 1", value, (holds, Some(0.9), Some(1.1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::tests::case;

    fn held(cases: &[Case], about: &str) -> Vec<bool> {
        check(cases).iter().filter(|claim| claim.about == about).map(|claim| claim.holds).collect()
    }

    #[test]
    fn a_claim_holds_up_to_its_bound() {
        for (bulla, holds) in [(130.0, true), (129.0, false)] {
            let cases = [case("json", figure::RATE, &[(BULLA, &[bulla]), (CONVENTIONAL, &[100.0])])];
            assert_eq!(held(&cases, "entries/s against conventional"), [holds]);
        }
        for (bytes, holds) in [(90.0, true), (90.1, false)] {
            assert_eq!(
                held(&[case(name::SLOW, figure::DISK, &[(BULLA, &[bytes])])], "bytes per entry"),
                [holds]
            );
        }
        for (second, holds) in [(1.09, true), (1.12, false), (0.8, false)] {
            let cases =
                [case(name::GDPR_WRITERS, figure::CPU, &[("1 writers", &[1.0]), ("2 writers", &[second])])];
            assert_eq!(held(&cases, "CPU per entry, 2 against 1"), [holds]);
        }
    }

    #[test]
    fn what_is_of_one_run_is_compared_round_by_round() {
        // The medians are 10 and 10; of the rounds two are slower to verify than to append.
        for (name, holds) in [("tenants", false), ("anything that is verified", false)] {
            let mut slow = case(name, figure::RATE, &[(BULLA, &[10.0, 100.0, 1.0])]);
            slow.contenders[0].add(figure::VERIFIED, &[9.0, 10.0, 100.0]);
            assert_eq!(held(&[slow], "verified/s against entries/s"), [holds]);
        }
        for (append, holds) in [(1000.0, true), (1001.0, false)] {
            let mut latency = case(name::LATENCY_SMALL, "append_p99_9_ns", &[(BULLA, &[append])]);
            latency.contenders[0].add("copy_beside_p99_9_ns", &[100.0]);
            assert_eq!(held(&[latency], "append p99.9 against a copy beside busy threads"), [holds]);
        }
    }

    #[test]
    fn what_was_not_measured_is_not_claimed() {
        assert!(check(&[]).is_empty());
        assert!(check(&[case("json", figure::RATE, &[(BULLA, &[1.0])])]).is_empty());
    }
}
