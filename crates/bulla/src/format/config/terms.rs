//! Which `[log]` a log goes on with.

use crate::format::event::Event;
use bulla_proof::hash::Hash;

/// The digest of `[log]` that the last epoch was begun with, and the one that the next epoch may be begun with
/// instead: what the last `configured` event since then says.
///
/// Whoever opens the log and whoever verifies it go by the same rule: an epoch has the one digest or the other, and
/// with it everything begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) current: Hash,
    pub(crate) next: Hash,
}

impl Terms {
    /// Those of an epoch with this digest, or of a log without any.
    pub(crate) fn of(digest: Hash) -> Self {
        Terms { current: digest, next: digest }
    }

    /// Whether an epoch with this digest may follow.
    pub(crate) fn admit(&self, digest: Hash) -> bool {
        digest == self.current || digest == self.next
    }

    /// Takes an event in. One that speaks of another `[log]` than the current one allows nothing.
    pub(crate) fn take(&mut self, event: &Event) {
        if let Some((before, after)) = event.configures()
            && before == self.current
        {
            self.next = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(before: u8, after: u8) -> Event {
        Event::configured(Hash([before; 32]), Hash([after; 32]), vec!["recipients".to_owned()])
    }

    #[test]
    fn an_event_allows_one_other_digest_from_the_current_one() {
        let mut terms = Terms::of(Hash([1; 32]));
        terms.take(&event(2, 3));
        assert_eq!(terms, Terms::of(Hash([1; 32])), "it speaks of another configuration");
        terms.take(&event(1, 2));
        terms.take(&event(2, 4));
        assert!(terms.admit(Hash([1; 32])) && terms.admit(Hash([2; 32])), "the old one, or the new one");
        assert!(!terms.admit(Hash([4; 32])), "no epoch has had the second one yet");
        terms.take(&event(1, 3));
        assert!(!terms.admit(Hash([2; 32])) && terms.admit(Hash([3; 32])), "the last event counts");
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let spelled = |after: String| Event::Configured {
            before: Hash([1; 32]).to_string(),
            after,
            changed: Vec::new(),
        };
        for wrong in ["0a".repeat(31), "0A".repeat(32), "0a".repeat(33), "zz".repeat(32), "é".repeat(32)] {
            let mut terms = Terms::of(Hash([1; 32]));
            terms.take(&spelled(wrong));
            assert_eq!(terms, Terms::of(Hash([1; 32])));
        }
        let mut terms = Terms::of(Hash([1; 32]));
        terms.take(&spelled("0a".repeat(32)));
        assert!(terms.admit(Hash([10; 32])));
    }
}
