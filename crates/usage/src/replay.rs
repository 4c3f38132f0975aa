//! What a replay of a recording runs, and when.

use reveille_workload::Arrival;

use crate::{Ns, Usage};

impl Usage {
    /// Arrivals before `until_ns` by thread, with the recording repeated.
    pub fn arrivals(&self, until_ns: Ns) -> Vec<Vec<Arrival>> {
        let mut of_thread = vec![Vec::new(); self.threads as usize];
        for round in 0..until_ns.div_ceil(self.span_ns) {
            for demand in &self.demands {
                let at_ns = round * self.span_ns + demand.at_ns;
                if at_ns >= until_ns {
                    break;
                }
                let arrival = Arrival { at_ns, work_ns: demand.cpu_ns };
                of_thread[demand.thread as usize].push(arrival);
            }
        }
        of_thread
    }
}
