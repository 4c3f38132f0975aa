//! What tasks do: their programs, messages, locks and lists.

pub(crate) mod channel;
pub(crate) mod code;
pub(crate) mod effects;
pub(crate) mod interpreter;
pub(crate) mod message_cost;
pub(crate) mod messages;
pub(crate) mod pipe;
pub(crate) mod release;
pub(crate) mod task;
pub(crate) mod waiters;
pub(crate) mod work;
