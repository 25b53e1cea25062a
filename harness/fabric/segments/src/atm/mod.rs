// SPDX-License-Identifier: Apache-2.0
//! ATM: adapters that segment Ethernet frames into cells (AAL5), a switch with output queues, adapters that join
//! the cells again; LAN emulation 1.0, RFC 2684 bridged, or classical IP.
//!
//! The way of a frame: transmit ring; the client of LAN emulation, or the permanent VC that it belongs to;
//! `tx_latency`; the cells on the line to the switch; propagation; policing; `cell_latency`; the output queue
//! and its discards; the line from the switch; propagation; reassembly; `rx_latency`.
//!
//! `network` carries PDUs as runs of cells, with whole units of time (`units`); `lan` and `mesh` decide which PDUs
//! there are. SONET's overhead columns are left out: an idle line starts a cell at once.

mod channels;
mod config;
mod crossing;

mod faults;
mod gcra;
mod lan;
mod lane;
mod loss;
mod mesh;
mod network;
mod output;
mod parameters;
mod passage;
mod pdu;
mod promises;
mod reassembly;
mod records;
mod sending;
mod settling;
mod slab;
mod stations;
mod train;
mod units;
mod uplink;

use sundial_core::{
    Board, Frame, FurtherCapture, LinkType, Output, Ring, Segment, SegmentCounters,
    SegmentParameters, Span, Time,
};
use sundial_wire::atm::{aal5, lane as lane_wire};
use sundial_wire::ethernet::Address;

use crate::ethernet::refusal;
use lan::Lan;
use mesh::Mesh;
use network::Network;
use parameters::Carriage;
use sending::Sending;
use slab::Slab;

pub use config::{Config, plain_fields};
pub use parameters::AtmParameters;

/// Adapters, a switch, and who decides what travels on its channels.
#[derive(Debug)]
pub struct Atm {
    name: String,
    max_frame_bytes: usize,
    parameters: AtmParameters,
    rings: Vec<Ring>,
    /// Frames on their way out of the adapters.
    sendings: Slab<Sending>,
    /// By port: frames that its client holds.
    held: Vec<usize>,
    network: Network,
    control: Control,
    board: Board,
    now: Time,
}

/// Who decides what travels on the channels.
#[derive(Debug)]
enum Control {
    Lan(Box<Lan>),
    Mesh(Mesh),
}

impl Atm {
    /// A segment with the ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: AtmParameters) -> Self {
        let ports = common.ports.len();
        assert_eq!(parameters.ports.len(), ports, "one line a port");
        let (control, channels) = match &parameters.carriage {
            Carriage::Lane(lane) => {
                (Control::Lan(Box::new(Lan::new(common, lane))), Lan::channels(ports))
            }
            Carriage::Bridged(encapsulation) => {
                (Control::Mesh(Mesh::bridged(common, *encapsulation)), Mesh::channels(ports))
            }
            Carriage::Routed(routes) => {
                (Control::Mesh(Mesh::routed(common, routes.clone())), Mesh::channels(ports))
            }
        };
        let most_frame_bytes = match &parameters.carriage {
            Carriage::Lane(lane) => lane.most_frame_bytes,
            Carriage::Bridged(_) | Carriage::Routed(_) => usize::MAX,
        };
        Self {
            name: common.name.clone(),
            max_frame_bytes: common.max_frame_bytes.min(most_frame_bytes),
            rings: (0..common.rings.len()).map(|port| common.ring(port)).collect(),
            sendings: Slab::default(),
            held: vec![0; ports],
            network: stations::network(common, &parameters, channels),
            control,
            board: Board::new(common),
            now: Time::ZERO,
            parameters,
        }
    }

    fn ports(&self) -> usize {
        self.rings.len()
    }

    /// `OWNER:INTERFACE` of a port, or `service`.
    fn station_name(&self, station: usize) -> &str {
        if station < self.ports() { self.board.name(station) } else { "service" }
    }

    fn rx_latency(&self, station: usize) -> Span {
        self.parameters.ports.get(station).map_or(Span::ZERO, |port| port.rx_latency)
    }

    fn tx_latency(&self, station: usize) -> Span {
        self.parameters.ports.get(station).map_or(Span::ZERO, |port| port.tx_latency)
    }

    /// Decides all that can be decided at `now`; what happens to clients and servers until then happens in order.
    fn advance(&mut self, now: Time) {
        loop {
            let next = self.next_inner_event().map_or(now, |next| next.min(now));
            self.network.advance(units::at(next));
            self.collect();
            match &mut self.control {
                Control::Lan(lan) if lan.next_event().is_some_and(|at| at <= next) => {
                    lan.handle_events(next);
                    self.obey(next);
                }
                _ if next == now => return,
                _ => {}
            }
        }
    }

    /// Nothing happens before to a client or a server, apart from frames that are handed in; `None`: nothing
    /// will, or there is none.
    fn next_inner_event(&self) -> Option<Time> {
        let Control::Lan(lan) = &self.control else { return None };
        let arrivals = (0..=self.ports()).filter_map(|station| self.next_arrival(station));
        arrivals.chain(lan.next_event()).min()
    }

    /// No undecided PDU gets to a station before.
    fn next_arrival(&self, station: usize) -> Option<Time> {
        let frame = self.network.earliest_frame(station);
        let arrival = frame.into_iter().chain(self.network.earliest_other(station)).min()?;
        Some(units::time(arrival) + self.rx_latency(station))
    }

    /// Cells of the longest PDU that the segment carries.
    fn most_cells(&self) -> u64 {
        let sdu = match &self.parameters.carriage {
            Carriage::Lane(_) => {
                lane_wire::data_octets(self.max_frame_bytes).max(lane_wire::CONTROL_OCTETS)
            }
            Carriage::Bridged(encapsulation) => encapsulation.sdu_octets(self.max_frame_bytes),
            Carriage::Routed(_) => sundial_wire::atm::encapsulation::Encapsulation::Routed
                .sdu_octets(self.max_frame_bytes),
        };
        aal5::cells(sdu) as u64
    }

    /// Cells of the shortest PDU with a frame: what an IP packet of 20 octets takes, or a padded frame.
    fn least_cells(&self) -> u64 {
        match self.parameters.carriage {
            Carriage::Routed(_) => 1,
            Carriage::Lane(_) | Carriage::Bridged(_) => 2,
        }
    }
}

impl Segment for Atm {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut self.rings[port]) {
            return;
        }
        match &mut self.control {
            Control::Lan(lan) => {
                self.held[port] += 1;
                lan.handle_frame(now, port, frame);
            }
            Control::Mesh(_) => self.handle_mesh_frame(now, port, frame),
        }
        self.obey(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        self.advance(now);
        self.now = now;
    }

    fn poll_timeout(&self) -> Option<Time> {
        let decision = self.network.next_decision().map(units::time);
        let event = match &self.control {
            Control::Lan(lan) => lan.next_event(),
            Control::Mesh(_) => None,
        };
        decision.into_iter().chain(event).min()
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to {
            return Span::MAX;
        }
        let way = self.network.least_way(from, to, self.least_cells());
        self.tx_latency(from) + units::span(way) + self.rx_latency(to)
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        let latency = self.rx_latency(port);
        let sent = self.network.earliest_frame(port).map(|at| units::time(at) + latency);
        let Control::Lan(lan) = &self.control else { return sent };
        let service = self.ports();
        let served = lan.next_service(self.next_arrival(service)).map(|at| {
            let way = self.network.least_way(service, port, self.least_cells());
            at + units::span(way) + latency
        });
        let mut holders = lan.waiting_for(port);
        let held = match holders.next() {
            None => None,
            Some(first) => {
                let ways = holders.chain([first]).map(|client| self.lookahead(client, port));
                self.next_inner_event().zip(ways.min()).map(|(at, way)| at + way)
            }
        };
        sent.into_iter().chain(served).chain(held).min()
    }

    fn earliest_tx_done(&self, port: usize) -> Option<Time> {
        let sent = self.network.earliest_sent(port).map(units::time);
        let held = if self.held[port] > 0 { self.next_inner_event() } else { None };
        sent.into_iter().chain(held.map(|at| self.dropped_at(at, port))).min()
    }

    fn counters(&self) -> SegmentCounters {
        let mut counters = self.board.counters();
        for (port, counted) in counters.ports.iter_mut().enumerate() {
            counted.own.extend(self.own_counters(port));
        }
        counters.channels =
            self.network.channels.counters(|station| self.station_name(station).to_owned());
        counters
    }

    fn rate_bps(&self, port: usize) -> u64 {
        self.parameters.ports[port].line.rate_bps
    }

    fn record_lag(&self) -> Span {
        units::span(self.network.longest_decision(self.most_cells()))
    }

    fn further_captures(&self) -> Vec<FurtherCapture> {
        let capture = |what: &str, records_most| FurtherCapture {
            path: format!("atm/{}.{what}", self.name),
            link_type: LinkType::ERF,
            record_lag: self.record_lag(),
            records_most,
        };
        let mut captures = vec![capture("pdus", None)];
        if self.parameters.capture.cells {
            captures.push(capture("cells", Some(self.parameters.capture.cells_most)));
        }
        captures
    }

    fn last_instant(&self) -> Option<(Time, &'static str)> {
        let is_behind = self.network.latest_departure() > units::at(units::LAST_DEPARTURE);
        Some(if is_behind {
            (self.now, "frames wait in an adapter for longer than its clock of 38 h counts")
        } else {
            (units::LAST, "its clock counts 38 h")
        })
    }

    fn note_reachable(&mut self, now: Time, port: usize, address: [u8; 6], until: Time) {
        self.handle_timeout(now);
        if let Control::Lan(lan) = &mut self.control {
            lan.note_reachable(now, port, Address(address), until);
        }
        self.obey(now);
    }
}

#[cfg(test)]
mod tests;
