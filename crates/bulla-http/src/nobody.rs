//! The client of a build that asks nobody: none can be made, and whoever wants one is told.

use crate::{Address, Answer, Error, ErrorKind, Options};

/// A client that cannot be made: this was built without the feature `client`.
#[derive(Clone, Debug)]
pub struct Client(());

impl Client {
    /// Says that there is none.
    ///
    /// # Errors
    /// `Invalid`, always.
    pub fn new(_: &Options) -> Result<Self, Error> {
        Err(missing())
    }

    /// Posts nothing.
    ///
    /// # Errors
    /// `Invalid`, always.
    pub fn post(&self, _: &Address, _: &str, _: &[u8]) -> Result<Answer, Error> {
        Err(missing())
    }

    /// Gets nothing.
    ///
    /// # Errors
    /// `Invalid`, always.
    pub fn get(&self, _: &Address) -> Result<Answer, Error> {
        Err(missing())
    }
}

fn missing() -> Error {
    Error::new(
        ErrorKind::Invalid,
        "this program was built without the client for HTTPS, so nobody is asked: build Bulla with its feature `https`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_and_that_is_said() {
        let error = Client::new(&Options::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("feature `https`"), "{error}");
    }
}
