# SPDX-License-Identifier: Apache-2.0
"""The fabric's counters as a row for each port, while a topology is up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from sundial.seams.fate import Record


class PortCounts(NamedTuple):
    """What one port has counted since its topology came up."""

    segment: str
    port: str
    tx_frames: int
    tx_bytes: int
    rx_frames: int
    rx_bytes: int
    lost: int
    """Frames of this port that were dropped, for whatever reason."""
    collisions: int
    queue: int
    """Frames that its adapter holds: handed in, and neither begun nor dropped."""


def port_counts(counters: Mapping[str, Any]) -> list[PortCounts]:
    """The ports of all segments, in the order of the counters; none where there are no counters."""
    return [
        _counts(segment, port, counted)
        for segment, document in (counters.get("segments") or {}).items()
        for port, counted in document["ports"].items()
    ]


def _counts(segment: str, port: str, counted: Mapping[str, Any]) -> PortCounts:
    dropped: Mapping[str, int] = counted["dropped"]
    before = sum(count for rule, count in dropped.items() if rule in adapter_rules())
    queue = counted["offered_frames"] - counted["tx_frames"] - before
    return PortCounts(
        segment, port, counted["tx_frames"], counted["tx_bytes"], counted["rx_frames"], counted["rx_bytes"],
        sum(dropped.values()), counted["collisions"], max(0, queue),
    )  # fmt: skip


@cache
def adapter_rules() -> frozenset[str]:
    """The rules by which an adapter drops a frame that it has not sent."""
    models = [model for model in get_args(Record) if {"rule", "adapter"} <= model.model_fields.keys()]
    return frozenset(rule for model in models for rule in get_args(model.model_fields["rule"].annotation))
