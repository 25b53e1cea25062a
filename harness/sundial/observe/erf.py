# SPDX-License-Identifier: Apache-2.0
"""Captures of ATM: AAL5 PDUs and cells as ERF records in pcapng, as one table and one array of bytes.

A record is 16 octets of ERF (Endace's Extensible Record Format: time stamp as a little-endian number of 2^-32 s, type,
flags, then big-endian record length, loss counter and wire length), four octets of cell header without HEC (I.361),
and what a cell or a PDU carries. The harness/schemas/README.md says what the fabric writes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.observe.octets import Numbers, Octets
from sundial.observe.pcap import Capture, Interface, open_capture
from sundial.observe.pcapng import ALLOWED

ERF_LINK = 197
"""LINKTYPE_ERF."""
CELL, AAL5 = 3, 4
"""Types of records: TYPE_ATM and TYPE_AAL5."""
ERF_HEADER, CELL_HEADER = 16, 4
_HEAD = ERF_HEADER + CELL_HEADER
_PACKET = 28
"""Octets of an enhanced packet block before the packet."""
_OPTION_END, _COMMENT, _FLAGS, _RESOLUTION = 0, 1, 2, 9
_NS = b"\x09"
_MOST_OPTIONS = 8
_SIMPLE = 3

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
    """All records of a capture. Raises BadInput where it is no complete capture of ERF records, or not of `interfaces`,
    if they are given."""
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
    if capture.classic or interface.link_type != ERF_LINK or _resolution(capture, interface) != _NS:
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
    direction, comment, plain = _options(capture, interface)
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


def _resolution(capture: Capture, interface: Interface) -> bytes:
    """The if_tsresol option of an interface; one without has us."""
    block, offset = interface.description, 16
    while offset + 8 <= len(block):
        code, length = struct.unpack_from(f"{capture.order}HH", block, offset)
        if code == _RESOLUTION:
            return block[offset + 4 : offset + 4 + length]
        if code == _OPTION_END:
            break
        offset += 4 + (length + 3) // 4 * 4
    return b"\x06"


def _options(capture: Capture, interface: Interface) -> tuple[Numbers, pl.Series, NDArray[np.bool_]]:
    """Direction, comment and whether there is nothing else in each block, its padding included."""
    blocks, order = interface.blocks, capture.order
    captured = blocks["captured"].astype(np.int64)
    total = blocks["total"].astype(np.int64)
    whole = Octets(np.memmap(capture.path, np.uint8, "r"), blocks["offset"], total - 4)
    place, end = _PACKET + (captured + 3) // 4 * 4, total - 4
    padding = whole.matrix(_PACKET + captured, 3) * (np.arange(3) < (-captured % 4)[:, None])
    plain: NDArray[np.bool_] = np.asarray(~padding.any(axis=1))
    flags, told = np.zeros(len(blocks), np.int64), np.full(len(blocks), -1)
    size = np.zeros(len(blocks), np.int64)
    open_ = place + 4 <= end
    for _ in range(_MOST_OPTIONS):
        if not open_.any():
            break
        which = np.flatnonzero(open_)
        here = whole.take(which)
        words = np.ascontiguousarray(here.matrix(place[which], 8)).view(f"{order}u2").reshape(-1, 4).astype(np.int64)
        code, length = words[:, 0], words[:, 1]
        is_flags, is_comment = (code == _FLAGS) & (length == 4), code == _COMMENT
        low, high = (words[:, 2], words[:, 3]) if order == "<" else (words[:, 3], words[:, 2])
        flags[which[is_flags]] = (low | high << 16)[is_flags]
        told[which[is_comment]], size[which[is_comment]] = place[which[is_comment]] + 4, length[is_comment]
        done = code == _OPTION_END
        plain[which[~(done | is_flags | is_comment)]] = False
        plain[which[done]] &= (length[done] == 0) & (place[which[done]] + 4 == end[which[done]])
        place[which] += 4 + (length + 3) // 4 * 4
        open_[which] = ~done & (place[which] + 4 <= end[which])
    plain &= (flags & ~3) == 0
    comments: list[str | None] = [None] * len(blocks)
    for row in np.flatnonzero(told >= 0).tolist():
        begin = int(blocks["offset"][row] + told[row])
        comments[row] = capture.data[begin : begin + int(size[row])].decode(errors="replace")
    return flags & 3, pl.Series(comments, dtype=pl.String), plain
