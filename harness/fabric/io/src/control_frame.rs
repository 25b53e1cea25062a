// SPDX-License-Identifier: Apache-2.0
//! Frames that a guest sends to the fabric itself, and what they mean for the end of the run.

use std::collections::BTreeSet;

use sundial_core::{Span, Time};
use sundial_wire::ethernet::{ETHERTYPE_CONTROL, Header};

use crate::Config;

/// A frame that is never forwarded or captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// The machine has run its job; 0 is success.
    Done {
        /// What the job's last step said.
        status: u8,
    },
    /// For someone else, such as `sundial-ready` for the plugin.
    Other,
}

impl ControlFrame {
    /// Looks at `frame`; `None`: it is an ordinary one.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (header, payload) = Header::parse(frame)?;
        if header.ethertype != ETHERTYPE_CONTROL || !payload.starts_with(b"sundial-") {
            return None;
        }
        match payload.strip_prefix(b"sundial-done") {
            Some(&[status, ..]) => Some(Self::Done { status }),
            _ => Some(Self::Other),
        }
    }
}

/// When the run ends: `linger_ns` after the last of `done_machines` has said done.
#[derive(Clone, Debug)]
pub struct RunEnd {
    waiting: BTreeSet<usize>,
    linger: Span,
    end: Option<Time>,
}

impl RunEnd {
    /// A run that has not ended.
    pub fn new(config: &Config) -> Self {
        let waiting = config.done_machines.iter().copied().collect();
        Self { waiting, linger: config.linger, end: None }
    }

    /// Machine number `machine` said done at `at`. Saying it twice changes nothing.
    pub fn done(&mut self, machine: usize, at: Time) {
        if self.waiting.remove(&machine) && self.waiting.is_empty() {
            self.end = Some(at + self.linger);
        }
    }

    /// The instant at which the run ends, once it is known.
    pub fn at(&self) -> Option<Time> {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame
    }

    fn run_end(machines: &[usize]) -> RunEnd {
        let waiting = machines.iter().copied().collect();
        RunEnd { waiting, linger: Span::from_ns(10), end: None }
    }

    #[test]
    fn done_carries_a_status() {
        let done = frame(0x88b5, b"sundial-done\x03");
        assert_eq!(ControlFrame::parse(&done), Some(ControlFrame::Done { status: 3 }));
        // Adapters may pad to 60 bytes.
        let padded = frame(0x88b5, b"sundial-done\x00\x00\x00\x00");
        assert_eq!(ControlFrame::parse(&padded), Some(ControlFrame::Done { status: 0 }));
    }

    #[test]
    fn ready_and_a_cut_done_are_for_nobody_here() {
        let ready = frame(0x88b5, b"sundial-ready");
        assert_eq!(ControlFrame::parse(&ready), Some(ControlFrame::Other));
        let cut = frame(0x88b5, b"sundial-done");
        assert_eq!(ControlFrame::parse(&cut), Some(ControlFrame::Other));
    }

    #[test]
    fn other_frames_are_ordinary() {
        assert_eq!(ControlFrame::parse(&frame(0x0800, b"sundial-done\x00")), None);
        assert_eq!(ControlFrame::parse(&frame(0x88b5, b"something")), None);
        assert_eq!(ControlFrame::parse(&[0; 13]), None);
    }

    #[test]
    fn the_run_ends_a_while_after_the_last_machine() {
        let mut end = run_end(&[0, 2]);
        end.done(2, Time::from_ns(100));
        end.done(2, Time::from_ns(110));
        end.done(1, Time::from_ns(120));
        assert_eq!(end.at(), None);
        end.done(0, Time::from_ns(130));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
        end.done(0, Time::from_ns(500));
        assert_eq!(end.at(), Some(Time::from_ns(140)));
    }

    #[test]
    fn without_machines_to_wait_for_it_does_not_end_by_itself() {
        let mut end = run_end(&[]);
        end.done(0, Time::from_ns(1));
        assert_eq!(end.at(), None);
    }
}
