//! How much of a sweep a test does.

/// Whether sweeps are to be in full, as `make sweep` has them. Without it a change is held against each damaged byte at the
/// level that finds it, and against every few crash points once each.
pub fn in_full() -> bool {
    std::env::var_os("BULLA_SWEEP").is_some()
}

/// Of points that are alike: all of them, or one in every `nth` that follow each other, each time at the next place among them,
/// so that what goes by a point's number meets all kinds.
pub fn one_in<T>(nth: usize, points: impl IntoIterator<Item = T>) -> Vec<T> {
    let points = points.into_iter().enumerate();
    points.filter(|(at, _)| in_full() || at % nth == at / nth % nth).map(|(_, point)| point).collect()
}

/// Of the ways in which something can be tried: all of them, or that one whose turn it is at this point.
///
/// # Panics
/// Where there is no way.
pub fn in_turn<T: Copy>(ways: &[T], point: u64) -> Vec<T> {
    let turn = usize::try_from(point % ways.len() as u64).expect("it is below a length");
    if in_full() { ways.to_vec() } else { vec![ways[turn]] }
}
