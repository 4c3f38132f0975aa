//! The token arithmetic against a reference that is written from the rules once more,
//! as an exact ledger in 128-bit numbers; and the settings that a kernel accepts.

use proptest::prelude::*;
use reveille_policy::{BandwidthError, BandwidthLimits, LocalRuntime, PeriodStep, Pool};

const MS: u64 = 1_000_000;
const QUEUES: usize = 4;
const SLICE: u64 = 5 * MS;

/// What happens to a group and its queues.
#[derive(Clone, Debug)]
enum Event {
    /// The queue's task runs for so long, and is charged for it.
    Run(usize, u64),
    /// Its task is put back: throttled if it is out of runtime.
    PutBack(usize),
    /// Its last task leaves.
    Leave(usize),
    /// Time passes, and timers that are due expire.
    Pass(u64),
    /// New settings: quota in ms (0: none), period in ms, burst in percent.
    Set(u64, u64, u64),
}

/// The rules again: sums that never wrap, and a list of who waits.
struct Ledger {
    now: i128,
    quota: Option<i128>,
    period: i128,
    burst: i128,
    pool: i128,
    after_refill: i128,
    grid: i128,
    running: bool,
    quiet: bool,
    slack: Option<i128>,
    local: [i128; QUEUES],
    waits_since: [Option<i128>; QUEUES],
    order: Vec<usize>,
    periods: i128,
    throttled: i128,
    bursts: i128,
    waited: i128,
    over: i128,
    /// Books: everything that came into being, and where it went.
    minted: i128,
    lost: i128,
    used: i128,
}

impl Ledger {
    fn start(&mut self) {
        if !self.running {
            self.running = true;
            self.next_period();
        }
    }

    fn next_period(&mut self) -> i128 {
        let mut ended = 0;
        while self.grid <= self.now {
            self.grid += self.period;
            ended += 1;
        }
        ended
    }

    fn refill(&mut self) {
        let Some(quota) = self.quota else { return };
        self.minted += quota;
        self.pool += quota;
        let beyond = self.after_refill - self.pool;
        if beyond > 0 {
            self.bursts += 1;
            self.over += beyond;
        }
        let spill = (self.pool - quota - self.burst).max(0);
        self.pool -= spill;
        self.lost += spill;
        self.after_refill = self.pool;
    }

    fn draw(&mut self, q: usize, up_to: i128) {
        let wanted = up_to - self.local[q];
        let got = if self.quota.is_none() {
            self.minted += wanted;
            wanted
        } else {
            self.start();
            if self.pool > 0 {
                self.quiet = false;
            }
            let got = wanted.min(self.pool);
            self.pool -= got;
            got
        };
        self.local[q] += got;
    }

    fn run(&mut self, q: usize, ns: i128) -> bool {
        self.used += ns;
        self.local[q] -= ns;
        if self.local[q] <= 0 && self.waits_since[q].is_none() {
            self.draw(q, SLICE as i128);
            return self.local[q] > 0;
        }
        true
    }

    fn put_back(&mut self, q: usize) {
        if self.quota.is_none() || self.waits_since[q].is_some() || self.local[q] > 0 {
            return;
        }
        self.draw(q, 1);
        if self.local[q] <= 0 {
            self.waits_since[q] = Some(self.now);
            self.order.push(q);
        }
    }

    fn leave(&mut self, q: usize) {
        let more = self.local[q] - MS as i128;
        if more <= 0 {
            return;
        }
        self.local[q] -= more;
        if self.quota.is_none() {
            self.lost += more;
            return;
        }
        self.pool += more;
        let refill_soon = self.grid - self.now < 7 * MS as i128;
        if self.pool > SLICE as i128
            && !self.order.is_empty()
            && self.slack.is_none()
            && !refill_soon
        {
            self.slack = Some(self.now + 5 * MS as i128);
        }
    }

    fn distribute(&mut self) {
        while self.pool > 0 && !self.order.is_empty() {
            let q = self.order[0];
            let paid = (1 - self.local[q]).min(self.pool);
            self.pool -= paid;
            self.local[q] += paid;
            if self.local[q] > 0 {
                self.order.remove(0);
                self.waited += self.now - self.waits_since[q].take().expect("it waits");
            }
        }
    }

    fn timers(&mut self) {
        if self.running {
            let ended = self.next_period();
            if ended > 0 && self.quota.is_none() {
                self.running = false;
            } else if ended > 0 {
                self.periods += ended;
                self.refill();
                if !self.order.is_empty() {
                    self.throttled += ended;
                    self.quiet = false;
                    self.distribute();
                } else if self.quiet {
                    self.running = false;
                } else {
                    self.quiet = true;
                }
            }
        }
        if self.slack.is_some_and(|at| at <= self.now) {
            self.slack = None;
            let worth = self.pool > SLICE as i128 && self.quota.is_some();
            if worth && self.grid - self.now >= 2 * MS as i128 {
                self.distribute();
            }
        }
    }

    fn set(&mut self, limits: &BandwidthLimits) {
        self.quota = limits.quota_ns.map(i128::from);
        self.period = limits.period_ns.into();
        self.burst = limits.burst_ns.into();
        self.refill();
        if self.quota.is_some() {
            self.start();
        }
        for q in 0..QUEUES {
            if let Some(since) = self.waits_since[q].take() {
                self.waited += self.now - since;
            }
            self.lost += self.local[q];
            self.local[q] = 0;
        }
        self.order.clear();
    }
}

/// The code under test with the list that its callers keep.
struct World {
    pool: Pool,
    queues: [LocalRuntime; QUEUES],
    order: Vec<usize>,
    now: u64,
}

impl World {
    fn distribute(&mut self) {
        while self.pool.runtime_ns() > 0 {
            let Some(&q) = self.order.first() else { break };
            if self.pool.grant(&mut self.queues[q]) {
                self.order.remove(0);
                self.pool.unthrottle(&mut self.queues[q], self.now);
            }
        }
    }

    fn timers(&mut self) {
        while self.pool.refill_at_ns().is_some_and(|at| at <= self.now) {
            if self.pool.period_timer(self.now) == PeriodStep::Distribute {
                self.distribute();
            }
        }
        if self.pool.slack_at_ns().is_some_and(|at| at <= self.now)
            && self.pool.slack_timer(SLICE, self.now)
        {
            self.distribute();
        }
    }

    fn set(&mut self, limits: &BandwidthLimits) {
        self.pool.set(limits, self.now).expect("valid limits");
        for q in std::mem::take(&mut self.order) {
            self.pool.unthrottle(&mut self.queues[q], self.now);
        }
        self.queues = [LocalRuntime::new(limits); QUEUES];
    }
}

fn limits(quota_ms: u64, period_ms: u64, burst_pct: u64) -> BandwidthLimits {
    BandwidthLimits {
        quota_ns: (quota_ms > 0).then_some(quota_ms * MS),
        period_ns: period_ms * MS,
        burst_ns: quota_ms * MS * burst_pct / 100,
    }
}

fn event() -> impl Strategy<Value = Event> {
    let ns = || prop_oneof![0..2 * MS, 0..40 * MS];
    let settings = (prop_oneof![1 => Just(0), 9 => 1..80u64], 1..60u64, 0..=100u64);
    prop_oneof![
        10 => (0..QUEUES, ns()).prop_map(|(q, ns)| Event::Run(q, ns)),
        6 => (0..QUEUES).prop_map(Event::PutBack),
        4 => (0..QUEUES).prop_map(Event::Leave),
        8 => prop_oneof![ns(), 0..200 * MS].prop_map(Event::Pass),
        1 => settings.prop_map(|(q, p, b)| Event::Set(q, p, b)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_arithmetic_agrees_with_the_rules(
        first in (1..80u64, 1..60u64, 0..=100u64),
        phase in 0..100 * MS,
        events in prop::collection::vec(event(), 1..200),
    ) {
        let first = limits(first.0, first.1, first.2);
        let mut world = World {
            pool: Pool::new(&first, phase, 0).expect("valid limits"),
            queues: [LocalRuntime::new(&first); QUEUES],
            order: Vec::new(),
            now: 0,
        };
        let mut ledger = Ledger {
            now: 0, quota: None, period: first.period_ns.into(), burst: 0, pool: 0, after_refill: 0,
            grid: phase.into(), running: false, quiet: false, slack: None, local: [0; QUEUES],
            waits_since: [None; QUEUES], order: Vec::new(), periods: 0, throttled: 0, bursts: 0,
            waited: 0, over: 0, minted: 0, lost: 0, used: 0,
        };
        ledger.set(&first);
        // Handed out, less what came back, since the last refill.
        let (mut full, mut quota_and_burst) = (ledger.pool, first.quota_ns.unwrap_or(0) + first.burst_ns);
        for event in events {
            match event {
                // Only an unthrottled queue of a limited group is ever charged.
                Event::Run(q, ns) if world.queues[q].enabled() && !world.queues[q].throttled() => {
                    let runs_on = world.pool.account(&mut world.queues[q], ns, SLICE, world.now);
                    prop_assert_eq!(runs_on, ledger.run(q, ns.into()));
                }
                Event::Run(..) => {}
                Event::PutBack(q) => {
                    if world.pool.throttle(&mut world.queues[q], world.now) {
                        world.order.push(q);
                    }
                    ledger.put_back(q);
                }
                Event::Leave(q) if world.queues[q].enabled() && !world.queues[q].throttled() => {
                    world.pool.give_back(&mut world.queues[q], SLICE, world.now);
                    ledger.leave(q);
                }
                Event::Leave(_) => {}
                Event::Pass(ns) => {
                    let before = (ledger.periods, ledger.minted);
                    world.now += ns;
                    ledger.now += i128::from(ns);
                    world.timers();
                    ledger.timers();
                    if before != (ledger.periods, ledger.minted) {
                        full = ledger.after_refill;
                    }
                }
                Event::Set(quota, period, burst) => {
                    let new = limits(quota, period, burst);
                    world.set(&new);
                    ledger.set(&new);
                    full = ledger.pool;
                    quota_and_burst = new.quota_ns.unwrap_or(0) + new.burst_ns;
                }
            }
            let pool = &world.pool;
            prop_assert_eq!(i128::from(pool.runtime_ns()), ledger.pool);
            prop_assert_eq!(pool.refill_at_ns().map(i128::from), ledger.running.then_some(ledger.grid));
            prop_assert_eq!(pool.slack_at_ns().map(i128::from), ledger.slack);
            prop_assert_eq!(&world.order, &ledger.order);
            prop_assert_eq!(pool.throttled_queues() as usize, ledger.order.len());
            for q in 0..QUEUES {
                prop_assert_eq!(i128::from(world.queues[q].remaining_ns()), ledger.local[q]);
                prop_assert_eq!(world.queues[q].throttled(), ledger.waits_since[q].is_some());
            }
            let figures =
                [pool.nr_periods(), pool.nr_throttled(), pool.nr_bursts(), pool.throttled_ns(), pool.burst_used_ns()];
            let expected =
                [ledger.periods, ledger.throttled, ledger.bursts, ledger.waited, ledger.over];
            prop_assert_eq!(figures.map(i128::from), expected);
            // Nothing is made of nothing, and nothing vanishes.
            let locals: i128 = ledger.local.iter().sum();
            prop_assert_eq!(ledger.pool + locals + ledger.used + ledger.lost, ledger.minted);
            let drawn = full - i128::from(pool.runtime_ns());
            prop_assert!(drawn <= i128::from(quota_and_burst), "{drawn} of {quota_and_burst}");
        }
    }
}

fn set_us(quota: Option<u64>, period: u64, burst: u64) -> Result<(), BandwidthError> {
    let ns = |us: u64| us.saturating_mul(1000);
    BandwidthLimits { quota_ns: quota.map(ns), period_ns: ns(period), burst_ns: ns(burst) }.check()
}

/// What a 6.18 kernel answered to the same writes.
#[test]
fn settings_are_accepted_as_the_kernel_accepts_them() {
    use BandwidthError as E;
    let longest = (1 << 44) - 1;
    let error = |quota, period, burst| set_us(Some(quota), period, burst).expect_err("refused");
    assert!(matches!(error(0, 100_000, 0), E::QuotaTooShort { quota_ns: 0 }));
    assert!(matches!(error(999, 100_000, 0), E::QuotaTooShort { .. }));
    assert!(matches!(error(1000, 999, 0), E::PeriodTooShort { .. }));
    assert!(matches!(error(1000, 1_000_001, 0), E::PeriodTooLong { .. }));
    assert!(matches!(error(longest + 1, 100_000, 0), E::QuotaTooLong { .. }));
    assert!(matches!(error(u64::MAX, 100_000, 0), E::QuotaTooLong { .. }));
    assert!(matches!(error(10_000, 100_000, 10_001), E::BurstAboveQuota { .. }));
    assert!(matches!(error(longest, 100_000, 1), E::BurstTooLong { .. }));
    // The first rule that is broken is the one that is named.
    assert!(matches!(error(999, 0, 5000), E::QuotaTooShort { .. }));
    for (quota, period, burst) in
        [(1000, 100_000, 0), (1001, 1001, 1001), (200_000, 1_000_000, 200_000), (longest, 1000, 0)]
    {
        assert_eq!(set_us(Some(quota), period, burst), Ok(()), "{quota} {period} {burst}");
    }
    assert_eq!(set_us(None, 100_000, u64::MAX / 1000), Ok(()), "any burst without a quota");
    assert!(matches!(set_us(None, 999, 0), Err(E::PeriodTooShort { .. })));
    let text = error(10_000, 100_000, 10_001).to_string();
    assert!(
        text.contains("burst of 10001us is more than the quota of 10ms")
            && text.contains("lower the burst"),
        "{text}"
    );
}

/// What Linux 6.18 said, cgroup v1, 2 CPUs: the setting that a write would have led to, and
/// whether it was accepted. All refusals are EINVAL, and the old setting stays.
const KERNEL_SAID: &[(Option<u64>, u64, u64, bool)] = &[
    // Without a quota any burst is accepted, and kept.
    (None, 100_000, 0, true),
    (None, 100_000, 1, true),
    (None, 100_000, 1000, true),
    (None, 100_000, 18_446_744_073_709_551, true),
    (None, 100_000, 10_000, true),
    // It stands in the way of a quota then.
    (Some(5000), 100_000, 10_000, false),
    // Quotas.
    (Some(0), 100_000, 0, false),
    (Some(1), 100_000, 0, false),
    (Some(999), 100_000, 0, false),
    (Some(1000), 100_000, 0, true),
    (Some(1001), 100_000, 0, true),
    (Some(100_000), 100_000, 0, true),
    (Some(200_000), 100_000, 0, true),
    (Some(17_592_186_043), 100_000, 0, true),
    (Some(17_592_186_044), 100_000, 0, true),
    (Some(17_592_186_045), 100_000, 0, true),
    (Some(18_446_744_073_709_551), 100_000, 0, false),
    // Periods.
    (None, 0, 0, false),
    (None, 1, 0, false),
    (None, 999, 0, false),
    (None, 1000, 0, true),
    (None, 1001, 0, true),
    (None, 1_000_000, 0, true),
    (None, 1_000_001, 0, false),
    (None, 18_446_744_073_709_551, 0, false),
    // Bursts.
    (Some(10_000), 100_000, 0, true),
    (Some(10_000), 100_000, 1, true),
    (Some(10_000), 100_000, 999, true),
    (Some(10_000), 100_000, 5000, true),
    (Some(10_000), 100_000, 10_000, true),
    (Some(10_000), 100_000, 10_001, false),
    (Some(10_000), 100_000, 100_000, false),
    (Some(50_000), 100_000, 40_000, true),
    (Some(17_592_186_044), 100_000, 17_592_186_044, true),
    (Some(8_796_093_022), 100_000, 8_796_093_022, true),
    // A period moves neither quota nor burst.
    (Some(20_000), 10_000, 20_000, true),
    (Some(20_000), 1000, 20_000, true),
];

#[test]
fn every_verdict_of_a_kernel_is_met() {
    for &(quota, period, burst, accepted) in KERNEL_SAID {
        let verdict = set_us(quota, period, burst);
        assert_eq!(verdict.is_ok(), accepted, "{quota:?} {period} {burst}: {verdict:?}");
    }
}

/// As above, for a nested group of cgroup v1: outer and inner quota and period, in us.
#[test]
fn every_verdict_of_a_kernel_on_nested_groups_is_met() {
    let said = [
        ((50_000, 100_000), (Some(40_000), 100_000), true),
        ((50_000, 100_000), (Some(50_000), 100_000), true),
        ((50_000, 100_000), (Some(50_001), 100_000), false),
        ((50_000, 100_000), (Some(60_000), 100_000), false),
        ((50_000, 100_000), (None, 100_000), true),
        ((50_000, 100_000), (Some(40_000), 50_000), false),
        // The outer one lowered.
        ((30_000, 100_000), (Some(40_000), 100_000), false),
    ];
    for (outer, inner, accepted) in said {
        let limits = |quota: Option<u64>, period: u64| BandwidthLimits {
            quota_ns: quota.map(|us| us * 1000),
            period_ns: period * 1000,
            // Bursts are not compared: 40 ms each were accepted.
            burst_ns: quota.map_or(0, |us| us * 1000),
        };
        let outer = limits(Some(outer.0), outer.1);
        let verdict = limits(inner.0, inner.1).check_in(&[outer]);
        assert_eq!(verdict.is_ok(), accepted, "{outer} around {inner:?}: {verdict:?}");
    }
}

#[test]
fn limits_are_written_in_the_unit_of_the_files() {
    let odd = BandwidthLimits { quota_ns: Some(33_333_333), period_ns: 99_999_501, burst_ns: 1 };
    assert_eq!(odd.to_string(), "quota 33333.333 us per 99999.501 us, burst 0.001 us");
    assert_eq!(odd.in_whole_us().to_string(), "quota 33333 us per 100000 us, burst 0 us");
    assert_eq!(BandwidthLimits::default().to_string(), "no quota, period 100000 us, burst 0 us");
}

#[test]
fn a_group_has_no_more_than_those_around_it() {
    let of = |quota_us: Option<u64>, period_us: u64| BandwidthLimits {
        quota_ns: quota_us.map(|us| us * 1000),
        period_ns: period_us * 1000,
        burst_ns: 0,
    };
    let parent = of(Some(50_000), 100_000);
    let free = of(None, 100_000);
    assert_eq!(of(Some(50_000), 100_000).check_in(&[parent]), Ok(()));
    assert_eq!(free.check_in(&[parent]), Ok(()));
    for refused in [of(Some(50_001), 100_000), of(Some(40_000), 50_000)] {
        assert!(matches!(refused.check_in(&[parent]), Err(BandwidthError::AboveParent { .. })));
        assert!(refused.check_in(&[free, parent]).is_err(), "the nearest limited one counts");
        assert_eq!(refused.effective_cpus(&[free, parent]), Some(0.5));
        assert_eq!(refused.check_in(&[free]), Ok(()));
    }
    assert_eq!(free.effective_cpus(&[free]), None);
    let widest = of(Some((1 << 44) - 1), 1000);
    assert_eq!(widest.check_in(&[widest]), Ok(()), "44 bits of us do not overflow");
}

#[test]
fn a_timer_that_cannot_keep_up_gets_a_longer_period() {
    let mut pool = Pool::new(&limits(10, 300, 50), 0, 0).expect("valid limits");
    assert!(pool.stretch());
    assert_eq!(pool.limits(), BandwidthLimits { burst_ns: 10 * MS, ..limits(20, 600, 0) });
    assert!(!pool.stretch(), "not to 1.2 s");
    assert_eq!(pool.limits().period_ns, 600 * MS);
}

#[test]
fn an_idle_group_is_refilled_twice_and_no_more() {
    let mut pool = Pool::new(&limits(10, 100, 100), 0, 0).expect("valid limits");
    assert_eq!(pool.runtime_ns(), 10 * MS, "one quota, and no burst");
    assert_eq!(pool.period_timer(100 * MS), PeriodStep::Rested);
    assert_eq!(pool.period_timer(200 * MS), PeriodStep::Stopped);
    assert_eq!((pool.refill_at_ns(), pool.runtime_ns()), (None, 20 * MS));
    let mut queue = LocalRuntime::new(&pool.limits());
    assert!(pool.account(&mut queue, MS, SLICE, 1234 * MS));
    assert_eq!(pool.refill_at_ns(), Some(1300 * MS), "the grid is kept");
    // Asleep for long, a call counts every period and refills once.
    assert_eq!(pool.period_timer(1500 * MS), PeriodStep::Rested);
    assert_eq!((pool.nr_periods(), pool.runtime_ns()), (5, 20 * MS));
}
