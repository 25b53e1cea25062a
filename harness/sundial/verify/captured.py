# SPDX-License-Identifier: Apache-2.0
"""Verification of a capture from elsewhere: by the calls of a kind of workload, or by a decoder."""

from __future__ import annotations

from pathlib import Path

from sundial.errors import BadInput
from sundial.verify.decoders.captures import verify_capture
from sundial.verify.decoders.registry import DECODERS
from sundial.verify.result import Verification
from sundial.verify.sockets import any_capture


def offered() -> list[str]:
    """What a capture may hold, as `protocol` says it."""
    return [*any_capture.offered(), *DECODERS]


def verify_pcap(file: Path, *, protocol: str, mtu: int | None = None, port: int | None = None) -> Verification:
    """Verify a pcap or pcapng file. `port` is the server's; without it the port is looked for. `mtu`: of the wire;
    without it that of each direction is learned from its largest packet; decoders do not ask for it.

    Raises BadInput for a file that cannot be read or holds nothing of `protocol`.
    """
    if protocol not in offered():
        raise BadInput(f"{protocol!r} is unknown", allowed=", ".join(offered()), field="protocol")
    if protocol not in DECODERS:
        return any_capture.verify_pcap(file, protocol=protocol, mtu=mtu, port=port)
    if mtu is not None:
        raise BadInput(f"{protocol} has no expectation of packets", allowed="no --mtu", field="mtu")
    return verify_capture(file, DECODERS[protocol], port)
