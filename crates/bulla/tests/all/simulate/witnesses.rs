//! Witnesses: real ones, each on a machine of its own that loses what was not synced, asked by the log without a network, and by whoever has
//! stolen the log's key.
//!
//! - What a witness gave out it knows of ever after, whatever becomes of its machine, and it is of one history alone.
//! - Each of its cosignatures holds; what the log keeps of them does, and is of what the log published.
//! - Whatever a witness does, nothing of the log fails.

use super::host::{Host, HostClock};
use super::life::{Life, Session};
use super::outcome::{Outcome, checkpoint_of, must, sound};
use crate::helpers::Rng;
use bulla::environment::Random;
use bulla::keys::signing::SigningKey;
use bulla::store::Store;
use bulla::{Hash, LogKey, Posted, SignedNote};
use bulla_proof::checkpoint::sign_checkpoint;
use bulla_proof::consistency::prove_consistency;
use bulla_proof::tree::{Frontier, leaf_hash};
use bulla_proof::{Checkpoint, CosignatureAlgorithm, CosignerKey};
use bulla_testkit::fault::{Fault, Faults};
use bulla_witness::request::Request;
use bulla_witness::{Answer, Witness};
use std::sync::{Arc, Mutex};

/// A witness, and what it has given out.
pub(super) struct Cosigner {
    name: String,
    key: CosignerKey,
    machine: Faults,
    clock: Arc<HostClock>,
    /// Nothing where it is not running.
    witness: Option<Witness>,
    /// The trees that it has cosigned.
    cosigned: Vec<(u64, Hash)>,
}

struct Seeded(Mutex<Rng>);

impl Random for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> bulla::Result<()> {
        let mut rng = self.0.lock().expect("nothing panics here");
        bytes.fill_with(|| (rng.next() >> 32) as u8);
        Ok(())
    }
}

impl Cosigner {
    pub(super) fn begin(index: u64, rng: &mut Rng, clock: &Arc<HostClock>) -> Outcome<Self> {
        let machine = Faults::new();
        let name = format!("w.example/{index}");
        let random = Seeded(Mutex::new(Rng(rng.next())));
        let (state, keys) = (machine.store("state"), machine.store("keys"));
        let made = [&state, &keys].into_iter().try_for_each(|store| store.create_directory(""));
        made.map_err(|error| error.to_string())?;
        let algorithm = CosignatureAlgorithm::Ed25519;
        let key = sound("beginning a witness", Witness::begin(&name, algorithm, &state, &keys, &random))?;
        Ok(Cosigner { name, key, machine, clock: clock.clone(), witness: None, cosigned: Vec::new() })
    }

    /// The line of a policy that has it asked.
    fn line(&self) -> String {
        format!("witness {} {} http://127.0.0.1:1\n", self.label(), self.key)
    }

    fn label(&self) -> String {
        self.name.replace(['.', '/'], "-")
    }

    /// Starts it where it is not running: it knows of all that it gave out.
    fn start(&mut self, log: LogKey) -> Outcome {
        if self.witness.is_some() {
            return Ok(());
        }
        let stores: (Arc<dyn Store>, Arc<dyn Store>) =
            (Arc::new(self.machine.store("state")), Arc::new(self.machine.store("keys")));
        let opened = Witness::open(stores, vec![log], self.clock.clone(), Arc::new(|_| {}));
        let witness = sound("starting a witness", opened)?;
        let seen = witness.logs().first().and_then(|(_, size)| *size);
        let last = self.cosigned.iter().map(|(size, _)| *size).max();
        must!(seen >= last, "{} has cosigned {last:?} frames, and knows of {seen:?}", self.name);
        self.witness = Some(witness);
        Ok(())
    }

    /// Its machine is gone and comes back: `None` is the death of the process.
    fn crash(&mut self, cut: Option<u64>) {
        self.machine.stop_at(self.machine.operations());
        self.witness = None;
        self.machine = match cut {
            None => self.machine.kill(),
            Some(seed) => self.machine.crash(seed),
        };
    }

    /// What it answers; nothing where it is gone, or its machine stops meanwhile.
    fn answer(&self, body: &[u8]) -> Option<Answer> {
        let answer = self.witness.as_ref()?.add_checkpoint(body);
        (answer.status == 200 || !self.machine.stopped()).then_some(answer)
    }

    /// Takes down what it gave out, and says of which tree that is.
    fn take_down(&mut self, body: &[u8], answer: &Answer) -> Outcome<Option<(u64, Hash)>> {
        if answer.status != 200 {
            return Ok(None);
        }
        let request = Request::parse(body)?;
        let whole = [request.note, answer.body.as_bytes()].concat();
        let note = SignedNote::parse(&whole).map_err(|error| format!("what is cosigned: {error}"))?;
        self.key.verify(&note).map_err(|error| format!("a cosignature of {}: {error}", self.name))?;
        let Checkpoint { size, root, .. } = checkpoint_of(request.note)?;
        self.cosigned.push((size, root));
        Ok(Some((size, root)))
    }
}

impl Life {
    /// The policy of a log that asks witnesses.
    pub(super) fn witness_policy(witnesses: &[Cosigner]) -> Option<String> {
        let lines = witnesses.iter().map(Cosigner::line).collect::<String>();
        let names = witnesses.iter().map(|one| format!(" {}", one.label())).collect::<String>();
        (!witnesses.is_empty()).then(|| format!("{lines}group all any{names}\nquorum all\n"))
    }

    pub(super) fn step_witnesses(&mut self, session: &mut Session) -> Outcome {
        match self.beside.rng.below(20) {
            0..=5 => self.question(session, false),
            6..=10 => self.ask_witness(session),
            11..=14 => self.take_answer(session),
            15 => {
                self.time_passes();
                Ok(())
            }
            16 => {
                let which = self.beside.rng.below(self.beside.witnesses.len() as u64) as usize;
                self.crash_witness(which);
                Ok(())
            }
            17 => self.witness_fails(),
            _ => self.steal_cosignature(),
        }
    }

    /// Has the log say what its witnesses are to be asked.
    fn question(&mut self, session: &mut Session, closing: bool) -> Outcome {
        let asking = session.asking.get_or_insert_with(|| session.log.stepped_witnesses());
        let questions = asking.questions(closing);
        if !self.host.stopped() {
            self.model.note_checkpoint(&self.host)?;
        }
        self.say("questions", &questions);
        match questions {
            Ok(questions) => session.questions.extend(questions),
            Err(error) => must!(session.troubled || self.host.stopped(), "questions: {error}"),
        }
        Ok(())
    }

    /// Asks one witness what it is to be asked.
    fn ask_witness(&mut self, session: &mut Session) -> Outcome {
        if session.questions.is_empty() {
            return Ok(());
        }
        let which = self.beside.rng.below(session.questions.len() as u64) as usize;
        let question = session.questions.swap_remove(which);
        let asked = self.beside.witnesses.iter().position(|one| one.label() == question.witness());
        let asked = asked.ok_or("a stranger is asked")?;
        if self.beside.rng.below(4) > 0 {
            self.start_witness(asked)?;
        }
        let exchanged = Mutex::new(Vec::new());
        let cosigner = &self.beside.witnesses[asked];
        let answered = question.ask_by(&|body| -> Posted {
            let answer = cosigner.answer(body).ok_or("nobody is there")?;
            exchanged.lock().unwrap().push((body.to_vec(), answer.clone()));
            Ok((answer.status, answer.body.into_bytes()))
        });
        self.say(&question, &answered);
        for (body, answer) in exchanged.into_inner().map_err(|_| "a panic")? {
            let cosigned = self.beside.witnesses[asked].take_down(&body, &answer)?;
            if let Some(head) = cosigned {
                must!(
                    self.model.published.contains_key(&head),
                    "{head:?} is cosigned, and was not published"
                );
            }
        }
        if self.beside.witnesses[asked].machine.stopped() {
            self.crash_witness(asked);
        }
        session.answers.push(answered);
        Ok(())
    }

    /// The log keeps what a witness answered.
    fn take_answer(&mut self, session: &mut Session) -> Outcome {
        if session.answers.is_empty() {
            return Ok(());
        }
        let which = self.beside.rng.below(session.answers.len() as u64) as usize;
        let (answered, before) = (session.answers.swap_remove(which), session.log.watch().failure());
        self.say("take", &answered);
        if let Some(asking) = &mut session.asking {
            asking.take(answered);
        }
        let after = session.log.watch().failure();
        must!(before.is_some() == after.is_some(), "a witness's answer has the log fail: {after:?}");
        if self.host.stopped() {
            return Ok(());
        }
        self.check_cosignatures()
    }

    /// Asks for the last checkpoint, as closing a log does, once everything is signed.
    pub(super) fn ask_before_closing(&mut self, session: &mut Session) -> Outcome {
        if self.beside.witnesses.is_empty() || self.host.stopped() || !self.flush(session)? {
            return Ok(());
        }
        self.question(session, true)?;
        while !session.questions.is_empty() {
            self.ask_witness(session)?;
        }
        while !session.answers.is_empty() && !self.host.stopped() {
            self.take_answer(session)?;
        }
        Ok(())
    }

    fn start_witness(&mut self, which: usize) -> Outcome {
        let key = LogKey::from(self.whose.key.clone());
        self.beside.witnesses[which].start(key)
    }

    /// A witness dies, or loses its power.
    fn crash_witness(&mut self, which: usize) {
        let cut = (self.beside.rng.below(3) > 0).then(|| self.beside.rng.next());
        self.beside.witnesses[which].crash(cut);
        self.say("a witness dies", (which, cut));
    }

    /// A witness's machine stops soon, or fails until it is started anew.
    fn witness_fails(&mut self) -> Outcome {
        let which = self.beside.rng.below(self.beside.witnesses.len() as u64) as usize;
        self.start_witness(which)?;
        let machine = &self.beside.witnesses[which].machine;
        let at = machine.operations() + self.beside.rng.below(8);
        let fault = (self.beside.rng.below(2) == 0).then(|| *self.beside.rng.one(&Fault::ALL));
        match fault {
            Some(fault) => machine.fail_at(at, fault),
            None => machine.stop_at(at),
        }
        self.say("a witness fails", (which, at, fault));
        Ok(())
    }

    /// Whoever has the log's key signs another history that begins as far back as the witness asks for, and is no longer than what it
    /// cosigned: it is refused.
    fn steal_cosignature(&mut self) -> Outcome {
        if self.beside.detached.is_some() {
            return Ok(());
        }
        let which = self.beside.rng.below(self.beside.witnesses.len() as u64) as usize;
        let Some(most) = self.beside.witnesses[which].cosigned.iter().map(|(size, _)| *size).max() else {
            return Ok(());
        };
        self.start_witness(which)?;
        let cosigner = &self.beside.witnesses[which];
        let seen = cosigner.witness.as_ref().and_then(|witness| witness.logs().first()?.1).unwrap_or(0);
        let old = seen.min(most);
        // It goes on from what the witness says that it knows; where that is all, the last frame is another.
        let Some(own) = self.model.leaves(&self.host, old.min(most - 1))? else { return Ok(()) };
        let forged = (own.len() as u64..most).map(|frame| leaf_hash(format!("forged {frame}").as_bytes()));
        let leaves = own.into_iter().chain(forged).collect::<Vec<_>>();
        let note = self.sign(&leaves)?;
        let proof = prove_consistency(&leaves, old).map_err(|error| format!("{error:?}"))?;
        let body = Request { old_size: old, proof, note: note.as_bytes() }.render();
        let answer = self.beside.witnesses[which].answer(body.as_bytes());
        self.say("a stolen key", (which, old, most, answer.as_ref().map(|answer| answer.status)));
        must!(
            answer.is_none_or(|answer| answer.status != 200),
            "two trees of {most} frames are cosigned by {}",
            self.beside.witnesses[which].name
        );
        if self.beside.witnesses[which].machine.stopped() {
            self.crash_witness(which);
        }
        Ok(())
    }

    /// A checkpoint of these leaves, signed with the log's key.
    fn sign(&self, leaves: &[Hash]) -> Outcome<String> {
        let key = String::from_utf8_lossy(&self.host.read("audit.keys/signing.key")?).into_owned();
        let signing = sound("the log's key", SigningKey::parse(&key))?;
        let mut tree = Frontier::new();
        leaves.iter().for_each(|leaf| tree.push(*leaf));
        let checkpoint = Checkpoint::new("example.com/audit", tree.size(), tree.root());
        Ok(sign_checkpoint(&checkpoint, &self.whose.key, |text| signing.sign(text)))
    }

    /// Each cosignature that the log keeps holds, and is of what was published.
    pub(super) fn check_cosignatures(&mut self) -> Outcome {
        if self.beside.witnesses.is_empty() {
            return Ok(());
        }
        self.model.note_checkpoint(&self.host)?;
        let Host { machine, paths, .. } = &self.host;
        // A path that takes over is given what is kept before the checkpoint.
        let newest = paths.iter().filter_map(|path| machine.read(&format!("{path}/checkpoint")));
        let newest = newest.map(|note| Ok(checkpoint_of(&note)?.size)).collect::<Outcome<Vec<_>>>()?;
        let newest = newest.into_iter().max().unwrap_or(0);
        for path in *paths {
            let kept = |name: &String| {
                let name = name.strip_prefix(path)?.strip_prefix('/')?;
                let is_kept = name == "checkpoint.witnessed" || name.starts_with("cosigned/");
                ((is_kept || name == "checkpoint") && !name.ends_with(".tmp")).then_some(is_kept)
            };
            let files = machine.files().into_iter().filter_map(|file| Some((kept(&file)?, file)));
            for (is_kept, file) in files {
                let bytes = machine.read(&file).unwrap_or_default();
                let Checkpoint { size, root, .. } = checkpoint_of(&bytes)?;
                must!(self.model.published.contains_key(&(size, root)), "{file} is of another tree");
                let note = SignedNote::parse(&bytes).map_err(|error| format!("{file}: {error}"))?;
                let mut lines = 0;
                for cosigner in &self.beside.witnesses {
                    if note.signatures.iter().any(|line| cosigner.key.is_of(line)) {
                        cosigner.key.verify(&note).map_err(|error| format!("{file}: {error}"))?;
                        let known = cosigner.cosigned.contains(&(size, root));
                        must!(known, "{file} has a cosignature that {} did not give", cosigner.name);
                        lines += 1;
                    }
                }
                must!(!is_kept || lines > 0, "{file} is kept and has no cosignature");
                must!(size <= newest, "{file} is of {size} frames, and the newest checkpoint of {newest}");
            }
        }
        Ok(())
    }
}
