//! The order in which to write limits. The kernel validates the whole setting at every write, so
//! all intermediate settings must be valid too; nor should they restrict the group more than both
//! ends do, even briefly.
//!
//! An intermediate setting takes each of quota, period and burst from either end, or has no quota,
//! which never conflicts with a parent or child. That is a dozen settings; a shortest-path search
//! through the valid ones finds the order.

use std::fmt;
use std::path::Path;

use reveille_measure::Ns;
use reveille_policy::{BandwidthError, BandwidthLimits};

use super::hierarchy::Version;

/// One write to a file of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// v1: `cpu.cfs_period_us`.
    Period(Ns),
    /// v1: `cpu.cfs_quota_us`.
    Quota(Option<Ns>),
    /// v2: `cpu.max`, quota and period at once.
    Max(Option<Ns>, Ns),
    /// The burst, in v1 or v2.
    Burst(Ns),
}

impl Write {
    pub fn file(self, version: Version) -> &'static str {
        match self {
            Write::Period(_) => "cpu.cfs_period_us",
            Write::Quota(_) => "cpu.cfs_quota_us",
            Write::Max(..) => "cpu.max",
            Write::Burst(_) => version.burst_file(),
        }
    }

    /// As a shell command; `dir` is the group's directory.
    pub fn line(self, version: Version, dir: &Path) -> String {
        format!("echo {} > {}", word(&self.to_string()), self.path(version, dir))
    }

    fn path(self, version: Version, dir: &Path) -> String {
        word(&dir.join(self.file(version)).to_string_lossy())
    }

    /// The limits after it.
    pub fn after(self, before: BandwidthLimits) -> BandwidthLimits {
        match self {
            Write::Period(period_ns) => BandwidthLimits { period_ns, ..before },
            Write::Quota(quota_ns) => BandwidthLimits { quota_ns, ..before },
            Write::Max(quota_ns, period_ns) => BandwidthLimits { quota_ns, period_ns, ..before },
            Write::Burst(burst_ns) => BandwidthLimits { burst_ns, ..before },
        }
    }
}

/// The text that is written.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match *self {
            Write::Quota(None) => write!(f, "-1"),
            Write::Max(None, period_ns) => write!(f, "max {}", period_ns / 1000),
            Write::Max(Some(quota_ns), period_ns) => {
                write!(f, "{} {}", quota_ns / 1000, period_ns / 1000)
            }
            Write::Period(ns) | Write::Quota(Some(ns)) | Write::Burst(ns) => {
                write!(f, "{}", ns / 1000)
            }
        }
    }
}

/// What determines whether the kernel accepts a setting of a group.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub version: Version,
    /// Must the burst not exceed the quota? True in mainline kernels.
    pub capped: bool,
    /// Limits of the ancestors, nearest first, and of the nearest limited descendants. Only v1
    /// checks them.
    pub around: Vec<BandwidthLimits>,
    pub within: Vec<BandwidthLimits>,
}

impl Rules {
    /// Why the kernel would refuse a setting, if it would.
    pub fn check(&self, limits: &BandwidthLimits) -> Result<(), BandwidthError> {
        match limits.check() {
            Err(BandwidthError::BurstAboveQuota { .. }) if !self.capped => {}
            verdict => verdict?,
        }
        if self.version == Version::V2 {
            return Ok(());
        }
        limits.check_in(&self.around)?;
        if limits.quota_ns.is_none() {
            return Ok(());
        }
        self.within.iter().try_for_each(|child| child.check_in(&[*limits]))
    }
}

/// Cost of another write, which refills the group; outweighs all that follow.
const WRITE: u32 = 1000;
/// Cost of being unlimited for a moment, if neither end is.
const UNLIMITED: u32 = 100;
/// Cost of having more CPU for a moment than at either end.
const ABOVE_BOTH: u32 = 10;
/// Cost of writing `cpu.max` with a burst set, which Linux 5.14 to 6.9 corrupt.
const BURST_FIRST: u32 = 1;

/// The fewest writes that lead from one setting to another; `None` if the kernel refuses the
/// target.
pub(super) fn order(
    from: &BandwidthLimits,
    to: &BandwidthLimits,
    rules: &Rules,
) -> Option<Vec<Write>> {
    struct Reached {
        limits: BandwidthLimits,
        cost: u32,
        writes: Vec<Write>,
        done: bool,
    }
    let start = Reached { limits: *from, cost: 0, writes: Vec::new(), done: false };
    let mut reached = vec![start];
    loop {
        let open = reached.iter_mut().filter(|r| !r.done);
        let next = open.min_by_key(|r| r.cost)?;
        if next.limits == *to {
            return Some(std::mem::take(&mut next.writes));
        }
        next.done = true;
        let (limits, cost, writes) = (next.limits, next.cost, next.writes.clone());
        for write in writes_between(from, to, rules.version) {
            let after = write.after(limits);
            if after == limits || rules.check(&after).is_err() {
                continue;
            }
            let Some(extra) = extra_cost(&after, write, from, to) else { continue };
            let cost = cost + WRITE + extra;
            let writes = [writes.as_slice(), &[write]].concat();
            match reached.iter_mut().find(|r| r.limits == after) {
                Some(known) if known.cost <= cost => {}
                Some(known) => (known.cost, known.writes) = (cost, writes),
                None => reached.push(Reached { limits: after, cost, writes, done: false }),
            }
        }
    }
}

fn writes_between(from: &BandwidthLimits, to: &BandwidthLimits, version: Version) -> Vec<Write> {
    let bursts = [from, to].map(|limits| Write::Burst(limits.burst_ns));
    match version {
        Version::V1 => {
            let periods = [from, to].map(|limits| Write::Period(limits.period_ns));
            let quotas = [from.quota_ns, to.quota_ns, None].map(Write::Quota);
            [periods.as_slice(), &quotas, &bursts].concat()
        }
        Version::V2 => {
            let max = [from, to].map(|limits| Write::Max(limits.quota_ns, limits.period_ns));
            [max.as_slice(), &bursts].concat()
        }
    }
}

/// Cost of an intermediate setting; `None` if it restricts the group more than both ends.
fn extra_cost(
    now: &BandwidthLimits,
    write: Write,
    from: &BandwidthLimits,
    to: &BandwidthLimits,
) -> Option<u32> {
    if less(now, from) && less(now, to) {
        return None;
    }
    let ends_limited = from.quota_ns.is_some() && to.quota_ns.is_some();
    let above = less(from, now) && less(to, now);
    let spoilt = matches!(write, Write::Max(..)) && now.burst_ns > 0 && now.burst_ns == to.burst_ns;
    Some(match now.quota_ns {
        None if ends_limited => UNLIMITED,
        _ if above => ABOVE_BOTH,
        _ if spoilt => BURST_FIRST,
        _ => 0,
    })
}

/// Does a group with limits `a` get less CPU than with `b`, ignoring bursts?
fn less(a: &BandwidthLimits, b: &BandwidthLimits) -> bool {
    match (a.quota_ns, b.quota_ns) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(qa), Some(qb)) => {
            u128::from(qa) * u128::from(b.period_ns) < u128::from(qb) * u128::from(a.period_ns)
        }
    }
}

/// Writes that set limits from any prior setting, in an order that the kernel always accepts:
/// without burst and quota, no rule constrains the period.
pub(super) fn from_anything(to: &BandwidthLimits, version: Version) -> Vec<Write> {
    let burst = (to.burst_ns > 0).then_some(Write::Burst(to.burst_ns));
    let mut writes = vec![Write::Burst(0)];
    match version {
        Version::V1 => {
            writes.extend([Write::Quota(None), Write::Period(to.period_ns)]);
            writes.extend(to.quota_ns.map(|quota| Write::Quota(Some(quota))));
        }
        Version::V2 => writes.push(Write::Max(to.quota_ns, to.period_ns)),
    }
    writes.extend(burst);
    writes
}

/// Shell commands that set a group's limits from any prior setting, in an order that the kernel
/// always accepts. For a live group, [`Change`](super::Change) finds fewer.
pub fn lines_from_anything(limits: &BandwidthLimits, v1: bool, dir: &Path) -> Vec<String> {
    let version = if v1 { Version::V1 } else { Version::V2 };
    let line = |write: Write| match write {
        // A kernel without burst has nothing to reset to 0.
        Write::Burst(0) if limits.burst_ns == 0 => {
            format!("[ ! -e {} ] || {}", write.path(version, dir), write.line(version, dir))
        }
        _ => write.line(version, dir),
    };
    from_anything(limits, version).into_iter().map(line).collect()
}

/// Quotes text as one shell word.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.:@+-,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
