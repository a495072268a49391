//! What the engine takes from outside: time, randomness, the cipher, the wrapping of keys.
//!
//! Each is reached through this module alone, so that a test can put a seed, a recorder or a simulated clock there.

use crate::group::Subjects;
use crate::recipients;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use bulla_store::{Error, ErrorKind, Result};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::{self, Debug};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Wall-clock time, and waiting.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the Unix epoch, UTC.
    fn now(&self) -> i64;
    /// Waits between retries, never per entry. The wait ends early where `interrupt` is raised; a simulated clock, on
    /// which waiting takes no time, need not look at that.
    fn wait(&self, time: Duration, interrupt: &Interrupt);

    /// Nanoseconds from any start, which never go back: for telemetry. A clock may do without.
    fn steady(&self) -> u64 {
        0
    }

    /// Nanoseconds of processor time that this thread has had: for telemetry. A clock may do without.
    fn processor(&self) -> u64 {
        0
    }
}

/// Ends waits early: once it is raised, every wait for it returns at once.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: Mutex<bool>,
    changed: Condvar,
}

impl Interrupt {
    /// Ends the waits of now and of later.
    pub fn raise(&self) {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for `time` at most. Returns whether this is raised.
    pub fn wait(&self, time: Duration) -> bool {
        let raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(raised, time, |raised| !*raised);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether this is raised.
    pub fn is_raised(&self) -> bool {
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source of random bytes fit for keys.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    ///
    /// # Errors
    /// Where the operating system has none to give.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// AES-256-GCM with the frame number as nonce.
pub trait Cipher: Send + Sync {
    /// Encrypts `text` in place and appends the 16-byte tag.
    ///
    /// # Errors
    /// Where the cipher refuses; the frame is then abandoned.
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()>;
    /// Decrypts in place and cuts the tag off.
    ///
    /// # Errors
    /// `Tampered` where the tag does not match.
    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()>;
}

/// Wraps epoch keys to the log's recipients.
pub trait KeyWrap: Send + Sync {
    /// `key` as an age file that any of `recipients` opens. Whoever else is asked for it may take up to `limit`.
    ///
    /// # Errors
    /// `Invalid` where a recipient is not one, `Unavailable` where it may be tried again.
    fn wrap(&self, recipients: &[String], key: &[u8; 32], limit: Duration) -> Result<Vec<u8>>;
}

/// All of it together. [`Environment::default`] is the real one.
#[derive(Clone)]
#[allow(missing_docs)]
pub struct Environment {
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub cipher: Arc<dyn Cipher>,
    pub key_wrap: Arc<dyn KeyWrap>,
    /// Where data subjects have their numbers and keys, in place of the vault in the key directory.
    pub subjects: Option<Arc<dyn Subjects>>,
}

impl Default for Environment {
    fn default() -> Self {
        Environment {
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            cipher: Arc::new(AesGcm),
            key_wrap: Arc::new(recipients::Age::default()),
            subjects: None,
        }
    }
}

impl Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> i64 {
        let now = SystemTime::now();
        match now.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos),
        }
    }

    fn wait(&self, time: Duration, interrupt: &Interrupt) {
        interrupt.wait(time);
    }

    #[inline]
    fn steady(&self) -> u64 {
        read(ClockId::Monotonic)
    }

    fn processor(&self) -> u64 {
        read(ClockId::ThreadCPUTime)
    }
}

#[inline]
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The operating system's random bytes.
#[derive(Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|error| {
            Error::unavailable(format!("the operating system gave no random bytes: {error}"))
        })
    }
}

/// AES-256-GCM of AWS-LC.
#[derive(Debug)]
pub struct AesGcm;

impl AesGcm {
    fn key(key: &[u8; 32]) -> Result<LessSafeKey> {
        let key = UnboundKey::new(&AES_256_GCM, key);
        Ok(LessSafeKey::new(key.map_err(|_| Error::unavailable("AES-256-GCM refused the key"))?))
    }

    fn nonce(frame: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&frame.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Cipher for AesGcm {
    fn seal(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        Self::key(key)?
            .seal_in_place_append_tag(Self::nonce(frame), Aad::from(additional), text)
            .map_err(|_| Error::unavailable(format!("AES-256-GCM refused frame {frame}")))
    }

    fn open(&self, key: &[u8; 32], frame: u64, additional: &[u8], text: &mut Vec<u8>) -> Result<()> {
        let length = Self::key(key)?
            .open_in_place(Self::nonce(frame), Aad::from(additional), text)
            .map_err(|_| {
                Error::new(ErrorKind::Tampered, format!("frame {frame}: the body does not decrypt"))
            })?
            .len();
        text.truncate(length);
        Ok(())
    }
}
