//! Channels between the tasks of a run: pipes, Unix and loopback sockets.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept, bind, connect, getsockname, listen, socket,
    socketpair,
};
use serde::{Deserialize, Serialize};

use crate::HostError;

/// How a message of hackbench travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A pair of Unix stream sockets.
    Socket,
    /// A pipe.
    Pipe,
    /// A TCP connection over loopback.
    Inet,
}

impl Transport {
    /// A channel: the end to read from, the end to write to.
    pub(crate) fn pair(self) -> Result<(OwnedFd, OwnedFd), HostError> {
        let pair = match self {
            Transport::Pipe => rustix::pipe::pipe(),
            Transport::Socket => {
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None)
            }
            Transport::Inet => connection(),
        };
        pair.map_err(no_channel)
    }
}

/// Both ends of a TCP connection over loopback. Connecting does not wait for `accept`: the
/// kernel completes it for the listener.
fn connection() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (listener, address) = listener()?;
    let client = connect_to(address)?;
    Ok((accept(&listener)?, client))
}

/// A TCP socket that listens on a free port of loopback, and its address.
pub(crate) fn listener() -> Result<(OwnedFd, SocketAddrV4), Errno> {
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let address = bind_anywhere(&listener)?;
    listen(&listener, 20)?;
    Ok((listener, address))
}

/// A UDP socket on a free port of loopback, and its address.
pub(crate) fn datagram_socket() -> Result<(OwnedFd, SocketAddrV4), Errno> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let address = bind_anywhere(&socket)?;
    Ok((socket, address))
}

/// A TCP connection to a listener of this run.
pub(crate) fn connect_to(address: SocketAddrV4) -> Result<OwnedFd, Errno> {
    let client = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    connect(&client, &address)?;
    Ok(client)
}

fn bind_anywhere(socket: &OwnedFd) -> Result<SocketAddrV4, Errno> {
    bind(socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    SocketAddrV4::try_from(getsockname(socket)?)
}

/// The system refused a channel.
pub(crate) fn no_channel(error: Errno) -> HostError {
    let help = "use fewer tasks, or raise the limit of open files (ulimit -n)";
    HostError::system("open a channel between two tasks", error, help)
}
