//! Machines that the model is not made for are simulated all the same, and say what is missing:
//! CPUs of several kinds, and other processors than x86.

/// CPUs of one kind, as the source calls it.
pub(crate) struct CpuKind {
    pub(crate) name: String,
    pub(crate) cpus: usize,
}

/// What is not modelled of CPUs of these kinds; nothing if there is one kind.
pub(crate) fn kinds_warning(kinds: &[CpuKind]) -> Option<String> {
    if kinds.len() < 2 {
        return None;
    }
    let each = kinds.iter().map(|kind| format!("{} {}", kind.cpus, kind.name));
    Some(format!(
        "CPUs are of {} kinds ({}), and all are simulated as equally fast: the kernel's preference \
         among them (CPU capacity, ITMT, energy model) is not modelled",
        kinds.len(),
        each.collect::<Vec<_>>().join(", ")
    ))
}

/// What the default costs are for a processor of this architecture; nothing for x86-64.
pub(crate) fn architecture_warning(architecture: &str) -> Option<String> {
    (!matches!(architecture, "x86_64" | "amd64" | "AMD64")).then(|| {
        format!(
            "it is {architecture}, and its costs and idle states are those of x86-64 unless a machine \
             file gives others"
        )
    })
}
