//! Random schedules on one timeline: a simple model of the rules decides alike, and every task's
//! lag stays within bounds.

use reveille_policy::TaskId;
use std::ops::Range;

use proptest::prelude::*;

use super::model::Model;
use super::tests::{BASE, MS, TICK, rules};
use super::*;

/// What a task is: nice 5, 2, 0, -3 or -10, and one of some slices.
fn any_task() -> impl Strategy<Value = (u32, u32)> {
    let weight = prop::sample::select(vec![335, 655, 1024, 1991, 9548]);
    (weight, prop_oneof![3 => Just(BASE), 1 => (MS / 10)..8 * MS])
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Time passes, and the tick looks at the current task.
    Tick(u32),
    /// Some time passes, and the current task sleeps.
    Sleep(u32),
    /// Some time passes, and one of the sleepers is woken.
    Wake(u32, usize),
    /// Some time passes, and one of the waiting tasks leaves the queue and comes back.
    Move(u32, usize),
}

fn event(sleepers: bool) -> impl Strategy<Value = Event> {
    let sleeps = u32::from(sleepers) * 3;
    prop_oneof![
        3 => (1..=TICK).prop_map(Event::Tick),
        sleeps => (0..TICK).prop_map(Event::Sleep),
        4 => (0..TICK, any::<usize>()).prop_map(|(t, n)| Event::Wake(t, n)),
        sleeps / 3 => (0..TICK, any::<usize>()).prop_map(|(t, n)| Event::Move(t, n)),
    ]
}

fn schedule(sleepers: bool, length: Range<usize>) -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(sleepers), length)
}

fn any_rules() -> impl Strategy<Value = EevdfRules> {
    let bits = prop::array::uniform7(any::<bool>());
    prop_oneof![
        Just(rules()),
        Just(EevdfRules { slice_protect: true, ..rules() }),
        Just(EevdfRules { slice_protect: true, pick_preempts: true, ..rules() }),
        bits.prop_map(|b| EevdfRules {
            place_lag: b[0],
            run_to_parity: b[1],
            preempt_short: b[2],
            delay_dequeue: b[3],
            delay_zero: b[4],
            slice_protect: b[5],
            pick_preempts: b[6],
            ..rules()
        }),
    ]
}

/// The timeline and its model, side by side.
struct Bench {
    eevdf: Eevdf,
    model: Model,
    tasks: Vec<(u32, u32)>,
    /// Sleepers that are gone, and those that are delayed.
    asleep: Vec<(TaskId, Carried)>,
    delayed: Vec<TaskId>,
}

impl Bench {
    fn new(tasks: Vec<(u32, u32)>, rules: EevdfRules) -> Bench {
        let model = Model::new(rules);
        let mut bench = Bench {
            eevdf: Eevdf::new(rules),
            model,
            asleep: Vec::new(),
            delayed: Vec::new(),
            tasks,
        };
        for task in (0..bench.tasks.len()).map(TaskId::at) {
            bench.join(task, Carried::default(), true);
        }
        bench
    }

    fn join(&mut self, task: TaskId, carried: Carried, new: bool) {
        let (weight, slice_ns) = self.tasks[task.index()];
        self.eevdf.enqueue(task, weight, slice_ns, carried, new);
        let entity = Entity { deadline: 0, vruntime: 0, task, weight, slice_ns, delayed: false };
        self.model.join(entity, carried, new);
        if self.model.curr.is_none() {
            self.pick();
        } else {
            self.preempt_by(task, new);
        }
    }

    fn preempt_by(&mut self, task: TaskId, new: bool) {
        while self.model.curr.is_some() {
            let next = self.eevdf.preempts(task, new);
            assert_eq!(next, self.model.preempts(task, new), "{:?}", self.model);
            match next {
                Some(Next::Asleep(task, vlag)) => self.sleeps(task, vlag),
                Some(Next::Run(_)) => {
                    self.eevdf.put_back();
                    return self.pick();
                }
                None => return,
            }
        }
    }

    fn sleeps(&mut self, task: TaskId, vlag: i64) {
        self.delayed.retain(|&t| t != task);
        self.asleep.push((task, Carried { vlag, deadline: None }));
    }

    /// Picks until a task runs or the queue is empty.
    fn pick(&mut self) {
        loop {
            let next = self.eevdf.pick();
            assert_eq!(next, self.model.pick(), "{:?}", self.model);
            match next {
                Some(Next::Asleep(task, vlag)) => self.sleeps(task, vlag),
                Some(Next::Run(_)) | None => return,
            }
        }
    }

    fn pass(&mut self, ns: u32) {
        if self.model.curr.is_some() {
            let ends = self.eevdf.charge(u64::from(ns));
            assert_eq!(ends, self.model.charge(ns), "{:?}", self.model);
            if ends {
                self.eevdf.put_back();
                self.pick();
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(ns) => self.pass(ns),
            Event::Sleep(ns) => {
                self.pass(ns);
                let Some(curr) = self.model.curr() else { return };
                let delays = self.model.rules.delay_dequeue && !self.model.eligible(&curr);
                let vlag = self.model.lag(&curr);
                self.model.leave(curr.task);
                if delays {
                    self.model.on.push(Entity { delayed: true, ..curr });
                    self.delayed.push(curr.task);
                    assert_eq!(self.eevdf.block(), None);
                } else {
                    assert_eq!(self.eevdf.block(), Some(vlag));
                    self.asleep.push((curr.task, Carried { vlag, deadline: None }));
                }
                self.pick();
            }
            Event::Wake(ns, n) => {
                self.pass(ns);
                let sleepers = self.asleep.len() + self.delayed.len();
                if sleepers == 0 {
                    return;
                }
                let n = n % sleepers;
                if n >= self.asleep.len() {
                    let task = self.delayed.swap_remove(n - self.asleep.len());
                    self.wake_delayed(task);
                    return;
                }
                let (task, carried) = self.asleep.swap_remove(n);
                self.join(task, carried, false);
            }
            Event::Move(ns, n) => {
                self.pass(ns);
                let waiting: Vec<Entity> = self
                    .model
                    .on
                    .iter()
                    .filter(|e| !e.delayed && self.model.curr != Some(e.task))
                    .copied()
                    .collect();
                if waiting.is_empty() {
                    return;
                }
                let e = waiting[n % waiting.len()];
                let vlag = self.model.lag(&e);
                self.model.leave(e.task);
                let deadline = self.model.rules.delay_dequeue.then_some(e.deadline - e.vruntime);
                let carried = Carried { vlag, deadline };
                assert_eq!(self.eevdf.remove(e.task), carried);
                self.join(e.task, carried, false);
            }
        }
    }

    fn wake_delayed(&mut self, task: TaskId) {
        self.eevdf.wake_delayed(task);
        let e = self.model.of(task);
        if self.model.rules.delay_zero && self.model.lag(&e) > 0 {
            self.model.leave(task);
            self.model.join(Entity { delayed: false, ..e }, Carried::default(), false);
        } else {
            let e = self.model.on.iter_mut().find(|e| e.task == task).expect("there");
            e.delayed = false;
        }
        self.preempt_by(task, false);
    }

    /// The largest lag of any task, as service in ns.
    fn greatest_lag(&self) -> f64 {
        let weight = self.model.sums().1 as f64;
        let lags = self.model.on.iter().map(|e| self.model.exact_lag(e));
        lags.map(|lag| lag.abs() as f64 / weight / 1024.0).fold(0.0, f64::max)
    }

    /// What a task may be ahead or behind by while no task joins or leaves: it is found out
    /// at the next tick that it has used the largest slice of all.
    fn bound(&self) -> f64 {
        f64::from(self.tasks.iter().map(|t| t.1).max().expect("a task") + TICK)
    }

    /// Lags add up to nothing but what rounding the average takes.
    fn lags_add_up(&mut self) {
        let average = i128::from(self.eevdf.average());
        assert_eq!(average, i128::from(self.model.average()));
        self.eevdf.check(self.model.curr);
        let owed = |e: &Entity| i128::from(e.weight) * (average - i128::from(e.vruntime));
        let sum: i128 = self.model.on.iter().map(owed).sum();
        let weight = self.model.sums().1;
        assert!(sum <= 0 && -sum < weight.max(1), "{sum} of {weight}");
    }
}

proptest! {
    #[test]
    fn a_plain_model_of_the_rules_decides_the_same(
        tasks in prop::collection::vec(any_task(), 1..30),
        events in schedule(true, 10..300),
        rules in any_rules(),
    ) {
        let mut bench = Bench::new(tasks, rules);
        for event in events {
            bench.happen(event);
            bench.lags_add_up();
        }
    }

    #[test]
    fn lag_stays_within_the_largest_slice_and_a_tick(
        tasks in prop::collection::vec(any_task(), 1..10),
        events in schedule(false, 10..400),
        rules in any_rules(),
    ) {
        let mut bench = Bench::new(tasks, rules);
        for event in events {
            bench.happen(event);
            prop_assert!(bench.greatest_lag() <= bench.bound(), "{:?}", bench.model);
        }
    }

    /// A task that comes back may bring along two slices' worth of lag, and its coming
    /// and going shifts all others'.
    #[test]
    fn lag_stays_within_twice_that_if_tasks_come_and_go(
        tasks in prop::collection::vec(any_task(), 1..10),
        events in schedule(true, 10..400),
        [slice_protect, pick_preempts] in any::<[bool; 2]>(),
    ) {
        let mut bench = Bench::new(tasks, EevdfRules { slice_protect, pick_preempts, ..rules() });
        for event in events {
            bench.happen(event);
            prop_assert!(bench.greatest_lag() <= 2.0 * bench.bound(), "{:?}", bench.model);
        }
    }
}
