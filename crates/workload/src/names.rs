//! What the tasks of a file may name.

use crate::amount::ParamKind;
use crate::channels::ChannelSource;

/// Names that tasks of a file may use.
pub(crate) struct Names<'a> {
    pub(crate) params: &'a [ParamKind],
    pub(crate) channels: &'a [ChannelSource],
    pub(crate) lists: &'a [String],
    pub(crate) locks: &'a [String],
    pub(crate) roles: &'a [String],
}
