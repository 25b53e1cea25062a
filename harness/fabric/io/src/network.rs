// SPDX-License-Identifier: Apache-2.0
//! The segments and devices of a run, each segment with its captures: what both clocks drive.

mod promises;

use std::collections::VecDeque;
use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use sundial_core::{
    Bridge, BridgeOutput, Frame, Invalid, Output, Place, Scheduler, Segment, Span, Step, Time,
};
use sundial_wire::control::ControlFrame;

use crate::{CaptureError, Captures, Config, End, SegmentConfig};
use promises::earlier;

pub use promises::Bounds;

/// A segment's model and its captures.
pub struct RecordedSegment {
    /// What it was built from.
    pub config: SegmentConfig,
    /// The model. Take outputs through [`RecordedSegment::poll_output`], not here.
    pub model: Box<dyn Segment>,
    /// Frames that the machine at each port did not take from the driver.
    pub undelivered: Vec<u64>,
    captures: Captures,
}

impl RecordedSegment {
    /// What the model has decided, apart from records, which go to the captures. Take all until `None`
    /// after each call of the model.
    pub fn poll_output(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.captures.record(self.model.poll_output()?) {
                return Some(output);
            }
        }
    }

    /// Says that every later call of the model will be for an event at `now` or later.
    pub fn advance(&mut self, now: Time) -> Result<(), CaptureError> {
        self.captures.advance(now)
    }
}

/// A port of a segment, by their numbers.
type Plug = (usize, usize);

struct Device {
    name: String,
    bridge: Bridge,
    /// Where each port is plugged in.
    plugs: Vec<Option<Plug>>,
    /// The number of its first port among the senders of [`Distances`].
    first_sender: usize,
}

/// All segments of a run, and the machines and devices that are plugged into them.
pub struct Network {
    /// In the order of the configuration.
    pub segments: Vec<RecordedSegment>,
    devices: Vec<Device>,
    /// By machine and network interface.
    plugs: Vec<Vec<Option<Plug>>>,
    /// Of each machine's adapters.
    latencies: Vec<Span>,
    /// By sending and receiving machine: how long what one says to the other is under way.
    tell_spans: Vec<Vec<Span>>,
    scheduler: Scheduler,
    notices: VecDeque<Notice>,
    counters: PathBuf,
    epoch_ns: u64,
    /// On the host's monotonic clock.
    next_flush_ns: u64,
}

/// An event that has been worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// When it happened.
    pub at: Time,
    /// The machine that said that its job is done, and with which status.
    pub done: Option<(usize, u8)>,
}

/// Something that happens at a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The machine.
    pub machine: usize,
    /// Which of its interfaces.
    pub nic: usize,
    /// When.
    pub due: Time,
    /// What arrives; `None`: the adapter is through with a frame.
    pub frame: Option<Frame>,
}

/// A segment's model cannot go on.
#[derive(Debug, thiserror::Error)]
#[error("segment {segment} ends the run after {} s: {why}", after.as_ns_floor() / 1_000_000_000)]
pub struct OutOfTime {
    /// Its name.
    pub segment: String,
    /// The last instant that was worked on.
    pub after: Time,
    /// What keeps it from going on.
    pub why: &'static str,
}

/// How often the files are brought up to date, for those who look on.
const FLUSH_NS: u64 = 80_000_000;

/// How long what a machine says to another is under way, at least.
const LEAST_TELL: Span = Span::from_ns(1_000_000);

impl Network {
    /// Builds the models and creates the captures.
    pub fn open(config: &Config, epoch_ns: u64) -> Result<Self, CaptureError> {
        let mut plugs: Vec<_> =
            config.machines.iter().map(|machine| vec![None; machine.nics]).collect();
        let mut first_sender = config.machines.len();
        let mut devices = Vec::new();
        for device in &config.devices {
            let bridge = Bridge::new(device.ports, device.bridge.clone());
            let plugs = vec![None; device.ports];
            devices.push(Device { name: device.name.clone(), bridge, plugs, first_sender });
            first_sender += device.ports;
        }
        let mut segments = Vec::new();
        for (index, segment) in config.segments.iter().enumerate() {
            for (number, plugged) in segment.ports.iter().enumerate() {
                let plug = match plugged.end {
                    End::Machine { machine, nic } => &mut plugs[machine][nic],
                    End::Device { device, port } => &mut devices[device].plugs[port],
                };
                *plug = Some((index, number));
            }
            let model = segment.build(config.seed);
            let captures = Captures::create(&config.capture_dir, segment, &*model, epoch_ns)?;
            let undelivered = vec![0; segment.ports.len()];
            segments.push(RecordedSegment {
                config: segment.clone(),
                model,
                undelivered,
                captures,
            });
        }
        let mut network = Self {
            segments,
            devices,
            plugs,
            tell_spans: Vec::new(),
            latencies: config.machines.iter().map(|machine| machine.adapter_latency).collect(),
            scheduler: Scheduler::new(),
            notices: VecDeque::new(),
            counters: config.capture_dir.join("counters.json"),
            epoch_ns,
            next_flush_ns: 0,
        };
        let machines = network.plugs.len();
        let distances = network.distances();
        let span = |from, to| distances.between(from, to).max(LEAST_TELL);
        network.tell_spans =
            (0..machines).map(|from| (0..machines).map(|to| span(from, to)).collect()).collect();
        Ok(network)
    }

    /// Where interface `nic` of `machine` is plugged in: segment and port.
    pub fn plug(&self, machine: usize, nic: usize) -> Option<Plug> {
        *self.plugs.get(machine)?.get(nic)?
    }

    /// `machine` hands `frame` to the adapter `nic` at `at`, not before its earlier ones. What follows begins when the
    /// adapter can begin with it, its latency later.
    pub fn hand_in(&mut self, at: Time, machine: usize, nic: usize, frame: Frame) {
        let at = at + self.latencies[machine];
        self.scheduler.hand_in(at, Place::Machine { machine, nic }, frame);
    }

    /// A change by hand of the segment called `name`. Returns its instant, at `now` or later.
    pub fn change(&mut self, name: &str, now: Time, change: Value) -> Result<Time, Invalid> {
        let segment = self.segments.iter_mut().find(|segment| segment.config.name == name);
        let segment =
            segment.ok_or_else(|| Invalid::new("segment", format!("no segment {name}")))?;
        segment.model.change_by_hand(now, change).map_err(|invalid| invalid.within("change"))
    }

    /// Drops the frames that wait for their time: the run has ended before.
    pub fn clear(&mut self) {
        self.scheduler.clear();
    }

    /// When something happens next, as far as is known.
    pub fn next_event(&self) -> Option<Time> {
        earlier(self.timeouts().flatten().min(), self.scheduler.first())
    }

    fn timeouts(&self) -> impl Iterator<Item = Option<Time>> {
        self.segments.iter().map(|segment| segment.model.poll_timeout())
    }

    /// Works on the next event before `before`; `None`: there is none. Take what follows with
    /// [`Network::poll_notice`].
    pub fn handle_next(&mut self, before: Time) -> Option<Handled> {
        let timeouts = self.segments.iter().map(|segment| segment.model.poll_timeout());
        let (at, step) = self.scheduler.pop(timeouts, before)?;
        let mut done = None;
        match step {
            Step::Timeout { segment } => {
                self.segments[segment].model.handle_timeout(at);
                self.collect(segment);
            }
            Step::Frame { place: Place::DeviceReceives { device, port }, frame } => {
                self.relay(at, device, port, &frame);
            }
            Step::Frame { place: Place::DeviceSends { device, port }, frame } => {
                let plug =
                    self.devices[device].plugs[port].expect("it sends where it is plugged in");
                self.send(at, plug, frame);
            }
            Step::Frame { place: Place::Machine { machine, nic }, frame } => {
                match (ControlFrame::parse(&frame), self.plug(machine, nic)) {
                    (None, Some(plug)) => self.send(at, plug, frame),
                    (control, _) => {
                        match control {
                            Some(ControlFrame::Done { status }) => done = Some((machine, status)),
                            Some(ControlFrame::Tell { to }) => self.tell(at, machine, to, frame),
                            Some(ControlFrame::Other) | None => {}
                        }
                        // The adapter is through with what goes to no model.
                        self.notices.push_back(Notice { machine, nic, due: at, frame: None });
                    }
                }
            }
        }
        Some(Handled { at, done })
    }

    /// The segment that cannot be called after the earliest instant, if there is one that tells.
    pub fn out_of_time(&self) -> Option<OutOfTime> {
        let last = |segment: &RecordedSegment| {
            let (after, why) = segment.model.last_instant()?;
            Some(OutOfTime { segment: segment.config.name.clone(), after, why })
        };
        self.segments.iter().filter_map(last).min_by_key(|last| last.after)
    }

    /// What has been decided for machines, in order, until `None`.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Machine `from` says something to another, which hears it on its first interface: on no wire, but not sooner than a
    /// wire could bring it, since the other may have run on to there.
    fn tell(&mut self, at: Time, from: usize, to: usize, frame: Frame) {
        let Some(&span) = self.tell_spans[from].get(to) else { return };
        if from != to && self.plug(to, 0).is_some() {
            let due = at + span;
            self.notices.push_back(Notice { machine: to, nic: 0, due, frame: Some(frame) });
        }
    }

    /// A frame is handed to the adapter at a port.
    fn send(&mut self, at: Time, (segment, port): Plug, frame: Frame) {
        self.segments[segment].model.handle_frame(at, port, frame);
        self.collect(segment);
    }

    /// `frame` has reached a device.
    fn relay(&mut self, now: Time, device: usize, port: usize, frame: &Frame) {
        self.devices[device].bridge.handle_frame(now, port, frame);
        while let Some(output) = self.devices[device].bridge.poll_output() {
            let plugs = &self.devices[device].plugs;
            match output {
                BridgeOutput::Send { at, port, frame } => {
                    if plugs[port].is_some() {
                        self.scheduler.hand_in(at, Place::DeviceSends { device, port }, frame);
                    }
                }
                BridgeOutput::Reachable { port, address, until } => {
                    if let Some((segment, port)) = plugs[port] {
                        let model = &mut self.segments[segment].model;
                        model.note_reachable(now, port, address, until);
                        self.collect(segment);
                    }
                }
            }
        }
    }

    /// Passes on what a segment has decided.
    fn collect(&mut self, segment: usize) {
        let segment = &mut self.segments[segment];
        while let Some(output) = segment.poll_output() {
            let (port, due, frame) = match output {
                Output::Deliver { due, port, frame } => (port, due, Some(frame)),
                Output::TxDone { due, port } => (port, due, None),
                Output::Record { .. } | Output::Note { .. } | Output::Train { .. } => {
                    unreachable!("records go to the captures")
                }
            };
            match (segment.config.ports[port].end, frame) {
                (End::Machine { machine, nic }, frame) => {
                    self.notices.push_back(Notice { machine, nic, due, frame });
                }
                (End::Device { device, port }, Some(frame)) => {
                    self.scheduler.hand_in(due, Place::DeviceReceives { device, port }, frame);
                }
                // A full ring drops: a device does not wait for a place.
                (End::Device { .. }, None) => {}
            }
        }
    }

    /// Brings the capture files up to date when it is time to. Call it often; it costs a look at a clock.
    pub fn flush_when_due(&mut self) -> Result<(), CaptureError> {
        // Ticks of some milliseconds, and the cheapest clock there is.
        let clock = clock_gettime(ClockId::MonotonicCoarse);
        let now_ns = clock.tv_sec as u64 * 1_000_000_000 + clock.tv_nsec as u64;
        if now_ns < self.next_flush_ns {
            return Ok(());
        }
        self.next_flush_ns = now_ns + FLUSH_NS;
        self.flush()
    }

    /// Hands the captures what has gathered.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.segments.iter_mut().try_for_each(|segment| segment.captures.flush())
    }

    /// When that is to be done next, on the host's monotonic clock; `None`: the files have everything.
    pub fn next_flush_ns(&self) -> Option<u64> {
        let behind = self.segments.iter().any(|segment| segment.captures.is_behind());
        behind.then_some(self.next_flush_ns)
    }

    /// The contents of `counters.json` at `now`, in one line.
    pub fn counters(&self, now: Time) -> Value {
        let mut segments = Map::new();
        for segment in &self.segments {
            let mut ports = Map::new();
            let counters = segment.model.counters();
            for (port, counters) in counters.ports.into_iter().enumerate() {
                let mut counters = serde_json::to_value(counters).expect("numbers under names");
                counters["undelivered"] = segment.undelivered[port].into();
                ports.insert(segment.config.port_name(port), counters);
            }
            let mut counted = json!({ "kind": segment.config.kind(), "ports": ports });
            if !counters.channels.is_empty() {
                counted["channels"] = json!(counters.channels);
            }
            segments.insert(segment.config.name.clone(), counted);
        }
        let mut all = json!({
            "version": 1,
            "epoch_ns": self.epoch_ns,
            "virtual_ns": now.as_ns_ceil(),
            "segments": segments,
        });
        if !self.devices.is_empty() {
            all["devices"] =
                self.devices.iter().map(|it| (it.name.clone(), self.counted(it))).collect();
        }
        all
    }

    fn counted(&self, device: &Device) -> Value {
        let plugged = device.plugs.iter().zip(device.bridge.counters());
        let ports: Map<_, _> = plugged
            .filter_map(|(plug, counters)| {
                let (segment, port) = (*plug)?;
                Some((self.segments[segment].config.port_name(port), json!(counters)))
            })
            .collect();
        json!({ "kind": "bridge", "ports": ports })
    }

    /// Ends all captures at `end` and writes `counters.json`. What is due at or after `end` is not part
    /// of the captures, though it may have been counted when it was decided.
    pub fn finish(mut self, end: Time) -> Result<(), CaptureError> {
        while self.handle_next(end).is_some() {}
        for segment in &mut self.segments {
            segment.model.handle_timeout(end);
            while segment.poll_output().is_some() {}
        }
        let mut text =
            serde_json::to_string_pretty(&self.counters(end)).expect("numbers under names");
        text.push('\n');
        for segment in self.segments {
            segment.captures.finish(end)?;
        }
        std::fs::write(&self.counters, text)
            .map_err(|source| CaptureError { path: self.counters, source })
    }
}

impl Device {
    fn others(&self, port: usize) -> impl Iterator<Item = usize> + use<> {
        (0..self.plugs.len()).filter(move |&other| other != port)
    }
}

#[cfg(test)]
mod tests;
