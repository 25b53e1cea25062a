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

mod tables;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Deserialize;

use crate::adapter::{Line, MIN_FRAME_BYTES};
use crate::random::{Correlated, Stream};
use crate::{Frame, SegmentParameters, Span, Time};

/// What happens to frames in one direction of a link. The default does nothing.
///
/// Probabilities and correlations are fractions from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Impairments {
    /// Mean delay.
    pub delay_ns: u64,
    /// Deviation of the delay; below 2^31.
    pub jitter_ns: u64,
    /// Of each delay with the one before.
    pub delay_correlation: f64,
    /// Shape of the jitter.
    pub distribution: Distribution,
    /// Probability of a loss; not together with `gemodel`.
    pub loss: f64,
    /// Of each draw with the one before.
    pub loss_correlation: f64,
    /// Losses in bursts.
    pub gemodel: Option<Gemodel>,
    /// Probability of a copy.
    pub duplicate: f64,
    /// Of each draw with the one before.
    pub duplicate_correlation: f64,
    /// Probability of one inverted bit.
    pub corrupt: f64,
    /// Of each draw with the one before.
    pub corrupt_correlation: f64,
    /// Probability with which a frame after a full gap is sent at once; needs a delay.
    pub reorder: f64,
    /// Of each draw with the one before.
    pub reorder_correlation: f64,
    /// Every `gap`th frame may be reordered (1 where not given).
    pub gap: Option<u32>,
    /// Rate of the emulated line.
    pub rate_bps: Option<u64>,
    /// Added to each frame's length (without FCS) for the rate; may be negative.
    pub packet_overhead_bytes: i32,
    /// The length is rounded up to cells of this size; 0: not.
    pub cell_size_bytes: u32,
    /// Added to each cell; may be negative.
    pub cell_overhead_bytes: i32,
    /// Frames the queue holds (1000 where not given, as with tc).
    pub limit_frames: Option<usize>,
}

/// Shape of the jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All delays from mean - jitter to mean + jitter alike.
    #[default]
    Uniform,
    /// Normal, cut at four deviations.
    Normal,
    /// Long tail.
    Pareto,
    /// A quarter normal, three quarters pareto.
    Paretonormal,
}

/// Gilbert-Elliot loss: two states, each with its own loss.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gemodel {
    /// Probability of going from good to bad.
    pub p: f64,
    /// Probability of going from bad to good; 1 - p where not given.
    pub r: Option<f64>,
    /// Probability of loss in the bad state; 1 where not given.
    pub one_minus_h: Option<f64>,
    /// Probability of loss in the good state; 0 where not given.
    pub one_minus_k: Option<f64>,
}

/// A field of [`Impairments`] that does not make sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ImpairmentError {
    /// Its name.
    pub field: &'static str,
    /// What is allowed.
    pub message: String,
}

impl Impairments {
    /// Refuses what tc refuses, too.
    pub fn check(&self) -> Result<(), ImpairmentError> {
        let gemodel = self.gemodel.clone().unwrap_or(Gemodel {
            p: 0.0,
            r: None,
            one_minus_h: None,
            one_minus_k: None,
        });
        let fractions = [
            ("delay_correlation", self.delay_correlation),
            ("loss", self.loss),
            ("loss_correlation", self.loss_correlation),
            ("gemodel.p", gemodel.p),
            ("gemodel.r", gemodel.r.unwrap_or(0.0)),
            ("gemodel.one_minus_h", gemodel.one_minus_h.unwrap_or(0.0)),
            ("gemodel.one_minus_k", gemodel.one_minus_k.unwrap_or(0.0)),
            ("duplicate", self.duplicate),
            ("duplicate_correlation", self.duplicate_correlation),
            ("corrupt", self.corrupt),
            ("corrupt_correlation", self.corrupt_correlation),
            ("reorder", self.reorder),
            ("reorder_correlation", self.reorder_correlation),
        ];
        for (field, value) in fractions {
            if !(0.0..=1.0).contains(&value) {
                return refuse(field, format!("{value} is outside 0 to 1"));
            }
        }
        if self.gemodel.is_some() && self.loss > 0.0 {
            return refuse("gemodel", "not together with loss");
        }
        if self.jitter_ns >= 1 << 31 {
            return refuse("jitter_ns", format!("{} is outside 0 to 2147483647", self.jitter_ns));
        }
        // A thousand seconds: within signed picoseconds with all the room that the tables need.
        if self.delay_ns > 1_000_000_000_000 {
            return refuse("delay_ns", format!("{} is outside 0 to 10^12", self.delay_ns));
        }
        if self.distribution != Distribution::Uniform && self.jitter_ns == 0 {
            return refuse("distribution", "needs jitter_ns");
        }
        if self.reorder > 0.0 && self.delay_ns == 0 {
            return refuse("reorder", "needs delay_ns: without delay there is nothing to overtake");
        }
        if self.gap.is_some() && self.reorder == 0.0 {
            return refuse("gap", "needs reorder");
        }
        if self.gap == Some(0) {
            return refuse("gap", "must be at least 1");
        }
        if self.limit_frames == Some(0) {
            return refuse("limit_frames", "must be at least 1");
        }
        if self.rate_bps.is_some_and(|rate| !(1..=1_000_000_000_000).contains(&rate)) {
            return refuse("rate_bps", "outside 1 to 1000000000000");
        }
        let shaped = self.packet_overhead_bytes != 0
            || self.cell_size_bytes != 0
            || self.cell_overhead_bytes != 0;
        if shaped && self.rate_bps.is_none() {
            return refuse("rate_bps", "needed with overheads and cells");
        }
        if self.cell_overhead_bytes != 0 && self.cell_size_bytes == 0 {
            return refuse("cell_overhead_bytes", "needs cell_size_bytes");
        }
        if i64::from(self.cell_size_bytes) + i64::from(self.cell_overhead_bytes) < 0 {
            return refuse("cell_overhead_bytes", "takes away more than the cell");
        }
        Ok(())
    }
}

fn refuse(field: &'static str, message: impl Into<String>) -> Result<(), ImpairmentError> {
    Err(ImpairmentError { field, message: message.into() })
}

/// What became of a frame, in the order in which it became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Gone.
    Lost(Frame),
    /// The queue was full.
    Full(Frame),
    /// One bit is inverted; the frame goes on like this.
    Corrupted { frame: Frame, byte: usize, bit: u8 },
    /// A copy was made; its own fate follows.
    Duplicated(Frame),
    /// Leaves the queue at `at`; `ahead` of the queue if it was reordered.
    Sent { at: Time, frame: Frame, ahead: bool },
}

/// One direction's impairments at work.
#[derive(Clone, Debug)]
pub(crate) struct Netem {
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
    limit: usize,
    /// Times to send of the frames in the queue.
    queue: BinaryHeap<Reverse<Time>>,
    /// The greatest that ever was in the queue.
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

    /// Zero never happens and costs no draw.
    fn happens(&mut self) -> bool {
        self.threshold != 0 && self.threshold >= self.draws.next()
    }
}

impl Loss {
    fn happens(&mut self) -> bool {
        match self {
            Self::Random(chance) => chance.happens(),
            // `loss_gilb_ell`: the state moves first, but the loss is that of the state before.
            Self::GilbertElliot { bad: bad @ false, to_bad, lose_good, draws, .. } => {
                *bad = draws.next() < *to_bad;
                draws.next() < *lose_good
            }
            Self::GilbertElliot { bad, to_good, pass_bad, draws, .. } => {
                *bad = draws.next() >= *to_good;
                draws.next() > *pass_bad
            }
        }
    }
}

impl Netem {
    /// `settings` must have passed [`Impairments::check`].
    pub(crate) fn new(common: &SegmentParameters, port: usize, settings: Impairments) -> Self {
        let stream = |purpose| Stream::new(common.seed, &common.name, port, purpose);
        let loss = match &settings.gemodel {
            None => Loss::Random(Chance::new(settings.loss, settings.loss_correlation, stream(1))),
            Some(model) => Loss::GilbertElliot {
                bad: false,
                to_bad: fixed(model.p),
                to_good: fixed(model.r.unwrap_or(1.0 - model.p)),
                pass_bad: u32::MAX - fixed(model.one_minus_h.unwrap_or(1.0)),
                lose_good: fixed(model.one_minus_k.unwrap_or(0.0)),
                draws: stream(1),
            },
        };
        let gap = if settings.reorder > 0.0 { settings.gap.unwrap_or(1) } else { 0 };
        Self {
            loss,
            duplicate: Chance::new(settings.duplicate, settings.duplicate_correlation, stream(2)),
            corrupt: Chance::new(settings.corrupt, settings.corrupt_correlation, stream(3)),
            corrupt_place: stream(4),
            reorder: Chance::new(settings.reorder, settings.reorder_correlation, stream(5)),
            gap,
            since_reorder: 0,
            jitter: Correlated::new(stream(6), fixed(settings.delay_correlation)),
            line: settings.rate_bps.map(Line::new),
            limit: settings.limit_frames.unwrap_or(1000),
            queue: BinaryHeap::new(),
            last: Time::ZERO,
            settings,
        }
    }

    /// Whether frames leave in the order in which they came.
    pub(crate) fn keeps_order(&self) -> bool {
        // With a rate each frame follows the last one in the queue, whatever its jitter is.
        self.gap == 0 && (self.settings.jitter_ns == 0 || self.line.is_some())
    }

    /// No frame leaves sooner after its arrival.
    pub(crate) fn least_delay(&self) -> Span {
        if self.gap > 0 {
            return Span::ZERO;
        }
        let serialisation = self.settings.rate_bps.map_or(0, |rate_bps| {
            Span::of_bits_floor(self.line_bits(MIN_FRAME_BYTES), rate_bps).as_ps()
        });
        let delay = i128::from(least_delay_ns(&self.settings)) * 1000 + i128::from(serialisation);
        Span::from_ps(u64::try_from(delay).unwrap_or(0))
    }

    /// The frame arrives at `now`, no earlier than the one before. Appends what becomes of it.
    pub(crate) fn enqueue(&mut self, now: Time, frame: Frame, fates: &mut Vec<Fate>) {
        while self.queue.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.queue.pop();
        }
        let duplicated = self.duplicate.happens();
        self.enqueue_one(now, frame, duplicated, fates);
    }

    fn enqueue_one(&mut self, now: Time, frame: Frame, duplicated: bool, fates: &mut Vec<Fate>) {
        // A frame that is both duplicated and lost just goes on.
        let lost = self.loss.happens();
        if lost && !duplicated {
            fates.push(Fate::Lost(frame));
            return;
        }
        let copy = (duplicated && !lost).then(|| frame.clone());
        let frame = self.corrupted(frame, fates);
        if self.queue.len() >= self.limit {
            fates.push(Fate::Full(frame));
            return;
        }
        if let Some(copy) = copy {
            fates.push(Fate::Duplicated(copy.clone()));
            self.enqueue_one(now, copy, false, fates);
        }
        if self.gap > 0 && self.since_reorder + 1 >= self.gap && self.reorder.happens() {
            self.since_reorder = 0;
            fates.push(Fate::Sent { at: now, frame, ahead: true });
            return;
        }
        self.since_reorder = self.since_reorder.saturating_add(1);
        let at = self.time_to_send(now, frame.len());
        self.queue.push(Reverse(at));
        self.last = self.last.max(at);
        fates.push(Fate::Sent { at, frame, ahead: false });
    }

    fn corrupted(&mut self, frame: Frame, fates: &mut Vec<Fate>) -> Frame {
        if !self.corrupt.happens() {
            return frame;
        }
        let length = u32::try_from(frame.len()).expect("frames are at most 9216 bytes");
        let byte = self.corrupt_place.below(length) as usize;
        let bit = self.corrupt_place.below(8) as u8;
        let frame = frame.with_flipped_bit(byte, bit);
        fates.push(Fate::Corrupted { frame: frame.clone(), byte, bit });
        frame
    }

    fn time_to_send(&mut self, now: Time, bytes: usize) -> Time {
        let delay_ns = self.draw_delay_ns();
        let wanted = if delay_ns >= 0 {
            now + Span::from_ns(delay_ns.unsigned_abs())
        } else {
            now.back(Span::from_ns(delay_ns.unsigned_abs()))
        };
        let bits = self.line_bits(bytes);
        let Some(line) = &mut self.line else {
            return wanted.max(now);
        };
        // The delay runs while the frames before are on the emulated line: it is not added to the wait.
        let behind = !self.queue.is_empty() && wanted <= self.last;
        // A start before the line is free is the instant at which it falls free, fraction included.
        let start = if behind { Time::ZERO } else { wanted };
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

    /// `packet_time_ns`, before the division by the rate.
    fn line_bits(&self, bytes: usize) -> u64 {
        let settings = &self.settings;
        let mut bytes = (bytes as i64 + i64::from(settings.packet_overhead_bytes)).max(0) as u64;
        if settings.cell_size_bytes > 0 {
            let cells = bytes.div_ceil(u64::from(settings.cell_size_bytes));
            let cell =
                i64::from(settings.cell_size_bytes) + i64::from(settings.cell_overhead_bytes);
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

/// The least that `draw_delay_ns` can say.
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
