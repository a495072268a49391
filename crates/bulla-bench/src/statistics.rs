//! Figures of several rounds.

use serde::{Deserialize, Serialize};

/// The middle of several figures and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// `None` where there are no figures. The median of an even number of them is the mean of the two in the middle.
pub(crate) fn summarise(figures: impl IntoIterator<Item = f64>) -> Option<Summary> {
    let mut figures = figures.into_iter().collect::<Vec<_>>();
    figures.sort_by(f64::total_cmp);
    let (least, most) = (*figures.first()?, *figures.last()?);
    let half = figures.len() / 2;
    let median =
        if figures.len() % 2 == 1 { figures[half] } else { (figures[half - 1] + figures[half]) / 2.0 };
    Some(Summary { median, least, most })
}

/// As many whole things as there are; a figure that is none counts as no thing.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) fn whole(figure: f64) -> u64 {
    figure as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        assert_eq!(summarise([]), None);
        assert_eq!(summarise([3.0, 9.0, 1.0]), Some(Summary { median: 3.0, least: 1.0, most: 9.0 }));
        assert_eq!(summarise([4.0, 1.0, 2.0, 100.0]), Some(Summary { median: 3.0, least: 1.0, most: 100.0 }));
    }
}
