# SPDX-License-Identifier: Apache-2.0
"""A toy is a name, a number, and zeros up to its size; the same comes back."""

from __future__ import annotations

from sundial.expect.call import Call, Shape, udp_leg
from sundial.expect.ip import MAX_UDP_PAYLOAD

NAME = b"TOY1"
HEADER = 8
"""Bytes of the name and the number behind it, in network order."""
LARGEST = MAX_UDP_PAYLOAD


def expect_call(shape: Shape) -> Call:
    """The packets of one toy and of the one that comes back. Raises ValueError for what is not a toy."""
    if shape.transport != "udp" or shape.size < HEADER:
        raise ValueError(f"{shape.size} bytes over {shape.transport}: a toy is a datagram of {HEADER} bytes or more")
    return Call(udp_leg(shape.size, shape.mtu), udp_leg(shape.size, shape.mtu))
