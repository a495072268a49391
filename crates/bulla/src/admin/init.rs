//! Making an empty log.

mod place;

use crate::format::config::{self, FieldRules, allowed::AllowedConfig};
use crate::format::files::{CHECKPOINT, COSE_CHECKPOINT, DIRECTORIES};
use crate::keys::default_keys;
use crate::keys::files;
use crate::keys::pseudonym::PseudonymKey;
use crate::keys::seal_state::SealState;
use crate::keys::vault::create_vault;
use crate::write::checkpoint;
use bulla_crypto::environment::{Environment, Random};
use bulla_crypto::ml_dsa::MlDsaSigningKey;
use bulla_crypto::seal_chain::{SealChain, render_seal_key};
use bulla_crypto::signing::SigningKey;
use bulla_crypto::{identities, plugin, recipients};
use bulla_proof::LogKey;
use bulla_proof::checkpoint::VerifierKey;
use bulla_proof::commitment::LogId;
use bulla_proof::hash::HashId;
use bulla_proof::tree::{self, TreeHead};
use bulla_store::{Error, Result};
use bulla_store::{FileSystem, Store};
use place::Place;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

/// What a new log is to be.
///
/// ```
/// # let place = tempfile::tempdir().unwrap();
/// let created = bulla::Init::default().origin("example.com/audit").create(place.path().join("audit")).unwrap();
/// println!("verify with {}", created.verifier_key);
/// ```
#[derive(Clone, Debug)]
pub struct Init {
    origin: Option<String>,
    recipients: Vec<String>,
    hash: HashId,
    /// Names of fields and their rules.
    fields: Vec<(String, String)>,
    erasure: bool,
    erasure_key: Option<VerifierKey>,
    ml_dsa: bool,
    common: Option<u32>,
    heartbeat: Option<Duration>,
    witness_policy: Option<String>,
    extra: Vec<(String, String)>,
}

/// What was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Created {
    /// The log's identity.
    pub id: LogId,
    /// The origin of its checkpoints.
    pub origin: String,
    /// The key that its checkpoints verify with.
    pub verifier_key: VerifierKey,
    /// The key of ML-DSA-44 that they verify with too: see [`Init::ml_dsa`].
    pub ml_dsa_key: Option<LogKey>,
    /// Whether an identity was made, because no recipient was given: it lies in the key directory.
    pub made_identity: bool,
    /// The key that orders to erase have to be signed with, of a log with erasure.
    pub erasure_key: Option<VerifierKey>,
    /// Whether its secret half was made, because no key was given: it lies in the key directory.
    pub made_erasure_key: bool,
    /// Whether there is a file with the key of pseudonyms in the key directory: a rule makes some, and the log has no
    /// vault that the key could come from.
    pub made_pseudonym_key: bool,
}

impl Default for Init {
    fn default() -> Self {
        Init {
            origin: None,
            recipients: Vec::new(),
            hash: HashId::default(),
            fields: Vec::new(),
            erasure: true,
            erasure_key: None,
            ml_dsa: false,
            common: Some(config::DEFAULT_COMMON),
            heartbeat: None,
            witness_policy: None,
            extra: Vec::new(),
        }
    }
}

impl Init {
    /// The origin of the log's checkpoints and name of its key, by convention a URL without its scheme
    /// (default `bulla.invalid/` and the log's id).
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Adds an age recipient that can read the log. Without any, an identity is made.
    pub fn recipient(mut self, recipient: impl Into<String>) -> Self {
        self.recipients.push(recipient.into());
        self
    }

    /// The hash of units and block roots (default SHA-256).
    pub fn hash(mut self, hash: HashId) -> Self {
        self.hash = hash;
        self
    }

    /// Gives a field a rule: what becomes of it before it is logged, such as `drop` or `truncate-ip:24/48`.
    pub fn field(mut self, field: impl Into<String>, rule: impl Into<String>) -> Self {
        self.fields.push((field.into(), rule.into()));
        self
    }

    /// Whether personal fields are encrypted once more, for each set of data subjects, so that they can be erased
    /// (default: yes). A log never changes in this. The keys of data subjects lie in a vault in the key directory.
    pub fn erasure(mut self, erasure: bool) -> Self {
        self.erasure = erasure;
        self
    }

    /// The key that orders to erase have to be signed with. Without one, it is made in the key directory.
    pub fn erasure_key(mut self, key: VerifierKey) -> Self {
        self.erasure_key = Some(key);
        self
    }

    /// Whether checkpoints are signed with ML-DSA-44 (FIPS 204) too, beside Ed25519 (default: no). A log never changes in this.
    pub fn ml_dsa(mut self, ml_dsa: bool) -> Self {
        self.ml_dsa = ml_dsa;
        self
    }

    /// In how many groups of a block, no two of which have a data subject in common, a word or a shape of personal fields has to occur
    /// before it stands once in the part that they share, from 8 to 65,536 (default: 16); `None` where nothing is ever shared. What is
    /// shared outlives an erasure. A log never changes in this.
    pub fn common(mut self, groups: Option<u32>) -> Self {
        self.common = groups;
        self
    }

    /// Has the log promise that no more than this (1 s to 24 h) passes until the writer commits an epoch or an event, so
    /// that whoever reads a copy of the log can tell whether that has stopped to follow (default: it promises nothing).
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Has the log ask witnesses for cosignatures: the text of a policy (C2SP tlog-policy), of which those are asked that have a URL
    /// (default: none). What the writer is told by a receipt waits for none of them.
    pub fn witness_policy(mut self, policy: impl Into<String>) -> Self {
        self.witness_policy = Some(policy.into());
        self
    }

    /// Puts a key of one's own into `[log]`, whose name begins with `x-`: it is hashed as all of `[log]` is, and never changes.
    pub fn extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra.push((key.into(), value.into()));
        self
    }

    /// Makes the log in `directory`, and its keys in `DIR.keys`.
    ///
    /// # Errors
    /// Whatever was made is removed again. `Refused` where either directory has something in it, `Locked` where somebody else is
    /// making a log in it, `Invalid` where one directory is the other or lies in it, for a recipient or origin that is none, and for
    /// a rule that is none or that its field cannot have or a heartbeat or `common` out of its limits or a policy that is none, `Unavailable` where a file cannot be written.
    pub fn create(self, directory: impl AsRef<Path>) -> Result<Created> {
        let keys = default_keys(directory.as_ref());
        self.create_with_keys(directory, keys)
    }

    /// Makes the log in `directory`, and its keys in another place.
    ///
    /// # Errors
    /// As [`Init::create`].
    pub fn create_with_keys(self, directory: impl AsRef<Path>, keys: impl AsRef<Path>) -> Result<Created> {
        let (log, keys) = (FileSystem::new(directory.as_ref()), FileSystem::new(keys.as_ref()));
        self.create_in(&log, &keys, &Environment::default())
    }

    /// Makes the log in any stores.
    ///
    /// # Errors
    /// As [`Init::create`]; `Invalid` for a log with erasure where `keys` is no directory, which a vault lies in, and
    /// `environment` has no [`subjects`](Environment::subjects) in place of that.
    pub fn create_in(self, log: &dyn Store, keys: &dyn Store, environment: &Environment) -> Result<Created> {
        place::require_apart(log, keys)?;
        let id = LogId(random(&*environment.random)?);
        let origin = self.origin.unwrap_or_else(|| config::default_origin(id));
        let signing = SigningKey::from_seed(&origin, &Zeroizing::new(random(&*environment.random)?))?;
        let signing = match self.ml_dsa {
            true => {
                let seed = Zeroizing::new(random(&*environment.random)?);
                signing.with_ml_dsa(MlDsaSigningKey::from_seed(&origin, &seed)?)
            }
            false => signing,
        };
        let fields = rules(&self.fields)?;
        self.heartbeat.map_or(Ok(()), config::check_heartbeat)?;
        self.common.map_or(Ok(None), |groups| config::parse_common(&groups.to_string()))?;
        check_extra(&self.extra)?;
        let witness_policy = self.witness_policy.as_deref();
        witness_policy
            .map_or(Ok(()), |text| config::parse_witness_policy(text, signing.verifier()).map(drop))?;
        for recipient in &self.recipients {
            recipients::check_recipient(recipient)?;
        }
        if !self.recipients.is_empty() {
            // A key is wrapped to all of them now, so that no log is made that nobody could read.
            environment.key_wrap.wrap(&self.recipients, &[0; 32], plugin::DEFAULT_TIMEOUT)?;
        }
        let vault = match self.erasure && environment.subjects.is_none() {
            true => Some(keys.directory().ok_or_else(|| no_place_for_a_vault(keys))?),
            false => None,
        };
        place::require_unused(log, keys)?;
        // What fails from here on leaves nothing behind: what was taken last goes first, which may lie in the other.
        let log_place = Place::take(log, &place::LOG)?;
        let key_place = Place::take(keys, &place::KEYS)?;
        let made_identity = self.recipients.is_empty();
        let mut recipients = self.recipients;
        if made_identity {
            let (identity, recipient) = identities::generate();
            write(keys, files::IDENTITY, identity.as_bytes())?;
            recipients.push(recipient);
        }
        let made_erasure_key = self.erasure && self.erasure_key.is_none();
        let erasure_key = match self.erasure_key {
            None if self.erasure => {
                let seed = Zeroizing::new(random(&*environment.random)?);
                let key = SigningKey::from_seed(&format!("{origin}{}", config::ERASURE_KEY_SUFFIX), &seed)?;
                write(keys, files::ERASURE_KEY, key.render().as_bytes())?;
                Some(key.verifier().clone())
            }
            given => given.filter(|_| self.erasure),
        };
        let verifier_key = signing.verifier();
        let erasure = erasure_key.as_ref().map(|key| (key, self.common));
        let text = config::render(id, &origin, verifier_key, self.hash, &recipients, &fields, erasure)?;
        let text = config::edit::set_heartbeat(&text, self.heartbeat)?;
        let ml_dsa = signing.ml_dsa().map(|key| ("vkey_ml_dsa".to_owned(), key.verifier().to_string()));
        let text = config::edit::add_extra(&text, &ml_dsa.into_iter().collect::<Vec<_>>())?;
        let text = config::edit::set_witness_policy(&text, witness_policy)?;
        let text = config::edit::add_extra(&text, &self.extra)?;
        let (config, _) = config::parse(text.as_bytes())?;
        config.erasure_key.as_ref().map_or(Ok(()), |key| config.check_erasure_key(key))?;

        if let Some(directory) = vault {
            create_vault(directory, id, environment)?;
        }
        let state = Zeroizing::new(random(&*environment.random)?);
        write(keys, files::SIGNING, signing.render().as_bytes())?;
        if let Some(key) = signing.ml_dsa() {
            write(keys, files::SIGNING_ML_DSA, key.render().as_bytes())?;
        }
        write(keys, files::SEAL_KEY, render_seal_key(id, &state).as_bytes())?;
        if fields.pseudonymise() {
            PseudonymKey::make_where_missing(&config, keys, environment)?;
        }
        let (chain, terms) = (SealChain::start(*state), AllowedConfig::of(config.digest));
        SealState::first(id, terms, chain).save(keys)?;

        prepare(log, &DIRECTORIES)?;
        write(
            log,
            CHECKPOINT,
            checkpoint::signed_note(&origin, 0, tree::empty_root(), &signing)?.as_bytes(),
        )?;
        write(log, COSE_CHECKPOINT, &checkpoint::signed_as_cose(&origin, TreeHead::empty(), &signing))?;
        // This file comes last: with it the directory is a log.
        write(log, config::FILE, text.as_bytes())?;
        key_place.keep();
        log_place.keep();
        let made_pseudonym_key = fields.pseudonymise() && vault.is_none();
        Ok(Created {
            id,
            origin,
            verifier_key: config.verifier_key,
            ml_dsa_key: config.ml_dsa_key,
            made_identity,
            erasure_key,
            made_erasure_key,
            made_pseudonym_key,
        })
    }
}

fn check_extra(extra: &[(String, String)]) -> Result<()> {
    let mut names = HashSet::new();
    extra.iter().try_for_each(|(name, _)| match names.insert(name) {
        true => config::check_extra(name),
        false => Err(Error::invalid(format!("`{name}` is given twice"))),
    })
}

fn no_place_for_a_vault(keys: &dyn Store) -> Error {
    Error::invalid(format!(
        "{} is no directory that can hold the vault of a log with erasure: make a log without (`Init::erasure(false)`), or \
         say in `Environment::subjects` where data subjects have their keys",
        keys.describe("")
    ))
}

/// Refuses two rules for one field, of which one would be ignored.
fn rules(fields: &[(String, String)]) -> Result<FieldRules> {
    let mut rules = FieldRules::default();
    for (index, (field, rule)) in fields.iter().enumerate() {
        if fields[..index].iter().any(|(earlier, _)| earlier == field) {
            return Err(Error::invalid(format!("`{field}` has two rules; it may have one")));
        }
        rules.set(field, rule)?;
    }
    Ok(rules)
}

fn random<const N: usize>(random: &dyn Random) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    random.fill(&mut bytes)?;
    Ok(bytes)
}

fn prepare(store: &dyn Store, directories: &[&str]) -> Result<()> {
    for directory in std::iter::once(&"").chain(directories) {
        let made = store.create_directory(directory);
        made.map_err(|error| Error::io(format!("creating {}", store.describe(directory)), error))?;
    }
    store.sync_directory("").map_err(|error| Error::io(format!("syncing {}", store.describe("")), error))
}

fn write(store: &dyn Store, path: &str, content: &[u8]) -> Result<()> {
    let written = bulla_store::write_new(store, path, content);
    written.map_err(|error| Error::io(format!("writing {}", store.describe(path)), error))
}
