// SPDX-License-Identifier: Apache-2.0
//! The settings of tc-netem for one direction of a link, and their checks.

use serde::Deserialize;
use sundial_core::Invalid;

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
    pub limit_frames: Option<u32>,
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

impl Impairments {
    /// Refuses what tc refuses, too.
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_ranges()?;
        self.check_combinations()
    }

    fn check_ranges(&self) -> Result<(), Invalid> {
        let gemodel = self.gemodel.as_ref();
        let fraction = |field, value| (field, value, 0.0, 1.0);
        let ranges: [(&'static str, Option<f64>, f64, f64); 18] = [
            fraction("delay_correlation", Some(self.delay_correlation)),
            fraction("loss", Some(self.loss)),
            fraction("loss_correlation", Some(self.loss_correlation)),
            fraction("gemodel.p", gemodel.map(|model| model.p)),
            fraction("gemodel.r", gemodel.and_then(|model| model.r)),
            fraction("gemodel.one_minus_h", gemodel.and_then(|model| model.one_minus_h)),
            fraction("gemodel.one_minus_k", gemodel.and_then(|model| model.one_minus_k)),
            fraction("duplicate", Some(self.duplicate)),
            fraction("duplicate_correlation", Some(self.duplicate_correlation)),
            fraction("corrupt", Some(self.corrupt)),
            fraction("corrupt_correlation", Some(self.corrupt_correlation)),
            fraction("reorder", Some(self.reorder)),
            fraction("reorder_correlation", Some(self.reorder_correlation)),
            ("jitter_ns", Some(self.jitter_ns as f64), 0.0, f64::from(i32::MAX)),
            // A thousand seconds: within signed picoseconds with all the room that the tables need.
            ("delay_ns", Some(self.delay_ns as f64), 0.0, 1e12),
            ("gap", self.gap.map(f64::from), 1.0, f64::from(u32::MAX)),
            ("limit_frames", self.limit_frames.map(f64::from), 1.0, f64::from(u32::MAX)),
            ("rate_bps", self.rate_bps.map(|rate| rate as f64), 1.0, 1e12),
        ];
        for (field, value, least, most) in ranges {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(Invalid::new(field, format!("{value} is outside {least} to {most}")));
            }
        }
        Ok(())
    }

    fn check_combinations(&self) -> Result<(), Invalid> {
        let shaped = self.packet_overhead_bytes != 0
            || self.cell_size_bytes != 0
            || self.cell_overhead_bytes != 0;
        let cell_bytes = i64::from(self.cell_size_bytes) + i64::from(self.cell_overhead_bytes);
        let refusals = [
            ("gemodel", self.gemodel.is_some() && self.loss > 0.0, "not together with loss"),
            (
                "distribution",
                self.distribution != Distribution::Uniform && self.jitter_ns == 0,
                "needs jitter_ns",
            ),
            (
                "reorder",
                self.reorder > 0.0 && self.delay_ns == 0,
                "needs delay_ns: without delay there is nothing to overtake",
            ),
            ("gap", self.gap.is_some() && self.reorder == 0.0, "needs reorder"),
            ("rate_bps", shaped && self.rate_bps.is_none(), "needed with overheads and cells"),
            (
                "cell_overhead_bytes",
                self.cell_overhead_bytes != 0 && self.cell_size_bytes == 0,
                "needs cell_size_bytes",
            ),
            ("cell_overhead_bytes", cell_bytes < 0, "takes away more than the cell"),
        ];
        match refusals.into_iter().find(|(_, refused, _)| *refused) {
            Some((field, _, message)) => Err(Invalid::new(field, message)),
            None => Ok(()),
        }
    }
}
