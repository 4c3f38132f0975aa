//! Reads studies from files and the command line.

pub(crate) mod catalogue;
pub(crate) mod check;
pub(crate) mod file;
pub(crate) mod parts;
pub(crate) mod raw;
pub(crate) mod settings;
pub(crate) mod variant;
