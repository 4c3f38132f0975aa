//! Work split over machines or jobs: `2/4` is the second of four shards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    pub of: u32,
}

impl Shard {
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };

    /// Is the piece of work with this number in the shard? Consecutive numbers are dealt out in
    /// turn.
    pub fn has(self, number: usize) -> bool {
        number % self.of as usize == self.index as usize - 1
    }
}

/// A text is no shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is no shard")]
pub struct NoShard;

impl NoShard {
    pub const FIX: &str = "write 1/4 for the first of four, up to 4/4";
}

impl FromStr for Shard {
    type Err = NoShard;

    /// Reads `2/4`.
    fn from_str(text: &str) -> Result<Shard, NoShard> {
        let numbers =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index, of }),
            _ => Err(NoShard),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}
