//! The native benchmarks, run for real and for a short time: the originals' lines, counts
//! that add up, wrong input, and nothing left behind however a run ends.

use std::collections::HashMap;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{json, reveille, stdout};

/// Short runs of every benchmark and of all that each can do.
const SHORT: &[&[&str]] = &[
    &["hackbench", "-g", "2", "-f", "3", "-l", "7"],
    &["hackbench", "-g", "1", "-f", "3", "-l", "7", "-p", "-T"],
    &["hackbench", "-g", "1", "-f", "3", "-l", "7", "-s", "9000", "--inet", "--process"],
    &["hackbench", "-g", "1", "-f", "2", "-l", "7", "-s", "70000", "--inet", "--threads"],
    &["pipe", "-l", "3000"],
    &["pipe", "-l", "3000", "-T"],
    &["context_switch1", "-t", "2", "-s", "0.2", "--warmup", "0.1"],
    &["context_switch1", "-t", "1", "-s", "0.2", "--warmup", "0", "-m"],
    &["context_switch1", "-t", "2", "-s", "0.2", "--warmup", "0.1", "-n", "-T"],
    &["tcp_rr", "-c", "2", "-l", "0.2", "--warmup", "0.1"],
    &["tcp_rr", "-c", "1", "-l", "0.2", "--warmup", "0", "-r", "100,60000"],
    &["udp_rr", "-c", "2", "-l", "0.2", "--warmup", "0.1", "-r", "1,2000"],
    &["tbench", "-c", "2", "-t", "0.2"],
];

fn bench<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    ["bench"].iter().chain(args).chain(more).copied().collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

#[test]
fn what_is_sent_is_received() {
    for args in SHORT {
        let all = json(&bench(args, &["--json"]));
        assert_eq!(all["benchmark"], args[0]);
        let (options, result) = (&all["options"], &all["result"]);
        let get = |key: &str| number(&result[key]);
        let (sent, received) = match args[0] {
            "hackbench" => (get("sent"), get("received")),
            "pipe" | "context_switch1" => (get("round_trips"), get("answered")),
            "tbench" => (get("exchanges"), get("answered")),
            _ => (get("transactions"), get("answered")),
        };
        assert_eq!(sent, received, "{args:?}");
        let option = |key: &str| number(&options[key]);
        let tasks = match args[0] {
            "hackbench" => {
                let (groups, fds) = (option("groups"), option("fds"));
                assert_eq!(sent, groups * fds * fds * option("loops"), "{args:?}");
                2 * groups * fds
            }
            "pipe" => {
                assert_eq!(sent, option("loops"));
                2
            }
            "context_switch1" => 2 * option("pairs"),
            _ => 2 * option("clients"),
        };
        assert_eq!(number(&result["tasks"]["n"]), tasks, "{args:?}");
        let used = &result["tasks"]["total"];
        let switches = number(&used["voluntary_switches"]) + number(&used["involuntary_switches"]);
        assert!(switches > 0 && number(&used["cpu_ns"]) > 0, "{args:?}: {used}");
        assert!(get("elapsed_ns") > 0, "{args:?}");
    }
}

#[test]
fn timed_runs_add_up() {
    for args in SHORT.iter().filter(|args| !["hackbench", "pipe"].contains(&args[0])) {
        let result = &json(&bench(args, &["--json"]))["result"];
        let pairs = result["pairs"].as_array().unwrap();
        let operations: u64 = pairs.iter().map(|pair| number(&pair["operations"])).sum();
        assert_eq!(operations, number(&result["operations"]), "{args:?}");
        assert!(operations > 0, "{args:?}: {result}");
        let elapsed_s = number(&result["elapsed_ns"]) as f64 / 1e9;
        assert!(elapsed_s >= 0.2, "{args:?}: {elapsed_s}");
        let per_s = result["per_s"].as_f64().unwrap();
        assert!((per_s * elapsed_s - operations as f64).abs() < 1.0, "{args:?}");
        let seconds = result["seconds"].as_array().unwrap();
        assert_eq!(seconds.len(), 1, "{args:?}");
        let second = |key: &str| seconds[0][key].as_f64().unwrap();
        assert!(second("min_per_s") <= second("max_per_s"), "{args:?}");
        assert!(second("max_per_s") <= second("total_per_s") * 1.000_001, "{args:?}");
        for pair in pairs {
            let same = &pair["same_cpu_pct"];
            assert!(same.is_null() || (0.0..=100.0).contains(&same.as_f64().unwrap()));
        }
        if args[0] == "context_switch1" {
            // Two for each round trip, and none that is not there.
            assert_eq!(operations % 2, 0);
            assert!(operations <= 2 * number(&result["round_trips"]));
        }
    }
}

#[test]
fn hackbench_prints_the_originals_lines() {
    let text = stdout(&["bench", "hackbench", "-g", "1", "-f", "2", "-l", "5", "-s", "10"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "Running in process mode with 1 groups using 4 file descriptors each (== 4 tasks)"
    );
    assert_eq!(lines[1], "Each sender will pass 5 messages of 10 bytes");
    let (seconds, ms) = lines[2].strip_prefix("Time: ").unwrap().split_once('.').unwrap();
    assert!(seconds.parse::<u64>().is_ok() && ms.len() == 3 && ms.parse::<u64>().is_ok());
    let text = stdout(&["bench", "hackbench", "-g", "1", "-f", "1", "-l", "1", "-T"]);
    assert!(text.starts_with("Running in threaded mode with 1 groups using 2 "), "{text}");
}

#[test]
fn pipe_prints_the_originals_lines() {
    let text = stdout(&["bench", "pipe", "-l", "2000"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "# Running 'sched/pipe' benchmark:");
    assert_eq!(lines[1], "# Executed 2000 pipe operations between two processes");
    assert!(lines[3].starts_with("     Total time: ") && lines[3].ends_with(" [sec]"), "{text}");
    let us: f64 = lines[5].strip_suffix(" usecs/op").unwrap().trim().parse().unwrap();
    let ops: f64 = lines[6].strip_suffix(" ops/sec").unwrap().trim().parse().unwrap();
    assert!((us * ops / 1e6 - 1.0).abs() < 0.01, "{us} us and {ops}/s");
    assert_eq!((lines[5].len(), lines[6].len()), (24, 23), "{text}");
}

#[test]
fn context_switch1_prints_the_originals_lines() {
    let args = ["bench", "context_switch1", "-t", "2", "-s", "0.1", "--warmup", "0.1"];
    let text = stdout(&args);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1]), ("testcase:Context switch via pipes", "warmup"));
    assert_eq!(lines[3], "measurement");
    let figures = |line: &str| -> Vec<u64> {
        let figure = |word: &str| word.split_once(':').unwrap().1.parse().unwrap();
        line.split(' ').map(figure).collect()
    };
    for line in [lines[2], lines[4]] {
        assert!(line.starts_with("min:") && line.contains(" max:") && line.contains(" total:"));
        let [min, max, total] = figures(line)[..] else { panic!("{line}") };
        assert!(min <= max && (min + max).abs_diff(total) <= 2, "{line}");
    }
    let average: u64 = lines[5].strip_prefix("average:").unwrap().parse().unwrap();
    assert!(average.abs_diff(figures(lines[4])[2]) <= 2, "{text}");
}

#[test]
fn clients_are_shown_one_by_one() {
    let text = stdout(&["bench", "udp_rr", "-c", "3", "-l", "0.1", "--warmup", "0"]);
    let rate = |name: &str| -> f64 {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let line = text.lines().map(words).find(|w| w.first().is_some_and(|f| f == name));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))[1].parse().unwrap()
    };
    let sum = rate("1") + rate("2") + rate("3");
    assert!((sum - rate("sum")).abs() < 0.1, "{text}");
    assert!(text.starts_with("UDP_RR over loopback: 3 clients"), "{text}");
}

#[test]
fn tbench_plays_a_load_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("client.txt");
    let load = "Deltree \"\\clients\\client1\" NT_STATUS_OK\n\
        NTCreateX \"\\clients\\client1\\a b\" 0x1 0x2 9 NT_STATUS_OK\n\
        WriteX 9 0 1000 1000 NT_STATUS_OK\n\
        ReadX 9 0 4096 500 NT_STATUS_OK\n\
        ReadX 9 4096 4096 500 NT_STATUS_OK\n\
        Close 9 NT_STATUS_OK\n";
    fs::write(&path, load).unwrap();
    let path = path.to_str().unwrap();
    let args = ["bench", "tbench", "-c", "1", "-t", "0.2", "--warmup", "0", "--loadfile", path];
    let text = stdout(&args);
    for word in
        ["Operation      Count    AvgLat    MaxLat", "Deltree", "MB/sec  execute", "NTCreateX"]
    {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    assert!(text.contains("\nThroughput ") && text.contains(" 1 clients  1 procs  max_latency="));
    let result = &json(&[&args[..], &["--json"]].concat())["result"];
    let counts: HashMap<&str, u64> = result["operations_by_kind"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| (o["name"].as_str().unwrap(), number(&o["count"])))
        .collect();
    // One after the other, so that no two differ by more than the last round.
    let writes = counts["WriteX"];
    assert!(writes > 0 && counts["ReadX"].abs_diff(2 * writes) <= 2, "{counts:?}");
    assert!(counts["Deltree"].abs_diff(writes) <= 1 && counts["Close"].abs_diff(writes) <= 1);
    // Five exchanges carry 2000 bytes. Both are read while the client goes on, so that on a
    // busy machine some rounds lie between.
    let bytes = number(&result["operations"]);
    let between = 4000 + 2000 * writes / 50;
    assert!(bytes.abs_diff(2000 * writes) <= between, "{bytes} bytes in {writes} rounds");
}

/// Runs with these, which must be refused with all of `words` in the message.
fn refused(args: &[&str], words: &[&str]) {
    let output = reveille(&bench(args, &[])).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {errors}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for word in words {
        assert!(errors.contains(word), "{args:?}: no `{word}` in {errors}");
    }
}

#[test]
fn wrong_input() {
    let directory = tempfile::tempdir().unwrap();
    let bad = directory.path().join("bad.txt");
    fs::write(&bad, "Flush 1 NT_STATUS_OK\nSleep 100 NT_STATUS_OK\n").unwrap();
    let empty = directory.path().join("empty.txt");
    fs::write(&empty, "# nothing\n").unwrap();
    let (bad, empty) = (bad.to_str().unwrap(), empty.to_str().unwrap());
    let cases: &[(&[&str], &[&str])] = &[
        (&["hackbench", "-g", "0"], &["`-g 0`", "no group", "1 or more"]),
        (&["hackbench", "-f", "0"], &["`-f 0`", "1 or more"]),
        (&["hackbench", "-l", "0"], &["`-l 0`", "no message"]),
        (&["hackbench", "-s", "0"], &["`-s 0`", "1 or more"]),
        (&["hackbench", "-s", "9999999"], &["8388608", "smaller"]),
        (&["hackbench", "-g", "-4"], &["-4"]),
        (&["hackbench", "-g", "4000000000", "-f", "4000000000"], &["tasks", "fewer groups"]),
        (&["hackbench", "-p", "-i"], &["--pipe", "--inet"]),
        (&["hackbench", "-T", "-P"], &["--threads", "--process"]),
        (&["pipe", "-l", "0"], &["`-l 0`", "round trip"]),
        (&["pipe", "-l", "many"], &["many"]),
        (&["context_switch1", "-t", "0"], &["`-t 0`", "1 or more"]),
        (&["context_switch1", "-s", "0"], &["`-s 0`", "1 or more"]),
        (&["context_switch1", "-t", "3000000000"], &["tasks", "fewer pairs"]),
        (&["context_switch1", "-s", "1e9"], &["86400"]),
        (&["context_switch1", "-m", "-n"], &["--smt", "--no-affinity"]),
        (&["tcp_rr", "-c", "0"], &["`-c 0`", "1 or more"]),
        (&["tcp_rr", "-l", "nan"], &["86400"]),
        (&["tcp_rr", "-r", "1,x"], &["1,x", "two sizes"]),
        (&["udp_rr", "-r", "0,1"], &["`-r 0`"]),
        (&["udp_rr", "-r", "1,65508"], &["65508", "65507"]),
        (&["tbench", "-c", "0"], &["`-c 0`", "1 or more"]),
        (&["tbench", "--loadfile", "none.txt"], &["none.txt", "client.txt"]),
        (&["tbench", "--loadfile", bad], &["bad.txt:2", "`Sleep`"]),
        (&["tbench", "--loadfile", empty], &["empty.txt", "no operation"]),
        (&["hackbnech"], &["hackbench"]),
    ];
    for (args, words) in cases {
        refused(args, words);
    }
}

/// The command under a limit of open files, as `ulimit` sets it.
fn limited(limit: &str, args: &[&str]) -> Output {
    let script = format!("ulimit {limit} && exec \"$@\"");
    let program = env!("CARGO_BIN_EXE_reveille");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", program, "bench"]).args(args).env("NO_COLOR", "1");
    command.output().unwrap()
}

#[test]
fn open_files_are_allowed_as_far_as_possible() {
    let args = ["hackbench", "-T", "-g", "2", "-f", "20", "-l", "1"];
    let output = limited("-Sn 64", &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = limited("-n 64", &args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    for word in ["112 open files", "the limit is 64", "-P"] {
        assert!(errors.contains(word), "no `{word}` in {errors}");
    }
}

/// Runs that would last for minutes.
const LONG: &[&[&str]] = &[
    &["hackbench", "-g", "2", "-f", "5", "-l", "100000000"],
    &["hackbench", "-g", "2", "-f", "5", "-l", "100000000", "-T", "-p"],
    &["pipe", "-l", "1000000000"],
    &["context_switch1", "-t", "2", "-s", "100", "-n"],
    &["tcp_rr", "-c", "2", "-l", "100"],
    &["udp_rr", "-c", "2", "-l", "100"],
    &["tbench", "-c", "2", "-t", "100"],
];

/// A run that is under way, and how to find all that belongs to it.
struct Run {
    command: Child,
    mark: String,
}

impl Run {
    fn start(args: &[&str], number: usize) -> Run {
        let mark = format!("REVEILLE_TEST_RUN={}-{number}", std::process::id());
        let (key, value) = mark.split_once('=').unwrap();
        let mut command = reveille(&bench(args, &["--json"]));
        command.env(key, value).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut run = Run { command: command.spawn().unwrap(), mark };
        // The child, and a worker if workers are processes.
        let expected = if args.contains(&"-T") { 1 } else { 2 };
        let end = Instant::now() + Duration::from_secs(10);
        while run.workers().len() < expected {
            assert!(Instant::now() < end, "{args:?} does not start");
            assert!(run.command.try_wait().unwrap().is_none(), "{args:?} has ended");
            sleep(Duration::from_millis(5));
        }
        sleep(Duration::from_millis(200));
        run
    }

    /// All but the command itself: its child, and what that has started, oldest first.
    fn workers(&self) -> Vec<u32> {
        let mut workers = marked(&self.mark);
        workers.retain(|&pid| pid != self.command.id());
        workers.sort_unstable();
        workers
    }

    /// Waits for the end; nothing may be left soon after.
    fn end(self, args: &[&str]) -> Output {
        let began = Instant::now();
        let output = self.command.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(3), "{args:?}: {:?}", began.elapsed());
        while !marked(&self.mark).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(4), "{args:?} leaves processes");
            sleep(Duration::from_millis(5));
        }
        output
    }
}

/// Everything that has the mark in its environment and has not ended.
fn marked(mark: &str) -> Vec<u32> {
    let pid = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let ours = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|variable| variable == mark.as_bytes())
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(pid).filter(ours).collect()
}

fn kill(signal: &str, pid: u32) {
    let kill = format!("kill -{signal} {pid}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

#[test]
fn interrupted_nothing_is_left() {
    for (number, args) in LONG.iter().enumerate() {
        let run = Run::start(args, number);
        kill("INT", run.command.id());
        let output = run.end(args);
        assert_eq!(output.status.code(), Some(130), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?} printed half a result");
        assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{args:?}");
    }
}

#[test]
fn a_worker_that_is_killed_ends_the_run_without_a_result() {
    for (number, args) in LONG.iter().enumerate().filter(|(_, args)| !args.contains(&"-T")) {
        let run = Run::start(args, 100 + number);
        let workers = run.workers();
        kill("KILL", *workers.last().unwrap());
        let output = run.end(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert!(output.stdout.is_empty(), "{args:?} printed half a result");
        assert!(errors.contains("the run has no result"), "{args:?}: {errors}");
    }
}

#[test]
fn a_command_that_is_killed_leaves_nothing() {
    for (number, args) in LONG.iter().enumerate() {
        let run = Run::start(args, 200 + number);
        kill("KILL", run.command.id());
        run.end(args);
    }
}
