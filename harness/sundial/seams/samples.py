# SPDX-License-Identifier: Apache-2.0
"""`samples.jsonl`: what a guest records, one JSON value a line; rows of calls follow the batch they belong to."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from sundial.seams.form import Form, Natural, OpenForm

Bit = Annotated[int, Field(ge=0, le=1, strict=True)]
Columns = tuple[
    Literal["call"],
    Literal["start"],
    Literal["end"],
    Literal["ok"],
    Literal["retransmits"],
    Literal["xid"],
    Literal["error"],
]
Row = tuple[Natural, Natural, Natural, Bit, Natural, Natural | None, str | None]
"""One call: its number in the batch, clock readings before and after it, whether its reply came with the expected
payload, how often the request was sent again, its transaction number, and why it failed."""


class Hello(Form):
    """The first line: which machine this is and what its clock readings mean."""

    type: Literal["hello"]
    version: Literal[1]
    machine: str
    kernel: str
    clock: Literal["tsc", "monotonic"]
    clock_hz: Natural


class Batch(OpenForm):
    """Calls that differ in nothing but their number. Sockets name the server by address and ports, memory-based
    communication by node and tasks; applications add what else distinguishes them (`depth`, `ack`, `semantics` ...).
    """

    type: Literal["batch"]
    step: Natural
    app: str
    series: Natural
    transport: str
    procedure: str
    size: Natural
    """Payload bytes."""
    thread: Natural
    server: str | Natural
    """An address; over memory-based communication the number of a node."""
    warmup: Natural
    """The first so many calls are not part of the measurement."""
    server_port: Natural | None = None
    client_port: Natural | None = None
    tcp_retransmits: Natural | None = None
    """Segments that the client's TCP sent again during the batch."""
    server_node: Natural | None = None
    server_task: Natural | None = None
    client_task: Natural | None = None
    columns: Annotated[Columns, Field(strict=False)]
    """Names of what each row holds."""


class Binding(Form):
    """A client asked the server's binder for a port."""

    type: Literal["binding"]
    step: Natural
    app: str
    transport: str
    start: Natural
    end: Natural
    ok: bool
    attempts: Natural
    sent: Natural
    """Requests, those that were sent again included."""
    port: Natural
    error: str | None = None
    """Why there is none."""


class Iperf3(Form):
    """A test of iperf3."""

    type: Literal["iperf3"]
    step: Natural
    app: str
    start: Natural
    end: Natural
    status: int
    tries: Natural
    """A refused connection is tried again: the server may still be starting."""
    result: dict[str, Any]
    """What `iperf3 -J` printed."""


class Counters(OpenForm):
    """What a server counted, each application its own."""

    type: Literal["counters"]
    app: str


class Error(Form):
    """An application, the runner or the kernel cannot go on."""

    type: Literal["error"]
    step: Natural | None = None
    app: str
    message: str


class Step(Form):
    """A step has ended; 128 + N: killed by signal N."""

    type: Literal["step"]
    step: Natural
    app: str
    status: int


class Done(Form):
    """All steps have ended: 0 all well, 1 a step or a service failed, 2 the job is not valid."""

    type: Literal["done"]
    status: Annotated[int, Field(ge=0, le=2)]


class Alive(Form):
    """Every 5 s under the real clock, also between two rows of a batch."""

    type: Literal["alive"]


Record = Annotated[
    Hello | Batch | Binding | Iperf3 | Counters | Error | Step | Done | Alive, Field(discriminator="type")
]
Line: TypeAdapter[Any] = TypeAdapter(Annotated[Row, Field(strict=False)] | Record)
"""Any line. `Line.validate_json(text)` raises ValidationError."""
