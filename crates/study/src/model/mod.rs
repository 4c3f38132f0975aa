//! What a study is. It imports no other room.

pub(crate) mod error;
pub(crate) mod interference;
pub(crate) mod measure;
pub(crate) mod on;
pub(crate) mod published;
pub(crate) mod scheduler;
pub(crate) mod statement;
pub(crate) mod study;
