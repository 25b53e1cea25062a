// SPDX-License-Identifier: Apache-2.0
//! The main capture of a segment: frames at its ports, and their fates.

use std::path::Path;

use sundial_core::{Fate, Frame, Segment, Time};

use super::ordered::{Ordered, Records};
use super::{CaptureError, CaptureFile};
use crate::SegmentConfig;

/// `NAME.pcapng`.
pub(super) type FrameCapture = Ordered<FrameRecord>;

/// A frame, and why it is on the fate interface.
#[derive(Debug)]
pub(super) struct FrameRecord {
    pub(super) frame: Frame,
    pub(super) fate: Option<Box<Fate>>,
}

impl Records for FrameRecord {
    fn after(&self, _index: usize) -> Option<Time> {
        None
    }

    fn put(&self, _index: usize, _stamp_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.frame);
    }

    fn fate(&self, _index: usize) -> Option<&Fate> {
        self.fate.as_deref()
    }
}

impl FrameCapture {
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
