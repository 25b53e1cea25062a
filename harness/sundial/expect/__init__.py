# SPDX-License-Identifier: Apache-2.0
"""Protocol arithmetic: what each message must look like on the wire, from the RFCs. Pure, standard library only."""

from sundial.expect.call import Call, Connection, Leg, Shape, Transport, tcp_leg, udp_leg, unsent_leg
from sundial.expect.ip import Packet

__all__ = [
    "Call",
    "Connection",
    "Leg",
    "Packet",
    "Shape",
    "Transport",
    "tcp_leg",
    "udp_leg",
    "unsent_leg",
]
