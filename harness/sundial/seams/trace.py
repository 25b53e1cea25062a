# SPDX-License-Identifier: Apache-2.0
"""Functions of a machine's trace: `points` for the clock plugin, `nodes/NAME/points.json` for readers of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sundial.seams.form import Form, Items

HEADER_BYTES, STAMP_BYTES = 16, 40
"""Version of `trace.bin`, which harness/clock/README.md describes."""

Hexadecimal = Annotated[str, Field(pattern=r"^[0-9a-f]{1,16}$")]
Role = Literal["call", "transmit", "poll"] | None
"""call: its entry begins a call of a client, its exit ends the call; transmit: it hands a frame to an adapter; poll: a
thread that has entered it waits for stores or messages, until it enters or leaves another function of its program."""


class Point(Form):
    """A function with stamps."""

    name: str
    program: str | None
    """Program of the image that has it; null: the kernel."""
    address: Hexadecimal
    size: Annotated[int, Field(ge=1)]
    """In bytes."""
    stamps: Literal["entry", "exit", "both"]
    role: Role = None


class Points(Form):
    """The functions of one machine; a stamp names one by its index."""

    version: Literal[1]
    points: Items[Point]
