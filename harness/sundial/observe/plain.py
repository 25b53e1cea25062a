# SPDX-License-Identifier: Apache-2.0
"""What is shown of plain frames, read from their bytes, and which frames are plain.

A frame is plain if all its headers are there, and what they say of one another agrees: no two readers differ about it
(`tests/observe/test_witness.py` compares this one with tshark). Of all others tshark is asked (`frames.py`): broken
headers, options of IP, unknown options of TCP, VLANs, IPv6, ICMP messages that quote a packet, other protocols.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import ARP, ETHERNET, TCP, UDP, Headers
from sundial.observe.octets import Numbers, Octets
from sundial.observe.tcp_options import MOST, read_options

HEAD_BYTES = 36
"""Bytes of a UDP payload that `udp_head` has; so many tshark 4.0 shows in its packet list."""
PRIVATE_LINKS = range(147, 163)
"""Link types of captures for private use (LINKTYPE_USER0 to 15): nothing of their frames is shown."""
_EXPERIMENTAL = (0x88B5, 0x88B6)
"""EtherTypes for local experiments (IEEE 802, section 9.2.3): nothing behind them is dissected."""
_ICMP, _ECHOES, _ICMP_HEADER = 1, (0, 8), 8
_IP, _UDP, _TCP = 20, 8, 20
_AT = ETHERNET + _IP
_DIGITS = np.array([int.from_bytes(f"{octet:02x}".encode(), "little") for octet in range(256)], "<u2")

_Mask = NDArray[np.bool_]


def shown(headers: Headers, original: Numbers) -> tuple[pl.DataFrame, _Mask]:
    """ethertype, source, target, udp_head, tcp_mss, tcp_timestamp and icmp_type of frames on Ethernet, null where a
    frame has none; and which frames are plain: of others the columns say nothing.

    `original`: bytes of the frames on the wire.
    """
    octets, heads, fields = headers.octets, headers.heads, headers.fields
    is_framed, more = fields["eth_type"][1], np.asarray(fields["more"][0], np.bool_)
    values = {name: np.asarray(values, np.int64) for name, (values, _) in fields.items() if name != "more"}
    kind = values["eth_type"]
    inside = values["ip_length"] - _IP
    begins = values["fragment_offset"] == 0
    ip = fields["ip_header"][1]
    whole = ip & (values["ip_header"] == _IP) & (inside >= 0) & (_AT + inside <= original)
    udp = fields["udp_length"][1] & whole & _lengths_agree(values["udp_length"], inside, more)
    tcp = fields["tcp_seq"][1] & whole & ~more & (values["tcp_length"] >= 0)
    echo = whole & begins & ~more & (values["protocol"] == _ICMP) & (inside >= _ICMP_HEADER)
    echo &= octets.has(_AT + _ICMP_HEADER) & np.isin(heads.number(_AT, 1), _ECHOES)
    which = np.flatnonzero(tcp)
    mss, stamp, usual = _options(heads.take(which), values["tcp_header"][which])
    tcp[which] = usual
    tails = whole & ~begins & np.isin(values["protocol"], [TCP, UDP, _ICMP])
    plain = udp | tcp | echo | tails | (is_framed & np.isin(kind, [ARP, *_EXPERIMENTAL]))
    recorded = np.minimum(np.minimum(inside, values["udp_length"]), octets.length - _AT) - _UDP
    length = np.where(udp, np.minimum(recorded, HEAD_BYTES), 0)
    table = pl.DataFrame(
        {
            "ethertype": _few(kind, "0x{:04x}".format),
            "source": _few(np.where(ip, values["source"], 0), _address),
            "target": _few(np.where(ip, values["target"], 0), _address),
            "udp_head": _hexadecimal(heads.matrix(_AT + _UDP, HEAD_BYTES), length),
            "icmp_type": heads.number(_AT, 1),
            "framed": is_framed,
            "ip": ip,
            "udp": udp & (length > 0),
            "echo": echo,
            "tcp_mss": _scattered(mss, which, len(kind)),
            "tcp_timestamp": _scattered(stamp, which, len(kind)),
        }
    )
    return table.select(
        pl.when("framed").then("ethertype").alias("ethertype"),
        pl.when("ip").then(pl.col("source", "target")),
        pl.when("udp").then("udp_head").alias("udp_head"),
        pl.when("echo").then("icmp_type").alias("icmp_type"),
        pl.when(pl.col("tcp_mss", "tcp_timestamp") >= 0).then(pl.col("tcp_mss", "tcp_timestamp")),
    ), plain


def _lengths_agree(length: Numbers, inside: Numbers, more: _Mask) -> _Mask:
    """Whether a datagram is as long as its packet; one in fragments is longer than the first of them."""
    agree: _Mask = np.where(more, (inside >= _UDP) & (length > inside), (length >= _UDP) & (length == inside))
    return agree


def _options(segments: Octets, header: Numbers) -> tuple[Numbers, Numbers, _Mask]:
    """MSS and time stamp of each segment, -1 without one; whether its options are all there, and usual ones."""
    length = header - _TCP
    malformed, found = read_options(segments.matrix(_AT + _TCP, MOST), length)
    return found["mss"], found["stamp"], ~malformed & segments.has(_AT + header)


def _scattered(values: Numbers, which: Numbers, count: int) -> Numbers:
    """Values of some of so many frames, -1 of the others."""
    found = np.full(count, -1, np.int64)
    found[which] = values
    return found


def _few(numbers: Numbers, word: Callable[[int], str]) -> pl.Series:
    """Numbers of which there are few different ones as words."""
    column = pl.Series(numbers, dtype=pl.Int64)
    known = column.unique()
    return column.replace_strict(known, pl.Series([word(each) for each in known.to_list()], dtype=pl.String))


def _address(number: int) -> str:
    return ".".join(map(str, number.to_bytes(4)))


def _hexadecimal(octets: NDArray[np.uint8], length: Numbers) -> pl.Series:
    """So many bytes of each row in hexadecimal digits."""
    digits = _DIGITS[octets]
    # numpy's texts end where only zeros follow.
    digits[np.arange(octets.shape[1]) >= length[:, None]] = 0
    return pl.Series(digits.view(f"S{2 * octets.shape[1]}").reshape(-1)).cast(pl.String)
