//! Plans for a group that was throttled while it was recorded, against plans for the same load
//! without a limit.

mod common;
#[path = "../../usage/tests/limited/mod.rs"]
mod limited;

use std::sync::atomic::AtomicBool;

use limited::{MS, SPAN_NS, load, recorded};
use reveille_place::InputError;
use reveille_plan::{Plan, PlanError, Request, plan, recovered};
use reveille_policy::BandwidthLimits;
use reveille_usage::{Origin, Usage};

fn request<'a>(
    machine: &'a reveille_machine::Machine,
    usage: &'a Usage,
    goal: &str,
) -> Request<'a> {
    Request { phases: 4, ..common::request(machine, usage, &[goal]) }
}

fn planned(request: &Request<'_>) -> Plan {
    plan(request, 2, &AtomicBool::new(false), &|_, _| {}).unwrap()
}

fn reserved(plan: &Plan) -> f64 {
    plan.recommended.as_ref().unwrap().reserved_cpus.unwrap()
}

#[test]
fn a_throttled_group_gets_the_advice_of_its_load_without_a_limit() {
    let machine = reveille_machine::load("skx-2s20c").unwrap();
    for (seed, quota_ms, goal) in [(1, 35, "p99=80ms"), (2, 32, "throttled<1%")] {
        let load = load(seed, 50.0, 8.0);
        let (traced, sampled) = recorded(&load, quota_ms * MS, 100 * MS);
        let free = Usage {
            demands: load,
            samples: Vec::new(),
            span_ns: SPAN_NS,
            origin: Origin::Traced,
            ..traced.clone()
        };
        let wanted = reserved(&planned(&request(&machine, &free, goal)));
        for throttled in [&traced, &sampled] {
            let mut request = request(&machine, throttled, goal);
            let recovered = recovered(&request, 2, &AtomicBool::new(false)).unwrap().unwrap();
            recovered.replaces(&mut request);
            let plan = planned(&request);
            let inferred = recovered.inferred.as_ref().unwrap();
            let what = format!("{goal}: {}, {wanted}: {inferred}", reserved(&plan));
            assert!((0.75..1.25).contains(&(reserved(&plan) / wanted)), "{what}");
            // Today is throttled as it was seen to be.
            let today = plan.today.unwrap().effect.throttled_share.median;
            let seen = inferred.throttled_share;
            assert!((today - seen).abs() < 0.25 * seen + 0.02, "{today}: {what}");
        }
    }
}

#[test]
fn counters_that_no_replay_shows_are_refused() {
    let machine = reveille_machine::load("skx-2s20c").unwrap();
    let (mut traced, _) = recorded(&load(1, 50.0, 8.0), 35 * MS, 100 * MS);
    let none = AtomicBool::new(false);
    for sample in &mut traced.samples {
        sample.nr_throttled = sample.nr_periods * 9 / 10;
    }
    let error = recovered(&request(&machine, &traced, "p99=80ms"), 2, &none).unwrap_err();
    let PlanError::Input(InputError::File(_)) = &error else { panic!("{error}") };
    assert!(error.to_string().contains("and the group was in 9"), "{error}");
    traced.limits = Some(BandwidthLimits::default());
    let error = recovered(&request(&machine, &traced, "p99=80ms"), 2, &none).unwrap_err();
    assert!(error.to_string().contains("limits are not in it"), "{error}");
    // Without any throttling only queues are inferred, and of a table of requests nothing.
    traced.samples.clear();
    let found = recovered(&request(&machine, &traced, "p99=80ms"), 2, &none).unwrap().unwrap();
    assert!(found.inferred.is_none());
    assert_eq!(found.usages[0].demands, traced.demands);
    assert!(found.usages[1..].iter().all(|usage| usage.demands.len() > traced.demands.len()));
    traced.origin = Origin::Requests;
    assert!(recovered(&request(&machine, &traced, "p99=80ms"), 2, &none).unwrap().is_none());
}
