# SPDX-License-Identifier: Apache-2.0
"""Who calls whom, from jobs and samples: servers, the steps of clients with their calls, and what each step's
connections have to carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from sundial.expect import http2
from sundial.expect.http2 import Flag, Frame, Type
from sundial.judge import parties
from sundial.judge.parties import options_of
from sundial.observe import RunDirectory
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of
from sundial.verify.sockets.conversations import Conversation, End
from sundial.workloads import server_death
from sundial.workloads.grpc.expect import LIBRARIES, PORT, Library
from sundial.workloads.grpc.expect_languages import BY_CLIENT, BY_SERVER, Language
from sundial.workloads.grpc.model import PACKAGE
from sundial.workloads.libraries import libraries_of

LATE, BROKEN, WRONG = "DEADLINE_EXCEEDED", "UNAVAILABLE", "DATA_LOSS"
"""Why a call failed: it had its time; its connection did; its reply had another value."""


class Service(parties.Service):
    """A server program of a machine."""

    PORT = PORT

    @property
    def language(self) -> Language:
        return BY_SERVER[self.app]

    @property
    def bdp_probe(self) -> bool:
        return bool(self.options.get("bdp_probe"))

    @property
    def max_workers(self) -> int:
        return int(self.options.get("max_workers") or 1)

    @property
    def die_call(self) -> int | None:
        """The call in which it is killed."""
        return server_death.call_of(self.options)


@dataclass(frozen=True)
class Call:
    """One row of a client's samples."""

    id: int
    function: str
    ok: bool
    error: str | None
    start_ns: int
    end_ns: int
    xid: int | None
    batch: int
    numbered: bool
    """Its client knows its stream, for no call has failed up to it."""

    @property
    def answered(self) -> bool:
        """A whole reply came, by the sample."""
        return self.ok or self.error == WRONG


@dataclass
class Step:
    """One client process: a connection, unless that broke."""

    client: str
    number: int
    language: Language
    options: Mapping[str, Any]
    calls: list[Call] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    """The client's, as its batches name them."""

    @property
    def server(self) -> End:
        return str(self.options.get("server")), int(self.options.get("port") or PORT)

    @cached_property
    def broke(self) -> bool:
        """Whether a call failed for its connection."""
        return any(call.error == BROKEN for call in self.calls)


@dataclass(frozen=True)
class Link:
    """A connection, and the calls whose requests it has to carry, in order: on streams 1, 3, 5 and so on."""

    conversation: Conversation
    step: Step
    calls: Sequence[Call]
    last: bool
    """It is the step's last."""

    @cached_property
    def cut(self) -> bool:
        """Whether it broke: what is missing at its end is not a fault of its frames."""
        return any(call.error == BROKEN for call in self.calls) or (self.step.broke and not self.calls)


def libraries(run: RunDirectory) -> dict[tuple[str, str], Library]:
    """What each machine has, by its image: of each language's name."""
    network = network_of(run)
    return {
        (node.name, language): LIBRARIES[table[PACKAGE]]
        for node in (() if network is None else network.nodes)
        for language, table in libraries_of(run, node.image).items()
        if table.get(PACKAGE) in LIBRARIES
    }


def steps(run: RunDirectory, samples: RunSamples) -> list[Step]:
    """Of all clients, each with its calls in order."""
    found: dict[tuple[str, int], Step] = {}
    rows = samples.table.filter(pl.col("app").is_in(list(BY_CLIENT))).sort("client", "batch", "call")
    names = [
        "app",
        "client",
        "node_step",
        "batch",
        "id",
        "procedure",
        "ok",
        "error",
        "start_ns",
        "end_ns",
        "xid",
        "client_port",
    ]
    for app, client, number, batch, name, procedure, ok, error, start, end, xid, port in rows.select(names).iter_rows():
        step = found.get((client, number))
        if step is None:
            step = found[client, number] = Step(client, number, BY_CLIENT[app], options_of(run, client, number))
        numbered = (ok or error == WRONG) and all(call.numbered for call in step.calls[-1:])
        step.calls.append(Call(name, procedure, ok, error, start, end, xid, batch, numbered))
        if port:
            step.ports.add(port)
    return list(found.values())


def links(known: Sequence[Step], conversations: Sequence[Conversation]) -> tuple[list[Link], list[Conversation]]:
    """The connections of each step, and those of none."""
    left = {each.number: each for each in sorted(conversations, key=lambda each: each.opened_ns)}
    found: list[Link] = []
    for step in known:
        own = [each for each in left.values() if _belongs(step, each)]
        for each in own:
            del left[each.number]
        found += _assigned(step, own)
    return found, list(left.values())


def _belongs(step: Step, each: Conversation) -> bool:
    if (each.client_machine, each.server) != (step.client, step.server):
        return False
    if each.client[1] in step.ports or not step.calls:
        return True
    # After a failure a step has connections that its batches do not name.
    within = step.calls[0].start_ns <= each.opened_ns <= step.calls[-1].end_ns
    return within and (step.broke or not step.ports)


def _assigned(step: Step, own: Sequence[Conversation]) -> Iterator[Link]:
    """A call that succeeded had the next stream; one that failed may have had none."""
    if len(own) == 1 and all(call.answered for call in step.calls):
        yield Link(own[0], step, step.calls, last=True)
        return
    streams = [(place, stream) for place, each in enumerate(own) for stream in opened(each.ways[False].data)]
    answers = [answered(each.ways[True].data) for each in own]
    parts: list[list[Call]] = [[] for _ in own]
    at = 0
    for number, call in enumerate(step.calls):
        if at == len(streams):
            # Nothing is left on the wire: those that succeeded miss their frames on the last connection.
            if call.answered and parts:
                parts[-1].append(call)
            continue
        place, stream = streams[at]
        whole = stream in answers[place]
        if call.answered or not whole or len(streams) - at >= len(step.calls) - number:
            parts[place].append(call)
            at += 1
    for place, each in enumerate(own):
        yield Link(each, step, parts[place], last=place == len(own) - 1)


def opened(octets: bytes) -> list[int]:
    """Streams that a client's octets begin, in order."""
    return list(
        dict.fromkeys(
            frame.stream for _, frame in http2.frames(octets, len(http2.PREFACE)) if frame.type == Type.HEADERS
        )
    )


def begun(octets: bytes) -> tuple[set[int], set[int]]:
    """Streams on which a server's octets answer, and those of them whose first headers are all of the answer."""
    first: dict[int, Frame] = {}
    for _, frame in http2.frames(octets):
        if frame.type == Type.HEADERS:
            first.setdefault(frame.stream, frame)
    return set(first), {stream for stream, frame in first.items() if frame.has(Flag.END_STREAM)}


def answered(octets: bytes) -> set[int]:
    """Streams that a server's octets end with trailers."""
    return {
        frame.stream for _, frame in http2.frames(octets) if frame.type == Type.HEADERS and frame.has(Flag.END_STREAM)
    }
