# SPDX-License-Identifier: Apache-2.0
"""Captures and guest samples to tables; tshark dissects, and headers are read from their bytes as well."""

from sundial.observe.division import divide
from sundial.observe.frames import compact, frame_columns, read_frames, read_opened
from sundial.observe.octets import Octets, octets_of
from sundial.observe.pcap import Capture, Interface, open_capture
from sundial.observe.rundir import (
    PRODUCTS,
    Node,
    NodeInterface,
    RunDirectory,
    is_capture,
    is_plain,
    kept_files,
    open_run,
)
from sundial.observe.samples import SAMPLE_COLUMNS, Samples, read_samples

__all__ = [
    "PRODUCTS",
    "SAMPLE_COLUMNS",
    "Capture",
    "Interface",
    "Node",
    "NodeInterface",
    "Octets",
    "RunDirectory",
    "Samples",
    "compact",
    "divide",
    "frame_columns",
    "is_capture",
    "is_plain",
    "kept_files",
    "octets_of",
    "open_capture",
    "open_run",
    "read_frames",
    "read_opened",
    "read_samples",
]
