// SPDX-License-Identifier: Apache-2.0
//! What has become of PDUs: deliveries, fates, lines of the captures, counters.

use std::sync::Arc;

use sundial_core::{Direction, Dropped, End, Fate, Rule, Time};
use sundial_wire::atm::erf::Way;

use super::loss::{Loss, Side};
use super::network::{Event, Outcome, Settled};
use super::pdu::{Content, Pdu};
use super::reassembly::{Flips, Fragment};
use super::records::{ArrivedPdu, BadPduLine, CellLines};
use super::train::Runs;
use super::units::{self, Units};
use super::{Atm, Control};

/// Numbers of the captures in [`sundial_core::Output::Train`].
const PDUS: usize = 0;
const CELLS: usize = 1;

/// A PDU that did not get through.
struct Failure {
    at: Units,
    lost_cells: u32,
    side: Side,
    rule: Rule,
    /// Wrong bits of a PDU that arrived.
    flips: Flips,
}

impl Atm {
    /// Passes on what the network has decided.
    pub(super) fn collect(&mut self) {
        while let Some(event) = self.network.poll_event() {
            match event {
                Event::Left { pdu, start, end, departures } => {
                    if let Some(start) = start {
                        self.started(&pdu, units::time(start));
                    }
                    if let Some(end) = end {
                        self.sent(pdu, units::time(end), departures);
                    }
                }
                Event::Settled(settled) => self.settled(settled),
            }
        }
    }

    fn started(&mut self, pdu: &Arc<Pdu>, at: Time) {
        let from = pdu.from;
        if from == self.ports() {
            // The servers' line is not captured.
            return;
        }
        if let Some(number) = pdu.sending {
            let sending = self.sendings.get_mut(number);
            if !sending.has_started {
                sending.has_started = true;
                let frame = pdu.frame().expect("it is a part of a frame's hand-in");
                self.board.started(at, from, frame);
            }
        }
        self.board.train(PDUS, at, from, Direction::Outbound, pdu.clone());
    }

    fn sent(&mut self, pdu: Arc<Pdu>, end: Time, departures: Runs) {
        let from = pdu.from;
        if let Some(number) = pdu.sending {
            let sending = self.sendings.get_mut(number);
            sending.unsent -= 1;
            if sending.unsent == 0 {
                let port = sending.port;
                self.sendings.remove(number);
                self.finish(end, port);
            }
        }
        if self.parameters.capture.cells && from < self.ports() {
            let (way, vci) = (Way::FromAdapter, pdu.vci);
            let lines = CellLines { pdu, way, vci, cells: departures, flips: Flips::new() };
            self.board.train(CELLS, lines.at(), from, Direction::Outbound, Arc::new(lines));
        }
    }

    fn settled(&mut self, settled: Settled) {
        let Settled { to, vci, arrived, outcome } = settled;
        let captures_cells = self.parameters.capture.cells && to < self.ports();
        let lines = (captures_cells && arrived.cells.first().is_some())
            .then(|| CellLines::arrived(arrived.clone(), vci));
        match outcome {
            Outcome::Received { at } => self.received(at, to, vci, arrived),
            Outcome::Lost { loss: Loss { rule, side, at }, cells } => {
                let failure = Failure { at, lost_cells: cells, side, rule, flips: Flips::new() };
                self.failed(arrived.pdu, to, failure);
            }
            Outcome::Spoiled { at, rule } => {
                let flips = if rule == Rule::WrongCrc { arrived.flips } else { Flips::new() };
                let side = Side::Towards;
                self.failed(arrived.pdu, to, Failure { at, lost_cells: 0, side, rule, flips });
            }
        }
        if let Some(lines) = lines {
            self.board.train(CELLS, lines.at(), to, Direction::Inbound, Arc::new(lines));
        }
    }

    /// A good PDU is at the adapter of `to`, its last bit at `at`.
    fn received(&mut self, at: Units, to: usize, vci: u16, arrived: Fragment) {
        let Fragment { pdu, cells, .. } = arrived;
        let at = units::time(at);
        let due = at + self.rx_latency(to);
        let frame = match (&mut self.control, &pdu.content) {
            (Control::Mesh(mesh), Content::Rfc2684(_, frame)) => {
                Some(mesh.restore(pdu.from, to, frame))
            }
            (Control::Lan(lan), Content::Lane(sdu)) => {
                // The servers know a channel by the number that its sender gave it.
                let is_for_machine = lan.expect(due, to, pdu.from, vci, sdu);
                pdu.frame().filter(|_| is_for_machine).cloned()
            }
            _ => unreachable!("a segment has one way of carrying frames"),
        };
        if to < self.ports() {
            let low_priority = cells.first().is_some_and(|run| run.tagged);
            let line = ArrivedPdu { pdu, vci, low_priority };
            self.board.train(PDUS, at, to, Direction::Inbound, Arc::new(line));
        }
        if let Some(frame) = frame {
            self.board.deliver(due, to, frame);
        }
    }

    /// Records and counts a PDU that did not get to `to`.
    fn failed(&mut self, pdu: Arc<Pdu>, to: usize, failure: Failure) {
        let Failure { at, lost_cells, side, rule, flips } = failure;
        let at = units::time(at);
        let end = match side {
            Side::From => End::From(self.station_name(pdu.from).to_owned()),
            Side::Towards => End::To(self.station_name(to).to_owned()),
        };
        let how = match lost_cells {
            0 => Dropped::End(end),
            _ => Dropped::Cells { lost_cells, cells: pdu.cells, end },
        };
        let fate = Fate::Dropped { rule, how };
        let would_arrive = match (&self.control, &pdu.content) {
            (Control::Lan(lan), Content::Lane(sdu)) => lan.would_deliver(to, sdu),
            _ => true,
        };
        if let Some(frame) = pdu.frame().filter(|_| would_arrive) {
            let at_sender = pdu.from < self.ports() && (side == Side::From || to == self.ports());
            let port = if at_sender { pdu.from } else { to };
            self.board.port(port).count_drop(rule.name());
            self.board.fate(at, frame.clone(), fate.clone());
        }
        let line = BadPduLine { pdu, lost_cells, flips, fate };
        self.board.train(PDUS, at, self.ports(), Direction::Unknown, Arc::new(line));
    }

    /// The counters of ATM alone.
    pub(super) fn own_counters(&self, port: usize) -> Vec<(&'static str, u64)> {
        let station = &self.network.stations()[port];
        let counted = station.counters;
        let mut own = vec![
            ("tx_cells", counted.tx_cells),
            ("rx_cells", counted.rx_cells),
            ("tx_pdus", counted.tx_pdus),
            ("rx_pdus", counted.rx_pdus),
            ("bad_pdus", counted.bad_pdus),
            ("cells_corrected", station.crossing.cells_corrected + station.output.cells_corrected),
            ("cells_tagged", station.crossing.cells_tagged),
        ];
        if let Control::Lan(lan) = &self.control {
            own.push(("lane_ignored_sdus", lan.ignored_sdus(port)));
        }
        own
    }
}
