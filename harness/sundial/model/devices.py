# SPDX-License-Identifier: Apache-2.0
"""Devices: they join segments, and have neither a CPU nor a guest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sundial.model.fields import DEVICE_PORT, In, Strict, Whole, written
from sundial.model.segment import Frames, LinkTime
from sundial.units import TIME

DEVICES_MOST = 16
PORTS_MOST = 16
"""Most interfaces of one device."""

TableEntries = Annotated[int, Whole(1, 65536)]
Ageing = Annotated[int, In(TIME.between("1 ms", example="300 s"))]


class Bridge(Strict):
    """A learning bridge (IEEE 802.1D): it forwards frames between segments."""

    kind: Literal["bridge"]
    """A bridge."""
    interfaces: list[Annotated[str, DEVICE_PORT]] = Field(min_length=2, max_length=PORTS_MOST)
    """Names of its ports, which a segment lists as `DEVICE:INTERFACE`."""
    forwarding_latency: LinkTime = written("20 us")
    """Time from a frame's arrival until it is handed to the other segment."""
    queue_frames: Frames = 128
    """Places in the queue at each port; a frame that finds it full is dropped."""
    mac_table_entries: TableEntries = 1024
    """Most addresses in its table."""
    ageing: Ageing = written("300 s")
    """Time after which it forgets a learned address."""
