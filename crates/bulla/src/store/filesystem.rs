//! Written on its own branch.
