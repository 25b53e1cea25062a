# SPDX-License-Identifier: Apache-2.0
"""Captures to one table of frames, exact and with the frame numbers that Wireshark shows for the original file.

Plain frames are read from their bytes (`headers.py`, `plain.py`). Of others tshark is asked, once a capture
(`asked.py`), and what it shows is compared with what the bytes say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from sundial.observe.asked import asked
from sundial.observe.headers import HEADER_COLUMNS, as_table, read_differently, read_headers
from sundial.observe.octets import Numbers
from sundial.observe.pcap import ETHERNET_LINK, Capture, Interface, open_capture
from sundial.observe.plain import PRIVATE_LINKS, shown
from sundial.observe.stamps import options, stamps
from sundial.observe.workload import readers

_PIECE = 1 << 14
"""Frames whose bytes are read at once."""

FRAME_COLUMNS: dict[str, type[pl.DataType]] = {
    "capture": pl.String,
    "interface": pl.String,
    "frame": pl.UInt32,
    "time_ns": pl.Int64,
    "direction": pl.UInt8,
    "frame_length": pl.UInt32,
    "captured_length": pl.UInt32,
    "ethertype": pl.Categorical,
    "source": pl.String,
    "target": pl.String,
    "ip_id": pl.UInt32,
    "more": pl.Boolean,
    "fragment_offset": pl.UInt32,
    "ip_length": pl.UInt32,
    "ip_header": pl.UInt32,
    "protocol": pl.UInt32,
    "source_port": pl.UInt32,
    "target_port": pl.UInt32,
    "udp_length": pl.UInt32,
    "udp_head": pl.String,
    "tcp_seq": pl.UInt32,
    "tcp_length": pl.UInt32,
    "tcp_flags": pl.UInt32,
    "tcp_mss": pl.UInt32,
    "tcp_timestamp": pl.UInt32,
    "icmp_type": pl.UInt32,
    "comment": pl.String,
    "octets_begin": pl.Int64,
    "octets_hash": pl.Int64,
    "read_differently": pl.String,
    **HEADER_COLUMNS,
}
"""Of every frame; `frame_columns` has those of kinds as well.

Lengths and offsets in bytes, `time_ns` since zero of the run, `direction` 0 unknown, 1 inbound, 2 outbound.

`source_port` and `target_port` are null in fragments after the first. `udp_head` is the beginning of the UDP payload in
hexadecimal.

The last columns come from the captured bytes themselves (`octets.py`, `headers.py`), which begin at `octets_begin` of
the file; `octets_hash` is the same for equal frames; `read_differently` names fields that tshark shows otherwise.
"""


def frame_columns() -> dict[str, type[pl.DataType]]:
    """Columns of the table of frames."""
    columns = dict(FRAME_COLUMNS)
    for kind in readers().values():
        columns |= kind.columns
    return columns


def read_frames(files: Iterable[tuple[Path, str]], epoch_ns: int) -> pl.DataFrame:
    """All frames of some captures, each given with the name to show for it: a table with `frame_columns`.

    Sorted by capture, interface and frame. Raises BadInput for a capture that cannot be read, HostLacks without tshark
    where it has to be asked.
    """
    opened: list[tuple[Capture, str]] = []
    try:
        for path, name in files:
            opened.append((open_capture(path), name))
        return read_opened(opened, epoch_ns)
    finally:
        for capture, _ in opened:
            capture.close()


def read_opened(opened: Iterable[tuple[Capture, str]], epoch_ns: int) -> pl.DataFrame:
    """The same of open captures, or of parts of one (`division.py`)."""
    pieces: list[pl.DataFrame] = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for capture, name in opened:
            some = [piece for interface in capture.interfaces for piece in _slices(interface)]
            read = list(pool.map(partial(_piece, capture, name, epoch_ns=epoch_ns), some))
            capture.forget()
            odd = [replace(each, blocks=each.blocks[piece.odd]) for each, piece in zip(some, read, strict=True)]
            if any(len(each.blocks) for each in odd):
                seen = asked(capture, [each for each in odd if len(each.blocks)])
                ends = np.cumsum([len(piece.odd) for piece in read])
                read = [
                    piece.completed(seen.slice(end - len(piece.odd), len(piece.odd)))
                    for piece, end in zip(read, ends.tolist(), strict=True)
                ]
            pieces += [piece.table for piece in read]
    return _together(pieces)


def _slices(interface: Interface) -> list[Interface]:
    """Some frames after others."""
    blocks = interface.blocks
    return [replace(interface, blocks=blocks[first : first + _PIECE]) for first in range(0, len(blocks), _PIECE)]


@dataclass(frozen=True)
class _Piece:
    """Some frames: their table, those that are not plain by place, and what their bytes say of these."""

    table: pl.DataFrame
    odd: Numbers
    octets: pl.DataFrame

    def completed(self, seen: pl.DataFrame) -> _Piece:
        """With what tshark shows of those that are not plain."""
        if seen.is_empty():
            return self
        schema = self.table.schema
        odd = self.table[self.odd].with_columns(seen.select(pl.col(name).cast(schema[name]) for name in seen.columns))
        odd = odd.with_columns(read_differently(odd, self.octets))
        rest = np.setdiff1d(np.arange(self.table.height), self.odd)
        order = np.argsort(np.concatenate([rest, self.odd]))
        return replace(self, table=pl.concat([self.table[rest], odd])[order])


def _piece(capture: Capture, name: str, interface: Interface, *, epoch_ns: int) -> _Piece:
    """Columns of some frames at one interface; without those of kinds that are not there."""
    blocks = interface.blocks
    octets = capture.octets(interface)
    headers = read_headers(octets, ethernet=interface.link_type == ETHERNET_LINK)
    fields = as_table(headers.fields)
    seen, plain = shown(headers, blocks["original"].astype(np.int64))
    odd = np.flatnonzero(~plain & (interface.link_type not in PRIVATE_LINKS))
    direction, comment, _ = options(capture, interface)
    of_kinds = [
        series.alias(column)
        for kind in readers().values()
        if kind.carried_by(interface, headers)
        for column, series in zip(kind.columns, kind.read(capture, interface, headers), strict=True)
    ]
    columns = frame_columns()
    table = fields.with_columns(
        *seen,
        *of_kinds,
        pl.Series("captured_length", blocks["captured"]),
        pl.Series("frame_length", blocks["original"]),
        pl.Series("frame", blocks["number"]),
        pl.Series("octets_begin", octets.begin),
        pl.Series("octets_hash", octets.hashes()),
        pl.Series("direction", direction),
        comment.alias("comment"),
        (stamps(capture, interface) - epoch_ns).alias("time_ns"),
        capture=pl.lit(name),
        interface=pl.lit(interface.name or Path(name).stem),
        read_differently=pl.lit(None, pl.String),
    )
    # What is impossible in a frame that is not plain, as a length below 0, is null until tshark is asked.
    table = table.select(
        pl.col(column).cast(kind, strict=False) for column, kind in columns.items() if column in table.columns
    )
    octets.forget()
    return _Piece(table, odd, fields[odd])


def _together(pieces: list[pl.DataFrame]) -> pl.DataFrame:
    """One table of all pieces, which are used up. A column of nulls only takes no memory."""
    if not pieces:
        return pl.DataFrame(schema=frame_columns())
    heights = [piece.height for piece in pieces]
    columns: dict[str, pl.Series] = {}
    for name, dtype in frame_columns().items():
        if any(name in piece.columns for piece in pieces):
            parts = [
                piece.drop_in_place(name) if name in piece.columns else pl.repeat(None, height, dtype=dtype, eager=True)
                for piece, height in zip(pieces, heights, strict=True)
            ]
            columns[name] = pl.concat(parts, rechunk=True)
    return (
        pl.DataFrame(columns)
        .select(
            pl.col(name) if name in columns else pl.lit(None, dtype).alias(name)
            for name, dtype in frame_columns().items()
        )
        .pipe(compact)
    )


def compact(table: pl.DataFrame) -> pl.DataFrame:
    """The same table, whose columns of one value, or of nulls, take no memory: polars keeps a literal as one value."""
    if table.is_empty():
        return table
    first, last = table.row(0, named=True), table.row(-1, named=True)
    # In one go, since each select of polars has its price.
    same = table.select(
        pl.col(name).eq_missing(pl.col(name).first()).all() for name, value in first.items() if value == last[name]
    )
    schema = table.schema
    return table.with_columns(pl.lit(first[name], schema[name]).alias(name) for name in same.columns if same[name][0])
