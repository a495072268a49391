//! What the proxy is meant to reach: medians, over the rounds, of what two runs of one round are to each other.

use super::{Claim, Claims};
use crate::contest::Case;
use crate::proxied::CONNECTIONS;
use crate::proxied::figure::{COMMAND_RATE, SYNC};
use crate::statistics::summarise;
use crate::suite::proxy::{BEFORE_REPLY, HAPROXY, MAPPED, PROXY, UNMAPPED, name};

/// The claims about the cases that were measured.
pub(crate) fn check(cases: &[Case]) -> Vec<Claim> {
    let mut claims = Claims { cases, checked: Vec::new() };
    for (case, contender, least) in
        [(name::EACH, MAPPED, 0.95), (name::PIPELINE, MAPPED, 0.6), (name::PIPELINE, UNMAPPED, 0.8)]
    {
        let ratio = claims.case(case).and_then(|case| case.ratio(contender, HAPROXY, COMMAND_RATE));
        if let Some(value) = ratio.map(|ratio| ratio.median) {
            let about = format!("{contender}: commands/s against haproxy");
            claims.push(case, &about, value, (value >= least, Some(least), None));
        }
    }
    claims.before_reply();
    for (case, figure, about, most) in [
        (name::LATENCY, "added_p50_us", "p50 over that of haproxy, us", 30.0),
        (name::LATENCY, "added_p99_us", "p99 over that of haproxy, us", 200.0),
        (name::MEMORY, "idle_extra_mb", "memory for idle connections, MB", 64.0),
        (name::MEMORY, "value_extra_mb", "memory for a great value, MB", 16.0),
    ] {
        let value = claims.case(case).and_then(|case| case.contender(PROXY)?.median(figure));
        if let Some(value) = value {
            claims.push(case, about, value, (value <= most, None, Some(most)));
        }
    }
    claims.checked
}

impl Claims<'_> {
    /// Against as many commands a second as there would be if all clients waited together: for what their commands take without a sync,
    /// and then for one sync.
    fn before_reply(&mut self) {
        const LEAST: f64 = 0.7;
        let Some(case) = self.case(name::EACH) else { return };
        let (Some(before_reply), Some(mapped)) = (case.contender(BEFORE_REPLY), case.contender(MAPPED))
        else {
            return;
        };
        let ratios = before_reply.rounds.iter().zip(&mapped.rounds).filter_map(|(before_reply, mapped)| {
            let clients = f64::from(CONNECTIONS);
            let together = clients / mapped.get(COMMAND_RATE)? + before_reply.get(SYNC)? / 1e6;
            Some(before_reply.get(COMMAND_RATE)? / (clients / together))
        });
        if let Some(value) = summarise(ratios).map(|ratio| ratio.median) {
            let about = format!("{BEFORE_REPLY}: commands/s against one sync for all clients");
            self.push(name::EACH, &about, value, (value >= LEAST, Some(LEAST), None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::tests::case;

    #[test]
    fn a_ratio_is_the_median_of_those_within_rounds() {
        let rounds: [(&str, &[f64]); 2] = [(HAPROXY, &[100.0, 10.0, 50.0]), (MAPPED, &[94.0, 10.0, 49.0])];
        let claims = check(&[case(name::EACH, COMMAND_RATE, &rounds)]);
        assert_eq!(claims.len(), 1, "{claims:?}");
        assert_eq!((claims[0].value, claims[0].holds), (0.98, true));
        let claims = check(&[case(name::EACH, COMMAND_RATE, &[(HAPROXY, &[100.0]), (MAPPED, &[94.0])])]);
        assert!(!claims[0].holds, "{claims:?}");
    }

    #[test]
    fn waiting_for_a_sync_is_held_against_one_sync_for_all() {
        // Fifty commands take a millisecond, and a sync another one: 25,000 a second, of which 70 % are 17,500.
        for (rate, holds) in [(17_501.0, true), (17_499.0, false)] {
            let mut case = case(name::EACH, COMMAND_RATE, &[(MAPPED, &[50_000.0]), (BEFORE_REPLY, &[rate])]);
            case.contenders[1].add(SYNC, &[1000.0]);
            assert_eq!(check(&[case]).iter().map(|claim| claim.holds).collect::<Vec<_>>(), [holds]);
        }
    }

    #[test]
    fn what_it_may_take_is_taken_up_to_the_bound() {
        for (figure, most) in [("added_p50_us", 30.0), ("added_p99_us", 200.0)] {
            for (value, holds) in [(most, true), (most + 0.1, false)] {
                let claims = check(&[case(name::LATENCY, figure, &[(PROXY, &[value])])]);
                assert_eq!((claims.len(), claims[0].holds), (1, holds));
            }
        }
    }
}
