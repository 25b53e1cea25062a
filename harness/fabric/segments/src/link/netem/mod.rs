// SPDX-License-Identifier: Apache-2.0
//! Impairments named and meant as in Linux's tc-netem.
//!
//! Read net/sched/sch_netem.c (Linux 6.1, `netem_enqueue`) before editing. The order is the kernel's:
//! duplicate is drawn, then loss, then corrupt; then a full queue drops; the duplicate goes through all
//! of it again, apart from being duplicated, ahead of the original; then a frame either is sent at
//! once (reorder) or gets a delay, and with a rate its time on the emulated line after the last frame
//! in the queue. The queue is ordered by the time to send.
//!
//! What differs, on purpose: each effect draws from a stream of its own, so that turning on jitter does
//! not change which frames are lost; times are picoseconds and the rate carries its fraction, so that
//! it does not drift; a delay that jitter makes negative counts as none.

mod correlated;
mod impairments;
mod tables;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use correlated::Correlated;
use sundial_core::{Frame, Line, Rule, SegmentParameters, Span, Stream, Time};
use sundial_wire::ethernet::HEADER_BYTES;

pub use impairments::{Distribution, Gemodel, Impairments};

/// What became of a frame, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Gone.
    Lost(Frame),
    /// Nothing passes, by this rule.
    Blocked(Frame, Rule),
    /// The queue was full.
    Full(Frame),
    /// One bit is inverted; the frame goes on like this.
    Corrupted { frame: Frame, byte: usize, bit: u8 },
    /// A copy was made; its own outcome follows.
    Duplicated(Frame),
    /// Leaves the queue at `at`; `ahead` of the queue if it was reordered.
    Sent { at: Time, frame: Frame, ahead: bool },
}

/// One direction's impairments at work.
#[derive(Clone, Debug)]
pub(super) struct Netem {
    settings: Impairments,
    loss: Loss,
    duplicate: Chance,
    corrupt: Chance,
    corrupt_place: Stream,
    /// Draws below or at `reorder.threshold` send at once.
    reorder: Chance,
    gap: u32,
    since_reorder: u32,
    jitter: Correlated,
    line: Option<Line>,
    /// When the emulated line was to fall free, where there is none any more.
    line_free: Time,
    limit: usize,
    /// Times to send of the frames in the queue.
    queue: BinaryHeap<Reverse<Time>>,
    /// The latest of all so far that the emulated line had.
    last: Time,
}

/// An event with a probability in 32-bit fixed point.
#[derive(Clone, Debug)]
struct Chance {
    threshold: u32,
    draws: Correlated,
}

#[derive(Clone, Debug)]
enum Loss {
    Random(Chance),
    GilbertElliot {
        bad: bool,
        to_bad: u32,
        to_good: u32,
        pass_bad: u32,
        lose_good: u32,
        draws: Stream,
    },
}

impl Chance {
    fn new(probability: f64, correlation: f64, stream: Stream) -> Self {
        let draws = Correlated::new(stream, fixed(correlation));
        Self { threshold: fixed(probability), draws }
    }

    /// The stream and the last draw stay.
    fn change(&mut self, probability: f64, correlation: f64) {
        self.threshold = fixed(probability);
        self.draws.correlate(fixed(correlation));
    }

    /// Zero never happens and costs no draw.
    fn happens(&mut self) -> bool {
        self.threshold != 0 && self.threshold >= self.draws.next()
    }
}

impl Loss {
    fn gilbert_elliot(model: &Gemodel, bad: bool, draws: Stream) -> Self {
        Self::GilbertElliot {
            bad,
            to_bad: fixed(model.p),
            to_good: fixed(model.r.unwrap_or(1.0 - model.p)),
            pass_bad: u32::MAX - fixed(model.one_minus_h.unwrap_or(1.0)),
            lose_good: fixed(model.one_minus_k.unwrap_or(0.0)),
            draws,
        }
    }

    /// The stream goes on where it is, from one model to another as well.
    fn change(&mut self, settings: &Impairments) {
        match (&mut *self, &settings.gemodel) {
            (Self::Random(chance), None) => chance.change(settings.loss, settings.loss_correlation),
            (Self::Random(chance), Some(model)) => {
                *self = Self::gilbert_elliot(model, false, chance.draws.stream().clone());
            }
            (Self::GilbertElliot { bad, draws, .. }, Some(model)) => {
                *self = Self::gilbert_elliot(model, *bad, draws.clone());
            }
            (Self::GilbertElliot { draws, .. }, None) => {
                let (loss, correlation) = (settings.loss, settings.loss_correlation);
                *self = Self::Random(Chance::new(loss, correlation, draws.clone()));
            }
        }
    }

    fn happens(&mut self) -> bool {
        match self {
            Self::Random(chance) => chance.happens(),
            // `loss_gilb_ell`: the state moves first, but the loss is that of the state before.
            Self::GilbertElliot { bad: bad @ false, to_bad, lose_good, draws, .. } => {
                *bad = draws.draw() < *to_bad;
                draws.draw() < *lose_good
            }
            Self::GilbertElliot { bad, to_good, pass_bad, draws, .. } => {
                *bad = draws.draw() >= *to_good;
                draws.draw() > *pass_bad
            }
        }
    }
}

impl Netem {
    /// `settings` must have passed [`Impairments::check`].
    pub(super) fn new(common: &SegmentParameters, port: usize, settings: Impairments) -> Self {
        let stream = |purpose| Stream::new(common.seed, &common.name, port, purpose);
        let loss = match &settings.gemodel {
            None => Loss::Random(Chance::new(settings.loss, settings.loss_correlation, stream(1))),
            Some(model) => Loss::gilbert_elliot(model, false, stream(1)),
        };
        Self {
            loss,
            duplicate: Chance::new(settings.duplicate, settings.duplicate_correlation, stream(2)),
            corrupt: Chance::new(settings.corrupt, settings.corrupt_correlation, stream(3)),
            corrupt_place: stream(4),
            reorder: Chance::new(settings.reorder, settings.reorder_correlation, stream(5)),
            gap: settings.reordering_gap(),
            since_reorder: 0,
            jitter: Correlated::new(stream(6), fixed(settings.delay_correlation)),
            line: settings.rate_bps.map(Line::new),
            line_free: Time::ZERO,
            limit: settings.limit(),
            queue: BinaryHeap::new(),
            last: Time::ZERO,
            settings,
        }
    }

    /// Frames that come from now on meet `settings`, which must have passed [`Impairments::check`]. Streams, correlations
    /// and frames that wait stay as they are.
    pub(super) fn change(&mut self, settings: Impairments) {
        self.loss.change(&settings);
        self.duplicate.change(settings.duplicate, settings.duplicate_correlation);
        self.corrupt.change(settings.corrupt, settings.corrupt_correlation);
        self.reorder.change(settings.reorder, settings.reorder_correlation);
        self.jitter.correlate(fixed(settings.delay_correlation));
        self.gap = settings.reordering_gap();
        self.limit = settings.limit();
        if settings.rate_bps != self.settings.rate_bps {
            let free = self.line.as_ref().map_or(self.line_free, Line::free);
            self.line_free = free;
            self.line = settings.rate_bps.map(|rate_bps| Line::free_from(rate_bps, free));
        }
        self.settings = settings;
    }

    /// The frame arrives at `now`, no earlier than the one before. Appends what becomes of it.
    pub(super) fn enqueue(&mut self, now: Time, frame: Frame, outcomes: &mut Vec<Outcome>) {
        while self.queue.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.queue.pop();
        }
        let duplicated = self.duplicate.happens();
        self.enqueue_one(now, frame, duplicated, outcomes);
    }

    fn enqueue_one(
        &mut self,
        now: Time,
        frame: Frame,
        duplicated: bool,
        outcomes: &mut Vec<Outcome>,
    ) {
        // A frame that is both duplicated and lost just goes on.
        let lost = self.loss.happens();
        if lost && !duplicated {
            outcomes.push(Outcome::Lost(frame));
            return;
        }
        let copy = (duplicated && !lost).then(|| frame.clone());
        let frame = self.corrupted(frame, outcomes);
        if self.queue.len() >= self.limit {
            outcomes.push(Outcome::Full(frame));
            return;
        }
        if let Some(copy) = copy {
            outcomes.push(Outcome::Duplicated(copy.clone()));
            self.enqueue_one(now, copy, false, outcomes);
        }
        if self.gap > 0 && self.since_reorder + 1 >= self.gap && self.reorder.happens() {
            self.since_reorder = 0;
            outcomes.push(Outcome::Sent { at: now, frame, ahead: true });
            return;
        }
        self.since_reorder = self.since_reorder.saturating_add(1);
        let at = self.time_to_send(now, frame.len());
        self.queue.push(Reverse(at));
        if self.line.is_some() {
            self.last = self.last.max(at);
        }
        outcomes.push(Outcome::Sent { at, frame, ahead: false });
    }

    fn corrupted(&mut self, frame: Frame, outcomes: &mut Vec<Outcome>) -> Frame {
        if !self.corrupt.happens() {
            return frame;
        }
        let length = u32::try_from(frame.len()).expect("frames are a few kilobytes");
        let byte = self.corrupt_place.below(length) as usize;
        let bit = self.corrupt_place.below(8) as u8;
        let frame = frame.with_flipped_bit(byte, bit);
        outcomes.push(Outcome::Corrupted { frame: frame.clone(), byte, bit });
        frame
    }

    fn time_to_send(&mut self, now: Time, bytes: usize) -> Time {
        let delay_ns = self.draw_delay_ns();
        let planned = if delay_ns >= 0 {
            now + Span::from_ns(delay_ns.unsigned_abs())
        } else {
            now.back(Span::from_ns(delay_ns.unsigned_abs()))
        };
        let bits = self.settings.line_bits(bytes);
        let Some(line) = &mut self.line else {
            return planned.max(now);
        };
        // The delay runs while the frames before are on the emulated line: it is not added to the wait.
        let behind = !self.queue.is_empty() && planned <= self.last;
        // A start before the line is free is the instant at which it falls free, fraction included.
        let start = if behind { Time::ZERO } else { planned };
        line.send(start, bits, 0).1.max(now)
    }

    /// `tabledist`.
    fn draw_delay_ns(&mut self) -> i64 {
        let mean = self.settings.delay_ns as i64;
        let deviation = self.settings.jitter_ns as i64;
        if deviation == 0 {
            return mean;
        }
        let draw = self.jitter.next();
        match tables::table(self.settings.distribution) {
            None => i64::from(draw) % (2 * deviation) + mean - deviation,
            Some(table) => mean + scaled_entry(deviation, table[draw as usize % tables::SIZE]),
        }
    }
}

impl Impairments {
    /// Whether frames leave in the order in which they came.
    pub(super) fn keeps_order(&self) -> bool {
        // With a rate each frame follows the last one in the queue, whatever its jitter is.
        self.reordering_gap() == 0 && (self.jitter_ns == 0 || self.rate_bps.is_some())
    }

    /// No frame leaves sooner after its arrival.
    pub(super) fn least_delay(&self) -> Span {
        if self.reordering_gap() > 0 {
            return Span::ZERO;
        }
        let serialisation = self.rate_bps.map_or(0, |rate_bps| {
            Span::of_bits_floor(self.line_bits(HEADER_BYTES), rate_bps).as_ps()
        });
        let delay = i128::from(least_delay_ns(self)) * 1000 + i128::from(serialisation);
        Span::from_ps(u64::try_from(delay).unwrap_or(0))
    }

    /// Whether a frame is delayed as it would be with `other`.
    pub(super) fn delays_like(&self, other: &Self) -> bool {
        let of = |it: &Self| {
            let line = (it.rate_bps, it.packet_overhead_bytes, it.cell_size_bytes);
            (it.delay_ns, it.jitter_ns, it.distribution, line, it.cell_overhead_bytes)
        };
        of(self) == of(other)
    }

    /// Every so many frames one may be reordered; 0: none.
    fn reordering_gap(&self) -> u32 {
        if self.reorder > 0.0 { self.gap.unwrap_or(1) } else { 0 }
    }

    fn limit(&self) -> usize {
        self.limit_frames.unwrap_or(1000) as usize
    }

    /// `packet_time_ns`, before the division by the rate.
    fn line_bits(&self, bytes: usize) -> u64 {
        let mut bytes = (bytes as i64 + i64::from(self.packet_overhead_bytes)).max(0) as u64;
        if self.cell_size_bytes > 0 {
            let cells = bytes.div_ceil(u64::from(self.cell_size_bytes));
            let cell = i64::from(self.cell_size_bytes) + i64::from(self.cell_overhead_bytes);
            bytes = cells * cell.max(0) as u64;
        }
        8 * bytes
    }
}

/// A fraction in 32-bit fixed point, as tc rounds it: 1 is 2^32 - 1.
fn fixed(fraction: f64) -> u32 {
    libm::rint(fraction * f64::from(u32::MAX)) as u32
}

/// `deviation * entry / 8192`, rounded half away from zero, without overflow: as `tabledist` does it.
fn scaled_entry(deviation: i64, entry: i16) -> i64 {
    let entry = i64::from(entry);
    let rest = (deviation % tables::SCALE) * entry;
    let half = if rest >= 0 { tables::SCALE / 2 } else { -tables::SCALE / 2 };
    (rest + half) / tables::SCALE + (deviation / tables::SCALE) * entry
}

/// The least that `draw_delay_ns` can return.
fn least_delay_ns(settings: &Impairments) -> i64 {
    let mean = settings.delay_ns as i64;
    let deviation = settings.jitter_ns as i64;
    match tables::table(settings.distribution) {
        _ if deviation == 0 => mean,
        None => mean - deviation,
        // Tables ascend, and so does the scaling.
        Some(table) => mean + scaled_entry(deviation, table[0]),
    }
}

#[cfg(test)]
mod tests;
