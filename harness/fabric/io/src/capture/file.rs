// SPDX-License-Identifier: Apache-2.0
//! A pcapng file that grows by whole records.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use sundial_core::{Direction, LinkType, Segment, Time};
use sundial_wire::pcapng;

use super::CaptureError;
use crate::SegmentConfig;

/// Written to the file when this much has gathered.
const BUFFER_BYTES: usize = 256 * 1024;

/// An open file, and what it does not have yet.
#[derive(Debug)]
pub(super) struct CaptureFile {
    path: PathBuf,
    file: File,
    epoch_ns: u64,
    buffer: Vec<u8>,
}

impl CaptureFile {
    /// Creates the file at `path` with one interface for each port of `segment` and one for its fates.
    pub(super) fn create(
        path: &Path,
        link_type: LinkType,
        segment: &SegmentConfig,
        model: &dyn Segment,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let file =
            File::create(path).map_err(|source| CaptureError { path: path.to_owned(), source })?;
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        pcapng::put_section_header(&mut buffer, "sundial-fabric");
        for port in 0..segment.ports.len() {
            let name = segment.port_name(port);
            pcapng::put_interface(&mut buffer, link_type, &name, model.rate_bps(port));
        }
        let fate = format!("{}:fate", segment.name);
        pcapng::put_interface(&mut buffer, link_type, &fate, 0);
        Ok(Self { path: path.to_owned(), file, epoch_ns, buffer })
    }

    /// Appends a record of `at`. `put` gets the stamp (ns since 1970) and appends the record's bytes.
    pub(super) fn append(
        &mut self,
        at: Time,
        interface: usize,
        direction: Direction,
        put: impl FnOnce(u64, &mut Vec<u8>),
        comment: Option<&str>,
    ) -> Result<(), CaptureError> {
        let interface = u32::try_from(interface).expect("a segment has few ports");
        let direction = match direction {
            Direction::Unknown => pcapng::Direction::Unknown,
            Direction::Inbound => pcapng::Direction::Inbound,
            Direction::Outbound => pcapng::Direction::Outbound,
        };
        let stamp_ns = self.epoch_ns + at.as_ns_ceil();
        let put = |out: &mut Vec<u8>| put(stamp_ns, out);
        pcapng::put_packet_with(&mut self.buffer, interface, stamp_ns, direction, put, comment);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Appends a comment of `at` that belongs to no packet.
    pub(super) fn append_note(
        &mut self,
        at: Time,
        interface: usize,
        text: &str,
    ) -> Result<(), CaptureError> {
        let interface = u32::try_from(interface).expect("a segment has few ports");
        let stamp_ns = self.epoch_ns + at.as_ns_ceil();
        pcapng::put_comment(&mut self.buffer, interface, stamp_ns, text);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Whether the file has everything.
    pub(super) fn is_written(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Hands what has gathered to the file, whole records only.
    pub(super) fn flush(&mut self) -> Result<(), CaptureError> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| CaptureError { path: self.path.clone(), source })
    }
}
