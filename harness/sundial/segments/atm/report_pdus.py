# SPDX-License-Identifier: Apache-2.0
"""The captures of an ATM segment as the report needs them: PDUs, cells, and the IP packets in PDUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.expect.atm import BRIDGED, BRIDGED_FCS, CELL_PAYLOAD, LANE, ROUTED
from sundial.observe.erf import AAL5, CELL, CELL_HEADER, erf_octets, read_erf
from sundial.report.cells import SENT
from sundial.segments.atm.report_queue import Channel, Times

INBOUND, OUTBOUND = 1, 2
CONTROL_VCIS = (17, 33, 34)
"""Configuration direct, control direct and control distribute of LAN emulation."""
DATA_DIRECT, PERMANENT = 64, 100
"""VCI of a data direct channel, and of a permanent one, to port 0."""
FATE = ":fate"
"""How the name of the interface ends on which lost PDUs stand."""

_ETHERTYPE_AT = {LANE: 14, BRIDGED: 22, BRIDGED_FCS: 22, ROUTED: 6}
"""Of an SDU; the IP packet follows."""
_IPV4, _TCP = 0x0800, 6


def capture_path(directory: Path, name: str, what: str) -> Path:
    """The capture of PDUs (`pdus`) or cells (`cells`) of a segment."""
    return directory / "wire" / "atm" / f"{name}.{what}.pcapng"


def records(directory: Path, name: str, what: str, epoch_ns: int) -> pl.DataFrame | None:
    """All records of one of the two captures; None where it is not there or cannot be read."""
    path = capture_path(directory, name, what)
    if not path.is_file():
        return None
    try:
        return read_erf(path, epoch_ns).filter(pl.col("erf_type") == (AAL5 if what == "pdus" else CELL))
    except BadInput:
        return None


def with_cells(pdus: pl.DataFrame) -> pl.DataFrame:
    """PDUs with `cells`, how many each has by its length on the wire."""
    return pdus.with_columns(cells=(pl.col("wlen").cast(pl.Int64) - CELL_HEADER) // CELL_PAYLOAD)


def on_the_wire(directory: Path, name: str, epoch_ns: int) -> tuple[pl.DataFrame, bool] | None:
    """What was seen at the ports: at_ns, interface, direction, vci, last, count, and whether these are cells.

    Without a capture of cells they are PDUs, each with the count of its cells. None: neither is there.
    """
    columns = (pl.col("time_ns").alias("at_ns"), "interface", "direction", pl.col("vci").cast(pl.Int64))
    at_ports = pl.col("direction").is_in((INBOUND, OUTBOUND)) & ~pl.col("interface").str.ends_with(FATE)
    cells = records(directory, name, "cells", epoch_ns)
    if cells is not None and not cells.is_empty():
        return cells.filter(at_ports).select(*columns, last=pl.col("pt") & 1 == 1, count=pl.lit(1, pl.Int64)), True
    pdus = records(directory, name, "pdus", epoch_ns)
    if pdus is None:
        return None
    return with_cells(pdus.filter(at_ports)).select(*columns, last=pl.lit(value=True), count=pl.col("cells")), False


@dataclass(frozen=True)
class Line:
    """What a port's line adds to the times of cells, in ns; `late_ns` from its last bit out to the output queue."""

    cell_ns: float
    late_ns: float
    propagation_ns: float


def queues(
    directory: Path, name: str, epoch_ns: int, lines: Mapping[str, Line], base_vci: int
) -> tuple[dict[str, list[Channel]], dict[str, Times]]:
    """Cells of the channels between ports by the output that they lead to, and when PDUs were first hurt towards it."""
    table = records(directory, name, "cells", epoch_ns)
    if table is None or table.is_empty():
        return {}, {}
    content = _contents(erf_octets(capture_path(directory, name, "cells"), table).matrix(0, CELL_PAYLOAD))
    table = table.with_columns(content=pl.Series(content))
    parts = table.partition_by("interface", "direction", "vci", as_dict=True)
    ports = list(lines)
    found: dict[str, list[Channel]] = {}
    for to, port in enumerate(ports):
        for sender, other in enumerate(ports):
            sent = parts.get((other, OUTBOUND, base_vci + to))
            if sent is None:
                continue
            received = parts.get((port, INBOUND, base_vci + sender), table.clear())
            joins = sent["time_ns"].to_numpy() + lines[other].cell_ns + lines[other].late_ns
            starts = received["time_ns"].to_numpy() - lines[port].propagation_ns - lines[port].cell_ns
            channel = Channel(joins, sent["content"].to_numpy(), starts, received["content"].to_numpy())
            found.setdefault(port, []).append(channel)
    return found, _losses(directory, name, epoch_ns, ports)


def _contents(matrix: NDArray[np.uint8]) -> NDArray[np.int64]:
    """A number for each row, equal where the rows are."""
    rows = np.ascontiguousarray(matrix).view(np.dtype((np.void, matrix.shape[1]))).ravel()
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _losses(directory: Path, name: str, epoch_ns: int, ports: Sequence[str]) -> dict[str, Times]:
    """When PDUs lost their first cell at the queue towards each port."""
    pdus = records(directory, name, "pdus", epoch_ns)
    if pdus is None:
        return {}
    fates = pdus.filter(pl.col("interface").str.ends_with(FATE)).drop_nulls("comment")
    return {
        port: fates.filter(pl.col("comment").str.ends_with(f" towards {port}"))["time_ns"].to_numpy().astype(np.float64)
        for port in ports
    }


def heads(
    directory: Path, name: str, epoch_ns: int, octets: int, first: int
) -> tuple[pl.DataFrame, list[bytes]] | None:
    """The first PDUs at the ports in order of time, and as many octets of what each carries; None: none captured."""
    table = records(directory, name, "pdus", epoch_ns)
    if table is None:
        return None
    at_ports = pl.col("direction").is_in((INBOUND, OUTBOUND)) & ~pl.col("interface").str.ends_with(FATE)
    seen = with_cells(table.filter(at_ports)).sort("time_ns", maintain_order=True).head(first)
    matrix = erf_octets(capture_path(directory, name, "pdus"), seen).matrix(0, octets)
    return seen, [bytes(row) for row in matrix]


def sent_packets(directory: Path, name: str, epoch_ns: int, encapsulation: str) -> pl.DataFrame | None:
    """IP packets as they left the segment's ports, with the columns of `cells.SENT`."""
    table = records(directory, name, "pdus", epoch_ns)
    if table is None:
        return None
    sent = with_cells(table.filter(pl.col("direction") == OUTBOUND, ~pl.col("interface").str.ends_with(FATE)))
    octets = erf_octets(capture_path(directory, name, "pdus"), sent)
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
