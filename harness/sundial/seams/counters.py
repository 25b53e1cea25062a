# SPDX-License-Identifier: Apache-2.0
"""`wire/counters.json`: what the fabric counted, by segment, port and device. Written by sundial-fabric."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sundial.seams.form import Form, Natural, OpenForm


class Port(OpenForm):
    """What passed one port. `tx` is what the machine sent, `rx` what it was given."""

    offered_frames: Natural
    """Frames that the machine handed to its adapter."""
    tx_frames: Natural
    tx_bytes: Natural
    rx_frames: Natural
    rx_bytes: Natural
    adapter_full: Natural
    """Times that the adapter's ring had no place left."""
    dropped: dict[str, Natural]
    """Frames that the segment dropped, by reason."""
    undelivered: Natural
    """Frames still on their way when the run ended."""
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
    """What passed one virtual channel of a switch, copies counted where they leave."""

    cells_in: Natural
    cells_out: Natural
    dropped: dict[str, Natural]
    """Cells, by cause."""


class Segment(Form):
    """One segment."""

    kind: str
    ports: dict[str, Port]
    """By MACHINE:INTERFACE or DEVICE:INTERFACE."""
    channels: dict[str, Channel] = Field(default_factory=dict)
    """By input port and VPI.VCI, as `client:eth0 0.65`; left out where the segment has none."""


class DevicePort(Form):
    """What a device did with frames that came in at one port."""

    received_frames: Natural
    forwarded_frames: Natural
    flooded_frames: Natural
    """Of those forwarded: to all other ports, since their destination's port is not known."""
    filtered_frames: Natural
    """Their destination is at the port at which they came in."""


class Device(Form):
    """One device."""

    kind: str
    ports: dict[str, DevicePort]
    """By DEVICE:INTERFACE."""


class Counters(Form):
    """All segments of a run."""

    version: Literal[1]
    epoch_ns: int
    """What zero of the run's axis is in captures, in ns since 1970."""
    virtual_ns: Natural
    """How long the run was."""
    segments: dict[str, Segment]
    devices: dict[str, Device] = Field(default_factory=dict)
    """Left out where there are none."""
