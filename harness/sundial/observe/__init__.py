# SPDX-License-Identifier: Apache-2.0
"""Captures and guest samples to tables; tshark is the only dissector of packets."""

from sundial.observe.frames import frame_columns, read_frames
from sundial.observe.pcap import Capture, Interface, open_capture
from sundial.observe.rundir import Node, NodeInterface, RunDirectory, open_run
from sundial.observe.samples import SAMPLE_COLUMNS, Samples, read_samples

__all__ = [
    "SAMPLE_COLUMNS",
    "Capture",
    "Interface",
    "Node",
    "NodeInterface",
    "RunDirectory",
    "Samples",
    "frame_columns",
    "open_capture",
    "open_run",
    "read_frames",
    "read_samples",
]
