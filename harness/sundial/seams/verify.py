# SPDX-License-Identifier: Apache-2.0
"""`verify.json`: the verdict on a run, by groups of equal calls, and every problem with its frames."""

from __future__ import annotations

from typing import Any, Literal

from sundial.seams.form import Form, Items, Natural


class Leg(Form):
    """Expected frames of one direction of a call. Lengths in bytes; bounds if TCP leaves a choice."""

    message: Natural
    payload: Natural
    packets: Natural
    lengths: Items[Natural]
    offsets: Items[Natural]
    """Lengths of IP fragments, for UDP."""
    records: Items[Natural]
    """Lengths of records, for RPC over TCP."""
    frame_bytes: Natural
    padded_frame_bytes: Natural
    wire_bytes: Natural
    """Bytes on the wire with preamble, padding, FCS and gap."""
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
    """Least and most of any call."""
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
    """The call of a problem."""

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
    """A difference between expectation and observation."""

    rule: str
    """Name of the rule; `sundial explain RULE` prints what it checks, from which source, and usual causes."""
    severity: Literal["critical", "error", "unmet"]
    """critical: the record of the run cannot be trusted; error: a standard or a count is contradicted; unmet: the
    scenario asks for more. Each fails the verification."""
    call: Call | None
    capture: str | None
    frames: Items[Natural]
    """Frame numbers in `capture`."""
    field: str
    expected: Any
    seen: Any
    filter: str
    """Wireshark display filter that shows the frames."""
    elsewhere: dict[str, Items[Natural]] | None = None
    """Frame numbers in other captures."""


class Steps(Form):
    """Counts of a traced run, whose calls are divided into steps (steps.parquet)."""

    calls: Natural
    exact: Natural
    """Calls whose steps have no gaps and sum to the round trip."""
    stamps: Natural
    repeated: Natural
    """Stamps left out, because their instruction faulted and was executed again."""


class Bound(Form):
    """A bound of the scenario (`expect.metrics`), and what it came to."""

    bound: str
    """The bound as written."""
    table: Literal["samples", "observed", "summary", "counters", "exchanges", "figures"]
    limit: str
    """The comparison and the limit, with its unit."""
    seen: float | None
    """In `unit`; null if no row meets the condition, or if none has a value."""
    unit: str
    rows: Natural
    """Rows that meet the condition."""
    met: bool
    words: str
    """What was seen, with its unit."""


class Exchanges(Form):
    """Questions alike that a decoder matched with answers (exchanges.parquet); times in ns, by the client's port."""

    decoder: str
    transport: Literal["tcp", "udp"]
    client: str
    server: str
    port: Natural
    procedure: str
    exchanges: Natural
    answered: Natural
    retransmissions: Natural
    rtt_ns_min: float | None
    rtt_ns_median: float | None
    rtt_ns_max: float | None


class Figure(Form):
    """Numbers that a program wrote on a machine (figures.parquet)."""

    program: str
    machine: str
    figure: str
    """Its name in the scenario."""
    values: Natural
    value_min: float
    value_median: float
    value_max: float


class Check(Form):
    """What the program of `expect.check` said."""

    check: str
    """The program, and the name of a property that it judged."""
    met: bool
    words: str


class Verification(Form):
    """The verdict."""

    version: Literal[1]
    verdict: Literal["pass", "fail", "checked"]
    """`checked`: an interactive session, whose properties that need no scenario are all correct."""
    calls: Natural
    frames: Natural
    packets: Natural
    fragments: Natural
    retransmissions: dict[str, Natural]
    """Retransmissions of calls and replies over UDP, of TCP segments and of MBCF frames."""
    mismatches: Natural
    groups: Items[Group]
    classified: dict[str, Natural]
    """Number of frames by reason."""
    unproven: Items[str]
    """Properties that were not verified, one a line."""
    problems: Items[Problem]
    """The first 1000 of `mismatches`."""
    bounds: Items[Bound] | None = None
    """Left out if the scenario has no bounds."""
    checks: Items[Check] | None = None
    """Left out if the scenario has no check."""
    steps: Steps | None = None
    """Left out if the run has no traces."""
    remarks: Items[str] | None = None
    """Of a capture from elsewhere: what was learned from it, and what in it was not read. What decoders have read."""
    exchanges: Items[Exchanges] | None = None
    """Left out if no decoder found one."""
    figures: Items[Figure] | None = None
    """Left out if no program has any."""

    def document(self) -> dict[str, Any]:
        """The verdict as it is written."""
        return self.model_dump(mode="json", exclude_unset=True)
