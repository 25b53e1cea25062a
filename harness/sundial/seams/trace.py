# SPDX-License-Identifier: Apache-2.0
"""What a machine's trace is of: `points` for the clock plugin, `nodes/NAME/points.json` for readers of `trace.bin`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sundial.seams.form import Form, Items

HEADER_BYTES, STAMP_BYTES = 16, 40
"""Of `trace.bin`, which harness/clock/README.md describes."""

Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]{1,16}$")]
Role = Literal["call", "transmit", "poll"] | None
"""call: entering it begins a call of a client, leaving it ends the call; transmit: it hands a frame to an adapter;
poll: a thread that has entered it looks for what others store or send, until it enters or leaves another function of
its program."""


class Point(Form):
    """A function that is stamped."""

    name: str
    program: str | None
    """Of the image; null: of the kernel."""
    address: Hexadecimal
    size: Annotated[int, Field(ge=1)]
    """In bytes."""
    stamps: Literal["entry", "exit", "both"]
    role: Role = None


class Points(Form):
    """The functions of one machine; a stamp names one by its place."""

    version: Literal[1]
    points: Items[Point]
