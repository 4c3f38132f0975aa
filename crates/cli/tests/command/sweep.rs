//! Sweeps as a user runs them: killed, split, damaged, misspelt, and with policies that crash.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::policy::Desk;
use super::{send, words};

const SPEC: &str = r#"
name = "small"
machines = ["quad-1s4c", "zen4-7950x"]
bases = ["v6.2", "v6.12"]
edits = ["+SIS_SHORT", "-TTWU_QUEUE"]
seeds = [1, 2, 3, 4]
repeats = 2
warmup = "1ms"
duration = "1ms"
[[workload]]
name = "context_switch1"
loads = ["50%", 7]
[[workload]]
name = "tcp_rr"
loads = [2]
metrics = ["throughput", "migrations_per_s"]
[constants]
switch_ns = [500, 900]
"#;

fn desk(spec: &str) -> Desk {
    let desk = Desk::new();
    fs::write(desk.path("spec.toml"), spec).unwrap();
    desk
}

impl Desk {
    /// Runs `sweep spec.toml -o OUT` with more arguments.
    fn sweep(&self, out: &str, more: &[&str]) -> Output {
        self.output(&[&["sweep", "spec.toml", "-o", out], more].concat())
    }

    /// The bytes that a sweep which succeeds has written.
    fn bytes(&self, out: &str, more: &[&str]) -> Vec<u8> {
        let output = self.sweep(out, more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!self.path(&format!("{out}.journal")).exists());
        fs::read(self.path(out)).unwrap()
    }

    /// Starts a sweep and kills it once its journal has this many lines.
    fn killed(&self, out: &str, lines: usize) {
        let journal = self.path(&format!("{out}.journal"));
        let args = ["sweep", "spec.toml", "-o", out, "--jobs", "2"];
        let mut child = self.command(&args).stdout(Stdio::null()).spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let text = fs::read(&journal).unwrap_or_default();
            if text.iter().filter(|byte| **byte == b'\n').count() >= lines {
                break;
            }
            assert!(child.try_wait().unwrap().is_none() && Instant::now() < end, "it is too fast");
            sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!self.path(out).exists());
    }
}

/// The process is stopped while both signals are sent, so they arrive together.
#[test]
fn a_second_signal_leaves_no_lock_file() {
    let desk = desk(&SPEC.replace("duration = \"1ms\"", "duration = \"70000s\""));
    let mut child = desk.command(&["sweep", "spec.toml", "-o", "x.parquet"]).spawn().unwrap();
    let lock = desk.path(".x.parquet.reveille-lock");
    let end = Instant::now() + Duration::from_secs(60);
    while !lock.exists() {
        assert!(Instant::now() < end, "it claims nothing");
        sleep(Duration::from_millis(1));
    }
    sleep(Duration::from_millis(500));
    ["STOP", "INT", "TERM", "CONT"].iter().for_each(|signal| send(&child, signal));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!lock.exists());
}

#[test]
fn killed_resumed_torn_split_and_merged_the_bytes_are_the_same() {
    let desk = desk(SPEC);
    let whole = desk.bytes("whole.parquet", &["--jobs", "1"]);
    assert_eq!(desk.bytes("two.parquet", &["--jobs", "2"]), whole);

    desk.killed("killed.parquet", 10);
    desk.killed("killed.parquet", 50);
    let journal = desk.path("killed.parquet.journal");
    let mut torn = fs::read(&journal).unwrap();
    torn.truncate(torn.len() - 3);
    fs::write(&journal, &torn).unwrap();
    let resumed = desk.sweep("killed.parquet", &[]);
    let said = String::from_utf8_lossy(&resumed.stderr);
    assert!(said.contains("bytes are torn; dropped"), "{said}");
    assert_eq!(fs::read(desk.path("killed.parquet")).unwrap(), whole);
    // What is finished is not run again.
    assert_eq!(desk.bytes("killed.parquet", &[]), whole);

    let parts = ["1.parquet", "2.parquet", "3.parquet", "4.parquet"];
    for (i, part) in parts.iter().enumerate() {
        desk.bytes(part, &["--shard", &format!("{}/4", i + 1)]);
    }
    let three = [&["merge", "merged.parquet"], &parts[1..]].concat();
    let said = desk.refused(&three, 2);
    assert!(said.contains("72 of 288 cells are missing, shard 1/4, such as"), "{said}");
    assert!(!desk.path("merged.parquet").exists());
    let all = [&["merge", "merged.parquet", "2.parquet"], &parts[..]].concat();
    assert!(desk.output(&all).status.success());
    assert_eq!(fs::read(desk.path("merged.parquet")).unwrap(), whole);
    assert!(desk.refused(&all, 2).contains("--force"));

    let other = SPEC.replace("repeats = 2", "repeats = 1");
    fs::write(desk.path("spec.toml"), other).unwrap();
    assert!(desk.sweep("other.parquet", &["--shard", "1/4"]).status.success());
    let said = desk.refused(&["merge", "x.parquet", "2.parquet", "other.parquet"], 2);
    assert!(said.contains("belongs to another sweep than 2.parquet: its spec differs"), "{said}");
    let said = desk.refused(&["sweep", "spec.toml", "-o", "whole.parquet"], 2);
    assert!(said.contains("it has another sweep") && said.contains("--force"), "{said}");
    let said = desk.refused(&["merge", "x.parquet", "spec.toml"], 2);
    assert!(said.contains("spec.toml: is no whole Parquet file"), "{said}");
}

#[test]
fn a_cell_is_what_compare_prints() {
    let desk = desk(SPEC);
    let csv = String::from_utf8(desk.sweep("out.parquet", &["--csv"]).stdout).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let columns = "cell,point,machine,cpus,base,edits,workload,load,load_given,switch_ns,seed,\
                   metric,unit,direction,value,std,baseline,baseline_std,change_pct,\
                   uncorrected_change_pct,p_value,too_few,enough_ns,error";
    assert_eq!(head.join(","), columns);
    let of = |line: &str, name: &str| {
        let at = head.iter().position(|column| *column == name).unwrap();
        line.split(',').nth(at).unwrap().to_owned()
    };
    // 7 pairs, and 50% of 4 CPUs: 2 machines x 2 bases x 2 values x 4 seeds x 3 edits.
    assert_eq!(csv.lines().filter(|line| line.contains("context_switch1,7,7")).count(), 96);
    assert_eq!(csv.lines().filter(|line| line.contains("context_switch1,16,50%")).count(), 48);
    let line = |edits: &str| {
        let mut lines = csv.lines().filter(|line| {
            ["zen4-7950x", "v6.2", edits, "tcp_rr", "500", "3", "throughput"]
                .iter()
                .zip(["machine", "base", "edits", "workload", "switch_ns", "seed", "metric"])
                .all(|(value, name)| of(line, name) == *value)
        });
        lines.next().unwrap().to_owned()
    };
    fs::write(
        desk.path("moved.toml"),
        "name = \"zen4-7950x\"\nabout = \"moved\"\nsource = \"test\"\ncost = \"zen4-7950x\"\n\
         [topology]\nsockets = 1\nllcs_per_socket = 2\ncores_per_llc = 8\nthreads = 2\n\
         [constants]\nswitch_ns = { value = 500, range = [100, 5000], estimate = \"test\" }\n",
    )
    .unwrap();
    let compared = desk.output(&words(
        "compare --machine moved.toml --workload tcp_rr --load 2 --base v6.2 --with=-TTWU_QUEUE \
         --repeats 2 --seed 3 --warmup 1ms --duration 1ms --json",
    ));
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let row = &compared["rows"][0];
    let number = |line: &str, name: &str| of(line, name).parse::<f64>().unwrap();
    let (own, base) = (line("-TTWU_QUEUE"), line(""));
    assert_eq!(row["candidate"]["mean"], number(&own, "value"));
    assert_eq!(row["baseline"]["mean"], number(&own, "baseline"));
    assert_eq!(row["baseline"]["mean"], number(&base, "value"));
    for name in ["change_pct", "uncorrected_change_pct", "p_value"] {
        assert_eq!(row[name], number(&own, name), "{name}");
    }
}

/// The first row of a CSV table under an edit, by column.
fn row_of<'a>(csv: &'a str, edits: &str) -> HashMap<&'a str, &'a str> {
    let mut rows = csv.lines().map(|line| line.split(','));
    let head: Vec<&str> = rows.next().unwrap().collect();
    let mut rows = rows.map(|row| head.iter().copied().zip(row).collect::<HashMap<_, _>>());
    rows.find(|row| row["edits"] == edits).unwrap()
}

#[test]
fn a_size_that_means_nothing_is_that_of_compare_in_table_and_summary() {
    let desk = desk(
        "name = \"n\"\nmachines = [\"zen4-7950x\"]\nbases = [\"v6.4\"]\nedits = [\"idea.c\"]\n\
         repeats = 2\nwarmup = \"10ms\"\nduration = \"3ms\"\n\
         [[workload]]\nname = \"hackbench\"\nloads = [4]\n",
    );
    assert!(desk.output(&["policy", "new", "idea.c"]).status.success());
    let csv = String::from_utf8(desk.sweep("out.parquet", &["--csv"]).stdout).unwrap();
    let row = row_of(&csv, "idea.c");
    let compared = desk.output(&words(
        "compare --machine zen4-7950x --workload hackbench --load 4 --base v6.4 --policy idea.c \
         --repeats 2 --warmup 10ms --duration 3ms --json",
    ));
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let compared = &compared["rows"][0];
    for name in ["change_pct", "uncorrected_change_pct", "p_value"] {
        assert_eq!(compared[name], row[name].parse::<f64>().unwrap(), "{name}");
    }
    assert!(compared["uncorrected_change_pct"].as_f64().unwrap().abs() > 1.5, "{compared}");
    let summary = desk.sweep("out.parquet", &["--json"]).stdout;
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let mean = summary["effects"][0]["mean_change_pct"].as_f64().unwrap();
    assert!((mean - 1.4).abs() < 1e-9, "{summary}");
}

#[test]
fn what_ran_too_short_is_no_change_and_says_how_long_is_enough() {
    let desk = desk(
        "name = \"n\"\nmachines = [\"zen4-7950x\"]\nbases = [\"v6.12\"]\nedits = [\"-WA_IDLE\"]\n\
         repeats = 2\nwarmup = \"1ms\"\nduration = \"1ms\"\n\
         [[workload]]\nname = \"kernel_compile\"\nloads = [4]\n\
         [[workload]]\nname = \"tcp_rr\"\nloads = [1]\nmetrics = [\"wakeup_p99_ns\"]\n",
    );
    let csv = desk.sweep("out.parquet", &["--csv"]);
    assert!(csv.status.success());
    let csv = String::from_utf8(csv.stdout).unwrap();
    for line in csv.lines().skip(1) {
        assert!(line.contains(",,,,,,,"), "no figures: {line}");
    }
    let none = "too few operations: some run of 1ms finishes none; use a longer duration";
    assert_eq!(csv.matches(none).count(), 2, "{csv}");
    assert_eq!(csv.matches("too few samples: use a duration of at least ").count(), 2, "{csv}");
    let summary = desk.sweep("out.parquet", &["--json"]).stdout;
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let told = |i: usize| (&summary["effects"][i]["cells"], &summary["effects"][i]["not_measured"]);
    assert_eq!([told(0), told(1)], [(&0.into(), &1.into()); 2]);
    assert!(summary["effects"][0]["enough_ns"].is_null());
    let enough = summary["effects"][1]["enough_ns"].as_u64().unwrap();
    let table = String::from_utf8(desk.sweep("out.parquet", &[]).stdout).unwrap();
    assert!(table.contains("0 of 1") && table.contains("us (duration)"), "{table}");
    // That long is enough.
    let spec = fs::read_to_string(desk.path("spec.toml")).unwrap();
    let longer = spec.replace("duration = \"1ms\"", &format!("duration = \"{enough}ns\""));
    fs::write(desk.path("spec.toml"), longer).unwrap();
    let csv = String::from_utf8(desk.sweep("longer.parquet", &["--csv"]).stdout).unwrap();
    assert_eq!(csv.matches("too few samples").count(), 0, "{csv}");
}

#[test]
fn mistakes_name_line_key_and_fix() {
    let desk = desk(SPEC);
    let mistakes = [
        ("\"zen4-7950x\"]", "\"zen4-7590x\"]"),
        ("\"zen4-7950x\"]", "\"quad-1s4c\"]"),
        ("[\"quad-1s4c\", \"zen4-7950x\"]", "[]"),
        ("\"v6.12\"]", "\"v6.11\"]"),
        ("+SIS_SHORT", "+SIS_SHROT"),
        ("+SIS_SHORT", "+SIS_UTIL"),
        ("\"-TTWU_QUEUE\"", "\"+SIS_SHORT\""),
        ("\"-TTWU_QUEUE\"", "\"none.c\""),
        ("[1, 2, 3, 4]", "[1, -2]"),
        ("repeats = 2", "repeats = 0"),
        ("warmup = \"1ms\"", "warmup = \"1\""),
        ("name = \"tcp_rr\"", "name = \"tcp_r\""),
        ("[2]", "[0]"),
        ("\"50%\"", "\"50\""),
        ("\"throughput\", ", "\"thruput\", "),
        ("switch_ns", "swich_ns"),
        ("[500, 900]", "[500, 9000000]"),
        ("[500, 900]", "\"range\""),
        ("[500, 900]", "[500, 900]\n[sample]\npoints = 0"),
        ("[500, 900]", "[500, 900]\n[sample]\npoints = 9\nmethod = \"sobol\""),
        ("seeds", "sedes"),
    ];
    let mut all = String::new();
    for (right, wrong) in mistakes {
        fs::write(desk.path("spec.toml"), SPEC.replacen(right, wrong, 1)).unwrap();
        let said = desk.refused(&["sweep", "spec.toml", "-o", "out.parquet"], 2);
        all += &format!("{wrong}\n{said}\n");
    }
    insta::assert_snapshot!(all);
    fs::write(desk.path("spec.toml"), SPEC).unwrap();
    let said = desk.refused(&["sweep", "spec.toml", "-o", "x", "--shard", "5/4"], 2);
    let fix = "`--shard`: `5/4` is no shard\n  help: write 1/4 for the first of four, up to 4/4";
    assert!(said.contains(fix), "{said}");
    assert_eq!(fs::read_dir(desk.own.path()).unwrap().count(), 1);
}

#[test]
fn a_sample_draws_points_and_constants_from_their_ranges() {
    let sample = "\"range\"\n[sample]\npoints = 30\nseed = 5\n";
    let desk = desk(&SPEC.replace("[500, 900]\n", sample));
    let dry = desk.output(&["sweep", "spec.toml", "--dry-run"]).stdout;
    let dry = String::from_utf8(dry).unwrap();
    assert_eq!(dry, "90 cells: 30 points, each under the baseline and 2 edits\n");
    let whole = desk.bytes("whole.parquet", &[]);
    let halves = ["a.parquet", "b.parquet"];
    halves.iter().zip(["1/2", "2/2"]).for_each(|(half, shard)| {
        desk.bytes(half, &["--shard", shard]);
    });
    let merge = ["merge", "merged.parquet", "a.parquet", "b.parquet", "--json"];
    let summary: Value = serde_json::from_slice(&desk.output(&merge).stdout).unwrap();
    assert_eq!((&summary["cells"], &summary["points"]), (&90.into(), &30.into()));
    assert_eq!(fs::read(desk.path("merged.parquet")).unwrap(), whole);
}

#[test]
fn cells_that_fail_are_rows_with_the_reason() {
    let edits = "[\"good.c\", \"null.c\", \"loop.c\", \"beyond.c,-TTWU_QUEUE\", \"+SIS_SHORT\"]";
    let spec = SPEC
        .replace("[\"+SIS_SHORT\", \"-TTWU_QUEUE\"]", edits)
        .replace("[\"quad-1s4c\", \"zen4-7950x\"]", "[\"quad-1s4c\"]")
        .replace("[\"v6.2\", \"v6.12\"]", "[\"v6.4\"]")
        .replace("[1, 2, 3, 4]", "[1]")
        .replace("[500, 900]", "[500]");
    let desk = desk(&spec);
    let kernel = "return policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);";
    let crash = "if (waker) ((volatile struct policy_task *)0)->id = 1;";
    let end =
        format!("if (world_llc(w, this_cpu) == 0) for (;;) __asm__ volatile(\"\");\n{kernel}");
    desk.function("good.c", kernel);
    desk.function("null.c", &format!("{crash}\n{kernel}"));
    desk.function("loop.c", &end);
    let beyond = "struct policy_pick pick = { .cpu = 4096 };\nreturn pick;";
    desk.function("beyond.c", beyond);
    let output = desk.sweep("out.parquet", &["--json", "--jobs", "2"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["cells"], &summary["failed"]), (&18.into(), &9.into()), "{said}");
    for reason in ["SIGSEGV", "takes longer than 2 s", "chose CPU 4096"] {
        assert!(said.contains(reason), "{said}");
    }
    let effect = |edits: &str| {
        let all = summary["effects"].as_array().unwrap();
        all.iter().find(|effect| effect["edits"] == edits).unwrap()["cells"].clone()
    };
    // The kernel's own rules as a file change nothing; a file that crashes has no change.
    assert_eq!((effect("good.c"), effect("null.c")), (2.into(), 0.into()));
    let whole = fs::read(desk.path("out.parquet")).unwrap();
    for (part, shard) in [("1.parquet", "1/2"), ("2.parquet", "2/2")] {
        assert_eq!(desk.sweep(part, &["--shard", shard]).status.code(), Some(1));
    }
    let merged = desk.output(&["merge", "merged.parquet", "1.parquet", "2.parquet"]);
    assert_eq!(merged.status.code(), Some(1));
    assert_eq!(fs::read(desk.path("merged.parquet")).unwrap(), whole);
}

/// What docs/sweep.md has between these marks, without its fence.
fn documented(mark: &str) -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = fs::read_to_string(docs.join("sweep.md")).unwrap();
    let (open, close) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let inside = |part: &str| {
        let block = part.split_once(&close).unwrap().0.trim_end_matches("```\n");
        block.split_once('\n').unwrap().1.to_owned()
    };
    page.split(&open).skip(1).map(inside).collect()
}

#[test]
fn the_recipes_of_the_documents_give_the_same_bytes() {
    let desk = desk(SPEC);
    let whole = desk.bytes("whole.parquet", &[]);
    let command = Path::new(env!("CARGO_BIN_EXE_reveille"));
    let path =
        format!("{}:{}", command.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let shell = |script: &str, task: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-ec", script]).current_dir(desk.own.path()).env("PATH", &path);
        shell.env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_TASK_COUNT", "4");
        let output = shell.env("SLURM_CPUS_PER_TASK", "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let [xargs, slurm] = documented("recipe").try_into().unwrap();
    shell(&xargs, "");
    assert_eq!(fs::read(desk.path("sweep.parquet")).unwrap(), whole);
    ["1", "2", "3", "4"].iter().for_each(|task| shell(&slurm, task));
    shell("reveille merge array.parquet slurm*.parquet", "");
    assert_eq!(fs::read(desk.path("array.parquet")).unwrap(), whole);
}

#[test]
fn the_example_of_the_documents_runs() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/sweep.toml");
    assert_eq!(documented("spec"), [fs::read_to_string(&example).unwrap()]);
    let desk = desk(SPEC);
    let args =
        ["sweep", example.to_str().unwrap(), "-o", "out.parquet", "--html", "out.html", "--json"];
    let output = desk.output(&args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["cells"], &summary["failed"]), (&180.into(), &0.into()));
    let page = fs::read_to_string(desk.path("out.html")).unwrap();
    for edit in ["+SIS_SHORT", "policies/first_fit.c"] {
        assert!(page.contains(&format!("<h2>{edit}</h2>")), "{edit}");
    }
    assert_eq!(page.matches("<table>").count(), 1 + 2 * 2);
    assert!(!page.contains("http://") && !page.contains("https://"));
}
