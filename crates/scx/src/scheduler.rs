//! The scheduler in the kernel: set up, loaded, asked, and ended.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Instant;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use reveille_policy::Policy;
use tracing::warn;

use crate::bpf::{OpenReveilleSkel, ReveilleSkel, ReveilleSkelBuilder, types};
use crate::cgroups::Cgroups;
use crate::error::ScxError;
use crate::kernel::Abilities;
use crate::policy_file::{self, PolicyFile};
use crate::replay::rule_name;
use crate::settings::{Settings, names, policy_of};
use crate::stats::{Counters, GroupCounters, Stats};
use crate::sys;
use crate::topology::{MAX_LLCS, Tables};

/// Slots for limits, two more than there can be: `MAX_LIMITS` of bpf/state.h.
const MAX_LIMITS: u32 = 1024;
/// The slot of all limits that found none.
const SHARED_LIMIT: u32 = 1;
/// Room for recorded decisions, bytes: a power of two.
const RECORD_ROOM: u32 = 1 << 24;
/// `POLICY_BW_NO_QUOTA`.
const NO_QUOTA: u64 = u64::MAX;
/// Exit kinds of the kernel from here on are errors (`SCX_EXIT_ERROR`).
const FIRST_ERROR: u32 = 1024;
/// `SCX_EXIT_UNREG`: the loader has ended it itself.
const EXIT_UNREGISTERED: u32 = 64;
/// `SCX_EXIT_SYSRQ`: SysRq-S.
const EXIT_SYSRQ: u32 = 67;
/// `SCX_OPS_ENQ_MIGRATION_DISABLED`: returns_to_user() of bpf/debt.h.
const ENQ_MIGRATION_DISABLED: u64 = 1 << 4;
/// `SCX_ECODE_ACT_RESTART`.
const ACT_RESTART: i64 = 1 << 48;

/// Takes a callback out of the table.
type Unset = fn(&mut types::sched_ext_ops);

/// Callbacks that some kernels from 6.12 on lack or have left out, and how each is unset.
const OPTIONAL: &[(&str, Unset)] = &[
    ("cpu_release", |ops| ops.cpu_release = std::ptr::null_mut()),
    ("cgroup_init", |ops| ops.cgroup_init = std::ptr::null_mut()),
    ("cgroup_exit", |ops| ops.cgroup_exit = std::ptr::null_mut()),
    ("cgroup_move", |ops| ops.cgroup_move = std::ptr::null_mut()),
    ("cgroup_set_weight", |ops| ops.cgroup_set_weight = std::ptr::null_mut()),
    ("cgroup_set_bandwidth", |ops| ops.cgroup_set_bandwidth = std::ptr::null_mut()),
    ("cgroup_set_idle", |ops| ops.cgroup_set_idle = std::ptr::null_mut()),
];

/// Names of the callbacks that may be missing.
pub fn optional_callbacks() -> Vec<&'static str> {
    OPTIONAL.iter().map(|(name, _)| *name).collect()
}

/// Where libbpf keeps the opened object.
pub type Room = MaybeUninit<OpenObject>;

/// How it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    kind: u32,
    code: i64,
    /// The kernel's words, and the scheduler's.
    pub reason: String,
    /// State of all CPUs and tasks at that time; empty but after an error.
    pub dump: String,
}

impl Exit {
    /// Did the kernel find an error?
    pub fn is_error(&self) -> bool {
        self.kind >= FIRST_ERROR
    }

    /// Was it ended by the loader?
    pub fn is_asked_for(&self) -> bool {
        self.kind == EXIT_UNREGISTERED
    }

    /// Has somebody ended it by SysRq-S?
    pub fn is_sysrq(&self) -> bool {
        self.kind == EXIT_SYSRQ
    }

    /// Is it to be loaded again, for the machine has changed?
    pub fn is_restart(&self) -> bool {
        self.code & ACT_RESTART != 0
    }
}

/// The loaded scheduler. When it is dropped, tasks return to the kernel's own.
pub struct Scheduler<'room> {
    skel: ReveilleSkel<'room>,
    link: Option<Link>,
    /// Programs that see tasks return to user mode are to be attached.
    exits_wanted: bool,
    /// Programs beside the callbacks.
    programs: Vec<Link>,
    since: Instant,
    cgroups: Cgroups,
    heard: Heard,
    /// The policy file's name.
    policy_file: Option<String>,
}

/// What `Scheduler::complaints` has told so far.
#[derive(Default)]
struct Heard {
    refusals: u64,
    without_weight: u32,
    timers_failed: u64,
    exits_failed: u64,
    wrong_cpu: bool,
}

impl<'room> Scheduler<'room> {
    /// Loads it; from then on it schedules.
    ///
    /// # Errors
    /// What the kernel refuses, with its words.
    pub fn load(
        room: &'room mut Room,
        settings: &Settings,
        tables: &Tables,
        abilities: &Abilities,
        record: bool,
        policy: Option<&PolicyFile>,
    ) -> Result<Scheduler<'room>, ScxError> {
        let mut open = ReveilleSkelBuilder::default()
            .open(room)
            .map_err(|e| kernel("the BPF object", &e, "this is a defect: please report it"))?;
        set_tables(&mut open, tables)?;
        set_tunables(&mut open, settings, abilities, record)?;
        set_callbacks(&mut open, settings, abilities, tables.hotplug_seq)?;
        open.progs.after_switch.set_autoload(abilities.sees_switches);
        open.progs.before_schedule.set_autoload(abilities.exit_depth);
        open.progs.in_schedule.set_autoload(abilities.exit_depth);
        open.progs.after_syscall.set_autoload(abilities.exit_depth);
        let slots = if abilities.bandwidth { MAX_LIMITS } else { 1 };
        let n_cpu_ids = tables.cpus.len() as u32;
        let threads = if abilities.task_work { crate::kernel::most_threads() } else { 1 };
        let sized = open.maps.group_queues.set_max_entries(slots * n_cpu_ids).and_then(|()| {
            open.maps.records.set_max_entries(if record { RECORD_ROOM } else { 4096 })?;
            open.maps.exit_works.set_max_entries(threads)
        });
        sized.map_err(|e| kernel("the size of a map", &e, "this is a defect: please report it"))?;
        if policy.is_some() {
            policy_file::listen();
        }
        let loaded = open.load();
        let heard = policy_file::heard();
        let mut skel = loaded.map_err(|e| {
            if let Some(refusal) = policy.and_then(|policy| policy.refusal(&heard)) {
                return refusal;
            }
            for line in heard.lines() {
                warn!("{line}");
            }
            kernel(
                "the BPF program",
                &e,
                "run it with -vv for the verifier's log, and please report it with the kernel's \
                 release",
            )
        })?;
        let link = skel.maps.reveille_ops.attach_struct_ops().map_err(|e| {
            // EBUSY: another was loaded after `kernel::check` had looked.
            if format!("{e:#}").contains("os error 16") {
                return crate::kernel::another(Path::new("/sys"));
            }
            kernel("the scheduler", &e, "`dmesg | tail` has the kernel's reason; please report it")
        })?;
        let mut programs = Vec::new();
        if abilities.sees_switches {
            programs.push(skel.progs.after_switch.attach().map_err(|e| {
                kernel(
                    "the program that sees switches",
                    &e,
                    "please report it with the kernel's release",
                )
            })?);
        }
        Ok(Scheduler {
            skel,
            link: Some(link),
            exits_wanted: abilities.bandwidth && abilities.exit_depth,
            programs,
            since: Instant::now(),
            cgroups: Cgroups::default(),
            heard: Heard::default(),
            policy_file: policy.map(|policy| policy.name.clone()),
        })
    }

    /// Features that are on.
    pub fn policy(&self) -> Policy {
        policy_of(self.skel.maps.bss_data.as_ref().map_or(0, |bss| sys::live(&bss.features)))
    }

    /// Sets the features that decisions go by from now on.
    pub fn set_policy(&mut self, policy: &Policy) {
        if let Some(bss) = &mut self.skel.maps.bss_data {
            sys::set_live(&mut bss.features, policy.features);
        }
    }

    /// Why it has ended, if it has.
    pub fn ended(&self) -> Option<Exit> {
        let record = &self.skel.maps.bss_data.as_ref()?.exit_record;
        (sys::live(&record.written) != 0).then(|| Exit {
            kind: sys::live(&record.kind),
            code: sys::live(&record.code),
            reason: match (text(&record.reason), text(&record.message)) {
                (reason, message) if message.is_empty() => reason,
                (reason, message) => format!("{reason} ({message})"),
            },
            dump: text(&record.dump),
        })
    }

    /// Ends it: every task is back with the kernel's own scheduler when this returns.
    pub fn end(mut self) -> Exit {
        drop(self.link.take());
        self.ended().unwrap_or_default()
    }

    /// What the scheduler could not do as asked since it was last asked this, a sentence each.
    pub fn complaints(&mut self) -> Vec<String> {
        let mut said: Vec<String> = self.wrong_cpus().into_iter().collect();
        let Some(bss) = &self.skel.maps.bss_data else { return Vec::new() };
        let (refusals, ids) = (sys::live(&bss.refusals), sys::live(&bss.refused_ids));
        let without_weight = sys::live(&bss.groups_without_number);
        let timers_failed = sys::live(&bss.timers_failed);
        let exits_failed = sys::live(&bss.exits_failed);
        let new = refusals - self.heard.refusals;
        for n in (refusals - new.min(ids.len() as u64))..refusals {
            said.push(format!(
                "cpu.max of {} is NOT kept as written: all {} limits that scx_reveille keeps are in \
                 use. The nearest limit above it holds; without one, the group shares the smallest \
                 of these limits with all such groups. Remove a limit elsewhere, then write `max` and \
                 the limit to this one",
                self.cgroups.name(ids[n as usize % ids.len()]),
                MAX_LIMITS - 2
            ));
        }
        if new > ids.len() as u64 {
            said.push(format!("{} more limits were refused", new - ids.len() as u64));
        }
        if without_weight > self.heard.without_weight {
            said.push(format!(
                "{without_weight} task groups beyond the 65534 that scx_reveille keeps: their tasks \
                 count as their parents', with the limits of those"
            ));
        }
        if timers_failed > self.heard.timers_failed {
            said.push(format!(
                "the kernel did not start {} timers: limits may end runs late, and waiting tasks \
                 may be found late",
                timers_failed - self.heard.timers_failed
            ));
        }
        if exits_failed > self.heard.exits_failed {
            said.push(format!(
                "the kernel had no memory to tell {} times when a task of a throttled group returns to \
                 user mode: until it has, such tasks run on beyond their limit",
                exits_failed - self.heard.exits_failed
            ));
        }
        self.heard = Heard { refusals, without_weight, timers_failed, exits_failed, ..self.heard };
        said
    }

    /// With the first limit, programs that cost every system call something are attached.
    pub fn watch_exits(&mut self) {
        let Some(bss) = &mut self.skel.maps.bss_data else { return };
        if !self.exits_wanted || sys::live(&bss.limited_groups) == 0 {
            return;
        }
        self.exits_wanted = false;
        let progs = &self.skel.progs;
        for program in [&progs.before_schedule, &progs.in_schedule, &progs.after_syscall] {
            match program.attach() {
                Ok(link) => self.programs.push(link),
                Err(error) => return warn!("{}: {error:#}", crate::kernel::PARKS_WITH_LOCKS),
            }
        }
        sys::set_live(&mut bss.exits_seen, 1);
    }

    /// The map of recorded decisions.
    pub fn records(&self) -> &dyn MapCore {
        &self.skel.maps.records
    }

    /// All statistics.
    pub fn stats(&mut self) -> Stats {
        let groups = self.groups();
        let Some(bss) = &self.skel.maps.bss_data else { return Stats::default() };
        let mut counters = Counters::default();
        let mut rules: BTreeMap<String, u64> = BTreeMap::new();
        for cpu in &bss.cpu_stats {
            let cpu = sys::live(cpu);
            crate::stats::add_counters!(counters, cpu);
            for (rule, n) in cpu.rules.iter().enumerate().skip(1) {
                *rules.entry(rule_name(rule as u8).to_owned()).or_default() += n;
            }
        }
        counters.rules = rules;
        Stats {
            at_ms: self.since.elapsed().as_millis() as u64,
            features: names(self.policy().features),
            policy: self.policy_file.clone(),
            counters,
            groups,
            groups_without_weight: sys::live(&bss.groups_without_number).into(),
            limits_refused: sys::live(&bss.limits_refused).into(),
        }
    }

    /// The policy file has answered with a CPU that no task can be put on: said once, for
    /// `--monitor` counts them.
    fn wrong_cpus(&mut self) -> Option<String> {
        let file = self.policy_file.as_ref().filter(|_| !self.heard.wrong_cpu)?;
        let cpus = &self.skel.maps.bss_data.as_ref()?.cpu_stats;
        self.heard.wrong_cpu = cpus.iter().any(|cpu| sys::live(&cpu.wrong_cpu) > 0);
        self.heard.wrong_cpu.then(|| {
            format!(
                "{file} has answered with a CPU that is not there or not allowed: such tasks go to \
                 their last CPU; `--monitor 1` counts them"
            )
        })
    }

    fn groups(&mut self) -> Vec<GroupCounters> {
        let Some(bss) = self.skel.maps.bss_data.as_ref() else { return Vec::new() };
        if sys::live(&bss.limited_groups) == 0 {
            return Vec::new();
        }
        let mut groups = Vec::new();
        for slot in 1..=sys::live(&bss.last_limit).min(MAX_LIMITS - 1) {
            let looked = self.skel.maps.limits.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
            let Some(bytes) = looked.ok().flatten() else { continue };
            let Some(limit) = sys::value_of::<types::limit>(&bytes) else { continue };
            if limit.limited == 0 || limit.pool.quota_ns == NO_QUOTA {
                continue;
            }
            groups.push(GroupCounters {
                cgroup: match slot {
                    SHARED_LIMIT => "limits that found no place".to_owned(),
                    _ => self.cgroups.name(limit.cgroup_id),
                },
                quota_us: limit.pool.quota_ns / 1000,
                period_us: limit.pool.period_ns / 1000,
                burst_us: limit.pool.burst_ns / 1000,
                nr_periods: limit.pool.nr_periods,
                nr_throttled: limit.pool.nr_throttled,
                throttled_us: limit.pool.throttled_ns / 1000,
                nr_bursts: limit.pool.nr_bursts,
                burst_us_used: limit.pool.burst_used_ns / 1000,
            });
        }
        groups
    }
}

fn kernel(what: &'static str, error: &libbpf_rs::Error, help: &str) -> ScxError {
    ScxError::Kernel { what, reason: format!("{error:#}"), help: help.to_owned() }
}

fn without_data() -> ScxError {
    ScxError::Kernel {
        what: "the BPF object",
        reason: "it has no data".to_owned(),
        help: "this is a defect: please report it".to_owned(),
    }
}

fn set_tables(open: &mut OpenReveilleSkel<'_>, tables: &Tables) -> Result<(), ScxError> {
    let ro = open.maps.rodata_given_data.as_deref_mut().ok_or_else(without_data)?;
    for (place, row) in ro.cpu_places.iter_mut().zip(&tables.cpus) {
        place.llc = row.llc;
        place.position = row.position;
        place.smt_width = row.smt.len() as u16;
        for (to, &cpu) in place.smt.iter_mut().zip(&row.smt) {
            *to = cpu;
        }
    }
    let mut first = 0;
    for (llc, row) in tables.llcs.iter().enumerate() {
        let place = &mut ro.llc_places[llc];
        place.first = first as u32;
        place.weight = row.cpus.len() as u32;
        place.first_word = row.first_word;
        place.first_shard = row.first_shard;
        place.n_shards = row.n_shards;
        ro.llc_cpus[first..first + row.cpus.len()].copy_from_slice(&row.cpus);
        first += row.cpus.len();
        ro.llc_order[llc][..row.order.len().min(MAX_LLCS)].copy_from_slice(&row.order);
    }
    ro.n_cpu_ids = tables.cpus.len() as u32;
    ro.n_llcs = tables.llcs.len() as u32;
    ro.n_words = tables.n_words;
    ro.n_shards = tables.n_shards;
    ro.smt_active = tables.smt_active().into();
    Ok(())
}

fn set_tunables(
    open: &mut OpenReveilleSkel<'_>,
    settings: &Settings,
    abilities: &Abilities,
    record: bool,
) -> Result<(), ScxError> {
    let ro = open.maps.rodata_given_data.as_deref_mut().ok_or_else(without_data)?;
    ro.min_granularity_ns = settings.tunables.min_granularity_ns;
    ro.hz = settings.tunables.hz;
    ro.imbalance_pct = settings.tunables.imbalance_pct;
    ro.smt_imbalance_pct = settings.tunables.smt_imbalance_pct;
    ro.slice_ns = settings.slice_ns;
    ro.sleeper_credit_ns = settings.sleeper_credit_ns;
    ro.wakeup_granularity_ns = settings.wakeup_granularity_ns;
    ro.bandwidth_slice_ns = settings.bandwidth_slice_ns;
    ro.floor_ticks =
        (u64::from(settings.watchdog_ms) * u64::from(crate::kernel::hz()) / 4000).max(1);
    ro.has_bandwidth = abilities.bandwidth.into();
    ro.record_decisions = record.into();
    let bss = open.maps.bss_data.as_deref_mut().ok_or_else(without_data)?;
    bss.features = settings.policy.features;
    Ok(())
}

fn set_callbacks(
    open: &mut OpenReveilleSkel<'_>,
    settings: &Settings,
    abilities: &Abilities,
    hotplug_seq: u64,
) -> Result<(), ScxError> {
    let ops = sys::callbacks(open.struct_ops.reveille_ops).ok_or_else(without_data)?;
    for (name, unset) in OPTIONAL {
        if abilities.missing.iter().any(|missing| missing == name) {
            unset(ops);
        }
    }
    if abilities.sees_switches {
        ops.cpu_release = std::ptr::null_mut();
    }
    if abilities.task_work {
        ops.flags |= ENQ_MIGRATION_DISABLED;
    }
    if !abilities.hotplug {
        ops.cpu_online = std::ptr::null_mut();
        ops.cpu_offline = std::ptr::null_mut();
    }
    ops.hotplug_seq = hotplug_seq;
    let name = concat!("reveille_", env!("CARGO_PKG_VERSION"));
    for (to, from) in ops.name.iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    ops.timeout_ms = settings.watchdog_ms;
    Ok(())
}

/// A C string.
fn text<T: Copy + Into<i64>>(bytes: &[T]) -> String {
    let bytes: Vec<u8> =
        bytes.iter().map(|&b| Into::<i64>::into(b) as u8).take_while(|&b| b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads this machine.
pub fn this_machine(shard_cpus: u32) -> Result<Tables, ScxError> {
    Tables::read(Path::new("/sys"), shard_cpus)
}
