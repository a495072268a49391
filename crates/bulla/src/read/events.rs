//! What a log tells of itself: its events, with public data alone.

use crate::erase::signed_with::CountingKey;
use crate::erase::told_holds::ToldHolds;
use crate::format::event::Event;
use crate::read::reader::Reader;
use crate::read::reading::Reading;
use crate::scan::events::{Told, body_of, epoch_body, erasure_keys};
use crate::scan::full::held;
use crate::scan::full::orders::Orders;
use crate::scan::manifest::Frames;
use crate::scan::snapshot::unless_gone;
use bulla_proof::commitment::{Commitment, FrameKind};
use bulla_proof::hash::Hash;
use bulla_proof::hold_order::HoldNote;
use bulla_proof::note::SignedNote;
use bulla_proof::order::Order;
use bulla_store::{Error, Result};

/// An event under the checkpoint of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoggedEvent {
    /// Its frame.
    pub frame: u64,
    /// The writing host's clock as it was made, in seconds since the Unix epoch.
    pub time: i64,
    /// What it says; or why it is no event of this version, which is a violation.
    pub event: std::result::Result<Event, String>,
    /// Whether it was lost for good with a path of the log, so that `event` says that: it is no violation then.
    pub lost: bool,
    /// Of a change of the configuration: whether the next epoch was begun with it. `None` where no epoch has begun since, or that
    /// one is lost.
    pub done: Option<bool>,
    /// Of an erasure: its order, as it stands there; none where that is no order.
    pub order: Option<Order>,
    /// Of a hold or a release: its order, as it stands there; none where that is no such order.
    pub hold_order: Option<HoldNote>,
    /// Of an erasure, a hold or a release: what verification objects to in it, which is a violation. Where there is nothing, the
    /// erasure key that counted then, and is trusted, signed the order, the event is in accord with it, and nobody who was erased was held. Of a
    /// change of that key which was done: what is wrong with it.
    pub objection: Option<String>,
}

impl Reader {
    /// Gives `each` the events that the checkpoint covers, in the order of their frames. It takes no identity: they are public.
    /// Each is checked up to the signed root before it is given out; of one that was lost with a path of the log that it was, and when.
    ///
    /// # Errors
    /// `Tampered` where the checkpoint is not the log's, or an event or epoch is damaged, or missing without being lost, after everything that comes
    /// before that; also, after all of them, where an erasure key that was given is none that the log has or had, or the log's is
    /// not trusted ([`Reader::erasure_key`]); `Unavailable` where a file cannot be read; and whatever `each` returns.
    pub fn events(&self, each: impl FnMut(LoggedEvent) -> Result<()>) -> Result<()> {
        let reading = self.reading()?;
        unless_gone(&*self.given.store, self.events_in(&reading, each))
    }

    fn events_in(
        &self,
        reading: &Reading<'_>,
        mut each: impl FnMut(LoggedEvent) -> Result<()>,
    ) -> Result<()> {
        let keys = erasure_keys(&reading.manifest, &self.given.erasure_keys)?;
        let mut frames = Frames::new(&reading.manifest)?;
        let (mut current, mut orders, mut holds) = (None, Orders::default(), ToldHolds::default());
        // A change, and what follows it up to the epoch that is begun with it or not.
        let mut waiting = Vec::<LoggedEvent>::new();
        let lost = reading.manifest.lost()?;
        while let Some(placed) = frames.next()? {
            let is_lost = lost.contains(placed.commitment.frame);
            match placed.commitment.kind {
                FrameKind::Epoch if is_lost => {
                    current = None;
                    waiting.drain(..).try_for_each(&mut each)?;
                }
                FrameKind::Event if is_lost => {
                    holds.lose(placed.commitment.frame + 1);
                    let logged = LoggedEvent::lost(&placed.commitment);
                    match waiting.is_empty() {
                        true => each(logged)?,
                        false => waiting.push(logged),
                    }
                }
                FrameKind::Epoch => {
                    let before = current.replace(epoch_body(&mut frames, placed)?.config);
                    for mut logged in waiting.drain(..) {
                        logged.done = logged.change().map(|change| Some(change) == before.zip(current));
                        each(logged)?;
                    }
                }
                FrameKind::Event => {
                    let mut logged = LoggedEvent::of(body_of(&mut frames, placed)?);
                    if let Ok(event) = &logged.event {
                        logged.objection = match event {
                            Event::Rekeyed(_) => {
                                let wrong =
                                    keys.objections().iter().find(|wrong| wrong.frame == logged.frame);
                                wrong.filter(|wrong| !wrong.is_vouched_for).map(|wrong| wrong.detail.clone())
                            }
                            event => {
                                let counting = keys.at(logged.frame);
                                let place = (logged.frame, logged.time);
                                let unordered = holds.take(self.config.id, &counting, place, event);
                                unordered.or_else(|| self.objection(event, &counting, &mut orders, &holds))
                            }
                        };
                    }
                    match waiting.is_empty() && logged.change().is_none() {
                        true => each(logged)?,
                        false => waiting.push(logged),
                    }
                }
                _ => {}
            }
        }
        waiting.into_iter().try_for_each(&mut each)?;
        match &keys.mismatches()[..] {
            [] => Ok(()),
            mismatches => Err(Error::tampered(mismatches.join("; "))),
        }
    }

    /// What verification objects to in an erasure.
    fn objection(
        &self,
        event: &Event,
        keys: &[CountingKey],
        orders: &mut Orders,
        holds: &ToldHolds,
    ) -> Option<String> {
        let Event::Erased { numbers, carried_out, order, .. } = event else { return None };
        let unordered = orders.objection(self.config.id, keys, (numbers, carried_out), order);
        unordered.or_else(|| held(&holds.held_of(numbers)))
    }
}

impl LoggedEvent {
    fn of(Told { commitment, body }: Told) -> Self {
        let event = body.ok_or_else(|| "it is longer than any event".to_owned());
        let event = event.and_then(|body| Event::decode(&body).map_err(|error| error.to_string()));
        let note = |order: &str| SignedNote::parse(order.as_bytes()).ok().map(|note| note.text.to_owned());
        let (order, hold_order) = match &event {
            Ok(Event::Erased { order, .. }) => (note(order).and_then(|text| Order::parse(&text).ok()), None),
            Ok(Event::Held { order, .. } | Event::Released { order, .. }) => {
                (None, note(order).and_then(|text| HoldNote::parse(&text).ok()))
            }
            _ => (None, None),
        };
        let (frame, time) = (commitment.frame, commitment.earliest);
        LoggedEvent { frame, time, event, lost: false, done: None, order, hold_order, objection: None }
    }

    /// One of which nothing is left but its commitment.
    fn lost(commitment: &Commitment) -> Self {
        let event = Err("it was lost with a path of the log: what it told is not known".to_owned());
        let (frame, time) = (commitment.frame, commitment.earliest);
        LoggedEvent {
            frame,
            time,
            event,
            lost: true,
            done: None,
            order: None,
            hold_order: None,
            objection: None,
        }
    }

    /// The digests of `[log]` before and after a change of it.
    fn change(&self) -> Option<(Hash, Hash)> {
        self.event.as_ref().ok().and_then(Event::configures)
    }

    /// Whether it shows that the log is not what it should be.
    pub fn is_violation(&self) -> bool {
        (self.event.is_err() && !self.lost) || self.objection.is_some()
    }
}
