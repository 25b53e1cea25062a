# SPDX-License-Identifier: Apache-2.0
"""A machine of role bridge, whose kernel joins its interfaces and impairs frames with tc-netem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sundial.model.invalid import Invalid, Path
from sundial.model.segment import SegmentKind

if TYPE_CHECKING:
    from sundial.model.topology import Machine

_NANOSECONDS = re.compile(r"[0-9.]+ns(ecs?)?", re.IGNORECASE)
"""iproute2 6.1 prints 'Illegal "latency"'."""


class NetemKind(SegmentKind):
    """Bridges, and the `netem` of their interfaces."""

    def check_machine(self, machine: Machine, path: Path) -> Iterator[Invalid]:
        bridge = machine.role == "bridge"
        if bridge and len(machine.interfaces) < 2:
            yield Invalid((*path, "interfaces"), "a bridge has two interfaces or more")
        for device, interface in machine.interfaces.items():
            at: Path = (*path, "interfaces", device)
            if bridge and interface.address is not None:
                yield Invalid((*at, "address"), "an interface of a bridge cannot have an address", "leave it out")
            if not bridge and interface.netem is not None:
                yield Invalid((*at, "netem"), "only a bridge runs tc-netem", "role: bridge")
            for word in (interface.netem or "").split():
                if _NANOSECONDS.fullmatch(word):
                    yield Invalid((*at, "netem"), f"{word!r} has a unit that tc refuses", "times in s, ms or us")


KIND: SegmentKind = NetemKind()
