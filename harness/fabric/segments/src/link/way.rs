// SPDX-License-Identifier: Apache-2.0
//! One direction of a link, and how it changes.

use std::collections::{BTreeMap, VecDeque};

use sundial_core::{Blocks, Frame, Line, Rule, SegmentParameters, Span, Time};

use super::netem::{Impairments, Netem, Outcome};
use crate::ethernet::{GAP_BITS, MIN_WIRE_BITS, wire_bits};

/// What a way does until the next change.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Why nothing passes, if nothing does.
    pub(super) blocked: Option<Rule>,
    /// Whether the sending machine is off.
    pub(super) off: bool,
    pub(super) impairments: Option<Box<Impairments>>,
}

/// One direction, from the sending adapter on.
#[derive(Debug)]
pub(super) struct Way {
    rate_bps: u64,
    line: Line,
    blocked: Option<Rule>,
    off: bool,
    /// None: the way never impairs a frame.
    netem: Option<Netem>,
    /// What is still to come.
    changes: VecDeque<(Time, State)>,
    /// Whether a frame may overtake one before it, now or later.
    holds: bool,
    /// Frames that may still be overtaken, by time to send and order of arrival.
    held: BTreeMap<(Time, u64), Frame>,
    next_sequence: u64,
    /// A frame handed in from now on leaves the impairments no sooner than this after it, in any state.
    slack: Span,
    /// When the receiving adapter got its last bit.
    arrived: Time,
}

impl Way {
    /// The way from `port`, which begins with `first`; `later` ascend. `by_hand`: others may follow, which impair frames
    /// in any way.
    pub(super) fn new(
        common: &SegmentParameters,
        port: usize,
        rate_bps: u64,
        first: State,
        later: VecDeque<(Time, State)>,
        by_hand: bool,
    ) -> Self {
        let later_states = later.iter().map(|(_, state)| state);
        let states: Vec<_> = std::iter::once(&first).chain(later_states).collect();
        let impairs = by_hand || states.iter().any(|state| state.impairments.is_some());
        let settings: Vec<_> = states.iter().map(|state| state.settings()).collect();
        let least_delay = settings.iter().map(Impairments::least_delay).min().unwrap_or_default();
        let least_delay = if by_hand { Span::ZERO } else { least_delay };
        let steady = settings.windows(2).all(|pair| pair[0].delays_like(&pair[1]));
        let in_order = settings.iter().all(Impairments::keeps_order);
        Self {
            rate_bps,
            line: Line::new(rate_bps),
            blocked: first.blocked,
            off: first.off,
            netem: impairs.then(|| Netem::new(common, port, first.settings())),
            changes: later,
            holds: by_hand || impairs && !(steady && in_order),
            held: BTreeMap::new(),
            next_sequence: 0,
            slack: Span::of_bits_floor(MIN_WIRE_BITS, rate_bps) + least_delay,
            arrived: Time::ZERO,
        }
    }

    /// The adapter has `frame` at `now`: when its first bit leaves, and its last; or when it would have begun, if its
    /// machine is off then.
    pub(super) fn send(&mut self, now: Time, frame: &Frame) -> Result<(Time, Time), Time> {
        let begin = self.line.begin(now);
        self.change_until(begin);
        if self.off {
            return Err(begin);
        }
        Ok(self.line.send(now, wire_bits(frame.len()), GAP_BITS))
    }

    /// What becomes of the frame that was sent last, and whose last bit leaves at `end`.
    pub(super) fn enter(&mut self, end: Time, frame: Frame, outcomes: &mut Vec<Outcome>) {
        match (self.blocked, &mut self.netem) {
            (Some(rule), _) => outcomes.push(Outcome::Blocked(frame, rule)),
            (None, None) => outcomes.push(Outcome::Sent { at: end, frame, ahead: false }),
            (None, Some(netem)) => netem.enqueue(end, frame, outcomes),
        }
    }

    /// A change applies to what begins at its instant, as the capture stamps it.
    fn change_until(&mut self, start: Time) {
        let stamped = Time::from_ns(start.as_ns_ceil());
        while let Some((_, state)) = self.changes.pop_front_if(|(at, _)| *at <= stamped) {
            self.blocked = state.blocked;
            self.off = state.off;
            if let Some(netem) = &mut self.netem {
                netem.change(state.settings());
            }
        }
    }

    /// What it does from `at` on, after all changes so far.
    pub(super) fn add_change(&mut self, at: Time, state: State) {
        self.changes.push_back((at, state));
    }

    /// When the adapter's line falls free.
    pub(super) fn free(&self) -> Time {
        self.line.free()
    }

    /// Whether frames are held until none can overtake them.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }

    /// Holds a frame that leaves the impairments at `at`.
    pub(super) fn hold(&mut self, at: Time, frame: Frame) {
        self.held.insert((at, self.next_sequence), frame);
        self.next_sequence += 1;
    }

    /// The first of the held frames, and when it leaves. There must be one.
    pub(super) fn release_first(&mut self) -> (Time, Frame) {
        let ((at, _), frame) = self.held.pop_first().expect("it is the one just looked at");
        (at, frame)
    }

    /// No frame handed in from now on leaves the impairments sooner after it.
    pub(super) fn slack(&self) -> Span {
        self.slack
    }

    /// From when on the first of the held frames cannot be overtaken.
    pub(super) fn next_certain(&self) -> Option<Time> {
        let (&(at, _), _) = self.held.first_key_value()?;
        let certain = at.back(self.slack);
        // A frame handed in before the adapter's line falls free has to wait for it.
        Some(if certain <= self.line.free() { Time::ZERO } else { certain })
    }

    /// Takes the line into the receiving adapter for `frame`, which leaves the impairments at `at`. Returns when its
    /// last bit is there.
    pub(super) fn arrive(&mut self, at: Time, propagation: Span, frame: &Frame) -> Time {
        self.arrived = self.arrival(at, propagation, frame);
        self.arrived
    }

    /// The same for the first of the held frames, if none overtakes it.
    pub(super) fn earliest_arrival(&self, propagation: Span) -> Option<Time> {
        let (&(at, _), frame) = self.held.first_key_value()?;
        Some(self.arrival(at, propagation, frame))
    }

    fn arrival(&self, at: Time, propagation: Span, frame: &Frame) -> Time {
        let due = at + propagation;
        if self.netem.is_none() || self.arrived == Time::ZERO {
            return due;
        }
        // Rounded down, so that frames in step with the line are never pushed out of it.
        let bits = GAP_BITS + wire_bits(frame.len());
        due.max(self.arrived + Span::of_bits_floor(bits, self.rate_bps))
    }
}

impl State {
    /// Of the way from `port`.
    pub(super) fn new(blocks: &Blocks, port: usize, impairments: Option<Box<Impairments>>) -> Self {
        let blocked = blocks.between(port, 1 - port);
        Self { blocked, off: blocks.is_off(port), impairments }
    }

    fn settings(&self) -> Impairments {
        self.impairments.as_deref().cloned().unwrap_or_default()
    }
}
