// SPDX-License-Identifier: Apache-2.0
//! How early what is still undecided can come to an end: the hub's promises.
//!
//! Each bound supposes that everything from now on goes as well as it can for the frame in question:
//! every transmission that may still collide ends at once in a jam, every draw of the backoff is 0, and
//! no other station is in the way. New frames and collisions only ever make it later.

use sundial_core::{Frame, Span, Time};

use super::station::{Deference, Transmission};
use super::{ATTEMPT_LIMIT, Hub, JAM_BITS};
use crate::ethernet::{GAP_BITS, PREAMBLE_BITS, wire_bits};

impl Hub {
    /// The earliest end of an undecided transmission of `port` that succeeds.
    pub(super) fn earliest_success(&self, port: usize) -> Option<Time> {
        let station = &self.stations[port];
        let head = station.queue.front()?;
        let undecided = station.sending.filter(|sending| !sending.announced && !sending.collided);
        let (success, after_collision) = match undecided {
            Some(sending) => (sending.end, self.earliest_end(&sending) + self.bits(GAP_BITS)),
            None => {
                let start = self.earliest_start(port);
                let fragment = PREAMBLE_BITS + JAM_BITS + GAP_BITS;
                (start + self.duration(head), start + self.bits(fragment))
            }
        };
        // One collision more, and the next frame, which may be shorter, takes its place.
        if station.attempts + 1 == ATTEMPT_LIMIT
            && let Some(next) = station.queue.get(1)
        {
            return Some(success.min(after_collision + self.duration(next)));
        }
        Some(success)
    }

    /// The earliest end of the frame at the head of the ring of `port`, for better or worse.
    pub(super) fn earliest_finish(&self, port: usize) -> Option<Time> {
        let station = &self.stations[port];
        let head = station.queue.front()?;
        let last_attempt = station.attempts + 1 == ATTEMPT_LIMIT;
        match station.sending.filter(|sending| !sending.announced && !sending.collided) {
            Some(sending) if last_attempt => Some(self.earliest_end(&sending)),
            Some(sending) => Some(sending.end),
            None => {
                let fragment = self.bits(PREAMBLE_BITS + JAM_BITS);
                let least = if last_attempt { fragment } else { self.duration(head) };
                Some(self.earliest_start(port) + least)
            }
        }
    }

    /// The earliest next start of a station that is not in an undecided transmission.
    fn earliest_start(&self, port: usize) -> Time {
        let station = &self.stations[port];
        let gap = self.bits(GAP_BITS);
        let free = match (&station.sending, station.deference) {
            (Some(sending), _) => sending.end + gap,
            (None, Deference::Free) => self.now,
            (None, Deference::Gap { end, .. }) => end,
            (None, Deference::Busy { .. }) => self.earliest_silence(port) + gap,
        };
        free.max(station.backoff_until.unwrap_or(Time::ZERO))
    }

    /// The earliest end of all that `port` hears now.
    fn earliest_silence(&self, port: usize) -> Time {
        let ends = self.stations[port].heard.iter().map(|heard| {
            match &self.stations[heard.from].sending {
                Some(sending) if sending.id == heard.id => {
                    self.earliest_end(sending) + self.parameters.way(heard.from, port)
                }
                // It has ended; its last bits are on the cable.
                _ => self.now,
            }
        });
        ends.max().unwrap_or(self.now)
    }

    /// The earliest end of a transmission, which is that of a collision now if it may still collide.
    fn earliest_end(&self, sending: &Transmission) -> Time {
        if sending.announced || sending.collided {
            return sending.end;
        }
        let jammed = sending.start + self.bits(sending.jammed_bits(self.now, self.bit));
        jammed.min(sending.end)
    }

    fn duration(&self, frame: &Frame) -> Span {
        self.bits(wire_bits(frame.len()))
    }
}
