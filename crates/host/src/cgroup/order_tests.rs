//! The order of writes: as few as possible, through nothing that is refused or limits more.

use super::*;
use proptest::prelude::*;

const MS: Ns = 1_000_000;

fn limits(quota_ms: u64, period_ms: u64, burst_ms: u64) -> BandwidthLimits {
    let quota = (quota_ms > 0).then_some(quota_ms * 1000);
    BandwidthLimits::of_us(quota, period_ms * 1000, burst_ms * 1000)
}

fn alone(version: Version) -> Rules {
    Rules { version, capped: true, around: Vec::new(), within: Vec::new() }
}

/// The writes as `file=text`.
fn texts(from: BandwidthLimits, to: BandwidthLimits, rules: &Rules) -> Option<Vec<String>> {
    let short = |write: Write| format!("{}={write}", write.file(rules.version));
    Some(order(&from, &to, rules)?.into_iter().map(short).collect())
}

#[test]
fn only_what_differs_is_written() {
    let v1 = |from, to| texts(from, to, &alone(Version::V1)).unwrap();
    let v2 = |from, to| texts(from, to, &alone(Version::V2)).unwrap();
    let now = limits(20, 100, 10);
    assert!(v1(now, now).is_empty() && v2(now, now).is_empty());
    assert_eq!(v1(now, limits(20, 100, 20)), ["cpu.cfs_burst_us=20000"]);
    assert_eq!(v2(now, limits(20, 100, 0)), ["cpu.max.burst=0"]);
    // The burst fits both quotas: it stays.
    assert_eq!(v1(now, limits(30, 100, 10)), ["cpu.cfs_quota_us=30000"]);
    assert_eq!(v2(now, limits(30, 200, 10)), ["cpu.max=30000 200000"]);
    assert_eq!(v2(now, limits(0, 100, 10)), ["cpu.max=max 100000"]);
}

#[test]
fn the_burst_goes_down_before_the_quota_and_up_after_it() {
    let v1 = |from, to| texts(from, to, &alone(Version::V1)).unwrap();
    let v2 = |from, to| texts(from, to, &alone(Version::V2)).unwrap();
    let (small, large) = (limits(20, 100, 20), limits(50, 100, 50));
    assert_eq!(v1(large, small), ["cpu.cfs_burst_us=20000", "cpu.cfs_quota_us=20000"]);
    assert_eq!(v1(small, large), ["cpu.cfs_quota_us=50000", "cpu.cfs_burst_us=50000"]);
    assert_eq!(v2(large, small), ["cpu.max.burst=20000", "cpu.max=20000 100000"]);
    // Where it may come last it does, for kernels that spoil it at a write of cpu.max.
    assert_eq!(v2(large, limits(60, 100, 20)), ["cpu.max=60000 100000", "cpu.max.burst=20000"]);
    // Without a quota any burst is kept, and then stands in the way of a quota.
    let kept = limits(0, 100, 80);
    assert_eq!(v1(kept, small), ["cpu.cfs_burst_us=20000", "cpu.cfs_quota_us=20000"]);
}

#[test]
fn quota_and_period_of_v1_never_limit_more_than_both_ends() {
    let rules = alone(Version::V1);
    // 0.5 CPUs either way: 50/200 would be half of it.
    let up = texts(limits(50, 100, 0), limits(100, 200, 0), &rules).unwrap();
    assert_eq!(up, ["cpu.cfs_quota_us=100000", "cpu.cfs_period_us=200000"]);
    let down = texts(limits(100, 200, 0), limits(50, 100, 0), &rules).unwrap();
    assert_eq!(down, ["cpu.cfs_period_us=100000", "cpu.cfs_quota_us=50000"]);
    // From 0.5 to 2 CPUs both orders stay between; from 0.5 to 0.2 too.
    assert_eq!(texts(limits(50, 100, 0), limits(400, 200, 0), &rules).unwrap().len(), 2);

    // The group around has 0.6 CPUs: neither 100/100 nor 50/200 will do.
    let within = Rules { around: vec![limits(0, 100, 0), limits(60, 100, 0)], ..rules.clone() };
    let up = texts(limits(50, 100, 0), limits(100, 200, 0), &within).unwrap();
    let through_none =
        ["cpu.cfs_quota_us=-1", "cpu.cfs_period_us=200000", "cpu.cfs_quota_us=100000"];
    assert_eq!(up, through_none);
    assert_eq!(texts(limits(50, 100, 0), limits(70, 100, 0), &within), None);
    // A group within has 0.3 CPUs: less around it is refused.
    let around = Rules { within: vec![limits(30, 100, 0)], ..rules };
    assert_eq!(texts(limits(50, 100, 0), limits(20, 100, 0), &around), None);
    assert_eq!(texts(limits(50, 100, 0), limits(0, 100, 0), &around).unwrap().len(), 1);
}

#[test]
fn a_kernel_without_the_cap_takes_a_burst_above_the_quota() {
    let capped = alone(Version::V1);
    assert_eq!(texts(limits(20, 100, 0), limits(20, 100, 40), &capped), None);
    let vendor = Rules { capped: false, ..capped };
    let writes = texts(limits(20, 100, 0), limits(20, 100, 40), &vendor).unwrap();
    assert_eq!(writes, ["cpu.cfs_burst_us=40000"]);
    // Its other rules stay.
    assert_eq!(texts(limits(20, 100, 0), limits(20, 2000, 40), &vendor), None);
}

#[test]
fn lines_can_be_given_to_a_shell() {
    let write = Write::Max(Some(20 * MS), 100 * MS);
    assert_eq!(
        write.line(Version::V2, Path::new("/sys/fs/cgroup/a/b.slice")),
        "echo '20000 100000' > /sys/fs/cgroup/a/b.slice/cpu.max"
    );
    assert_eq!(
        Write::Quota(None).line(Version::V1, Path::new("/c/it's a\\x2dname")),
        r"echo -1 > '/c/it'\''s a\x2dname/cpu.cfs_quota_us'"
    );
}

/// Settings that a kernel accepts, small enough that ends often share values.
fn accepted() -> impl Strategy<Value = BandwidthLimits> {
    let quota = prop_oneof![1 => Just(0u64), 6 => 1u64..40];
    (quota, 1u64..20, 0u64..5).prop_map(|(quota, period, quarter)| {
        let burst = if quota == 0 { quarter * 20 } else { quota * quarter / 4 };
        limits(quota, period, burst)
    })
}

proptest! {
    #[test]
    fn every_setting_leads_to_every_other(
        from in accepted(),
        to in accepted(),
        parent in accepted(),
        child in accepted(),
        v1 in any::<bool>(),
    ) {
        let version = if v1 { Version::V1 } else { Version::V2 };
        let rules = Rules { around: vec![parent], within: vec![child], ..alone(version) };
        prop_assume!(rules.check(&from).is_ok() && rules.check(&to).is_ok());
        // The kernel has accepted them where they are.
        prop_assume!(!v1 || child.check_in(&[parent]).is_ok());
        let writes = order(&from, &to, &rules).expect("a way");
        let mut now = from;
        for write in &writes {
            let after = write.after(now);
            prop_assert!(after != now, "{write} changes nothing");
            prop_assert!(rules.check(&after).is_ok(), "{after}");
            prop_assert!(!(less(&after, &from) && less(&after, &to)), "{after}");
            prop_assert!(after.burst_ns >= from.burst_ns.min(to.burst_ns), "{after}");
            now = after;
        }
        prop_assert_eq!(now, to);
        // As many as values differ, and one more only where the rules between leave no other.
        let differ = match version {
            Version::V1 => usize::from(from.quota_ns != to.quota_ns)
                + usize::from(from.period_ns != to.period_ns),
            Version::V2 => {
                usize::from((from.quota_ns, from.period_ns) != (to.quota_ns, to.period_ns))
            }
        } + usize::from(from.burst_ns != to.burst_ns);
        let more = usize::from(v1 && from.period_ns != to.period_ns);
        prop_assert!(writes.len() == differ || writes.len() == differ + more, "{:?}", writes);
        // One order is accepted from every setting.
        let mut now = from;
        for write in from_anything(&to, version) {
            now = write.after(now);
            prop_assert!(rules.check(&now).is_ok(), "{now}");
        }
        prop_assert_eq!(now, to);
    }
}
