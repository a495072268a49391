//! Numbers distinct values in the order they are met. At most [`MAX_DISTINCT`] of them, and no look-up takes more
//! than [`MAX_PROBES`] steps: with hashes that anyone can predict, hostile values cost a dictionary, not time.

/// The most distinct values.
pub(super) const MAX_DISTINCT: usize = 1 << 16;
/// The most steps of a look-up. With honest values at half load the longest is near 60.
const MAX_PROBES: usize = 256;
const SMALLEST: usize = 512;

#[derive(Default)]
pub(super) struct Table {
    /// The hash's low half and one more than the number, or zeros; linear probing from the hash's high bits.
    slots: Vec<(u32, u32)>,
    hashes: Vec<u64>,
}

impl Table {
    pub(super) fn clear(&mut self) {
        self.hashes.clear();
        self.slots.clear();
        self.slots.resize(SMALLEST, (0, 0));
    }

    /// The number of distinct values.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.hashes.len()
    }

    /// The number of the value with this hash that is the `same`; a new value gets the next number.
    /// `None` when the table will not take it.
    #[inline]
    pub(super) fn number(&mut self, hash: u64, same: impl Fn(usize) -> bool) -> Option<usize> {
        let tag = low_half(hash);
        let mut slot = self.home(hash);
        for _ in 0..MAX_PROBES {
            match self.slots[slot] {
                (_, 0) => return self.insert(slot, hash),
                (found, number) if found == tag && same(number as usize - 1) => {
                    return Some(number as usize - 1);
                }
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
        None
    }

    /// The number of the value with this hash that is the `same`, where it has one.
    #[inline]
    pub(super) fn find(&self, hash: u64, same: impl Fn(usize) -> bool) -> Option<usize> {
        let tag = low_half(hash);
        let slots = self.slots.len();
        let from_home = (0..MAX_PROBES).map(|step| self.slots[(self.home(hash) + step) & (slots - 1)]);
        let met = from_home.take_while(|(_, number)| *number != 0);
        let mut those = met.filter(|(found, number)| *found == tag && same(*number as usize - 1));
        those.next().map(|(_, number)| number as usize - 1)
    }

    fn insert(&mut self, slot: usize, hash: u64) -> Option<usize> {
        let number = self.hashes.len();
        if number == MAX_DISTINCT {
            return None;
        }
        self.hashes.push(hash);
        self.slots[slot] = (low_half(hash), u32::try_from(number + 1).ok()?);
        if self.hashes.len() * 2 > self.slots.len() {
            self.grow()?;
        }
        Some(number)
    }

    fn grow(&mut self) -> Option<()> {
        let larger = self.slots.len() * 4;
        self.slots.clear();
        self.slots.resize(larger, (0, 0));
        for number in 0..self.hashes.len() {
            let hash = self.hashes[number];
            let mut slot = self.home(hash);
            let mut probes = 0;
            while self.slots[slot].1 != 0 {
                slot = (slot + 1) & (larger - 1);
                probes += 1;
                if probes == MAX_PROBES {
                    return None;
                }
            }
            self.slots[slot] = (low_half(hash), u32::try_from(number + 1).ok()?);
        }
        Some(())
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        usize::try_from(hash >> (64 - self.slots.len().ilog2())).unwrap_or(0)
    }
}

/// Whether so few of `met` values have been met before that a dictionary of them is no use. Asked at powers of two.
pub(super) fn is_hopeless(met: usize, distinct: usize) -> bool {
    met >= 1024 && met.is_power_of_two() && met - distinct < met / 32
}

#[inline]
pub(super) fn hash_number(value: u64) -> u64 {
    let mixed = (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

#[inline]
fn low_half(hash: u64) -> u32 {
    const MASK: u64 = u32::MAX as u64;
    u32::try_from(hash & MASK).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_order_of_appearance() {
        let mut table = Table::default();
        for _ in 0..2 {
            table.clear();
            let mut met = Vec::new();
            for value in (0..200_000_u64).map(|i| i * i % 65_521) {
                let number = table.number(hash_number(value), |number| met[number] == value).unwrap();
                assert!(number <= met.len());
                if number == met.len() {
                    met.push(value);
                }
                assert_eq!(met[number], value);
            }
            assert_eq!(table.len(), met.len());
        }
    }

    #[test]
    fn is_limited_in_size_and_in_steps() {
        let mut table = Table::default();
        table.clear();
        let taken = (0..).take_while(|&value| table.number(hash_number(value), |_| false).is_some()).count();
        assert_eq!(taken, MAX_DISTINCT);
        table.clear();
        let taken = (0..10_000).take_while(|_| table.number(7, |_| false).is_some()).count();
        assert!(taken <= MAX_PROBES);
    }
}
