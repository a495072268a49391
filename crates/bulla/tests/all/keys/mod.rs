//! Who can read: recipients and identities, and what happens when a key cannot be wrapped.

mod identities;
mod recipients;
mod wrapping;
