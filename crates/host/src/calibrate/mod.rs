//! Measures the costs of this host's mechanisms and turns them into a machine file, from which the
//! simulator predicts this host. Each probe runs in its own child process; `derive` computes
//! constants from the results.

mod caches;
mod calls;
mod constants;
mod derive;
mod host;
mod idle_states;
mod interrupts;
mod noise;
mod pairs;
mod pass;
mod samples;
mod value;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use reveille_machine::{CpuId, Distance, Topology};
use reveille_measure::Ns;
use reveille_workload::ChannelKind;
use serde::{Deserialize, Serialize};

pub use calls::Kind;
pub use constants::Derived;
pub use derive::{Calibration, derive};
pub use host::Host;
pub use noise::{MOST_FOREIGN, MOST_SPREAD, MOST_STEAL, Noise};
pub use pairs::{By, Meanwhile};
pub use samples::{Measurement, Sketch};

use crate::error::{HostError, Result};
use crate::supervise::{self, Job, Place, Runner};
use crate::sys::cpu;

/// CPUs of the measuring task and its partner, by the host's numbers.
pub type Cpus = (CpuId, CpuId);

/// Sleep lengths before a wakeup on an idle CPU: from a ping-pong's up to beyond any polling.
pub const GAPS_NS: [Ns; 5] = [20_000, 100_000, 300_000, 1_000_000, 3_000_000];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A fixed loop, to detect noise.
    Spin,
    Calls,
    /// Messages from a task to itself.
    Messages(Kind),
    Hop(By, Cpus),
    /// A message from one CPU to another, or to the same, without a wakeup.
    Pass(ChannelKind, Cpus),
    /// Context switches without wakeups.
    Yields,
    /// The waker's call, on its own CPU.
    WakeCall,
    /// A wakeup on another CPU after a sleep of this many ns.
    Wake(Cpus, Meanwhile, Ns),
    /// Transfer of a modified cache line.
    Line(Cpus),
    /// A working set after a migration.
    Cold(Cpus),
    /// Slowdown by an SMT sibling.
    Smt(Cpus),
    Ipi(Cpus),
    Tick,
    /// Lateness of sleeps.
    Slack,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Probe {
    pub what: What,
    /// The CPU on which the host's speed is checked, and on which single-CPU probes run.
    pub home: CpuId,
    /// Distance of the two CPUs, as used in names: `same`, `smt`, `llc`, `socket`, `remote`.
    pub place: String,
    /// Measuring time in ns; the probe as a whole takes longer.
    pub time_ns: Ns,
}

inventory::submit!(Runner::of::<Probe>());

impl Job for Probe {
    const NAME: &'static str = "probe";
    type Output = Vec<Sketch>;

    fn run(self) -> Result<Vec<Sketch>> {
        let home = self.home;
        pin(home)?;
        let before = noise::speed();
        let sketches = self.sketches()?;
        pin(home)?;
        let speed = [before, noise::speed()];
        Ok(sketches.into_iter().map(|s| s.at_speed(speed)).collect())
    }
}

impl Probe {
    fn sketches(self) -> Result<Vec<Sketch>> {
        let Probe { what, place, time_ns: time, .. } = self;
        match what {
            What::Spin => Ok(noise::spin(time)),
            What::Calls => Ok(calls::calls(time)),
            What::Messages(kind) => calls::messages(kind, time),
            What::Hop(by, cpus) => pairs::hop(by, cpus, &place, time),
            What::Pass(kind, cpus) => pass::pass(kind, cpus, &place, time),
            What::Yields => pairs::yields(time),
            What::WakeCall => pairs::wake_call(time),
            What::Wake(cpus, meanwhile, gap) => pairs::wake(cpus, &place, gap, meanwhile, time),
            What::Line(cpus) => caches::line(cpus, &place, time),
            What::Cold(cpus) => caches::cold(cpus, &place, time),
            What::Smt(cpus) => caches::smt(cpus, time),
            What::Ipi(cpus) => interrupts::ipi(cpus, &place, time),
            What::Tick => interrupts::tick(time),
            What::Slack => interrupts::slack(time),
        }
    }
}

fn pin(cpu: CpuId) -> Result<()> {
    cpu::pin(&[cpu]).map_err(|e| {
        HostError::system(format!("run on CPU {cpu}"), e, "allow it, with taskset or cpuset")
    })
}

pub fn allowed_cpus() -> Result<Vec<CpuId>> {
    cpu::allowed().map_err(|e| HostError::system("read the affinity", e, "report it"))
}

/// The word for a distance in names of measurements.
pub fn place_name(distance: Distance) -> &'static str {
    match distance {
        Distance::Same => "same",
        Distance::Smt => "smt",
        Distance::Cluster => "cluster",
        Distance::Llc => "llc",
        Distance::Socket => "socket",
        Distance::Remote => "remote",
    }
}

/// One pair of CPUs for each distance among the CPUs in `allowed`, nearest first, by the host's
/// numbers.
pub fn pairs(topology: &Topology, allowed: &[CpuId]) -> Vec<(Distance, Cpus)> {
    let cpus: Vec<CpuId> = (0..topology.n_cpus() as CpuId)
        .filter(|&c| allowed.contains(&topology.cpus()[c as usize].os_cpu))
        .collect();
    let Some(&home) = cpus.get(1).or(cpus.first()) else { return Vec::new() };
    let os = |c: CpuId| topology.cpus()[c as usize].os_cpu;
    let mut pairs = vec![(Distance::Same, (os(home), os(home)))];
    use Distance::{Cluster, Llc, Remote, Smt, Socket};
    for distance in [Smt, Cluster, Llc, Socket, Remote] {
        let at = |a: CpuId| cpus.iter().find(|&&b| topology.distance(a, b) == distance);
        // Prefer the usual home; take another CPU if it has no such neighbour.
        let found = std::iter::once(&home).chain(&cpus).find_map(|&a| at(a).map(|&b| (a, b)));
        pairs.extend(found.map(|(a, b)| (distance, (os(a), os(b)))));
    }
    pairs
}

/// Everything to measure on a host with these pairs, once.
fn round(pairs: &[(Distance, Cpus)]) -> Vec<(&'static str, What)> {
    let mut list = vec![("same", What::Spin), ("same", What::Calls)];
    for kind in [Kind::Pipe, Kind::PipePage, Kind::Unix, Kind::UnixDeep, Kind::Udp, Kind::Tcp] {
        list.push(("same", What::Messages(kind)));
    }
    list.extend([("same", What::Yields), ("same", What::WakeCall)]);
    for &(distance, cpus) in pairs {
        let place = place_name(distance);
        list.push((place, What::Hop(By::Futex, cpus)));
        list.push((place, What::Hop(By::PipeProcesses, cpus)));
        if distance == Distance::Same {
            list.push((place, What::Hop(By::PipeThreads, cpus)));
            continue;
        }
        list.push((place, What::Line(cpus)));
        list.push((place, What::Cold(cpus)));
        list.push((place, What::Ipi(cpus)));
        list.push((place, What::Wake(cpus, Meanwhile::Spinner, GAPS_NS[0])));
        if distance == Distance::Smt {
            list.push((place, What::Smt(cpus)));
        }
    }
    if let Some((distance, cpus)) = idle_pair(pairs) {
        let wakes = GAPS_NS.map(|gap| What::Wake(cpus, Meanwhile::Idle, gap));
        list.extend(wakes.map(|what| (place_name(distance), what)));
    }
    if let Some((distance, cpus)) = farthest(pairs) {
        let home = pairs[0].1;
        for kind in pass::KINDS {
            list.push(("same", What::Pass(kind, home)));
            list.push((place_name(distance), What::Pass(kind, cpus)));
        }
    }
    list.extend([("same", What::Tick), ("same", What::Slack)]);
    list
}

/// Idle exit does not depend on the waker, so one pair suffices: the nearest that are not SMT
/// siblings, which would slow each other.
fn idle_pair(pairs: &[(Distance, Cpus)]) -> Option<(Distance, Cpus)> {
    pairs.iter().find(|(d, _)| *d > Distance::Smt).or(pairs.get(1)).copied()
}

/// The farthest pair: there the lines stand out most from the calls' own variation.
fn farthest(pairs: &[(Distance, Cpus)]) -> Option<(Distance, Cpus)> {
    pairs.last().filter(|(d, _)| *d > Distance::Smt).copied()
}

/// All probes, in `rounds` rounds, within `total` of measuring time.
pub fn plan(pairs: &[(Distance, Cpus)], rounds: u32, total: Ns) -> Vec<Probe> {
    let Some(&(_, (home, _))) = pairs.first() else { return Vec::new() };
    let round = round(pairs);
    let time_ns = total / u64::from(rounds) / round.len() as u64;
    let probe =
        |(place, what): (&str, What)| Probe { what, home, place: place.to_owned(), time_ns };
    (0..rounds).flat_map(|_| round.clone()).map(probe).collect()
}

/// Runs the probes in order, and calls `tell` with the number completed.
pub fn measure(
    program: &Path,
    probes: &[Probe],
    stop: &AtomicBool,
    tell: &dyn Fn(usize),
) -> Result<Vec<Measurement>> {
    let mut sketches = Vec::new();
    for (done, probe) in probes.iter().enumerate() {
        tell(done);
        sketches.extend(supervise::run(program, &Place::default(), probe.clone(), stop)?);
    }
    tell(probes.len());
    Ok(samples::pool(sketches))
}

#[cfg(test)]
mod tests {
    use reveille_machine::load;

    use super::*;

    /// Rounds of 40 ms until everything has samples enough: others load the host as well.
    fn run(what: What, place: &str, home: CpuId) -> Vec<Measurement> {
        let probe = Probe { what, home, place: place.to_owned(), time_ns: 40_000_000 };
        let mut sketches = Vec::new();
        for _ in 0..25 {
            let round = probe.clone().run().unwrap();
            let things = round.len();
            sketches.extend(round);
            let pooled = samples::pool(sketches.clone());
            if pooled.len() == things {
                return pooled;
            }
        }
        samples::pool(sketches)
    }

    fn get(found: &[Measurement], name: &str) -> Measurement {
        let found = found.iter().find(|m| m.name == name);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    }

    #[test]
    fn a_pair_for_each_distance_that_there_is() {
        let spr = load("spr-2s56c").unwrap().topology;
        let all: Vec<CpuId> = (0..224).collect();
        let found = pairs(&spr, &all);
        let distances: Vec<Distance> = found.iter().map(|(d, _)| *d).collect();
        assert_eq!(distances, [Distance::Same, Distance::Smt, Distance::Llc, Distance::Remote]);
        for (distance, (a, b)) in found {
            assert_eq!(spr.distance(a, b), distance);
        }
        // Only CPUs that are allowed; a lone one has itself.
        let few = pairs(&spr, &[3, 115]);
        assert_eq!(few, [(Distance::Same, (115, 115)), (Distance::Smt, (115, 3))]);
        assert_eq!(pairs(&spr, &[7]), [(Distance::Same, (7, 7))]);
        assert!(pairs(&spr, &[]).is_empty() && plan(&[], 1, 1_000_000).is_empty());
    }

    #[test]
    fn a_plan_has_every_distance_in_every_round_and_keeps_its_time() {
        let spr = load("spr-2s56c").unwrap().topology;
        let pairs = pairs(&spr, &(0..224).collect::<Vec<_>>());
        let plan = plan(&pairs, 3, 3_000_000_000);
        let lines = |place: &str| {
            let is = |p: &&Probe| p.place == place && matches!(p.what, What::Line(_));
            plan.iter().filter(is).count()
        };
        assert_eq!(["smt", "llc", "socket", "remote"].map(lines), [3, 3, 0, 3]);
        assert!(plan.iter().map(|p| p.time_ns).sum::<Ns>() <= 3_000_000_000);
        let passes = |place: &str| {
            let is = |p: &&Probe| p.place == place && matches!(p.what, What::Pass(..));
            plan.iter().filter(is).count()
        };
        // Of each kind on one CPU and at the farthest distance.
        assert_eq!(["same", "smt", "llc", "remote"].map(passes), [12, 0, 0, 12]);
        let idle = plan.iter().filter(|p| matches!(p.what, What::Wake(_, Meanwhile::Idle, _)));
        assert_eq!(idle.count(), 3 * GAPS_NS.len());
    }

    // Each on CPUs that the test may use; what is compared is measured at the same time.

    #[test]
    fn calls_cost_more_than_the_clock_and_messages_more_than_calls() {
        let home = allowed_cpus().unwrap()[0];
        let calls = run(What::Calls, "same", home);
        let syscall = get(&calls, "syscall").median;
        assert!(syscall > 10.0 && get(&calls, "futex_wake").p90 > 10.0);
        for kind in [Kind::Pipe, Kind::PipePage, Kind::Unix, Kind::UnixDeep, Kind::Udp, Kind::Tcp] {
            let found = run(What::Messages(kind), "same", home);
            assert_eq!(found.len(), 2, "{kind:?}");
            assert!(found.iter().all(|m| m.median > 10.0 && m.samples >= 10), "{found:?}");
        }
    }

    #[test]
    fn round_trips_switch_between_their_tasks() {
        let home = allowed_cpus().unwrap()[0];
        for by in [By::Futex, By::PipeThreads] {
            let found = run(What::Hop(by, (home, home)), "same", home);
            assert_eq!(found.len(), 2, "{found:?}");
            let hop = &found[0];
            // No switch takes less than a tenth of a microsecond.
            assert!(hop.name.ends_with("hop_same") && hop.median > 100.0, "{hop:?}");
        }
        let found = run(What::Yields, "same", home);
        assert!(get(&found, "yield_switch").median > 50.0);
        assert!(get(&found, "yield_share").median > 0.5, "they give way to each other");
        let call = get(&run(What::WakeCall, "same", home), "futex_wake_call_same");
        assert!(call.median > 50.0, "{call:?}");
    }

    #[test]
    fn neighbours_are_woken_and_interrupted() {
        let host = load("host").unwrap();
        let pairs = pairs(&host.topology, &allowed_cpus().unwrap());
        let Some((distance, cpus)) = idle_pair(&pairs) else { return };
        let place = place_name(distance);
        let line = get(&run(What::Line(cpus), place, cpus.0), &format!("line_{place}"));
        assert!(line.median > 1.0, "{line:?}");
        let wake = run(What::Wake(cpus, Meanwhile::Spinner, 20_000), place, cpus.0);
        let latency = get(&wake, &format!("wake_busy_{place}"));
        assert!(latency.median > line.median, "{latency:?} {line:?}");
        let hop = run(What::Hop(By::Futex, cpus), place, cpus.0);
        assert!(get(&hop, &format!("futex_hop_{place}")).median > line.median);
        for kind in pass::KINDS {
            let name = pass::name(kind).0;
            // At least the line that tells the receiver; on a busy host perhaps at the third try.
            let costs_a_line = (0..3).any(|_| {
                let alone = run(What::Pass(kind, (cpus.0, cpus.0)), "same", cpus.0);
                let apart = run(What::Pass(kind, cpus), place, cpus.0);
                let alone = get(&alone, &format!("{name}_pass_same"));
                let apart = get(&apart, &format!("{name}_pass_{place}"));
                println!("{apart:?} {alone:?} {line:?}");
                apart.median > alone.median + line.median
            });
            assert!(costs_a_line, "{name}");
        }
    }

    #[test]
    fn a_message_to_a_cpu_that_there_is_not_names_it() {
        let home = allowed_cpus().unwrap()[0];
        let what = What::Pass(ChannelKind::Pipe, (home, 9_999));
        let probe = Probe { what, home, place: "llc".to_owned(), time_ns: 40_000_000 };
        let error = probe.run().unwrap_err();
        assert!(error.to_string().contains("CPU 9999"), "{error}");
    }

    #[test]
    fn sleeps_are_later_with_the_usual_slack() {
        let home = allowed_cpus().unwrap()[0];
        let found = run(What::Slack, "same", home);
        let slack = get(&found, "timer_slack").median;
        let (usual, exact) = (get(&found, "oversleep"), get(&found, "oversleep_exact"));
        // Threads of a process have the slack that their maker had.
        assert!(slack > 1.0 && usual.median >= exact.median, "{usual:?} {exact:?}");
    }
}
