# SPDX-License-Identifier: Apache-2.0
"""Devices that join segments: a bridge hands in at its other ports what it has received, exactly its forwarding latency
later (IEEE 802.1D, 7.7 to 7.9), and nothing else. When a frame is sent then is the law of the segment there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from sundial.model.network import Device
from sundial.verify.findings import Finding, as_table
from sundial.verify.law import Bounds, Counted
from sundial.verify.learning import FILTERED, FLOODED, Behind, Received, behind, output_ports
from sundial.verify.wire import Passages, Wire

Offered = Callable[[str, Passages, Behind | None], list[pl.DataFrame]]
"""Findings of what is handed in at a port, and of what is known to be behind the other ports."""

COUNTERS = ("received_frames", "forwarded_frames", "flooded_frames", "filtered_frames")


def check_device(
    device: Device, wires: Mapping[str, Wire], check_offered: Offered
) -> tuple[list[pl.DataFrame], dict[tuple[str, str], Bounds]]:
    """Findings, and what the device must have counted by port and counter. `wires` by port."""
    ends = [port.end for port in device.ports]
    if any(end not in wires for end in ends):
        return [], {}
    frames = _received([wires[end].received_at(end) for end in ends])
    way = output_ports(frames, device.written.ageing, device.written.mac_table_entries)
    room = len(np.unique(frames.source)) <= device.written.mac_table_entries
    found = []
    counted: dict[tuple[str, str], Bounds] = {}
    for number, end in enumerate(ends):
        mine = np.flatnonzero((way == number) | ((way == FLOODED) & (frames.port != number)))
        given = _handed_in(frames, mine, device.written.forwarding_latency, wires[end].end_ns)
        found += check_offered(end, given, behind(frames, number, device.written.ageing) if room else None)
        here = way[frames.port == number]
        numbers = (len(here), int((here >= 0).sum()), int((here == FLOODED).sum()), int((here == FILTERED).sum()))
        counted |= {(end, name): (each, each) for name, each in zip(COUNTERS, numbers, strict=True)}
    return found, counted


def _received(ports: list[Passages]) -> Received:
    """By time, and at one instant by port."""
    columns = [
        (each.time_ns, np.full(len(each), number), each.row, each.length, each.content, each.source, each.target)
        for number, each in enumerate(ports)
    ]
    every = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.lexsort((every[1], every[0]))
    return Received(*(column[order] for column in every))


def _handed_in(frames: Received, mine: np.ndarray, latency_ns: int, end_ns: int | None) -> Passages:
    at = frames.ready[mine] + latency_ns
    given = Passages(frames.row[mine], at, frames.length[mine], frames.content[mine], frames.source[mine],
                     frames.target[mine])  # fmt: skip
    return given if end_ns is None else given.take(at <= end_ns)


def check_counted(statistics: Mapping[str, Any], counted: Counted) -> pl.DataFrame:
    """Findings of `devices` of wire/counters.json (`statistics`) against the topology and the captures."""
    return as_table(Finding(None, *row) for row in _differences(statistics, counted))


def _differences(statistics: Mapping[str, Any], counted: Counted) -> Iterator[tuple[str, str, str]]:
    known = sorted(device.name for device in counted.devices)
    if sorted(statistics) != known:
        yield "devices", f"{', '.join(sorted(statistics)) or 'none'} by wire/counters.json", ", ".join(known) or "none"
        return
    for device in counted.devices:
        here, ends = statistics[device.name], [port.end for port in device.ports]
        if here["kind"] != device.kind or sorted(here["ports"]) != sorted(ends):
            seen = f"{here['kind']} with {', '.join(here['ports'])} by wire/counters.json"
            yield device.name, seen, f"{device.kind} with {', '.join(ends)} by run.json"
            continue
        for end in ends:
            for name in COUNTERS:
                number = int(here["ports"][end][name])
                least, most = counted.of_devices.get((end, name), (number, number))
                if not least <= number <= most:
                    yield f"{end} {name}", f"{number} by wire/counters.json", f"{least} by the captures"
