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
_NUMBER = re.compile(r"-?[0-9.]+[a-z%]*")
_ABOVE_0 = re.compile(r"[0-9.]*[1-9]")
_OPTIONS = (
    "limit", "delay", "latency", "distribution", "loss", "drop", "duplicate", "corrupt", "reorder", "gap", "rate",
    "ecn", "slot",
)  # fmt: skip
_WITHIN = ("random", "state", "gemodel", "uniform", "normal", "pareto", "paretonormal", "custom", "packets", "bytes")
"""Words of tc-netem(8), and those behind some of them."""


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
            yield from _refused((interface.netem or "").lower().split(), (*at, "netem"))


def _refused(words: list[str], path: Path) -> Iterator[Invalid]:
    """What tc (iproute2 6.1, q_netem.c) refuses of words that may be its."""
    for place, word in enumerate(words):
        if word not in _OPTIONS and (place == 0 or (word not in _WITHIN and not _NUMBER.fullmatch(word))):
            yield Invalid(path, f"{word!r} is not an option of tc-netem", ", ".join(_OPTIONS))
            return
    given = {option: words[place + 1 :] for place, option in enumerate(words) if option in _OPTIONS}
    delay = given.get("delay") or given.get("latency") or []
    late, apart, reorders = _above_0(delay, 0), _above_0(delay, 1), _above_0(given.get("reorder", []), 0)
    if reorders and not late:
        yield Invalid(path, "reorder has no effect without delay", "add delay TIME")
    if "gap" in given and not reorders:
        yield Invalid(path, "gap has no effect without reorder", "add reorder PERCENT")
    if "distribution" in given and "slot" not in given and not (late and apart):
        yield Invalid(path, "distribution has no effect without delay and jitter", "add delay TIME JITTER")
    if "ecn" in given and not {"loss", "drop"} & given.keys():
        yield Invalid(path, "ecn has no effect without loss", "add loss PERCENT")


def _above_0(words: list[str], place: int) -> bool:
    return place < len(words) and _ABOVE_0.match(words[place]) is not None


KIND: SegmentKind = NetemKind()
