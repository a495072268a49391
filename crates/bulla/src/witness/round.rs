//! Which checkpoint each witness is asked for, and what becomes of the answers.
//!
//! A checkpoint that witnesses are asked for is a *target*. All are asked for the same one, since a quorum is of one
//! checkpoint; one that is slow is asked for the newest target when it has answered, and what it says of the older one counts still.

use super::job::{Asked, Job, Refusal};
use super::kept;
use crate::format::config::{AskedWitness, LogConfig, WitnessPolicy};
use crate::format::files;
use crate::keys::refusals::WitnessRefusal;
use crate::scan::cosignatures;
use crate::write::telemetry::WitnessTelemetry;
use bulla_proof::checkpoint::SignedNote;
use bulla_proof::tree::TreeHead;
use bulla_store::{Result, Store};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How many targets are remembered whose answers may come late.
const TARGETS: usize = 8;
/// How long a witness that failed is not asked: at first, and at most. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// A witness, and how it stands with it.
struct Standing {
    witness: Arc<AskedWitness>,
    /// Whether somebody is asking it.
    busy: bool,
    /// The tree that it has cosigned last, as far as that is known.
    known: Option<u64>,
    /// The size of the newest target that it has answered.
    answered: Option<u64>,
    /// The size of the newest target that it was asked for, whatever came of it.
    tried: Option<u64>,
    /// How long it is not asked after the last failure, and until when, by the steady clock.
    pause: Option<(Duration, u64)>,
    /// The newest cosignature: how many frames, and when.
    newest: Option<(u64, u64)>,
    failures: u64,
    /// Why it did not cosign last. That it has another history stays until it cosigns, whatever else fails meanwhile.
    refusal: Option<Refusal>,
}

impl Standing {
    /// Counts a failure, which takes the place of the one before, but never of one that is for good without being so itself.
    fn fail(&mut self, refusal: Refusal) {
        self.failures += 1;
        if refusal.other_tree || !self.refuses() {
            self.refusal = Some(refusal);
        }
    }

    /// Whether it has cosigned another history of the log.
    fn refuses(&self) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.other_tree)
    }
}

/// A checkpoint that witnesses are asked for, and what they answered.
struct Target {
    job: Job,
    lines: Vec<Option<String>>,
}

/// See the module.
pub(crate) struct Witnessing {
    store: Arc<dyn Store>,
    policy: WitnessPolicy,
    standings: Vec<Standing>,
    targets: VecDeque<Target>,
    /// The tree of `checkpoint.witnessed`, and how many cosignatures that has.
    witnessed: Option<(u64, usize)>,
}

/// What came of an answer, for others to act on.
#[derive(Default)]
pub(crate) struct Taken {
    /// The checkpoint with more signature lines.
    pub(crate) cosigned: Option<(TreeHead, String)>,
    /// What is to be told: that a witness fails, once until it answers again.
    pub(crate) told: Option<String>,
}

impl Witnessing {
    /// Begins with what the log's files say, and with the witnesses that refuse it, as the key directory remembers them; `None` where the
    /// log asks nobody.
    ///
    /// # Errors
    /// `Unavailable` where a file cannot be read.
    pub(crate) fn new(
        store: &Arc<dyn Store>,
        config: &LogConfig,
        refusals: &[WitnessRefusal],
    ) -> Result<Option<Self>> {
        let Some(policy) = config.witness_policy.clone() else { return Ok(None) };
        let newest = cosignatures::newest_cosignatures(&**store, config)?;
        let standings = policy.asked().iter().zip(newest).map(|(witness, newest)| Standing {
            witness: Arc::new(witness.clone()),
            busy: false,
            known: newest.map(|(size, _)| size),
            answered: None,
            tried: None,
            pause: None,
            newest,
            failures: 0,
            refusal: refusals
                .iter()
                .find(|refusal| refusal.key_id == witness.key.key_id())
                .map(|refusal| Refusal::other_tree(&*refusal.why)),
        });
        let standings = standings.collect();
        let witnessed =
            cosignatures::read(&**store, config, files::WITNESSED)?.map(|(_, head)| (head.size, 0));
        Ok(Some(Witnessing { store: store.clone(), policy, standings, targets: VecDeque::new(), witnessed }))
    }

    /// Whether these are the witnesses that `config` names.
    pub(crate) fn is_of(&self, config: &LogConfig) -> bool {
        config.witness_policy.as_ref() == Some(&self.policy)
    }

    /// Has all witnesses asked for this checkpoint, from now on.
    pub(crate) fn target(&mut self, mut job: Job) {
        // What it was published with by an earlier process, which is asked for anew.
        let published = job.note.clone();
        if let Ok(mut note) = SignedNote::parse(published.as_bytes()) {
            note.signatures
                .retain(|line| !self.standings.iter().any(|standing| standing.witness.key.is_of(line)));
            job.note = note.to_string().into();
        }
        let lines = vec![None; self.standings.len()];
        self.targets.push_back(Target { job, lines });
        if self.targets.len() > TARGETS {
            self.targets.pop_front();
        }
    }

    /// The tree of the newest target.
    pub(crate) fn targeted(&self) -> Option<TreeHead> {
        self.targets.back().map(|target| target.job.head)
    }

    /// What is to be asked now: of which witness, what it is believed to have cosigned, and the newest target. Each is busy from now on, until
    /// [`Witnessing::take`]. With `closing` each is asked for it once, whatever it
    /// paused for.
    pub(crate) fn next(
        &mut self,
        now: u64,
        closing: bool,
    ) -> Vec<(usize, Arc<AskedWitness>, Option<u64>, Job)> {
        let Some(target) = self.targets.back() else { return Vec::new() };
        let job = &target.job;
        let size = job.head.size;
        let due = |standing: &Standing| match closing {
            // Once more, and whoever has not answered that is not waited for again.
            true => standing.tried.is_none_or(|tried| tried < size),
            false => {
                let pauses = standing.pause.is_some_and(|(_, until)| now < until);
                !pauses && standing.answered.is_none_or(|answered| answered < size)
            }
        };
        let all =
            self.standings.iter_mut().enumerate().filter(|(_, standing)| !standing.busy && due(standing));
        let begun = all.map(|(index, standing)| {
            standing.busy = true;
            (index, standing.witness.clone(), standing.known, job.clone())
        });
        begun.collect()
    }

    /// Whether every witness was asked for the newest target, and has answered or failed.
    pub(crate) fn is_settled(&self) -> bool {
        let newest = self.targets.back().map(|target| target.job.head.size);
        self.standings.iter().all(|standing| !standing.busy && standing.tried >= newest)
    }

    /// Counts those that are being asked for as failed, since nobody waits for them any longer; `why` is told of each.
    pub(crate) fn give_up(&mut self, why: &str) -> Vec<String> {
        let unanswered = self.standings.iter_mut().filter(|standing| standing.busy);
        let told = unanswered.map(|standing| {
            standing.fail(Refusal::passing(why));
            let AskedWitness { name, address, .. } = &*standing.witness;
            format!("the witness `{name}` ({address}) does not cosign: {why}")
        });
        told.collect()
    }

    /// The id of a witness's key, and why it refuses the log for good, if it does.
    pub(crate) fn refusal(&self, index: usize) -> (u32, Option<&str>) {
        let standing = &self.standings[index];
        let refusal = standing.refusal.as_ref().filter(|refusal| refusal.other_tree);
        (standing.witness.key.key_id(), refusal.map(|refusal| &refusal.why[..]))
    }

    /// What is to be told of the witnesses that refuse the log for good, a sentence each.
    pub(crate) fn told_of_refusals(&self) -> Vec<String> {
        let refusing = self.standings.iter().filter(|standing| standing.refuses());
        let told = refusing.filter_map(|standing| {
            let AskedWitness { name, address, .. } = &*standing.witness;
            let why = &standing.refusal.as_ref()?.why;
            Some(format!("the witness `{name}` ({address}) refuses this log, as its keys remember: {why}"))
        });
        told.collect()
    }

    /// Whether a witness has cosigned a target of that size.
    pub(crate) fn has_cosigned(&self, index: usize, size: u64) -> bool {
        self.standings[index].answered.is_some_and(|answered| answered >= size)
    }

    /// Takes what came of asking a witness for the checkpoint of `head`, and keeps a cosignature. `now` is the steady clock's.
    pub(crate) fn take(&mut self, index: usize, head: TreeHead, asked: Asked, now: u64) -> Taken {
        let mut taken = Taken::default();
        let standing = &mut self.standings[index];
        standing.busy = false;
        standing.tried = standing.tried.max(Some(head.size));
        standing.known = asked.known;
        match asked.outcome {
            Err(refusal) => {
                let longest = if refusal.other_tree { LONGEST_PAUSE } else { FIRST_PAUSE };
                let pause = standing.pause.map_or(longest, |(pause, _)| (pause * 2).min(LONGEST_PAUSE));
                standing.pause =
                    Some((pause, now.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))));
                let told = |before: &Refusal| before.other_tree || !refusal.other_tree;
                if !standing.refusal.as_ref().is_some_and(told) {
                    let AskedWitness { name, .. } = &*standing.witness;
                    taken.told = Some(format!(
                        "the witness `{name}` ({}) does not cosign: {}",
                        standing.witness.address, refusal.why
                    ));
                }
                standing.fail(refusal);
                taken
            }
            Ok((line, time)) => {
                standing.answered = standing.answered.max(Some(head.size));
                standing.newest = standing.newest.max(Some((head.size, time)));
                (standing.pause, standing.refusal) = (None, None);
                let Some(target) = self.targets.iter_mut().find(|target| target.job.head == head) else {
                    return taken;
                };
                target.lines[index] = Some(line);
                match self.keep(index, head) {
                    Ok(note) => taken.cosigned = Some((head, note)),
                    // What is not kept now is with the next one.
                    Err(error) => taken.told = Some(format!("a cosignature could not be kept: {error}")),
                }
                taken
            }
        }
    }

    /// Writes what there is of a target; the note with all of its cosignatures.
    fn keep(&mut self, index: usize, head: TreeHead) -> Result<String> {
        let target = self.targets.iter().find(|target| target.job.head == head);
        let Some(target) = target else { return Ok(String::new()) };
        let (note, lines) = (target.job.note.clone(), &target.lines[..]);
        if self.store.paths().is_some_and(|paths| !paths.has_published()) {
            // Another path has taken over, on which no file may be of a larger tree than `checkpoint` is.
            return Ok(note.to_string());
        }
        let standing = &self.standings[index];
        let one = format!("{note}{}", lines[index].as_deref().unwrap_or_default());
        if standing.newest.is_none_or(|(size, _)| size <= head.size) {
            kept::write(&*self.store, &files::cosigned_path(standing.witness.key.key_id()), &one)?;
        }
        let all = lines.iter().flatten().fold(note.to_string(), |all, line| all + line);
        let count = lines.iter().flatten().count();
        let parsed = SignedNote::parse(all.as_bytes());
        let met = parsed
            .is_ok_and(|note| self.policy.policy().judge(&note).is_ok_and(|judgement| judgement.is_met()));
        if met && self.witnessed.is_none_or(|before| before < (head.size, count)) {
            kept::write(&*self.store, files::WITNESSED, &all)?;
            self.witnessed = Some((head.size, count));
        }
        Ok(all)
    }

    /// How each witness stands, in the order of the policy.
    pub(crate) fn telemetry(&self) -> Vec<WitnessTelemetry> {
        let of = |standing: &Standing| WitnessTelemetry {
            name: standing.witness.name.clone(),
            address: standing.witness.address.to_string(),
            frames: standing.newest.map(|(size, _)| size),
            time: standing.newest.map(|(_, time)| time),
            failures: standing.failures,
            failure: standing.refusal.as_ref().map(|refusal| refusal.why.clone()),
            refuses: standing.refuses(),
        };
        self.standings.iter().map(of).collect()
    }
}
