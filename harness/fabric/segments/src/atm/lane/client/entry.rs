// SPDX-License-Identifier: Apache-2.0
//! The frames to one unicast address: by the BUS, by a data direct VC, or waiting.

use std::collections::VecDeque;

use sundial_core::{Frame, Refusal, Rule, Time, Why};
use sundial_wire::atm::lane::ControlFrame;
use sundial_wire::ethernet::Address;

use super::endpoint::{Endpoint, Path};
use super::flush::PathOrder;
use super::resolve::Resolution;

/// Frames to one address that may wait, as in Linux (net/atm/lec.c, LEC_UNRES_QUE_LEN); af-lane-0021
/// sets no number.
pub(super) const WAITING_PLACES: usize = 8;

/// An address, what is known of it, and the frames that wait for its path.
#[derive(Debug)]
pub(super) struct Entry {
    address: Address,
    resolution: Resolution,
    order: PathOrder,
    /// When frames went to the BUS within the last C11; C10 at most.
    unknown: VecDeque<Time>,
    waiting: VecDeque<Frame>,
}

impl Entry {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            resolution: Resolution::default(),
            order: PathOrder::default(),
            unknown: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// The machine hands in `frame`. `true`: it took its VC at once, and nothing else changed.
    pub(super) fn handle_frame(
        &mut self,
        now: Time,
        frame: Frame,
        endpoint: &mut Endpoint,
    ) -> bool {
        if let Some(peer) = self.resolution.peer()
            && self.order.is_direct(peer)
            && endpoint.channels.is_ready(peer)
            && !self.resolution.is_worth_asking(now, endpoint)
        {
            debug_assert!(self.waiting.is_empty(), "frames that may go do not wait");
            self.send(now, Path::Direct(peer), frame, endpoint);
            return true;
        }
        self.waiting.push_back(frame);
        if self.resolution.is_worth_asking(now, endpoint) {
            self.resolution.ask(now, self.address, endpoint);
        }
        self.advance(now, endpoint);
        if self.waiting.len() > WAITING_PLACES {
            let last = self.waiting.pop_back().expect("more than eight frames are not none");
            endpoint.drop(last, self.refusal(Rule::EightFramesWait));
        }
        false
    }

    fn refusal(&self, rule: Rule) -> Refusal {
        Refusal::with(rule, Why::Address { address: self.address.to_string() })
    }

    /// An answer to LE_ARP about this address; `false`: not one that is waited for.
    pub(super) fn handle_arp_response(
        &mut self,
        now: Time,
        frame: &ControlFrame,
        endpoint: &mut Endpoint,
    ) -> bool {
        let is_waited_for = self.resolution.handle_response(now, frame, endpoint);
        if is_waited_for && let Some(peer) = self.resolution.peer() {
            endpoint.connect(peer);
            self.advance(now, endpoint);
        }
        is_waited_for
    }

    /// An answer to a flush; `false`: not of this address.
    pub(super) fn handle_flush_response(
        &mut self,
        now: Time,
        frame: &ControlFrame,
        endpoint: &mut Endpoint,
    ) -> bool {
        let is_answered = self.order.handle_response(frame);
        if is_answered {
            self.advance(now, endpoint);
        }
        is_answered
    }

    /// The address is not where it was; it is behind `peer`, if that is known.
    pub(super) fn handle_move(&mut self, now: Time, peer: Option<usize>, endpoint: &mut Endpoint) {
        self.resolution.handle_move(now, peer);
        self.advance(now, endpoint);
    }

    /// Takes every frame that may go now, in order; sees to it that the others will.
    pub(super) fn advance(&mut self, now: Time, endpoint: &mut Endpoint) {
        self.forget(now, endpoint);
        let peer = self.resolution.peer();
        if !self.waiting.is_empty() {
            match peer {
                Some(peer) => endpoint.connect(peer),
                None if self.resolution.is_empty() => {
                    self.resolution.ask(now, self.address, endpoint);
                }
                None => {}
            }
        }
        let direct = peer.filter(|&peer| endpoint.channels.is_ready(peer));
        let path = direct.map_or(Path::Bus, Path::Direct);
        if !self.order.allows(path) {
            // A channel that is there is wanted, whether or not a frame waits for it.
            if direct.is_some() || !self.waiting.is_empty() {
                self.order.flush(now, path, endpoint);
            }
            return;
        }
        let unknown_frames = endpoint.lane().unknown_frames;
        while path != Path::Bus || self.unknown.len() < unknown_frames {
            let Some(frame) = self.waiting.pop_front() else { break };
            self.send(now, path, frame, endpoint);
        }
    }

    /// Frames of longer ago than C11 and C22 delay no other.
    fn forget(&mut self, now: Time, endpoint: &Endpoint) {
        let time = endpoint.lane().unknown_frame_time;
        while self.unknown.front().is_some_and(|&sent| sent + time <= now) {
            self.unknown.pop_front();
        }
        self.order.handle_timeout(now, endpoint.lane().path_switching_delay);
    }

    fn send(&mut self, now: Time, path: Path, frame: Frame, endpoint: &mut Endpoint) {
        self.order.note_sent(now, path);
        match path {
            Path::Bus => self.unknown.push_back(now),
            Path::Direct(peer) => endpoint.channels.note_sent(now, peer),
        }
        endpoint.send_data(path, frame);
    }

    /// The port of the client that has the address.
    pub(super) fn peer(&self) -> Option<usize> {
        self.resolution.peer()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Nothing here is worth keeping.
    pub(super) fn is_idle(&self) -> bool {
        self.resolution.is_empty()
            && self.waiting.is_empty()
            && self.order.is_settled()
            && self.unknown.is_empty()
    }

    pub(super) fn deadline(&self, endpoint: &Endpoint) -> Option<Time> {
        let lane = endpoint.lane();
        let resolution = self.resolution.deadline(endpoint);
        // While the address is known and nothing waits, paths and counts are looked at when a frame comes.
        let is_at_rest =
            self.peer().is_some() && self.waiting.is_empty() && !self.order.is_flushing();
        if is_at_rest {
            return resolution;
        }
        let order = self.order.deadline(lane.path_switching_delay);
        let unknown = self.unknown.front().map(|&sent| sent + lane.unknown_frame_time);
        [resolution, order, unknown].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.resolution.handle_timeout(now, self.address, endpoint) {
            for frame in std::mem::take(&mut self.waiting) {
                endpoint.drop(frame, self.refusal(Rule::NoAnswer));
            }
        }
        self.advance(now, endpoint);
    }
}
