# SPDX-License-Identifier: Apache-2.0
"""Packets of calls over sockets, for the kinds of workloads that make such calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from sundial.expect import Call, Leg, Shape
from sundial.report.workload import IP_FRAGMENTS, TCP_RETRANSMISSIONS, Filter, Setting


def socket_legs(expect: Callable[[Shape], Call], setting: Setting, size: int) -> tuple[Leg, Leg] | None:
    """Request and reply; None where the arithmetic does not know this traffic or it cannot be sent."""
    _, transport, procedure = setting.curve
    try:
        out, back = (expect(Shape(transport, procedure, size, mtu)) for mtu in (setting.mtu, setting.reply_mtu))
    except ValueError:
        return None
    return None if out.fails else (out.request, back.reply)


def socket_filters(transports: Collection[str]) -> Iterator[Filter]:
    """What becomes of messages that are long, and of segments that are lost."""
    if "udp" in transports:
        yield IP_FRAGMENTS
    if "tcp" in transports:
        yield TCP_RETRANSMISSIONS
