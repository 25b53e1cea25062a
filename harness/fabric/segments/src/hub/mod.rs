// SPDX-License-Identifier: Apache-2.0
//! A repeater hub: half duplex CSMA/CD at 10 or 100 Mb/s.
//!
//! Read IEEE 802.3 before editing: clause 4.2.8 (the procedures Deference, BackOff, StartJam), 4.4.2
//! (parameters), clauses 9 and 27 (repeaters).
//!
//! Stations sit at the ends of cables on one repeater. What station i sends is heard by station j after
//! i's cable, the repeater and j's cable. A repeater that hears two ports at once jams all ports until
//! the last of them is silent (9.5.6, 27.3.1.4); every port then hears noise exactly while some signal
//! is on its way through, which is what the sum of delayed signals says, too. Fragments are never
//! extended (9.6.4): a station that collides has sent 64 bits of preamble and 32 of jam at least.
//!
//! A station's controller knows of a signal only some time after the first bit has reached its cable: see
//! [`HubParameters::carrier_sense`]. Until then it may start, and collides. Without that time two
//! stations that draw the same number of slots would never collide: the jams of a collision may end as far
//! apart as the way between the two takes, so the second would defer in the very instant in which its
//! backoff ends.
//!
//! Order at one instant: end of own transmission, carrier off, carrier on, end of backoff, end of the
//! gap, then frames handed in; among equals the lower port first.
//!
//! A transmission is certain, and its outcome announced, as soon as every other station hears it and
//! none of them can start any more.

mod bounds;
mod config;
mod station;

use std::collections::BTreeSet;

use sundial_core::{
    Board, Fate, Frame, LinkType, Output, Refusal, Rule, Segment, SegmentCounters,
    SegmentParameters, Span, Time, Why,
};

use crate::ethernet::{GAP_BITS, MIN_WIRE_BITS, refusal, wire_bits};
use station::{Deference, Heard, Station, Transmission};

pub use config::Config;

/// `slotTime`, clause 4.4.2.
const SLOT_BITS: u64 = 512;
/// `jamSize`.
const JAM_BITS: u64 = 32;
/// `attemptLimit`.
const ATTEMPT_LIMIT: u32 = 16;
/// `backOffLimit`.
const BACKOFF_LIMIT: u32 = 10;
/// `interFrameSpacingPart1` may be up to two thirds of the gap (4.2.3.2.2); it is.
const GAP_PART_1_BITS: u64 = 64;
/// From the first bit at the cable's end to carrier sense at the controller: the DP83840A, a transceiver
/// of 1996 for both rates, states 1 us for 10BASE-T and 175 ns for 100BASE-TX (data sheet, 8.6.3 and 8.5.5).
const CARRIER_SENSE_10_NS: u64 = 1000;
const CARRIER_SENSE_100_NS: u64 = 175;

/// What a hub is.
#[derive(Clone, Debug)]
pub struct HubParameters {
    /// 10 or 100 Mb/s.
    pub rate_bps: u64,
    /// One way through each port's cable.
    pub cable_delay: Vec<Span>,
    /// Through the repeater.
    pub repeater_delay: Span,
}

impl HubParameters {
    /// How long the first bit of a signal has been at a station when the station knows of it: it defers,
    /// or finds that it has collided. The end of a signal is known at once.
    ///
    /// The standard leaves the time to the maker. It bounds it by the budget of the round trip (table 29-3:
    /// 100 bits for the two stations of 100BASE-TX, sending included) and, for 100BASE-X, in table 24-2.
    pub fn carrier_sense(rate_bps: u64) -> Span {
        Span::from_ns(if rate_bps < 100_000_000 {
            CARRIER_SENSE_10_NS
        } else {
            CARRIER_SENSE_100_NS
        })
    }

    /// Longest way between two stations that leaves the round trip, carrier sense at both ends and a jam
    /// within the slot, as 4.2.3.2.3 demands.
    pub fn longest_way(rate_bps: u64) -> Span {
        Span::of_bits((SLOT_BITS - JAM_BITS) / 2, rate_bps) - Self::carrier_sense(rate_bps)
    }

    /// From the station at `from` to the station at `to`.
    pub fn way(&self, from: usize, to: usize) -> Span {
        self.cable_delay[from] + self.repeater_delay + self.cable_delay[to]
    }
}

/// The hub, its stations and everything on its cables.
#[derive(Debug)]
pub struct Hub {
    max_frame_bytes: usize,
    parameters: HubParameters,
    bit: Span,
    carrier_sense: Span,
    stations: Vec<Station>,
    /// What is going to happen. An event that no longer will is taken out, so the first one is real.
    events: BTreeSet<(Time, Event)>,
    board: Board,
    now: Time,
    next_transmission: u64,
}

/// In the order in which they happen at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    TransmissionEnd { port: usize },
    CarrierOff { port: usize, from: usize, id: u64 },
    CarrierOn { port: usize, from: usize, id: u64 },
    BackoffEnd { port: usize },
    GapEnd { port: usize },
}

impl Hub {
    /// A hub with the ports of `common`.
    pub fn new(common: &SegmentParameters, parameters: HubParameters) -> Self {
        let ports = common.ports.len();
        assert!(ports >= 2, "a hub joins at least two stations");
        assert_eq!(parameters.cable_delay.len(), ports, "one cable a port");
        let bit = Span::of_bits(1, parameters.rate_bps);
        let limit = HubParameters::longest_way(parameters.rate_bps);
        for from in 0..ports {
            let fits = (0..ports).all(|to| from == to || parameters.way(from, to) <= limit);
            assert!(fits, "the round trip must be within the slot");
        }
        Self {
            max_frame_bytes: common.max_frame_bytes,
            stations: (0..ports).map(|port| Station::new(common, port)).collect(),
            carrier_sense: HubParameters::carrier_sense(parameters.rate_bps),
            parameters,
            bit,
            events: BTreeSet::new(),
            board: Board::new(common),
            now: Time::ZERO,
            next_transmission: 0,
        }
    }

    fn plan(&mut self, time: Time, event: Event) {
        self.events.insert((time, event));
    }

    fn cancel(&mut self, time: Time, event: Event) {
        let planned = self.events.remove(&(time, event));
        assert!(planned, "{event:?} was not planned for {time}");
    }

    fn bits(&self, bits: u64) -> Span {
        self.bit * bits
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::TransmissionEnd { port } => self.end_transmission(port),
            Event::CarrierOff { port, from, id } => self.carrier_off(port, from, id),
            Event::CarrierOn { port, from, id } => self.carrier_on(port, from, id),
            Event::BackoffEnd { port } => {
                self.stations[port].backoff_until = None;
                self.try_start(port);
            }
            Event::GapEnd { port } => self.gap_end(port),
        }
    }

    /// Starts the waiting frame of `port` if deference lets it.
    fn try_start(&mut self, port: usize) {
        let station = &self.stations[port];
        if station.deference != Deference::Free || station.backoff_until.is_some() {
            return;
        }
        if let Some(frame) = station.queue.front() {
            let bits = wire_bits(frame.len());
            self.start(port, bits);
        }
    }

    fn start(&mut self, port: usize, bits: u64) {
        let id = self.next_transmission;
        self.next_transmission += 1;
        let others = self.stations.len() - 1;
        let end = self.now + self.bits(bits);
        let station = &mut self.stations[port];
        station.deference = Deference::Busy { sent: true };
        station.sending = Some(Transmission {
            id,
            start: self.now,
            end,
            collided: false,
            announced: false,
            unaware: others,
        });
        self.plan(end, Event::TransmissionEnd { port });
        for other in (0..=others).filter(|&other| other != port) {
            self.stations[other].approaching += 1;
            let sensed = self.now + self.parameters.way(port, other) + self.carrier_sense;
            self.plan(sensed, Event::CarrierOn { port: other, from: port, id });
        }
        // A carrier that came up in the second part of the gap did not stop the station.
        if !self.stations[port].heard.is_empty() {
            self.collide(port);
        }
    }

    /// The station at `port`, sending, hears another.
    fn collide(&mut self, port: usize) {
        let (now, bit) = (self.now, self.bit);
        let station = &mut self.stations[port];
        let sending = station.sending.as_mut().expect("only a sender collides");
        if sending.collided {
            return;
        }
        assert!(!sending.announced, "a transmission that was certain has collided");
        let planned_end = sending.end;
        let bits = sending.jam(now, bit);
        let end = sending.end;
        station.attempts += 1;
        let attempts = station.attempts;
        let frame = station.queue.front().expect("the frame being sent").clone();
        self.cancel(planned_end, Event::TransmissionEnd { port });
        self.plan(end, Event::TransmissionEnd { port });
        self.board.port(port).collisions += 1;
        let adapter = self.board.name(port).to_owned();
        self.board.fate(now, frame, Fate::Collision { adapter, attempt: attempts, bits });
        if attempts == ATTEMPT_LIMIT {
            self.give_up(port, end);
        } else {
            self.back_off(port, end);
        }
    }

    /// The frame at the head collided once too often; its last attempt ends at `end`.
    fn give_up(&mut self, port: usize, end: Time) {
        let attempts = self.stations[port].attempts;
        let frame = self.finish_head(port, end);
        self.board.port(port).excessive_collisions += 1;
        let refusal = Refusal::with(Rule::ExcessiveCollisions, Why::Attempts { attempts });
        self.board.refuse(end, port, frame, refusal);
        self.board.tx_done(end, port);
    }

    /// BackOff: the next attempt comes a random number of slots after the jam, which ends at `end`.
    fn back_off(&mut self, port: usize, end: Time) {
        let station = &mut self.stations[port];
        let slots = station.backoff.below(1 << station.attempts.min(BACKOFF_LIMIT));
        if slots > 0 {
            let until = end + self.bit * (u64::from(slots) * SLOT_BITS);
            station.backoff_until = Some(until);
            self.plan(until, Event::BackoffEnd { port });
        }
    }

    /// The head of the queue of `port` leaves the ring at `end`.
    fn finish_head(&mut self, port: usize, end: Time) -> Frame {
        let station = &mut self.stations[port];
        station.attempts = 0;
        station.deferred = false;
        station.ring.leave(end);
        station.queue.pop_front().expect("the frame being sent")
    }

    fn end_transmission(&mut self, port: usize) {
        let sending = self.stations[port].sending.take().expect("a transmission ends once");
        assert!(sending.announced || sending.collided, "a transmission ended undecided");
        for other in (0..self.stations.len()).filter(|&other| other != port) {
            let arrival = self.now + self.parameters.way(port, other);
            self.plan(arrival, Event::CarrierOff { port: other, from: port, id: sending.id });
            self.board.port(other).fragments_seen += u64::from(sending.collided);
        }
        self.start_gap_if_silent(port);
    }

    fn carrier_on(&mut self, port: usize, from: usize, id: u64) {
        let now = self.now;
        let station = &mut self.stations[port];
        station.approaching -= 1;
        station.heard.push(Heard { from, id, aware: false });
        if station.sending.is_some() {
            self.collide(port);
            return;
        }
        if !station.queue.is_empty() {
            self.count_deferred(port);
        }
        let station = &mut self.stations[port];
        match station.deference {
            // The gap is timed to its end whatever comes: after an own transmission all of it, after
            // another's its second part (4.2.8, Deference).
            Deference::Gap { deaf_from, .. } if now >= deaf_from => {}
            Deference::Busy { .. } => self.become_aware(port),
            Deference::Free => self.defer(port),
            Deference::Gap { end, .. } => {
                self.cancel(end, Event::GapEnd { port });
                self.defer(port);
            }
        }
    }

    fn carrier_off(&mut self, port: usize, from: usize, id: u64) {
        let heard = &mut self.stations[port].heard;
        heard.retain(|heard| (heard.from, heard.id) != (from, id));
        self.start_gap_if_silent(port);
    }

    fn start_gap_if_silent(&mut self, port: usize) {
        let gap_end = self.now + self.bits(GAP_BITS);
        let part_2 = self.now + self.bits(GAP_PART_1_BITS);
        let now = self.now;
        let station = &mut self.stations[port];
        let Deference::Busy { sent } = station.deference else { return };
        if station.sending.is_some() || !station.heard.is_empty() {
            return;
        }
        let deaf_from = if sent { now } else { part_2 };
        station.deference = Deference::Gap { end: gap_end, deaf_from, own: sent };
        self.plan(gap_end, Event::GapEnd { port });
    }

    fn gap_end(&mut self, port: usize) {
        let now = self.now;
        let station = &mut self.stations[port];
        if station.is_waiting_for_others() {
            station.freed = Some(now);
        }
        station.deference = Deference::Free;
        self.try_start(port);
        let station = &self.stations[port];
        if station.deference == Deference::Free && !station.heard.is_empty() {
            self.defer(port);
        }
    }

    fn defer(&mut self, port: usize) {
        self.stations[port].deference = Deference::Busy { sent: false };
        self.become_aware(port);
    }

    /// The station at `port` defers to all it hears: none of these can be hurt by it any more.
    fn become_aware(&mut self, port: usize) {
        for index in 0..self.stations[port].heard.len() {
            let Heard { from, id, aware } = &mut self.stations[port].heard[index];
            if std::mem::replace(aware, true) {
                continue;
            }
            let (from, id) = (*from, *id);
            let Some(sending) = &mut self.stations[from].sending else { continue };
            if sending.id == id {
                sending.unaware -= 1;
                self.announce_if_certain(from);
            }
        }
    }

    /// All others defer to `port`, and nothing is under way to it: its transmission will succeed.
    fn announce_if_certain(&mut self, port: usize) {
        let station = &mut self.stations[port];
        let Some(sending) = &mut station.sending else { return };
        // What still approaches was sent by a station that fell silent before it heard this one; it
        // arrives within the slot and makes a collision.
        if sending.unaware > 0 || sending.collided || station.approaching > 0 {
            return;
        }
        sending.announced = true;
        let (start, end) = (sending.start, sending.end);
        let frame = self.finish_head(port, end);
        self.board.sent(start, end, port, &frame);
        for other in (0..self.stations.len()).filter(|&other| other != port) {
            let due = end + self.parameters.way(port, other);
            self.board.deliver(due, other, frame.clone());
        }
    }

    fn count_deferred(&mut self, port: usize) {
        let station = &mut self.stations[port];
        if station.attempts == 0 && !std::mem::replace(&mut station.deferred, true) {
            self.board.port(port).deferred += 1;
        }
    }

    /// Nothing is waiting and nothing undecided: what remains can be caught up with later.
    fn is_settled(&self) -> bool {
        self.stations.iter().all(|station| station.queue.is_empty())
    }
}

impl Segment for Hub {
    fn handle_frame(&mut self, now: Time, port: usize, frame: Frame) {
        self.handle_timeout(now);
        let station = &mut self.stations[port];
        let refused = refusal(&frame, self.max_frame_bytes);
        if !self.board.admit(now, port, &frame, refused, &mut station.ring) {
            return;
        }
        station.queue.push_back(frame);
        if station.queue.len() > 1 {
            return;
        }
        let waits = station.is_waiting_for_others() || station.freed == Some(now);
        if station.sending.is_none() && waits {
            self.count_deferred(port);
        }
        self.try_start(port);
    }

    fn handle_timeout(&mut self, now: Time) {
        assert!(now >= self.now, "time goes back: {now} after {}", self.now);
        while let Some(&(at, event)) = self.events.first() {
            if at > now {
                break;
            }
            self.events.pop_first();
            self.now = at;
            self.handle(event);
        }
        self.now = now;
    }

    fn poll_timeout(&self) -> Option<Time> {
        if self.is_settled() {
            return None;
        }
        self.events.first().map(|(at, _)| *at)
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.board.poll_output()
    }

    fn lookahead(&self, from: usize, to: usize) -> Span {
        if from == to {
            return Span::MAX;
        }
        self.bits(MIN_WIRE_BITS) + self.parameters.way(from, to)
    }

    fn earliest_delivery(&self, port: usize) -> Option<Time> {
        let others = (0..self.stations.len()).filter(|&from| from != port);
        others
            .filter_map(|from| Some(self.earliest_success(from)? + self.parameters.way(from, port)))
            .min()
    }

    fn earliest_tx_done(&self, port: usize) -> Option<Time> {
        self.earliest_finish(port)
    }

    fn counters(&self) -> SegmentCounters {
        self.board.counters()
    }

    fn rate_bps(&self, _port: usize) -> u64 {
        self.parameters.rate_bps
    }

    fn link_type(&self) -> LinkType {
        LinkType::ETHERNET
    }

    /// A frame that is sent is recorded when its success is certain, after the collision window.
    fn record_lag(&self) -> Span {
        self.bits(2 * SLOT_BITS)
    }
}

#[cfg(test)]
mod tests;
