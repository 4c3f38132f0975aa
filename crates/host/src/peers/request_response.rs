//! netperf's TCP_RR and UDP_RR over loopback: each client sends a request and waits for
//! the answer of a server of its own, one at a time.
//! <https://github.com/HewlettPackard/netperf> (src/nettest_omni.c)

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, accept, connect, recv, recvfrom, send, sendto, shutdown,
};
use serde::{Deserialize, Serialize};

use super::channel::{Transport, connect_to, datagram_socket, listener, no_channel};
use super::crew::Crew;
use super::gate::Gate;
use super::limits::{allow_tasks, at_least_one};
use super::lines::Lines;
use super::phase::{Phase, PhaseWord};
use super::tasks::Tasks;
use super::timed::{PATIENCE, Pairs, Span, Timed, measure};
use crate::child::{AnyJob, Job};
use crate::{HostError, TaskUse};

/// The largest datagram that IPv4 carries.
const MAX_BYTES: u32 = 65_507;

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A connection, with the kernel's default options.
    Tcp,
    /// Datagrams; clients connect their socket, servers do not, as netperf's.
    Udp,
}

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestResponse {
    /// What carries the messages.
    pub protocol: Protocol,
    /// Clients, each with a server of its own.
    pub clients: u32,
    /// Size of a request in bytes.
    pub request_bytes: u32,
    /// Size of an answer in bytes.
    pub response_bytes: u32,
    /// How long.
    pub span: Span,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResponseRun {
    /// Transactions of each client and of all.
    #[serde(flatten)]
    pub timed: Timed,
    /// Transactions that clients completed, warm-up included.
    pub transactions: u64,
    /// Requests that servers answered.
    pub answered: u64,
    /// What clients and servers used in the time measured.
    pub tasks: Tasks,
}

impl Job for RequestResponse {
    type Output = RequestResponseRun;

    fn tasks(run: &RequestResponseRun) -> Option<&TaskUse> {
        Some(&run.tasks.total)
    }
}

impl From<RequestResponse> for AnyJob {
    fn from(job: RequestResponse) -> AnyJob {
        AnyJob::RequestResponse(job)
    }
}

/// What every task has in hand.
struct Common {
    job: RequestResponse,
    gate: Gate,
    lines: Lines,
    phase: PhaseWord,
}

impl RequestResponse {
    pub(crate) fn run(self) -> Result<RequestResponseRun, HostError> {
        self.check()?;
        let (clients, span) = (self.clients as usize, self.span);
        let (gate, lines) = (Gate::new(Transport::Pipe)?, Lines::new(2 * clients)?);
        let common = Arc::new(Common { job: self, gate, lines, phase: PhaseWord::new()? });
        let mut crew = Crew::new()?;
        for client in 0..clients {
            common.start(&mut crew, client)?;
        }
        crew.complete();
        common.gate.await_ready(crew.len(), &crew)?;
        common.gate.open()?;
        let watched = Pairs { lines: &common.lines, process: None, per_message: 1, timed: false };
        let (timed, tasks) = measure(&crew, &watched, span, || {})?;
        common.phase.set(Phase::Stop);
        crew.wait(Some(PATIENCE))?;
        crew.dismiss()?;
        let count = |side| common.lines.iter().skip(side).step_by(2).map(|l| l.counted()).sum();
        Ok(RequestResponseRun { timed, transactions: count(0), answered: count(1), tasks })
    }

    fn check(&self) -> Result<(), HostError> {
        at_least_one(self.clients.into(), "-c", "client")?;
        self.span.check("-l")?;
        for bytes in [self.request_bytes, self.response_bytes] {
            at_least_one(bytes.into(), "-r", "byte to send")?;
            if bytes > MAX_BYTES {
                let problem = format!("`-r {bytes}`: a message is at most {MAX_BYTES} bytes");
                return Err(HostError::input(problem, "send smaller messages"));
            }
        }
        allow_tasks(2 * u64::from(self.clients), "use fewer clients (-c)")
    }
}

impl Common {
    /// Starts a server and its client.
    fn start(&self, crew: &mut Crew, client: usize) -> Result<(), HostError> {
        let opened = match self.job.protocol {
            Protocol::Tcp => listener(),
            Protocol::Udp => datagram_socket(),
        };
        let (socket, address) = opened.map_err(no_channel)?;
        crew.process(format!("server {}", client + 1), move || match self.job.protocol {
            Protocol::Tcp => self.tcp_server(client, socket),
            Protocol::Udp => self.udp_server(client, &socket),
        })?;
        crew.process(format!("client {}", client + 1), || self.client(client, address))
    }

    fn client(&self, client: usize, server: SocketAddrV4) -> Result<(), Errno> {
        let line = self.lines.of(2 * client);
        line.introduce();
        let socket = match self.job.protocol {
            Protocol::Tcp => connect_to(server)?,
            Protocol::Udp => {
                let (socket, _) = datagram_socket()?;
                connect(&socket, &server)?;
                socket
            }
        };
        let (request, mut response) = self.job.buffers();
        self.gate.pass()?;
        let mut transactions = 0;
        while self.phase.goes_on() {
            send_all(&socket, &request)?;
            if !recv_all(&socket, &mut response)? {
                return Err(Errno::CONNRESET);
            }
            transactions += 1;
            line.count(transactions);
            line.look(transactions);
        }
        match self.job.protocol {
            Protocol::Tcp => shutdown(&socket, Shutdown::Write),
            // An empty datagram ends the server.
            Protocol::Udp => retry_on_intr(|| send(&socket, &[], SendFlags::empty())).map(drop),
        }
    }

    fn tcp_server(&self, client: usize, listener: OwnedFd) -> Result<(), Errno> {
        let (line, first) = (self.lines.of(2 * client + 1), self.lines.of(2 * client));
        line.introduce();
        let connection = retry_on_intr(|| accept(&listener))?;
        drop(listener);
        let (mut request, response) = self.job.buffers();
        self.gate.pass()?;
        let mut transactions = 0;
        while recv_all(&connection, &mut request)? {
            send_all(&connection, &response)?;
            transactions += 1;
            line.count(transactions);
            line.compare(transactions, first);
        }
        Ok(())
    }

    fn udp_server(&self, client: usize, socket: &OwnedFd) -> Result<(), Errno> {
        let (line, first) = (self.lines.of(2 * client + 1), self.lines.of(2 * client));
        line.introduce();
        let (mut request, response) = self.job.buffers();
        self.gate.pass()?;
        let mut transactions = 0;
        loop {
            let (received, _, from) =
                retry_on_intr(|| recvfrom(socket, &mut request[..], RecvFlags::empty()))?;
            let (Some(from), 1..) = (from, received) else { return Ok(()) };
            retry_on_intr(|| sendto(socket, &response, SendFlags::empty(), &from))?;
            transactions += 1;
            line.count(transactions);
            line.compare(transactions, first);
        }
    }
}

impl RequestResponse {
    fn buffers(&self) -> (Vec<u8>, Vec<u8>) {
        (vec![0; self.request_bytes as usize], vec![0; self.response_bytes as usize])
    }
}

#[inline]
fn send_all(connection: &OwnedFd, mut message: &[u8]) -> Result<(), Errno> {
    loop {
        let sent = retry_on_intr(|| send(connection, message, SendFlags::empty()))?;
        if sent == message.len() {
            return Ok(());
        }
        message = &message[sent..];
    }
}

/// Receives a whole message; false if the connection ended before it.
#[inline]
fn recv_all(connection: &OwnedFd, message: &mut [u8]) -> Result<bool, Errno> {
    let mut done = 0;
    while done < message.len() {
        match retry_on_intr(|| recv(connection, &mut message[done..], RecvFlags::empty()))?.0 {
            0 if done == 0 => return Ok(false),
            0 => return Err(Errno::CONNRESET),
            n => done += n,
        }
    }
    Ok(true)
}
