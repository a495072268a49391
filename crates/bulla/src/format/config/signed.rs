//! The keys that a log signs its checkpoints with, as whoever reads one asks for them: each that the log has, and not just one of them.

use super::LogConfig;
use bulla_proof::checkpoint::{Checkpoint, SignedNote, VerifierKey, open_checkpoint};
use bulla_proof::{CosignatureAlgorithm, LogKey};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnKeys<'a> {
    ed25519: &'a VerifierKey,
    ml_dsa: Option<&'a LogKey>,
}

impl LogConfig {
    /// The keys that its checkpoints are signed with.
    pub(crate) fn own_keys(&self) -> OwnKeys<'_> {
        OwnKeys { ed25519: &self.verifier_key, ml_dsa: self.ml_dsa_key.as_ref() }
    }
}

impl<'a> OwnKeys<'a> {
    pub(crate) fn new(ed25519: &'a VerifierKey, ml_dsa: Option<&'a LogKey>) -> Self {
        OwnKeys { ed25519, ml_dsa }
    }
}

impl<'a> From<&'a VerifierKey> for OwnKeys<'a> {
    fn from(ed25519: &'a VerifierKey) -> Self {
        OwnKeys { ed25519, ml_dsa: None }
    }
}

impl OwnKeys<'_> {
    /// The one of Ed25519, which every log has. Its name is the log's origin.
    pub(crate) fn ed25519(&self) -> &VerifierKey {
        self.ed25519
    }

    /// That each of them signed the note. A log signs with ML-DSA-44 at the time 0.
    ///
    /// # Errors
    /// Which one did not, and why.
    pub(crate) fn require_signed(&self, note: &SignedNote<'_>) -> Result<(), String> {
        let OwnKeys { ed25519, ml_dsa } = self;
        note.verify(ed25519).map_err(|error| format!("it is not signed by the log's key: {error}"))?;
        let Some(LogKey::MlDsa44(key)) = ml_dsa else { return Ok(()) };
        debug_assert_eq!(key.algorithm(), CosignatureAlgorithm::MlDsa44);
        match key.verify(note) {
            Ok(signed) if signed.timestamp == 0 => Ok(()),
            Ok(signed) => Err(format!(
                "its signature with the log's key of ML-DSA-44 has the time {}, where a log's has 0",
                signed.timestamp
            )),
            Err(error) => Err(format!("it is not signed by the log's key of ML-DSA-44: {error}")),
        }
    }

    /// Reads a checkpoint of the log, which each of them has to have signed.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn open(&self, note: &[u8]) -> Result<Checkpoint, String> {
        let checkpoint = open_checkpoint(note, self.ed25519).map_err(|error| error.to_string())?;
        let note = SignedNote::parse(note).map_err(|error| error.to_string())?;
        self.require_signed(&note).map(|()| checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_crypto::ml_dsa::MlDsaSigningKey;
    use bulla_crypto::signing::SigningKey;
    use bulla_proof::checkpoint::sign_checkpoint;
    use bulla_proof::hash::Hash;
    use bulla_witness::key::WitnessKey;

    const ORIGIN: &str = "example.com/log";

    /// With the same key, at another time.
    #[test]
    fn a_log_signs_with_ml_dsa_at_the_time_zero() {
        let (one, seed) = (SigningKey::from_seed(ORIGIN, &[9; 32]).unwrap(), [7; 32]);
        let beside = MlDsaSigningKey::from_seed(ORIGIN, &seed).unwrap();
        let checkpoint = Checkpoint::new(ORIGIN, 7, Hash([7; 32]));
        let note = sign_checkpoint(&checkpoint, one.verifier(), |text| one.sign(text));
        let at = |time| {
            WitnessKey::from_seed(ORIGIN, CosignatureAlgorithm::MlDsa44, &seed)
                .unwrap()
                .cosign(&checkpoint.body(), time)
                .unwrap()
        };
        let key = LogKey::MlDsa44(beside.verifier().clone());
        let keys = OwnKeys::new(one.verifier(), Some(&key));
        let open =
            |lines: &str| keys.open(format!("{note}{lines}").as_bytes()).map(|checkpoint| checkpoint.size);
        assert_eq!(open(&at(0)), Ok(7));
        assert_eq!(open(&beside.sign(&checkpoint.body()).unwrap()), Ok(7));
        for lines in [at(5), format!("{}{}", at(0), at(5)), format!("{}{}", at(5), at(0))] {
            let why = open(&lines).unwrap_err();
            assert!(why.contains("has the time 5, where a log's has 0"), "{why}");
        }
        assert!(open("").unwrap_err().contains("ML-DSA-44"));
        assert_eq!(
            OwnKeys::from(one.verifier()).open(note.as_bytes()).map(|checkpoint| checkpoint.size),
            Ok(7)
        );
    }
}
