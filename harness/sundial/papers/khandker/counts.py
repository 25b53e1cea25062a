# SPDX-License-Identifier: Apache-2.0
"""How often what happens in a call without loss, from its length and the sender's policy. Pure."""

from __future__ import annotations

from functools import cache
from itertools import count

from sundial.workloads.dce.expect import bodies, pdu_packets
from sundial.workloads.dce.expect_window import Policy, Sender

MTU = 1500
ROOM = 4016
"""Data in a full PDU."""

__all__ = ["MTU", "ROOM", "Policy", "bursts", "facks", "packets", "pdus"]


def pdus(size: int) -> int:
    """PDUs of a request of so many bytes."""
    return len(bodies(size))


def packets(size: int) -> int:
    """IP packets of a request."""
    return sum(len(each) for each in pdu_packets(size, MTU))


def bursts(of: int, policy: Policy) -> tuple[int, ...]:
    """PDUs of each burst of a request of `of` PDUs, if facks come when their burst is out."""
    return tuple(burst for burst, _ in _sent(of, policy))


def facks(of: int, policy: Policy) -> int:
    """Facks that the receiver sends for it."""
    return sum(asked for _, asked in _sent(of, policy))


@cache
def _sent(of: int, policy: Policy) -> tuple[tuple[int, int], ...]:
    """Of each burst: PDUs sent, facks asked for."""
    sender, serials = Sender(policy, of), count()
    found: list[tuple[int, int]] = []
    sent = 0
    while sent < of:
        asked: list[tuple[int, int]] = []
        before = sent
        while (following := sender.next()) is not None:
            fragment, asks = following
            serial = next(serials)
            sender.sent(fragment, serial, asks)
            sent += 1
            if asks:
                asked.append((fragment, serial))
        found.append((sent - before, len(asked)))
        for fragment, serial in asked:
            sender.fack(fragment, (), serial)
    return tuple(found)
