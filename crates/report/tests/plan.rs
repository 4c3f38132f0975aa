//! The plan as a screen of a terminal and as a page: what they must say in every case, and
//! that names from files stay names.

#[path = "common/plan.rs"]
mod plans;

use reveille_plan::{
    Alternative, Change, Goal, Inferred, InferredFrom, Observed, Picture, Plan, Range, Strip,
};
use reveille_report::{Made, plan_table};
use reveille_usage::Origin;

fn plan_html(plan: &Plan, pictures: &[Picture]) -> String {
    let made = Made { command: "reveille plan".into(), date: "2026-03-01".into() };
    reveille_report::plan_html(plan, pictures, &made)
}

/// Every case that a view has to cope with.
fn cases() -> Vec<(&'static str, Plan)> {
    let mut no_today = plans::service();
    no_today.today = None;
    let mut hostile = plans::with_neighbours(&[HOSTILE]);
    hostile.recording.name = HOSTILE.into();
    hostile.warnings.push(HOSTILE.into());
    vec![
        ("service", plans::service()),
        ("one-neighbour", plans::with_neighbours(&["batch"])),
        ("three-neighbours", plans::with_neighbours(&["batch", "search", "a-name-that-is-long"])),
        ("no-today", no_today),
        ("nothing", plans::nothing()),
        ("without-quota", plans::without_quota()),
        ("hostile", hostile),
    ]
}

const HOSTILE: &str = "</script><script>alert(1)</script>\u{1b}[31m{{body}}";

#[test]
fn a_quota_above_the_node_is_no_limit() {
    let mut plan = plans::without_quota();
    for (how, applies) in [("remove its quota", true), ("leave it without one", false)] {
        let text = plan_table(&plan, 100, false).replace("\n           ", " ");
        assert!(
            text.contains("no quota of up to 4 CPUs was found with which checkout meets"),
            "{text}"
        );
        assert!(text.contains(how) && !text.contains("It reserves"), "{text}");
        // Only a quota that is set has to be removed.
        assert_eq!(text.contains("echo max 100000 >cpu.max"), applies, "{text}");
        assert_eq!(text.contains("--apply"), applies, "{text}");
        assert_eq!(plan_html(&plan, &[]).contains("To apply it"), applies);
        plan.today = None;
    }
}

/// A group that is throttled in the middle of its recording.
fn pictures(plan: &Plan) -> Vec<Picture> {
    let shown = plan.today.iter().chain(&plan.recommended);
    shown
        .map(|shown| {
            let quota = shown.limits.quota_ns.map(|quota| quota as f64);
            let full = quota.map(|quota| quota + shown.limits.burst_ns as f64);
            let strip = |from_ns: u64, length_ns: f64| {
                let wave = |i: usize| ((i as f64) / 40.0).sin().abs();
                Strip {
                    from_ns,
                    step_ns: length_ns / 600.0,
                    used_cpus: (0..600).map(|i| 0.2 + 0.5 * wave(i)).collect(),
                    least_ns: full.map_or(Vec::new(), |f| {
                        (0..600).map(|i| f * (0.6 - 0.6 * wave(i))).collect()
                    }),
                    most_ns: full.map_or(Vec::new(), |f| {
                        (0..600).map(|i| f * (1.0 - 0.5 * wave(i))).collect()
                    }),
                    throttled_share: (0..600)
                        .map(|i| if wave(i) > 0.97 { 0.7 } else { 0.0 })
                        .collect(),
                }
            };
            Picture {
                limits: shown.limits,
                phase: 0.5,
                whole: strip(0, 59.9e9),
                close: Some(strip(31_200_000_000, 2e9)),
            }
        })
        .collect()
}

#[test]
fn a_screen_has_room_at_any_width() {
    for (name, plan) in cases() {
        for width in [60, 72, 80, 100, 132, 200] {
            let screen = plan_table(&plan, width, false);
            for line in screen.lines() {
                assert!(line.chars().count() <= width, "{name} at {width}: `{line}`");
                assert!(!line.contains('\u{1b}') && line == line.trim_end(), "{name}: `{line}`");
            }
        }
    }
    // Five settings stand side by side in the narrowest terminal in use.
    let mut five = plans::service();
    let burst = plans::shown(plans::limits(70, 100, 70), 19.9, 0.0009, 0.95);
    five.alternatives.insert(0, Alternative { change: Change::Burst, shown: burst });
    let screen = plan_table(&five, 80, false);
    assert_eq!(screen.matches("cpu.max.burst  ").count(), 1, "{screen}");
    // One screen: no more lines than a terminal of usual size has.
    let lines = |plan: &Plan, width| plan_table(plan, width, false).lines().count();
    assert!(lines(&plans::service(), 100) <= 48, "{}", lines(&plans::service(), 100));
    assert!(lines(&plans::service(), 160) <= lines(&plans::service(), 100));
}

#[test]
fn colours_only_repeat_the_text() {
    for (name, plan) in cases() {
        let (plain, painted) = (plan_table(&plan, 100, false), plan_table(&plan, 100, true));
        assert!(painted.contains("\u{1b}[1m"), "{name}");
        let mut stripped = String::new();
        for (i, piece) in painted.split('\u{1b}').enumerate() {
            let rest = if i == 0 { piece } else { piece.split_once('m').unwrap().1 };
            stripped.push_str(rest);
        }
        assert_eq!(stripped, plain, "{name}");
    }
}

#[test]
fn a_screen_says_what_is_and_what_is_not() {
    for (name, plan) in cases().into_iter().filter(|(name, _)| *name != "hostile") {
        insta::assert_snapshot!(format!("screen_{name}"), plan_table(&plan, 100, false));
    }
}

#[test]
fn latency_beyond_the_model_has_the_causes_that_the_recording_allows() {
    let range = Range { min: 21.7e6, median: 21.7e6, max: 21.7e6 };
    let mut plan = plans::service();
    plan.observed = Some(Observed {
        requests: 1200,
        p50_ns: 12.4e6,
        p99_ns: 474e6,
        model_p50_ns: range,
        model_p99_ns: range,
    });
    for (origin, cause) in [
        (Origin::Traced, "waited for a CPU that others used"),
        (Origin::Requests, "is not explained by CPU time"),
    ] {
        plan.recording.origin = origin;
        let screen = plan_table(&plan, 100, false);
        let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(cause), "{words}");
    }
}

/// A goal on a live recording limits pieces of work, and a request may be several.
#[test]
fn a_latency_goal_says_whose_latency_it_limits() {
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let range = Range { min: 21.7e6, median: 21.7e6, max: 21.7e6 };
    let mut plan = plans::service();
    plan.goals = ["throttled<1%", "p99=100ms"].map(|goal| Goal::parse(goal).unwrap()).to_vec();
    plan.observed = Some(Observed {
        requests: 8658,
        p50_ns: 12.4e6,
        p99_ns: 21.7e6,
        model_p50_ns: range,
        model_p99_ns: range,
    });
    let rule = "p99.8=20ms for the pieces keeps p99=100ms for the request";
    for (origin, piece) in [
        (Origin::Traced, "a piece of work, from wakeup to sleep"),
        (Origin::Sampled { resolution_ns: 4_000_000 }, "a piece of work, what ran without a break"),
    ] {
        plan.recording.origin = origin;
        for text in [words(plan_table(&plan, 100, false)), words(plan_html(&plan, &[]))] {
            for told in [piece, rule, "of 8,658 pieces of work"] {
                assert!(text.contains(told), "{told}: {text}");
            }
        }
    }
    plan.goals = vec![Goal::parse("max<100ms").unwrap()];
    assert!(
        words(plan_table(&plan, 100, false)).contains("max<20ms for the pieces keeps max<100ms")
    );
    plan.recording.origin = Origin::Requests;
    let text = words(plan_table(&plan, 100, false));
    assert!(text.contains("of 8,658 requests") && !text.contains("for the pieces"), "{text}");
    plan.recording.origin = Origin::Traced;
    plan.goals = vec![Goal::parse("throttled<1%").unwrap()];
    assert!(!plan_table(&plan, 100, false).contains("for the pieces"));
}

/// What was counted under today's limit stands beside what is simulated; another limit has no count.
#[test]
fn throttling_that_was_counted_is_told_from_that_simulated() {
    let words =
        |plan: &Plan| plan_table(plan, 100, false).split_whitespace().collect::<Vec<_>>().join(" ");
    let mut plan = plans::service();
    let from = InferredFrom::Counters { span_ns: 1_785_000_000_000, step_ns: 15_000_000_000 };
    let replayed_share = Range { min: 0.03, median: 0.05, max: 0.07 };
    plan.inferred = Some(Inferred { from, recordings: 50, throttled_share: 0.047, replayed_share });
    plan.recording.limits = plan.today.as_ref().map(|today| today.limits);
    let text = words(&plan);
    let told = "4.70% of periods throttled, as counted (12.3% in the loads that fit)";
    assert!(text.contains(told), "{text}");
    plan.recording.limits = None;
    let text = words(&plan);
    assert!(text.contains("12.3% of periods throttled in the loads that fit"), "{text}");
}

/// Every place that could make a browser fetch something.
const FETCHES: [&str; 8] =
    [" src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest", "<link", "<iframe"];

#[test]
fn the_page_fetches_nothing_and_escapes_names() {
    for (name, plan) in cases() {
        let page = plan_html(&plan, &pictures(&plan));
        let rest = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!rest.contains("http://") && !rest.contains("https://"), "{name}");
        for fetch in FETCHES {
            assert!(!page.contains(fetch), "{name}: {fetch}");
        }
        assert!(page.contains("default-src 'none'"));
        // The data block and the script.
        assert_eq!(page.matches("</script>").count(), 2, "{name}");
        assert_eq!(page.matches("<script").count(), 2, "{name}");
        assert!(page.len() < 400_000, "{name}: {} bytes", page.len());
        assert_eq!(page, plan_html(&plan, &pictures(&plan)));
    }
}

#[test]
fn the_data_block_is_json() {
    for (name, plan) in cases() {
        let page = plan_html(&plan, &pictures(&plan));
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
        let settings = data["settings"].as_array().unwrap();
        let shown =
            plan.today.iter().count() + plan.recommended.iter().count() + plan.alternatives.len();
        assert_eq!(settings.len(), shown, "{name}");
        // What is never done is no point of a curve.
        for setting in settings {
            assert!(setting["cdf"].as_array().unwrap().iter().all(|p| p[0].is_number()), "{name}");
        }
    }
    let page = plan_html(&plans::without_quota(), &[]);
    assert!(page.contains("\"p99\":null"));
}

#[test]
fn the_page_says_the_answer_and_shows_only_what_there_is() {
    let page = |plan: &Plan| plan_html(plan, &pictures(plan));
    let service = page(&plans::service());
    let title = "checkout meets p99=20ms and throttled&lt;0.1% with 60 ms per 100 ms and a burst of \
                 45 ms";
    assert!(service.contains(&format!("<title>{title}</title>")), "{}", &service[..600]);
    assert!(service.contains("echo 60000 100000 &gt;cpu.max"));
    assert!(service.contains("<small>recommended</small>") && service.contains("<small>today"));
    assert!(!service.contains("Groups by two") && !service.contains("P(miss)"));
    let neighbours = page(&plans::with_neighbours(&["batch", "search"]));
    // checkout with each, and both with each other.
    assert!(neighbours.contains("Groups by two") && neighbours.contains("batch and search"));
    let nothing = page(&plans::nothing());
    for absent in ["id=\"over-time\"", "id=\"latency\"", "id=\"map\"", "id=\"apply\"", "<pre"] {
        assert!(!nothing.contains(absent), "{absent}");
    }
    assert!(!plan_html(&plans::service(), &[]).contains("id=\"over-time\""));
}
