//! `witness_policy` of `[log]`: which witnesses a log asks for cosignatures, and which of them it takes.

use bulla_http::Address;
use bulla_proof::cosignature::CosignerKey;
use bulla_proof::policy::{Policy, PolicyWitness};
use bulla_proof::{CosignatureAlgorithm, VerifierKey};
use bulla_store::{Error, Result};

/// The longest policy that a log has, in bytes.
pub(crate) const MOST_POLICY: usize = 128 << 10;
/// The most witnesses that a log asks.
pub const MOST_WITNESSES: usize = 32;

/// A policy as a log has it: its text, and what that says. Equal where the texts are.
#[derive(Clone, Debug)]
pub struct WitnessPolicy {
    text: String,
    policy: Policy,
    asked: Vec<AskedWitness>,
}

/// A witness that a log asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedWitness {
    /// What the policy calls it.
    pub name: String,
    /// The key that it cosigns with.
    pub key: CosignerKey,
    /// The prefix of its address: C2SP tlog-witness.
    pub address: Address,
}

impl WitnessPolicy {
    /// Reads a policy. The witnesses that have a URL in it are asked; `https` leads anywhere, `http` to this machine alone, by its number
    /// (`http://127.0.0.1:6962`).
    ///
    /// # Errors
    /// `Invalid`, naming what is wrong: the policy, a URL, more than [`MOST_WITNESSES`] witnesses with a URL, two keys with one id, or none
    /// with a URL.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MOST_POLICY {
            return Err(Error::invalid(format!(
                "it has {} bytes; a log's policy has at most {MOST_POLICY}",
                text.len()
            )));
        }
        let policy = Policy::parse(text.as_bytes()).map_err(|error| Error::invalid(error.to_string()))?;
        let options = bulla_http::Options { plain_loopback: true, ..bulla_http::Options::default() };
        let mut asked = Vec::<AskedWitness>::new();
        for witness in policy.witnesses() {
            let Some(url) = &witness.url else { continue };
            let address = Address::parse(url, &options)
                .map_err(|error| Error::invalid(format!("the witness `{}`: {error}", witness.name)))?;
            if let Some(other) = asked.iter().find(|other| other.key.key_id() == witness.key.key_id()) {
                return Err(Error::invalid(format!(
                    "the keys of the witnesses `{}` and `{}` have one id",
                    other.name, witness.name
                )));
            }
            asked.push(AskedWitness { name: witness.name.clone(), key: witness.key.clone(), address });
        }
        if asked.is_empty() {
            return Err(Error::invalid(
                "none of its witnesses has a URL, so none could be asked (`witness NAME VKEY https://…`)",
            ));
        }
        if asked.len() > MOST_WITNESSES {
            return Err(Error::invalid(format!(
                "a log asks at most {MOST_WITNESSES} witnesses; this has {}",
                asked.len()
            )));
        }
        Ok(WitnessPolicy { text: text.to_owned(), policy, asked })
    }

    /// Refuses a policy that names logs, of which none is this one, and one with a witness that goes by this log's name and may have its key.
    ///
    /// # Errors
    /// `Invalid`.
    pub(crate) fn check_log(&self, key: &VerifierKey) -> Result<()> {
        let own = |witness: &&PolicyWitness| {
            witness.key.algorithm() == CosignatureAlgorithm::MlDsa44 && witness.key.name() == key.name()
        };
        if let Some(witness) = self.policy.witnesses().iter().find(own) {
            return Err(Error::invalid(format!(
                "the witness `{}` goes by the log's own name: a key with which the log itself signs is no witness",
                witness.name
            )));
        }
        let logs = self.policy.logs();
        match logs.is_empty() || logs.iter().any(|log| log.key == key.clone().into()) {
            true => Ok(()),
            false => Err(Error::invalid(format!(
                "it names logs, and this one is not among them, whose key is {key}"
            ))),
        }
    }

    /// The text of the policy.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The witnesses that are asked: those with a URL.
    pub fn asked(&self) -> &[AskedWitness] {
        &self.asked
    }
}

impl PartialEq for WitnessPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for WitnessPolicy {}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "w.example/1+";

    fn key(seed: u8) -> CosignerKey {
        let secret = bulla_crypto::signing::SigningKey::from_seed("x", &[seed; 32]).unwrap();
        CosignerKey::ed25519(format!("{KEY}{seed}").replace('+', "-"), *secret.verifier().public_key())
            .unwrap()
    }

    #[test]
    fn witnesses_with_an_address_are_asked() {
        let text = format!(
            "witness a {} https://a.example/w\nwitness b {} http://127.0.0.1:1\nwitness c {}\ngroup g 2 a b c\nquorum g\n",
            key(1),
            key(2),
            key(3)
        );
        let policy = WitnessPolicy::parse(&text).unwrap();
        assert_eq!(policy.text(), text);
        let asked: Vec<_> =
            policy.asked().iter().map(|witness| (&witness.name[..], witness.address.as_str())).collect();
        assert_eq!(asked, [("a", "https://a.example/w"), ("b", "http://127.0.0.1:1")]);
    }

    #[test]
    fn what_could_not_be_asked_is_refused() {
        let one = key(1);
        let many: String = (0..=u8::try_from(MOST_WITNESSES).unwrap())
            .map(|at| format!("witness n{at} {} https://a.example\n", key(at)))
            .collect();
        for (text, why) in [
            (format!("witness a {one} http://a.example\nquorum a\n"), "the witness `a`: http://a.example"),
            (format!("witness a {one} ftp://a.example\nquorum a\n"), "only https"),
            (format!("witness a {one}\nquorum a\n"), "has a URL"),
            ("quorum none\n".to_owned(), "has a URL"),
            (format!("witness a {one} https://a.example\n"), "quorum"),
            (format!("{many}quorum none\n"), "at most 32"),
            (format!("#{}\n", "x".repeat(MOST_POLICY)), "at most"),
        ] {
            let error = WitnessPolicy::parse(&text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let log = bulla_crypto::signing::SigningKey::from_seed("example.com/log", &[9; 32]).unwrap();
        let other = bulla_crypto::signing::SigningKey::from_seed("example.com/log", &[8; 32]).unwrap();
        let text = format!("log {}\nwitness a {one} https://a.example\nquorum a\n", log.verifier());
        let policy = WitnessPolicy::parse(&text).unwrap();
        policy.check_log(log.verifier()).unwrap();
        assert!(policy.check_log(other.verifier()).is_err());
        let own = CosignerKey::ml_dsa_44("example.com/log", &[7; 1312]).unwrap();
        let text = format!("witness a {one} https://a.example\nwitness own {own}\nquorum own\n");
        let error = WitnessPolicy::parse(&text).unwrap().check_log(log.verifier()).unwrap_err().to_string();
        assert!(error.contains("`own` goes by the log's own name"), "{error}");
    }
}
