# SPDX-License-Identifier: Apache-2.0
"""Captures of ATM: AAL5 PDUs and cells as ERF records in pcapng, as one table and one array of bytes.

A record is 16 octets of ERF (Endace's Extensible Record Format: time stamp as a little-endian number of 2^-32 s, type,
flags, then big-endian record length, loss counter and wire length), four octets of cell header without HEC (I.361),
and what a cell or a PDU carries. The harness/schemas/README.md says what the fabric writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.observe.octets import Octets
from sundial.observe.pcap import Capture, Interface, open_capture
from sundial.observe.pcapng import ALLOWED
from sundial.observe.stamps import options

ERF_LINK = 197
"""LINKTYPE_ERF."""
CELL, AAL5 = 3, 4
"""Types of records: TYPE_ATM and TYPE_AAL5."""
ERF_HEADER, CELL_HEADER = 16, 4
_HEAD = ERF_HEADER + CELL_HEADER

_SECOND_NS = 10**9

ERF_COLUMNS: dict[str, type[pl.DataType]] = {
    "row": pl.UInt32,
    "interface": pl.String,
    "time_ns": pl.Int64,
    "direction": pl.UInt8,
    "comment": pl.String,
    "erf_time": pl.UInt64,
    "erf_type": pl.UInt8,
    "erf_flags": pl.UInt8,
    "rlen": pl.UInt16,
    "lctr": pl.UInt16,
    "wlen": pl.UInt16,
    "gfc": pl.UInt8,
    "vpi": pl.UInt8,
    "vci": pl.UInt16,
    "pt": pl.UInt8,
    "clp": pl.UInt8,
    "begin": pl.Int64,
    "length": pl.Int64,
    "original": pl.UInt32,
    "plain": pl.Boolean,
}
"""Of every record, in the order of the file. `row` counts from 0; `time_ns` since zero of the run, of the block, and
`erf_time` the record's own stamp; `direction` 0 unknown, 1 inbound, 2 outbound. What is behind the cell header begins
at `begin` of the file; `original` is the length that the block gives; `plain`: the block has a direction, a comment or
neither, and nothing else."""


def read_erf(path: Path, epoch_ns: int, interfaces: Sequence[str] = ()) -> pl.DataFrame:
    """All records of a capture. Raises BadInput where it is not a complete capture of ERF records, or not of
    `interfaces`, if they are given."""
    capture = open_capture(path)
    try:
        names = [interface.name for interface in capture.interfaces]
        if interfaces and names != [*interfaces]:
            raise BadInput(f"interfaces {', '.join(names)}", file=str(path), allowed=", ".join(interfaces))
        parts = [_records(capture, interface, epoch_ns) for interface in capture.interfaces]
    finally:
        capture.close()
    table = pl.concat(parts) if parts else pl.DataFrame(schema=ERF_COLUMNS)
    return table.sort("row")


def erf_octets(path: Path, table: pl.DataFrame) -> Octets:
    """What is behind the cell headers of rows of `read_erf`, in their order."""
    data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.zeros(0, np.uint8)
    return Octets(data, table["begin"].to_numpy(), table["length"].to_numpy())


def _records(capture: Capture, interface: Interface, epoch_ns: int) -> pl.DataFrame:
    if capture.classic or interface.link_type != ERF_LINK or capture.clock(interface) != (_SECOND_NS, 0):
        what = f"interface {interface.name!r} has no ERF records in ns"
        raise BadInput(what, file=str(capture.path), allowed="pcapng of link type 197 with if_tsresol 9")
    blocks = interface.blocks
    short = blocks["captured"] < _HEAD
    ticks = capture.ticks(interface) if len(blocks) else np.zeros(0, np.int64)
    if short.any() or ticks is None:
        number = blocks["number"][int(np.argmax(short))]
        raise BadInput(f"record {number} is too short for ERF", file=str(capture.path), allowed=ALLOWED)
    octets = capture.octets(interface)
    heads = octets.matrix(0, _HEAD)
    stamp = np.ascontiguousarray(heads[:, :8]).view("<u8").ravel()
    words = np.ascontiguousarray(heads[:, 10:16]).view(">u2").reshape(-1, 3)
    header = np.ascontiguousarray(heads[:, 16:20]).view(">u4").ravel()
    direction, comment, plain = options(capture, interface)
    return pl.DataFrame(
        {
            "row": blocks["number"] - 1,
            "interface": [interface.name] * len(blocks),
            "time_ns": ticks - epoch_ns,
            "direction": direction,
            "comment": comment,
            "erf_time": stamp,
            "erf_type": heads[:, 8],
            "erf_flags": heads[:, 9],
            "rlen": words[:, 0].astype(np.uint16),
            "lctr": words[:, 1].astype(np.uint16),
            "wlen": words[:, 2].astype(np.uint16),
            "gfc": (header >> 28).astype(np.uint8),
            "vpi": (header >> 20 & 0xFF).astype(np.uint8),
            "vci": (header >> 4 & 0xFFFF).astype(np.uint16),
            "pt": (header >> 1 & 7).astype(np.uint8),
            "clp": (header & 1).astype(np.uint8),
            "begin": octets.begin + _HEAD,
            "length": octets.length - _HEAD,
            "original": blocks["original"],
            "plain": plain,
        },
        schema=ERF_COLUMNS,
    )
