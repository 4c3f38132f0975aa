//! Reads one event of an rt-app task as the operations that do the same.

use reveille_place::Mistake;

use super::json::Node;
use super::waits::{Kind, Waits, Who};
use crate::amount::Amount;
use crate::error::Result;
use crate::operation::{Code, OpSource};

/// Events that operations express. rt-app tells them by how a key begins, as keys of an
/// object are to differ: `run0`, `run1`.
const EVENTS: [&str; 12] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
    "suspend", "resume",
];
/// Events that nothing expresses, with what could be written instead.
const REFUSED: [(&str, &str, &str); 8] = [
    (
        "barrier",
        "barriers are not simulated",
        "let tasks meet by `sync`, or by `suspend` and `resume`",
    ),
    ("memrun", "memory access is not simulated", "stand a `run` of the same CPU time in for it"),
    ("mem", "memory access is not simulated", "stand a `run` of the same CPU time in for it"),
    (
        "iorun",
        "input and output are not simulated",
        "stand a `run` and a `sleep` of the same times in for it",
    ),
    ("yield", "sched_yield() is not simulated", "leave it out, or `sleep` instead"),
    ("fork", "tasks cannot be started later", "leave it out: all tasks start at once"),
    ("sem_post", "semaphores are not simulated", "wake by `resume` who waits by `suspend`"),
    ("sem_wait", "semaphores are not simulated", "wait by `suspend` to be woken by `resume`"),
];
/// Name of the latency recorded at timers, as rt-app's log has it.
const WU_LAT: &str = "wu_lat";
/// An hour: no time in a workload is longer.
const MAX_TIME_US: i64 = 3_600_000_000;

/// What reading the events of one task needs to know, and finds out.
pub(super) struct Events<'a> {
    pub(super) name: &'a str,
    pub(super) who: Who,
    pub(super) waits: &'a mut Waits,
    /// Timers of earlier tasks, which cannot be shared.
    pub(super) shared_timers: &'a mut Vec<String>,
    /// The task's timer, once it has named one.
    pub(super) timer: Option<String>,
}

/// Names of events that are read, for messages.
pub(super) fn known() -> impl Iterator<Item = &'static str> + Clone {
    EVENTS.into_iter()
}

/// The event that a key names: it begins like one and goes on, if at all, with what does
/// not make another word of it.
pub(super) fn named_by(key: &str) -> Option<&'static str> {
    let events = EVENTS.into_iter().chain(REFUSED.map(|(event, _, _)| event));
    let fits = |event: &&str| {
        let rest = key.strip_prefix(event);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    events.filter(fits).max_by_key(|event| event.len())
}

/// A time in microseconds.
pub(super) fn time(value: &Node, least_us: i64) -> Result<Amount> {
    Ok(Amount::Fixed(value.integer(least_us, MAX_TIME_US)? as u64 * 1_000))
}

impl Events<'_> {
    pub(super) fn read(&mut self, event: &str, value: &Node) -> Result<Vec<OpSource>> {
        if let Some((_, problem, help)) = REFUSED.iter().find(|(refused, _, _)| *refused == event) {
            return Err(value.wrong(*problem, help));
        }
        let codes = match event {
            "run" => vec![Code::Run { time: time(value, 0)?, random: false }],
            "runtime" => vec![Code::Spin(time(value, 0)?)],
            "sleep" => {
                let (time, jitter) = (time(value, 0)?, Amount::Fixed(0));
                vec![Code::Sleep { time, jitter, random: false }]
            }
            "timer" => self.timer(value)?.into(),
            "lock" => vec![Code::Lock { lock: self.waits.lock(value)? }],
            "unlock" => vec![Code::Unlock { lock: self.waits.lock(value)? }],
            "suspend" => {
                let name = if value.is_blank() { self.name } else { value.text()? };
                let list = self.waits.waiter(Kind::Suspend, name, self.who, value);
                vec![Code::Join { list }, wait()]
            }
            "resume" => {
                let (name, who) = (value.text()?, self.who);
                vec![Code::WakeList {
                    list: self.waits.waker(Kind::Suspend, name, who, false, value),
                }]
            }
            "signal" | "broad" => {
                let (name, one) = (value.text()?, event == "signal");
                let list = self.waits.waker(Kind::Condition, name, self.who, one, value);
                vec![Code::WakeList { list }]
            }
            "wait" => {
                let (_, list, lock) = self.condition(value)?;
                vec![Code::Join { list }, Code::Unlock { lock }, wait(), Code::Lock { lock }]
            }
            "sync" => {
                let (name, list, lock) = self.condition(value)?;
                self.waits.waker(Kind::Condition, &name, self.who, true, value);
                let enter = [Code::Lock { lock }, Code::WakeList { list }, Code::Join { list }];
                let leave =
                    [Code::Unlock { lock }, wait(), Code::Lock { lock }, Code::Unlock { lock }];
                enter.into_iter().chain(leave).collect()
            }
            other => unreachable!("`{other}` is none of the events"),
        };
        let op = |code| OpSource { key: value.path.clone().into(), span: value.span(), code };
        Ok(codes.into_iter().map(op).collect())
    }

    /// The condition's name, and indices of its list and of the mutex.
    fn condition(&mut self, value: &Node) -> Result<(String, usize, usize)> {
        let fields = Fields::of(value, &["ref", "mutex"], CONDITION)?;
        let (name, mutex) = (fields.require("ref")?, fields.require("mutex")?);
        let name = name.text()?;
        let list = self.waits.waiter(Kind::Condition, name, self.who, value);
        Ok((name.to_owned(), list, self.waits.lock(mutex)?))
    }

    /// Sleeps to the end of the period and records how late the task goes on.
    fn timer(&mut self, value: &Node) -> Result<[Code; 2]> {
        let fields = Fields::of(value, &["ref", "period", "mode"], TIMER)?;
        let (name, period) = (fields.require("ref")?, time(fields.require("period")?, 1)?);
        let restart = fields.get("mode").map_or(Ok(true), is_relative)?;
        let text = name.text()?;
        match &self.timer {
            Some(timer) if timer == text => {}
            Some(timer) => {
                let problem = format!("the task has another timer, `{timer}`, already");
                let help = "only one timer of a task is simulated: use that one, or `sleep`";
                return Err(name.wrong(problem, help));
            }
            None => {
                self.new_timer(name, text)?;
                self.timer = Some(text.to_owned());
            }
        }
        let record = Code::Record { record: WU_LAT.to_owned(), less: Amount::Fixed(0) };
        Ok([Code::Period { period, restart }, record])
    }

    /// Tasks share a timer unless its name says otherwise.
    fn new_timer(&mut self, name: &Node, text: &str) -> Result<()> {
        if text.starts_with("unique") {
            return Ok(());
        }
        if self.who.instances > 1 || self.shared_timers.iter().any(|t| t == text) {
            let problem = "several tasks would share a timer, which is not simulated";
            return Err(name.wrong(problem, "let its name begin with `unique`: one for each task"));
        }
        self.shared_timers.push(text.to_owned());
        Ok(())
    }
}

const CONDITION: &str = "write { \"ref\": \"queue\", \"mutex\": \"m\" }";
const TIMER: &str = "write { \"ref\": \"unique\", \"period\": 16000 }, in microseconds";

struct Fields<'a> {
    value: &'a Node<'a>,
    members: Vec<(&'a str, Node<'a>)>,
    example: &'static str,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Node<'a>, known: &[&'static str], example: &'static str) -> Result<Self> {
        let members = value.named()?;
        if let Some((key, node)) = members.iter().find(|(key, _)| !known.contains(key)) {
            return Err(node.error(Mistake::unknown(
                "key of this event",
                key,
                known.iter().copied(),
            )));
        }
        Ok(Fields { value, members, example })
    }

    fn get(&self, key: &str) -> Option<&Node<'a>> {
        self.members.iter().find(|(known, _)| *known == key).map(|(_, node)| node)
    }

    fn require(&self, key: &str) -> Result<&Node<'a>> {
        let missing = || self.value.wrong(format!("has no `{key}`"), self.example);
        self.get(key).ok_or_else(missing)
    }
}

fn wait() -> Code {
    Code::Wait { timeout: None, jitter: Amount::Fixed(0) }
}

fn is_relative(mode: &Node) -> Result<bool> {
    match mode.text()? {
        "relative" => Ok(true),
        "absolute" => Ok(false),
        other => {
            let known = ["relative", "absolute"].into_iter();
            Err(mode.error(Mistake::unknown("mode of a timer", other, known)))
        }
    }
}
