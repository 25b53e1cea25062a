# SPDX-License-Identifier: Apache-2.0
"""The captures of an ATM segment as the report needs them: PDUs, cells, and the IP packets in PDUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sundial.errors import BadInput
from sundial.expect.atm import BRIDGED, BRIDGED_FCS, CELL_PAYLOAD, LANE, ROUTED
from sundial.observe.erf import AAL5, CELL, CELL_HEADER, erf_octets, read_erf
from sundial.report.cells import SENT

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
