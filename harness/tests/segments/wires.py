# SPDX-License-Identifier: Apache-2.0
"""Captures for tests of laws: rows of the table of frames, made by generators that are independent of the laws."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl

from sundial.verify.frames import with_fates
from sundial.verify.wire import Wire

OUT, IN = 2, 1
BROADCAST = (1 << 48) - 1


@dataclass(frozen=True)
class Frame:
    """One that a port sends: `name` stands for its bytes."""

    at: int
    port: int
    length: int
    name: int
    target: int = BROADCAST


@dataclass
class Tape:
    """What a capture of some ports holds."""

    ports: list[str]
    rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, at: int, port: int, direction: int, frame: Frame) -> None:
        self._row(at, self.ports[port], direction, frame, None)

    def fate(self, at: int, comment: str, frame: Frame) -> None:
        self._row(at, "lan:fate", 0, frame, comment)

    def _row(self, at: int, interface: str, direction: int, frame: Frame, comment: str | None) -> None:
        self.rows.append(
            {
                "time_ns": at, "interface": interface, "direction": direction, "frame_length": frame.length,
                "octets_hash": frame.name, "eth_source": frame.port + 1, "eth_target": frame.target, "comment": comment,
            }
        )  # fmt: skip

    def wire(self, end_ns: int | None = None) -> Wire:
        schema = {
            "time_ns": pl.Int64, "interface": pl.String, "direction": pl.UInt8, "frame_length": pl.UInt32,
            "octets_hash": pl.Int64, "eth_source": pl.Int64, "eth_target": pl.Int64, "comment": pl.String,
        }  # fmt: skip
        table = pl.DataFrame(self.rows, schema=schema).sort("time_ns", maintain_order=True).with_row_index("row")
        return Wire("lan", self.ports, with_fates(table), end_ns)


def moved(wire: Wire, row: int, by_ns: int) -> Wire:
    """With one record at another time."""
    here = pl.col("row") == row
    return replace(wire, frames=wire.frames.with_columns(pl.col("time_ns") + pl.when(here).then(by_ns).otherwise(0)))
