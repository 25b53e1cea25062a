// SPDX-License-Identifier: Apache-2.0
//! One pcapng file a segment, its records in order of (time, sequence of emission).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sundial_core::{Direction, Frame, RECORD_LAG, Time};
use sundial_wire::pcapng;

use crate::SegmentConfig;

/// Under virtual time the zero of the run is written as 2000-01-01T00:00:00Z.
pub const EPOCH_NS: u64 = 946_684_800_000_000_000;

/// Written to the file when this much has gathered.
const BUFFER_BYTES: usize = 256 * 1024;

/// A capture could not be written: most often the disk is full.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// The capture file of one segment.
///
/// Give it each [`sundial_core::Output::Record`] as it is polled, tell it with [`Capture::advance`] how
/// far the segment has come, and end with [`Capture::finish`].
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: File,
    epoch_ns: u64,
    buffer: Vec<u8>,
    waiting: BinaryHeap<Reverse<Entry>>,
    next_sequence: u64,
}

/// A record on its way into the file; ordered by time, then by order of emission.
#[derive(Debug)]
struct Entry {
    key: (Time, u64),
    interface: u32,
    direction: pcapng::Direction,
    frame: Frame,
    comment: Option<String>,
}

impl Capture {
    /// Creates `NAME.pcapng` in `directory`, which must exist.
    pub fn create(
        directory: &Path,
        segment: &SegmentConfig,
        epoch_ns: u64,
    ) -> Result<Self, CaptureError> {
        let path = directory.join(format!("{}.pcapng", segment.name));
        let file = match File::create(&path) {
            Ok(file) => file,
            Err(source) => return Err(CaptureError { path, source }),
        };
        let mut buffer = Vec::with_capacity(2 * BUFFER_BYTES);
        pcapng::put_section_header(&mut buffer, "sundial-fabric");
        for port in 0..segment.ports.len() {
            let speed = segment.port_rate_bps(port);
            pcapng::put_interface(&mut buffer, &segment.port_name(port), speed);
        }
        pcapng::put_interface(&mut buffer, &format!("{}:fate", segment.name), 0);
        let waiting = BinaryHeap::new();
        Ok(Self { path, file, epoch_ns, buffer, waiting, next_sequence: 0 })
    }

    /// Takes a record, in the order in which the model emits them.
    pub fn record(
        &mut self,
        at: Time,
        interface: usize,
        direction: Direction,
        frame: Frame,
        comment: Option<String>,
    ) {
        let direction = match direction {
            Direction::Inbound => pcapng::Direction::Inbound,
            Direction::Outbound => pcapng::Direction::Outbound,
            Direction::Unknown => pcapng::Direction::Unknown,
        };
        let interface = u32::try_from(interface).expect("a segment has few ports");
        let key = (at, self.next_sequence);
        self.next_sequence += 1;
        self.waiting.push(Reverse(Entry { key, interface, direction, frame, comment }));
    }

    /// Says that every later call of the model will be made at `now` or later. Writes what no later
    /// record can precede.
    pub fn advance(&mut self, now: Time) -> Result<(), CaptureError> {
        let safe = now.back(RECORD_LAG);
        while self.waiting.peek().is_some_and(|Reverse(entry)| entry.key.0 < safe) {
            let Reverse(entry) = self.waiting.pop().expect("peeked");
            self.write(entry)?;
        }
        Ok(())
    }

    /// Writes what is left, up to `end` inclusive; what the run's end cut off is not recorded.
    pub fn finish(mut self, end: Time) -> Result<(), CaptureError> {
        while let Some(Reverse(entry)) = self.waiting.pop() {
            if entry.key.0 > end {
                break;
            }
            self.write(entry)?;
        }
        self.flush()
    }

    fn write(&mut self, entry: Entry) -> Result<(), CaptureError> {
        pcapng::put_packet(
            &mut self.buffer,
            entry.interface,
            self.epoch_ns + entry.key.0.as_ns_ceil(),
            entry.direction,
            &entry.frame,
            entry.comment.as_deref(),
        );
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Hands what has gathered to the file.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| CaptureError { path: self.path.clone(), source })
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
