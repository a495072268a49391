//! Which versions of `[log]` the next epoch of a log may be begun with.

use crate::format::event::Event;
use bulla_proof::hash::Hash;

/// The digests of `[log]` that the next epoch may be begun with: the one that the last epoch was begun with, and the one that
/// the last `configured` event since then announced, if there was one.
///
/// Whoever opens the log and whoever verifies it go by this rule. Once an epoch has begun, with either digest, only that one is
/// allowed until another event announces a change from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllowedConfig {
    /// Of the last epoch.
    pub(crate) current: Hash,
    /// What a change since then makes of it; the same as `current` without a change.
    pub(crate) next: Hash,
}

impl AllowedConfig {
    /// What is allowed after an epoch with this digest, and in a new log that is configured so.
    pub(crate) fn of(digest: Hash) -> Self {
        AllowedConfig { current: digest, next: digest }
    }

    /// Whether an epoch with this digest may follow.
    pub(crate) fn admit(&self, digest: Hash) -> bool {
        digest == self.current || digest == self.next
    }

    /// Takes note of an event. An announcement that does not start from the current `[log]` changes nothing.
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
        let mut allowed = AllowedConfig::of(Hash([1; 32]));
        allowed.take(&event(2, 3));
        assert_eq!(allowed, AllowedConfig::of(Hash([1; 32])), "it speaks of another configuration");
        allowed.take(&event(1, 2));
        allowed.take(&event(2, 4));
        assert!(allowed.admit(Hash([1; 32])) && allowed.admit(Hash([2; 32])), "the old one, or the new one");
        assert!(!allowed.admit(Hash([4; 32])), "no epoch has had the second one yet");
        allowed.take(&event(1, 3));
        assert!(!allowed.admit(Hash([2; 32])) && allowed.admit(Hash([3; 32])), "the last event counts");
    }

    #[test]
    fn a_digest_has_one_spelling() {
        let spelled = |after: String| Event::Configured {
            before: Hash([1; 32]).to_string(),
            after,
            changed: Vec::new(),
        };
        for wrong in ["0a".repeat(31), "0A".repeat(32), "0a".repeat(33), "zz".repeat(32), "é".repeat(32)] {
            let mut allowed = AllowedConfig::of(Hash([1; 32]));
            allowed.take(&spelled(wrong));
            assert_eq!(allowed, AllowedConfig::of(Hash([1; 32])));
        }
        let mut allowed = AllowedConfig::of(Hash([1; 32]));
        allowed.take(&spelled("0a".repeat(32)));
        assert!(allowed.admit(Hash([10; 32])));
    }
}
