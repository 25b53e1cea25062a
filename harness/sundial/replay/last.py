# SPDX-License-Identifier: Apache-2.0
"""The last frames before an instant, each in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sundial.observe.frames import read_opened
from sundial.observe.pcap import open_capture

LAST = 3
_WAYS = {1: "receives", 2: "sends"}
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP"}


def last_frames(capture: Path, count: int, epoch_ns: int) -> list[str]:
    """The last of the first `count` frames of a capture, in their order; few are read."""
    if count == 0:
        return []
    opened = open_capture(capture)
    try:
        numbers = np.arange(max(0, count - LAST), count) + 1
        parts = [
            replace(each, blocks=each.blocks[np.isin(each.blocks["number"], numbers)]) for each in opened.interfaces
        ]
        table = read_opened([(replace(opened, interfaces=parts), capture.stem)], epoch_ns)
    finally:
        opened.close()
    return [in_line(row) for row in table.sort("frame").iter_rows(named=True)]


def in_line(frame: Mapping[str, Any]) -> str:
    """Number, time, port and way, length, and what it is."""
    way = _WAYS.get(frame["direction"], "has")
    words = f"{frame['frame']} at {frame['time_ns']} ns: {frame['interface']} {way} {frame['frame_length']} B"
    if frame["source"] is not None:
        ends = [
            str(end) if port is None else f"{end}:{port}"
            for end, port in ((frame[side], frame[f"{side}_port"]) for side in ("source", "target"))
        ]
        protocol = _PROTOCOLS.get(frame["protocol"], f"protocol {frame['protocol']}")
        words += f", {protocol} from {ends[0]} to {ends[1]}"
    elif frame["ethertype"] is not None:
        words += f", type {frame['ethertype']}"
    return words + (f" ({frame['comment']})" if frame["comment"] else "")
