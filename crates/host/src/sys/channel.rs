//! Channels as the original programs use them: pipes, Unix stream socket pairs, and connected UDP
//! and TCP sockets over loopback, all with the kernel's defaults.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use reveille_workload::ChannelKind;

/// The sending and the receiving end of a new channel; all but a pipe's do both.
pub fn connect(kind: ChannelKind) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(match kind {
        ChannelKind::Pipe => {
            let (read, write) = rustix::pipe::pipe()?;
            (write, read)
        }
        ChannelKind::Unix => {
            let (one, other) = UnixStream::pair()?;
            (one.into(), other.into())
        }
        ChannelKind::Udp => {
            let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            one.connect(other.local_addr()?)?;
            other.connect(one.local_addr()?)?;
            (one.into(), other.into())
        }
        ChannelKind::Tcp => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let one = TcpStream::connect(listener.local_addr()?)?;
            let other = accept_from(&listener, &one)?;
            (one.into(), other.into())
        }
    })
}

/// Any process on this host can connect to a listener; accepts only our own connection.
fn accept_from(listener: &TcpListener, client: &TcpStream) -> io::Result<TcpStream> {
    loop {
        let (server, from) = listener.accept()?;
        if from == client.local_addr()? {
            return Ok(server);
        }
    }
}
