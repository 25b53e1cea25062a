# SPDX-License-Identifier: Apache-2.0
"""Sun RPC in captures: what names a message, read from the bytes (RFC 5531 section 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import ETHERNET, Headers
from sundial.observe.octets import Numbers
from sundial.observe.pcap import Capture, Interface
from sundial.observe.workload import Reader

_UDP, _MARK = 8, 4
_LAST = 1 << 31
_CALL, _REPLY, _VERSION = 0, 1, 2
_HEAD = 12
"""Bytes of xid, type, and the version of a call or the state of a reply."""


class _SunRpc:
    """`rpc_xid`: of a datagram that begins with a call or a reply, and of a segment that does behind a record mark."""

    columns: Mapping[str, type[pl.DataType]] = {"rpc_xid": pl.UInt32}

    def carried_by(self, interface: Interface, headers: Headers) -> bool:
        return bool(headers.fields["source_port"][1].any())

    def read(self, capture: Capture, interface: Interface, headers: Headers) -> Sequence[pl.Series]:
        fields, octets = headers.fields, headers.octets
        behind = ETHERNET + fields["ip_header"][0]
        udp, tcp = fields["udp_length"][1], fields["tcp_length"][1] & (fields["tcp_length"][0] >= _MARK + _HEAD)
        begin = behind + np.where(udp, _UDP, fields["tcp_header"][0] + _MARK)
        which = np.flatnonzero((udp | tcp) & octets.has(begin + _HEAD))
        some, at = octets.take(which), begin[which]
        words = np.ascontiguousarray(some.matrix(at - _MARK, _MARK + _HEAD)).view(">u4").astype(np.int64)
        right = _is_message(words) & (udp[which] | (words[:, 0] & ~_LAST >= _HEAD))
        xids = np.full(len(udp), -1, np.int64)
        xids[which[right]] = words[right, 1]
        return [pl.select(pl.when(pl.lit(pl.Series(xids >= 0))).then(pl.lit(pl.Series(xids)))).to_series()]


def _is_message(words: Numbers) -> NDArray[np.bool_]:
    """Of what may be a record mark, an xid, a type and what follows it."""
    kind, next_word = words[:, 2], words[:, 3]
    found: NDArray[np.bool_] = ((kind == _CALL) & (next_word == _VERSION)) | ((kind == _REPLY) & (next_word <= 1))
    return found


KIND: Reader = _SunRpc()
