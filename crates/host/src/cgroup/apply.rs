//! Changes the limits of a live group. Every write of quota or burst, even of the current value,
//! refills the group and unthrottles it, so only differences are written. On failure the previous
//! limits are restored.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use reveille_policy::{BandwidthError, BandwidthLimits};

use super::hierarchy::{Hierarchy, Version};
use super::live::{LiveGroup, LiveLimits};
use super::order::{self, Rules, Write};
use super::{Group, remove};
use crate::error::{HostError, Result};

type Sink<'a> = dyn FnMut(Write) -> Result<()> + 'a;

/// The writes that give a live group other limits. Nothing is written before [`Change::make`].
#[derive(Clone, Debug)]
pub struct Change {
    group: LiveGroup,
    from: LiveLimits,
    to: BandwidthLimits,
    writes: Vec<Write>,
    capped: bool,
    around: Vec<(PathBuf, BandwidthLimits)>,
}

impl Change {
    /// Compares current and wanted limits and finds the writes: none if they are equal, otherwise
    /// the fewest that the kernel accepts in some order.
    ///
    /// # Errors
    /// [`HostError::Input`] for limits that the kernel would refuse, in this hierarchy or at all,
    /// with the reason; [`HostError::System`] if the group is gone or cannot be read.
    pub fn plan(group: &LiveGroup, wanted: &BandwidthLimits) -> Result<Change> {
        if *wanted != wanted.in_whole_us() {
            let problem = format!("the kernel keeps whole microseconds, which {wanted} is not");
            let help = format!("take {}", wanted.in_whole_us());
            return Err(HostError::input(problem, help));
        }
        let from = group.limits()?;
        if wanted.burst_ns > 0 && !from.has_burst {
            let problem = format!("this kernel knows no burst for `{}`", group.name());
            return Err(HostError::input(problem, "use Linux 5.14 or later, or no burst"));
        }
        // Without permission to test it, assume mainline's rule.
        let capped = within_quota(&from.limits)
            && (within_quota(wanted) || burst_is_capped().unwrap_or(true));
        let around = group.around()?;
        let rules = rules(group, capped, &around)?;
        let refused = |error: BandwidthError| refusal(group, wanted, &error, &around);
        rules.check(wanted).map_err(refused)?;
        let writes = order::order(&from.limits, wanted, &rules).ok_or_else(|| {
            let problem = format!(
                "no order of writes leads from {} to {wanted} for `{}`",
                from.limits,
                group.name()
            );
            HostError::input(problem, "see what limits the groups around and within it have")
        })?;
        Ok(Change { group: group.clone(), from, to: *wanted, writes, capped, around })
    }

    pub fn from(&self) -> &BandwidthLimits {
        &self.from.limits
    }

    pub fn to(&self) -> &BandwidthLimits {
        &self.to
    }

    /// The writes in order, as shell commands; none if the limits are set already, so that the
    /// group is not refilled.
    pub fn lines(&self) -> Vec<String> {
        let (version, dir) = (self.group.version(), self.group.directory());
        self.writes.iter().map(|write| write.line(version, dir)).collect()
    }

    /// Caveats: side effects of the writes, and other limits that still apply.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.writes.is_empty() {
            notes.push(format!(
                "each write refills the group and ends its throttling at once: {} here",
                self.writes.len()
            ));
        }
        let unlimited =
            self.writes[..self.writes.len().saturating_sub(1)].contains(&Write::Quota(None));
        if unlimited && self.to.quota_ns.is_some() {
            notes.push(
                "for a moment the group has no limit of its own: every other order would limit \
                 it more than both settings, or be refused for the groups around or within it"
                    .to_owned(),
            );
        }
        if matches!(self.writes.last(), Some(Write::Max(..))) && self.to.burst_ns > 0 {
            notes.push(
                "Linux 5.14 to 6.9 divide the burst by 1000 when cpu.max is written: it is read \
                 back, and written again if so"
                    .to_owned(),
            );
        }
        let around: Vec<BandwidthLimits> = self.around.iter().map(|(_, limits)| *limits).collect();
        let own = self.to.effective_cpus(&[]);
        let effective = self.to.effective_cpus(&around);
        if self.group.version() == Version::V2 && own != effective {
            let cpus = effective.unwrap_or(f64::INFINITY);
            notes.push(format!("a group around it has less: it gets {cpus:.3} CPUs at most"));
        } else if let Some((dir, limits)) = self.less_at_once() {
            notes.push(format!(
                "{} around it has {limits}: that throttles it before its own quota and burst are used \
                 up",
                dir.display()
            ));
        }
        notes
    }

    /// The nearest group around it that lets less CPU time through in one of its own periods than
    /// the new limits allow at once; v1 compares quotas with it, and never bursts.
    fn less_at_once(&self) -> Option<&(PathBuf, BandwidthLimits)> {
        let quota_ns = self.to.quota_ns?;
        self.around.iter().find(|(_, limits)| {
            limits.quota_ns.is_some_and(|around_ns| {
                let refills = limits.period_ns.div_ceil(self.to.period_ns);
                let most_ns = quota_ns.saturating_mul(refills).saturating_add(self.to.burst_ns);
                most_ns > around_ns.saturating_add(limits.burst_ns)
            })
        })
    }

    /// Writes, reads back after each write, and returns the limits in force.
    ///
    /// `stop` is checked before the first write. After it, the change is completed or rolled back
    /// regardless of `stop`; that takes a moment only, and [`remove_all`] waits for it.
    ///
    /// [`remove_all`]: super::remove_all
    ///
    /// # Errors
    /// [`HostError::Interrupted`] if stopped before the first write. [`HostError::System`] if the
    /// kernel refuses a write, or the group disappears or is changed concurrently; it says whether
    /// the previous limits are in force again, and which are if not. Limits that another process
    /// has set meanwhile are left alone.
    pub fn make(&self, stop: &AtomicBool) -> Result<BandwidthLimits> {
        self.make_with(stop, &mut |write| self.write(write))
    }

    /// [`Change::make`] with a given writer, so that tests can simulate kernels' peculiarities.
    fn make_with(&self, stop: &AtomicBool, sink: &mut Sink) -> Result<BandwidthLimits> {
        let _writing = remove::writing();
        if stop.load(Ordering::Relaxed) {
            return Err(HostError::Interrupted);
        }
        let now = self.group.limits()?.limits;
        if now != self.from.limits {
            return Err(HostError::System {
                doing: format!("change the limits of `{}`", self.group.name()),
                reason: format!(
                    "another process changes them too: they were {}, and are {now} now; nothing \
                     was written",
                    self.from.limits
                ),
                help: "see who does (a container runtime, systemd), and plan it again".to_owned(),
            });
        }
        let mut reached = now;
        for &write in &self.writes {
            if let Err(failure) = self.step(write, &mut reached, sink) {
                return Err(self.undo(&reached, failure, sink));
            }
        }
        if reached != self.to {
            // Only the burst can differ: cpu.max was written last.
            if let Err(failure) = self.step(Write::Burst(self.to.burst_ns), &mut reached, sink) {
                return Err(self.undo(&reached, failure, sink));
            }
        }
        Ok(reached)
    }

    /// Performs one write, and returns the limits then in force.
    fn step(&self, write: Write, reached: &mut BandwidthLimits, sink: &mut Sink) -> Result<()> {
        sink(write)?;
        let spoilt = reached.burst_ns / 1000 / 1000 * 1000;
        *reached = write.after(*reached);
        let now = self.group.limits()?.limits;
        if matches!(write, Write::Max(..))
            && now == (BandwidthLimits { burst_ns: spoilt, ..*reached })
        {
            *reached = now;
        }
        if now == *reached {
            return Ok(());
        }
        Err(HostError::System {
            doing: format!("change the limits of `{}`", self.group.name()),
            reason: format!(
                "after `{}` was written to {}, {now} is set and not {reached}: another \
                 process changes it too, or this kernel does",
                write,
                write.file(self.group.version())
            ),
            help: "see who does (a container runtime, systemd), and plan it again".to_owned(),
        })
    }

    fn write(&self, write: Write) -> Result<()> {
        let file = self.group.directory().join(write.file(self.group.version()));
        // Never creates a file: a removed group's file no longer exists.
        let open = OpenOptions::new().write(true).truncate(true).open(&file);
        open.and_then(|mut file| file.write_all(write.to_string().as_bytes())).map_err(|error| {
            let help = match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "run as root, or as the user to whom the group was delegated"
                }
                ErrorKind::NotFound => "the task group is gone: see that it still runs",
                ErrorKind::InvalidInput => {
                    "the kernel refuses it: a group around or within may have other limits by now"
                }
                _ => "see that the task group still exists",
            };
            HostError::system(format!("write `{write}` to {}", file.display()), error, help)
        })
    }

    /// Rolls back what this change has set, `reached`, and adds the limits then in force to the
    /// failure.
    fn undo(&self, reached: &BandwidthLimits, failure: HostError, sink: &mut Sink) -> HostError {
        let HostError::System { doing, reason, help } = failure else { return failure };
        let (then, lines) = match self.restore(reached, sink) {
            Ok(now) if now == self.from.limits => {
                (format!("what was set before is in force again: {now}"), Vec::new())
            }
            Ok(now) => {
                let text =
                    format!("what it had written is taken back, what others set stays: {now}");
                (text, Vec::new())
            }
            Err(error) => {
                let now = match self.group.limits() {
                    Ok(live) => format!("in force is {}", live.limits),
                    Err(_) if !self.group.directory().exists() => {
                        "the group is gone, and its limits with it".to_owned()
                    }
                    Err(_) => "what is in force cannot be read".to_owned(),
                };
                let (version, dir) = (self.group.version(), self.group.directory());
                let writes = order::from_anything(&self.from.limits, version);
                let writes = writes.into_iter();
                let known =
                    |write: &Write| self.from.has_burst || !matches!(write, Write::Burst(_));
                let lines = writes.filter(known).map(|write| write.line(version, dir)).collect();
                (format!("what was set before did not come back ({error}); {now}"), lines)
            }
        };
        let help = match lines.is_empty() || !self.group.directory().exists() {
            true => help,
            false => format!("{help}; then restore by hand: {}", lines.join("; ")),
        };
        HostError::System { doing, reason: format!("{reason}; {then}"), help }
    }

    /// Restores what this change has set, and leaves alone what differs from both.
    fn restore(&self, reached: &BandwidthLimits, sink: &mut Sink) -> Result<BandwidthLimits> {
        let now = self.group.limits()?.limits;
        let before = &self.from.limits;
        let target = BandwidthLimits {
            quota_ns: if now.quota_ns == reached.quota_ns { before.quota_ns } else { now.quota_ns },
            period_ns: match now.period_ns == reached.period_ns {
                true => before.period_ns,
                false => now.period_ns,
            },
            burst_ns: if now.burst_ns == reached.burst_ns { before.burst_ns } else { now.burst_ns },
        };
        let around = self.group.around()?;
        let rules = rules(&self.group, self.capped, &around)?;
        let writes = order::order(&now, &target, &rules).ok_or_else(|| {
            HostError::input(format!("the kernel would refuse {target}"), "restore it by hand")
        })?;
        let mut reached = now;
        writes.into_iter().try_for_each(|write| self.step(write, &mut reached, sink))?;
        if reached != target {
            self.step(Write::Burst(target.burst_ns), &mut reached, sink)?;
        }
        Ok(reached)
    }
}

fn rules(group: &LiveGroup, capped: bool, around: &[(PathBuf, BandwidthLimits)]) -> Result<Rules> {
    let version = group.version();
    let within = match version {
        Version::V1 => group.within()?.into_iter().map(|(_, limits)| limits).collect(),
        Version::V2 => Vec::new(),
    };
    let around = around.iter().map(|(_, limits)| *limits).collect();
    Ok(Rules { version, capped, around, within })
}

/// Why the kernel would refuse it, and the fix.
fn refusal(
    group: &LiveGroup,
    wanted: &BandwidthLimits,
    error: &BandwidthError,
    around: &[(PathBuf, BandwidthLimits)],
) -> HostError {
    let name = group.name();
    let BandwidthError::AboveParent { cpus, parent_cpus } = error else {
        let problem = format!("`{name}` cannot have {wanted}: {error}");
        return HostError::input(problem, "nothing was written; choose limits that it accepts");
    };
    let limits: Vec<BandwidthLimits> = around.iter().map(|(_, limits)| *limits).collect();
    if wanted.check_in(&limits).is_err() {
        let nearest = around.iter().find(|(_, limits)| limits.quota_ns.is_some());
        let which = nearest.map(|(dir, _)| dir.display().to_string()).unwrap_or_default();
        let problem = format!("`{name}` cannot have {wanted}: {error}");
        return HostError::input(problem, format!("the group around it is {which}"));
    }
    let problem = format!(
        "`{name}` cannot have {wanted}, {parent_cpus:.3} CPUs: a group within it has {cpus:.3}, \
         and cgroup v1 refuses less around it"
    );
    let within = group.within().unwrap_or_default();
    let larger = within.iter().find(|(_, limits)| limits.check_in(&[*wanted]).is_err());
    let which = larger.map(|(dir, _)| dir.display().to_string()).unwrap_or_default();
    HostError::input(problem, format!("lower {which} first"))
}

/// Is the burst within the quota? All kernels accept that.
fn within_quota(limits: &BandwidthLimits) -> bool {
    limits.quota_ns.is_none_or(|quota| limits.burst_ns <= quota)
}

/// Does this kernel refuse a burst above the quota? Mainline does; some vendors' kernels do not.
/// Tries it on a temporary group.
///
/// # Errors
/// As [`HostGroups::create`](super::HostGroups::create), except that a refused burst is an answer.
pub fn burst_is_capped() -> Result<bool> {
    let limits = BandwidthLimits {
        quota_ns: Some(1_000_000),
        period_ns: 1_000_000_000,
        ..BandwidthLimits::default()
    };
    let hierarchy = Hierarchy::find()?;
    let group = Group::create(&hierarchy, &hierarchy.bases(), &limits)?;
    let tried = group.burst_file().map(|file| (fs::write(&file, "2000"), file));
    group.dirs.iter().for_each(|dir| remove::remove(dir));
    match tried? {
        (Ok(()), _) => Ok(false),
        (Err(error), _) if error.kind() == ErrorKind::InvalidInput => Ok(true),
        (Err(error), file) => {
            let doing = format!("write a burst to {}", file.display());
            Err(HostError::system(doing, error, "run as root"))
        }
    }
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
