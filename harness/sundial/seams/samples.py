# SPDX-License-Identifier: Apache-2.0
"""`samples.jsonl`: records of a guest, one JSON value a line; rows of calls follow the line of their batch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from sundial.seams.form import Form, Items, Natural, OpenForm

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
"""One call: its number in the batch, clock readings before and after it, 1 for a reply with the expected payload,
number of retransmissions, transaction number, and error."""


class Hello(Form):
    """The first line: the machine, and the unit of its clock readings."""

    type: Literal["hello"]
    version: Literal[1]
    machine: str
    kernel: str
    clock: Literal["tsc", "monotonic"]
    clock_hz: Natural


class Batch(OpenForm):
    """Calls that differ only in their number. Sockets name the server by address and ports, memory-based communication
    by node and tasks; applications add further fields (`depth`, `ack`, `semantics` ...).
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
    """Address of the server; over memory-based communication the number of its node."""
    warmup: Natural
    """Number of calls at the start that are not part of the measurement."""
    server_port: Natural | None = None
    client_port: Natural | None = None
    tcp_retransmits: Natural | None = None
    """Segments that the client's TCP retransmitted during the batch."""
    server_node: Natural | None = None
    server_task: Natural | None = None
    client_task: Natural | None = None
    columns: Annotated[Columns, Field(strict=False)]
    """Names of the values in each row."""


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
    """Number of requests, including retransmissions."""
    port: Natural
    error: str | None = None
    """Reason why there is no port."""


class Iperf3(Form):
    """A test of iperf3."""

    type: Literal["iperf3"]
    step: Natural
    app: str
    start: Natural
    end: Natural
    status: int
    tries: Natural
    """Number of connection attempts: a refused one is repeated, because the server may still be starting."""
    result: dict[str, Any]
    """Output of `iperf3 -J`."""


class Counters(OpenForm):
    """Counters of a server; each application has different ones."""

    type: Literal["counters"]
    app: str


class Output(Form):
    """What a program wrote, in the order in which it was read. Bytes beyond `keep` of the job have no line."""

    type: Literal["output"]
    step: Natural
    app: str
    name: str
    """The program."""
    stream: Literal["stdout", "stderr"]
    at: Natural
    """Clock reading after it was read."""
    data: str
    """Base64 of up to 3072 bytes."""


class Written(Form):
    """All that a program wrote to one output."""

    bytes: Natural
    kept: Natural
    """Of them, those in `output` lines."""
    fnv1a: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    """FNV-1a (64 bits) of those that are kept."""


class Life(Form):
    """One life of a program that an event started again, as in `program`."""

    start: Natural
    ready: Natural | None
    end: Natural
    status: Annotated[int, Field(ge=0, le=255)] | None
    signal: Annotated[int, Field(ge=1, le=64)] | None


class Program(Form):
    """A program has ended. All lines of it are before."""

    type: Literal["program"]
    step: Natural
    app: str
    name: str
    role: Literal["service", "job"]
    start: Natural
    ready: Natural | None
    """Clock reading when a service was ready."""
    end: Natural
    status: Annotated[int, Field(ge=0, le=255)] | None
    """Exit status; null: a signal ended it."""
    signal: Annotated[int, Field(ge=1, le=64)] | None
    timed_out: bool
    """True if it ran longer than its timeout, and was ended."""
    stopped: bool
    """True if it was ended because all jobs had ended."""
    stdout: Written
    stderr: Written
    background: Literal[True] | None = None
    """A service ended with status 0 and left processes behind; left out if not."""
    before: Items[Life] | None = None
    """Lives before the last one, of which `start` to `signal` are; left out without any."""


class Event(Form):
    """A machine has carried out an event of the timeline."""

    type: Literal["event"]
    step: Natural
    app: str
    number: Natural
    """Place in the timeline."""
    name: str
    """The program."""
    verb: Literal["pause", "continue", "kill", "restart", "start"]
    """`continue` and `start` are also the end of a `pause` and a `kill` for a time."""
    at: Natural
    """Clock reading when it had been done."""
    due: int
    """When it was due, in ns since zero of the run; under the real clock, since the programs could start."""
    late: int
    """From then to `at`, in ns."""
    state: Literal["waiting", "running", "paused", "ended"]
    """The state of the program before it."""
    met: bool
    """False: the program was in no state for it, and nothing was done."""


class Clock(Form):
    """A machine has changed its clock, as the timeline says, or all its programs have ended after that."""

    type: Literal["clock"]
    step: Natural
    app: str
    verb: Literal["step_clock", "drift_clock", "end"]
    number: Natural | None = None
    """Place in the timeline; absent: the end of all programs."""
    at: Natural
    """Clock reading of the reading afterwards. The timeline does not change the clock of `at`."""
    due: int | None = None
    """When it was due, in ns since zero of the run; under the real clock, since the programs could start."""
    late: int | None = None
    """From then to `at`, in ns."""
    before: int
    """What CLOCK_REALTIME was ahead of the clock of readings before it, in ns."""
    after: int
    """What it was ahead afterwards."""
    within: Natural
    """How far both together may be off: the time that reading them took, in ns."""
    took: Natural
    """From the reading before to that afterwards, in ns."""


class Amount(Form):
    """A machine has filled a file system or taken memory, as the timeline says, or has given it back."""

    type: Literal["amount"]
    step: Natural
    app: str
    number: Natural
    """Place in the timeline."""
    verb: Literal["take", "release"]
    at: Natural
    """Clock reading afterwards."""
    due: int
    """When it was due, in ns since zero of the run; under the real clock, since the programs could start."""
    late: int
    """From then to its begin, in ns."""
    before: Natural
    """Bytes that were free: of the file system, or MemAvailable of /proc/meminfo."""
    after: Natural
    """Bytes that are free afterwards."""
    held: Natural
    """Bytes that the kernel counted as taken before: blocks of the file, or VmLck of the process."""
    holds: Natural
    """Bytes that it counts afterwards."""
    sleeps: Natural
    """How often the process waited meanwhile, so that others ran."""


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
    """All steps have ended: 0 success, 1 a step or a service failed, 2 the job is invalid."""

    type: Literal["done"]
    status: Annotated[int, Field(ge=0, le=2)]


class Alive(Form):
    """Written every 5 s under the real clock, even between two rows of a batch."""

    type: Literal["alive"]


Record = Annotated[
    Hello
    | Batch
    | Binding
    | Iperf3
    | Counters
    | Output
    | Program
    | Event
    | Clock
    | Amount
    | Error
    | Step
    | Done
    | Alive,
    Field(discriminator="type"),
]
Line: TypeAdapter[Any] = TypeAdapter(Annotated[Row, Field(strict=False)] | Record)
"""Any line. `Line.validate_json(text)` raises ValidationError."""
