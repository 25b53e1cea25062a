# SPDX-License-Identifier: Apache-2.0
"""`sundial compare --json`: what differs between runs, in inputs, captures and figures."""

from __future__ import annotations

from typing import Any, Literal

from sundial.seams.form import Form, Items, Natural


class ComparedRun(Form):
    """One of the runs; the first is the one that the others are compared with."""

    label: str
    """A, B, C, ..."""
    run: str
    """Name as a command takes it."""
    status: str | None
    verdict: str | None
    """Of verify.json; null if the run was not verified."""
    clock: str | None
    seed: int | None


class Input(Form):
    """A field of run.json that is not the same in all runs."""

    key: str
    """Path in run.json, with dots."""
    values: Items[Any]
    """By run; null for a run without it."""
    wire: bool
    """Whether it may change what is captured."""


class ComparedFrame(Form):
    """A frame of one run."""

    number: Natural
    port: str
    t_ns: int
    """On the run's time axis."""
    value: str | None
    """Value of the field that differs, as text."""
    open: str
    """Command that shows it."""


class Difference(Form):
    """The first difference between two captures."""

    field: str
    """Wireshark's name of the field, or `octet N`, `time`, `port`, `comment`; `frame` if only one run has such a frame;
    `ports` if the captures have other ports; `file` if one is not readable."""
    first: ComparedFrame | None
    """Of the first run; null if it has no such frame."""
    other: ComparedFrame | None
    words: str
    """The difference in words."""


class CapturePair(Form):
    """A capture of the first run and of another one."""

    capture: str
    label: str
    """The other run."""
    equal: bool
    """To the byte."""
    frames: Items[Natural | None]
    """Frames in the first run and in the other one; null if they were not counted, as in equal captures."""
    difference: Difference | None
    """Null if they are equal; under the real clock also if ports and octets of all frames are equal."""


class Interval(Form):
    """95 % confidence intervals under the real clock; each is a pair of bounds in us."""

    method: Literal["paired", "unpaired"]
    """paired: between the same calls of both runs; unpaired: between the calls of each run."""
    p50_us: Items[float]
    """Of the difference of medians, or for paired calls of the median of differences."""
    p99_us: Items[float]
    """Of the difference of 99th percentiles, always unpaired."""


class Figures(Form):
    """Measured calls of one group in one run. Times are of calls that succeeded; null if none did."""

    calls: Natural
    errors: Natural
    retransmissions: Natural
    p50_us: float | None
    p99_us: float | None
    p50_ratio: float | None
    """To the first run; null if that has none."""
    p99_ratio: float | None
    interval: Interval | None
    """Only under the real clock."""


class ComparedGroup(Form):
    """Calls with equal values in the columns of `by`."""

    key: dict[str, Any]
    runs: Items[Figures | None]
    """By run; null for a run without such calls."""


class Comparison(Form):
    """What differs between runs."""

    version: Literal[1]
    runs: Items[ComparedRun]
    inputs: Items[Input]
    """Those that differ."""
    captures: Items[CapturePair]
    files: dict[str, Items[str]]
    """Other files of the run whose digests differ from the first run's, by label."""
    by: Items[str]
    groups: Items[ComparedGroup]
    method: str | None
    """How intervals were computed; null without any."""
    alarms: Items[str]
    """Runs with equal inputs under the virtual clock whose captures differ."""
    exceeded: Items[str]
    """Groups that are worse than `--fail-above` allows."""
    remarks: Items[str]
    """What could not be compared."""

    def document(self) -> dict[str, Any]:
        """As it is printed."""
        return self.model_dump(mode="json")
