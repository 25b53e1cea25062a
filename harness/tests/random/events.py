# SPDX-License-Identifier: Apache-2.0
"""Strategies for events of a timeline: cuts, partitions and other impairments, one after the other on one segment."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.random.fields import seldom
from tests.random.networks import Net, impairments

CHANGING = frozenset(("link", "switch"))


@st.composite
def timelines(draw: st.DrawFn, net: Net, *, may_stay: bool = False) -> list[dict[str, Any]]:
    """Events on a segment that supports them; none where there is none. `may_stay`: the last cut may be for good."""
    able = [name for name, segment in net.segments.items() if segment["kind"] in CHANGING]
    if not able:
        return []
    name = draw(st.sampled_from(able))
    at_us, found = 250_000, []
    for _ in range(draw(st.integers(1, 4))):
        at_us += draw(st.integers(0, 400_000))
        event: dict[str, Any] = {"at": f"{at_us} us", **draw(_change(net, name))}
        if draw(st.integers(0, 3)):
            length_us = draw(st.integers(1, 300_000))
            event["for"] = f"{length_us} us"
            at_us += length_us
        found.append(event)
        if event.keys() & {"cut", "partition"} and "for" not in event:
            at_us += draw(st.integers(1, 300_000))
            found.append({"at": f"{at_us} us", "heal": name})
        at_us += 1
    if may_stay and draw(seldom(4)):
        found.append({"at": f"{at_us} us", "cut": draw(st.sampled_from([name, *net.segments[name]["ports"]]))})
    return found


@st.composite
def _change(draw: st.DrawFn, net: Net, name: str) -> dict[str, Any]:
    segment = net.segments[name]
    ports = list(segment["ports"])
    if segment["kind"] == "link" and draw(st.booleans()):
        event: dict[str, Any] = {"impair": name, **draw(impairments(net))}
        if draw(st.booleans()):
            event["from"] = draw(st.sampled_from(ports))
        if len(event.keys() - {"from"}) == 1:
            event["reset"] = True
        return event
    owners = sorted({port.partition(":")[0] for port in ports})
    if len(owners) > 1 and draw(st.booleans()):
        cut = draw(st.integers(1, len(owners) - 1))
        return {"segment": name, "partition": [owners[:cut], owners[cut:]]}
    return {"cut": draw(st.sampled_from([name, *ports]))}
