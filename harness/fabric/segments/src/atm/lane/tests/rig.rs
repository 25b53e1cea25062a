// SPDX-License-Identifier: Apache-2.0
//! Clients and servers on a network in memory: a latency by VC, SDUs lost as a test says.

use std::collections::BTreeMap;
use std::sync::Arc;

use sundial_core::{Frame, Refusal, Span, Time};
use sundial_wire::atm::lane::{ControlFrame, ElanName, FrameSize, LanDestination, Message};
use sundial_wire::ethernet::Address;

use crate::atm::lane::{
    Action, Client, ClientSettings, Destination, LaneSettings, Resolution, Role, Sdu,
    ServiceAction, Services, data_direct, peer_of,
};

pub(super) fn ms(milliseconds: u64) -> Span {
    Span::from_ns(1_000_000 * milliseconds)
}

pub(super) fn seconds(seconds: u64) -> Span {
    ms(1_000 * seconds)
}

pub(super) fn at(span: Span) -> Time {
    Time::ZERO + span
}

/// The defaults of af-lane-0021, and 50 us in the servers.
pub(super) fn settings() -> LaneSettings {
    LaneSettings {
        resolution: Resolution::LeArp,
        frame_size: FrameSize::Octets1516,
        elan: ElanName::new(b"elan").expect("four octets are not more than 32"),
        control_time_out: seconds(120),
        unknown_frames: 1,
        unknown_frame_time: seconds(1),
        vcc_time_out: seconds(1200),
        retries: 1,
        ageing: seconds(300),
        forward_delay: seconds(15),
        le_arp_response_time: seconds(1),
        flush_time_out: seconds(4),
        path_switching_delay: seconds(6),
        service_latency: Span::from_ns(50_000),
    }
}

/// Of the client at `port`, which is called `m0:eth0` and so on.
pub(super) fn client_settings(
    port: usize,
    relays: &[bool],
    lane: &Arc<LaneSettings>,
) -> ClientSettings {
    ClientSettings {
        port,
        macs: (0..relays.len()).map(mac).collect(),
        relays: relays.to_vec(),
        lane: Arc::clone(lane),
    }
}

/// The address of the machine at `port`.
pub(super) fn mac(port: usize) -> Address {
    Address([0x02, 0x53, 0x44, 0, 0, port as u8 + 1])
}

/// A frame of 60 bytes with `number` in its payload.
pub(super) fn frame(from: Address, to: Address, number: u16) -> Frame {
    let mut bytes = [to.0, from.0].concat();
    bytes.extend([0x08, 0x00]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(60, 0);
    Frame::from(bytes)
}

pub(super) fn number_of(frame: &Frame) -> u16 {
    u16::from_be_bytes([frame[14], frame[15]])
}

/// A copy of an SDU on its way.
#[derive(Clone, Debug)]
pub(super) struct Copy {
    pub(super) sent: Time,
    /// A port; the number of ports for the servers.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) vci: u16,
    pub(super) sdu: Sdu,
}

impl Copy {
    /// The control frame in it.
    pub(super) fn control(&self) -> Option<ControlFrame> {
        let Sdu::Control(octets) = &self.sdu else { return None };
        match Message::parse(octets) {
            Some(Message::Frame(frame)) => Some(*frame),
            _ => None,
        }
    }

    /// As in `140 us, 0 to 2 on 33: ArpRequest 3 of ff:ff:ff:ff:ff:ff`.
    fn line(&self) -> String {
        let what = match (&self.sdu, self.control()) {
            (Sdu::Data { frame, .. }, _) => format!("frame {}", number_of(frame)),
            (_, Some(frame)) => match frame.target {
                LanDestination::Mac(address) => {
                    format!("{:?} {} of {address}", frame.opcode, frame.transaction)
                }
                LanDestination::None => format!("{:?} {}", frame.opcode, frame.transaction),
            },
            (Sdu::Control(octets), None) => {
                format!("{:?}", Message::parse(octets).expect("everything sent can be read"))
            }
        };
        let microseconds = self.sent.as_ps() / 1_000_000;
        format!("{microseconds} us, {} to {} on {}: {what}", self.from, self.to, self.vci)
    }
}

enum Event {
    Arrive(Copy),
    Connect(usize, usize),
    Frame(usize, Frame),
}

pub(super) struct Rig {
    pub(super) now: Time,
    pub(super) clients: Vec<Client>,
    pub(super) services: Services,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    /// By sender, VCI and receiver: VCs keep their order.
    last_arrivals: BTreeMap<(usize, u16, usize), Time>,
    pub(super) latency: Box<dyn Fn(&Copy) -> Span>,
    /// Whether a copy is lost.
    pub(super) lose: Box<dyn FnMut(&Copy) -> bool>,
    pub(super) vc_setup: Span,
    pub(super) copies: Vec<Copy>,
    /// When, port, number of the frame.
    pub(super) delivered: Vec<(Time, usize, u16)>,
    /// When, number of the frame, why.
    pub(super) dropped: Vec<(Time, u16, Refusal)>,
}

impl Rig {
    /// Machines at `ports` ports, 10 us from one another and from the servers.
    pub(super) fn new(ports: usize, settings: LaneSettings) -> Self {
        Self::with_relays(vec![false; ports], settings)
    }

    pub(super) fn with_relays(relays: Vec<bool>, settings: LaneSettings) -> Self {
        let lane = Arc::new(settings);
        let ports = relays.len();
        let client = |port| Client::new(client_settings(port, &relays, &lane));
        Self {
            now: Time::ZERO,
            clients: (0..ports).map(client).collect(),
            services: Services::new(Arc::clone(&lane), ports),
            events: BTreeMap::new(),
            sequence: 0,
            last_arrivals: BTreeMap::new(),
            latency: Box::new(|_| Span::from_ns(10_000)),
            lose: Box::new(|_| false),
            vc_setup: ms(2),
            copies: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Two machines, every client joined: it is 1 ms.
    pub(super) fn pair(settings: LaneSettings) -> Self {
        Self::new(2, settings).joined()
    }

    /// The numbers of the frames that arrived.
    pub(super) fn numbers(&self) -> Vec<u16> {
        self.delivered.iter().map(|(_, _, number)| *number).collect()
    }

    /// With every client joined: it is 1 ms.
    pub(super) fn joined(mut self) -> Self {
        self.run_until(at(ms(1)));
        self.copies.clear();
        self
    }

    /// The machine at `from` hands in frame `number` for the one at `to` at `time`.
    pub(super) fn frame_at(&mut self, time: Time, from: usize, to: usize, number: u16) {
        self.hand_in_at(time, from, frame(mac(from), mac(to), number));
    }

    /// Frames 1, 2, ...: after how many ms, from and to which machine.
    pub(super) fn frames<const COUNT: usize>(
        mut self,
        frames: [(u64, usize, usize); COUNT],
    ) -> Self {
        for (number, (milliseconds, from, to)) in (1..).zip(frames) {
            self.frame_at(at(ms(milliseconds)), from, to, number);
        }
        self
    }

    /// The same rig, which loses the copies that `lose` picks.
    pub(super) fn losing(mut self, lose: impl FnMut(&Copy) -> bool + 'static) -> Self {
        self.lose = Box::new(lose);
        self
    }

    pub(super) fn hand_in_at(&mut self, time: Time, port: usize, frame: Frame) {
        self.push(time, Event::Frame(port, frame));
    }

    /// What was sent since the last call, a line a copy.
    pub(super) fn lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.copies).iter().map(Copy::line).collect()
    }

    pub(super) fn run_until(&mut self, end: Time) {
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = next;
            self.step();
        }
        self.now = end;
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<Time> {
        let timeouts = self.clients.iter().filter_map(Client::poll_timeout);
        let event = self.events.first_key_value().map(|((time, _), _)| *time);
        timeouts.chain(event).chain(self.services.poll_timeout()).min()
    }

    fn step(&mut self) {
        self.handle_events();
        for client in &self.clients {
            let next = client.poll_timeout();
            assert!(next.is_none_or(|next| next >= self.now), "nothing is asked for in the past");
        }
    }

    fn handle_events(&mut self) {
        let now = self.now;
        for port in 0..self.clients.len() {
            if self.clients[port].poll_timeout().is_some_and(|time| time <= now) {
                self.clients[port].handle_timeout(now);
                self.drain(port);
            }
        }
        if self.services.poll_timeout().is_some_and(|time| time <= now) {
            self.services.handle_timeout(now);
            self.drain_services();
        }
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= now) {
            match entry.remove() {
                Event::Arrive(copy) => self.arrive(copy),
                Event::Connect(caller, called) => {
                    self.clients[caller].handle_connected(now, called, Role::Caller);
                    self.drain(caller);
                    self.clients[called].handle_connected(now, caller, Role::Called);
                    self.drain(called);
                }
                Event::Frame(port, frame) => {
                    self.clients[port].handle_frame(now, frame);
                    self.drain(port);
                }
            }
        }
    }

    fn arrive(&mut self, copy: Copy) {
        let now = self.now;
        let Copy { from, to, vci, sdu, .. } = copy;
        if to == self.clients.len() {
            self.services.handle_sdu(now, from, vci, sdu);
            self.drain_services();
            return;
        }
        // The same data direct VC has another number at each end.
        let vci = if peer_of(vci) == Some(to) { data_direct(from) } else { vci };
        match &sdu {
            Sdu::Data { frame, .. } => {
                if self.clients[to].receive(now, vci, &sdu) {
                    self.delivered.push((now, to, number_of(frame)));
                }
            }
            Sdu::Control(octets) => self.clients[to].handle_control(now, vci, octets),
        }
        self.drain(to);
    }

    pub(super) fn drain(&mut self, port: usize) {
        while let Some(action) = self.clients[port].poll_action() {
            match action {
                Action::Send { vci, sdu } => {
                    let to = peer_of(vci).unwrap_or(self.clients.len());
                    self.send(port, to, vci, sdu);
                }
                Action::Drop { frame, refusal } => {
                    self.dropped.push((self.now, number_of(&frame), refusal));
                }
                Action::Connect { peer } => {
                    self.push(self.now + self.vc_setup, Event::Connect(port, peer));
                }
                Action::Release { peer } => {
                    self.clients[port].handle_released(self.now, peer);
                    self.clients[peer].handle_released(self.now, port);
                    self.drain(peer);
                }
            }
        }
    }

    fn drain_services(&mut self) {
        let from = self.clients.len();
        while let Some(ServiceAction::Send { vci, to, sdu }) = self.services.poll_action() {
            match to {
                Destination::One(port) => self.send(from, port, vci, sdu),
                Destination::Every => {
                    for port in 0..from {
                        self.send(from, port, vci, sdu.clone());
                    }
                }
            }
        }
    }

    fn send(&mut self, from: usize, to: usize, vci: u16, sdu: Sdu) {
        let copy = Copy { sent: self.now, from, to, vci, sdu };
        self.copies.push(copy.clone());
        if (self.lose)(&copy) {
            return;
        }
        let last = self.last_arrivals.entry((from, vci, to)).or_default();
        *last = (*last).max(self.now + (self.latency)(&copy));
        let arrival = *last;
        self.push(arrival, Event::Arrive(copy));
    }

    fn push(&mut self, time: Time, event: Event) {
        self.events.insert((time, self.sequence), event);
        self.sequence += 1;
    }
}
