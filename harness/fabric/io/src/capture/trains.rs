// SPDX-License-Identifier: Apache-2.0
//! A further capture of a segment: trains of records, each expanded only when it is written.

use std::path::Path;
use std::sync::Arc;

use sundial_core::{Fate, FurtherCapture, Segment, Time, Train};

use super::ordered::{Ordered, Records};
use super::{CaptureError, CaptureFile};
use crate::SegmentConfig;

/// `PATH.pcapng`.
pub(super) type TrainCapture = Ordered<Arc<dyn Train>>;

impl Records for Arc<dyn Train> {
    fn after(&self, index: usize) -> Option<Time> {
        (**self).after(index)
    }

    fn put(&self, index: usize, stamp_ns: u64, out: &mut Vec<u8>) {
        (**self).put(index, stamp_ns, out);
    }

    fn fate(&self, index: usize) -> Option<&Fate> {
        (**self).fate(index)
    }
}

impl TrainCapture {
    /// Creates the file and the folder that it is in below `directory`, which must exist.
    pub(super) fn create(
        directory: &Path,
        further: &FurtherCapture,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", further.path));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| CaptureError { path: folder.to_owned(), source })?;
        }
        let file = CaptureFile::create(&path, further.link_type, segment, model, epoch_ns)?;
        let FurtherCapture { record_lag, records_most, .. } = *further;
        Ok(Self::new(file, segment.ports.len() + 1, record_lag, records_most))
    }
}

#[cfg(test)]
mod tests;
