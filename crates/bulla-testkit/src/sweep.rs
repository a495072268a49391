//! How much of a sweep a test does.

/// Whether sweeps are to be in full, as `make sweep` has them. Without it a change is held against each damaged byte at the
/// level that finds it, and against each crash point once.
pub fn in_full() -> bool {
    std::env::var_os("BULLA_SWEEP").is_some()
}

/// Of the ways in which something can be tried: all of them, or that one whose turn it is at this point.
///
/// # Panics
/// Where there is no way.
pub fn in_turn<T: Copy>(ways: &[T], point: u64) -> Vec<T> {
    let turn = usize::try_from(point % ways.len() as u64).expect("it is below a length");
    if in_full() { ways.to_vec() } else { vec![ways[turn]] }
}
