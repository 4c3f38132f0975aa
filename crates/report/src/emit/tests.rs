//! Every target for the same limits, read back by the target's own arithmetic.

use std::fs;
use std::process::Command;

use super::*;
use reveille_host::cgroup::LiveGroup;

fn limits(quota_us: Option<u64>, period_us: u64, burst_us: u64) -> BandwidthLimits {
    BandwidthLimits {
        quota_ns: quota_us.map(|us| us * 1000),
        period_ns: period_us * 1000,
        burst_ns: burst_us * 1000,
    }
}

/// A fifth of a CPU, as most would set it.
fn usual() -> BandwidthLimits {
    limits(Some(20_000), 100_000, 10_000)
}

/// Limits that only the kernel's own files can express exactly.
fn odd() -> BandwidthLimits {
    limits(Some(12_345), 33_333, 5000)
}

fn text(target: Target, limits: &BandwidthLimits) -> String {
    target.emit(limits, Some("app")).text
}

fn notes(target: Target, limits: &BandwidthLimits) -> String {
    target.emit(limits, Some("app")).notes.join("\n")
}

#[test]
fn targets_are_found_by_their_names() {
    for target in Target::ALL {
        assert_eq!(Target::from_name(target.name()), Some(target));
        let emitted = target.emit(&usual(), None);
        assert!(emitted.text.ends_with('\n') && !emitted.notes.is_empty(), "{target:?}");
        assert!(emitted.text.contains("NAME") != (target == Target::Oci), "{target:?}");
        for note in &emitted.notes {
            assert!(!note.contains("  ") && !note.ends_with('.'), "{note}");
        }
    }
    assert_eq!(Target::from_name("docker"), None);
}

#[test]
fn the_kernels_files() {
    let v2 = "echo 0 > /sys/fs/cgroup/app/cpu.max.burst\n\
              echo '20000 100000' > /sys/fs/cgroup/app/cpu.max\n\
              echo 10000 > /sys/fs/cgroup/app/cpu.max.burst\n";
    assert_eq!(text(Target::Cgroup2, &usual()), v2);
    let none = text(Target::Cgroup2, &limits(None, 100_000, 0));
    let burst = "/sys/fs/cgroup/app/cpu.max.burst";
    let expected = format!(
        "[ ! -e {burst} ] || echo 0 > {burst}\necho 'max 100000' > /sys/fs/cgroup/app/cpu.max\n"
    );
    assert_eq!(none, expected);
    let v1 = "echo 0 > /sys/fs/cgroup/cpu/app/cpu.cfs_burst_us\n\
              echo -1 > /sys/fs/cgroup/cpu/app/cpu.cfs_quota_us\n\
              echo 100000 > /sys/fs/cgroup/cpu/app/cpu.cfs_period_us\n\
              echo 20000 > /sys/fs/cgroup/cpu/app/cpu.cfs_quota_us\n\
              echo 10000 > /sys/fs/cgroup/cpu/app/cpu.cfs_burst_us\n";
    assert_eq!(text(Target::Cgroup1, &usual()), v1);
    assert!(notes(Target::Cgroup2, &usual()).contains("refills"));
}

/// What the lines do in a shell is what a group then has.
#[test]
fn the_lines_set_a_group() {
    for burst_file in [true, false] {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("a group");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("cpu.max"), "50000 100000\n").unwrap();
        if burst_file {
            fs::write(dir.join("cpu.max.burst"), "50000\n").unwrap();
        }
        let wanted = limits(Some(20_000), 50_000, if burst_file { 10_000 } else { 0 });
        let named = format!("/sys/{}", dir.display());
        let script = Target::Cgroup2.emit(&wanted, Some(&named)).text.replace("/sys//", "/");
        let status = Command::new("sh").arg("-ec").arg(&script).status().unwrap();
        assert!(status.success(), "{script}");
        let live = LiveGroup::at(&dir).unwrap().limits().unwrap();
        assert_eq!((live.limits, live.has_burst), (wanted, burst_file));
    }
}

#[test]
fn the_oci_runtimes_json() {
    let json = |limits: &BandwidthLimits| -> serde_json::Value {
        serde_json::from_str(&text(Target::Oci, limits)).unwrap()
    };
    let cpu = &json(&odd())["linux"]["resources"]["cpu"];
    assert_eq!(cpu["quota"].as_i64(), Some(12_345));
    assert_eq!((cpu["period"].as_u64(), cpu["burst"].as_u64()), (Some(33_333), Some(5000)));
    let none = json(&limits(None, 100_000, 0));
    let expected = serde_json::json!({ "linux": { "resources": { "cpu": {
        "quota": -1, "period": 100_000 } } } });
    assert_eq!(none, expected);
    assert!(notes(Target::Oci, &usual()).contains("runtime-spec 1.1"));
}

#[test]
fn kubernetes_resources() {
    let usual_text = "# in the pod's spec\ncontainers:\n- name: app\n  resources:\n    limits:\n      \
                      cpu: 200m\n";
    assert_eq!(text(Target::Kubernetes, &usual()), usual_text);
    let told = notes(Target::Kubernetes, &usual());
    assert!(told.contains("cannot set a burst: write 10000 to cpu.max.burst"), "{told}");
    assert!(!told.contains("the quota becomes") && !told.contains("feature gate"), "{told}");

    // 370.35 millicores become 371: 12366 us of 33333.
    let odd_text = text(Target::Kubernetes, &odd());
    assert!(odd_text.contains("      cpu: 371m\n---\n"), "{odd_text}");
    let kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\
                   cpuCFSQuotaPeriod: 33333us\nfeatureGates:\n  CustomCPUCFSQuotaPeriod: true\n";
    assert!(odd_text.ends_with(kubelet), "{odd_text}");
    let told = notes(Target::Kubernetes, &odd());
    assert!(told.contains("the quota becomes 12366 us and not 12345 us (+0.17%)"), "{told}");
    assert!(told.contains("period of 33333us is one for all containers of a node"), "{told}");

    let none = Target::Kubernetes.emit(&limits(None, 50_000, 0), Some("yes: no"));
    assert!(none.text.ends_with("- name: \"yes: no\"\n  resources: {} # no limits.cpu\n"));
    // A millicore is the least, and 1 ms the least quota.
    let least = Target::Kubernetes.emit(&limits(Some(1000), 1_000_000, 0), None);
    assert!(least.text.contains("cpu: 1m") && least.text.contains("Period: 1s"), "{}", least.text);
    assert_eq!(kubelet_quota_us(1, 100_000_000), 1000);
}

#[test]
fn koordinators_annotation() {
    let text = text(Target::Koordinator, &usual());
    let expected = "metadata:\n  annotations:\n    koordinator.sh/cpuBurst: \
                    '{\"cpuBurstPercent\":50,\"policy\":\"cpuBurstOnly\"}'\nspec:\n  containers:\n  \
                    - name: app\n    resources:\n      limits:\n        cpu: 200m\n";
    assert_eq!(text, expected);
    let told = notes(Target::Koordinator, &usual());
    assert!(told.contains("feature gate CPUBurst") && told.contains("class LS"), "{told}");
    assert!(!told.contains("the burst becomes"), "{told}");

    // 5000 us of 37100 us in 100 ms are 13.5%; 13% of them are 4823 us.
    let emitted = Target::Koordinator.emit(&odd(), None);
    assert_eq!(annotation(&emitted.text)["cpuBurstPercent"].as_u64(), Some(13));
    let told = emitted.notes.join("\n");
    assert!(told.contains("the burst becomes 4823 us and not 5000 us"), "{told}");
    assert!(told.contains("not in the period of 33333us"), "{told}");
    // What has no burst must not get the cluster's.
    let none = Target::Koordinator.emit(&limits(Some(20_000), 100_000, 0), None);
    assert_eq!(annotation(&none.text), serde_json::json!({ "policy": "none" }));
}

fn annotation(text: &str) -> serde_json::Value {
    let line = text.lines().find(|line| line.contains("cpuBurst:")).unwrap();
    serde_json::from_str(line.split('\'').nth(1).unwrap()).unwrap()
}

#[test]
fn systemds_drop_in() {
    let text = |limits: &BandwidthLimits, name: &str| Target::Systemd.emit(limits, Some(name)).text;
    let slice = text(&usual(), "app.slice");
    let expected = "# systemctl edit app.slice\n[Slice]\nCPUQuota=20%\nCPUQuotaPeriodSec=100ms\n";
    assert_eq!(slice, expected);
    let service = text(&usual(), "app");
    assert!(service.starts_with("# systemctl edit app.service\n[Service]\nCPUQuota=20%\n"));
    assert!(service.contains("\nExecStartPost=-+/bin/sh -c 'echo 10000 > /sys/fs/cgroup$$("));
    // 37.035...% become 37.04%: 12346 us of 33333.
    let odd_text = text(&odd(), "app.slice");
    assert!(odd_text.contains("CPUQuota=37.04%\nCPUQuotaPeriodSec=33333us\n"), "{odd_text}");
    let told = notes(Target::Systemd, &odd());
    assert!(told.contains("the quota becomes 12346 us and not 12345 us"), "{told}");
    assert!(told.contains("systemd cannot set a burst"), "{told}");
    assert!(
        text(&limits(None, 100_000, 0), "a.scope")
            .ends_with("[Scope]\nCPUQuota=\nCPUQuotaPeriodSec=\n")
    );
    assert!(
        text(&limits(Some(125_500), 1_000_000, 0), "a")
            .contains("CPUQuota=12.55%\nCPUQuotaPeriodSec=1s\n")
    );
    assert!(!notes(Target::Systemd, &limits(Some(20_000), 100_000, 0)).contains("burst"));
}

/// `$$` is systemd's way to write `$`: the command finds the file of the group it is in.
#[test]
fn systemds_command_names_the_burst_of_its_own_group() {
    let text = Target::Systemd.emit(&usual(), None).text;
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStartPost=-+")).unwrap();
    let command = line.split('\'').nth(1).unwrap().replace("$$", "$");
    let shown = command.replace("echo 10000 > ", "echo ");
    let output = Command::new("sh").arg("-c").arg(&shown).output().unwrap();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(path) = own.lines().find_map(|line| line.strip_prefix("0::")) else {
        eprintln!("SKIPPED: no unified hierarchy");
        return;
    };
    let expected = format!("/sys/fs/cgroup{path}/cpu.max.burst\n");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn what_cannot_be_set_is_said_first() {
    let above = limits(Some(20_000), 100_000, 30_000);
    let fraction = BandwidthLimits { quota_ns: Some(20_000_400), ..usual() };
    for target in Target::ALL {
        let first = target.emit(&above, None).notes.remove(0);
        assert!(first.contains("mainline kernels refuse") && first.contains("burst"), "{first}");
        let emitted = target.emit(&fraction, None);
        assert!(emitted.notes[0].contains("rounded to whole microseconds"), "{emitted:?}");
        assert_eq!(emitted.text, target.emit(&usual(), None).text);
    }
}
