//! A calibrated machine predicts the host that it was measured on: round trips between two
//! tasks, simulated with the constants found, take what was measured.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use reveille_host::calibrate::{Cpus, Host, Measurement, derive};
use reveille_machine::{Distance, Machine, Topology, load};
use reveille_measure::RunSpec;
use reveille_policy::{Groups, Policy};
use reveille_workload::{Program, Workload};

const FUTEX: &str = r#"
name = "futex_ping_pong"
about = "two threads post each other"
load = "pairs"

[[metric]]
name = "throughput (operations/s)"
throughput = true

[[task]]
name = "ping"
process = "run"
program = [{ post = "pong" }, { wait = true }, { count = 2 }]

[[task]]
name = "pong"
process = "run"
program = [{ wait = true }, { post = "ping" }]
"#;

fn futex() -> Program {
    let workload = Workload::parse("futex.toml", FUTEX).expect("a workload");
    workload.build(1, &BTreeMap::new()).expect("one pair")
}

fn pipe() -> Program {
    let workload = reveille_workload::find("context_switch1").expect("in the catalogue");
    workload.build(1, &BTreeMap::new()).expect("one pair")
}

/// Half a simulated round trip in ns, on this many CPUs of the machine.
fn simulated(machine: &Machine, cpus: u32, program: &Program, base: &str) -> f64 {
    let topology = Topology::uniform(1, 1, cpus, 1).expect("a topology");
    let machine = Machine { topology, ..machine.clone() };
    let policy = Policy::baseline(base).expect("a baseline");
    let spec = RunSpec { seed: 1, warmup_ns: 20_000_000, duration_ns: 50_000_000 };
    let stop = AtomicBool::new(false);
    let run = reveille_sim::run(&machine, program, &policy, &Groups::default(), &spec, &stop);
    1e9 / run.expect("it runs").throughput()
}

/// How far simulated round trips are from measured ones, by name.
fn deviations(machine: &Machine, base: &str, measured: impl Fn(&str) -> f64) -> Vec<(String, f64)> {
    let (futex, pipe) = (futex(), pipe());
    let cases = [
        ("futex_hop_same", 1, &futex),
        ("pipe_hop_same", 1, &pipe),
        ("futex_hop_llc", 2, &futex),
        ("pipe_hop_llc", 2, &pipe),
    ];
    let off = |(name, cpus, program): (&str, u32, &Program)| {
        (name.to_owned(), simulated(machine, cpus, program, base) / measured(name) - 1.0)
    };
    cases.into_iter().map(off).collect()
}

#[test]
fn round_trips_of_a_host_that_is_known_are_predicted() {
    let figures = [
        ("syscall", 110.0),
        ("futex_wake", 140.0),
        ("futex_wait", 200.0),
        ("pipe_send", 180.0),
        ("pipe_recv", 175.0),
        ("pipe_page_send", 310.0),
        ("pipe_page_recv", 370.0),
        ("yield_alone", 260.0),
        ("yield_switch", 600.0),
        ("futex_hop_same", 1_250.0),
        ("pipe_threads_hop_same", 1_150.0),
        ("pipe_hop_same", 1_280.0),
        ("line_llc", 75.0),
        ("cold_llc", 1_300.0),
        ("ipi_none_llc", 170.0),
        ("ipi_flight_llc", 680.0),
        ("futex_hop_llc", 5_600.0),
        ("pipe_hop_llc", 6_000.0),
        ("wake_idle_llc_20us", 6_300.0),
        ("wake_idle_llc_20us_call", 2_000.0),
        ("wake_idle_llc_100us", 6_400.0),
        ("wake_idle_llc_300us", 9_000.0),
        ("wake_idle_llc_1000us", 24_000.0),
        ("wake_idle_llc_3000us", 30_000.0),
    ];
    let measured: Vec<Measurement> = figures
        .iter()
        .map(|&(name, median)| Measurement {
            name: name.to_owned(),
            about: String::new(),
            unit: "ns".to_owned(),
            median,
            p10: median * 0.95,
            p90: median * 1.1,
            samples: 100,
            discarded: 0,
        })
        .collect();
    let pairs: [(Distance, Cpus); 2] = [(Distance::Same, (1, 1)), (Distance::Llc, (1, 0))];
    for (kernel, base) in [("6.18.4", "v6.12"), ("7.2.0", "v7.2"), ("6.4.2", "v6.4")] {
        let host = Host {
            processor: "a processor".to_owned(),
            kernel: kernel.to_owned(),
            guest: true,
            mwait: false,
            cpuidle: false,
            group_levels: 1,
        };
        let found = derive(load("quad-1s4c").expect("a preset"), &host, &pairs, &measured);
        let of = |name: &str| figures.iter().find(|(n, _)| *n == name).expect("measured").1;
        for (name, off) in deviations(&found.machine, base, of) {
            assert!(off.abs() < 0.06, "{base} {name}: {:+.1}%", off * 100.0);
        }
    }
}

#[test]
fn this_host_is_measured_written_shown_and_predicted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("host.toml");
    let file = path.to_str().expect("UTF-8");
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reveille"));
        command.args(args).env("NO_COLOR", "1").output().expect("the command starts")
    };
    std::fs::write(&path, "an older file").expect("written");
    let output = command(&["calibrate", "--quick", "--force", "--json", "-o", file]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1, "nothing beside it");
    assert_eq!(json["noisy"], !json["complaints"].as_array().expect("complaints").is_empty());
    assert_eq!(json["noisy"].as_bool(), Some(errors.contains("measure again when it is quiet")));

    let shown = command(&["machines", file, "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("a machine");
    let constants = shown["machine"]["constants"].as_array().expect("constants");
    let syscall = constants.iter().find(|c| c["key"] == "syscall_ns").expect("syscall_ns");
    assert_eq!(syscall["origin"]["kind"], "measured");
    assert!(syscall["origin"]["spread"]["samples"].as_u64() >= Some(10), "{syscall}");
    for constant in json["constants"].as_array().expect("constants") {
        let same = |c: &&serde_json::Value| c["key"] == constant["key"];
        assert_eq!(constants.iter().find(same).expect("in the file")["value"], constant["value"]);
    }
    let compared = command(&[
        "compare",
        "--machine",
        file,
        "--workload",
        "context_switch1",
        "--load",
        "1",
        "--base",
        "v6.12",
        "--with",
        "+SIS_SHORT",
        "--repeats",
        "1",
        "--warmup",
        "1ms",
        "--duration",
        "2ms",
    ]);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));

    // What was derived predicts what it was derived from, unless something was refused.
    let machine = load(file).expect("the file");
    let base = match json["host"]["kernel"].as_str().expect("a kernel") {
        kernel if kernel.starts_with("7.") => "v7.2",
        kernel if kernel.starts_with("6.1") && !kernel.starts_with("6.1.") => "v6.12",
        _ => "v6.4",
    };
    let measurements = json["measurements"].as_array().expect("measurements");
    let of = |name: &str| {
        let found = measurements.iter().find(|m| m["name"] == name);
        found.and_then(|m| m["median"].as_f64())
    };
    let warnings = json["warnings"].as_array().expect("warnings");
    let have = |names: [&str; 2]| names.iter().all(|n| of(n).is_some());
    if warnings.is_empty() && have(["futex_hop_llc", "pipe_hop_same"]) {
        for (name, off) in deviations(&machine, base, |name| of(name).expect("measured")) {
            // A quick one has a single round, in which a host may change its speed between two
            // probes; the arithmetic itself is tested on a host made up.
            assert!(off.abs() < 0.4, "{base} {name}: {:+.1}%", off * 100.0);
        }
    }
}
