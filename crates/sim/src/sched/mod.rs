//! The scheduler's steps: wakeup, switch, fork, balancing, throttling.

pub(crate) mod background;
pub(crate) mod balance;
pub(crate) mod balance_pass;
pub(crate) mod balancer;
pub(crate) mod bandwidth;
pub(crate) mod by_file;
pub(crate) mod delayed;
pub(crate) mod domains;
pub(crate) mod enqueue;
pub(crate) mod fork;
pub(crate) mod gather;
pub(crate) mod gathering;
pub(crate) mod group_load;
pub(crate) mod hrtick;
pub(crate) mod imbalance;
pub(crate) mod newidle;
pub(crate) mod odds;
pub(crate) mod schedule;
pub(crate) mod sums;
pub(crate) mod swqueue;
pub(crate) mod throttle;
pub(crate) mod visible;
pub(crate) mod wakeup;
