//! Which rules a policy has: feature bits, named kernel baselines, and the edits
//! (`+SIS_SHORT`, `-TTWU_QUEUE`) that make a variant of one.

use std::fmt;

use reveille_place::Mistake;

use crate::{Ns, PolicyFile};

/// One rule that can be left in or out.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// The kernel's or the mail's own name.
    pub name: &'static str,
    /// Its bit in [`Tunables::features`]; equals the one in `policy/features.h`.
    pub bit: u64,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
}

macro_rules! features {
    ($($name:ident = $bit:expr, $about:expr, $source:expr;)*) => {
        $(#[doc = $about] pub const $name: u64 = 1 << $bit;)*
        /// Every feature, in bit order.
        pub const FEATURES: &[Feature] = &[
            $(Feature { name: stringify!($name), bit: 1 << $bit, about: $about, source: $source },)*
        ];
    };
}

/// The bits by name.
pub mod bits {
    use super::Feature;
    features! {
        WA_IDLE = 0, "Choose between waker's and previous CPU by idleness first", "v4.14, wake_affine_idle()";
        WA_WEIGHT = 1, "Then by load: this CPU if it would be less loaded", "v4.14, wake_affine_weight()";
        SIS_UTIL = 2, "Bound the idle search by the utilisation of the cache domain", "v6.0, commit 70fb5ccf2ebb";
        SIS_SHORT = 3, "Keep two short tasks that only wake each other on one CPU when busy", "mail of 2023-02-22, v6 2/2";
        TTWU_QUEUE = 4, "Put wake-ups across caches on the wake list of the CPU", "v3.0, commit 317f394160e9";
        WAKEUP_PREEMPTION = 5, "A waking task may preempt the running one", "kernel/sched/features.h";
        GENTLE_FAIR_SLEEPERS = 6, "Sleepers are credited half a latency period, not a whole one", "kernel/sched/features.h";
        START_DEBIT = 7, "A new task starts one slice behind", "kernel/sched/features.h";
        LAST_BUDDY = 8, "Prefer the task that a wake-up preempted", "kernel/sched/features.h";
        AUTOGROUP = 9, "All tasks of a session share one task group and its load_avg line", "CONFIG_SCHED_AUTOGROUP";
        RECENT_USED_CPU = 10, "Try the CPU that the wakee used before its previous one", "v4.16, commit 32e839dda3ba";
        SIS_GROUP = 11, "Search for a fully idle core, then for a sibling of the target: nothing else will do", "v4.5, select_idle_sibling()";
        SIS_FIRST = 12, "Take the first idle thread of the cache, by number; in place of SIS_GROUP's search", "mail of 2016-04-05, PATCH RFC select_idle_sibling experiments";
        SIS_PROP = 13, "Bound the idle search by average idle time over the cost of a scan, unless SIS_UTIL does", "v5.13, select_idle_cpu()";
        SIS_AGE = 14, "Let the idle time of SIS_PROP decay while the CPU is busy, and charge it for searches", "mail of 2021-06-11, sched/fair: Age the average idle time";
        SWQUEUE = 15, "One queue of waking tasks per cache, from which CPUs pull before they go idle", "RFC of 2023-06-13, sched: Implement shared wakequeue in CFS";
        SWQUEUE_NEWIDLE = 16, "Pull as the first step of new-idle balancing, not at pick", "shared_runq v2, 2023-07-10";
        SWQUEUE_SKIP_IDLE = 17, "Leave out a wakee whose chosen CPU has nothing else to run", "shared_runq v4, 2023-12-12";
        SWQUEUE_SHARD = 18, "Split each queue into shards of at most six CPUs", "shared_runq v3, 2023-08-09";
        TTWU_QUEUE_ON_CPU = 19, "Wake list within a cache only while the wakee is still switching away", "v5.8, commits c6e7bd7afaeb and 2ebb17717550";
        TTWU_QUEUE_IDLE = 20, "Wake list within a cache for any other CPU that has nothing to run", "v6.0, commit f3dd3f674555";
        TTWU_PENDING_HELD = 21, "A CPU counts as taken until its whole wake list is queued", "v6.2, commit d6962c4fe8f9";
        WA_EFFECTIVE_LOAD = 22, "Compare loads as v4.5 did: biased, and an idle waker's CPU always wins", "v4.5, wake_affine()";
        UTIL_EST = 23, "A queue is expected to be as used as its tasks were when they last slept", "v4.17, commit 7f65ea42eb00";
        LOAD_AVG_RATELIMIT = 24, "Report a queue's load to its task group once per millisecond at most", "v6.7, commit 1528c661c24b";
        EEVDF = 25, "Eligibility and deadlines in place of least vruntime first", "v6.6, commit 147f3efaa241";
        PLACE_LAG = 26, "A task that slept keeps its lag (EEVDF)", "v6.6, commit 86bfbb7ce4f6";
        RUN_TO_PARITY = 27, "The running task keeps its CPU until its slice is used (EEVDF)", "v6.6, commit 63304558ba5d";
        PREEMPT_SHORT = 28, "A wakee with a shorter slice may cut that short (EEVDF)", "v6.12, commit 85e511df3cec";
        DELAY_DEQUEUE = 29, "A task that sleeps while ineligible stays queued until its lag is repaid, and PLACE_REL_DEADLINE: a moved one keeps its time to the deadline (EEVDF)", "v6.12, commits 152e11f6df29 and 82e9d0456e06";
        DELAY_ZERO = 30, "A delayed task that wakes takes no positive lag along (EEVDF)", "v6.12, commit 54a58a787791";
        SLICE_PROTECT = 31, "What protects the running task is a virtual time that wake-ups may shrink (EEVDF)", "v6.17, commits 052c3d87c82e and 74eec63661d4";
        SIS_NODE = 32, "Search the other caches of the memory node if the target's has no idle CPU", "tip of 2023-06-01, commit c5214e13ad60, reverted";
        SIS_NODE_LIMIT = 33, "At most four of them (SIS_NODE)", "mail of 2023-06-01, Re: Multi-LLC select_idle_sibling()";
        SIS_NODE_TOPOEXT = 34, "Caches stand in pairs, a scheduling domain of their own, beyond which SIS_NODE does not go", "mails of 2023-06-13 and 06-16, Re: Multi-LLC select_idle_sibling()";
        SIS_CLUSTER = 35, "Search the target's cluster before the rest of the cache, and prefer candidates there", "v6.8, commit 8881e1639f1f";
        SIS_CURRENT = 36, "Wake on the waker's CPU where two short tasks only wake each other, at any utilisation", "mail of 2023-04-29, SIS_CURRENT v8 2/2";
        SIS_CACHE = 37, "Pass over idle CPUs on which the last task is expected back soon", "mails of 2023-11-21, Introduce SIS_CACHE, v2 1/3 to 3/3";
        SIS_CACHE_V1 = 38, "However many are passed over (SIS_CACHE)", "mail of 2023-09-26, Introduce SIS_CACHE, 2/2";
        SIS_SHORT_V4 = 40, "SIS_SHORT without its bounds: by duration alone, at any utilisation, on any target", "mail of 2022-12-16, RFC v4 2/2";
        WA_BIAS = 41, "WA_WEIGHT takes the previous CPU for more loaded by half the tolerated imbalance", "v4.14, commit f2cdd9cc6c97";
        SWQUEUE_ENQUEUE = 42, "Append to the shared queue at every enqueue, also when a task is preempted or moved", "shared_runq v2 7/7, 2023-07-10; v3";
        SWQUEUE_GATE_ABOVE_LLC = 43, "New-idle balancing weighs the cost of the domain above the cache first", "shared_runq v3 6/7, 2023-08-09";
        SIS_LIMITED_CORES = 44, "Where SIS_UTIL allows no search, look at two cores if one may be idle", "mail of 2022-09-09, Improve scan efficiency of SIS, v5 1/5 and 2/5";
        SIS_FILTER = 45, "Search only CPUs that have gone idle since a search last found none", "mail of 2022-09-09, Improve scan efficiency of SIS, v5 3/5 to 5/5";
        PIPE_WAKE_FREED = 50, "A reader of a full pipe wakes a writer only when it has emptied a page", "v6.14, commit aaec5a95d596";
        THROTTLE_EXIT = 51, "A throttled task runs on in the kernel until it returns to user mode", "v6.18, commit e1fad12dcb66";
        RECENT_PREV = 52, "Note the previous CPU as the recently used one at each wakeup, not that of the last wakeup made", "v5.15, commit 89aafd67f28c";
        DELAYED_HIDDEN = 53, "Delayed tasks do not count as running (EEVDF)", "v7.2, kernel/sched/fair.c";
        EMPTY_KEEPS_WEIGHT = 54, "A queue that becomes empty does not ask for its group's load to set a weight", "v6.13, commit 66951e4860d3";
        NEWIDLE_COST = 55, "New-idle balancing only where a CPU idles for longer than a migration costs, 0.5 ms", "up to v5.15, removed by commit c5b0a7eefc70";
        NEWIDLE_BUMP = 56, "Half as much again for a domain whose new-idle pass found nothing, up to 0.5 ms", "v6.17, commit 155213a2aed4, reverted by d206fbad9328";
        NI_RANDOM = 57, "New-idle passes by chance, in proportion to how many of them pull a task", "v6.19 and 6.18.y, commit 33cf66d88306";
        NI_RATE = 58, "NI_RANDOM's chance also rises the less often a CPU goes idle", "v7.0, commit 9fe89f022c05";
        PREEMPT_LAZY = 59, "A wake-up that preempts sends no interrupt: the other CPU notices at its next way out of the kernel", "v7.0, commit 7dadeaa6e851, CONFIG_PREEMPT_LAZY";
        HRTICK = 60, "A timer of its own ends a slice on time, not at the next tick (EEVDF)", "on since v7.1, commit 9213aa4784cf";
        SCHED_CACHE = 61, "Load balancing gathers the threads of a process in one cache while it has room", "v7.2, kernel/sched/fair.c";
        SCHED_CACHE_ALL = 62, "However many threads run at once (SCHED_CACHE): llc_aggr_tolerance 100", "RFC v3 of 2025-06-18, Cache aware scheduling; v7.2";
    }
}
pub use bits::FEATURES;

/// All of these bits.
macro_rules! all {
    ($($name:ident)*) => { 0 $(| bits::$name)* };
}

/// Features that change nothing without another one.
const NEEDS: &[(u64, u64)] = &[
    (all!(SWQUEUE_NEWIDLE SWQUEUE_SKIP_IDLE SWQUEUE_SHARD SWQUEUE_ENQUEUE), bits::SWQUEUE),
    (all!(SIS_NODE_LIMIT SIS_NODE_TOPOEXT), bits::SIS_NODE),
    (
        all!(PLACE_LAG RUN_TO_PARITY PREEMPT_SHORT DELAY_DEQUEUE SLICE_PROTECT DELAYED_HIDDEN HRTICK),
        bits::EEVDF,
    ),
    (bits::DELAY_ZERO, bits::DELAY_DEQUEUE),
    (all!(LOAD_AVG_RATELIMIT EMPTY_KEEPS_WEIGHT), bits::AUTOGROUP),
    (bits::SIS_AGE, bits::SIS_PROP),
    (bits::SIS_CACHE_V1, bits::SIS_CACHE),
    (bits::SIS_LIMITED_CORES, bits::SIS_UTIL),
    (bits::WA_BIAS, bits::WA_WEIGHT),
    (bits::RECENT_PREV, bits::RECENT_USED_CPU),
    (bits::NI_RATE, bits::NI_RANDOM),
    (bits::SCHED_CACHE_ALL, bits::SCHED_CACHE),
    (bits::SIS_SHORT, all!(SIS_UTIL WA_IDLE)),
    (bits::SIS_CACHE, all!(SIS_UTIL SIS_CACHE_V1)),
    (bits::WA_EFFECTIVE_LOAD, bits::WA_WEIGHT),
    (all!(TTWU_QUEUE_ON_CPU TTWU_QUEUE_IDLE TTWU_PENDING_HELD), bits::TTWU_QUEUE),
];

/// Features that change nothing beside one of others, whose rules replace theirs.
const REPLACED: &[(u64, u64)] = &[
    (all!(GENTLE_FAIR_SLEEPERS START_DEBIT LAST_BUDDY), bits::EEVDF),
    (all!(SIS_PROP SIS_AGE), bits::SIS_UTIL),
    (bits::SIS_GROUP, bits::SIS_FIRST),
    // The whole search is v4.5's.
    (
        all!(SIS_UTIL SIS_PROP SIS_AGE SIS_LIMITED_CORES SIS_FILTER SIS_NODE SIS_NODE_LIMIT
            SIS_NODE_TOPOEXT SIS_CLUSTER SIS_CACHE SIS_CACHE_V1 SIS_SHORT_V4 RECENT_USED_CPU RECENT_PREV),
        all!(SIS_GROUP SIS_FIRST),
    ),
    (bits::WA_BIAS, bits::WA_EFFECTIVE_LOAD),
];

/// Releases with rules that no feature names ([`Policy::since`]).
pub mod changes {
    /// A busy CPU balances a sixteenth as often as an idle one, not a thirty-second (6e7499135db7), and a
    /// jiffy earlier (e4d32e4d5444); domains above the cache tolerate an imbalance of 117%, not 125%
    /// (2208cdaa56c9).
    pub const CLOSER_BALANCE: (u32, u32) = (5, 10);
    /// A new-idle pass counts updating blocked averages in its cost, pulls one task, and lowers the cost that
    /// it stays below (v5.16: 9e9af819db5d, e60b56e46b38, and c597bfddc9e9 with the default configuration).
    /// The v5.15 baseline stands for its successors up to v5.19.
    pub const NEWIDLE_ACCOUNTED: (u32, u32) = (5, 15);
    /// Of a group's idle CPUs, one of an idle core balances (b1bfeab9b002).
    pub const IDLE_CORE_BALANCES: (u32, u32) = (6, 6);
    /// For an idle CPU a core with two tasks is busier than one that is merely busy, and busy CPUs no longer
    /// spread tasks over groups (fee1759e4f04, 7ff1693236f5).
    pub const SMT_BALANCE: (u32, u32) = (6, 6);
    /// Delayed tasks do not count when the busiest queue is sought (1a49104496d3).
    pub const DELAYED_NOT_BUSY: (u32, u32) = (6, 14);
    /// The base slice is 0.7 ms, not 0.75 ms (2ae891b82695).
    pub const SHORTER_SLICE: (u32, u32) = (6, 15);
    /// A waker that sleeps next is alone on its CPU if all others there are delayed (aa3ee4f0b754).
    pub const ALONE_WITH_DELAYED: (u32, u32) = (6, 16);
    /// A wake-up preempts if a pick takes the wakee, and that pick dequeues delayed tasks; forks and moved
    /// tasks that sleep do not preempt; the largest slice limits lag (e837456fdca8, ac8e69e69363 and
    /// 6e3c0a4e1ad1, of v6.19 to v7.1). 6.18.y took all of it over by May 2026.
    pub const PICK_PREEMPTS: (u32, u32) = (6, 18);
    /// Average idle time is updated when the idle task is switched away from, not when a wake-up is
    /// queued (4b603f1551a7).
    pub const IDLE_ENDS_AT_SWITCH: (u32, u32) = (7, 0);
    /// A task's estimated utilisation does not fall after an activation in which it has waited
    /// (50181c0cff31).
    pub const WAITS_KEEP_UTIL_EST: (u32, u32) = (6, 8);
    pub(crate) const ALL: [(u32, u32); 10] = [
        CLOSER_BALANCE,
        NEWIDLE_ACCOUNTED,
        IDLE_CORE_BALANCES,
        SMT_BALANCE,
        WAITS_KEEP_UTIL_EST,
        DELAYED_NOT_BUSY,
        SHORTER_SLICE,
        ALONE_WITH_DELAYED,
        PICK_PREEMPTS,
        IDLE_ENDS_AT_SWITCH,
    ];
}

/// A kernel release as a set of features.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it stands for, in one line.
    pub about: &'static str,
    /// Features that are on.
    pub features: u64,
}

/// What every CFS baseline has.
const CFS: u64 = all!(
    WA_WEIGHT TTWU_QUEUE WAKEUP_PREEMPTION GENTLE_FAIR_SLEEPERS START_DEBIT LAST_BUDDY AUTOGROUP
);
/// Placement as it is since v6.2.
const PLACEMENT: u64 = all!(
    WA_IDLE WA_WEIGHT WA_BIAS RECENT_USED_CPU RECENT_PREV SIS_UTIL UTIL_EST TTWU_QUEUE
    TTWU_QUEUE_IDLE TTWU_PENDING_HELD
);
/// EEVDF as it is since v6.12, with the group load's rate limit.
const EEVDF: u64 = all!(
    EEVDF PLACE_LAG RUN_TO_PARITY PREEMPT_SHORT DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION AUTOGROUP
    LOAD_AVG_RATELIMIT
);
/// All that v6.18 has, as its long-term releases of 2026 are: 6.18.0 had NEWIDLE_BUMP in place of NI_RANDOM,
/// and not yet [`changes::PICK_PREEMPTS`].
const V6_18: u64 = PLACEMENT
    | EEVDF
    | all!(
        SIS_CLUSTER SLICE_PROTECT PIPE_WAKE_FREED THROTTLE_EXIT EMPTY_KEEPS_WEIGHT NI_RANDOM
    );

/// Every baseline, oldest first.
pub const BASELINES: &[Baseline] = &[
    Baseline {
        name: "v4.5",
        about: "Linux 4.5: an idle core or nothing (baseline of the first-idle patch)",
        features: CFS | all!(WA_EFFECTIVE_LOAD SIS_GROUP NEWIDLE_COST),
    },
    Baseline {
        name: "v5.13",
        about: "Linux 5.13: idle search bounded by average idle time (baseline of its ageing)",
        features: CFS
            | all!(
                WA_IDLE WA_BIAS RECENT_USED_CPU SIS_PROP TTWU_QUEUE_ON_CPU UTIL_EST NEWIDLE_COST
            ),
    },
    Baseline {
        name: "v5.15",
        about: "Linux 5.15 to 5.19: idle search bounded by aged idle time (baseline of SIS_UTIL)",
        features: CFS
            | all!(
                WA_IDLE WA_BIAS RECENT_USED_CPU RECENT_PREV SIS_PROP SIS_AGE TTWU_QUEUE_ON_CPU UTIL_EST
            ),
    },
    Baseline {
        name: "v6.2",
        about: "Linux 6.2: CFS, SIS_UTIL, wake list for idle CPUs (baseline of SIS_SHORT)",
        features: CFS | PLACEMENT,
    },
    Baseline {
        name: "v6.4",
        about: "Linux 6.4: the last but one with CFS (baseline of the shared wake queue)",
        features: CFS | PLACEMENT,
    },
    Baseline {
        name: "v6.12",
        about: "Linux 6.12: EEVDF with delayed dequeue",
        features: PLACEMENT | EEVDF | bits::SIS_CLUSTER,
    },
    Baseline {
        name: "v6.18",
        about: "Linux 6.18: slices protected by virtual time; throttled tasks run on to user mode; new-idle balancing by chance",
        features: V6_18,
    },
    Baseline {
        name: "v7.2",
        about: "Linux 7.2 and 7.3: slices end on time; lazy preemption; delayed tasks no longer count as running; threads gather in a cache",
        features: V6_18 | all!(DELAYED_HIDDEN NI_RATE PREEMPT_LAZY HRTICK SCHED_CACHE),
    },
];

impl Baseline {
    /// Release that it stands for: (6, 12).
    pub fn release(&self) -> (u32, u32) {
        release_of(self.name).expect("it is called after its release")
    }

    /// `name` is none of `known`: of a kernel's release, the baseline that stands for it is told.
    pub fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Mistake {
        let Some(release) = release_of(name) else {
            return Mistake::unknown(what, name, known).mended_by(LISTED);
        };
        let nearest = Baseline::of_release(release).unwrap_or(&BASELINES[0]);
        let about = nearest.about.split_once(": ").map_or(nearest.about, |(_, about)| about);
        let help = format!("`{}` is the nearest: {about}; {LISTED}", nearest.name);
        Mistake::new(format!("no {what} is called `{name}`"), help)
    }

    /// The baseline nearest to a kernel of this release: the newest that is not newer, except that
    /// v4.14 had WA_IDLE, WA_BIAS and SIS_PROP of v5.13, and no longer WA_EFFECTIVE_LOAD (since
    /// v4.14) and SIS_GROUP (since v4.9) of v4.5: only RECENT_USED_CPU (v4.16), UTIL_EST (v4.17) and
    /// TTWU_QUEUE_ON_CPU (v5.8) were to come. SIS_UTIL came with v6.0 and EEVDF with v6.6.
    pub fn of_release(release: (u32, u32)) -> Option<&'static Baseline> {
        let release = match release {
            (4, 14..) | (5, 0..=12) => (5, 13),
            (6, 0..=1) => (6, 2),
            (6, 6..=11) => (6, 12),
            other => other,
        };
        BASELINES.iter().rev().find(|b| b.release() <= release)
    }
}

/// The kernel release that a name means, with or without `v` and a third number. No release has had
/// a second number above 20.
fn release_of(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix('v').unwrap_or(name).split('.').map(|n| n.parse().ok());
    let release = (numbers.next()??, numbers.next()??);
    (release.1 <= 20 && numbers.all(|n| n.is_some())).then_some(release)
}

/// Features and tunables, as `policy/` reads them (`struct policy_tunables`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tunables {
    /// Feature bits.
    pub features: u64,
    /// sched_min_granularity in ns, under EEVDF the base slice, scaled by the number of
    /// CPUs.
    pub min_granularity_ns: Ns,
    /// Timer ticks per second.
    pub hz: u32,
    /// Imbalance in percent that domains above SMT tolerate.
    pub imbalance_pct: u32,
    /// Imbalance in percent that the SMT domain tolerates.
    pub smt_imbalance_pct: u32,
}

/// With the features' names in place of their bits.
impl fmt::Debug for Tunables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunables")
            .field("features", &names_of(self.features))
            .field("min_granularity_ns", &self.min_granularity_ns)
            .field("hz", &self.hz)
            .field("imbalance_pct", &self.imbalance_pct)
            .field("smt_imbalance_pct", &self.smt_imbalance_pct)
            .finish()
    }
}

impl Tunables {
    /// Is this feature bit on?
    pub fn has(&self, bit: u64) -> bool {
        self.features & bit != 0
    }

    /// Does an LLC note whether it has an idle core (`has_idle_cores`, v4.9)? The
    /// searches of v4.5 neither ask nor say so.
    pub fn notes_idle_cores(&self) -> bool {
        !self.has(bits::SIS_GROUP | bits::SIS_FIRST)
    }
}

/// A baseline with edits: `v6.2`, or `v6.2 +SIS_SHORT -TTWU_QUEUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The baseline's name, or that of an edited one.
    pub base: String,
    /// The kernel's release: it has the rules that no feature names ([`changes`]).
    pub release: (u32, u32),
    /// The edits in the order given; empty for the baseline itself.
    pub edits: String,
    /// Features that are on.
    pub features: u64,
    /// Decides in place of the kernel's CPU selection.
    pub file: Option<PolicyFile>,
}

/// Fix for a baseline or feature that does not exist.
const LISTED: &str = "`reveille policies` lists them";

impl Policy {
    /// A baseline as it is.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn baseline(name: &str) -> Result<Policy, Mistake> {
        let found = BASELINES
            .iter()
            .find(|b| b.name == name)
            .ok_or_else(|| Baseline::unknown("baseline", name, BASELINES.iter().map(|b| b.name)))?;
        Ok(Policy {
            base: name.to_string(),
            release: found.release(),
            edits: String::new(),
            features: found.features,
            file: None,
        })
    }

    /// This policy with edits applied, at most one of each feature; they are separated by
    /// blanks or commas.
    ///
    /// # Errors
    /// No edit, one without `+` or `-`, of an unknown feature, of one that was edited before,
    /// or one that changes nothing: alone, without another feature or beside one.
    pub fn with(&self, edits: &str) -> Result<Policy, Mistake> {
        self.edited(edits, u64::MAX)
    }

    /// [`Policy::with`]; an error proposes edits of `editable` features only.
    pub(crate) fn edited(&self, edits: &str, editable: u64) -> Result<Policy, Mistake> {
        let mut features = self.features;
        let mut names: Vec<&str> = Vec::new();
        for edit in edits.split([' ', ',']).filter(|e| !e.is_empty()) {
            let (add, name) = match (edit.strip_prefix('+'), edit.strip_prefix('-')) {
                (Some(name), _) => (true, name),
                (_, Some(name)) => (false, name),
                _ => {
                    let help = if edit.ends_with(".c") {
                        format!("write `--policy {edit}` to compare a file that decides")
                    } else if BASELINES.iter().any(|b| b.name == edit) {
                        "a variant has one kernel, and it comes first: `v6.12,+FEATURE`".to_owned()
                    } else {
                        format!("write `+{edit}` to add a feature, `-{edit}` to remove it")
                    };
                    return Err(Mistake::new(format!("`{edit}` has no sign"), help));
                }
            };
            let feature = FEATURES.iter().find(|f| f.name == name).ok_or_else(|| {
                let known = FEATURES.iter().map(|f| f.name);
                Mistake::unknown("feature", name, known).mended_by(LISTED)
            })?;
            if let Some(earlier) = names.iter().find(|earlier| earlier[1..] == *name) {
                return Err(if *earlier == edit {
                    Mistake::new(format!("`{edit}` is given twice"), "leave one of them out")
                } else {
                    let help = "keep the one that you mean; a variant edits each feature once";
                    Mistake::new(format!("`{edit}` contradicts `{earlier}`"), help)
                });
            }
            let edited = if add { features | feature.bit } else { features & !feature.bit };
            if edited == features {
                let problem = format!("`{edit}` changes nothing: {} already is so", self.base);
                return Err(Mistake::new(problem, "leave it out"));
            }
            features = edited;
            names.push(edit);
        }
        if let Some((problem, ..)) = without_effect(self.features, features) {
            let help = match mending(self.features, features, editable) {
                Some(edits) => format!("add `{}`, or leave it out", edits.join(",")),
                None => "leave it out".to_owned(),
            };
            return Err(Mistake::new(problem, help));
        }
        if names.is_empty() {
            return Err(Mistake::new(
                "a variant without an edit is the baseline",
                "write `+FEATURE`, such as `+SIS_SHORT`, or a setting, such as `burst=100ms`",
            ));
        }
        Ok(Policy { edits: names.join(" "), features, ..self.clone() })
    }

    /// Names of the features that are on, in bit order.
    pub fn names(&self) -> Vec<&'static str> {
        names_of(self.features)
    }

    /// Does its baseline have what this release brought, one of [`changes`]?
    pub fn since(&self, release: (u32, u32)) -> bool {
        debug_assert!(changes::ALL.contains(&release), "differs_only_in() does not know it");
        self.release >= release
    }

    /// Do both have the same features but for these, and the same rules that no feature names?
    pub fn differs_only_in(&self, features: u64, other: &Policy) -> bool {
        (self.features ^ other.features) & !features == 0
            && changes::ALL.iter().all(|&change| self.since(change) == other.since(change))
    }

    /// What the decision code reads, for a machine with this many CPUs and this tick.
    pub fn tunables(&self, n_cpus: usize, hz: u32) -> Tunables {
        // sysctl_sched_min_granularity, and sysctl_sched_base_slice.
        let unscaled_ns = if self.since(changes::SHORTER_SLICE) { 700_000 } else { 750_000 };
        Tunables {
            features: self.features,
            min_granularity_ns: unscaled_ns * scaling_factor(n_cpus),
            hz,
            imbalance_pct: 117,
            smt_imbalance_pct: 110,
        }
    }
}

/// A feature that changes nothing where it is added to `base`: the problem, and which other feature
/// to add or remove.
fn without_effect(base: u64, features: u64) -> Option<(String, char, Feature)> {
    let added = features & !base;
    let first = |bits: u64| *FEATURES.iter().find(|f| bits & f.bit != 0).expect("one is in it");
    let needs = |&(dependent, needed): &(u64, u64)| {
        let (edit, needed) = (first(added & dependent).name, first(needed));
        (format!("`+{edit}` changes nothing without {}", needed.name), '+', needed)
    };
    let beside = |&(replaced, by): &(u64, u64)| {
        let (edit, by) = (first(added & replaced).name, first(features & by));
        let problem = format!("`+{edit}` changes nothing beside {}, which replaces it", by.name);
        (problem, '-', by)
    };
    let alone = NEEDS.iter().find(|(d, needed)| added & d != 0 && features & needed == 0);
    let replaced = || REPLACED.iter().find(|(r, by)| added & r != 0 && features & by != 0);
    alone.map(needs).or_else(|| replaced().map(beside))
}

/// Further edits with which no added feature is [`without_effect`], unless they contradict those made
/// or edit a feature that is not `editable`.
fn mending(base: u64, mut features: u64, editable: u64) -> Option<Vec<String>> {
    let mut edits = Vec::new();
    while let Some((_, sign, Feature { name, bit, .. })) = without_effect(base, features) {
        let edited = features ^ base;
        if edited & bit != 0 || (edited | bit) & !editable != 0 {
            return None;
        }
        features ^= bit;
        edits.push(format!("{sign}{name}"));
    }
    Some(edits)
}

/// Names of these features, in bit order.
pub(crate) fn names_of(features: u64) -> Vec<&'static str> {
    FEATURES.iter().filter(|f| features & f.bit != 0).map(|f| f.name).collect()
}

/// SCHED_TUNABLESCALING_LOG, the default: 1 + log2 of the CPUs, counted up to 8.
pub fn scaling_factor(n_cpus: usize) -> u64 {
    1 + u64::from(n_cpus.clamp(1, 8).ilog2())
}

#[cfg(test)]
pub(crate) fn c_layout() -> String {
    crate::layout::layout! { Tunables, "struct policy_tunables",
    features, min_granularity_ns, hz, imbalance_pct, smt_imbalance_pct }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_once_and_name_the_nearest() {
        let base = Policy::baseline("v6.2").unwrap();
        let short = base.with("+SIS_SHORT,-TTWU_QUEUE").unwrap();
        assert_eq!(short.edits, "+SIS_SHORT -TTWU_QUEUE");
        assert_eq!(short.features, (base.features | bits::SIS_SHORT) & !bits::TTWU_QUEUE);
        let refused = |edits: &str| base.with(edits).unwrap_err().problem;
        assert!(refused("+SIS_SHROT").ends_with("did you mean `SIS_SHORT`?"));
        assert_eq!(refused("SIS_SHORT"), "`SIS_SHORT` has no sign");
        assert_eq!(refused("+SIS_UTIL"), "`+SIS_UTIL` changes nothing: v6.2 already is so");
        assert_eq!(refused(" , "), "a variant without an edit is the baseline");
        let twice = "+SIS_SHORT +SIS_SHORT";
        assert_eq!(refused(twice), "`+SIS_SHORT` is given twice");
        let alone = "`+SWQUEUE_SHARD` changes nothing without SWQUEUE";
        assert_eq!(refused("+SWQUEUE_SHARD"), alone);
        assert_eq!(refused("+SIS_AGE"), "`+SIS_AGE` changes nothing without SIS_PROP");
        assert!(base.with("+SWQUEUE_SHARD,+SWQUEUE").is_ok());
        assert!(
            refused("+SIS_PROP,+SIS_AGE")
                .starts_with("`+SIS_PROP` changes nothing beside SIS_UTIL,")
        );
        assert!(base.with("+SIS_PROP,+SIS_AGE,-SIS_UTIL").is_ok());
        assert!(base.with("+EEVDF,+PLACE_LAG,-LAST_BUDDY").is_ok());
        for twice in ["+SIS_SHORT -SIS_SHORT", "-WA_IDLE,+WA_IDLE"] {
            assert!(refused(twice).contains(" contradicts "), "{twice}");
        }
    }

    #[test]
    fn what_another_rule_replaces_is_refused() {
        for (name, edits, rest) in [
            ("v6.12", "+LAST_BUDDY", "beside EEVDF"),
            ("v6.12", "+START_DEBIT", "beside EEVDF"),
            ("v7.2", "+GENTLE_FAIR_SLEEPERS", "beside EEVDF"),
            ("v6.18", "+SIS_PROP", "beside SIS_UTIL"),
            ("v4.5", "+SIS_UTIL", "beside SIS_GROUP"),
            ("v4.5", "+SIS_SHORT_V4", "beside SIS_GROUP"),
            ("v6.4", "+SIS_FIRST,+SIS_NODE", "beside SIS_FIRST"),
            ("v4.5", "+WA_BIAS", "beside WA_EFFECTIVE_LOAD"),
            ("v4.5", "+SIS_SHORT", "without WA_IDLE"),
            ("v5.15", "+SIS_CACHE", "without SIS_UTIL"),
            ("v6.2", "-TTWU_QUEUE,+TTWU_QUEUE_ON_CPU", "without TTWU_QUEUE"),
        ] {
            let problem = Policy::baseline(name).unwrap().with(edits).unwrap_err().problem;
            let added = edits.rsplit(',').next().unwrap();
            let told = format!("`{added}` changes nothing {rest}");
            assert!(problem.starts_with(&told), "{name}: {problem}");
        }
        for (name, edits) in [("v4.5", "+SIS_FIRST"), ("v4.5", "-SIS_GROUP,+SIS_UTIL")] {
            assert!(Policy::baseline(name).unwrap().with(edits).is_ok(), "{name} {edits}");
        }
    }

    #[test]
    fn the_fix_of_an_edit_without_effect_is_accepted() {
        let fix =
            |base: &str, edits: &str| Policy::baseline(base).unwrap().with(edits).unwrap_err();
        assert_eq!(fix("v6.4", "+HRTICK").help, "add `+EEVDF`, or leave it out");
        let chain = "add `+DELAY_DEQUEUE,+EEVDF`, or leave it out";
        assert_eq!(fix("v6.4", "+DELAY_ZERO").help, chain);
        assert_eq!(fix("v6.4", "+SIS_FIRST,+SIS_NODE").help, "leave it out");
        let signed: Vec<String> = FEATURES
            .iter()
            .flat_map(|f| [format!("+{}", f.name), format!("-{}", f.name)])
            .collect();
        let pairs = signed.iter().flat_map(|a| signed.iter().map(move |b| format!("{a},{b}")));
        for edits in pairs.chain(signed.iter().cloned()) {
            for base in BASELINES.iter().map(|b| Policy::baseline(b.name).unwrap()) {
                let scx = |edits: &str| {
                    let policy = base.with_for_scx(edits)?;
                    let none =
                        crate::scx_without_meaning(policy.features ^ base.features).is_none();
                    none.then_some(policy).ok_or_else(|| Mistake::new("no meaning", ""))
                };
                let with = |edits: &str| base.with(edits);
                for attempt in [&with as &dyn Fn(&str) -> Result<Policy, Mistake>, &scx] {
                    let Err(mistake) = attempt(&edits) else { continue };
                    let proposed =
                        mistake.help.strip_prefix("add `").and_then(|h| h.split_once('`'));
                    if let Some((more, _)) = proposed {
                        let mended = attempt(&format!("{edits},{more}"));
                        assert!(mended.is_ok(), "{} {edits}: {mistake:?} {mended:?}", base.base);
                    }
                }
            }
        }
    }

    #[test]
    fn a_release_without_a_baseline_is_told_the_nearest() {
        let told = |name| Policy::baseline(name).unwrap_err();
        for (name, nearest) in [
            ("v6.6", "`v6.12` is the nearest: EEVDF with delayed dequeue; "),
            ("6.6", "`v6.12` is"),
            ("v6.6.87", "`v6.12` is"),
            ("v6.8", "`v6.12` is"),
            ("v6.17", "`v6.12` is"),
            ("v7.0", "`v6.18` is"),
            ("v6.3", "`v6.2` is"),
            ("v5.10", "`v5.13` is"),
            ("v4.4", "`v4.5` is"),
        ] {
            let mistake = told(name);
            assert_eq!(mistake.problem, format!("no baseline is called `{name}`"));
            assert!(mistake.help.starts_with(nearest), "{name}: {}", mistake.help);
        }
        for slip in ["v6.112", "v6,12", "v6.12x"] {
            let problem = told(slip).problem;
            assert!(problem.ends_with("; did you mean `v6.12`?"), "{problem}");
        }
    }

    #[test]
    fn a_kernel_has_the_nearest_baseline() {
        let of = |release| Baseline::of_release(release).map(|b| b.name);
        assert_eq!(of((6, 18)), Some("v6.18"));
        assert_eq!(of((6, 17)), Some("v6.12"));
        assert_eq!(of((6, 12)), Some("v6.12"));
        assert_eq!([of((6, 0)), of((6, 3))], [Some("v6.2"); 2]);
        assert_eq!([of((4, 5)), of((4, 13))], [Some("v4.5"); 2]);
        assert_eq!([of((4, 14)), of((4, 20)), of((5, 0)), of((5, 14))], [Some("v5.13"); 4]);
        assert_eq!([of((5, 15)), of((5, 19))], [Some("v5.15"); 2]);
        assert_eq!([of((6, 4)), of((6, 5))], [Some("v6.4"); 2]);
        assert_eq!([of((6, 6)), of((6, 11))], [Some("v6.12"); 2]);
        assert_eq!(of((7, 0)), Some("v6.18"));
        assert_eq!(of((8, 1)), Some("v7.2"));
        assert_eq!(of((4, 4)), None);
        assert!(BASELINES.windows(2).all(|w| w[0].release() < w[1].release()));
    }

    #[test]
    fn bits_equal_those_of_the_c_header() {
        let header = include_str!("../../../policy/features.h");
        let of_c = header.lines().filter(|line| line.contains("1ull <<"));
        let of_rust = FEATURES.iter().map(|feature| {
            format!("#define POLICY_{} (1ull << {})", feature.name, feature.bit.ilog2())
        });
        assert_eq!(of_c.collect::<Vec<_>>(), of_rust.collect::<Vec<_>>());
    }

    #[test]
    fn a_kernel_is_more_than_its_features() {
        let named = |name: &str| Policy::baseline(name).unwrap();
        let edited = named("v6.12")
            .with("+PIPE_WAKE_FREED +THROTTLE_EXIT +SLICE_PROTECT +EMPTY_KEEPS_WEIGHT +NI_RANDOM")
            .unwrap();
        assert_eq!(edited.features, named("v6.18").features);
        assert!(!edited.differs_only_in(0, &named("v6.18")), "its base slice is longer");
        assert!(named("v6.2").differs_only_in(0, &named("v6.4")));
        let short = named("v6.4").with("+SIS_SHORT").unwrap();
        assert!(short.differs_only_in(bits::SIS_SHORT, &named("v6.2")));
        assert!(!short.differs_only_in(0, &named("v6.2")));
        let renamed = Policy { base: "v6.18 -SIS_UTIL".to_owned(), ..named("v6.18") };
        assert!(renamed.differs_only_in(0, &named("v6.18")), "a name decides nothing");
    }

    #[test]
    fn tunables_scale_with_the_logarithm_of_the_cpus() {
        let base = Policy::baseline("v6.2").unwrap();
        let min_granularity = |n| base.tunables(n, 250).min_granularity_ns;
        assert_eq!(min_granularity(1), 750_000);
        assert_eq!(min_granularity(2), 1_500_000);
        assert_eq!(min_granularity(8), 3_000_000);
        assert_eq!(min_granularity(224), 3_000_000);
        let told = format!("{:?}", base.tunables(1, 250));
        assert!(told.contains("\"SIS_UTIL\"") && told.contains("hz: 250"), "{told}");
        for (name, slice_ns) in [("v6.12", 750_000), ("v6.18", 700_000), ("v7.2", 700_000)] {
            let eevdf = Policy::baseline(name).unwrap();
            assert_eq!(eevdf.tunables(1, 250).min_granularity_ns, slice_ns, "{name}");
            assert_eq!(eevdf.tunables(224, 250).min_granularity_ns, 4 * slice_ns, "{name}");
        }
    }
}
