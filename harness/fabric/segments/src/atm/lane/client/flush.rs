// SPDX-License-Identifier: Apache-2.0
//! Order of frames over a change of path: LE_FLUSH, or waiting for C22.

use sundial_core::{Span, Time};
use sundial_wire::atm::lane::{ControlFrame, LanDestination, Opcode, Status};

use super::endpoint::{Endpoint, Path};

/// The path of the frames to one address.
#[derive(Debug, Default)]
pub(super) struct PathOrder {
    /// What the last frame took, and when; `None`: it has arrived, or there was none.
    used: Option<(Path, Time)>,
    flush: Option<Flush>,
}

/// A request that follows the last frame on the old path.
#[derive(Debug)]
struct Flush {
    transaction: u32,
    deadline: Time,
}

impl PathOrder {
    /// A frame on `path` cannot overtake the one before.
    pub(super) fn allows(&self, path: Path) -> bool {
        self.used.is_none_or(|(used, _)| used == path)
    }

    /// The last frame took the data direct VC with `peer`.
    pub(super) fn is_direct(&self, peer: usize) -> bool {
        self.used.is_some_and(|(used, _)| used == Path::Direct(peer))
    }

    /// A frame takes `path`.
    pub(super) fn note_sent(&mut self, now: Time, path: Path) {
        // An answer to a flush that is under way would not cover this frame.
        *self = Self { used: Some((path, now)), flush: None };
    }

    /// All that was sent on the old path has arrived or is lost.
    pub(super) fn is_settled(&self) -> bool {
        self.used.is_none()
    }

    /// Sends a flush after the last frame on the old path, for one on `next`.
    pub(super) fn flush(&mut self, now: Time, next: Path, endpoint: &mut Endpoint) {
        let (Some((used, _)), None) = (self.used, &self.flush) else { return };
        let peer = match (used, next) {
            // No client can answer for a channel that is gone: only C22 ends the waiting.
            (Path::Direct(peer), _) if !endpoint.channels.is_ready(peer) => return,
            (Path::Direct(peer), _) | (Path::Bus, Path::Direct(peer)) => peer,
            (Path::Bus, Path::Bus) => return,
        };
        let target_address = endpoint.address_of(peer);
        let frame = ControlFrame {
            source: LanDestination::None,
            target_address,
            ..endpoint.request(Opcode::FlushRequest)
        };
        let transaction = endpoint.send_request(used.vci(), frame);
        let deadline = now + endpoint.lane().flush_time_out;
        self.flush = Some(Flush { transaction, deadline });
    }

    /// An answer to a flush; `false`: not of this address.
    pub(super) fn handle_response(&mut self, frame: &ControlFrame) -> bool {
        let is_answered = self.flush.as_ref().is_some_and(|flush| {
            flush.transaction == frame.transaction && frame.status == Status::Success
        });
        if is_answered {
            *self = Self::default();
        }
        is_answered
    }

    /// When something is due, if a frame waits for another path.
    pub(super) fn deadline(&self, delay: Span) -> Option<Time> {
        let flush = self.flush.as_ref().map(|flush| flush.deadline);
        flush.into_iter().chain(self.used.map(|(_, at)| at + delay)).min()
    }

    /// A flush has been sent and not been answered.
    pub(super) fn is_flushing(&self) -> bool {
        self.flush.is_some()
    }

    /// After C22 the old path is empty; after C21 a client that still wants the flush sends it again.
    pub(super) fn handle_timeout(&mut self, now: Time, delay: Span) {
        if self.used.is_some_and(|(_, at)| at + delay <= now) {
            *self = Self::default();
        }
        self.flush.take_if(|flush| flush.deadline <= now);
    }
}
