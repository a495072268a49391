//! Padmé: how long a plaintext becomes, so that its length tells little about what is in it.
//!
//! Nikitin, Barman, Lueks, Underwood, Hubaux, Ford: "Reducing Metadata Leakage from Encrypted Files and
//! Communication with PURBs", PoPETs 2019(4), algorithm 1. At most 12 % longer, and a length of L bits tells
//! O(log log L) bits.

/// The padded length of `length` bytes.
pub const fn padme(length: usize) -> usize {
    if length < 2 {
        return length;
    }
    let exponent = length.ilog2();
    let kept = if exponent < 2 { 1 } else { exponent.ilog2() + 1 };
    let mask = (1 << (exponent - kept)) - 1;
    length.saturating_add(mask) & !mask
}

#[cfg(test)]
mod tests {
    use super::padme;

    #[test]
    fn known_answers() {
        for (length, padded) in [
            (0, 0),
            (1, 1),
            (2, 2),
            (3, 3),
            (7, 7),
            (8, 8),
            (9, 10),
            (15, 16),
            (17, 18),
            (100, 104),
            (1000, 1024),
            (1025, 1088),
            (65_537, 67_584),
            (1_000_000, 1_015_808),
            (1 << 30, 1 << 30),
            ((1 << 30) + 1, (1 << 30) + (1 << 25)),
        ] {
            assert_eq!(padme(length), padded, "{length}");
        }
    }

    #[test]
    fn pads_by_less_than_an_eighth_and_settles() {
        for length in (1..100_000).chain((1 << 40) - 50..(1 << 40) + 50) {
            let padded = padme(length);
            assert!(padded >= length && padded - length <= length / 8, "{length}");
            assert_eq!(padme(padded), padded, "{length}");
            assert!(padme(length - 1) <= padded, "{length}");
        }
    }
}
