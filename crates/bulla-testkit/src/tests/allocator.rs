//! The allocator counts.

use crate::allocator::{Counting, most_held_here};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn what_is_held_at_most_is_counted_and_nothing_is_made_of_nothing() {
    let (kept, most) = most_held_here(|| {
        let content = (0..1 << 16).map(|i| (i % 251) as u8).collect::<Vec<_>>();
        drop(content.clone());
        content
    });
    assert!(kept.iter().zip(0..).all(|(&byte, i)| usize::from(byte) == i % 251), "memory is what it was");
    assert_eq!(most, 2 << 16);
    assert_eq!(most_held_here(|| ()).1, 0);
}
