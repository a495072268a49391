//! What an erasure would do, told before anything is destroyed: to whom, who of them is held, and which entries lose what is
//! personal.
//!
//! Invariants:
//! - nothing is written, and no lock taken: a writer may be at work;
//! - a count is of all entries under the signed checkpoint, by the numbers of their groups, or there is none. What may go
//!   besides is told as what is not sure;
//! - nobody is said to have come before or after an order but by the writing host's clock, or by a certificate that has their number.

mod certified;
mod first_met;
mod going;

use crate::erase::refusals::{erasure_key, held, nobody_known, older_than_lost};
use crate::erase::{ErasureOrder, Hold, KnownAgain};
use crate::read::reader::Reader;
use crate::scan::carried_out::CarriedOut;
use crate::scan::erasures::Erased;
use crate::scan::keyless::{Keyless, numbers_of};
use crate::scan::lost::LostFrames;
use bulla_store::{Error, ErrorKind, Result};
use first_met::Judge;
use going::Subjects;

pub use certified::Certified;
pub use first_met::FirstMet;
pub use going::{EntriesGoing, NotSure, OtherSubject};

/// What carrying out an order to erase would do, as a log and its keys are at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasurePreview {
    /// What was done by this order before, if the log tells of it. Then nothing would be done, whoever has its names now.
    pub before: Option<ErasedBefore>,
    /// Whom the order names, in its order.
    pub subjects: Vec<PreviewedSubject>,
    /// The numbers of those of them who are known here, ascending, each once: they would be erased, unless the order was
    /// carried out before.
    pub numbers: Vec<u64>,
    /// Whether keys are lost that the log does not say were erased. Then whoever is not known may be known all the same.
    pub keys_lost: bool,
    /// The holds on them, for which the order would be refused.
    pub holds: Vec<Hold>,
    /// Which entries would lose what is personal; none where they were not counted.
    pub going: Option<EntriesGoing>,
    /// Why they were not.
    pub not_counted: Option<String>,
    /// The frames that were lost with a path: what the events among them told is not known, nor what their entries are about.
    pub lost: LostFrames,
    /// Whether one of these events may have told that the order was carried out.
    pub older_than_lost: bool,
}

/// What an order did that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErasedBefore {
    /// The frame of the event that tells of it.
    pub frame: u64,
    /// The numbers of those who were erased, ascending.
    pub numbers: Vec<u64>,
    /// The names of the order that nobody had then: of them nothing was erased.
    pub unknown: Vec<String>,
}

/// Somebody whom an order names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreviewedSubject {
    /// The name.
    pub subject: String,
    /// The number of the data subject who has that name now; none where nobody is known by it, or they are gone by then.
    pub number: Option<u64>,
    /// Whether they are erased by then, by an order that is carried out before this one.
    pub gone: bool,
    /// How many entries name them and would lose what is personal; none where they were not counted.
    pub entries: Option<u64>,
    /// Whether they were met before the order was given; none where entries were not counted.
    pub first_met: Option<FirstMet>,
}

impl ErasurePreview {
    /// Why the order would be refused, if it would be: nobody of it is known, somebody is held, or it is older than events that are lost. A hold that is being
    /// released is none by the time that the log is opened.
    pub fn refusal(&self) -> Option<Error> {
        if self.before.is_some() {
            return None;
        }
        match self.numbers.is_empty() {
            _ if self.older_than_lost => Some(older_than_lost(&self.lost)),
            true => Some(nobody_known(self.keys_lost)),
            false => self
                .holds
                .iter()
                .find(|hold| !hold.is_releasing())
                .map(|hold| held(hold.number, &hold.by, &hold.reason)),
        }
    }

    /// Where the order was carried out before, who has one of its names now: new persons, whom it does not erase.
    pub fn known_again(&self) -> Vec<KnownAgain> {
        if self.before.is_none() {
            return Vec::new();
        }
        let numbers = self.subjects.iter().map(|subject| subject.number).collect::<Vec<_>>();
        KnownAgain::of(self.subjects.iter().map(|subject| &subject.subject[..]), &numbers)
    }

    /// The names of the order that nobody has here, or has any more by then. Where keys are lost, that cannot be told of those who are
    /// not gone.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        let unknown = self.subjects.iter().filter(|subject| subject.number.is_none());
        unknown.map(|subject| &subject.subject[..])
    }
}

impl Reader {
    /// Tells what carrying out `order` would do; `holds` are the log's ([`crate::holds`]). Who the names are takes the keys of
    /// data subjects, and counting entries an identity: without one, or where it does not open all of the log, they
    /// are not counted. What is damaged where entries are counted does not keep anybody from being erased, so that this
    /// is no error: they are not counted then, either.
    ///
    /// ```
    /// # fn main() -> bulla::Result<()> {
    /// # let place = tempfile::tempdir().unwrap();
    /// # let directory = place.path().join("audit");
    /// # bulla::Init::default().create(&directory)?;
    /// # let log = bulla::Log::open(&directory, bulla::Options::default())?;
    /// # let mut producer = log.producer()?;
    /// # producer.append(&bulla::Entry::new("read", "user_42/email").subject("user_42"))?;
    /// # drop(producer);
    /// # log.close()?;
    /// use bulla::{ErasureOrder, Reader, default_keys, environment::Environment, keys::signing::SigningKey};
    /// let keys = default_keys(&directory);
    /// let key = std::fs::read_to_string(keys.join("erasure.key")).unwrap();
    /// let (key, log) = (SigningKey::parse(&key)?, bulla::info(&directory)?.id);
    /// let order = ErasureOrder::give(&key, log, &["user_42"], None, &Environment::default())?;
    ///
    /// let holds = bulla::holds(&directory, &keys)?.holds;
    /// let preview = Reader::open_with_keys(&directory, &keys)?.preview_erasure(&order, &holds)?;
    /// assert!(preview.refusal().is_none());
    /// assert_eq!(preview.going.map(|going| (going.entries, going.shared)), Some((1, 0)));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Refused` where the order is none for this log, or the log has no erasure; `NoKey` where there are no keys of data
    /// subjects at hand; `Erased` while an erasure is under way of which the log does not tell yet; else as [`Reader::read`].
    pub fn preview_erasure(&self, order: &ErasureOrder, holds: &[Hold]) -> Result<ErasurePreview> {
        self.look_up_erasure(order, holds, &[], &[]).map(|(preview, _)| preview)
    }

    /// The same of an order that may have been carried out before the log was put back to an earlier state. Of whom one of
    /// `certificates` says that they were erased, [`PreviewedSubject::first_met`] goes by that, and not by the time of the
    /// order. It is judged as things are once these data subjects are `gone`, whom orders erase that come before it.
    ///
    /// # Errors
    /// As [`Reader::preview_erasure`]; `Unavailable` also where the medium fails while entries are counted: that says nothing of
    /// the order, and may be otherwise the next time.
    pub fn preview_erasure_again(
        &self,
        order: &ErasureOrder,
        holds: &[Hold],
        certificates: &[Certified],
        gone: &[u64],
    ) -> Result<ErasurePreview> {
        let (preview, why) = self.look_up_erasure(order, holds, certificates, gone)?;
        why.filter(|why| why.io_error().is_some()).map_or(Ok(preview), Err)
    }

    /// What it would do, and where entries could not be counted why.
    fn look_up_erasure(
        &self,
        order: &ErasureOrder,
        holds: &[Hold],
        certificates: &[Certified],
        gone: &[u64],
    ) -> Result<(ErasurePreview, Option<Error>)> {
        let key = erasure_key(&self.config)?;
        let ordered = order.unsigned(self.config.id)?;
        let without = || {
            Error::new(
                ErrorKind::NoKey,
                "who a name is only the keys of data subjects tell: the vault is not at hand",
            )
        };
        let reading = self.reading()?;
        let keys = reading.group_keys()?.ok_or_else(without)?;
        let keys = &*keys;
        let manifest = &reading.manifest;
        let before = |CarriedOut { frame, numbers, places }| {
            let unknown = order.not_carried_out(&places).into_iter().map(str::to_owned).collect();
            ErasedBefore { frame, numbers, unknown }
        };
        let before = CarriedOut::find(manifest, &ordered)?.map(before);
        let (lost, before_is_none) = (manifest.lost()?.clone(), before.is_none());
        if before_is_none {
            order.check(key, self.config.id)?;
        }
        let mut erased = Erased::in_manifest(manifest, 0)?;
        let names = order.subjects().collect::<Vec<_>>();
        let keyless = Keyless::of(keys, || Ok(erased.clone()))?;
        let found = numbers_of(&names, keys, || Ok(erased.clone()))?;
        // A vault that was restored has them until the log is opened.
        let found = found.into_iter().map(|number| number.filter(|number| !erased.numbers.contains(number)));
        let subject = |(name, number): (&&str, Option<u64>)| {
            let is_gone = |number: &u64| gone.contains(number);
            PreviewedSubject {
                subject: (*name).to_owned(),
                number: number.filter(|number| !is_gone(number)),
                gone: number.as_ref().is_some_and(is_gone),
                entries: None,
                first_met: None,
            }
        };
        let subjects = names.iter().zip(found).map(subject).collect::<Vec<_>>();
        let mut numbers = subjects.iter().filter_map(|subject| subject.number).collect::<Vec<_>>();
        numbers.sort_unstable();
        numbers.dedup();
        let of_them = |hold: &&Hold| numbers.binary_search(&hold.number).is_ok();
        let mut preview = ErasurePreview {
            before,
            subjects,
            keys_lost: !keyless.is_nobody_below(manifest.size()),
            holds: holds.iter().filter(of_them).cloned().collect(),
            numbers,
            going: None,
            not_counted: None,
            older_than_lost: before_is_none && lost.may_tell_of(&ordered),
            lost,
        };
        if preview.before.is_some() || preview.numbers.is_empty() {
            return Ok((preview, None));
        }
        if self.given.identity.is_none() {
            preview.not_counted = Some("no identity is at hand".to_owned());
            return Ok((preview, None));
        }
        // What goes with an erasure that was cut short is gone, though the log does not tell of it yet.
        erased.numbers.extend(keys.missing(u64::MAX)?.erasing.iter().chain(gone));
        let subjects = Subjects { numbers: &preview.numbers, erased: &erased, keyless: &keyless, holds };
        match subjects.count(&reading) {
            Ok((mut going, each)) => {
                if preview.keys_lost {
                    going.not_sure.push(NotSure::KeysLost);
                }
                if !preview.lost.blocks.is_empty() {
                    going.not_sure.push(NotSure::FramesLost);
                }
                let judge = Judge::of(manifest, &ordered, certificates)?;
                for subject in &mut preview.subjects {
                    let own = subject.number.and_then(|number| Some((number, each.get(&number)?)));
                    subject.entries = own.map(|(_, own)| own.entries);
                    subject.first_met =
                        own.map(|(number, own)| judge.first_met(number, own.first, &preview.lost));
                }
                preview.going = Some(going);
            }
            Err(why) => {
                preview.not_counted = Some(why.to_string());
                return Ok((preview, Some(why)));
            }
        }
        Ok((preview, None))
    }
}
