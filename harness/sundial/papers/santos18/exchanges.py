# SPDX-License-Identifier: Apache-2.0
"""Exchanges of RPyC, counted in the captured streams: each request has an answer, whichever side asks.

A client says how many requests are its own. What a server asks for meanwhile (each element of a list, what an object
is) and gives back is in the streams alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from sundial.expect.ip import ETHERNET_HEADER
from sundial.observe import octets_of
from sundial.workloads.rpyc.expect_brine import Handler, Kind, Malformed, frames, unpack

SYSTEM = "rpyc"
_SYN = 0x02
_SEQUENCE_END = 2**32
_ENDS = ("client_address", "client_port", "server_address", "server_port")
_NEAR, _FAR = ("source", "source_port"), ("target", "target_port")
Files = Sequence[tuple[Path, str]]
"""Captures, each with the name that frames have for it."""
End = tuple[str, int]


def exchanges(samples: pl.DataFrame, sent: pl.DataFrame, files: Files) -> dict[tuple[str, int], int]:
    """Requests of each batch, by client and batch: those from its first call until the next batch begins, so that
    what the collector of garbage gives back behind it is there.

    `sent`: frames where they were sent. Batches of a connection whose streams are not RPyC's are left out.
    """
    own = samples.filter(pl.col("transport") == SYSTEM)
    begins = own.group_by(*_ENDS, "client", "batch").agg(pl.col("start_ns").min()).sort("start_ns")
    found: dict[tuple[str, int], int] = {}
    for (client, client_port, server, server_port), batches in begins.group_by(*_ENDS):
        ends = ((str(client), int(str(client_port))), (str(server), int(str(server_port))))
        try:
            asked = sorted(at_ns for near, far in (ends, ends[::-1]) for at_ns in _asked(sent, near, far, files))
        except Malformed:
            continue
        places = [bisect_right(asked, at_ns - 1) for at_ns in batches["start_ns"]]
        counts = [after - before for before, after in pairwise([*places, len(asked)])]
        found.update(zip(batches.select("client", "batch").iter_rows(), counts, strict=True))
    return found


def _asked(sent: pl.DataFrame, near: End, far: End, files: Files) -> list[int]:
    """When each request left one end, but for that which closes the connection. Raises Malformed."""
    way = zip((*_NEAR, *_FAR), (*near, *far), strict=True)
    segments = sent.filter(pl.col("tcp_seq").is_not_null(), *(pl.col(name) == value for name, value in way))
    stream, ends, times = _stream(segments, files)
    asked = []
    for frame in frames(stream):
        message = unpack(frame.data)
        closes = isinstance(message.body, tuple) and message.body[:1] == (Handler.CLOSE,)
        if message.kind == Kind.REQUEST and not closes:
            asked.append(times[bisect_right(ends, frame.begin)])
    return asked


def _stream(segments: pl.DataFrame, files: Files) -> tuple[bytes, list[int], list[int]]:
    """What one end sent; where each piece of it ends, and when that was first sent. Raises Malformed for a gap."""
    first = segments.filter(pl.col("tcp_flags") & _SYN != 0)["tcp_seq"].cast(pl.Int64).min()
    length = pl.col("tcp_length").cast(pl.Int64)
    pos = (pl.col("tcp_seq").cast(pl.Int64) - pl.lit(first, pl.Int64) - 1) % _SEQUENCE_END
    placed = segments.filter(length > 0).with_columns(pos=pos).sort("pos", "time_ns")
    stream, ends, times = bytearray(), list[int](), list[int]()
    if placed.is_empty():
        return b"", ends, times
    end = ETHERNET_HEADER + placed["ip_length"].cast(pl.Int64).to_numpy()
    flat, sizes = octets_of(placed, files).flat(end - placed["tcp_length"].cast(pl.Int64).to_numpy(), end)
    data, begin = flat.tobytes(), 0
    for size, at, at_ns in zip(sizes.tolist(), placed["pos"], placed["time_ns"], strict=True):
        if at is None or at > len(stream):
            raise Malformed(f"nothing was captured from byte {len(stream)} on")
        if at + size > len(stream):
            stream += data[begin + len(stream) - at : begin + size]
            ends.append(len(stream))
            times.append(at_ns)
        begin += size
    return bytes(stream), ends, times
