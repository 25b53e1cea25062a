# SPDX-License-Identifier: Apache-2.0
"""Control: frames from a guest to the harness, and events and commands of sundial-fabric."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from sundial.seams.form import Form, Instant, Items

ETHERTYPE = 0x88B5
"""Frames of this type whose payload begins with `sundial-` are neither forwarded nor captured."""
READY = b"sundial-ready"
"""The guest has booted and waits for its job."""
_DONE = b"sundial-done"


def done_payload(status: int) -> bytes:
    """The frame that a guest sends when all its steps have ended; `status` 0: success."""
    return _DONE + bytes([status])


def done_status(payload: bytes) -> int | None:
    """The status in a done frame's payload, which Ethernet may have padded; None: it is another frame."""
    if not payload.startswith(_DONE) or len(payload) == len(_DONE):
        return None
    return payload[len(_DONE)]


class Listening(Form):
    """The fabric serves; machines may be started."""

    event: Literal["listening"]


class MachineDone(Form):
    """A machine has reported the end of its job."""

    event: Literal["done"]
    machine: str
    status: Annotated[int, Field(ge=0, le=255)]
    at_ns: Instant


class Stands(Form):
    """All machines stand at an instant, as `until` had it; the captures have all that the fabric has worked on."""

    event: Literal["stands"]
    at_ns: Instant


class Finished(Form):
    """The run is over and everything is written."""

    event: Literal["finished"]
    virtual_ns: Instant
    late: Items[str] = ()
    """Machines that were not done at the deadline; left out where there are none."""


class Command(Form):
    """A line on the control socket: return the counters, or end the run now."""

    command: Literal["counters", "stop"]


class ChangeCommand(Form):
    """A line on the control socket: a segment changes. The answer has its instant, `at_ns`, or `error` and `field`."""

    command: Literal["change"]
    segment: str
    change: dict[str, Any]
    """As an entry of the segment's `timeline` in fabric.json; its `at_ns` does not count."""


class UntilCommand(Form):
    """A line on the control socket: all machines stand at an instant. Before the run begins, or while they stand."""

    command: Literal["until"]
    at_ns: Instant | None = None
    """None: they go on to the end."""


Event: TypeAdapter[Any] = TypeAdapter(
    Annotated[Listening | MachineDone | Stands | Finished, Field(discriminator="event")]
)
"""A line on the fabric's standard output."""
Control: TypeAdapter[Any] = TypeAdapter(
    Annotated[Listening | MachineDone | Stands | Finished, Field(discriminator="event")]
    | Annotated[Command | ChangeCommand | UntilCommand, Field(discriminator="command")]
)
"""Any line between the harness and the fabric."""
