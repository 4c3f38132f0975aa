//! Many runs of a study, with the constants of its machines moved.

pub(crate) mod fit;
pub(crate) mod fragile;
pub(crate) mod knob;
pub(crate) mod objective;
pub(crate) mod sensitivity;
pub(crate) mod sweep;
