//! The host's own description, read from trees that look like sysfs.

use std::fs;
use std::path::Path;

use reveille_machine::{Distance, InputError, read_sysfs};
use tempfile::TempDir;

/// Writes files below a new root: pairs of path and text.
fn tree(files: &[(String, String)]) -> TempDir {
    let root = tempfile::tempdir().expect("temporary directory");
    for (path, text) in files {
        put(root.path(), path, text);
    }
    root
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap_or(root)).expect("directory");
    fs::write(path, format!("{text}\n")).expect("file");
}

/// Two sockets of two cores of two threads, one L3 each; CPU 6 is offline.
fn two_sockets() -> Vec<(String, String)> {
    let mut files = vec![
        ("devices/system/cpu/online".into(), "0-5,7".into()),
        ("devices/system/node/node0/cpulist".into(), "0-1,4-5".into()),
        ("devices/system/node/node1/cpulist".into(), "2-3,7".into()),
        ("devices/system/node/online".into(), "0-1".into()),
    ];
    for cpu in [0u32, 1, 2, 3, 4, 5, 7] {
        let (core, socket) = (cpu % 4, cpu % 4 / 2);
        let siblings = if core == 2 { "2".into() } else { format!("{core},{}", core + 4) };
        let l3 = ["0-1,4-5", "2-3,7"][socket as usize];
        let of = |path: &str| format!("devices/system/cpu/cpu{cpu}/{path}");
        files.extend([
            (of("topology/core_cpus_list"), siblings.clone()),
            (of("topology/physical_package_id"), socket.to_string()),
            (of("cache/index0/type"), "Data".into()),
            (of("cache/index0/level"), "1".into()),
            (of("cache/index0/shared_cpu_list"), siblings.clone()),
            (of("cache/index1/type"), "Instruction".into()),
            (of("cache/index1/level"), "4".into()),
            (of("cache/index1/shared_cpu_list"), cpu.to_string()),
            (of("cache/index3/type"), "Unified".into()),
            (of("cache/index3/level"), "3".into()),
            (of("cache/index3/shared_cpu_list"), l3.into()),
        ]);
    }
    files
}

fn idle_state(root: &Path, n: u32, name: &str, desc: &str, latency: &str, disable: &str) {
    let state = format!("devices/system/cpu/cpu0/cpuidle/state{n}");
    for (file, text) in [
        ("name", name),
        ("desc", desc),
        ("latency", latency),
        ("residency", latency),
        ("disable", disable),
    ] {
        put(root, &format!("{state}/{file}"), text);
    }
}

#[test]
fn skips_offline_cpus_and_numbers_densely() {
    let root = tree(&two_sockets());
    let m = read_sysfs(root.path()).expect("a machine");
    let t = &m.topology;
    assert_eq!((t.n_cpus(), t.n_cores(), t.n_llcs(), t.n_nodes(), t.n_sockets()), (7, 4, 2, 2, 2));
    assert_eq!(t.cpus().iter().map(|p| p.os_cpu).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 7]);
    assert_eq!(t.core_cpus(3), [3, 6]);
    assert_eq!(t.distance(3, 6), Distance::Smt);
    assert_eq!(t.distance(0, 2), Distance::Remote);
    assert_eq!((m.name.as_str(), m.hz), ("host", 250));
    assert!(m.idle.len() > 1, "default idle states");
    assert_eq!(t.describe(), "2 sockets, 4 cores, 7 CPUs, 2 LLCs of 3 to 4 CPUs");
}

#[test]
fn reads_old_names_and_no_caches_and_no_nodes() {
    let files: Vec<_> = two_sockets()
        .into_iter()
        .filter(|(path, _)| !path.contains("/cache/") && !path.contains("/node/"))
        .map(|(path, text)| (path.replace("core_cpus_list", "thread_siblings_list"), text))
        .collect();
    let t = read_sysfs(tree(&files).path()).expect("a machine").topology;
    assert_eq!((t.n_cpus(), t.n_llcs(), t.n_nodes()), (7, 2, 1));
}

#[test]
fn a_cache_that_spans_nodes_is_cut_at_them() {
    let mut files = two_sockets();
    files.retain(|(path, _)| !path.contains("/node/"));
    files.push(("devices/system/node/node0/cpulist".into(), "0,2-4,7".into()));
    files.push(("devices/system/node/node1/cpulist".into(), "1,5".into()));
    let t = read_sysfs(tree(&files).path()).expect("a machine").topology;
    assert_eq!((t.n_llcs(), t.n_nodes(), t.n_sockets()), (3, 2, 2));
}

#[test]
fn reads_idle_states() {
    let root = tree(&two_sockets());
    idle_state(root.path(), 0, "POLL", "CPUIDLE CORE POLL IDLE", "0", "0");
    idle_state(root.path(), 1, "C1", "MWAIT 0x00", "1", "0");
    idle_state(root.path(), 2, "C2", "ACPI IOPORT 0x414", "18", "0");
    idle_state(root.path(), 3, "C3", "ACPI IOPORT 0x415", "350", "1");
    let idle = read_sysfs(root.path()).expect("a machine").idle;
    let seen: Vec<_> = idle.iter().map(|s| (s.name.as_str(), s.exit_ns, s.polling)).collect();
    assert_eq!(seen, [("POLL", 0, true), ("C1", 1000, true), ("C2", 18_000, false)]);

    put(root.path(), "devices/system/cpu/cpu0/cpuidle/state1/latency", "99999999999");
    let error = read_sysfs(root.path()).expect_err("absurd latency").to_string();
    assert!(error.contains("state1/latency"), "{error}");
}

#[test]
fn says_which_file_is_missing_or_senseless() {
    let empty = tempfile::tempdir().expect("temporary directory");
    let error = read_sysfs(empty.path()).expect_err("no sysfs");
    assert!(matches!(error, InputError::Read { .. }));
    assert!(error.to_string().contains("devices/system/cpu/online"), "{error}");

    for (path, text) in [
        ("devices/system/cpu/online", ""),
        ("devices/system/cpu/online", "0-9999999"),
        ("devices/system/cpu/cpu3/topology/physical_package_id", "x"),
        ("devices/system/cpu/cpu3/topology/core_cpus_list", "3-"),
        ("devices/system/cpu/cpu3/cache/index3/shared_cpu_list", ""),
        ("devices/system/cpu/cpu3/cache/index3/level", "high"),
        ("devices/system/node/node1/cpulist", "2-x"),
    ] {
        let root = tree(&two_sockets());
        put(root.path(), path, text);
        let error = read_sysfs(root.path()).expect_err(path).to_string();
        assert!(error.contains(path), "{error}");
    }

    let root = tree(&two_sockets());
    fs::remove_dir_all(root.path().join("devices/system/cpu/cpu5/topology")).expect("remove");
    let error = read_sysfs(root.path()).expect_err("missing").to_string();
    assert!(error.contains("cpu5/topology/core_cpus_list"), "{error}");
}

#[test]
fn reads_this_host() {
    if Path::new("/sys/devices/system/cpu/online").exists() {
        let m = reveille_machine::load("host").expect("this host");
        assert!(m.topology.n_cpus() >= 1);
    }
}

#[test]
fn cpus_of_several_kinds_are_taken_with_a_warning() {
    let mut files = two_sockets();
    for cpu in [0, 1, 2, 3, 4, 5, 7] {
        let capacity = if cpu < 4 { "1024" } else { "446" };
        files.push((format!("devices/system/cpu/cpu{cpu}/cpu_capacity"), capacity.to_owned()));
    }
    let warnings = read_sysfs(tree(&files).path()).expect("a machine").warnings;
    assert!(
        warnings[0].contains("2 kinds (4 of capacity 1024, 3 of capacity 446)"),
        "{warnings:?}"
    );
    let same = two_sockets().into_iter().chain(
        [0, 1, 2, 3, 4, 5, 7]
            .map(|cpu| (format!("devices/system/cpu/cpu{cpu}/cpu_capacity"), "1024".to_owned())),
    );
    let warnings = read_sysfs(tree(&same.collect::<Vec<_>>()).path()).expect("a machine").warnings;
    assert_eq!(warnings.len(), usize::from(cfg!(not(target_arch = "x86_64"))), "{warnings:?}");

    let mut files = two_sockets();
    files.push(("devices/cpu_core/cpus".into(), "0-3".into()));
    files.push(("devices/cpu_atom/cpus".into(), "4-7".into()));
    let warnings = read_sysfs(tree(&files).path()).expect("a machine").warnings;
    assert_eq!(warnings.len(), usize::from(cfg!(not(target_arch = "x86_64"))) + 1, "{warnings:?}");
    assert!(warnings[0].contains("(4 P-cores' CPUs, 3 E-cores' CPUs)"), "{warnings:?}");
}
