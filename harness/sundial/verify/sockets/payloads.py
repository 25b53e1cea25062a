# SPDX-License-Identifier: Apache-2.0
"""What UDP and TCP carry in each frame, as bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER
from sundial.observe import octets_of
from sundial.verify.sockets.protocol import Bytes, Files


def payloads(rows: pl.DataFrame, files: Files) -> Iterator[bytes]:
    """Of each frame, in the order of the rows."""
    udp = pl.col("udp_length").is_not_null() & pl.col("tcp_length").is_null()
    length = pl.when(udp).then(pl.col("udp_length").cast(pl.Int64) - UDP_HEADER).otherwise(pl.col("tcp_length"))
    yield from _cut(rows, files, pl.col("ip_length").cast(pl.Int64) - length, length)


def ip_payloads(rows: pl.DataFrame, files: Files) -> Iterator[bytes]:
    """The same of what IP carries: a whole packet's, or a fragment's."""
    header = pl.col("ip_header").cast(pl.Int64)
    yield from _cut(rows, files, header, pl.col("ip_length").cast(pl.Int64) - header)


def _cut(rows: pl.DataFrame, files: Files, begin: pl.Expr, length: pl.Expr) -> Iterator[bytes]:
    """Bytes of each frame, from `begin` of its packet on."""
    places = rows.select("capture", begin=pl.col("octets_begin") + ETHERNET_HEADER + begin, length=length)
    data = {name: _bytes_of(name, rows, files) for name in places["capture"].unique()}
    for capture, at, count in places.iter_rows():
        yield data[capture][at : at + count].tobytes()


def _bytes_of(name: str, rows: pl.DataFrame, files: Files) -> Bytes:
    one = rows.filter(pl.col("capture") == name).head(1)
    return np.asarray(octets_of(one, [file for file in files if file[1] == name]).data)
