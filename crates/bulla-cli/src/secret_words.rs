//! A command line with a secret in it, where the name of the file that has it belongs: it is refused before any of its words could be
//! shown, as those of a command line are that is wrong.

use crate::exit::Failure;
use std::ffi::OsString;

/// What secrets begin with: those that this program writes, and those of age.
const BEGINNINGS: [&str; 7] = [
    "bulla-seal-key-v1",
    "bulla-pseudonym-key-v1",
    "bulla-digest-key-v1",
    "bulla-sources-key-v1",
    "AGE-SECRET-KEY-",
    "AGE-PLUGIN-",
    "PRIVATE+KEY+",
];

/// That no word of a command line, the program's name first, is a secret itself.
///
/// # Errors
/// Which option has one, and what belongs there. The secret is not in it.
pub(crate) fn refuse(words: &[OsString]) -> Result<(), Failure> {
    for (at, word) in words.iter().enumerate().skip(1) {
        let word = word.to_string_lossy();
        let (option, value) = match word.strip_prefix("--").and_then(|rest| rest.split_once('=')) {
            Some((name, value)) => (Some(format!("--{name}")), value),
            None => {
                (words[at - 1].to_str().filter(|before| before.starts_with('-')).map(str::to_owned), &*word)
            }
        };
        if is_secret(value) {
            let place = option.map_or_else(
                || "a word of this command line".to_owned(),
                |option| format!("what {option} was given"),
            );
            return Err(Failure::usage(format!(
                "{place} is the key itself: name the file that has it, and take it out of the shell's history, where it stands now"
            )));
        }
    }
    Ok(())
}

/// Whether any line of a text is a secret. Of one whose words a shell has taken apart the first one is.
fn is_secret(text: &str) -> bool {
    let begins = |line: &str| {
        BEGINNINGS.iter().any(|beginning| match line.trim_start().strip_prefix(beginning) {
            // A line of words; a file may be called that, and something behind it.
            Some(rest) if beginning.starts_with("bulla-") => {
                rest.is_empty() || rest.starts_with(char::is_whitespace)
            }
            rest => rest.is_some(),
        })
    };
    text.lines().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> Option<String> {
        let words = ["bulla"].iter().chain(words).map(OsString::from).collect::<Vec<_>>();
        refuse(&words).err().map(|failure| failure.message)
    }

    #[test]
    fn a_secret_is_refused_wherever_it_stands_and_never_shown() {
        let secrets = [
            "bulla-seal-key-v1 0a0b HUSH= 01020304",
            "  bulla-seal-key-v1 0a0b HUSH= 01020304\n",
            "bulla-pseudonym-key-v1 0a0b HUSH= 01020304",
            "# created: 2026-01-01\n# public key: age1\nAGE-SECRET-KEY-1HUSH",
            "AGE-PLUGIN-YUBIKEY-1HUSH",
            "PRIVATE+KEY+example.com/audit+0a1b2c3d+HUSH",
        ];
        for secret in secrets {
            for (words, place) in [
                (&["verify", "audit", "--seal-key", secret][..], "what --seal-key was given"),
                (&["verify", "audit", &format!("--identity={secret}")], "what --identity was given"),
                (&["check", secret], "a word of this command line"),
            ] {
                let told = refused(words).unwrap_or_else(|| panic!("{words:?} passes"));
                assert!(told.starts_with(place) && !told.contains("HUSH"), "{told}");
            }
        }
        // As the shell leaves one that stands in no quotes.
        assert!(
            refused(&["verify", "--seal-key", "bulla-seal-key-v1", "0a0b", "HUSH=", "01020304"]).is_some()
        );
        for passes in [
            "seal.key",
            "bulla-seal-key-v1.txt",
            "keys/AGE-SECRET-KEY-1",
            "age1abc",
            "example.com/audit+0a1b2c3d+AaBb",
            "",
        ] {
            assert_eq!(refused(&["verify", "audit", "--seal-key", passes]), None, "{passes}");
        }
    }
}
