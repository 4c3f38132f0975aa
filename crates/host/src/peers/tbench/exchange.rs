//! Both sides of tbench: the client's request with the length of the answer in it, and the
//! server's answer. Each reads the four bytes of length by a call of their own.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, test_kill_process};

use super::load::{Exchange, MAX_BYTES, OPERATIONS};
use crate::Ns;
use crate::peers::lines::Line;
use crate::peers::phase::{Phase, PhaseWord};
use crate::sys::clock;
use crate::sys::shared::OwnLine;

/// Length that stands before each message.
const HEADER: usize = 4;
/// Figures of each operation: how many, their time, the longest.
const FIGURES: usize = 3;

/// What a client's operations took in the time measured.
pub(super) type Table = OwnLine<[AtomicU64; FIGURES * OPERATIONS.len()]>;

/// An operation's figures in a [`Table`]: count, time in ns, longest in ns.
pub(super) fn figures(table: &Table, operation: usize) -> [u64; FIGURES] {
    std::array::from_fn(|figure| table[FIGURES * operation + figure].load(Ordering::Relaxed))
}

fn note(table: &Table, operation: u8, time: Ns) {
    let of = |figure: usize| &table[FIGURES * usize::from(operation) + figure];
    let get = |figure| of(figure).load(Ordering::Relaxed);
    of(0).store(get(0) + 1, Ordering::Relaxed);
    of(1).store(get(1) + time, Ordering::Relaxed);
    of(2).store(get(2).max(time), Ordering::Relaxed);
}

/// A client's end of its connection.
pub(super) struct Client {
    connection: OwnedFd,
    buffer: Vec<u8>,
    /// Requests sent and answered.
    pub exchanges: u64,
}

impl Client {
    /// Makes itself known to the server.
    pub fn new(connection: OwnedFd) -> Result<Client, Errno> {
        let mut client = Client { connection, buffer: vec![0; MAX_BYTES], exchanges: 0 };
        client.exchange(8, 8)?;
        Ok(client)
    }

    /// Runs a load until told to stop.
    pub fn run(
        &mut self,
        load: &[Exchange],
        parent: Pid,
        phase: &PhaseWord,
        line: Line<'_>,
        table: &Table,
    ) -> Result<(), Errno> {
        let mut bytes = 0;
        for exchange in load.iter().cycle() {
            // The original asks before each line whether its parent is there.
            test_kill_process(parent)?;
            let begun = phase.get();
            if begun == Phase::Stop {
                break;
            }
            let start = clock::now();
            if exchange.request > 0 {
                self.exchange(exchange.request as usize, exchange.response as usize)?;
            }
            let time = clock::now() - start;
            bytes += u64::from(exchange.contents);
            if begun == Phase::Measure {
                note(table, exchange.operation, time);
            }
            line.took(time);
            line.count(bytes);
            line.look(self.exchanges);
        }
        Ok(())
    }

    /// Sends a request of so many bytes and takes the answer of so many; lengths include
    /// the four bytes in which they travel.
    fn exchange(&mut self, request: usize, response: usize) -> Result<(), Errno> {
        let body = (response - HEADER) as u32;
        self.buffer[..4].copy_from_slice(&((request - HEADER) as u32).to_be_bytes());
        self.buffer[4..8].copy_from_slice(&body.to_be_bytes());
        send_all(&self.connection, &self.buffer[..request])?;
        let mut header = [0; HEADER];
        let got = retry_on_intr(|| recv(&self.connection, &mut header, RecvFlags::WAITALL))?.1;
        if got != HEADER || u32::from_be_bytes(header) != body {
            return Err(Errno::PROTO);
        }
        // As the original: the kernel drops the contents instead of copying them.
        let flags = RecvFlags::WAITALL | RecvFlags::TRUNC;
        let rest = &mut self.buffer[..response - HEADER];
        let got = retry_on_intr(|| recv(&self.connection, &mut *rest, flags))?.1;
        if got != response - HEADER {
            return Err(Errno::PROTO);
        }
        self.exchanges += 1;
        Ok(())
    }
}

/// A server, until its client goes.
pub(super) fn serve(connection: &OwnedFd, mut answered: impl FnMut(u64)) -> Result<u64, Errno> {
    let mut buffer = vec![0; MAX_BYTES];
    let mut exchanges = 0;
    loop {
        if !recv_all(connection, &mut buffer[..HEADER])? {
            return Ok(exchanges);
        }
        let length = length(&buffer, 0);
        if length + HEADER >= buffer.len() || length < HEADER {
            return Err(Errno::PROTO);
        }
        if !recv_all(connection, &mut buffer[HEADER..HEADER + length])? {
            return Err(Errno::PROTO);
        }
        let response = self::length(&buffer, HEADER);
        buffer.copy_within(HEADER..2 * HEADER, 0);
        let answer = buffer.get(..HEADER + response).ok_or(Errno::PROTO)?;
        send_all(connection, answer)?;
        exchanges += 1;
        answered(exchanges);
    }
}

fn length(buffer: &[u8], at: usize) -> usize {
    let bytes = buffer[at..at + HEADER].try_into().expect("four bytes");
    u32::from_be_bytes(bytes) as usize
}

fn send_all(connection: &OwnedFd, mut message: &[u8]) -> Result<(), Errno> {
    while !message.is_empty() {
        let sent = retry_on_intr(|| send(connection, message, SendFlags::empty()))?;
        message = &message[sent..];
    }
    Ok(())
}

/// Receives all of it; false if the connection has ended before.
fn recv_all(connection: &OwnedFd, mut message: &mut [u8]) -> Result<bool, Errno> {
    while !message.is_empty() {
        let got = retry_on_intr(|| recv(connection, &mut *message, RecvFlags::WAITALL))?.1;
        if got == 0 {
            return Ok(false);
        }
        message = &mut message[got..];
    }
    Ok(true)
}
