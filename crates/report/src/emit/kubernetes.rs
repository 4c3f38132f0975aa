//! Kubernetes: a container's CPU limit in millicores. The period is a setting of the node,
//! and the API knows no burst (kubernetes/kubernetes issue 104516, open since 2021).

use reveille_policy::BandwidthLimits;

use super::{Emitted, container, duration, kubelet_quota_us, rounded, us};

/// The kubelet's own period, without its feature gate the only one.
pub(super) const PERIOD_NS: u64 = 100_000_000;

/// The container's resources, and the kubelet's configuration if the period needs one.
pub(super) fn lines(limits: &BandwidthLimits, name: &str) -> Emitted {
    let (resources, millicores) = container(limits, name);
    let mut text = format!("# in the pod's spec\ncontainers:\n{}", resources.replace("\n  ", "\n"));
    text = text.replace("containers:\n  -", "containers:\n-");
    let mut notes = Vec::new();
    match (limits.quota_ns, millicores) {
        (Some(quota), Some(millicores)) => {
            let got = kubelet_quota_us(millicores, limits.period_ns);
            notes.extend(rounded("limits.cpu counts in millicores", us(quota), got));
            notes.push(
                "without requests.cpu the request becomes the limit, and with it the weight \
                 and the place on a node"
                    .to_owned(),
            );
            notes.push(format!(
                "a running pod takes it without a restart (Kubernetes 1.33 and later): kubectl \
                 patch pod POD --subresource resize --patch \
                 '{{\"spec\":{{\"containers\":[{{\"name\":\"{name}\",\"resources\":{{\"limits\":\
                 {{\"cpu\":\"{millicores}m\"}}}}}}]}}}}'"
            ));
        }
        _ => notes.push("without limits.cpu the container has no quota".to_owned()),
    }
    notes.extend(period(limits, &mut text));
    let missing = (limits.burst_ns > 0).then(|| {
        let burst = us(limits.burst_ns);
        format!(
            "Kubernetes cannot set a burst: write {burst} to cpu.max.burst (v1: \
             cpu.cfs_burst_us) of the container's group and of the pod's around it, whose quota \
             is the sum of its containers'; after every start, by an agent on the node or a hook \
             of the runtime"
        )
    });
    Emitted { text, notes, missing }
}

/// What the nodes must be set to for this period.
pub(super) fn period(limits: &BandwidthLimits, text: &mut String) -> Option<String> {
    if limits.period_ns == PERIOD_NS || limits.quota_ns.is_none() {
        return None;
    }
    let period = duration(limits.period_ns);
    text.push_str(&format!(
        "---\n# on the nodes: the kubelet's configuration\n\
         apiVersion: kubelet.config.k8s.io/v1beta1\n\
         kind: KubeletConfiguration\n\
         cpuCFSQuotaPeriod: {period}\n\
         featureGates:\n  CustomCPUCFSQuotaPeriod: true\n"
    ));
    Some(format!(
        "the period of {period} is one for all containers of a node, behind the alpha feature \
         gate CustomCPUCFSQuotaPeriod (off by default); elsewhere the period is 100ms"
    ))
}
