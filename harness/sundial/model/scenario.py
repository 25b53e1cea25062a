# SPDX-License-Identifier: Apache-2.0
"""A scenario as written: which workloads run between whom, how often, and what must be true of the capture."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.errors import BadInput
from sundial.model.fields import NAMED, PROSE, Flag, In, Marker, Strict, Whole, written
from sundial.model.sizes import SizeItem, Sizes
from sundial.units import RATE, SIZE, TIME, Quantity

CALLS_MOST = 1_000_000
SEED_MOST = 2**63 - 1

MILLISECONDS = Quantity(
    "a time in whole ms", {"ms": 1, "s": 1000, "min": 60_000}, least=1, most=3_600_000, example="500 ms"
)
_CALLS = Whole(1, CALLS_MOST)

_Name = Annotated[str, NAMED]
_Time = Annotated[int, In(TIME.between("1 ms", "24 h", example="10 min"))]
_Millis = Annotated[int, In(MILLISECONDS)]
_Buffer = Annotated[int, In(SIZE.between("100", "16 MiB", example="4000"))]
_SizesField = Annotated[tuple[SizeItem, ...], Sizes()]
_Flag = Annotated[bool, Flag()]
_Warmup = Annotated[int, Whole(0, 10_000)]
_Series = Annotated[int, Whole(1, 1000)]

Order = Literal["ascending", "seeded"]
Semantics = Literal["at_least_once", "at_most_once", "exactly_once"]
MBCF_TRANSPORTS = ("mbcf1", "mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b")
"""Sun RPC over memory-based communication, by the type of server (kamesawa98 section 4.1)."""
DEPTH_MOST = 32
EVERYONE = "*"


class Calls(Marker):
    """Calls for each size: one number, or a mapping from the size at which a number begins to hold.

    The value is a tuple of (size, calls), ascending, beginning at 0.
    """

    ALLOWED = f"{_CALLS.allowed}, or a mapping such as {{0: 3000, 1024: 1000}}: calls from that size upward"

    def parse(self, value: object) -> tuple[tuple[int, int], ...]:
        if isinstance(value, int) and not isinstance(value, bool):
            return ((0, _CALLS.parse(value)),)
        if not isinstance(value, dict) or 0 not in value:
            raise BadInput(f"{value!r} is no number of calls", allowed=self.ALLOWED)
        steps = []
        for size, calls in value.items():
            if not isinstance(size, int) or size < 0:
                raise BadInput(f"{size!r} is no size", allowed=self.ALLOWED)
            steps.append((size, _CALLS.parse(calls)))
        return tuple(sorted(steps))

    def show(self, value: tuple[tuple[int, int], ...]) -> int | dict[int, int]:
        return value[0][1] if len(value) == 1 else dict(value)

    def schema(self) -> dict[str, Any]:
        one = _CALLS.schema()
        steps = {"type": "object", "propertyNames": {"pattern": "^[0-9]+$"}, "additionalProperties": one}
        return {"anyOf": [one, steps], "x-allowed": self.ALLOWED}


class Words(Marker):
    """One or more words of a fixed set, in a list or with commas between; the value is a tuple, each once.

    YAML reads a bare `null` as nothing; where `null` is one of the words it is taken as that.
    """

    def __init__(self, *words: str) -> None:
        self.words = words
        self.allowed = f"one or more of {', '.join(words)}"

    def parse(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list | tuple) else [value]
        named = ["null" if item is None and "null" in self.words else item for item in items]
        given = _listed(named) if isinstance(value, list | tuple) else _listed(named[0])
        for word in given:
            if word not in self.words:
                raise BadInput(f"{word!r} is not known", allowed=self.allowed)
        if not given:
            raise BadInput("the list is empty", allowed=self.allowed)
        return tuple(dict.fromkeys(given))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        one = {"enum": [*self.words, None] if "null" in self.words else list(self.words)}
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], "x-allowed": self.allowed}


class Machines(Marker):
    """Names of machines in a list or with commas between, or `*`; the value is a tuple, each once."""

    ALLOWED = f"names of machines, or '{EVERYONE}': every host but the server"

    def parse(self, value: object) -> tuple[str, ...]:
        given = _listed(value)
        if not given:
            raise BadInput(f"{value!r} names no machine", allowed=self.ALLOWED)
        if given == [EVERYONE]:
            return (EVERYONE,)
        for name in given:
            NAMED.parse(name)
        return tuple(dict.fromkeys(given))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}], "x-allowed": self.ALLOWED}


def _listed(value: object) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return []
    return [part.strip() for part in parts]


class Serving(Strict):
    """Socket options of the server's end where they differ from the client's."""

    tcp_nodelay: _Flag | None = None
    """TCP_NODELAY on accepted connections."""
    send_buffer: _Buffer | None = None
    """Send buffer of the record stream (Sun RPC over TCP)."""
    recv_buffer: _Buffer | None = None
    """Receive buffer of the record stream (Sun RPC over TCP)."""
    socket_buffer: _Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF."""


class WorkloadBase(Strict):
    """What every workload has."""

    clients: Annotated[tuple[str, ...], Machines()] = written(EVERYONE)
    """Who calls."""
    server: _Name = "server"
    """Who answers."""
    series: _Series = 1
    """Times the whole is repeated, numbered from 0."""


class OverSockets(WorkloadBase):
    """What workloads over UDP and TCP have."""

    socket_buffer: _Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF; left out: the kernel's."""
    tcp_nodelay: _Flag = True
    """TCP_NODELAY on both ends."""
    serving: Serving = Serving()
    """The server's end where it differs."""


class Sized(WorkloadBase):
    """What workloads have that take sizes one after the other."""

    sizes: _SizesField
    """Argument sizes in bytes."""
    calls: Annotated[tuple[tuple[int, int], ...], Calls()] = written(10)  # type: ignore[arg-type]
    """Measured calls for each size."""
    warmup: _Warmup = 1
    """Calls for each size before those measured."""
    order: Order = "ascending"
    """Of the sizes in a series; `seeded` shuffles them, for each series another way."""


class Calling(Sized, OverSockets):
    """What workloads have that call by size."""

    connection: Literal["per-size", "one"] = "per-size"
    """A new connection for every size, or one for all."""
    threads: Annotated[int, Whole(1, 64)] = 1
    """Threads that call at the same time, each on its own connection."""
    retry_timeout: _Millis = written("1 s")
    """UDP, and MBCF unless exactly once: a call without reply is sent again after this."""
    total_timeout: _Millis = written("25 s")
    """A call without reply fails after this."""


class Dying(Strict):
    """Where a server ends itself, for experiments with faults."""

    when: Literal["before", "during", "after"]
    """Before the call is executed, when it has been and is not answered yet, or after its reply."""
    call: Annotated[int, Whole(1, CALLS_MOST)]
    """The call, counted from 1 over all clients."""
    restart: _Flag = False
    """It is started anew each time, knowing nothing of what was before; on a server that boots ssscore."""


class SunRpc(Calling):
    """ONC RPC: libtirpc and rpcbind on Linux, SSS-CORE's own library and portmapper there."""

    app: Literal["sunrpc"]
    """Sun RPC calls."""
    transports: Annotated[tuple[str, ...], Words("udp", "tcp", *MBCF_TRANSPORTS)]
    """One after the other: sockets, or memory-based communication with a server of one of its types."""
    procedures: Annotated[tuple[str, ...], Words("null", "echo", "echo_string", "sink", "source")] = written("echo")
    """null has no argument; echo returns it; sink returns nothing; source returns so many bytes."""
    one_way: _Flag = False
    """Over TCP or MBCF and with the procedure sink alone: calls without reply, which the library collects and sends
    together over TCP; one call with a reply ends those of a size."""
    depth: Annotated[int, Whole(1, DEPTH_MOST)] = 1
    """MBCF: calls under way at the same time, each with its result."""
    ack: _Flag = True
    """MBCF: ask for the acknowledgement of each request that the user sees, as kamesawa98's library does."""
    semantics: Semantics | None = None
    """How often a call is executed; left out: at least once over UDP, at most once over TCP, exactly once over MBCF.
    At most once over UDP needs a server that boots ssscore."""
    reply_cache: Annotated[int, Whole(1, 4096)] | None = None
    """Replies that the server keeps for calls that come again; only with at_most_once."""
    die: Dying | None = None
    """The server's echo task ends itself."""
    auth: Literal["none", "sys"] = "none"
    """AUTH_NONE or AUTH_SYS credentials."""
    send_buffer: _Buffer | None = None
    """Send buffer of the record stream over TCP; left out: the library's 65536."""
    recv_buffer: _Buffer | None = None
    """Receive buffer of the record stream over TCP; left out: the library's 65536."""
    udp_message_size: Annotated[int, In(SIZE.between("400", "65504", example="60000"))] | None = None
    """Largest UDP message (clntudp_bufcreate); left out: the library's 8800."""


class Raw(Calling):
    """The same echo over plain sockets."""

    app: Literal["raw"]
    """Raw socket echo."""
    transports: Annotated[tuple[str, ...], Words("udp", "tcp")]
    """One after the other."""


class Mbcf(Sized):
    """Memory-based communication without RPC: operations on a server's memory."""

    app: Literal["mbcf"]
    """Remote memory operations."""
    operations: Annotated[tuple[str, ...], Words("write", "read", "fifo", "signal", "swap", "cas", "fetch_add")] = (
        written("write")
    )
    """One after the other; swap, cas (compare and swap) and fetch_add take 8 bytes."""
    modes: Annotated[tuple[str, ...], Words("round_trip", "stream")] = written("round_trip")
    """round_trip waits for the acknowledgement of each operation; stream only for that of the last."""
    total_timeout: _Millis = written("25 s")
    """An operation without result fails after this."""

    @property
    def transports(self) -> tuple[str, ...]:
        """As samples name it."""
        return ("mbcf",)


class Iperf3(OverSockets):
    """iperf3 from each client to the server."""

    app: Literal["iperf3"]
    """Bulk throughput."""
    transports: Annotated[tuple[str, ...], Words("udp", "tcp")]
    """One after the other."""
    duration: Annotated[int, In(MILLISECONDS.between("1 s", "10 min", example="2 s"))] = written("2 s")
    """Of each test."""
    rate: Annotated[int, In(RATE)] | None = None
    """What UDP offers; left out: iperf3's 1 Mbit/s."""
    streams: Annotated[int, Whole(1, 16)] = 1
    """Parallel streams."""


Workload = Annotated[SunRpc | Raw | Iperf3 | Mbcf, Field(discriminator="app")]


class Scale(Strict):
    """What a scale sets in every workload that has the field, and for the whole run."""

    calls: Annotated[tuple[tuple[int, int], ...], Calls()] | None = None
    """Measured calls for each size."""
    series: _Series | None = None
    """Times the whole is repeated."""
    sizes: _SizesField | None = None
    """Argument sizes."""
    warmup: _Warmup | None = None
    """Calls for each size before those measured."""
    deadline: _Time | None = None
    """Of the whole run, in virtual time."""


class Expect(Strict):
    """What must be true of the run beyond exact packets."""

    retransmissions: Literal["explained", "none", "allowed"] = "explained"
    """Of calls over UDP. Explained: before each the capture shows a request or a reply of the call that did not
    arrive, or not yet. Whatever is said here, they must be the ones that the client counted."""
    failures: Literal["none", "allowed"] = "none"
    """Calls that ended without a reply."""


class Scenario(Strict):
    """Workloads on a topology."""

    name: _Name
    """The file's name without its ending."""
    description: Annotated[str, PROSE]
    """One sentence: what it is for."""
    topology: _Name
    """Where it runs unless told otherwise."""
    seed: Annotated[int, Whole(0, SEED_MOST)] = 1
    """Of everything random in the run."""
    start: Annotated[int, In(TIME.between("1 ms", "1 min", example="300 ms"))] | None = None
    """When the first call may leave in virtual time; left out: 300 ms, 1 s where a
    machine is a bridge, more for machines slower than 125 mips."""
    linger: Annotated[int, In(TIME.between("1 ms", "1 min", example="1 s"))] = written("1 s")
    """How long the wires stay open after the last client is done."""
    deadline: _Time = written("10 min")
    """The run fails when it is not done at this time on its axis."""
    workloads: list[Workload] = Field(min_length=1)
    """One after the other on each client."""
    scale: dict[Literal["smoke", "quick", "paper"], Scale] = Field(default_factory=dict)
    """Sizes of the same experiment."""
    default_scale: Literal["smoke", "quick", "paper"] | None = None
    """Which scale holds when none is asked for; needed where `scale` is."""
    vary: list[dict[str, Any]] = Field(default_factory=list)
    """Overrides as for --set, one mapping for each run of the command; empty: one run."""
    statistic: Literal["mean", "kedziera98"] = "mean"
    """Over series: mean of all, or the paper's: the lowest throughput of each size dropped, mean of the rest."""
    expect: Expect = Expect()
    """What must be true of the run."""
