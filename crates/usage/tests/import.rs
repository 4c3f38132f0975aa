//! Recordings from tables of requests and from Prometheus: what users get, and what is
//! refused with which place and fix.

use miette::Diagnostic;
use reveille_policy::BandwidthLimits;
use reveille_usage::{CsvOptions, Demand, InputError, Origin, Select, Usage};

const MS: u64 = 1_000_000;

fn csv(text: &str) -> Result<Usage, InputError> {
    Usage::from_csv("a.csv", "a", text.as_bytes(), CsvOptions::default())
}

fn demand(at_ms: u64, cpu_us: u64, thread: u32, done_ms: Option<u64>) -> Demand {
    Demand { at_ns: at_ms * MS, cpu_ns: cpu_us * 1_000, thread, done_ns: done_ms.map(|t| t * MS) }
}

#[test]
fn a_table_with_all_columns() {
    let text = "thread,at_s,CPU_us,note,done_ms\n\
                web-1,1000.010, 500,x,1000012\n\
                web-0,1000.000,1500,y,1000003\n\
                web-1,1000.030,2e3,z,\n";
    let usage = csv(text).unwrap();
    assert_eq!(
        usage.demands,
        [demand(0, 1500, 1, Some(3)), demand(10, 500, 0, Some(12)), demand(30, 2000, 0, None)]
    );
    // Two gaps in 30 ms: the third is after the last arrival.
    assert_eq!((usage.span_ns, usage.threads, usage.origin), (45 * MS, 2, Origin::Requests));
    assert_eq!((usage.began_unix_ns, usage.warnings), (None, vec![]));
}

/// As an access log writes them: many a second, in whole seconds.
#[test]
fn arrivals_in_whole_seconds_are_warned_of() {
    let table = |every: u64, unit: &str| {
        let row = |n: u64| format!("{},5\n", n / every);
        format!("at_{unit},cpu_ms\n{}", (0..40).map(row).collect::<String>())
    };
    let warned = |text: String| {
        csv(&text).unwrap().warnings.iter().any(|warning| warning.contains("in whole seconds"))
    };
    assert!(warned(table(8, "s")));
    // A second each, or a known time.
    assert!(!warned(table(1, "s")) && !warned(table(8, "ms")));
}

#[test]
fn requests_without_threads_take_the_one_that_is_free_first() {
    let text = "at_ms,cpu_ms\n0,10\n1,2\n2,5\n4,1\n11,1\n20,1\n";
    let threads = |most| {
        let options = CsvOptions { threads: most, ..CsvOptions::default() };
        let usage = Usage::from_csv("a.csv", "a", text.as_bytes(), options).unwrap();
        let threads: Vec<u32> = usage.demands.iter().map(|demand| demand.thread).collect();
        (threads, usage.warnings.len())
    };
    assert_eq!(threads(None), (vec![0, 1, 2, 1, 1, 2], 0));
    assert_eq!(threads(Some(2)), (vec![0, 1, 1, 1, 1, 0], 1));
    assert_eq!(threads(Some(1)), (vec![0; 6], 1));
}

#[test]
fn the_order_of_lines_is_free_within_a_second_or_if_asked_for() {
    let usage = csv("at_s,cpu_ms\n5,1\n4.5,1\n6,1\n").unwrap();
    assert_eq!(usage.demands[1].at_ns, 500 * MS);
    let text = "at_s,cpu_ms\n5,1\n3.5,1\n6,1\n";
    let error = csv(text).unwrap_err();
    assert_eq!(error.to_string(), "a.csv:3: column `at_s`: 1.500 s earlier than line 2");
    assert!(error.help().unwrap().to_string().contains("--unordered"));
    let options = CsvOptions { unordered: true, ..CsvOptions::default() };
    assert_eq!(
        Usage::from_csv("a.csv", "a", text.as_bytes(), options).unwrap().span_ns,
        3_750 * MS
    );
    // One log after the other, each of a thread, is in order.
    csv("at_s,cpu_ms,thread\n5,1,a\n9,1,a\n5,1,b\n9,1,b\n").unwrap();
}

#[test]
fn tables_that_are_wrong() {
    for (text, words) in [
        ("", "a.csv:1: no column for `at`; the header has nothing"),
        ("at,cpu\n1,1\n", "a.csv:1: column `at` has no unit"),
        ("at_min,cpu_s\n1,1\n", "a.csv:1: column `at_min` has no unit that is known"),
        ("at_s,cost\n1,1\n", "no column for `cpu`; the header has `at_s`, `cost`"),
        ("at_s,cpu_s,at_ms\n1,1,1\n", "two columns for `at`"),
        ("at_s,cpu_s\n", "a.csv: has no requests"),
        ("at_s,cpu_s\n1,1\n", "all requests arrive at one time"),
        ("at_s,cpu_s\n1,1\n2,NaN\n", "a.csv:3: column `cpu_s`: `NaN` is not a number"),
        ("at_s,cpu_us\n1,1\n2,1e30\n", "a.csv:3: column `cpu_us`: `1e30` is beyond any time"),
        ("at_s,cpu_s\n1,1\ninf,1\n", "a.csv:3: column `at_s`: `inf` is not a number"),
        ("at_s,cpu_s\n1,1\n2,-3\n", "a.csv:3: column `cpu_s`: `-3` is negative"),
        ("at_s,cpu_s\n-1,1\n2,3\n", "a.csv:2: column `at_s`: `-1` is negative"),
        ("at_s,cpu_s\n1,\n2,3\n", "a.csv:2: column `cpu_s`: is empty"),
        ("at_s,cpu_s\n1,1\n2\n", "a.csv:3: 1 fields, and the header has 2"),
        ("at_s,cpu_s\n1,1\n2,1,1\n", "a.csv:3: 3 fields, and the header has 2"),
        ("at_s,cpu_s\r\n1,1\r\n\r\n2,NaN\r\n", "a.csv:4: column `cpu_s`: `NaN` is not a number"),
        (
            "at_s,\"cpu_s\n1,1\n2,1\n",
            "a.csv:1: a quote opens in this line and does not close in it",
        ),
        ("\u{feff}at_s,cpu_s,path\n1,1,/a\n\n2,1,\"/b\n3,1,/c\n", "a.csv:4: a quote opens"),
        ("path,at_s,cpu_s\n/a,1,1\n\"/b,2,1\n/c\",3,1\n", "a.csv:3: a quote opens"),
        ("at_s,cpu_s\n1,1\n2,1e9\n", "a.csv:3: column `cpu_s`: more than 31 days"),
        ("at_s,cpu_s\n1,1\n1e8,1\n", "a.csv: the arrivals are more than 31 days apart"),
        ("at_s,cpu_s,done_s\n1,1,2\n2,1,1\n", "a.csv:3: column `done_s`: earlier than the arrival"),
        ("at_s,cpu_s,thread\n1,1,a\n2,1,\n", "a.csv:3: column `thread`: is empty"),
    ] {
        let error = csv(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text:?}: {error}");
        assert!(error.help().is_some_and(|help| !help.to_string().is_empty()), "{text:?}");
    }
    assert_eq!(csv("at_s,cpu_s,path\n1,1,\"/a,b\"\n2,1,5\" tube\n").unwrap().demands.len(), 2);
    let error = Usage::from_csv("a.csv", "a", b"at_s,cpu_s\n1,\xff\n", CsvOptions::default());
    assert!(error.unwrap_err().to_string().contains("a.csv:2: is no UTF-8"));
}

#[test]
fn suspicious_tables_are_read_with_a_warning() {
    let usage = csv("at_ms,cpu_s,done_ms\n0,1,2\n9,1,12\n").unwrap();
    assert!(usage.warnings[0].contains("is the unit of `cpu_s` right"), "{:?}", usage.warnings);
    let mut text = String::from("at_s,cpu_ms\n");
    (0..12).for_each(|i| text += &format!("{},1\n", if i < 6 { i } else { 1000 + i }));
    assert!(csv(&text).unwrap().warnings[0].contains("Nothing arrives for 1001.000 s"));
}

/// An answer with a series for each of `values` and its labels.
fn answer(name: &str, series: &[(&str, &[(u64, &str)])]) -> String {
    let series = series.iter().map(|(labels, values)| {
        let values: Vec<String> = values.iter().map(|(t, v)| format!("[{t}.5,\"{v}\"]")).collect();
        let comma = if labels.is_empty() { "" } else { "," };
        format!(
            r#"{{"metric":{{"__name__":"{name}"{comma}{labels}}},"values":[{}]}}"#,
            values.join(",")
        )
    });
    let series: Vec<String> = series.collect();
    format!(
        r#"{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}"#,
        series.join(",")
    )
}

const USED: &str = "container_cpu_usage_seconds_total";

fn prometheus(texts: &[&str], select: &[&str]) -> Result<Usage, InputError> {
    let file = |(n, text): (usize, &&str)| (format!("{n}.json"), text.as_bytes().to_vec());
    let files: Vec<_> = texts.iter().enumerate().map(file).collect();
    let select: Vec<Select> = select.iter().map(|s| s.parse().unwrap()).collect();
    Usage::from_prometheus("web", &files, &select)
}

#[test]
fn counters_of_a_container() {
    // 0.5 CPUs, then 1.5; then it starts over, and uses 3 s of 15.
    let used = answer(USED, &[("", &[(100, "1000"), (115, "1007.5"), (130, "1030"), (145, "3")])]);
    let counters = [
        answer(
            "container_cpu_cfs_periods_total",
            &[("", &[(100, "50"), (115, "200"), (130, "350")])],
        ),
        answer(
            "container_cpu_cfs_throttled_periods_total",
            &[("", &[(100, "5"), (115, "9"), (130, "35")])],
        ),
        answer(
            "container_cpu_cfs_throttled_seconds_total",
            &[("", &[(100, "1"), (115, "1"), (130, "2.5")])],
        ),
        answer("container_spec_cpu_quota", &[("", &[(100, "150000"), (130, "150000")])]),
        answer("container_spec_cpu_period", &[("", &[(100, "100000")])]),
    ];
    let usage = prometheus(&[&used, &format!("[{}]", counters.join(","))], &[]).unwrap();
    assert_eq!(usage.origin, Origin::Averaged { step_ns: 15_000 * MS });
    assert_eq!((usage.span_ns, usage.threads), (45_000 * MS, 2));
    assert_eq!(usage.began_unix_ns, Some(100_500 * MS));
    let limits = BandwidthLimits { quota_ns: Some(150 * MS), period_ns: 100 * MS, burst_ns: 0 };
    assert_eq!(usage.limits, Some(limits));
    let in_steps = usage.per_period(15_000 * MS, 0);
    assert_eq!(in_steps, [7_500 * MS, 22_500 * MS, 3_000 * MS]);
    // One demand in 10 ms of each thread: one thread, two, and one.
    assert_eq!(usage.demands.len(), 1500 + (1500 + 1501) + 1500);
    assert_eq!(usage.demands[7], demand(70, 5_000, 0, None));
    let last = usage.samples.last().unwrap();
    assert_eq!((last.nr_periods, last.nr_throttled, last.throttled_ns), (300, 30, 1_500 * MS));
    assert_eq!(usage.samples[1].runtime_ns, 22_500 * MS);
    for (warning, words) in usage.warnings.iter().zip([
        "averages over 15 s",
        "started over once",
        "throttled while it was watched",
    ]) {
        assert!(warning.contains(words), "{warning}");
    }
    assert!(usage.enough_for(0.5).unwrap_err().contains("Averages over 15 s"));
}

/// As a kubelet reports one container of a pod that was restarted.
#[test]
fn a_container_is_found_beside_its_pod_and_across_restarts() {
    let pod = r#""id":"/kubepods/pod1","namespace":"n","pod":"web-0""#;
    let pause = r#""container":"POD","id":"/kubepods/pod1/p","name":"p","pod":"web-0""#;
    let first = r#""container":"app","id":"/kubepods/pod1/a","name":"a","pod":"web-0""#;
    let second = r#""container":"app","id":"/kubepods/pod1/b","name":"b","pod":"web-0""#;
    let used = answer(
        USED,
        &[
            (pod, &[(0, "900"), (15, "907"), (30, "910"), (45, "925")]),
            (pause, &[(0, "0.01"), (45, "0.01")]),
            (second, &[(30, "13"), (45, "20")]),
            // The kubelet reports what has ended for a while.
            (first, &[(0, "5"), (15, "12"), (30, "12"), (45, "12")]),
        ],
    );
    let throttled = answer(
        "container_cpu_cfs_throttled_periods_total",
        &[(pod, &[(0, "9"), (45, "99")]), (first, &[(0, "4"), (15, "6")]), (second, &[(30, "1")])],
    );
    let periods = answer(
        "container_cpu_cfs_periods_total",
        &[(pod, &[(0, "50")]), (first, &[(0, "40"), (15, "90")]), (second, &[(30, "20")])],
    );
    let quota = answer(
        "container_spec_cpu_quota",
        &[(pod, &[(0, "90000")]), (first, &[(0, "60000")]), (second, &[(30, "60000")])],
    );
    for select in [&[][..], &["container=app"], &["pod=web-0"]] {
        let usage = prometheus(&[&used, &periods, &throttled, &quota], select).unwrap();
        assert_eq!(usage.per_period(15_000 * MS, 0), [7_000 * MS, 13_000 * MS, 7_000 * MS]);
        assert_eq!(usage.samples.last().unwrap().nr_throttled, 3, "{select:?}");
        assert_eq!(usage.limits.unwrap().quota_ns, Some(60 * MS));
        assert!(usage.warnings.iter().any(|w| w.contains("started over once")));
    }
    // Two at a time are two.
    let running = used.replace(r#"[30.5,"12"],[45.5,"12"]"#, r#"[30.5,"12"],[45.5,"13"]"#);
    assert_ne!(running, used);
    let error = prometheus(&[&running], &[]).unwrap_err();
    assert!(error.to_string().contains("2 series of"), "{error}");
    assert!(error.to_string().contains("name=a") && !error.to_string().contains("POD"), "{error}");
}

#[test]
fn several_containers_are_told_apart_by_their_labels() {
    let values: &[(u64, &str)] = &[(0, "1"), (15, "2")];
    let two = answer(
        USED,
        &[(r#""pod":"a","node":"n","cpu":"total""#, values), (r#""pod":"b","node":"n""#, values)],
    );
    let error = prometheus(&[&two], &[]).unwrap_err();
    assert!(error.to_string().contains("0.json: 2 series of"), "{error}");
    assert!(error.to_string().contains("cpu=total pod=a; pod=b"), "{error}");
    assert!(error.help().unwrap().to_string().contains("--select"));
    prometheus(&[&two], &["pod=b"]).unwrap();
    prometheus(&[&two], &["pod=a", "node=n"]).unwrap();
    let error = prometheus(&[&two], &["pod=c"]).unwrap_err();
    assert!(error.help().unwrap().to_string().contains("`pod` is one of a, b"));
    // A range that was asked for in two parts, which share an end.
    let later = answer(USED, &[(r#""pod":"b","node":"n""#, &[(15, "2"), (30, "3")])]);
    assert_eq!(prometheus(&[&later, &two], &["pod=b"]).unwrap().span_ns, 30_000 * MS);
}

#[test]
fn of_a_range_with_another_limit_the_last_part_is_used() {
    let used = answer(USED, &[("", &[(0, "0"), (15, "15"), (30, "18"), (45, "21")])]);
    let counted = |name: &str, values: &[(u64, &str)]| {
        answer(&format!("container_cpu_cfs_{name}_total"), &[("", values)])
    };
    let periods = counted("periods", &[(0, "0"), (15, "150"), (30, "300"), (45, "450")]);
    let throttled =
        counted("throttled_periods", &[(0, "0"), (15, "150"), (30, "200"), (45, "250")]);
    let quota = |last: &str| {
        let values: &[(u64, &str)] = &[(0, "90000"), (15, last), (45, last)];
        answer("container_spec_cpu_quota", &[("", values)])
    };
    let whole = prometheus(&[&used, &periods, &throttled, &quota("90000")], &[]).unwrap();
    let part = prometheus(&[&used, &periods, &throttled, &quota("30000")], &[]).unwrap();
    let told = |usage: &Usage| {
        let last = usage.samples.last().unwrap();
        (usage.span_ns / MS, last.nr_periods, last.nr_throttled)
    };
    assert_eq!((told(&whole), told(&part)), ((45_000, 450, 250), (30_000, 300, 100)));
    assert_eq!(part.per_period(15_000 * MS, 0), [3_000 * MS, 3_000 * MS]);
    let at_the_end = answer("container_spec_cpu_quota", &[("", &[(0, "90000"), (45, "30000")])]);
    let error = prometheus(&[&used, &periods, &throttled, &at_the_end], &[]).unwrap_err();
    assert!(error.to_string().contains("its limit changed at 45.5 s"), "{error}");
    let warned = |usage: &Usage| usage.warnings.iter().any(|w| w.contains("only the 30 s since"));
    assert!(warned(&part) && !warned(&whole));
    // A limit that is set on the way, and one that is lifted.
    let values = [(0, "0"), (15, "15"), (30, "18"), (45, "21"), (60, "24"), (75, "27"), (90, "30")];
    let used = answer(USED, &[("", &values)]);
    let from = |name: &str| counted(name, &[(60, "0"), (75, "100"), (90, "200")]);
    let quota = answer("container_spec_cpu_quota", &[("", &[(60, "30000"), (90, "30000")])]);
    let set = prometheus(&[&used, &from("periods"), &from("throttled_periods"), &quota], &[]);
    assert_eq!(told(set.as_ref().unwrap()), (30_000, 200, 200));
    assert!(warned(set.as_ref().unwrap()));
    let began = |w: &String| w.contains("30 s since its limit's counters began");
    assert!(set.unwrap().warnings.iter().any(began));
    let error = prometheus(&[&used, &periods, &throttled, &quota], &[]).unwrap_err();
    assert!(error.to_string().contains("ends 45 s before the CPU time"), "{error}");
    assert!(error.help().unwrap().to_string().contains("had a limit all the time"));
}

#[test]
fn series_of_cpus_are_added_up() {
    let values: &[(u64, &str)] = &[(0, "1"), (15, "4")];
    let of = |cpus: &[&'static str]| {
        let labels: Vec<String> =
            cpus.iter().map(|cpu| format!(r#""pod":"a","cpu":"{cpu}""#)).collect();
        let series: Vec<_> = labels.iter().map(|labels| (labels.as_str(), values)).collect();
        answer(USED, &series)
    };
    let ns = |text: &str| prometheus(&[text], &[]).unwrap().samples[0].runtime_ns;
    assert_eq!(ns(&of(&["cpu00", "cpu01"])), 6_000 * MS);
    assert_eq!(ns(&of(&["cpu00", "cpu01", "total"])), 3_000 * MS);
    let error = prometheus(&[&of(&["cpu00", "cpu01"])], &["cpu=cpu00"]).unwrap_err();
    assert!(error.to_string().contains("cpu=cpu00 is a part"), "{error}");
}

#[test]
fn counts_that_no_container_has() {
    let used = answer(USED, &[(r#""pod":"a""#, &[(0, "0"), (15, "5"), (30, "10"), (45, "15")])]);
    let counted = |name: &str, pod: &str, values: &[(u64, &str)]| {
        answer(
            &format!("container_cpu_cfs_{name}_total"),
            &[(&format!(r#""pod":"{pod}""#), values)],
        )
    };
    let periods = counted("periods", "a", &[(0, "0"), (45, "450")]);
    let throttled = counted("throttled_periods", "a", &[(0, "0"), (45, "100")]);
    prometheus(&[&used, &periods, &throttled], &[]).unwrap();
    prometheus(&[&used, &throttled], &[]).unwrap();
    let ends = counted("throttled_periods", "a", &[(0, "0"), (1, "100")]);
    let begins = counted("throttled_periods", "a", &[(40, "0"), (45, "50")]);
    let more = counted("throttled_periods", "a", &[(0, "0"), (45, "451")]);
    let others = counted("throttled_periods", "b", &[(0, "0"), (45, "100")]);
    let crowded = counted("periods", "a", &[(0, "0"), (45, "900")]);
    prometheus(&[&used, &crowded, &throttled], &[]).unwrap();
    let length = answer("container_spec_cpu_period", &[("", &[(0, "100000"), (45, "100000")])]);
    let fell =
        answer(USED, &[("", &[(0, "90"), (15, "95"), (30, "94.9"), (45, "99"), (60, "104")])]);
    let rate = answer(USED, &[("", &[(0, "0.3"), (15, "0.2"), (30, "0.4"), (45, "0.3")])]);
    let digits = fell.replace("\"95\"", "\"95.00000000000001\"");
    for (texts, words) in [
        (vec![&used, &periods], "is here without container_cpu_cfs_throttled_periods_total"),
        (vec![&used, &periods, &ends], "ends 44 s before the CPU time"),
        (vec![&used, &periods, &begins], "begins 40 s after the CPU time"),
        (vec![&used, &periods, &more], "451 periods are throttled, of 450"),
        (vec![&used, &periods, &others], "is of pod=a, and container_cpu_cfs_throttled"),
        (vec![&used, &crowded, &throttled, &length], "900 periods are counted, and no more than"),
        (vec![&fell], "falls from 95 to 94.9 at 30.5 s"),
        (vec![&digits], "falls from 95 to 94.9 at 30.5 s"),
        (vec![&rate], "falls in 2 of 3 steps"),
    ] {
        let texts: Vec<&str> = texts.into_iter().map(String::as_str).collect();
        let error = prometheus(&texts, &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.help().is_some(), "{words}");
    }
}

#[test]
fn answers_that_are_wrong() {
    let values = |first: &str, second: &str| answer(USED, &[("", &[(0, first), (15, second)])]);
    let vector = values("1", "2").replace("matrix", "vector");
    let rate = values("1", "2").replace(r#""__name__":"container_cpu_usage_seconds_total""#, "");
    let late = values("1", "2").replace("[0.5,", "[1700000000000,");
    let late_rate = rate.replace("[0.5,", "[1700000000000,");
    let failed = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
    for (text, words) in [
        ("{}", "0.json: has no `data`"),
        ("{\"data\":", "0.json: is no answer of Prometheus"),
        ("[{}]", "0.json: answer 1: has no `data`"),
        (failed, "answered with an error: parse error"),
        (&vector, "resultType `vector`"),
        (&rate, "series without a name, as rate() leaves them"),
        (&late, "value 1: `1700000000000` is no time in seconds"),
        (&late_rate, "0.json: a series without a name, value 1: `1700000000000` is no time"),
        (&values("1", "NaN"), "value 2: `NaN` is not a finite number"),
        (&values("+Inf", "1"), "value 1: `+Inf` is not a finite number"),
        (&values("1", "-1"), "value 2: `-1` is negative"),
        (&values("1", "x"), "value 2: `x` is not a number"),
        (&values("1", "1e9"), "a step took 999999999 s of CPU time"),
        (&answer(USED, &[("", &[(0, "1")])]), "has a single value"),
        (&answer(USED, &[("", &[(0, "1"), (0, "2"), (9, "3")])]), "two values at 0.5 s"),
        (&answer(USED, &[]), "the answer holds no series"),
        (&answer("up", &[("", &[(0, "1")])]), "here, but up"),
    ] {
        let error = prometheus(&[text], &[]).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert!(error.help().is_some(), "{text}");
    }
    let quota = answer("container_spec_cpu_quota", &[("", &[(0, "12")])]);
    let error = prometheus(&[&values("1", "2"), &quota], &[]).unwrap_err();
    assert!(error.to_string().contains("0.json, 1.json: impossible limits"), "{error}");
    assert!(error.to_string().contains("container_spec_cpu_quota is 12: "), "{error}");
    assert!(error.help().unwrap().to_string().contains("60000 per 100000"), "{error}");
    // Far above its limit, or throttled without one: units, or another container's.
    let used = answer(USED, &[("", &[(0, "0"), (15, "4500"), (30, "9000")])]);
    let counted = |name: &str| answer(name, &[("", &[(0, "0"), (30, "30")])]);
    let periods = counted("container_cpu_cfs_periods_total");
    let throttled = counted("container_cpu_cfs_throttled_periods_total");
    for (quota, problem, help) in [
        ("60000", "used 300.000 CPUs on average under a limit of 0.6", "counts seconds"),
        ("-1", "says that there is no limit, and 30 periods were throttled", "same container"),
    ] {
        let quota = answer("container_spec_cpu_quota", &[("", &[(0, quota)])]);
        let error = prometheus(&[&used, &periods, &throttled, &quota], &[]).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert!(error.help().unwrap().to_string().contains(help), "{error}");
    }
    let none = quota.replace("12", "-1");
    let limits = prometheus(&[&values("1", "2"), &none], &[]).unwrap().limits;
    assert_eq!(limits, Some(BandwidthLimits::default()));
}

/// Two hours of averages take a few kilobytes, and give the same demands when they are read.
#[test]
fn averages_are_written_without_their_demands() {
    let values: Vec<String> = (0..480)
        .map(|n| format!("[{}, \"{}\"]", 1_700_000_000 + 15 * n, n as f64 * 1.25))
        .collect();
    let answer = format!(
        r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{{"__name__":"container_cpu_usage_seconds_total"}},"values":[{}]}}]}}}}"#,
        values.join(",")
    );
    let usage = Usage::from_prometheus("two-hours", &[("a.json".into(), answer.into())], &[]);
    let usage = usage.unwrap();
    assert!(usage.demands.len() > 100_000);
    let bytes = usage.to_parquet().unwrap();
    assert!(bytes.len() < 30_000, "{} bytes", bytes.len());
    assert_eq!(Usage::from_parquet("two-hours.parquet", bytes).unwrap(), usage);
}

/// As a StatefulSet's pod moves to another node, and as a label of a running container changes.
#[test]
fn a_container_is_one_on_every_node_and_under_other_labels() {
    let of = |node: &str, id: &str, image: &str| {
        format!(
            r#""namespace":"n","pod":"db-0","container":"app","node":"{node}","id":"{id}","image":"{image}""#
        )
    };
    let used = |node: &str, id: &str, later: &[(u64, &str)]| {
        let (first, then) = (of("a", "/1", "x"), of(node, id, "y"));
        prometheus(&[&answer(USED, &[(&first, &[(0, "5"), (15, "12")]), (&then, later)])], &[])
    };
    let per_step = |usage: Usage| usage.per_period(15_000 * MS, 0);
    let moved = used("b", "/2", &[(30, "2"), (45, "3")]).unwrap();
    assert!(moved.warnings.iter().any(|w| w.contains("started over once")));
    assert_eq!(per_step(moved), [7_000 * MS, 2_000 * MS, 1_000 * MS]);
    let relabelled = used("a", "/1", &[(30, "13"), (45, "15")]).unwrap();
    assert!(!relabelled.warnings.iter().any(|w| w.contains("started over")));
    assert_eq!(per_step(relabelled), [7_000 * MS, 1_000 * MS, 2_000 * MS]);
    // Both at a time are two.
    used("b", "/2", &[(0, "2"), (15, "3"), (30, "4")]).unwrap_err();
}
