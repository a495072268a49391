//! Entropies, in bits.

use std::f64::consts::{LOG2_E, TAU};

/// Of a choice of one of `count`.
pub(crate) fn uniform(count: impl Into<f64>) -> f64 {
    count.into().log2()
}

/// Of one choice by these weights.
pub(crate) fn weighted(weights: impl Iterator<Item = f64> + Clone) -> f64 {
    let total = weights.clone().sum::<f64>();
    weights.map(|weight| weight / total).map(|share| -share * share.log2()).sum()
}

/// What the order of `count` different things says, log₂ n!, by Stirling's series; off by less than 10⁻⁵ from ten up.
pub(crate) fn order(count: u32) -> f64 {
    let count = f64::from(count);
    (TAU * count).log2() / 2.0 + count * (count.log2() - LOG2_E) + LOG2_E / (12.0 * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies_are_those_of_the_textbook() {
        assert!((uniform(1024) - 10.0).abs() < 1e-12);
        assert!((weighted([2.0, 1.0].into_iter()) - 0.918_296).abs() < 1e-6);
        let counted = (1..=20).map(|factor| f64::from(factor).log2()).sum::<f64>();
        assert!((order(20) - counted).abs() < 1e-5);
    }
}
