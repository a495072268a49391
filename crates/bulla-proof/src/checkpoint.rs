//! Checkpoints: the signed heads of the log's tree, as
//! [C2SP tlog-checkpoint](https://c2sp.org/tlog-checkpoint) says. Notes and keys, on which they rest, are in
//! [`crate::note`] and found here too.

pub use crate::note::{
    MAX_NOTE, MAX_SIGNATURES, NoteError, NoteSignature, SIGNATURE_LENGTH, SignedNote, VerifierKey,
};

use crate::hash::Hash;

/// The head of a log's tree at one size.
///
/// ```
/// use bulla_proof::{Checkpoint, tree};
///
/// let checkpoint = Checkpoint::new("example.com/log", 0, tree::empty_root());
/// assert_eq!(checkpoint.body(), "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n");
/// assert_eq!(Checkpoint::parse(&checkpoint.body()), Ok(checkpoint));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's identity. Not empty, one line.
    pub origin: String,
    /// The number of leaves.
    pub size: u64,
    /// The root of the tree at that size.
    pub root: Hash,
    /// Further lines of the signed text, none empty. Bulla writes none.
    pub extensions: Vec<String>,
}

impl Checkpoint {
    /// The head `root` at `size`, with no extension lines.
    pub fn new(origin: impl Into<String>, size: u64, root: Hash) -> Self {
        Checkpoint { origin: origin.into(), size, root, extensions: Vec::new() }
    }

    /// Reads the text of a note.
    ///
    /// # Errors
    /// [`NoteError::NotText`], [`NoteError::CheckpointLines`], [`NoteError::CheckpointSize`] or
    /// [`NoteError::CheckpointRoot`] for another text than [`Checkpoint::body`] writes.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        if text.bytes().any(|byte| byte < b' ' && byte != b'\n') {
            return Err(NoteError::NotText);
        }
        let lines = text.strip_suffix('\n').ok_or(NoteError::CheckpointLines)?;
        if lines.split('\n').any(str::is_empty) {
            return Err(NoteError::CheckpointLines);
        }
        let mut lines = lines.split('\n');
        let mut line = || lines.next().ok_or(NoteError::CheckpointLines);
        let (origin, size, root) = (line()?, line()?, line()?);
        Ok(Checkpoint {
            origin: origin.to_owned(),
            size: parse_size(size).ok_or(NoteError::CheckpointSize)?,
            root: Hash::from_base64(root).ok_or(NoteError::CheckpointRoot)?,
            extensions: lines.map(str::to_owned).collect(),
        })
    }

    /// The text of the note: what is signed.
    pub fn body(&self) -> String {
        let mut body = format!("{}\n{}\n{}\n", self.origin, self.size, self.root.to_base64());
        for line in &self.extensions {
            body.push_str(line);
            body.push('\n');
        }
        body
    }
}

/// Reads the signed checkpoint of the log whose key is `key`.
///
/// # Errors
/// What [`SignedNote::parse`], [`SignedNote::verify`] and [`Checkpoint::parse`] refuse, in that order, and
/// [`NoteError::Origin`] where the checkpoint's origin is not the key's name.
pub fn open_checkpoint(note: &[u8], key: &VerifierKey) -> Result<Checkpoint, NoteError> {
    let note = SignedNote::parse(note)?;
    note.verify(key)?;
    let checkpoint = Checkpoint::parse(note.text)?;
    if checkpoint.origin == key.name() { Ok(checkpoint) } else { Err(NoteError::Origin) }
}

/// Makes the signed note of `checkpoint`. `sign` gives the Ed25519 signature, by the secret key of `key`, of the
/// bytes that it is given.
///
/// # Panics
/// When the checkpoint is not of the log whose key is `key`, or is not one that [`Checkpoint::parse`] reads back.
pub fn sign_checkpoint(
    checkpoint: &Checkpoint,
    key: &VerifierKey,
    sign: impl FnOnce(&[u8]) -> [u8; SIGNATURE_LENGTH],
) -> String {
    let body = checkpoint.body();
    assert_eq!(checkpoint.origin, key.name(), "a log signs its own checkpoints");
    assert_eq!(Checkpoint::parse(&body).as_ref(), Ok(checkpoint), "a checkpoint is read as it was written");
    let signature = sign(body.as_bytes());
    format!("{body}\n{}", key.signature_line(&signature))
}

/// Reads a decimal number in its shortest form, as sizes of trees are written.
pub fn parse_size(text: &str) -> Option<u64> {
    let canonical = text == "0" || !text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits).then(|| text.parse().ok())?
}
