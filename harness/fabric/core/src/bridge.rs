// SPDX-License-Identifier: Apache-2.0
//! A MAC bridge (IEEE 802.1D clauses 7.7 to 7.9): what joins two segments or more into one network.
//!
//! The way of a frame: fully received at a port, its source is learned and its ports are chosen; after the
//! forwarding latency it is handed to the adapter of each of them, as a station's frame: on a whole
//! nanosecond, as machines do. The output queue is the adapter's transmit ring, which belongs to the
//! segment.
//!
//! There is no spanning tree: a configuration with a loop of bridges is refused.

use std::collections::VecDeque;

use serde::Serialize;
use sundial_wire::ethernet::{Address, Header};

use crate::{AddressTable, Frame, Learned, Span, Time};

/// What a bridge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeParameters {
    /// From the last bit received to the frame's place in the transmit rings.
    pub forwarding_latency: Span,
    /// Addresses that the table holds; what does not fit is not learned.
    pub mac_table_entries: usize,
    /// An address not seen for this long is forgotten.
    pub ageing: Span,
}

/// A state machine as [`crate::Segment`] is one: calls come in order of time, and after each the outputs are
/// taken until `None`.
#[derive(Debug)]
pub struct Bridge {
    parameters: BridgeParameters,
    table: AddressTable,
    outputs: VecDeque<BridgeOutput>,
    counters: Vec<BridgeCounters>,
}

/// What a bridge has decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeOutput {
    /// The adapter of `port` is handed `frame` at `at`.
    Send {
        /// When.
        at: Time,
        /// Where.
        port: usize,
        /// The frame as it was received.
        frame: Frame,
    },
    /// What [`crate::Segment::note_reachable`] wants to know at `port`.
    Reachable {
        /// Where to say it.
        port: usize,
        /// Which is behind another port.
        address: [u8; 6],
        /// The call's own time: it is behind this port now.
        until: Time,
    },
}

/// Counters of one port of a bridge. Every frame received is forwarded, flooded or filtered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BridgeCounters {
    /// Frames that reached the bridge here.
    pub received_frames: u64,
    /// Those sent to the one port where their destination is.
    pub forwarded_frames: u64,
    /// Those sent to all other ports, because the destination is unknown or a group.
    pub flooded_frames: u64,
    /// Those kept back, because the destination is at this port or no bridge may pass them on.
    pub filtered_frames: u64,
}

impl Bridge {
    /// A bridge of `ports` ports that knows no address.
    pub fn new(ports: usize, parameters: BridgeParameters) -> Self {
        Self {
            table: AddressTable::new(parameters.mac_table_entries, parameters.ageing),
            parameters,
            outputs: VecDeque::new(),
            counters: vec![BridgeCounters::default(); ports],
        }
    }

    /// The last bit of `frame`, an Ethernet frame, reaches the bridge through `port` at `now`.
    pub fn handle_frame(&mut self, now: Time, port: usize, frame: &Frame) {
        let (header, _) = Header::parse(frame).expect("adapters refuse shorter frames");
        self.learn(now, header.source, port);
        let destination = header.destination;
        let known = if destination.is_group() { None } else { self.table.find(now, destination) };
        let counters = &mut self.counters[port];
        counters.received_frames += 1;
        let at = Time::from_ns(now.as_ns_ceil()) + self.parameters.forwarding_latency;
        match known {
            _ if is_reserved(destination) => counters.filtered_frames += 1,
            Some(to) if to == port => counters.filtered_frames += 1,
            Some(to) => {
                counters.forwarded_frames += 1;
                self.outputs.push_back(BridgeOutput::Send { at, port: to, frame: frame.clone() });
            }
            None => {
                counters.flooded_frames += 1;
                for port in self.others(port) {
                    self.outputs.push_back(BridgeOutput::Send { at, port, frame: frame.clone() });
                }
            }
        }
    }

    fn learn(&mut self, now: Time, address: Address, port: usize) {
        if address.is_group() {
            return;
        }
        let learned = self.table.learn(now, address, port);
        let reachable = |port, until| BridgeOutput::Reachable { port, address: address.0, until };
        if learned == Learned::Moved {
            self.outputs.push_back(reachable(port, now));
        }
        if learned != Learned::Full {
            let until = now + self.parameters.ageing;
            for port in self.others(port) {
                self.outputs.push_back(reachable(port, until));
            }
        }
    }

    fn others(&self, port: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.counters.len()).filter(move |&other| other != port)
    }

    /// What has been decided since the last call, in order, until `None`.
    pub fn poll_output(&mut self) -> Option<BridgeOutput> {
        self.outputs.pop_front()
    }

    /// From the last bit received to any [`BridgeOutput::Send`].
    pub fn forwarding_latency(&self) -> Span {
        self.parameters.forwarding_latency
    }

    /// What has been counted so far, in port order.
    pub fn counters(&self) -> &[BridgeCounters] {
        &self.counters
    }
}

/// The addresses 01-80-C2-00-00-00 to 0F, which stay on their segment (clause 7.12.6).
fn is_reserved(Address(octets): Address) -> bool {
    octets[..5] == [0x01, 0x80, 0xc2, 0x00, 0x00] && octets[5] <= 0x0f
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGEING_NS: u64 = 1_000;

    fn bridge(mac_table_entries: usize) -> Bridge {
        let parameters = BridgeParameters {
            forwarding_latency: Span::from_ns(20),
            mac_table_entries,
            ageing: Span::from_ns(AGEING_NS),
        };
        Bridge::new(3, parameters)
    }

    fn address(number: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, number]
    }

    fn frame(destination: [u8; 6], source: u8) -> Frame {
        Frame::from([&destination[..], &address(source), &[8, 0]].concat())
    }

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    /// What a bridge sends, in ns and ports, and what it notes: port, address, until.
    type Followed = (Vec<(u64, usize)>, Vec<(usize, u8, u64)>);

    /// Gives the bridge a frame.
    fn follow(bridge: &mut Bridge, ns: u64, port: usize, frame: &Frame) -> Followed {
        bridge.handle_frame(at(ns), port, frame);
        let (mut sent, mut noted) = (Vec::new(), Vec::new());
        while let Some(output) = bridge.poll_output() {
            match output {
                BridgeOutput::Send { at, port, frame: same } => {
                    assert_eq!(same, *frame);
                    sent.push((at.as_ns_ceil(), port));
                }
                BridgeOutput::Reachable { port, address, until } => {
                    noted.push((port, address[5], until.as_ns_ceil()));
                }
            }
        }
        (sent, noted)
    }

    fn sent(bridge: &mut Bridge, ns: u64, port: usize, frame: &Frame) -> Vec<(u64, usize)> {
        follow(bridge, ns, port, frame).0
    }

    #[test]
    fn an_unknown_destination_is_flooded_and_a_known_one_is_not() {
        let mut bridge = bridge(8);
        assert_eq!(sent(&mut bridge, 100, 0, &frame(address(2), 1)), [(120, 1), (120, 2)]);
        assert_eq!(sent(&mut bridge, 200, 2, &frame(address(1), 2)), [(220, 0)]);
        assert_eq!(sent(&mut bridge, 300, 0, &frame(address(2), 1)), [(320, 2)]);
        assert_eq!(sent(&mut bridge, 300, 2, &frame([0xff; 6], 2)), [(320, 0), (320, 1)]);
        let counted = |received_frames, forwarded_frames, flooded_frames| BridgeCounters {
            received_frames,
            forwarded_frames,
            flooded_frames,
            filtered_frames: 0,
        };
        assert_eq!(bridge.counters(), [counted(2, 1, 1), counted(0, 0, 0), counted(2, 1, 1)]);
    }

    #[test]
    fn a_frame_is_handed_in_on_a_whole_nanosecond() {
        let mut bridge = bridge(8);
        bridge.handle_frame(Time::from_ps(100_001), 0, &frame(address(2), 1));
        let sent = std::iter::from_fn(|| bridge.poll_output())
            .find_map(|it| if let BridgeOutput::Send { at, .. } = it { Some(at) } else { None });
        assert_eq!(sent, Some(at(121)));
    }

    #[test]
    fn what_belongs_to_the_segment_stays_there() {
        let mut bridge = bridge(8);
        sent(&mut bridge, 0, 0, &frame(address(9), 1));
        assert_eq!(sent(&mut bridge, 1, 0, &frame(address(1), 2)), []);
        let reserved = |last| [0x01, 0x80, 0xc2, 0, 0, last];
        assert_eq!(sent(&mut bridge, 2, 0, &frame(reserved(0x0f), 2)), []);
        assert_eq!(sent(&mut bridge, 3, 0, &frame(reserved(0x10), 2)).len(), 2);
        assert_eq!(bridge.counters()[0].filtered_frames, 2);
    }

    #[test]
    fn an_address_is_forgotten_when_it_has_aged() {
        let mut bridge = bridge(8);
        sent(&mut bridge, 0, 0, &frame(address(9), 1));
        let to_it = frame(address(1), 2);
        assert_eq!(sent(&mut bridge, AGEING_NS - 1, 1, &to_it), [(AGEING_NS + 19, 0)]);
        assert_eq!(sent(&mut bridge, AGEING_NS, 1, &to_it).len(), 2);
    }

    #[test]
    fn a_full_table_floods_and_notes_nothing() {
        let mut bridge = bridge(1);
        sent(&mut bridge, 0, 0, &frame(address(9), 1));
        assert_eq!(follow(&mut bridge, 1, 1, &frame(address(1), 2)), (vec![(21, 0)], vec![]));
        assert_eq!(sent(&mut bridge, 2, 0, &frame(address(2), 1)).len(), 2);
    }

    #[test]
    fn other_ports_are_told_what_can_be_reached_and_until_when() {
        let mut bridge = bridge(8);
        let broadcast = frame([0xff; 6], 1);
        let (_, noted) = follow(&mut bridge, 5, 0, &broadcast);
        assert_eq!(noted, [(1, 1, 1_005), (2, 1, 1_005)]);
        let (_, noted) = follow(&mut bridge, 7, 0, &broadcast);
        assert_eq!(noted, [(1, 1, 1_007), (2, 1, 1_007)]);
        // It has moved: no longer behind another port than 1.
        let (_, noted) = follow(&mut bridge, 9, 1, &broadcast);
        assert_eq!(noted, [(1, 1, 9), (0, 1, 1_009), (2, 1, 1_009)]);
    }

    #[test]
    fn a_group_is_no_source() {
        let mut bridge = bridge(8);
        let group = Frame::from([&address(9)[..], &[3, 0, 0, 0, 0, 1], &[8, 0]].concat());
        assert_eq!(follow(&mut bridge, 0, 0, &group).1, []);
    }
}
