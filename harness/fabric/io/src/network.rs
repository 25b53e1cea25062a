// SPDX-License-Identifier: Apache-2.0
//! The segments of a run, each with its captures: what both clocks drive.

use std::path::PathBuf;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};
use sundial_core::{Hop, Output, Segment, Time};

use crate::{CaptureError, Captures, Config, SegmentConfig};

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

/// All segments of a run, and what is plugged into them.
pub struct Network {
    /// In the order of the configuration.
    pub segments: Vec<RecordedSegment>,
    /// `(segment, port)` by machine and network interface.
    plugs: Vec<Vec<Option<(usize, usize)>>>,
    counters: PathBuf,
    epoch_ns: u64,
    /// On the host's monotonic clock.
    next_flush_ns: u64,
}

/// How often the files are brought up to date, for those who look on.
const FLUSH_NS: u64 = 80_000_000;

impl Network {
    /// Builds the models and creates the captures.
    pub fn open(config: &Config, epoch_ns: u64) -> Result<Self, CaptureError> {
        let mut plugs: Vec<_> =
            config.machines.iter().map(|machine| vec![None; machine.nics]).collect();
        let mut segments = Vec::new();
        for (index, segment) in config.segments.iter().enumerate() {
            for (port, plug) in segment.ports.iter().enumerate() {
                plugs[plug.machine][plug.nic] = Some((index, port));
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
        let counters = config.capture_dir.join("counters.json");
        Ok(Self { segments, plugs, counters, epoch_ns, next_flush_ns: 0 })
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
        self.segments.iter_mut().try_for_each(|segment| segment.captures.flush())
    }

    /// When that is to be done next, on the host's monotonic clock; `None`: the files have everything.
    pub fn next_flush_ns(&self) -> Option<u64> {
        let behind = self.segments.iter().any(|segment| segment.captures.is_behind());
        behind.then_some(self.next_flush_ns)
    }

    /// Where interface `nic` of `machine` is plugged in: segment and port.
    pub fn plug(&self, machine: usize, nic: usize) -> Option<(usize, usize)> {
        *self.plugs.get(machine)?.get(nic)?
    }

    /// When each segment's model asks to be called.
    pub fn timeouts(&self) -> impl Iterator<Item = Option<Time>> {
        self.segments.iter().map(|segment| segment.model.poll_timeout())
    }

    /// Every way from one machine to another across one segment.
    pub fn hops(&self) -> impl Iterator<Item = Hop> {
        self.segments.iter().flat_map(|segment| {
            let ports = &segment.config.ports;
            (0..ports.len()).flat_map(move |from| {
                (0..ports.len()).filter(move |&to| to != from).map(move |to| Hop {
                    from: ports[from].machine,
                    to: ports[to].machine,
                    lookahead: segment.model.lookahead(from, to),
                })
            })
        })
    }

    /// The contents of `counters.json` at `now`, in one line.
    pub fn counters(&self, now: Time) -> Value {
        let mut segments = Map::new();
        for segment in &self.segments {
            let mut ports = Map::new();
            for (port, counters) in segment.model.counters().ports.into_iter().enumerate() {
                let mut counters = serde_json::to_value(counters).expect("numbers under names");
                counters["undelivered"] = segment.undelivered[port].into();
                ports.insert(segment.config.port_name(port), counters);
            }
            let counted = json!({ "kind": segment.config.kind(), "ports": ports });
            segments.insert(segment.config.name.clone(), counted);
        }
        json!({
            "version": 1,
            "epoch_ns": self.epoch_ns,
            "virtual_ns": now.as_ns_ceil(),
            "segments": segments,
        })
    }

    /// Ends all captures at `end` and writes `counters.json`. What is due at or after `end` is no part
    /// of the captures, though it may have been counted when it was decided.
    pub fn finish(mut self, end: Time) -> Result<(), CaptureError> {
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

#[cfg(test)]
mod tests;
