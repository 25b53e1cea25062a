// SPDX-License-Identifier: Apache-2.0
//! Frames of the machines on their way into the network: which PDUs they become, and their places in the rings.

use sundial_core::{Frame, Refusal, Segment, Time};

use super::lan::Order;
use super::lane::Sdu;
use super::mesh::{Decision, Mesh};
use super::pdu::{Content, Pdu};
use super::{Atm, Control, units};

/// A frame that an adapter sends, in one PDU or as a copy on each of several VCs.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) port: usize,
    /// The first bit of its first PDU has left.
    pub(super) has_started: bool,
    /// PDUs that have not left in full.
    pub(super) unsent: usize,
}

impl Atm {
    /// When the adapter is through with a frame that it does not send: as if it were one cell.
    pub(super) fn dropped_at(&self, now: Time, port: usize) -> Time {
        now + self.tx_latency(port) + units::span(self.parameters.ports[port].line.cell)
    }

    /// A frame of the machine at `port` goes nowhere.
    fn drop(&mut self, now: Time, port: usize, frame: Frame, refusal: Refusal) {
        let end = self.dropped_at(now, port);
        self.board.refuse(now, port, frame, refusal);
        self.finish(end, port);
    }

    /// A frame has left its place in the ring.
    pub(super) fn finish(&mut self, end: Time, port: usize) {
        self.rings[port].leave(end);
        self.board.tx_done(end, port);
    }

    pub(super) fn handle_mesh_frame(&mut self, now: Time, port: usize, frame: Frame) {
        let Control::Mesh(mesh) = &self.control else { unreachable!("this is a mesh") };
        match mesh.decide(port, &frame) {
            Decision::One(to) => self.send_copies(now, port, frame, &[to]),
            Decision::Flood => {
                let others = (0..self.ports()).filter(|&other| other != port);
                self.send_copies(now, port, frame, &others.collect::<Vec<_>>());
            }
            Decision::Answer { port: answering, reply } => {
                self.board.started(now, port, &frame);
                let end = self.dropped_at(now, port);
                self.finish(end, port);
                // No sooner than an answer could come from there, so that no bound is passed.
                let way = self.lookahead(port, answering) + self.lookahead(answering, port);
                self.board.deliver(now + way, port, reply);
            }
            Decision::Drop(refusal) => self.drop(now, port, frame, refusal),
        }
    }

    /// Sends `frame` on the permanent channels from `from` to each of `to`.
    fn send_copies(&mut self, now: Time, from: usize, frame: Frame, to: &[usize]) {
        let Control::Mesh(Mesh { encapsulation, .. }) = self.control else {
            unreachable!("this is a mesh")
        };
        let sending = Sending { port: from, has_started: false, unsent: to.len() };
        let sending = self.sendings.insert(sending);
        for (frame, &to) in std::iter::repeat_n(frame, to.len()).zip(to) {
            let content = Content::Rfc2684(encapsulation, frame);
            self.send(now, from, Mesh::vci(to), None, content, Some(sending));
        }
    }

    /// The adapter of `from` gets a PDU at `now`.
    fn send(
        &mut self,
        now: Time,
        from: usize,
        vci: u16,
        to: Option<usize>,
        content: Content,
        sending: Option<usize>,
    ) {
        let channel = self.network.channels.find(from, vci, to);
        let at = units::at(now + self.tx_latency(from));
        self.network.send(at, channel, Pdu::new(from, vci, content, sending));
    }

    /// Does what the clients and servers want done.
    pub(super) fn obey(&mut self, now: Time) {
        while let Some(order) = self.poll_order() {
            match order {
                Order::Send { from, vci, to, sdu } => {
                    let sending = match &sdu {
                        Sdu::Data { .. } if from < self.ports() => {
                            self.held[from] -= 1;
                            let sending = Sending { port: from, has_started: false, unsent: 1 };
                            Some(self.sendings.insert(sending))
                        }
                        _ => None,
                    };
                    self.send(now, from, vci, to, Content::Lane(sdu), sending);
                }
                Order::Drop { port, frame, refusal } => {
                    self.held[port] -= 1;
                    self.drop(now, port, frame, refusal);
                }
            }
        }
        self.collect();
    }

    fn poll_order(&mut self) -> Option<Order> {
        match &mut self.control {
            Control::Lan(lan) => lan.poll_order(),
            Control::Mesh(_) => None,
        }
    }
}
