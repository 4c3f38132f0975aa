//! Builds the decision code of policy/ in the simulator's world, with every
//! warning an error: the same files must also pass the BPF verifier.

fn main() {
    println!("cargo:rerun-if-changed=csrc");
    println!("cargo:rerun-if-changed=../../policy");
    cc::Build::new()
        .file("csrc/policy.c")
        .file("csrc/bandwidth.c")
        .std("c11")
        .flag("-ffreestanding")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .opt_level(3)
        .force_frame_pointer(false)
        // popcount and ctz of the idle words; every x86-64 CPU since 2013 has them.
        .flag_if_supported(if cfg!(target_arch = "x86_64") { "-march=x86-64-v2" } else { "-O3" })
        .compile("reveille_policy");
}
