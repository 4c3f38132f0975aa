use proptest::prelude::*;

use super::*;

const MS: Ns = 1_000_000;
const START: Ns = 1000 * MS;

/// A recording of thread 7, and what happens to it, in ms since the start.
struct Story(Activations);

impl Story {
    fn new() -> Story {
        let mut story = Story(Activations::new(START, 10 * MS, 100, 2));
        story.at(0, 0, Kind::Entered { thread: 7 });
        story
    }

    fn at(&mut self, ms: u64, cpu: u32, kind: Kind) -> &mut Story {
        self.0.take(&Event { at_ns: START + ms * MS, cpu, kind });
        self
    }

    fn switch(&mut self, ms: u64, cpu: u32, prev: u32, left: Left, next: u32) -> &mut Story {
        self.at(ms, cpu, Kind::Switch { prev, left, next })
    }

    fn wake(&mut self, ms: u64, thread: u32) -> &mut Story {
        self.at(ms, 0, Kind::Wakeup { thread })
    }

    fn end(self, ms: u64) -> Activity {
        self.0.finish(START + ms * MS)
    }
}

fn demand(at: u64, cpu: u64, thread: u32, done: impl Into<Option<u64>>) -> Demand {
    let done_ns = done.into().map(|ms| ms * MS);
    Demand { at_ns: at * MS, cpu_ns: cpu * MS, thread, done_ns }
}

use Left::{Blocked, Dead, Runnable};

#[test]
fn preemption_and_throttling_do_not_end_an_activation() {
    let mut story = Story::new();
    story.wake(10, 7).switch(12, 0, 0, Runnable, 7).switch(15, 0, 7, Runnable, 9);
    // Throttled until 60, then on another CPU.
    story.switch(60, 1, 0, Runnable, 7).switch(64, 1, 7, Blocked, 0);
    story.wake(70, 7).switch(70, 0, 9, Runnable, 7).switch(71, 0, 7, Blocked, 9);
    let activity = story.end(100);
    assert_eq!(activity.demands, [demand(10, 7, 0, 64), demand(70, 1, 0, 71)]);
    assert_eq!((activity.cpu_ns, activity.threads), (8 * MS, 1));
    assert_eq!(activity.samples.len(), 10);
    assert_eq!(activity.waited_ns, 47 * MS);
    let runtime: Vec<u64> = activity.samples.iter().map(|s| s.runtime_ns / MS).collect();
    assert_eq!(runtime, [0, 3, 0, 0, 0, 0, 4, 1, 0, 0]);
    assert_eq!(activity.samples[4].runnable, Some(1), "it waits for its quota");
    assert_eq!(activity.samples[9].runnable, Some(0));
}

#[test]
fn switches_that_a_kernel_did_not_write_are_counted() {
    let mut story = Story::new();
    // Idle CPU 1 went to 7 unseen, twice of three times.
    story.switch(10, 1, 0, Runnable, 7).switch(11, 1, 7, Blocked, 0);
    story.switch(21, 1, 7, Blocked, 0).switch(31, 1, 7, Blocked, 0);
    let activity = story.end(100);
    assert_eq!(activity.broken_share, 0.5);
}

#[test]
fn what_ran_or_waited_at_the_start_has_since_then() {
    let mut story = Story::new();
    story.at(0, 0, Kind::Entered { thread: 8 });
    // 7 has run since before; 8 has waited for its CPU.
    story.switch(5, 0, 7, Runnable, 8).switch(9, 0, 8, Blocked, 7).switch(11, 0, 7, Blocked, 0);
    let activity = story.end(20);
    assert_eq!(activity.demands, [demand(0, 7, 0, 11), demand(0, 4, 1, 9)]);
    assert_eq!(activity.cpu_ns, 11 * MS);
    assert_eq!(activity.samples.iter().map(|s| s.runtime_ns).sum::<Ns>(), 11 * MS);
}

#[test]
fn what_was_seen_before_the_start_only_says_where_threads_are() {
    let mut story = Story(Activations::new(START, 10 * MS, 100, 2));
    story.at(0, 0, Kind::Entered { thread: 7 });
    let early = |kind| Event { at_ns: START - 3 * MS, cpu: 0, kind };
    story.0.take(&early(Kind::Wakeup { thread: 7 }));
    story.0.take(&early(Kind::Switch { prev: 0, left: Runnable, next: 7 }));
    story.0.take(&early(Kind::Switch { prev: 7, left: Blocked, next: 0 }));
    story.0.take(&early(Kind::Wakeup { thread: 7 }));
    story.0.take(&early(Kind::Switch { prev: 0, left: Runnable, next: 7 }));
    story.switch(4, 0, 7, Blocked, 0);
    assert_eq!(story.end(10).demands, [demand(0, 4, 0, 4)]);
}

#[test]
fn a_wakeup_before_it_sleeps_is_none() {
    let mut story = Story::new();
    story.wake(1, 7).switch(1, 0, 0, Runnable, 7).wake(2, 7).wake(3, 7);
    story.switch(4, 0, 7, Blocked, 0);
    let activity = story.end(10);
    assert_eq!(activity.demands, [demand(1, 3, 0, 4)]);
}

#[test]
fn a_thread_that_never_sleeps_has_one_demand_until_the_end() {
    let mut story = Story::new();
    story.wake(10, 7).switch(10, 0, 0, Runnable, 7).switch(30, 0, 7, Runnable, 9);
    story.switch(40, 0, 9, Runnable, 7);
    let activity = story.end(50);
    assert_eq!(activity.demands, [demand(10, 30, 0, None)]);
    // One that was woken and did not run yet has no known demand.
    let mut story = Story::new();
    story.wake(10, 7);
    assert_eq!(story.end(50).demands, []);
}

#[test]
fn children_are_of_the_group_and_the_dead_leave_their_number() {
    let mut story = Story::new();
    story.wake(0, 7).switch(0, 0, 0, Runnable, 7);
    story.at(1, 0, Kind::Fork { parent: 7, child: 20 }).wake(1, 20);
    story.switch(1, 1, 0, Runnable, 20).switch(3, 1, 20, Dead, 0);
    // The id has been reused.
    story.at(4, 1, Kind::Fork { parent: 50, child: 20 }).wake(4, 20);
    story.switch(4, 1, 0, Runnable, 20).switch(6, 1, 20, Dead, 0);
    story.at(7, 0, Kind::Fork { parent: 7, child: 21 }).wake(7, 21);
    story.switch(7, 1, 0, Runnable, 21).switch(8, 1, 21, Blocked, 0);
    story.switch(9, 0, 7, Blocked, 0);
    let activity = story.end(10);
    assert_eq!(activity.demands, [demand(0, 9, 0, 9), demand(1, 2, 1, 3), demand(7, 1, 1, 8)]);
    assert_eq!(activity.threads, 2);
}

#[test]
fn who_enters_running_runs_from_then_on_and_who_is_missed_twice_has_left() {
    let mut story = Story::new();
    story.switch(1, 1, 0, Runnable, 30);
    story.at(5, 1, Kind::Entered { thread: 30 });
    story.at(8, 0, Kind::Moved);
    story.0.keep_only(&[7]);
    assert!(story.0.knows(30));
    story.0.keep_only(&[7]);
    assert!(!story.0.knows(30) && story.0.knows(7));
    story.switch(9, 1, 30, Blocked, 0);
    assert_eq!(story.end(10).demands, [demand(5, 3, 0, 8)]);
}

#[test]
fn after_a_loss_nobody_is_charged_for_what_was_not_seen() {
    let mut story = Story::new();
    story.wake(0, 7).switch(0, 0, 0, Runnable, 7).at(2, 0, Kind::Lost);
    // It is seen to leave: it may have run since the loss.
    story.switch(5, 0, 7, Blocked, 0);
    story.wake(6, 7).switch(6, 0, 0, Runnable, 7).at(7, 0, Kind::Lost);
    story.switch(9, 0, 9, Blocked, 0);
    let activity = story.end(10);
    assert_eq!(activity.demands, [demand(0, 5, 0, 5), demand(6, 1, 0, None)]);
}

#[test]
fn counters_are_shown_from_when_they_were_read() {
    let mut story = Story::new();
    let counters = GroupStats { nr_periods: 3, nr_throttled: 2, ..GroupStats::default() };
    story.0.read(START + 15 * MS, counters);
    let samples = story.end(35).samples;
    let seen: Vec<_> = samples.iter().map(|s| (s.at_ns / MS, s.nr_throttled)).collect();
    assert_eq!(seen, [(10, 0), (20, 2), (30, 2), (35, 2)]);
}

proptest! {
    /// Whatever comes, in whatever order: sums agree, and demands are valid.
    #[test]
    fn any_events_give_a_valid_recording(
        events in prop::collection::vec((0u64..50, 0u32..2, 0u8..8, 0u32..5, 0u32..5), 0..200)
    ) {
        let mut activations = Activations::new(START, 7 * MS, 2, 2);
        for (ms, cpu, kind, a, b) in events {
            let left = [Runnable, Blocked, Dead][usize::from(kind % 3)];
            let kind = match kind {
                0..=2 => Kind::Switch { prev: a, left, next: b },
                3 | 4 => Kind::Wakeup { thread: a },
                5 => Kind::Fork { parent: a, child: b },
                6 => Kind::Entered { thread: a },
                _ if a == 0 => { activations.keep_only(&[b]); Kind::Moved }
                _ => Kind::Lost,
            };
            activations.take(&Event { at_ns: START - 5 * MS + ms * MS, cpu, kind });
        }
        let activity = activations.finish(START + 60 * MS);
        let sampled: Ns = activity.samples.iter().map(|s| s.runtime_ns).sum();
        let demanded: Ns = activity.demands.iter().map(|d| d.cpu_ns).sum();
        prop_assert_eq!(sampled, activity.cpu_ns);
        prop_assert_eq!(demanded, activity.cpu_ns);
        prop_assert_eq!(activity.samples.last().unwrap().at_ns, 60 * MS);
        for demand in &activity.demands {
            prop_assert!(demand.thread < activity.threads);
            prop_assert!(demand.at_ns + demand.cpu_ns <= demand.done_ns.unwrap_or(60 * MS), "{demand:?}");
        }
    }
}
