//! Checkpoints that are asked for at odd moments, step by step.

use super::checkpointing::CheckpointWork;
use super::committing::{CommitWork, SyncRequest};
use super::progress::Stage;
use super::{Directories, Engine};
use crate::admin::init::Init;
use crate::format::options::{Durability, Options};
use crate::write::stage::queue::{ProducerId, StagedPosition, Wait};
use bulla_crypto::environment::Environment;
use bulla_proof::Entry;
use bulla_store::ErrorKind;
use bulla_testkit::fault::{Fault, Faults};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// An engine on a simulated machine, without threads.
struct World {
    machine: Faults,
    engine: Engine,
    /// Its locks, which the engine looks at.
    _directories: Arc<Directories>,
    producer: ProducerId,
}

impl World {
    fn new(durability: Durability) -> Self {
        let machine = Faults::new();
        let (log, keys) = (Arc::new(machine.store("audit")), Arc::new(machine.store("audit.keys")));
        Init::default().erasure(false).create_in(&*log, &*keys, &Environment::default()).unwrap();
        let options = Options::default().durability(durability);
        let directories = Directories::lock(&*log, &*keys).unwrap();
        let engine = Engine::open((log, keys), &directories, options, Environment::default()).unwrap();
        engine.drain().unwrap();
        let (producer, _) = engine.staging.register().unwrap();
        World { machine, engine, _directories: directories, producer }
    }

    /// Appends an entry, and seals and commits it. Returns its position.
    fn commit_entry(&self) -> StagedPosition {
        let entry = Entry::new("read", "here");
        let mut writer = self.engine.staging.exchange(self.producer, None, Wait::Never, false).unwrap();
        assert!(writer.push(entry.measure().unwrap(), None, |row| entry.encode(0, row)));
        drop(writer);
        let position = self.engine.staging.flush(self.producer).unwrap();
        self.seal_and_commit();
        position
    }

    fn seal_and_commit(&self) {
        assert!(self.engine.seal_next(&mut self.engine.sealer(), false), "there is nothing to seal");
        assert_eq!(self.engine.step_commit().unwrap(), 1);
    }

    fn has_come(&self, position: StagedPosition, stage: Stage) -> bool {
        self.engine.progress.wait(0, position, stage, Some(Duration::ZERO)).unwrap()
    }

    /// Whether a checkpoint was asked for, which it is no more then.
    fn is_requested(&self) -> bool {
        self.engine.checkpoints.wait(Duration::ZERO) == CheckpointWork::Requested
    }

    /// Meets a request for a sync and a checkpoint, as the committing thread does. There is one.
    fn meet_request(&self) {
        let work = self.engine.commits.wait();
        assert!(matches!(work, Some(CommitWork::Sync(SyncRequest::Checkpoint))), "nobody asked");
        let work = work.unwrap();
        self.engine.at_rest(|stages| self.engine.work_off(&mut stages.committing, work)).unwrap();
    }

    fn fail_next_sync(&self) {
        self.machine.fail_at(self.machine.operations(), Fault::SyncFails);
    }
}

/// Until the event is durable no checkpoint covers what follows the segment. Whoever asked for one meanwhile gets it then.
#[test]
fn a_checkpoint_asked_for_between_an_abandoned_segment_and_its_event_comes_with_the_event() {
    let world = World::new(Durability::Group);
    world.fail_next_sync();
    let position = world.commit_entry();
    assert!(world.has_come(position, Stage::Durable), "a new segment has it");
    world.engine.request_checkpoint();
    assert!(world.is_requested());
    world.engine.step_checkpoint().unwrap();
    assert!(!world.has_come(position, Stage::Checkpointed), "nobody would tell of the segment");
    world.seal_and_commit();
    assert!(world.is_requested(), "who asked waits for ever");
    world.engine.step_checkpoint().unwrap();
    assert!(world.has_come(position, Stage::Checkpointed));
}

#[test]
fn so_too_where_the_event_waits_for_a_sync() {
    let world = World::new(Durability::Interval(Duration::from_secs(3600)));
    let position = world.commit_entry();
    assert!(world.has_come(position, Stage::Written) && !world.has_come(position, Stage::Durable));
    world.engine.request_checkpoint();
    world.fail_next_sync();
    world.meet_request();
    assert!(world.has_come(position, Stage::Durable), "a new segment has it");
    assert!(world.is_requested());
    world.engine.step_publish().unwrap();
    assert!(!world.has_come(position, Stage::Checkpointed), "nobody would tell of the segment");
    world.seal_and_commit();
    // A queue that is closed does not wait.
    world.engine.commits.close();
    world.meet_request();
    assert!(world.is_requested());
    world.engine.step_publish().unwrap();
    assert!(world.has_come(position, Stage::Checkpointed));
}

/// What was taken from the queue then is in no tree.
#[test]
fn nothing_is_published_once_adding_to_the_tree_panicked() {
    let world = World::new(Durability::Group);
    let published = world.engine.published();
    let position = world.commit_entry();
    let (durable, to) = world.engine.checkpoints.take();
    let mut durable = durable.unwrap();
    // It asserts that the seal chain and the tree cover the same frames.
    durable.commitments.pop();
    world.engine.checkpoints.deliver(Some(durable), to);
    assert!(catch_unwind(AssertUnwindSafe(|| world.engine.step_checkpoint())).is_err());
    // As closing does.
    assert_eq!(world.engine.step_publish().unwrap_err().kind(), ErrorKind::Unavailable);
    let told = world.engine.progress.wait(0, position, Stage::Checkpointed, Some(Duration::ZERO));
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(world.engine.published(), published);
}
