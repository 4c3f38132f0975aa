//! `reveille bench quota`: what a quota does to an open load, predicted and measured.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use reveille_host::cgroup::HostGroups;
use reveille_host::program::{self, Setting};
use reveille_machine::{CostModel, Machine, Topology};
use reveille_measure::{RunResult, RunSpec, UNANSWERED};
use reveille_policy::{BandwidthLimits, Groups, Policy, TaskGroup};
use reveille_workload::{Arrival, Arrivals, Metric, MetricKind, Ns, Op, Program, Role, TaskSpec};

use crate::errors::CliError;
use crate::signals::watch_signals;

#[derive(clap::Args)]
pub struct QuotaArgs {
    #[arg(long, default_value = "1,3", value_delimiter = ',')]
    threads: Vec<u32>,
    #[arg(long = "use", default_value = "40,60,80", value_delimiter = ',')]
    shares: Vec<u32>,
    #[arg(long, default_value = "10,50,100,200", value_delimiter = ',')]
    periods: Vec<u64>,
    #[arg(long, default_value = "0,50,100", value_delimiter = ',')]
    bursts: Vec<u64>,
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    #[arg(long, default_value_t = 20)]
    phases: u64,
    #[arg(long, default_value = "v6.12")]
    base: String,
    #[arg(long)]
    hz: Option<u32>,
    #[arg(long)]
    phase: Option<u64>,
    #[arg(long, default_value_t = 5.0)]
    work_ms: f64,
}

const MS: u64 = 1_000_000;

fn load(threads: u32, cpus: f64, work_ms: f64, span_ns: Ns, seed: u64) -> Arrivals {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut exponential = |mean: f64| {
        let uniform = ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -uniform.ln() * mean
    };
    let gap_ns = work_ms * 1e6 * f64::from(threads) / cpus;
    let mut of_task = Vec::new();
    for _ in 0..threads {
        let mut at = 0.0;
        let mut own = Vec::new();
        loop {
            at += exponential(gap_ns);
            if at >= span_ns as f64 {
                break;
            }
            own.push(Arrival {
                at_ns: at as Ns,
                work_ns: exponential(work_ms * 1e6).max(1e4) as Ns,
            });
        }
        of_task.push(own);
    }
    // The mean as asked: a sample of few has another.
    let asked = cpus * span_ns as f64;
    let got: Ns = of_task.iter().flatten().map(|a| a.work_ns).sum();
    for a in of_task.iter_mut().flatten() {
        a.work_ns = (a.work_ns as f64 * asked / got as f64) as Ns;
    }
    Arrivals { begin_ns: 0, span_ns, of_task }
}

fn program(arrivals: Arrivals) -> Program {
    let task = TaskSpec {
        role: 0,
        process: 0,
        channel_base: 0,
        list_base: 0,
        task_base: 0,
        lock_base: 0,
        own: 0,
    };
    Program {
        name: "load".into(),
        roles: vec![Role {
            name: "thread".into(),
            ops: vec![Op::Arrive, Op::RunArrived, Op::Answer],
        }],
        tasks: vec![task; arrivals.of_task.len()],
        channels: Vec::new(),
        n_lists: 0,
        n_locks: 0,
        arrivals,
        records: Vec::new(),
        metric: Metric { name: "answers".into(), kind: MetricKind::Throughput },
    }
}

fn figures(run: &RunResult) -> (f64, f64, f64, f64) {
    let mut took = run.answers.clone();
    took.sort_unstable();
    let q = |p: f64| {
        let i = ((p * took.len() as f64).ceil() as usize).clamp(1, took.len()) - 1;
        if took[i] == UNANSWERED { f64::INFINITY } else { took[i] as f64 / 1e6 }
    };
    let g = &run.groups[0];
    (100.0 * g.nr_throttled as f64 / g.nr_periods.max(1) as f64, q(0.5), q(0.99), q(1.0))
}

pub fn quota(args: &QuotaArgs) -> Result<ExitCode, CliError> {
    let command = std::env::current_exe().unwrap();
    let stop = watch_signals()?;
    let base = reveille_machine::load("host").unwrap();
    let machine = Machine {
        topology: Topology::uniform(1, 1, 2, 1).unwrap(),
        hz: args.hz.unwrap_or(250),
        cost: CostModel { noise: 0.0, ..base.cost.clone() },
        ..base
    };
    let policy = Policy::baseline(&args.base).unwrap();
    let mut inside = (0, 0, 0);
    for &threads in &args.threads {
        let mut errors = Vec::new();
        let mut shares = Vec::new();
        for &share in &args.shares {
            for &period in &args.periods {
                for &burst in &args.bursts {
                    let cpus = if threads == 1 { 0.5 } else { 1.0 };
                    let quota_ns = (cpus * (period * MS) as f64) as Ns;
                    let span = args.seconds * 1000 * MS;
                    let arrivals = load(
                        threads,
                        cpus * f64::from(share) / 100.0,
                        args.work_ms,
                        span,
                        7 + u64::from(threads * 100 + share),
                    );
                    let program = program(arrivals);
                    let limits = BandwidthLimits {
                        quota_ns: (burst != 999).then_some(quota_ns),
                        period_ns: period * MS,
                        burst_ns: if burst == 999 { 0 } else { quota_ns * burst / 100 },
                    };
                    let group = |phase_ns| Groups {
                        groups: vec![TaskGroup {
                            name: "g".into(),
                            parent: None,
                            limits,
                            roles: vec![],
                            phase_ns,
                        }],
                        ..Groups::default()
                    };
                    let spec = RunSpec { seed: 1, warmup_ns: 1000 * MS, duration_ns: span };
                    let mut runs: Vec<_> = (0..args.phases)
                        .map(|k| {
                            let phase = args
                                .phase
                                .map_or((2 * k + 1) * period * MS / (2 * args.phases), |p| p * MS);
                            let spec = RunSpec { seed: k + 1, ..spec };
                            let mut program = program.clone();
                            program.arrivals.begin_ns =
                                (k * 7 % args.phases) * 4 * MS / args.phases;
                            figures(
                                &reveille_sim::run(
                                    &machine,
                                    &program,
                                    &policy,
                                    &group(Some(phase)),
                                    &spec,
                                    &AtomicBool::new(false),
                                )
                                .unwrap(),
                            )
                        })
                        .collect();
                    let groups = group(args.phase.map(|p| p * MS));
                    let made = HostGroups::create(&groups)?;
                    let setting = Setting { cpus: vec![], groups: made.files(&groups)? };
                    let host = program::run(&command, &program, &setting, &spec, &stop)?;
                    let m = figures(&host.result);
                    let mut range = |f: fn(&(f64, f64, f64, f64)) -> f64| {
                        runs.sort_by(|a, b| f(a).total_cmp(&f(b)));
                        (f(&runs[0]), f(&runs[runs.len() / 2]), f(&runs[runs.len() - 1]))
                    };
                    let (t, p50, p99, max) =
                        (range(|r| r.0), range(|r| r.1), range(|r| r.2), range(|r| r.3));
                    let is_in = |r: (f64, f64, f64), m: f64| m >= r.0 && m <= r.2;
                    inside.0 += 1;
                    inside.1 += u32::from(is_in(t, m.0));
                    inside.2 += u32::from(is_in(p99, m.2));
                    errors.push((m.2 / p99.1 - 1.0).abs());
                    shares.push((m.0 - t.1).abs());
                    println!(
                        "{threads} {share:3}% {period:4} b{burst:3}  thr {:5.1} [{:5.1} {:5.1} {:5.1}]{}  p50 {:6.2} [{:6.2} {:6.2} {:6.2}]  p99 {:7.2} [{:7.2} {:7.2} {:7.2}]{} {:+5.1}%  max {:7.2} [{:7.2} {:7.2} {:7.2}] use {:.3} others {:.3}",
                        m.0,
                        t.0,
                        t.1,
                        t.2,
                        if is_in(t, m.0) { ' ' } else { '!' },
                        m.1,
                        p50.0,
                        p50.1,
                        p50.2,
                        m.2,
                        p99.0,
                        p99.1,
                        p99.2,
                        if is_in(p99, m.2) { ' ' } else { '!' },
                        100.0 * (m.2 / p99.1 - 1.0),
                        m.3,
                        max.0,
                        max.1,
                        max.2,
                        host.result.groups[0].usage_ns as f64 / span as f64,
                        (host.result.cpus.iter().map(|c| c.busy_ns + c.cost_ns).sum::<u64>()
                            as f64
                            - host.result.groups[0].usage_ns as f64)
                            / span as f64
                    );
                }
            }
        }
        errors.sort_by(f64::total_cmp);
        shares.sort_by(f64::total_cmp);
        println!(
            "{threads} threads: p99 median error {:.1}% (90%: {:.1}%), throttled median {:.2} points; inside {inside:?}",
            100.0 * errors[errors.len() / 2],
            100.0 * errors[errors.len() * 9 / 10],
            shares[shares.len() / 2]
        );
    }
    Ok(ExitCode::SUCCESS)
}
