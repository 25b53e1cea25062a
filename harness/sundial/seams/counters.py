# SPDX-License-Identifier: Apache-2.0
"""`wire/counters.json`: the fabric's counters, by segment, port and device. Written by sundial-fabric."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sundial.seams.form import Form, Natural, OpenForm


class Port(OpenForm):
    """Traffic of one port. `tx`: sent by the machine; `rx`: delivered to it."""

    offered_frames: Natural
    """Frames that the machine handed to its adapter."""
    tx_frames: Natural
    tx_bytes: Natural
    rx_frames: Natural
    rx_bytes: Natural
    adapter_full: Natural
    """Number of times that the adapter's ring was full."""
    dropped: dict[str, Natural]
    """Frames that the segment dropped, by reason."""
    undelivered: Natural
    """Frames still under way at the end of the run."""
    deferred: Natural
    collisions: Natural
    excessive_collisions: Natural
    fragments_seen: Natural
    filtered: Natural
    flooded: Natural
    corrupted: Natural
    duplicated: Natural
    reordered: Natural


class Channel(Form):
    """Traffic of one virtual channel of a switch; copies count where they leave."""

    cells_in: Natural
    cells_out: Natural
    dropped: dict[str, Natural]
    """Cells, by cause."""


class Segment(Form):
    """One segment."""

    kind: str
    ports: dict[str, Port]
    """Counters by MACHINE:INTERFACE or DEVICE:INTERFACE."""
    channels: dict[str, Channel] = Field(default_factory=dict)
    """Counters by input port and VPI.VCI, such as `client:eth0 0.65`; left out if the segment has no channels."""


class DevicePort(Form):
    """Counters of a device for frames that arrived at one port."""

    received_frames: Natural
    forwarded_frames: Natural
    flooded_frames: Natural
    """Forwarded frames that went to all other ports, because the port of their destination was unknown."""
    filtered_frames: Natural
    """Frames that were not forwarded, because their destination is at the port where they arrived."""


class Device(Form):
    """One device."""

    kind: str
    ports: dict[str, DevicePort]
    """By DEVICE:INTERFACE."""


class Counters(Form):
    """All segments of a run."""

    version: Literal[1]
    epoch_ns: int
    """Zero of the run's time axis in captures, in ns since 1970."""
    virtual_ns: Natural
    """Length of the run in ns."""
    segments: dict[str, Segment]
    devices: dict[str, Device] = Field(default_factory=dict)
    """Devices; left out if there are none."""
