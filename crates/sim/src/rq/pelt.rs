//! Per-entity load tracking by its closed form: between two events an average
//! moves towards what is running now, and half of the distance is gone after 32
//! windows of 2^20 ns. Differs from the kernel's integer sums by the ripple of one
//! window (under 2%).

use reveille_measure::Ns;

/// One PELT window: 1024 units of 1024 ns.
pub(crate) const WINDOW_NS: Ns = 1 << 20;

/// Windows after which the past counts half.
const HALF_LIFE_WINDOWS: f64 = 32.0;

/// After this many windows nothing is left (63 half-lives).
const MAX_WINDOWS: Ns = 2016;

/// Half-lives after which a start is forgotten: 2% are left.
const FORGOTTEN_HALF_LIVES: f64 = 6.0;

/// Averages move at most so much faster in warm-up.
const MAX_SPEED: f64 = 8.0;

/// The clock at which a busy CPU counts as fully used.
pub(crate) const FULL_CLOCK: u32 = 1024;

/// From this utilisation on a queue had no idle time, whatever its clock: the divider of
/// update_idle_rq_clock_pelt(), in the middle of a window.
const NO_IDLE_TIME: f64 = 1012.0;

/// Decay factors: of whole windows, and the rate within one.
#[derive(Clone)]
pub(crate) struct Decay {
    windows: Vec<f64>,
    rate: f64,
}

impl Decay {
    /// As in the kernel.
    pub(crate) fn new() -> Decay {
        Decay::at_speed(1.0)
    }

    /// So fast that averages have forgotten their start within `time`, as a run of minutes has.
    pub(crate) fn forgetting_within(time: Ns) -> Decay {
        let needed = FORGOTTEN_HALF_LIVES * HALF_LIFE_WINDOWS * WINDOW_NS as f64;
        Decay::at_speed((needed / time as f64).clamp(1.0, MAX_SPEED))
    }

    fn at_speed(speed: f64) -> Decay {
        let y = 0.5f64.powf(speed / HALF_LIFE_WINDOWS);
        let mut factor = 1.0;
        let windows = (0..=MAX_WINDOWS)
            .map(|_| {
                let now = factor;
                factor *= y;
                now
            })
            .collect();
        let half_life_ns = HALF_LIFE_WINDOWS * WINDOW_NS as f64;
        Decay { windows, rate: speed * std::f64::consts::LN_2 / half_life_ns }
    }

    /// What is left of an average after `delta` ns.
    #[inline]
    pub(crate) fn factor(&self, delta: Ns) -> f64 {
        if delta < WINDOW_NS { self.within_window(delta) } else { self.over_windows(delta) }
    }

    #[inline(never)]
    fn over_windows(&self, delta: Ns) -> f64 {
        let windows = self.windows.get((delta / WINDOW_NS) as usize);
        windows.map_or(0.0, |windows| windows * self.within_window(delta % WINDOW_NS))
    }

    /// What is left of an average after less than a window: as x <= 0.022, the cubic term ends the
    /// series at 1e-8 (in warm-up at 4e-5).
    #[inline]
    fn within_window(&self, delta: Ns) -> f64 {
        // Signed: x86-64 converts that in one instruction.
        let x = delta as i64 as f64 * self.rate;
        1.0 - x * (1.0 - x * (0.5 - x * (1.0 / 6.0)))
    }
}

/// Averages of one task or one CPU's queue, valid at `at`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Averages {
    pub(crate) at: Ns,
    /// Share of time running, of 1024.
    pub(crate) util: f64,
    /// Weight while runnable.
    pub(crate) load: f64,
    /// 1024 per runnable task.
    pub(crate) runnable: f64,
}

impl Averages {
    /// Moves on to `now` under a state that has been constant since `at`.
    #[inline]
    pub(crate) fn advance(&mut self, decay: &Decay, now: Ns, running: bool, weight: u64, nr: u32) {
        if now <= self.at {
            return;
        }
        let keep = decay.factor(now - self.at);
        let towards = |target: f64, from: f64| target + (from - target) * keep;
        self.util = towards(if running { 1024.0 } else { 0.0 }, self.util);
        // By way of a signed integer, for which x86 has an instruction.
        self.load = towards(weight as i64 as f64, self.load);
        self.runnable = towards(f64::from(nr) * 1024.0, self.runnable);
        self.at = now;
    }

    /// The same while a task runs at a clock of so many [`FULL_CLOCK`]ths: only that share of the time
    /// passes (update_rq_clock_pelt()). Returns the rest.
    #[inline]
    pub(crate) fn advance_running(
        &mut self,
        decay: &Decay,
        now: Ns,
        clock: u32,
        weight: u64,
        nr: u32,
    ) -> Ns {
        let mut rest = 0;
        if clock < FULL_CLOCK && now > self.at {
            let elapsed = now - self.at;
            let passed = elapsed * Ns::from(clock) / Ns::from(FULL_CLOCK);
            rest = elapsed - passed;
            self.at += rest;
        }
        self.advance(decay, now, true, weight, nr);
        rest
    }

    /// The queue turns idle: what running at a lower clock left of the time passes as idle, unless
    /// no idle time was left (update_idle_rq_clock_pelt()).
    pub(crate) fn pass_idle(&mut self, decay: &Decay, rest: Ns) {
        if rest > 0 && self.util < NO_IDLE_TIME {
            let keep = decay.factor(rest);
            self.util *= keep;
            self.load *= keep;
            self.runnable *= keep;
        }
    }

    /// A task with these averages joins.
    #[inline]
    pub(crate) fn attach(&mut self, task: &Averages) {
        self.util += task.util;
        self.load += task.load;
        self.runnable += task.runnable;
    }

    /// A task with these averages leaves; rounding never leaves less than nothing.
    #[inline]
    pub(crate) fn detach(&mut self, task: &Averages) {
        self.util = (self.util - task.util).max(0.0);
        self.load = (self.load - task.load).max(0.0);
        self.runnable = (self.runnable - task.runnable).max(0.0);
    }
}

/// Did a window end between the two times? Only then does the kernel's sum change.
#[inline]
pub(crate) fn window_passed([from, to]: [Ns; 2]) -> bool {
    from / WINDOW_NS != to / WINDOW_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_is_gone_after_32_windows() {
        let decay = Decay::new();
        let half = decay.factor(32 * WINDOW_NS);
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        let exact = 0.5f64.powf(12_345_678.0 / (32.0 * WINDOW_NS as f64));
        assert!((decay.factor(12_345_678) - exact).abs() < 1e-8);
        assert_eq!(decay.factor(Ns::MAX / 2), 0.0);
    }

    #[test]
    fn in_warm_up_the_start_is_forgotten() {
        for (time, left) in [(60_000_000, 0.015..0.016), (1_000_000_000, 0.0..1e-6)] {
            let start = Decay::forgetting_within(time).factor(time);
            assert!(left.contains(&start), "{start} left after {time} ns");
        }
        assert_eq!(Decay::forgetting_within(Ns::MAX).factor(123_456), Decay::new().factor(123_456));
        assert!(Decay::forgetting_within(1).factor(WINDOW_NS - 1) > 0.8);
    }

    #[test]
    fn at_half_the_clock_a_queue_that_idles_now_and_then_is_half_used() {
        let decay = Decay::new();
        let (mut idles, mut never) = (Averages::default(), Averages::default());
        let mut rest_of_all = 0;
        for ms in 1..=1000 {
            let rest = idles.advance_running(&decay, ms * 1_000_000, 512, 1024, 1);
            assert_eq!(rest, 500_000);
            idles.pass_idle(&decay, rest);
            rest_of_all += never.advance_running(&decay, ms * 1_000_000, 512, 1024, 1);
        }
        assert!((idles.util - 512.0).abs() < 8.0, "{}", idles.util);
        assert_eq!(idles.at, never.at);
        never.pass_idle(&decay, rest_of_all);
        assert!(never.util > NO_IDLE_TIME, "{}", never.util);
    }

    #[test]
    fn one_step_equals_many() {
        let decay = Decay::new();
        let mut once = Averages { load: 300.0, ..Averages::default() };
        let mut often = once;
        once.advance(&decay, 9_000_000, true, 1024, 1);
        for t in 1..=9_000 {
            often.advance(&decay, t * 1000, true, 1024, 1);
        }
        assert!((once.load - often.load).abs() < 1e-3);
        assert!((once.util - often.util).abs() < 1e-3);
    }
}
