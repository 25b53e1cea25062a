// SPDX-License-Identifier: Apache-2.0
//! One machine's network interface: a datagram socket of the fabric, another of the machine.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use sundial_core::{Frame, Span, Time};

use super::{RealError, system};
use crate::PortConfig;

/// Room for a full ring of the longest frames; the kernel cuts it to what it allows.
const SOCKET_BUFFER_BYTES: usize = 1 << 21;
/// Frames kept for a machine that does not take them now; more are lost.
const BACKLOG_FRAMES: usize = 4096;
/// When this many wait for one machine, the others on its segment are not read from.
const PRESSURE_FRAMES: usize = 64;
/// A machine that has taken nothing for this long does not hold up the others any more.
const PATIENCE: Span = Span::from_ns(100_000_000);
/// How soon a machine that takes no frames is tried again.
const RETRY: Span = Span::from_ns(50_000);

/// A port of a segment in real time.
pub(super) struct Port {
    pub(super) machine: usize,
    /// Which of the machine's interfaces.
    pub(super) nic: usize,
    pub(super) segment: usize,
    /// The broadcast domain that the segment is in.
    pub(super) domain: usize,
    /// The segment's number for it.
    pub(super) number: usize,
    pub(super) socket: UnixDatagram,
    /// Frames handed to the model that its adapter is not through with.
    pub(super) outstanding: usize,
    /// The socket is read.
    pub(super) watched: bool,
    /// Places in the adapter's ring, where a full one stops the machine.
    places: Option<usize>,
    local: PathBuf,
    remote: PathBuf,
    backlog: VecDeque<Frame>,
    /// When it last took a frame, or began to have to.
    taken_at: Time,
    tried_at: Time,
    /// Frames that the machine did not take: it was not there, or too slow.
    pub(super) undelivered: u64,
}

impl Port {
    pub(super) fn open(
        plug: &PortConfig,
        (machine, nic): (usize, usize),
        (segment, number): (usize, usize),
        domain: usize,
        places: Option<usize>,
    ) -> Result<Self, RealError> {
        let (local, remote) = plug.sockets.clone().expect("checked: a real run has sockets");
        let socket = match UnixDatagram::bind(&local) {
            Ok(socket) => socket,
            Err(source) => return Err(RealError::Bind { path: local, source }),
        };
        socket
            .set_nonblocking(true)
            .map_err(|source| RealError::System { call: "set_nonblocking", source })?;
        set_socket_send_buffer_size(&socket, SOCKET_BUFFER_BYTES).map_err(system("setsockopt"))?;
        set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES).map_err(system("setsockopt"))?;
        Ok(Self {
            machine,
            nic,
            segment,
            domain,
            number,
            socket,
            outstanding: 0,
            watched: true,
            places,
            local,
            remote,
            backlog: VecDeque::new(),
            taken_at: Time::ZERO,
            tried_at: Time::ZERO,
            undelivered: 0,
        })
    }

    /// The adapter's ring has no place, and the machine has to wait.
    pub(super) fn is_full(&self) -> bool {
        self.places.is_some_and(|places| self.outstanding >= places)
    }

    /// A machine that sends too fast is stopped; none of its frames is dropped.
    pub(super) fn stops(&self) -> bool {
        self.places.is_some()
    }

    /// When to try again to send the machine what waits for it.
    pub(super) fn retry_at(&self) -> Option<Time> {
        (!self.backlog.is_empty()).then(|| self.tried_at + RETRY)
    }

    /// So much waits for the machine that no more should come, unless it seems dead.
    pub(super) fn is_pressed(&self, now: Time) -> bool {
        self.backlog.len() >= PRESSURE_FRAMES && now.since(self.taken_at) < PATIENCE
    }

    /// The next frame that the machine has sent, if there is one. It is read into `buffer`, as far as it fits.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<Frame>, RealError> {
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(Frame::new(&buffer[..length]))),
            Err(error) if is_temporary(&error) => Ok(None),
            Err(source) => Err(RealError::System { call: "recv", source }),
        }
    }

    /// Sends the machine a frame, after those that it has not taken yet.
    pub(super) fn send(&mut self, now: Time, frame: Frame) -> Result<(), RealError> {
        if self.backlog.is_empty() {
            self.backlog.push_back(frame);
            self.taken_at = now;
            return self.push(now);
        }
        if self.backlog.len() < BACKLOG_FRAMES {
            self.backlog.push_back(frame);
        } else {
            self.undelivered += 1;
        }
        Ok(())
    }

    /// Tries again, if it is time, to send the machine what waits for it.
    pub(super) fn retry(&mut self, now: Time) -> Result<(), RealError> {
        if self.retry_at().is_some_and(|at| at <= now) { self.push(now) } else { Ok(()) }
    }

    fn push(&mut self, now: Time) -> Result<(), RealError> {
        self.tried_at = now;
        while let Some(frame) = self.backlog.front() {
            match self.socket.send_to(frame, &self.remote) {
                Ok(_) => {}
                // Its queue is full: it will read again.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Not there yet, or no longer.
                Err(error) if is_absence(&error) => self.undelivered += 1,
                Err(source) => return Err(RealError::System { call: "sendto", source }),
            }
            self.backlog.pop_front();
            self.taken_at = now;
        }
        Ok(())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.local);
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}
