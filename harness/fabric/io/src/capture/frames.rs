// SPDX-License-Identifier: Apache-2.0
//! The main capture of a segment: frames at its ports, and their fates.

use std::path::Path;

use sundial_core::{Direction, Fate, Frame, Segment, Time};

use super::ordered::{Ordered, Records};
use super::{CaptureError, CaptureFile};
use crate::SegmentConfig;

/// `NAME.pcapng`.
pub(super) type FrameCapture = Ordered<FrameRecord>;

/// What the capture has of an instant.
#[derive(Debug)]
pub(super) enum FrameRecord {
    /// A frame, and why it is on the fate interface.
    Frame { frame: Frame, fate: Option<Box<Fate>> },
    /// A comment alone.
    Note(String),
}

impl Records for FrameRecord {
    fn after(&self, _index: usize) -> Option<Time> {
        None
    }

    fn put(&self, _index: usize, _stamp_ns: u64, out: &mut Vec<u8>) {
        if let Self::Frame { frame, .. } = self {
            out.extend_from_slice(frame);
        }
    }

    fn fate(&self, _index: usize) -> Option<&Fate> {
        match self {
            Self::Frame { fate, .. } => fate.as_deref(),
            Self::Note(_) => None,
        }
    }

    fn note(&self) -> Option<&str> {
        match self {
            Self::Frame { .. } => None,
            Self::Note(text) => Some(text),
        }
    }
}

impl FrameCapture {
    /// Takes a comment of `at`, for the fate interface.
    pub(super) fn add_note(&mut self, at: Time, text: String) {
        self.add(at, self.interfaces() - 1, Direction::Unknown, FrameRecord::Note(text));
    }

    /// Creates the file in `directory`, which must exist, for what `model` records.
    pub(super) fn create(
        directory: &Path,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", segment.name));
        let file = CaptureFile::create(&path, model.link_type(), segment, model, epoch_ns)?;
        Ok(Self::new(file, segment.ports.len() + 1, model.record_lag(), None))
    }
}
