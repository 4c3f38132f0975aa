//! The current CPU, affinity, and the hypervisor.

use std::io;

use reveille_machine::CpuId;
use rustix::thread::{self, CpuSet, Pid};

/// The CPU that this thread is running on.
#[inline]
pub fn current() -> CpuId {
    // SAFETY: takes no arguments and accesses no memory of ours; glibc answers from the rseq area
    // or the vDSO, whereas `rustix` makes a system call.
    unsafe { libc::sched_getcpu() as CpuId }
}

/// Pins this thread, and those it starts, to these CPUs.
pub fn pin(cpus: &[CpuId]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(thread::sched_setaffinity(None::<Pid>, &set)?)
}

/// The CPUs that this thread may run on, ascending.
pub fn allowed() -> io::Result<Vec<CpuId>> {
    let set = thread::sched_getaffinity(None::<Pid>)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&c| set.is_set(c)).map(|c| c as CpuId).collect())
}

/// The hypervisor by its CPUID signature: its name, or the signature if unknown. `None` on bare
/// metal and on other architectures.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    /// Bit of leaf 1, ECX: set by hypervisors, never by hardware.
    const GUEST: u32 = 1 << 31;
    /// Leaf of the signature, by convention of all hypervisors.
    const SIGNATURE: u32 = 0x4000_0000;
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory. Newer
    // compilers know that and want no `unsafe`.
    #[allow(unused_unsafe)]
    let (first, leaf) = unsafe { (__cpuid(1), __cpuid(SIGNATURE)) };
    if first.ecx & GUEST == 0 {
        return None;
    }
    let bytes = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes).concat();
    let text = String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned();
    let name = match text.as_str() {
        "" => return None,
        "KVMKVMKVM" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        other => other,
    };
    Some(name.to_owned())
}

/// No CPUID on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor() -> Option<String> {
    None
}
