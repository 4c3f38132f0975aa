//! Every machine that ships holds the rules that machine files are held to.

use reveille_machine::{CostModel, DEFAULT_HZ, MAX_FITTED, cost_model_names, load, preset_names};

#[test]
fn every_preset_loads_and_keeps_the_rules() {
    for name in preset_names() {
        let machine = load(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(machine.name, name);
        assert!(!machine.about.is_empty() && !machine.source.is_empty(), "{name}");
        assert!(machine.fitted().len() <= MAX_FITTED, "{name}: {:?}", machine.fitted());
        assert_eq!(machine.constants.len(), CostModel::KEYS.len(), "{name}");
        for (c, key) in machine.constants.iter().zip(CostModel::KEYS) {
            assert_eq!(c.key, *key);
            assert!(c.low <= c.value && c.value <= c.high, "{name}: {key}");
            assert!(!c.origin.text().is_empty() && !c.meaning.is_empty(), "{name}: {key}");
            assert_eq!(machine.cost.get(key), Some(c.value), "{name}: {key}");
        }
        for state in &machine.idle {
            let exit = state.exit_low_ns..=state.exit_high_ns;
            assert!(exit.contains(&state.exit_ns), "{name}: {}", state.name);
        }
        assert!(!machine.idle.is_empty(), "{name}");
    }
}

#[test]
fn every_machine_file_is_a_preset() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let files = std::fs::read_dir(dir).expect(dir).map(|entry| entry.expect(dir).path());
    let mut stems: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    let mut known: Vec<&str> = preset_names().into_iter().chain(cost_model_names()).collect();
    stems.sort_unstable();
    known.sort_unstable();
    assert_eq!(stems, known);
}

#[test]
fn presets_have_the_shape_of_their_mails() {
    let shapes = [
        ("spr-1s56c", "1 socket x 56 cores x 2 threads = 112 CPUs, 1 LLC of 112 CPUs"),
        ("spr-2s30c", "1 socket x 60 cores x 2 threads = 120 CPUs, 2 LLCs of 60 CPUs"),
        ("spr-2s56c", "2 sockets x 56 cores x 2 threads = 224 CPUs, 2 LLCs of 112 CPUs"),
        ("spr-2s60c", "2 sockets x 60 cores x 2 threads = 240 CPUs, 2 LLCs of 120 CPUs"),
        ("cfl-1s8c", "1 socket x 8 cores x 2 threads = 16 CPUs, 1 LLC of 16 CPUs"),
        ("icx-guest-32", "1 socket x 16 cores x 2 threads = 32 CPUs, 1 LLC of 32 CPUs"),
        ("icx-2s32c", "2 sockets x 32 cores x 2 threads = 128 CPUs, 2 LLCs of 64 CPUs"),
        ("cpl-1s26c", "1 socket x 26 cores x 2 threads = 52 CPUs, 1 LLC of 52 CPUs"),
        ("skx-2s20c", "2 sockets x 20 cores x 2 threads = 80 CPUs, 2 LLCs of 40 CPUs"),
        ("zen4-7950x", "1 socket x 16 cores x 2 threads = 32 CPUs, 2 LLCs of 16 CPUs"),
        ("zen3-milan-36c", "1 socket x 36 cores x 2 threads = 72 CPUs, 6 LLCs of 12 CPUs"),
        ("zen4c-bergamo-88c", "1 socket x 88 cores x 2 threads = 176 CPUs, 11 LLCs of 16 CPUs"),
        ("bdw-2s20c", "2 sockets x 20 cores x 2 threads = 80 CPUs, 2 LLCs of 40 CPUs"),
        ("hsw-2s12c", "2 sockets x 12 cores x 2 threads = 48 CPUs, 2 LLCs of 24 CPUs"),
        ("hsw-2s24c", "2 sockets x 24 cores x 2 threads = 96 CPUs, 2 LLCs of 48 CPUs"),
        ("quad-1s4c", "1 socket x 4 cores x 1 thread = 4 CPUs, 1 LLC of 4 CPUs"),
        (
            "milan-2s32c-nps2",
            "2 sockets x 32 cores x 2 threads = 128 CPUs, 16 LLCs of 8 CPUs, 4 memory nodes",
        ),
        ("milan-2s64c", "2 sockets x 64 cores x 2 threads = 256 CPUs, 16 LLCs of 16 CPUs"),
        (
            "milan-2s64c-nps2",
            "2 sockets x 64 cores x 2 threads = 256 CPUs, 16 LLCs of 16 CPUs, 4 memory nodes",
        ),
        (
            "milan-2s64c-nps4",
            "2 sockets x 64 cores x 2 threads = 256 CPUs, 16 LLCs of 16 CPUs, 8 memory nodes",
        ),
        ("bergamo-2s128c", "2 sockets x 128 cores x 2 threads = 512 CPUs, 32 LLCs of 16 CPUs"),
        ("kp920-1n32c", "1 socket x 32 cores x 1 thread = 32 CPUs, 1 LLC of 32 CPUs, 8 clusters"),
        (
            "kp920-2n64c",
            "1 socket x 64 cores x 1 thread = 64 CPUs, 2 LLCs of 32 CPUs, 16 clusters, 2 memory nodes",
        ),
        ("altra-1s80c", "1 socket x 80 cores x 1 thread = 80 CPUs, 1 LLC of 80 CPUs"),
        ("clx-2s26c", "2 sockets x 26 cores x 2 threads = 104 CPUs, 2 LLCs of 52 CPUs"),
        ("clx-8260", "2 sockets x 24 cores x 2 threads = 96 CPUs, 2 LLCs of 48 CPUs"),
        (
            "clx-8260-snc",
            "2 sockets x 24 cores x 2 threads = 96 CPUs, 4 LLCs of 24 CPUs, 4 memory nodes",
        ),
        ("skx-1s18c", "1 socket x 18 cores x 2 threads = 36 CPUs, 1 LLC of 36 CPUs"),
        ("skx-2s18c", "2 sockets x 18 cores x 2 threads = 72 CPUs, 2 LLCs of 36 CPUs"),
        ("zen2-1s12c", "1 socket x 12 cores x 2 threads = 24 CPUs, 4 LLCs of 6 CPUs"),
        ("ivb-2s10c", "2 sockets x 10 cores x 2 threads = 40 CPUs, 2 LLCs of 20 CPUs"),
        ("ivb-2s12c", "2 sockets x 12 cores x 2 threads = 48 CPUs, 2 LLCs of 24 CPUs"),
        ("kbl-1s4c", "1 socket x 4 cores x 2 threads = 8 CPUs, 1 LLC of 8 CPUs"),
        ("cfl-1s6c", "1 socket x 6 cores x 2 threads = 12 CPUs, 1 LLC of 12 CPUs"),
        ("cml-1s10c", "1 socket x 10 cores x 2 threads = 20 CPUs, 1 LLC of 20 CPUs"),
        ("hsw-1s4c", "1 socket x 4 cores x 2 threads = 8 CPUs, 1 LLC of 8 CPUs"),
    ];
    for name in preset_names() {
        assert!(shapes.iter().any(|(known, _)| *known == name), "add the shape of {name} above");
    }
    for (name, shape) in shapes {
        assert_eq!(load(name).expect(name).topology.describe(), shape, "{name}");
    }
}

#[test]
fn idle_states_and_timer_of_the_mails() {
    let spr = load("spr-2s56c").expect("preset");
    let names: Vec<&str> = spr.idle.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["POLL", "C1"], "the driver enables C1 or C1E");
    assert_eq!(spr.hz, DEFAULT_HZ);
    assert_eq!(load("quad-1s4c").expect("preset").hz, 1000);
}

/// The parts of a wakeup must add up to what ping-pongs measure: two tasks on one CPU of
/// Cascade Lake at 2.4 GHz, per half round trip. A pinned pipe pair of an i9-10980XE hops in
/// 2.1 us at turbo clocks, 3.3 us at 2.4 GHz; TCP_RR takes 7.2 us, UDP_RR 0.83 of that.
#[test]
fn parts_add_up_to_pinned_ping_pongs() {
    let cost = load("clx-8260").expect("preset").cost;
    let wake =
        2 * cost.syscall_ns + cost.ttwu_ns + cost.enqueue_ns + cost.dequeue_ns + cost.switch_ns;
    let pipe = wake + cost.pipe_write_ns + cost.pipe_read_ns;
    assert!((2_500..=3_500).contains(&pipe), "pipe {pipe}");
    let udp = wake + cost.udp_send_ns + cost.udp_recv_ns;
    assert!((4_800..=6_300).contains(&udp), "UDP {udp}");
    let tcp = wake + cost.tcp_send_ns + cost.tcp_recv_ns;
    assert!((5_900..=7_400).contains(&tcp), "TCP {tcp}");
}

/// A single TCP_RR pair spread over two CPUs: 12.3 us per round trip on IVB-EP and
/// 9.7 us on Zen 3 in netperf tables on LKML.
#[test]
fn parts_add_up_to_spread_round_trips() {
    let half = |name: &str| {
        let machine = load(name).expect("preset");
        let (cost, c1) = (&machine.cost, &machine.idle[1]);
        let software = cost.tcp_send_ns
            + cost.tcp_recv_ns
            + 2 * cost.syscall_ns
            + cost.ttwu_ns
            + cost.enqueue_ns
            + cost.switch_idle_ns;
        // Both ends of the message take the channel and its lock.
        let task = cost.wakee_lines + cost.handoff_lines;
        let lines = task + 2 * (cost.tcp_lines + 1) + cost.remote_enqueue_lines + 1;
        let ns =
            f64::from(software) / cost.speed + f64::from(lines * cost.line_llc_ns + c1.exit_ns);
        2.0 * ns
    };
    let (ivb, zen3) = (half("ivb-2s10c"), half("milan-2s64c"));
    assert!((12_300.0 * 0.8..=12_300.0 * 1.2).contains(&ivb), "Ivy Bridge {ivb}");
    assert!((9_700.0 * 0.8..=9_700.0 * 1.2).contains(&zen3), "Zen 3 {zen3}");
}
