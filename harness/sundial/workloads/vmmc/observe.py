# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane in captures: the fields of their headers, read from the bytes.

Nothing of this comes from the dissector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from sundial.observe.headers import Headers
from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Reader
from sundial.segments.vmmc.wire import FIELDS, HEADER, LINK_TYPE


class _Vmmc:
    """Null where a packet has not its 32 bytes."""

    columns: Mapping[str, type[pl.DataType]] = {f"vmmc_{name}": pl.UInt32 for name in FIELDS}

    def carried_by(self, interface: Interface, headers: Headers) -> bool:
        return interface.link_type == LINK_TYPE

    def read(self, capture: Capture, interface: Interface, headers: Headers) -> Sequence[pl.Series]:
        octets = headers.octets
        whole = pl.Series(octets.has(HEADER))
        heads = octets.matrix(0, HEADER).astype(np.int64)
        found = []
        for name, (at, size) in FIELDS.items():
            numbers = (heads[:, at : at + size] << 8 * np.arange(size)).sum(axis=1, dtype=np.int64)
            column = pl.Series(f"vmmc_{name}", numbers, pl.Int64).cast(pl.UInt32)
            found.append(pl.select(pl.when(whole).then(column).alias(column.name)).to_series())
        return found


KIND: Reader = _Vmmc()
