//! The data model of studies. Depends on no other module of this crate.

pub(crate) mod error;
pub(crate) mod interference;
pub(crate) mod measure;
pub(crate) mod on;
pub(crate) mod published;
pub(crate) mod scheduler;
pub(crate) mod statement;
pub(crate) mod study;
