//! The paths of plain traffic.

use crate::entropy::{order, uniform};
use crate::pool::Pool;
use crate::random::Random;

pub(super) const COUNT: u32 = 1000;

const EXTENSIONS: [&str; 4] = ["png", "pdf", "html", "jpeg"];
const SECTIONS: [&str; 16] = [
    "products",
    "services",
    "customers",
    "documentation",
    "community",
    "developers",
    "downloads",
    "newsroom",
    "support",
    "careers",
    "solutions",
    "resources",
    "partners",
    "security",
    "pricing",
    "investors",
];
/// Pages are two of these with a dash, so that a path has 20 to 40 characters.
const WORDS: [&str; 32] = [
    "overview", "getting", "started", "release", "notes", "contact", "address", "annual", "report", "terms",
    "privacy", "cookies", "history", "archive", "summary", "index", "feature", "gallery", "account",
    "profile", "billing", "invoice", "payment", "shipping", "returns", "warranty", "schedule", "training",
    "webinar", "partner", "roadmap", "changes",
];

pub(super) fn draw(random: &mut Random) -> Pool {
    Pool::draw(COUNT, random, |number, random| match number % 2 {
        0 => format!("/path_{:04}.{}", random.below(10_000), random.choose(&EXTENSIONS)),
        _ => {
            format!("/{}/{}-{}.html", random.choose(&SECTIONS), random.choose(&WORDS), random.choose(&WORDS))
        }
    })
}

/// The entropy of the pool as a set, in bits; that its paths are different is neglected.
pub(super) fn pool_entropy() -> f64 {
    let half = f64::from(COUNT / 2);
    half * (uniform(10_000) + uniform(4)) + half * (uniform(16) + 2.0 * uniform(32)) - order(COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_of_their_lengths() {
        let pool = draw(&mut Random::for_pools(1));
        for path in (0..pool.len()).map(|index| pool.get(index)) {
            let range = if path.starts_with("/path_") { 14..=15 } else { 20..=40 };
            assert!(range.contains(&path.len()), "{path}");
        }
    }
}
