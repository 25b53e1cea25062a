# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in captures: what names a PDU, read from the bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import Headers
from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Reader
from sundial.workloads.dce.expect_pdu import HEADER, VERSION, BadPdu, Type, parse

_PAYLOAD = 42
"""Where a UDP payload begins behind an IP header without options."""
_UDP = 17


class _Dce:
    """`dce_activity` as a UUID's text."""

    columns: Mapping[str, type[pl.DataType]] = {
        "dce_type": pl.UInt32, "dce_flags": pl.UInt32, "dce_serial": pl.UInt32, "dce_sequence": pl.UInt32,
        "dce_fragment": pl.UInt32, "dce_length": pl.UInt32, "dce_opnum": pl.UInt32, "dce_activity": pl.String,
        "dce_interface": pl.String, "dce_asks": pl.Boolean,
    }  # fmt: skip

    def carried_by(self, interface: Interface, headers: Headers) -> bool:
        return bool(_alike(headers).any())

    def read(self, capture: Capture, interface: Interface, headers: Headers) -> Sequence[pl.Series]:
        rows: list[dict[str, object]] = [{}] * len(interface.blocks)
        places = np.flatnonzero(_alike(headers))
        for place, block in zip(places.tolist(), interface.blocks[places].tolist(), strict=True):
            rows[place] = read(capture.packet(block))
        return [
            pl.Series(column, [row.get(column) for row in rows], dtype, strict=True)
            for column, dtype in self.columns.items()
        ]


def _alike(headers: Headers) -> NDArray[np.bool_]:
    """Frames whose UDP payload begins as a PDU does: version, type, data representation."""
    octets, heads = headers.octets, headers.heads
    ip = (heads.number(12, 2) == 0x0800) & (heads.number(14, 1) == 0x45)
    udp = (heads.number(23, 1) == _UDP) & (heads.number(20, 2) & 0x1FFF == 0) & octets.has(_PAYLOAD + HEADER)
    version, kind = heads.number(_PAYLOAD, 1) & 0x0F, heads.number(_PAYLOAD + 1, 1)
    integers, others = heads.number(_PAYLOAD + 4, 1), heads.number(_PAYLOAD + 5, 2)
    plain = ((integers == 0x00) | (integers == 0x10)) & (others == 0)
    found: NDArray[np.bool_] = ip & udp & (version == VERSION) & (kind <= max(Type)) & plain
    return found


def read(frame: bytes) -> dict[str, object]:
    """The columns of one frame; none where it is not a PDU. Of a first fragment the body is not all there."""
    head = frame[_PAYLOAD : _PAYLOAD + HEADER]
    little = head[4] == 0x10
    length = int.from_bytes(head[74:76], "little" if little else "big")
    try:
        pdu = parse(head + bytes(length))
    except BadPdu:
        return {}
    return {
        "dce_type": int(pdu.type), "dce_flags": int(pdu.flags), "dce_serial": pdu.serial,
        "dce_sequence": pdu.sequence, "dce_fragment": pdu.fragment, "dce_length": length, "dce_opnum": pdu.opnum,
        "dce_activity": str(pdu.activity), "dce_interface": str(pdu.interface), "dce_asks": pdu.asks,
    }  # fmt: skip


KIND: Reader = _Dce()
