//! However a run ends, it says so, and nothing is left of it.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use reveille_host::HostError;
use reveille_host::program::{HostRun, Setting};
use reveille_workload::Program;

use crate::{program, run_until, run_until_enough, try_run};

/// Processes that a thread has started.
fn children(of_thread: &str) -> Vec<String> {
    let list = fs::read_to_string(format!("/proc/{of_thread}/children")).unwrap_or_default();
    list.split_ascii_whitespace().map(|pid| format!("{pid}/task/{pid}")).collect()
}

/// The processes of the tasks of the run that a thread has started.
fn tasks(of_thread: &str) -> Vec<String> {
    children(of_thread).iter().flat_map(|coordinator| children(coordinator)).collect()
}

fn pid(task: &str) -> &str {
    task.split('/').next().unwrap_or(task)
}

/// Is the process there, and not just its remains?
fn lives(task: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid(task))).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}

fn within(limit: Duration, mut is: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is() {
        if begin.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn all_gone(tasks: &[String]) -> bool {
    within(Duration::from_secs(1), || !tasks.iter().any(|task| lives(task)))
}

/// What came of a run of a minute that was interfered with.
struct Outcome {
    result: Result<HostRun, HostError>,
    /// Time that it went on.
    after: Duration,
    /// The processes of its tasks before.
    tasks: Vec<String>,
}

/// Starts a run of a minute and, once all tasks are there, does something: `act` is given
/// the processes of the tasks, what lists them again, and what stops the run.
fn interfere(
    program: &Program,
    processes: usize,
    act: impl FnOnce(&[String], &dyn Fn() -> Vec<String>, &AtomicBool),
) -> Outcome {
    let stop = AtomicBool::new(false);
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let own = fs::read_link("/proc/thread-self").unwrap();
            tell.send(own.to_string_lossy().into_owned()).unwrap();
            let result = run_until(program, &Setting::default(), (0, 60_000), &stop);
            (result, Instant::now())
        });
        let thread = told.recv().unwrap();
        let mut there = Vec::new();
        let all = within(Duration::from_secs(20), || {
            there = tasks(&thread);
            there.len() >= processes
        });
        if all {
            std::thread::sleep(Duration::from_millis(20));
            let acted = Instant::now();
            act(&there, &|| tasks(&thread), &stop);
            let (result, ended) = run.join().unwrap();
            return Outcome { result, after: ended - acted, tasks: there };
        }
        stop.store(true, Ordering::Relaxed);
        panic!("{} of {processes} processes", there.len());
    })
}

fn some_tasks() -> Program {
    program(
        "channels = { a = \"pipe\", b = \"pipe\" }\n\
         [[task]]\nname = \"asker\"\n\
         program = [{ send = \"a\" }, { recv = \"b\" }, { count = 1 }]\n\
         [[task]]\nname = \"answerer\"\nprogram = [{ recv = \"a\" }, { send = \"b\" }]\n\
         [[task]]\nname = \"sleeper\"\ncount = 3\nprocess = \"instance\"\n\
         program = [{ sleep = \"50s\" }]\n",
    )
}

#[test]
fn a_stop_ends_everything_at_once() {
    let outcome = interfere(&some_tasks(), 3, |_, _, stop| stop.store(true, Ordering::Relaxed));
    assert_eq!(outcome.result.unwrap_err(), HostError::Interrupted);
    // 20 ms on an idle machine; this one may be building something.
    assert!(outcome.after < Duration::from_secs(1), "{:?}", outcome.after);
    assert!(all_gone(&outcome.tasks));
}

#[test]
fn a_task_that_is_killed_ends_the_run_with_an_error() {
    // Processes are listed in the order of their tasks; threads of an instance come first.
    for (victim, role) in ["asker", "answerer", "sleeper"].into_iter().enumerate() {
        let outcome = interfere(&some_tasks(), 3, |tasks, _, _| {
            let status = Command::new("kill").args(["-9", pid(&tasks[victim])]).status();
            assert!(status.unwrap().success());
        });
        let error = outcome.result.unwrap_err();
        let HostError::Died { who, how } = &error else { panic!("{error}") };
        assert!(who.contains(role), "{error}");
        assert!(how.contains("signal 9"), "{error}");
        assert!(all_gone(&outcome.tasks));
    }
}

#[test]
fn tasks_that_are_replaced_stay_as_many() {
    let program = program(
        "[[task]]\nname = \"job\"\ncount = 3\n\
         program = [{ sleep = \"5ms\" }, { count = 1 }, { respawn = true }]\n",
    );
    let mut counts = Vec::new();
    let outcome = interfere(&program, 3, |first, list, stop| {
        let replaced = || !first.iter().any(|task| lives(task));
        assert!(within(Duration::from_secs(5), replaced));
        for _ in 0..41 {
            counts.push(list().iter().filter(|task| lives(task)).count());
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(outcome.result.unwrap_err(), HostError::Interrupted);
    // A successor and the one that exits are both there for a moment, and while a list is
    // read things change.
    counts.sort_unstable();
    assert!((3..=4).contains(&counts[20]), "{counts:?} processes of 3 tasks");
}

#[test]
fn replaced_tasks_count_on() {
    for process in ["own", "run"] {
        let program = program(&format!(
            "[[task]]\nname = \"job\"\ncount = 3\nprocess = \"{process}\"\n\
             program = [{{ run = \"50us\" }}, {{ count = 1 }}, {{ respawn = true }}]\n"
        ));
        let host = run_until_enough(&program, 10, 60, |host| host.result.operations > 10);
        // Without respawning, three tasks would count three times.
        assert!(host.result.operations > 10, "{process}: {}", host.result.operations);
        assert_eq!(host.tasks, None);
    }
}

#[test]
fn a_task_too_far_behind_its_requests_ends_the_run() {
    let program = program(
        "[[task]]\nname = \"source\"\n\
         program = [{ request = \"slow\", batch = 3000 }, { sleep = \"1ms\" }]\n\
         [[task]]\nname = \"slow\"\n\
         program = [{ serve = true }, { sleep = \"5ms\" }, { count = 1 }]\n",
    );
    let error = try_run(&program, 0, 30_000).unwrap_err();
    assert!(matches!(error, HostError::Input(_)), "{error}");
    assert!(error.to_string().contains("task 1 (slow) is 4096 requests behind"), "{error}");
}
