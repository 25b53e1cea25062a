# SPDX-License-Identifier: Apache-2.0
"""`verify.json`: the verdict on a run, by groups of calls alike, and every problem with its frames."""

from __future__ import annotations

from typing import Any, Literal

from sundial.seams.form import Form, Items, Natural


class Leg(Form):
    """What one direction of a call must look like. Lengths in bytes; bounds where TCP leaves a choice."""

    message: Natural
    payload: Natural
    packets: Natural
    lengths: Items[Natural]
    offsets: Items[Natural]
    """Of IP fragments, for UDP."""
    records: Items[Natural]
    """Of RPC over TCP."""
    frame_bytes: Natural
    padded_frame_bytes: Natural
    wire_bytes: Natural
    """With preamble, padding, FCS and gap."""
    exact: bool
    fewest: Natural
    most: Natural


class ExpectedLegs(Form):
    """Both directions as expected."""

    request: Leg
    reply: Leg


class ObservedLeg(Form):
    """One direction as observed."""

    packets: Items[Natural | None]
    """The fewest and the most of any call."""
    retransmissions: Natural | None


class ObservedLegs(Form):
    """Both directions as observed."""

    request: ObservedLeg
    reply: ObservedLeg


class Group(Form):
    """Calls alike."""

    client: str
    server: str
    app: str
    transport: str
    procedure: str
    size: Natural
    calls: Natural
    mismatches: Natural | None
    expected: ExpectedLegs
    seen: ObservedLegs


class Call(Form):
    """Which call a problem is about."""

    client: str
    server: str
    app: str
    transport: str
    procedure: str
    size: Natural
    series: Natural
    thread: Natural
    batch: Natural
    call: Natural
    xid: Natural | None


class Problem(Form):
    """A difference between what was expected and what was observed."""

    call: Call | None
    capture: str | None
    frames: Items[Natural]
    """Their numbers in `capture`."""
    field: str
    expected: Any
    seen: Any
    filter: str
    """A Wireshark display filter that shows the frames."""
    elsewhere: dict[str, Items[Natural]] | None = None
    """Frames in other captures."""


class Steps(Form):
    """Calls of a traced run, divided into steps (steps.parquet)."""

    calls: Natural
    exact: Natural
    """Calls whose steps join without gap and sum to the round trip."""
    stamps: Natural
    repeated: Natural
    """Stamps left out, since their instruction faulted and was executed again."""


class Verification(Form):
    """The verdict."""

    version: Literal[1]
    verdict: Literal["pass", "fail", "checked"]
    """`checked`: a topology that was only brought up, of which all is right that can be checked without a scenario."""
    calls: Natural
    frames: Natural
    packets: Natural
    fragments: Natural
    retransmissions: dict[str, Natural]
    """Of calls and replies over UDP, of TCP segments, of MBCF frames."""
    mismatches: Natural
    groups: Items[Group]
    classified: dict[str, Natural]
    """Every frame by the reason for which it was there."""
    unproven: Items[str]
    """What the verdict does not rest on, a line each."""
    problems: Items[Problem]
    """The first 1000 of `mismatches`."""
    steps: Steps | None = None
    """Left out where nothing was traced."""

    def document(self) -> dict[str, Any]:
        """The verdict as it is written."""
        return self.model_dump(mode="json", exclude_unset=True)
