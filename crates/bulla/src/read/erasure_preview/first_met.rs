//! Whether somebody was met before an order was given, or came since.
//!
//! Entries have times of their source's, so that a block does not say when it was committed. Epochs, events and gaps do, by the writing
//! host's clock: what lies before one of these that was made before the order was committed before it, what lies behind one that
//! was made after the order was committed after it. Of what has neither nobody can tell.

use super::certified::Certified;
use crate::scan::lost::LostFrames;
use crate::scan::manifest::{Frames, Manifest};
use bulla_proof::commitment::FrameKind;
use bulla_proof::hash::Hash;
use bulla_proof::order::Order;
use bulla_store::Result;

/// Whether the first entry of a data subject was committed before an order was given, by the clock of the host that writes the log;
/// or, of whom a certificate says that they were erased, whether it is they.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstMet {
    /// It was, or it is.
    Before,
    /// It was committed since: by this name the order means somebody else.
    Since,
    /// Nobody can tell, and why.
    CannotTell(String),
}

/// What frames with the host's time say of an order.
struct Told {
    ordered: i64,
    /// The last frame that was made before it, of those before the first that was made after it.
    before: Option<u64>,
    /// The first frame that was made after it, of those behind the last that was made before it.
    since: Option<u64>,
    /// Whether any was made after it. Where one that was made before it follows, the clock was put back, and of what lies between
    /// nobody can tell.
    is_past: bool,
    /// The first frame that was made in the same second, or after it.
    reached: Option<u64>,
}

impl Told {
    /// Takes in the next frame that has the host's time. What was made in the same second as the order was made neither before
    /// nor after it.
    fn take(&mut self, frame: u64, time: i64) {
        if time >= self.ordered {
            self.reached.get_or_insert(frame);
        }
        if time > self.ordered {
            self.is_past = true;
            self.since.get_or_insert(frame);
        }
        if time < self.ordered {
            self.since = None;
            if !self.is_past {
                self.before = Some(frame);
            }
        }
    }
}

/// What the clock of a log says of an order.
struct Clock(Told);

impl Clock {
    /// What it says of what was ordered, or erased, at that time, in seconds since the epoch.
    fn of(manifest: &Manifest, ordered: i64) -> Result<Self> {
        let mut told = Told { ordered, before: None, since: None, is_past: false, reached: None };
        let mut frames = Frames::new(manifest)?;
        while let Some(placed) = frames.next()? {
            if placed.commitment.kind != FrameKind::Block {
                told.take(placed.commitment.frame, placed.commitment.latest);
            }
        }
        Ok(Clock(told))
    }

    /// What it says of somebody whose first entry is in the block `first`, if any is signed.
    fn first_met(&self, first: Option<u64>) -> FirstMet {
        let Clock(Told { before, since, .. }) = self;
        match first {
            None => FirstMet::CannotTell("no entry of theirs is signed".to_owned()),
            Some(first) if before.is_some_and(|before| first < before) => FirstMet::Before,
            Some(first) if since.is_some_and(|since| since < first) => FirstMet::Since,
            Some(first) => FirstMet::CannotTell(format!(
                "their first entry is in frame {first}, and of the frames that have the host's time none shows whether that was \
                 before the order or after it"
            )),
        }
    }

    /// What it says of somebody whose first entry is in the block `first`, with a number of those who were erased at the time that it was
    /// asked of, as a certificate tells and the log does not: it was put back to before that. The certificate shows that
    /// the log's first `shared` frames are older than the erasure. Of what follows these the clock tells: what the log has
    /// from after it lies behind an epoch that began after it, what it has from before does not.
    fn was_erased(&self, first: Option<u64>, shared: u64) -> FirstMet {
        let Clock(Told { since, reached, .. }) = self;
        match first {
            None => self.first_met(None),
            Some(first) if first < shared => FirstMet::Before,
            Some(first) if since.is_some_and(|since| since < first) => FirstMet::Since,
            Some(first) if reached.is_none_or(|reached| first < reached) => FirstMet::Before,
            Some(first) => FirstMet::CannotTell(format!(
                "their first entry is in frame {first}, and of the frames that have the host's time none shows whether that was \
                 before the erasure that the certificate tells of or after it"
            )),
        }
    }
}

/// What a log and certificates say of whom an order names.
pub(super) struct Judge<'a> {
    /// At the time of the order.
    ordered: Clock,
    /// The certificate of the order, and the clock at the time of that.
    own: Option<(&'a Certified, Clock)>,
    certificates: &'a [Certified],
    /// The hashes of the log's leaves; none where there is no certificate.
    leaves: Vec<Hash>,
}

impl<'a> Judge<'a> {
    pub(super) fn of(manifest: &Manifest, order: &Order, certificates: &'a [Certified]) -> Result<Self> {
        let own = certificates.iter().find(|certified| certified.order == *order);
        let own = own.map(|own| Ok((own, Clock::of(manifest, own.seconds)?))).transpose()?;
        Ok(Judge {
            ordered: Clock::of(manifest, i64::try_from(order.seconds).unwrap_or(i64::MAX))?,
            own,
            certificates,
            leaves: if certificates.is_empty() { Vec::new() } else { manifest.leaves()? },
        })
    }

    /// Whether data subject `number`, whose first entry is in the block `first`, is whom the order means.
    ///
    /// A certificate says it of the numbers that it has. That it lacks one says nothing of whether they came before: another order may have
    /// erased them before this one was carried out. Nobody is said to have come since where their first entry may be in a block that is
    /// `lost`.
    pub(super) fn first_met(&self, number: u64, first: Option<u64>, lost: &LostFrames) -> FirstMet {
        let is_one_lost = first.is_some_and(|first| lost.blocks.first().is_some_and(|lost| *lost < first));
        match self.first_met_here(number, first) {
            FirstMet::Since if is_one_lost => {
                FirstMet::CannotTell(format!("{lost}, and entries of theirs may have been in these"))
            }
            met => met,
        }
    }

    /// The same by the entries that the log has.
    fn first_met_here(&self, number: u64, first: Option<u64>) -> FirstMet {
        let has = |certified: &Certified| certified.numbers.binary_search(&number).is_ok();
        if let Some((own, clock)) = self.own.as_ref().filter(|(own, _)| has(own)) {
            return clock.was_erased(first, own.shared(&self.leaves));
        }
        // Whoever is in frames that were there when an order erased that number is who was erased, whichever order that was.
        let mut others = self.certificates.iter().filter(|other| has(other));
        if first.is_some_and(|first| others.any(|other| first < other.shared(&self.leaves))) {
            return FirstMet::Before;
        }
        match self.ordered.first_met(first) {
            FirstMet::CannotTell(why) if self.own.is_some() => {
                FirstMet::CannotTell(format!("its certificate does not name them, and {why}"))
            }
            met => met,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of the frames from 0 on, of which those that have a time have the host's.
    fn told(times: &[Option<i64>], judge: impl Fn(&Clock, u64) -> FirstMet) -> String {
        let mut told = Told { ordered: 5, before: None, since: None, is_past: false, reached: None };
        for (frame, time) in (0..).zip(times) {
            time.iter().for_each(|time| told.take(frame, *time));
        }
        let clock = Clock(told);
        let blocks = (0..).zip(times).filter(|(_, time)| time.is_none());
        blocks.map(|(frame, _)| letter(&judge(&clock, frame))).collect()
    }

    fn letter(met: &FirstMet) -> char {
        match met {
            FirstMet::Before => 'b',
            FirstMet::Since => 's',
            FirstMet::CannotTell(_) => '?',
        }
    }

    fn of_an_order(clock: &Clock, frame: u64) -> FirstMet {
        clock.first_met(Some(frame))
    }

    #[test]
    fn whom_a_certificate_names_is_erased_again_unless_they_came_after_it() {
        let at = Some;
        let block = None;
        let was_erased = |clock: &Clock, frame| clock.was_erased(Some(frame), 0);
        assert_eq!(told(&[at(3), block, at(4), block, at(7), block], was_erased), "bbs");
        assert_eq!(told(&[at(3), block, at(5), block, at(7), block], was_erased), "b?s");
        assert_eq!(told(&[at(3), block, at(7), block, at(2), block, at(8), block], was_erased), "b??s");
        let shown = |clock: &Clock, frame| clock.was_erased(Some(frame), 4);
        assert_eq!(told(&[at(7), block, at(7), block, at(7), block], shown), "bbs");
        assert_eq!(told(&[at(3), block], |clock, _| clock.was_erased(None, 9)), "?");
    }

    #[test]
    fn nobody_is_said_to_have_come_before_or_since_but_by_a_frame_in_between() {
        let block = None;
        let at = Some;
        assert_eq!(told(&[at(3), block, at(4), block, at(7), block], of_an_order), "b?s");
        assert_eq!(told(&[at(3), block, at(5), block, at(7), block], of_an_order), "??s");
        assert_eq!(told(&[at(3), block], of_an_order), "?");
        assert_eq!(told(&[at(6), block], of_an_order), "s");
        assert_eq!(told(&[block, at(4)], of_an_order), "b");
        // A clock that was put back.
        assert_eq!(
            told(&[at(3), block, at(4), block, at(7), block, at(2), block, at(8), block], of_an_order),
            "b???s"
        );
    }
}
