// SPDX-License-Identifier: Apache-2.0
//! What a segment writes: its main capture, and those that its model has beside it.

mod file;
mod frames;
mod ordered;
mod trains;

use std::io;
use std::path::{Path, PathBuf};

use sundial_core::{Output, Segment, Time};

use crate::SegmentConfig;
use file::CaptureFile;
use frames::{FrameCapture, FrameRecord};
use trains::TrainCapture;

/// Under virtual time the zero of the run is written as 2000-01-01T00:00:00Z.
pub const EPOCH_NS: u64 = 946_684_800_000_000_000;

/// A capture could not be written: most often the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The capture files of one segment.
///
/// Give them each output of the model as it is polled, call [`Captures::advance`] as the segment gets
/// on, and end with [`Captures::finish`].
#[derive(Debug)]
pub struct Captures {
    main: FrameCapture,
    further: Vec<TrainCapture>,
}

impl Captures {
    /// Creates the files in `directory`, which must exist, for what `model` records.
    pub fn create(
        directory: &Path,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let main = FrameCapture::create(directory, segment, model, epoch_ns)?;
        let further = model.further_captures();
        let further =
            further.iter().map(|it| TrainCapture::create(directory, it, segment, model, epoch_ns));
        Ok(Self { main, further: further.collect::<Result<_, _>>()? })
    }

    /// Takes `output` if it is for a capture; returns any other.
    pub fn record(&mut self, output: Output) -> Option<Output> {
        match output {
            Output::Record { at, interface, direction, frame, fate } => {
                self.main.add(at, interface, direction, FrameRecord::Frame { frame, fate });
            }
            Output::Note { at, text } => self.main.add_note(at, text),
            Output::Train { capture, at, interface, direction, train } => {
                self.further[capture].add(at, interface, direction, train);
            }
            output => return Some(output),
        }
        None
    }

    /// Says that every later call of the model will be made at `now` or later. Writes what no later
    /// record can precede.
    pub fn advance(&mut self, now: Time) -> Result<(), CaptureError> {
        self.main.advance(now)?;
        self.further.iter_mut().try_for_each(|capture| capture.advance(now))
    }

    /// Writes what is left from before `end`; what would happen at the end does not happen.
    pub fn finish(mut self, end: Time) -> Result<(), CaptureError> {
        self.main.finish(end)?;
        self.further.iter_mut().try_for_each(|capture| capture.finish(end))
    }

    /// Whether there is something that the files do not have yet.
    pub fn is_behind(&self) -> bool {
        self.main.is_behind() || self.further.iter().any(TrainCapture::is_behind)
    }

    /// Hands what has gathered to the files, whole records only.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.main.flush()?;
        self.further.iter_mut().try_for_each(TrainCapture::flush)
    }
}

#[cfg(test)]
mod tests;
