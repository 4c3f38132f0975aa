//! schbench as its users run it: lines as they parse them, JSON as they read it, and the
//! defects of the originals. Runs are short, and nothing depends on how fast they are.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use serde_json::Value;

use super::{refusals, refused, reveille, send, words};

/// Runs it to its end, which must be a good one.
fn run(args: &[&str]) -> Output {
    let output = reveille(&["bench", "schbench"]).args(args).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {:?} {errors}", output.status);
    for context in &CONTEXT[..2] {
        let said = errors.lines().filter(|line| line.starts_with(context)).count();
        assert_eq!(said, 1, "{args:?}: `{context}` in {errors}");
    }
    output
}

/// Lines that come after the original's: what was used, and what it was measured on.
const CONTEXT: [&str; 4] = ["tasks: ", "host: Linux ", "group: ", "warning: "];

/// The original's lines of a stream with every number as `#` and blanks as one.
fn shape(stream: &[u8]) -> Vec<String> {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    let of_line = |line: &str| {
        let digits = line.chars().map(|c| if c.is_ascii_digit() { '#' } else { c });
        let mut shape = String::new();
        for c in digits {
            let again = (c == '#' || c == ' ') && shape.ends_with(c);
            if !again {
                shape.push(c);
            }
        }
        shape
    };
    let own = |line: &&str| !CONTEXT.iter().any(|prefix| line.starts_with(prefix));
    text.lines().filter(own).map(of_line).collect()
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    serde_json::from_slice(&output.stdout).expect("standard output is JSON and nothing else")
}

fn number(document: &Value, key: &str) -> u64 {
    document["int"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {document}"))
}

const TABLE: [&str; 5] = [
    "\t #.#th: # (# samples)",
    "\t #.#th: # (# samples)",
    "\t* #.#th: # (# samples)",
    "\t #.#th: # (# samples)",
    "\t min=#, max=#",
];
const RPS_TABLE: [&str; 5] = [
    "RPS percentiles (requests) runtime # (s) (# total samples)",
    "\t #.#th: # (# samples)",
    "\t* #.#th: # (# samples)",
    "\t #.#th: # (# samples)",
    "\t min=#, max=#",
];
const DELAY: &str = "sched delay: message # (usec) worker # (usec)";

/// The three tables of the current era.
fn tables() -> Vec<&'static str> {
    let title = |t: &'static str| std::iter::once(t).chain(TABLE);
    title("Wakeup Latencies percentiles (usec) runtime # (s) (# total samples)")
        .chain(title("Request Latencies percentiles (usec) runtime # (s) (# total samples)"))
        .chain(RPS_TABLE)
        .collect()
}

fn old_table(last: &'static str) -> Vec<&'static str> {
    let mut lines = vec!["Latency percentiles (usec)"];
    lines.extend(["\t#.#th: #"; 4]);
    lines.extend(["\t*#.#th: #", "\t#.#th: #", "\t#.#th: #", last]);
    lines
}

#[test]
fn the_current_era_prints_its_lines_and_its_json() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.json");
    let args = ["-m", "1", "-t", "8", "-n", "1", "-r", "1", "-i", "1", "-J", "a \"name\"", "-j"];
    let output = run(&[&args[..], &[path.to_str().unwrap()]].concat());
    let mut expected = tables();
    expected.extend([DELAY, "current rps: #.#"]);
    expected.extend(tables());
    expected.extend(["average rps: #.#", DELAY]);
    assert_eq!(shape(&output.stderr), expected);
    assert!(output.stdout.is_empty());

    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1);
    let document: Value = serde_json::from_str(&text).unwrap();
    for key in ["version", "hostname", "sched_ext", "cmdline"] {
        assert!(!document["normal"][key].as_str().unwrap().is_empty(), "{key}");
    }
    assert_eq!(document["normal"]["jobname"], "a \"name\"");
    assert_eq!(document["normal"]["era"], "current");
    for label in ["wakeup_latency", "request_latency", "rps"] {
        let values: Vec<_> = ["20.0", "50.0", "90.0", "99.0", "99.9"]
            .map(|p| number(&document, &format!("{label}_pct{p}")))
            .to_vec();
        assert!(values.is_sorted(), "{label}: {values:?}");
        let (min, max) = (format!("{label}_min"), format!("{label}_max"));
        assert!(number(&document, &min) <= number(&document, &max));
        assert!(number(&document, &format!("{label}_samples")) > 0);
    }
    assert_eq!(number(&document, "runtime"), 1);
    // A sample of the rate for each second, none before anything has run.
    assert_eq!(number(&document, "rps_samples"), 1);
    assert!(number(&document, "rps_min") > 0);
    // The sleep alone is 100 µs, and it belongs to the request.
    assert!(number(&document, "request_latency_min") >= 100);
    let samples = number(&document, "request_latency_samples");
    assert_eq!(number(&document, "loops"), samples, "{document}");
    let head = format!("({samples} total samples)");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&head));
    // Eight workers that compute wait for a CPU, and are asked while they live.
    assert!(number(&document, "worker_sched_delay_ns") > 0);
    let rate = document["float"]["average_rps"].as_f64().unwrap();
    let seconds = number(&document, "measured_ns") as f64 / 1e9;
    assert!((rate * seconds - number(&document, "loops") as f64).abs() < 1e-3);
}

#[test]
fn requests_at_a_rate_stay_at_that_rate() {
    // The original divides 1 by 2 message threads and answers as fast as it can.
    let document = json(&["-R", "1", "-m", "2", "-t", "1", "-r", "1", "-n", "0", "-s", "0"]);
    assert!((1..=2).contains(&number(&document, "request_latency_samples")), "{document}");
    assert_eq!(number(&document, "rps_goal"), 1);
    assert_eq!(number(&document, "requests_skipped"), 0);
}

#[test]
fn open_loop_latency_counts_from_the_time_that_was_meant() {
    let document = json(&["-R", "50", "-t", "1", "-r", "1", "-n", "0", "-s", "1000", "-L"]);
    let samples = number(&document, "open_loop_latency_samples");
    assert_eq!(samples, number(&document, "request_latency_samples"));
    // All are due at once and each sleeps 1 ms, so they wait for each other.
    assert!(samples > 5, "{document}");
    let last = number(&document, "open_loop_latency_max");
    assert!(last >= 1000 * (samples.min(50) - 1), "{document}");
    assert!(last >= number(&document, "request_latency_max"));
}

#[test]
fn a_warmup_counts_in_a_short_run_and_zeroing_spares_the_end() {
    let args = ["-t", "1", "-n", "0", "-L", "-s", "100", "-i", "9", "-r", "2"];
    let output = run(&[&args[..], &["-w", "1", "--json"]].concat());
    assert_eq!(shape(&output.stderr)[0], "warmup done, zeroing stats");
    let warm: Value = serde_json::from_slice(&output.stdout).unwrap();
    let zeroed = json(&[&args[..], &["-z", "1"]].concat());
    for document in [warm, zeroed] {
        assert_eq!(number(&document, "rps_samples"), 1);
        assert!(number(&document, "measured_ns") < 2_000_000_000);
        // The average is of the same time as the latencies.
        let samples = number(&document, "request_latency_samples");
        assert!(samples > 0, "{document}");
        assert_eq!(number(&document, "loops"), samples, "{document}");
    }
}

#[test]
fn pipes() {
    let output = run(&["-p", "4096", "-m", "1", "-t", "1", "-r", "1"]);
    let mut expected = vec!["Wakeup Latencies percentiles (usec) runtime # (s) (# total samples)"];
    expected.extend(["\t #.#th: # (# samples)"; 3]);
    expected.extend(["\t* #.#th: # (# samples)", "\t #.#th: # (# samples)", TABLE[4]]);
    let lines = shape(&output.stderr);
    assert_eq!(lines[..7], expected);
    assert!(lines[7].starts_with("avg worker transfer: #.# ops/sec #.#"), "{lines:?}");
    assert_eq!(lines.len(), 8);

    let output = run(&["--era", "classic", "-p", "1", "-m", "2", "-t", "1", "-r", "1"]);
    assert_eq!(shape(&output.stderr), old_table("\tmin=#, max=#"));
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.starts_with("avg worker transfer: ") && line.lines().count() == 1, "{line}");
    assert!(!line.contains(" 0.00 ops"), "{line}");
}

#[test]
fn the_classic_era() {
    // One worker: the original divides by two thirds of it.
    let args = ["--era", "classic", "-m", "1", "-t", "1", "-c", "1000", "-R", "20", "-r", "1"];
    let output = run(&args);
    assert_eq!(shape(&output.stderr), old_table("\tmin=#, max=#"));
    let line = "rps: #.# p# (usec) # p# (usec) # p#/cputime #.#% p#/cputime #.#%";
    assert_eq!(shape(&output.stdout), [line]);

    let output = run(&[&args[..], &["-j"]].concat());
    assert_eq!(shape(&output.stderr).last().unwrap(), line, "JSON has standard output alone");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let samples = number(&document, "latency_samples");
    assert!((1..=20).contains(&samples), "{document}");
    assert!(number(&document, "open_loop_latency_min") >= 1000, "with the think time");
    for percent in ["50.0", "75.0", "90.0", "95.0", "99.0", "99.5", "99.9"] {
        number(&document, &format!("latency_pct{percent}"));
    }
    assert!(document["float"]["p99_cputime_pct"].as_f64().is_some());
}

#[test]
fn the_first_era() {
    let args = ["--era", "2016", "-m", "3", "-t", "1", "-c", "500", "-s", "3", "-r", "1"];
    let output = run(&[&args[..], &["--json"]].concat());
    assert_eq!(shape(&output.stderr), old_table("\tOver=#, min=#, max=#"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The original has 2 message threads whatever it is told.
    assert_eq!(number(&document, "message_threads"), 3);
    assert!(number(&document, "latency_samples") > 3, "{document}");
    // Its message threads cannot sleep for a second, and it refuses -d, which it documents.
    let long =
        json(&["--era", "2016", "-d", "1", "-t", "1", "-c", "500", "-s", "1000000", "-r", "2"]);
    assert_eq!(number(&long, "message_threads"), 1);
    assert!((1..=2).contains(&number(&long, "latency_samples")), "{long}");
}

#[test]
fn auto_adds_workers_until_latencies_suffer() {
    // Wakers and spinners on one CPU: 40 that spin for 5 ms each wait for longer than 2 ms.
    let args =
        ["--era", "classic", "-a", "-m", "1", "-t", "40", "-c", "5000", "-s", "0", "-r", "1"];
    let output = run(&args);
    let lines = shape(&output.stdout);
    assert!(
        !lines.is_empty() && lines.iter().all(|l| l == "cputime # threads # p# #"),
        "{lines:?}"
    );
    assert_eq!(shape(&output.stderr), old_table("\tmin=#, max=#"));
}

fn schbench(line: &str) -> Vec<&str> {
    [&["bench", "schbench"], &words(line)[..]].concat()
}

#[test]
fn what_an_era_does_not_have_or_cannot_be_run() {
    let cases = [
        "-c 5",
        "-a",
        "--seed 2",
        "-d 1",
        "--era classic -F 1",
        "--era classic -n 1",
        "--era classic --split 10",
        "--era classic -L",
        "--era classic -C",
        "--era classic -A 50",
        "--era classic -M 0",
        "--era classic -W auto",
        "--era 2016 -p 1",
        "--era 2016 -R 1",
        "--era 2016 -w 1",
        "--era 2016 -i 1",
        "--era 2016 -z 1",
        "--era 2016 -r 0",
        "--era 2017",
        "-m 0",
        "-t 0",
        "-t many",
        "-p 1048577",
        "-p 1 -R 1",
        "-r 5 -w 5",
        "-W 3-1",
        "-M auto -W 0",
        "--split 101",
        "-J name",
        "-j /no/such/directory/x.json",
        "--era classic -a -R 1 -c 0",
    ];
    insta::assert_snapshot!(refusals(cases.map(schbench)));
    // What else is said depends on the host.
    refused(&schbench("-m 100000 -t 100000"), &["10000100000 threads", "fewer"]);
    refused(&schbench("-F 99999999999 -t 1"), &["MiB", "-F"]);
    refused(&schbench("-W 65535"), &["-W", "65535"]);
    refused(&[&schbench("-M")[..], &[""]].concat(), &["-M", "no CPU"]);
    refused(&schbench("-M auto -m 4096"), &["auto", "4096", "-m"]);
}

#[test]
fn a_run_for_ever_reports_until_it_is_interrupted() {
    let mut child =
        reveille(&schbench("-t 1 -n 0 -r 0 -i 1")).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(errors.any(|line| line.unwrap().starts_with("current rps: ")));
    send(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // EOF means that no thread holds the stream any more.
    let rest: Vec<_> = errors.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");
    assert!(!rest.iter().any(|line| line.starts_with("average rps")), "no final result");
}
