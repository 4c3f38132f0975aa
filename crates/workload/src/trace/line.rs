//! Reads a line of a trace as `perf script`, `trace-cmd report` and the kernel's `trace` file print
//! it: the task, its CPU, the time, and one event with its fields, as `key=value` or in the short
//! form of libtraceevent's plug-in.

/// What ends up in a task's program; every other line of a trace is skipped.
#[derive(Debug, PartialEq)]
pub(super) struct Event<'a> {
    pub(super) at_ns: u64,
    pub(super) cpu: u32,
    /// The task that ran when it happened, number 0 for an idle CPU. perf does not know one that has
    /// almost ended.
    pub(super) by: Option<Task<'a>>,
    /// Its thread group, where the trace has it.
    pub(super) process: Option<u32>,
    /// The event happened in a hardware interrupt, which has nothing to do with that task; `None` in
    /// traces that don't say.
    pub(super) in_interrupt: Option<bool>,
    pub(super) what: What<'a>,
}

#[derive(Debug, PartialEq)]
pub(super) enum What<'a> {
    /// `sched_waking`, `sched_wakeup` or `sched_wakeup_new`.
    Wake {
        event: Wakeup,
        task: Task<'a>,
    },
    Switch {
        from: Task<'a>,
        why: Why,
        to: Task<'a>,
    },
    /// The tracer lost events here.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wakeup {
    /// By the waker, before it looks for a CPU.
    Waking,
    /// When the wakee is on a runqueue, maybe by that CPU instead of the waker's.
    Woken,
    New,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Task<'a> {
    pub(super) id: u32,
    pub(super) name: &'a str,
}

/// Why a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Why {
    Preempted,
    Waits,
    /// Uninterruptibly: for a device, or for a lock of the kernel.
    WaitsForDevice,
}

const EVENTS: [(&str, Option<Wakeup>); 4] = [
    ("sched_switch:", None),
    ("sched_waking:", Some(Wakeup::Waking)),
    ("sched_wakeup:", Some(Wakeup::Woken)),
    ("sched_wakeup_new:", Some(Wakeup::New)),
];

/// `None` for a line without one of these events, `Some(None)` for one whose fields are not understood.
pub(super) fn event(line: &str) -> Option<Option<Event<'_>>> {
    let found = EVENTS.iter().find_map(|(name, wakeup)| {
        let at = line.find(name)?;
        line[..at].ends_with([' ', ':']).then(|| (at, at + name.len(), *wakeup))
    });
    let Some((begin, end, wakeup)) = found else {
        let lost = line.starts_with("CPU:") && (line.contains("LOST") || line.contains("DROPPED"))
            || line.starts_with("##### CPU ") && line.contains(" buffer started")
            || line.contains("PERF_RECORD_LOST");
        let what = What::Lost;
        let event = Event { at_ns: 0, cpu: 0, by: None, process: None, in_interrupt: None, what };
        return lost.then_some(Some(event));
    };
    Some(placed(&line[..begin], what(line[end..].trim(), wakeup)))
}

/// `comm-123 ( 120) [001] d.h2. 5678.123456: `, `comm-123 1d.h2. 5678.123456: ` or
/// `comm 120/123 [001] 5678.123456789: sched:`.
fn placed<'a>(head: &'a str, what: Option<What<'a>>) -> Option<Event<'a>> {
    let head = head.trim_end().trim_end_matches("sched:").trim_end().strip_suffix(':')?;
    let (before, time) = head.rsplit_once(char::is_whitespace)?;
    let (task, cpu, flags) = match before.rsplit_once('[') {
        Some((task, rest)) => rest.split_once(']').map(|(cpu, flags)| (task, cpu, flags))?,
        None => {
            let (task, rest) = before.trim_end().rsplit_once(char::is_whitespace)?;
            let (cpu, flags) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            (task, cpu, flags)
        }
    };
    let task = task.trim_end();
    let (task, group) = match task.strip_suffix(')').and_then(|t| t.rsplit_once('(')) {
        Some((task, group)) => (task.trim_end(), group.trim().parse().ok()),
        None => (task, None),
    };
    let digits = task.len() - task.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (rest, id) = task.split_at(task.len() - digits);
    let (name, of) = match rest.strip_suffix('/') {
        Some(rest) => rest.rsplit_once(char::is_whitespace)?,
        None => (rest.strip_suffix('-').unwrap_or(rest), ""),
    };
    // ` -1` and `/-1` stand for any task that is no longer listed.
    let known = !rest.ends_with('-') || !name.ends_with([' ', '/']);
    let task = Task { id: id.parse().ok()?, name: name.trim() };
    Some(Event {
        at_ns: nanoseconds(time)?,
        cpu: cpu.parse().ok()?,
        by: known.then_some(task),
        process: group.or_else(|| of.parse().ok()),
        // The third flag of the kernel's latency format.
        in_interrupt: flags.trim().as_bytes().get(2).map(|flag| b"hHzZ".contains(flag)),
        what: what?,
    })
}

/// Seconds with up to nine decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let digits = |c: char| c.is_ascii_digit();
    if decimals.is_empty() || decimals.len() > 9 || !decimals.chars().all(digits) {
        return None;
    }
    let scale = 10u64.pow(9 - decimals.len() as u32);
    let seconds = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    seconds.checked_add(decimals.parse::<u64>().ok()? * scale)
}

fn what(fields: &str, wakeup: Option<Wakeup>) -> Option<What<'_>> {
    let Some(event) = wakeup else {
        // Raw, without an arrow, states are numbers, too.
        let raw =
            || fields.rfind(" next_comm=").map(|at| (&fields[..at], fields[at..].trim_start()));
        let (from, to) = fields.split_once(" ==> ").or_else(raw)?;
        let (from, state) = match from.rsplit_once(" prev_state=") {
            Some((task, state)) => (keyed(task, "prev_comm=", " prev_pid=")?, state),
            None => {
                let (task, state) = from.rsplit_once(' ')?;
                (short(task)?, state)
            }
        };
        let to = keyed(to, "next_comm=", " next_pid=").or_else(|| short(to))?;
        let why = match (state.parse::<u32>(), state.as_bytes().first()?) {
            (Ok(bits), _) if bits & 0xff == 0 => Why::Preempted,
            (Ok(bits), _) if bits & 2 != 0 => Why::WaitsForDevice,
            (Err(_), b'R') => Why::Preempted,
            (Err(_), b'D') => Why::WaitsForDevice,
            _ => Why::Waits,
        };
        return Some(What::Switch { from, why, to });
    };
    let task = keyed(fields, "comm=", " pid=").or_else(|| short(fields))?;
    Some(What::Wake { event, task })
}

/// `comm=make pid=12 prio=120`, with any blanks in the name.
fn keyed<'a>(text: &'a str, name: &str, id: &str) -> Option<Task<'a>> {
    let (before, after) = text.rsplit_once(id)?;
    let number = after.split(char::is_whitespace).next()?;
    Some(Task { id: number.parse().ok()?, name: before.strip_prefix(name)? })
}

/// `make:12 [120]`, with or without more behind it.
fn short(text: &str) -> Option<Task<'_>> {
    let (task, _) = text.rsplit_once(" [")?;
    let (name, id) = task.rsplit_once(':')?;
    Some(Task { id: id.parse().ok()?, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Event<'_> {
        event(line).flatten().unwrap_or_else(|| panic!("{line}"))
    }

    #[test]
    fn every_tool_prints_the_same_switch() {
        let keys = "prev_comm=a b prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
        let raw = keys.replace("=S ==>", "=1");
        let short = "a b:12 [120] S ==> swapper/1:0 [120]";
        let time = "  5678.123456: ";
        for (head, process, flags) in [
            (format!("   a b-12    [001] d..2.{time}"), None, Some(false)),
            (format!("   a b-12      1d..2.{time}"), None, Some(false)),
            (format!("   a b-12    [001]{time}"), None, None),
            (format!("   a b-12    (     11) [001] d..2.{time}"), Some(11), Some(false)),
            (format!("   a b-12    (-------) [001] d..2.{time}"), None, Some(false)),
            (format!("   a b    12 [001]{time}      sched:"), None, None),
            (format!("   a b    11/12 [001]{time}      sched:"), Some(11), None),
        ] {
            for fields in [keys, short, &raw] {
                let line = format!("{head}sched_switch: {fields}");
                let (from, to) = (Task { id: 12, name: "a b" }, Task { id: 0, name: "swapper/1" });
                let what = What::Switch { from, why: Why::Waits, to };
                let at_ns = 5_678_123_456_000;
                let by = Some(from);
                let expected = Event { at_ns, cpu: 1, by, process, in_interrupt: flags, what };
                assert_eq!(read(&line), expected, "{line}");
            }
        }
    }

    #[test]
    fn perf_does_not_know_who_has_almost_ended() {
        for head in [":-1    -1/-1    ", ":-1    -1 ", "-1 -1/-1"] {
            let line = format!("{head} [015] 1.5: sched:sched_waking: comm=m/2 pid=25 prio=0");
            assert_eq!((read(&line).by, read(&line).process), (None, None), "{line}");
        }
    }

    #[test]
    fn states_and_interrupts() {
        let line = |state: &str| {
            format!("x-7 [000] d.h4. 1.5: sched_switch: x:7 [120] {state} ==> y:8 [120]")
        };
        for (state, why) in [
            ("R", Why::Preempted),
            ("R+", Why::Preempted),
            ("S", Why::Waits),
            ("D", Why::WaitsForDevice),
            ("D|W", Why::WaitsForDevice),
            ("I", Why::Waits),
            ("X", Why::Waits),
            ("0", Why::Preempted),
            ("4096", Why::Preempted),
            ("1", Why::Waits),
            ("130", Why::WaitsForDevice),
        ] {
            let line = line(state);
            let found = read(&line);
            assert_eq!((found.in_interrupt, found.at_ns), (Some(true), 1_500_000_000));
            assert!(
                matches!(found.what, What::Switch { why: found, .. } if found == why),
                "{line}"
            );
        }
    }

    #[test]
    fn wakeups() {
        for (text, expected, id) in [
            ("sched_waking: comm=a pid=b pid=9 prio=120 target_cpu=003", Wakeup::Waking, 9),
            ("sched_wakeup: rcu:x:9 [120] success=1 CPU:003", Wakeup::Woken, 9),
            ("sched_wakeup: rcu:x:9 [120]<CANT FAIL> CPU:003", Wakeup::Woken, 9),
            ("sched_wakeup_new: comm=sh pid=9 prio=120 target_cpu=003", Wakeup::New, 9),
        ] {
            let line = format!("<idle>-0 [003] dNs4. 17.000000123: {text}");
            let found = read(&line);
            let What::Wake { event, task } = found.what else { panic!("{line}") };
            assert_eq!((found.at_ns, event, task.id), (17_000_000_123, expected, id), "{line}");
            assert_eq!(found.in_interrupt, Some(false));
        }
    }

    #[test]
    fn other_lines() {
        for line in ["", "# tracer: nop", "x-1 [000] 1.0: sched_migrate_task: comm=x pid=1", "é"] {
            assert_eq!(event(line), None, "{line}");
        }
        for line in
            ["sched_switch: ", "x [0] 1.2: sched_switch: a:1 [1] S ==> ", "x-1 1: sched_waking: "]
        {
            let line = format!(" {line}");
            assert_eq!(event(&line), Some(None), "{line}");
        }
        assert!(matches!(
            event("CPU:2 [LOST 12 EVENTS]"),
            Some(Some(Event { what: What::Lost, .. }))
        ));
    }
}
