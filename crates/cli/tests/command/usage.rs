//! `reveille usage`: files are imported whole or not at all, and shown.

use std::fs;
use std::path::Path;

use super::{answer, json, path, refused, series, stdout};

/// Two requests of 3 ms each 10 ms, for 12 s.
fn table() -> String {
    let mut text = String::from("at_ms,cpu_us,thread\n");
    for tick in 0..1_200 {
        text += &format!("{},3000,a\n{},3000,b\n", tick * 10, tick * 10 + 5);
    }
    text
}

#[test]
fn a_table_is_imported_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let csv = path(dir.path(), "web.csv");
    fs::write(&csv, table()).unwrap();
    let shown = stdout(&["usage", "import", &csv]);
    let parquet = path(dir.path(), "web.parquet");
    assert!(shown.starts_with(&format!("{parquet}\n  name        web\n")), "{shown}");
    for line in [
        "length      12.000 s",
        "threads     2, of which 1 at most are busy at once",
        "demands     2400, 0.600 CPUs on average",
        "per 100 ms  p50 60.0%  p95 too few  p99 too few  max 60.0% of a CPU",
        "limits      not known",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert!(!shown.contains("warning"), "{shown}");
    assert_eq!(stdout(&["usage", "show", &parquet]), shown);
    let mut summary = json(&["usage", "show", "--json", &parquet]);
    assert_eq!(summary["demands"], 2400);
    assert_eq!(summary["origin"]["kind"], "requests");
    let written = json(&["usage", "import", "--json", "--force", &csv]);
    assert_eq!(
        summary.as_object_mut().unwrap().remove("version").as_ref(),
        Some(&written["version"])
    );
    assert_eq!(written["usage"], summary);
    assert_eq!(written["bytes"], fs::metadata(&parquet).unwrap().len());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
}

#[test]
fn answers_of_prometheus_are_imported_with_their_warning() {
    let dir = tempfile::tempdir().unwrap();
    let of = |pod: &str, name: &str, last: f64| {
        let labels = format!(r#""__name__":"{name}","pod":"{pod}""#);
        series(&labels, [(0, 1.0), (15, 2.0), (30, last)])
    };
    let used = "container_cpu_usage_seconds_total";
    let (a, b) = (path(dir.path(), "use.json"), path(dir.path(), "throttled.json"));
    fs::write(&a, answer(&[of("x", used, 5.0), of("y", used, 9.0)])).unwrap();
    let throttled = "container_cpu_cfs_throttled_periods_total";
    fs::write(&b, answer(&[of("x", throttled, 4.0)])).unwrap();
    let out = path(dir.path(), "out.parquet");
    refused(&["usage", "import", &a, "-o", &out], &["2 series", "pod=x; pod=y", "--select"]);
    refused(&["usage", "import", &a, "--threads", "2", "-o", &out], &["--threads", "leave"]);
    refused(&["usage", "import", &a, "--select", "pod", "-o", &out], &["--select", "LABEL=VALUE"]);
    assert!(!Path::new(&out).exists(), "nothing is written of what is refused");
    let shown = stdout(&["usage", "import", &a, &b, "--select", "pod=x", "-o", &out]);
    for words in
        ["averaged: over 15 s", "throttled   3 of 0 periods", "warning: These are averages"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn what_cannot_be_imported_or_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (csv, parquet) = (path(dir.path(), "a.csv"), path(dir.path(), "a.parquet"));
    refused(&["usage", "import", &csv], &["a.csv", "cannot read", "check"]);
    refused(&["usage", "show", &parquet], &["a.parquet", "cannot read", "check"]);
    refused(&["usage", "show", dir.path().to_str().unwrap()], &["cannot read"]);
    fs::write(&csv, "at_s,cpu_ms,cpu_us\n1,1,1\n").unwrap();
    refused(&["show", &csv], &["two columns for `cpu`", "help: keep one of the two: delete"]);
    fs::write(&csv, "at_s,cpu_ms\n1,1\n2,-5\n").unwrap();
    refused(
        &["show", &csv],
        &["a.csv:3: column `cpu_ms`: `-5` is negative", "a time of 0 or more"],
    );
    fs::write(&csv, "at_s,cpu_ms\n1,1\n2,NaN\n").unwrap();
    refused(&["usage", "import", &csv], &["a.csv:3: column `cpu_ms`: `NaN`", "plain number"]);
    refused(&["usage", "show", &csv], &["a.csv:3: column `cpu_ms`: `NaN`"]);
    let instead = [
        "traces of the scheduler are not imported",
        "--how trace",
        "compare --workload trace.txt",
        "a CSV",
    ];
    let event = "     sshd-7 [001] d..2. 9.5: sched_switch: prev_comm=sshd prev_pid=7";
    for trace in [
        format!("# tracer: nop\n#\n{event}\n"),
        format!("cpus=2\n{event}\n"),
        "sshd 7 [001] 9.5: sched:sched_switch: prev_comm=sshd prev_pid=7\n".into(),
        "PERFILE2h\0\0\0".into(),
        "\x17\x08Dtracing6\0".into(),
    ] {
        fs::write(&csv, &trace).unwrap();
        refused(&["import", &csv], &instead);
        refused(&["show", &csv], &instead);
    }
    // An ignored column may say anything.
    fs::write(&csv, "at_s,cpu_ms,what\n1,1,sched_switch:\n2,1,\n").unwrap();
    stdout(&["show", &csv]);
    let open = format!("{}9,3,\"c\n{}", table(), &table()["at_ms,cpu_us,thread\n".len()..]);
    fs::write(&csv, open).unwrap();
    refused(&["show", &csv], &["a.csv:2402: a quote opens in this line", "help: close the quote"]);
    fs::write(&parquet, "PAR").unwrap();
    refused(&["usage", "show", &parquet], &["is no Parquet file", "reveille import"]);
    fs::remove_file(&parquet).unwrap();
    fs::write(&csv, table()).unwrap();
    refused(&["usage", "import", &csv, "--threads", "0"], &["threads", "use 1 to"]);
    refused(&["usage", "import", &csv, "--select", "a=b"], &["--select", "leave"]);
    refused(&["usage", "import", &csv, &csv], &["only one"]);
    let directory = dir.path().to_str().unwrap();
    refused(&["usage", "import", directory], &[directory, "cannot read", "directory"]);
    refused(&["usage", "import", &csv, "-o", &csv, "--force"], &["it is what is imported"]);
    refused(&["usage", "import", &csv, "-o", "/proc/a.parquet"], &["--output", "/proc/a.parquet"]);
    stdout(&["usage", "import", &csv]);
    refused(&["usage", "import", &csv], &["a.parquet", "it exists", "--force"]);
    refused(&["usage", "import", &parquet, "-o", "b"], &["is a Parquet file already"]);
    let whole = fs::read(&parquet).unwrap();
    fs::write(&parquet, &whole[..whole.len() - 9]).unwrap();
    refused(&["usage", "show", &parquet], &["a.parquet: is a Parquet file that is cut off"]);
}
