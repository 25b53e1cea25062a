# SPDX-License-Identifier: Apache-2.0
"""Virtual channels: where a PDU on one goes, and on which channel it arrives there.

At a port p, of P: data direct to port q is 64 + q, a permanent channel to it 100 + q; at q they are 64 + p and 100 + p.
LAN emulation's services are behind a further port of the switch: configuration direct 17 and control direct 33 go there
and come from there, multicast send 35 goes there; control distribute 34 and multicast forward 36 come to every port.
"""

from __future__ import annotations

import numpy as np

from sundial.expect.atm import LANE
from sundial.segments.atm.model import Atm
from sundial.verify.wire import Mask, Numbers

CONFIGURATION, CONTROL, DISTRIBUTE, MULTICAST_SEND, MULTICAST = 17, 33, 34, 35, 36
DATA_DIRECT, PERMANENT = 64, 100
TO_SERVICES = (CONFIGURATION, CONTROL, MULTICAST_SEND)
FROM_SERVICES = (CONFIGURATION, CONTROL, DISTRIBUTE, MULTICAST)
TO_EVERY_PORT = (DISTRIBUTE, MULTICAST)

NOWHERE = -1


def base_of(segment: Atm) -> int:
    """Where a segment's channels from port to port begin."""
    return DATA_DIRECT if segment.encapsulation == LANE else PERMANENT


def services_port(segment: Atm) -> int:
    """The number of the services' port."""
    return len(segment.ports)


def destinations(segment: Atm, port: Numbers, vci: Numbers) -> Numbers:
    """The port at which a PDU that `port` sends on `vci` arrives; NOWHERE: there is no such channel."""
    to = vci - base_of(segment)
    right = (to >= 0) & (to < len(segment.ports)) & (to != port)
    found = np.where(right, to, NOWHERE)
    if segment.encapsulation == LANE:
        found = np.where(np.isin(vci, TO_SERVICES), services_port(segment), found)
    return np.asarray(found)


def arriving_vci(segment: Atm, port: Numbers, vci: Numbers) -> Numbers:
    """The channel on which that PDU arrives."""
    return np.where(np.isin(vci, TO_SERVICES), vci, base_of(segment) + port)


def is_data(vci: Numbers) -> Mask:
    """Channels that carry no control frames but for flushes and READY: see `verify_lane`."""
    return np.asarray((vci >= DATA_DIRECT) | (vci == MULTICAST_SEND) | (vci == MULTICAST))
