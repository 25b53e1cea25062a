# SPDX-License-Identifier: Apache-2.0
"""Whether the tshark of this host is understood: two frames whose fields are known."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from sundial.observe.asked import asked
from sundial.observe.pcap import open_capture

_ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
_PAYLOAD = b"SDL1" + bytes(range(12))
_UDP = _ETHERNET + bytes.fromhex("4500002c 12342000 40110000 0a000001 0a000002 c0011f40 00180000") + _PAYLOAD
"""The first fragment of a UDP datagram: RFC 791 and 768."""
_TCP = _ETHERNET + bytes.fromhex(
    "45000038 00074000 40060000 0a000001 0a000002 c0020801 00000064 00000000 9002ffff 00000000"
    " 020405b4 0101080a 00010203 00000000"
)
"""A segment that opens a connection, with its most and its time stamp: RFC 9293 and 7323."""
_KNOWN: tuple[dict[str, Any], ...] = (
    {
        "ethertype": "0x0800", "source": "10.0.0.1", "target": "10.0.0.2", "protocol": 17, "ip_id": 0x1234,
        "more": True, "ip_length": 44, "source_port": 0xC001, "target_port": 8000, "udp_length": 24,
        "udp_head": _PAYLOAD.hex(),
    },
    {
        "protocol": 6, "ip_id": 7, "more": False, "source_port": 0xC002, "target_port": 2049, "tcp_seq": 100,
        "tcp_length": 0, "tcp_flags": 2, "tcp_mss": 1460, "tcp_timestamp": 0x10203,
    },
)  # fmt: skip


def misread(folder: Path) -> list[str]:
    """Columns that have another value than the frames; `folder` is for the capture. Raises BadInput, HostLacks."""
    path = folder / "known.pcap"
    records = [struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in (_UDP, _TCP)]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    capture = open_capture(path)
    try:
        rows = asked(capture, capture.interfaces).rows(named=True)
    finally:
        capture.close()
    return [
        name for row, known in zip(rows, _KNOWN, strict=True) for name, value in known.items() if row[name] != value
    ]
