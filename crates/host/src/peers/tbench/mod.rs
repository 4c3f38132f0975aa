//! tbench of dbench 4: each client plays the network traffic of a file server's client to
//! a server of its own over loopback TCP, one request at a time.
//! <https://dbench.samba.org>

mod exchange;
mod load;

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{accept, sockopt};
use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use self::exchange::{Client, Table, figures, serve};
use self::load::{Exchange, OPERATIONS};
use super::channel::{Transport, connect_to, listener, no_channel};
use super::crew::Crew;
use super::gate::Gate;
use super::limits::{allow_tasks, at_least_one};
use super::lines::Lines;
use super::phase::{Phase, PhaseWord};
use super::tasks::Tasks;
use super::timed::{PATIENCE, Pairs, Span, Timed, measure};
use crate::child::{AnyJob, Job};
use crate::sys::shared::SharedSlice;
use crate::{HostError, Ns, TaskUse};

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tbench {
    /// Clients, each with a server of its own.
    pub clients: u32,
    /// A load file of dbench 4; without one, the mix of the catalogue's workload `tbench`.
    pub load_file: Option<String>,
    /// How long.
    pub span: Span,
}

/// What came of it. Operations of [`Timed`] are bytes read and written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TbenchRun {
    /// Bytes of each client and of all.
    #[serde(flatten)]
    pub timed: Timed,
    /// Contents read and written, in MB/s (10⁶ bytes).
    pub mb_per_s: f64,
    /// What clients asked for, without those operations of which there were none.
    pub operations_by_kind: Vec<TbenchOperation>,
    /// The longest operation.
    pub longest_ns: Ns,
    /// Requests that clients sent and got an answer to, start and warm-up included.
    pub exchanges: u64,
    /// Requests that servers answered.
    pub answered: u64,
    /// What clients and servers used in the time measured.
    pub tasks: Tasks,
}

/// What one kind of operation took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TbenchOperation {
    /// Its name in dbench; `Other` for all that is neither read nor write, if the load is
    /// the catalogue's.
    pub name: String,
    /// How many began in the time measured.
    pub count: u64,
    /// Mean time in ns.
    pub mean_ns: f64,
    /// Longest time in ns.
    pub max_ns: Ns,
}

impl Job for Tbench {
    type Output = TbenchRun;

    fn tasks(run: &TbenchRun) -> Option<&TaskUse> {
        Some(&run.tasks.total)
    }
}

impl From<Tbench> for AnyJob {
    fn from(job: Tbench) -> AnyJob {
        AnyJob::Tbench(job)
    }
}

/// What every task has in hand.
struct Common {
    load: Vec<Exchange>,
    gate: Gate,
    lines: Lines,
    tables: SharedSlice<Table>,
    phase: PhaseWord,
    parent: Pid,
}

impl Tbench {
    pub(crate) fn run(self) -> Result<TbenchRun, HostError> {
        at_least_one(self.clients.into(), "-c", "client")?;
        self.span.check("-t")?;
        allow_tasks(2 * u64::from(self.clients), "use fewer clients (-c)")?;
        let clients = self.clients as usize;
        let common = Common {
            load: self.load_file.as_deref().map_or_else(load::catalogue, load::read)?,
            gate: Gate::new(Transport::Pipe)?,
            lines: Lines::new(2 * clients)?,
            tables: SharedSlice::new(clients)
                .map_err(|e| HostError::system("map shared memory", e, "use fewer clients (-c)"))?,
            phase: PhaseWord::new()?,
            parent: getpid(),
        };
        let mut crew = Crew::new()?;
        for client in 0..clients {
            let (socket, address) = listener().map_err(no_channel)?;
            crew.process(format!("server {}", client + 1), || common.server(client, socket))?;
            crew.process(format!("client {}", client + 1), || common.client(client, address))?;
        }
        crew.complete();
        common.gate.await_ready(crew.len(), &crew)?;
        common.gate.open()?;
        let watched = Pairs { lines: &common.lines, process: None, per_message: 1, timed: true };
        let begin = || common.phase.set(Phase::Measure);
        let (timed, tasks) = measure(&crew, &watched, self.span, begin)?;
        common.phase.set(Phase::Stop);
        crew.wait(Some(PATIENCE))?;
        crew.dismiss()?;
        Ok(common.account(timed, tasks))
    }
}

impl Common {
    fn client(&self, client: usize, server: SocketAddrV4) -> Result<(), Errno> {
        let line = self.lines.of(2 * client);
        line.introduce();
        let load: Vec<Exchange> = self.load.iter().map(|e| e.of_client(client)).collect();
        let connection = connect_to(server)?;
        sockopt::set_tcp_nodelay(&connection, true)?;
        let mut connected = Client::new(connection)?;
        self.gate.pass()?;
        connected.run(&load, self.parent, &self.phase, line, &self.tables[client])?;
        line.exchanged(connected.exchanges);
        Ok(())
    }

    fn server(&self, client: usize, listener: OwnedFd) -> Result<(), Errno> {
        let (line, first) = (self.lines.of(2 * client + 1), self.lines.of(2 * client));
        line.introduce();
        let connection = retry_on_intr(|| accept(&listener))?;
        sockopt::set_tcp_nodelay(&connection, true)?;
        drop(listener);
        self.gate.ready()?;
        let exchanges = serve(&connection, |message| line.compare(message, first))?;
        line.exchanged(exchanges);
        Ok(())
    }

    fn account(&self, timed: Timed, tasks: Tasks) -> TbenchRun {
        let operation = |(number, name): (usize, &&str)| {
            let all: Vec<[u64; 3]> = self.tables.iter().map(|t| figures(t, number)).collect();
            let count: u64 = all.iter().map(|f| f[0]).sum();
            let total_ns: u64 = all.iter().map(|f| f[1]).sum();
            (count > 0).then(|| TbenchOperation {
                name: (*name).to_owned(),
                count,
                mean_ns: total_ns as f64 / count as f64,
                max_ns: all.iter().map(|f| f[2]).max().unwrap_or(0),
            })
        };
        let operations: Vec<_> = OPERATIONS.iter().enumerate().filter_map(operation).collect();
        let count = |side| self.lines.iter().skip(side).step_by(2).map(|l| l.exchanges()).sum();
        TbenchRun {
            mb_per_s: timed.per_s / 1e6,
            timed,
            longest_ns: operations.iter().map(|o| o.max_ns).max().unwrap_or(0),
            operations_by_kind: operations,
            exchanges: count(0),
            answered: count(1),
            tasks,
        }
    }
}
