# SPDX-License-Identifier: Apache-2.0
"""The captures of an ATM segment as the report needs them: PDUs, cells, and the IP packets in PDUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.expect.atm import BRIDGED, BRIDGED_FCS, CELL_PAYLOAD, LANE, ROUTED
from sundial.observe.erf import AAL5, CELL, CELL_HEADER, erf_octets, read_erf
from sundial.observe.fates import fate_columns
from sundial.report.cells import SENT
from sundial.segments.atm.report_queue import Channel, Times

INBOUND, OUTBOUND = 1, 2
DATA_DIRECT, PERMANENT = 64, 100
"""VCI of a data direct channel, and of a permanent one, to port 0."""
FATE = ":fate"
"""How the name of the interface ends on which lost PDUs stand."""

_ETHERTYPE_AT = {LANE: 14, BRIDGED: 22, BRIDGED_FCS: 22, ROUTED: 6}
"""Of an SDU; the IP packet follows."""
_IPV4, _TCP = 0x0800, 6
_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD,
                 0xC4CEB9FE1A85EC53], dtype=np.uint64)  # fmt: skip
"""Random odd numbers; a sum of products with them tells contents of cells apart, but for 1 pair in 2^64."""


@dataclass(frozen=True)
class Line:
    """What a port's line adds to the times of cells, in ns; `late_ns` from its last bit out to the output queue."""

    cell_ns: float
    late_ns: float
    propagation_ns: float


@dataclass(frozen=True)
class Captures:
    """Both captures of a segment; each is read when it is first asked for."""

    directory: Path
    """Of the run."""
    name: str
    """The segment's."""
    epoch_ns: int
    """Zero of the run's time axis, in ns since 1970."""

    def path(self, what: Literal["pdus", "cells"]) -> Path:
        """Where a capture is."""
        return self.directory / "wire" / "atm" / f"{self.name}.{what}.pcapng"

    @cached_property
    def all_pdus(self) -> pl.DataFrame | None:
        """Every PDU with its `cells`, lost ones included; None where there is no capture that can be read."""
        table = self._records("pdus", AAL5)
        counted = (pl.col("wlen").cast(pl.Int64) - CELL_HEADER) // CELL_PAYLOAD
        return None if table is None else table.with_columns(cells=counted)

    @cached_property
    def pdus(self) -> pl.DataFrame | None:
        """PDUs as they left and reached the ports."""
        return None if self.all_pdus is None else self.all_pdus.filter(_at_ports())

    @cached_property
    def cells(self) -> pl.DataFrame | None:
        """Cells at the ports; None where none were captured."""
        table = self._records("cells", CELL)
        return None if table is None or table.is_empty() else table.filter(_at_ports())

    def _records(self, what: Literal["pdus", "cells"], erf_type: int) -> pl.DataFrame | None:
        path = self.path(what)
        try:
            found = read_erf(path, self.epoch_ns) if path.is_file() else None
        except BadInput:
            return None
        return None if found is None else found.filter(pl.col("erf_type") == erf_type)


def _at_ports() -> pl.Expr:
    return pl.col("direction").is_in((INBOUND, OUTBOUND)) & ~pl.col("interface").str.ends_with(FATE)


def on_the_wire(captures: Captures, first_ns: int, last_ns: int) -> tuple[pl.DataFrame, bool] | None:
    """What was stamped at the ports between two instants: at_ns, interface, direction, vci, last, count, and whether
    these are cells.

    Without a capture of cells they are PDUs, each with the count of its cells. None: neither is there.
    """
    columns = (pl.col("time_ns").alias("at_ns"), "interface", "direction", pl.col("vci").cast(pl.Int64))
    inside = pl.col("time_ns").is_between(first_ns, last_ns)
    if captures.cells is not None:
        one = (((pl.col("pt") & 1) == 1).alias("last"), pl.lit(1, pl.Int64).alias("count"))
        return captures.cells.filter(inside).select(*columns, *one), True
    if captures.pdus is None:
        return None
    whole = (pl.lit(value=True).alias("last"), pl.col("cells").alias("count"))
    return captures.pdus.filter(inside).select(*columns, *whole), False


def queues(captures: Captures, lines: Mapping[str, Line], base_vci: int) -> dict[str, list[Channel]]:
    """Cells of the channels between ports, by the output that they lead to."""
    table = captures.cells
    if table is None:
        return {}
    octets = erf_octets(captures.path("cells"), table)
    table = table.with_columns(content=pl.Series(_contents(octets.matrix(0, CELL_PAYLOAD))))
    parts = table.partition_by("interface", "direction", "vci", as_dict=True)
    found: dict[str, list[Channel]] = {}
    for to, port in enumerate(lines):
        for sender, other in enumerate(lines):
            sent = parts.get((other, OUTBOUND, base_vci + to))
            if sent is None:
                continue
            received = parts.get((port, INBOUND, base_vci + sender), table.clear())
            joins = sent["time_ns"].to_numpy() + lines[other].cell_ns + lines[other].late_ns
            starts = received["time_ns"].to_numpy() - lines[port].propagation_ns - lines[port].cell_ns
            channel = Channel(joins, sent["content"].to_numpy(), starts, received["content"].to_numpy())
            found.setdefault(port, []).append(channel)
    return found


def _contents(matrix: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A number for each row, equal where the rows are."""
    words: NDArray[np.uint64] = np.ascontiguousarray(matrix).view(np.uint64)
    found: NDArray[np.uint64] = (words * _ODD).sum(axis=1, dtype=np.uint64)
    return found


def losses(captures: Captures, ports: Mapping[str, Line]) -> dict[str, Times]:
    """When PDUs lost their first cell at the queue towards each port."""
    if captures.all_pdus is None:
        return {}
    fates = captures.all_pdus.filter(pl.col("interface").str.ends_with(FATE)).drop_nulls("comment")
    towards = fate_columns(fates["comment"])["fate_to"]
    return {port: fates.filter(towards == port)["time_ns"].to_numpy().astype(np.float64) for port in ports}


def heads(captures: Captures, octets: int, first: int) -> tuple[pl.DataFrame, list[bytes]] | None:
    """The first PDUs at the ports in order of time, and as many octets of what each carries; None: none captured."""
    if captures.pdus is None:
        return None
    seen = captures.pdus.sort("time_ns", maintain_order=True).head(first)
    matrix = erf_octets(captures.path("pdus"), seen).matrix(0, octets)
    return seen, [bytes(row) for row in matrix]


def sent_packets(captures: Captures, encapsulation: str) -> pl.DataFrame | None:
    """IP packets as they left the segment's ports, with the columns of `cells.SENT`."""
    if captures.pdus is None:
        return None
    sent = captures.pdus.filter(pl.col("direction") == OUTBOUND)
    octets = erf_octets(captures.path("pdus"), sent)
    at = _ETHERTYPE_AT[encapsulation]
    head = octets.number(at + 2, 1)
    is_ip = (octets.number(at, 2) == _IPV4) & (head >> 4 == 4)
    header = (head & 15) * 4
    protocol = octets.number(at + 11, 1)
    payload = octets.number(at + 4, 2) - header
    tcp_header = (octets.number(at + 2 + header + 12, 1) >> 4) * 4
    payload = np.where(protocol == _TCP, payload - tcp_header, payload)
    return sent.select(pl.col("time_ns").alias("at_ns"), "cells").with_columns(
        source=pl.Series(octets.number(at + 14, 4)), target=pl.Series(octets.number(at + 18, 4)),
        protocol=pl.Series(protocol), payload=pl.Series(payload),
    ).filter(pl.Series(is_ip)).select(pl.col(column).cast(kind) for column, kind in SENT.items())  # fmt: skip
