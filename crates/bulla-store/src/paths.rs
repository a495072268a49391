//! A log that lies on several paths, as those who write it see it: of which one takes what is written, and what they do where that
//! one fails. Whoever reads such a store sees one directory.

use crate::{Result, Store};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// What a [`Store`](crate::Store) can do besides that is put together of several paths.
///
/// A *turn* is the time in which one path takes what is written. They are counted from 0, when the store was opened.
pub trait Paths: Debug {
    /// The turn now.
    fn turn(&self) -> u64;

    /// The turn now, and the path that takes what is written in it, by itself: whoever writes what belongs together has it on one path so.
    fn current(&self) -> (u64, Arc<dyn Store>);

    /// All paths, also those that are not there: the log's own directory first.
    fn all(&self) -> Vec<Arc<dyn Store>>;

    /// How many other paths there are that could take over.
    fn others(&self) -> usize;

    /// Has another path take what is written from now on, because one failed in this turn; `why` says how. True where one has, also
    /// where that was done by somebody else since. False where no other path takes the log, so that the turn goes on. They are tried in a
    /// ring, behind the one that failed first, so that one which takes nothing is never tried in the place of one that nobody has tried.
    fn fail_over(&self, turn: u64, why: &str) -> bool;

    /// Whether a file lies on the path that takes what is written; where several have one of that name, whether the one that is read does.
    fn is_in_use(&self, path: &str) -> bool;

    /// The paths that are there, each by itself: first the one that takes what is written, then as far as the log has come on each.
    fn present(&self) -> Vec<Arc<dyn Store>>;

    /// The path on which a file lies, by itself; `None` where no path has it.
    fn holding(&self, path: &str) -> Option<Arc<dyn Store>>;

    /// Says how many frames were found when the log was opened for writing, on whichever paths. Until then, what a path does not give back
    /// is an error, whichever path it is.
    fn opened(&self, frames: u64);

    /// Says that frames are about to be written on the path of this turn, and how many the log has with them. False where another one has
    /// taken over by now: then nothing may be written there.
    fn takes(&self, turn: u64, frames: u64) -> bool;

    /// Says that no path takes what is written, and that it is tried again after a wait.
    fn waits(&self);

    /// Says that frames are durable on the path of this turn: that it took over, or that the log waits no more, is told then, and an event is
    /// to tell of the path.
    fn committed(&self, turn: u64);

    /// Says that a checkpoint was published on the path of this turn. False where another one has taken over by now, which has it not.
    /// The other paths of which it covers all frames that they took count as left.
    fn published(&self, turn: u64, checkpoint: &[u8]) -> bool;

    /// Keeps the files that the checkpoint which was published last needs beside full tiles: another path that takes over is given them, what
    /// else it lacks of the tree, and the checkpoint, before anything else.
    fn keep_edge(&self, files: Vec<(String, Vec<u8>)>);

    /// Keeps the same of a tree of so many frames, which is about to be signed on the path of this turn: before anything outside of the log
    /// speaks of it, so that a path which takes over meanwhile is given it as well. Once that is published it takes the place of the
    /// former. False where another path has taken over by now, which was not given it.
    fn keep_next(&self, turn: u64, frames: u64, files: Vec<(String, Vec<u8>)>) -> bool;

    /// Whether somebody has said of a path that it is lost for good, and it is none of those that are there. One that is merely missing is
    /// not lost, however long.
    fn has_lost_one(&self) -> bool;

    /// From which frame on none can have been lost with such a path: what was signed after all of them were said to be lost lay on none. 0 where there
    /// is none, `u64::MAX` where nobody knows.
    fn lost_below(&self) -> u64;

    /// Says that the log's frames from this one on were given up: what is signed in their place lies on no path that is lost.
    ///
    /// # Errors
    /// Where that cannot be noted, durably.
    fn given_up_from(&self, frame: u64) -> Result<()>;

    /// Says that no frame from this one on lies on a path that was noted as lost when nothing told how many were signed.
    ///
    /// # Errors
    /// Where that cannot be noted, durably.
    fn number_lost(&self, frame: u64) -> Result<()>;

    /// Whether all paths that are named are there, and list their segments: what none of them has is on none. Looks at each of them.
    fn are_all_there(&self) -> bool;

    /// Whether the checkpoint that was published last lies on the path that takes what is written.
    fn has_published(&self) -> bool;

    /// Gives files that never change, of which the checkpoint needs some that was published last, to the other paths, as far as they take
    /// them: nobody waits for those that do not, and they are given them later.
    fn spread(&self, files: &[(String, Vec<u8>)]);

    /// Looks again which path has come furthest, for whoever reads beside a writer.
    fn look_again(&self);

    /// How many paths do not work at present, of a log that is written: those that are missing or could not be locked, those that failed when
    /// something was written to them last, and all, as long as none takes what is written.
    fn failing(&self) -> usize;

    /// Which paths took over since this was asked last, of those on which something was committed.
    fn take_switches(&self) -> Vec<Switch>;

    /// The paths that are not there.
    fn missing(&self) -> Vec<MissingPath>;

    /// Refuses a log of which nobody can tell which paths it has.
    ///
    /// # Errors
    /// `Unavailable`, saying why the key directory's settings cannot be read, where no path was named by hand.
    fn require_named(&self) -> Result<()>;

    /// That the path on which the log seems to have come furthest holds another history of the log than the key directory's seal state was written
    /// for, in words that name it; `None` where that is not so, or cannot be told.
    fn another_history(&self) -> Option<String>;

    /// The frames that were signed, as the key directory knows, behind the newest checkpoint of the paths that are there, where none of these
    /// has their tree. `None` where nothing is known of such frames.
    ///
    /// # Errors
    /// `Unavailable` where the key directory's seal state, which tells of them, is damaged; and where it is not there, or cannot be read, and
    /// a path is lost, or missing without having been left, or it is not known which paths there are.
    fn out_of_reach(&self) -> Result<Option<Range<u64>>>;

    /// How many frames were signed, as the key directory's seal state says, where these are more than the `covered` ones that were read, and the newest
    /// checkpoint that is there covers fewer and goes on to: a writer that is at work is waited for. `None` where nothing says so.
    ///
    /// # Errors
    /// Where that cannot be told.
    fn unpublished(&self, covered: u64) -> Result<Option<u64>>;

    /// How many frames were signed, as the key directory's seal state says by now; 0 where nothing says so. Reads that file, and nothing else.
    fn sealed(&self) -> u64;

    /// How many frames the log's vault has followed, at least, as the key directory's seal state says; 0 where nothing says so.
    fn vault_follows(&self) -> u64;

    /// All paths that are named, in the order in which they are tried, and those that the key directory has as lost.
    fn states(&self) -> Vec<PathState>;

    /// What is wrong with paths that are not what they say they are, one sentence each: two places that both say they are one path, and
    /// one in whose place another is expected.
    fn mismatches(&self) -> Vec<String>;

    /// The paths that have segments of the log and no checkpoint, one sentence each: each is given one before its first segment, so
    /// somebody took it away, and the log may have come further there than on any other.
    fn without_checkpoint(&self) -> Vec<String>;

    /// Refuses a log that is not to be answered from for want of a path. Gives the checkpoint that was looked at, where the key directory told
    /// how far it has to go: what was read of another one is not judged by that, also where this is the same file a moment before or after.
    /// One that is written is always read.
    ///
    /// # Errors
    /// `Unavailable` where a path is missing that may hold what no other has, where frames are [out of reach](Paths::out_of_reach) or it is
    /// [another history](Paths::another_history), and as that and [`Paths::require_named`]; `Tampered` where there are [`Paths::mismatches`].
    fn require_readable(&self) -> Result<Option<Vec<u8>>>;

    /// What lies on one path and contradicts the others, one sentence each: a checkpoint that is not of a beginning of the log, or of which
    /// that cannot be told; and a segment of which another path has another one by the same name.
    fn contradictions(&self) -> Vec<String>;

    /// Refuses a log that is read while a path of it could not be looked at when that was done last: what it has, or whether it is missing,
    /// nobody can tell then. One that is written goes by [`Paths::require_all`].
    ///
    /// # Errors
    /// `Unavailable`, naming the path.
    fn require_clear(&self) -> Result<()>;

    /// Refuses a log that cannot be gone on with for want of a path.
    ///
    /// # Errors
    /// `Unavailable` where a path is missing that may hold what no other has; `Tampered` where what lies on one contradicts the others.
    fn require_all(&self) -> Result<()>;
}

/// That another path took over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The id of the path before, in hexadecimal.
    pub from: String,
    /// The id of the one that took over.
    pub to: String,
    /// What failed.
    pub reason: String,
}

/// A path that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPath {
    /// Where it should be.
    pub place: String,
    /// Its id in hexadecimal, as far as that is known.
    pub id: Option<String>,
    /// Why it counts for missing.
    pub reason: String,
    /// Whether the writer has left it, so that it holds nothing newer than the others.
    pub left: bool,
}

/// A path of a log, and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathState {
    /// Where it is, or was last.
    pub place: String,
    /// Its id in hexadecimal, as far as that is known.
    pub id: Option<String>,
    /// What the writer made of it.
    pub standing: PathStanding,
    /// Why it counts for missing; `None` where it is there, and of one that is lost.
    pub missing: Option<String>,
}

/// What the writer of a log made of one of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStanding {
    /// It takes what is written: the log has come furthest on it, and none is missing on which it may have come further.
    InUse,
    /// It may hold what no other path has.
    Kept,
    /// The writer has left it, so that it holds nothing newer than the others.
    Left,
    /// It is lost for good, and none of the log's paths any more.
    Lost,
}
