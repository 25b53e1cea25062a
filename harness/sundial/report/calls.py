# SPDX-License-Identifier: Apache-2.0
"""Packets of calls over sockets, for the kinds of workloads that make such calls."""

from __future__ import annotations

from typing import get_args

from sundial.expect import Leg, Shape, Transport, expect_call
from sundial.expect.calls import Procedure, Protocol
from sundial.report.workload import Setting


def socket_legs(protocol: Protocol, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
    """Request and reply; None where the arithmetic does not know this traffic or it cannot be sent."""
    _, transport, procedure = setting.curve
    if transport not in get_args(Transport) or procedure not in get_args(Procedure):
        return None
    calls = []
    for mtu in (setting.mtu, setting.reply_mtu):
        shape = Shape(protocol, transport, procedure, size, mtu, setting.options)  # type: ignore[arg-type]
        try:
            calls.append(expect_call(shape))
        except ValueError:
            return None
    if calls[0].fails:
        return None
    return calls[0].request, calls[1].reply
