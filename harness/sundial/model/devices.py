# SPDX-License-Identifier: Apache-2.0
"""What joins segments beside machines: devices, which have no CPU and no guest."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sundial.model.fields import DEVICE_PORT, In, Strict, Whole, written
from sundial.model.segment import Frames, LinkTime
from sundial.units import TIME

DEVICES_MOST = 16
PORTS_MOST = 16
"""Of one device."""

TableEntries = Annotated[int, Whole(1, 65536)]
Ageing = Annotated[int, In(TIME.between("1 ms", example="300 s"))]


class Bridge(Strict):
    """A learning bridge (IEEE 802.1D): it forwards frames between segments."""

    kind: Literal["bridge"]
    """A bridge."""
    interfaces: list[Annotated[str, DEVICE_PORT]] = Field(min_length=2, max_length=PORTS_MOST)
    """Names of its ports, which a segment lists as `DEVICE:INTERFACE`."""
    forwarding_latency: LinkTime = written("20 us")
    """From a frame's arrival to its handing over to the other segment."""
    queue_frames: Frames = 128
    """Frames that wait at each port; what comes to a full queue is dropped."""
    mac_table_entries: TableEntries = 1024
    """Addresses that it can learn."""
    ageing: Ageing = written("300 s")
    """A learned address is forgotten after this."""
