//! The text of a private key of 32 bytes, as the Go package `note` keeps keys: `PRIVATE+KEY+<name>+<id>+<base64 of the type of its
//! signatures and the seed>`, with the types of C2SP signed-note and its extensions.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bulla_store::{Error, Result};
use zeroize::Zeroizing;

const BEGINNING: &str = "PRIVATE+KEY+";

/// The line of the key with this name, id, type and seed.
pub fn render(name: &str, id: u32, signature_type: u8, seed: &[u8; 32]) -> Zeroizing<String> {
    let mut data = Zeroizing::new([0; 33]);
    data[0] = signature_type;
    data[1..].copy_from_slice(seed);
    let data = Zeroizing::new(BASE64_STANDARD.encode(&data[..]));
    Zeroizing::new(format!("{BEGINNING}{name}+{id:08x}+{}\n", data.as_str()))
}

/// What the line of a key says.
pub struct KeyText<'a> {
    /// The key's name.
    pub name: &'a str,
    id: &'a str,
    /// The type of the key's signatures.
    pub signature_type: u8,
    /// The seed that the key is made from.
    pub seed: Zeroizing<[u8; 32]>,
}

impl<'a> KeyText<'a> {
    /// Reads the line of a key whose signatures are of one of these types; `what` says of what key. White space behind it counts for
    /// nothing.
    ///
    /// # Errors
    /// `Invalid` where it is none.
    pub fn parse(what: &str, signature_types: &[u8], text: &'a str) -> Result<Self> {
        let read = || {
            let mut parts = text.trim_end().strip_prefix(BEGINNING)?.splitn(3, '+');
            let (name, id, data) = (parts.next()?, parts.next()?, parts.next()?);
            let data = Zeroizing::new(BASE64_STANDARD.decode(data).ok()?);
            let (signature_type, seed) = data.split_first()?;
            let seed = Zeroizing::new(<[u8; 32]>::try_from(seed).ok()?);
            let is_one = signature_types.contains(signature_type);
            is_one.then_some(KeyText { name, id, signature_type: *signature_type, seed })
        };
        read().ok_or_else(|| Error::invalid(format!("it is not {what} (PRIVATE+KEY+name+id+key)")))
    }

    /// Requires this to be the id that it states.
    ///
    /// # Errors
    /// `Invalid` where it states another one.
    pub fn require_id(&self, id: u32) -> Result<()> {
        match format!("{id:08x}") == self.id {
            true => Ok(()),
            false => Err(Error::invalid("its key id does not belong to its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written_and_another_text_is_none() {
        let text = render("example.com/log", 0xabc, 6, &[7; 32]);
        assert!(text.starts_with("PRIVATE+KEY+example.com/log+00000abc+Bgc"), "{}", text.len());
        let read = KeyText::parse("a key", &[1, 6], &text).unwrap();
        assert_eq!((read.name, read.signature_type, *read.seed), ("example.com/log", 6, [7; 32]));
        read.require_id(0xabc).unwrap();
        assert!(read.require_id(0xabd).is_err());
        let refused = KeyText::parse("a key", &[1, 4], &text).err().unwrap();
        assert_eq!(refused.to_string(), "it is not a key (PRIVATE+KEY+name+id+key)");
        for wrong in [
            text.replace("PRIVATE", "PUBLIC"),
            text.replace("+Bgc", "+"),
            text[..text.len() - 5].to_owned(),
            text.replace('\n', "=\n"),
            format!(" {}", text.as_str()),
            String::new(),
        ] {
            assert!(KeyText::parse("a key", &[6], &wrong).is_err(), "{}", wrong.len());
        }
    }
}
