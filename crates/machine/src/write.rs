//! Writes a machine as a machine file, so that one whose numbers have been moved
//! can be kept, looked at and run by name like any other.

use std::fmt::Write;

use crate::file::inherited;
use crate::machine::{Machine, Origin};
use crate::topology::{Shape, Topology};

impl Machine {
    /// The machine as the text of a machine file: [`parse_toml`](crate::parse_toml)
    /// reads the same machine from it. Numbers that are as `cost` has them are
    /// left to it.
    ///
    /// `None` if no machine file can describe the topology, as on a host whose
    /// caches differ in width, or if `cost` does not name what is shipped.
    pub fn to_toml(&self) -> Option<String> {
        let shape = uniform(&self.topology)?;
        let base = inherited(&self.cost_model)?.ok()?;
        let mut text = format!(
            "name = {}\nabout = {}\nsource = {}\ncost = {}\nhz = {}\n\n[topology]\n\
             sockets = {}\nllcs_per_socket = {}\ncores_per_llc = {}\nthreads = {}\n",
            quoted(&self.name),
            quoted(&self.about),
            quoted(&self.source),
            quoted(&self.cost_model),
            self.hz,
            shape.sockets,
            shape.llcs_per_socket,
            shape.cores_per_llc,
            shape.threads,
        );
        let parts = [
            ("nodes_per_socket", shape.nodes_per_socket),
            ("cores_per_cluster", shape.cores_per_cluster),
        ];
        for (key, n) in parts.into_iter().filter(|(_, n)| *n != 1) {
            push(&mut text, format_args!("{key} = {n}\n"));
        }
        for c in &self.constants {
            let same = |b: &crate::machine::Constant| b.key == c.key && b.value == c.value;
            if c.inherited && base.constants.iter().any(same) {
                continue;
            }
            push(
                &mut text,
                format_args!(
                    "\n[constants.{}]\nvalue = {}\nrange = [{}, {}]\n{}\n",
                    c.key,
                    c.value,
                    c.low,
                    c.high,
                    origin(&c.origin)
                ),
            );
        }
        for s in self.idle.iter().filter(|_| self.idle != base.idle) {
            push(
                &mut text,
                format_args!(
                    "\n[[idle]]\nname = {}\nexit_ns = {}\nresidency_ns = {}\npolling = {}\n\
                     range = [{}, {}]\n{}\n",
                    quoted(&s.name),
                    s.exit_ns,
                    s.residency_ns,
                    s.polling,
                    s.exit_low_ns,
                    s.exit_high_ns,
                    origin(&s.origin)
                ),
            );
        }
        Some(text)
    }
}

/// The shape of a machine whose parts are all alike.
fn uniform(topology: &Topology) -> Option<Shape> {
    let count = |n: usize| u32::try_from(n).unwrap_or(0);
    let shape = Shape {
        sockets: count(topology.n_sockets()),
        nodes_per_socket: count(topology.n_nodes() / topology.n_sockets()),
        llcs_per_socket: count(topology.n_llcs() / topology.n_sockets()),
        cores_per_llc: count(topology.n_cores() / topology.n_llcs()),
        cores_per_cluster: count(topology.n_cores() / topology.n_clusters()),
        threads: count(topology.n_cpus() / topology.n_cores()),
    };
    (Topology::of(shape).ok()? == *topology).then_some(shape)
}

fn origin(origin: &Origin) -> String {
    let key = match origin {
        Origin::Cited(_) => "source",
        Origin::Estimated(_) => "estimate",
        Origin::Fitted(_) => "fitted",
        Origin::Measured(m) => {
            let how = quoted(&m.how);
            let (p10, p90, samples) = (m.p10, m.p90, m.samples);
            return format!(
                "measured = {{ how = {how}, p10 = {p10:?}, p90 = {p90:?}, samples = {samples} }}"
            );
        }
    };
    format!("{key} = {}", quoted(origin.text()))
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use crate::file::parse_toml;
    use crate::load::load;
    use crate::presets::preset_names;

    #[test]
    fn a_written_machine_reads_back_as_it_was() {
        for name in preset_names() {
            let machine = load(name).unwrap();
            let text = machine.to_toml().unwrap();
            assert_eq!(parse_toml("written.toml", &text).unwrap(), machine, "{name}");
        }
    }

    #[test]
    fn moved_numbers_are_kept_with_their_evidence() {
        let mut machine = load("icx-2s32c").unwrap();
        machine.set("cold_llc_ns", 2500.0).unwrap();
        machine.set("noise", 0.15).unwrap();
        machine.set("idle.C1E.exit_ns", 1500.0).unwrap();
        let text = machine.to_toml().unwrap();
        let read = parse_toml("written.toml", &text).unwrap();
        assert_eq!((read.cost, read.idle), (machine.cost.clone(), machine.idle.clone()));
        let moved = read.constants.iter().find(|c| c.key == "cold_llc_ns").unwrap();
        assert_eq!(moved.origin, machine.constant("cold_llc_ns").unwrap().origin);
        assert!(!moved.inherited);
        assert!(!text.contains("ttwu_ns"), "{text}");
    }
}
