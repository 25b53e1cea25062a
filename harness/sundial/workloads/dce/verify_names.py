# SPDX-License-Identifier: Apache-2.0
"""Who calls whom, from jobs and samples: activities and their calls, the names that seeds give them, the mapper."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from typing import Any, cast
from uuid import UUID

import polars as pl

from sundial.errors import GuestFault
from sundial.judge import parties
from sundial.judge.parties import options_of
from sundial.observe import RunDirectory
from sundial.verify.samples import RunSamples
from sundial.workloads.dce import expect_ndr
from sundial.workloads.dce.expect import ACTIVITIES, FRAGMENT, MAPPER_ACTIVITIES, parameters, place_bytes
from sundial.workloads.dce.expect_pdu import Flags, Pdu
from sundial.workloads.dce.verify_client import Call
from sundial.workloads.dce.verify_datagrams import Endpoint
from sundial.workloads.dce.verify_stream import EPM, EPT_MAP, SUNDIAL, TWELVE, VERSIONS, Settings, payload
from sundial.workloads.functions import BY_NAME

CLIENT, SERVER = "dce-client", "dce-server"
PORT, MAPPER_PORT = 1027, 135
THREADS_MOST = 32
PUT, GET, ECHO = 1, 1000, 2000
SEMANTICS = {
    "at_most_once": Flags(0),
    "idempotent": Flags.IDEMPOTENT,
    "maybe": Flags.MAYBE,
    "broadcast": Flags.BROADCAST | Flags.IDEMPOTENT,
}
NO_PORT = "no port"
"""Error of each call of a client to which the mapper has named none."""
_NDR = UUID("8a885d04-1ceb-11c9-9fe8-08002b104860")
_TOWERS_ASKED = 4
_REFERENT = 3
_MAPPER_BODY = 512
"""Room of a mapper for arguments and results (guest-apps/dce/epm.h)."""
_HANDLE = bytes(20)


def mixed(seed: int, name: str, index: int) -> int:
    """What a seed gives to a name: guest-apps/common/mix.h, by the finaliser of SplitMix64."""
    most = (1 << 64) - 1

    def scramble(value: int) -> int:
        value = (value + 0x9E3779B97F4A7C15) & most
        value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & most
        value = ((value ^ value >> 27) * 0x94D049BB133111EB) & most
        return value ^ value >> 31

    state = scramble(seed)
    for octet in name.encode():
        state = scramble(state ^ octet)
    return scramble(state ^ index)


def identity(seed: int, machine: str, step: int | None, word: str, index: int) -> UUID:
    """The UUID that a program gives to one of its things; `step` None: it is a service."""
    name = f"dce/{machine}/{'' if step is None else step}/{word}"
    halves = [mixed(seed, name, 2 * index + half).to_bytes(8) for half in (0, 1)]
    return UUID(bytes=b"".join(halves), version=4)


def conv_activity(seed: int, machine: str, port: int, hint: int) -> UUID:
    """In which the server at a port asks who an activity is."""
    own = identity(seed, machine, None, "conv", port)
    return UUID(bytes=own.bytes[:14] + hint.to_bytes(2))


@dataclass
class Activity:
    """One activity: whose it is, and its calls in order."""

    uuid: UUID
    client: str
    server: str
    own_end: Endpoint | None
    """The client's; None: not known."""
    server_end: Endpoint
    """Where it calls; of a broadcast all machines of a network."""
    settings: Settings
    calls: list[Call]
    batches: list[tuple[int, int]] = field(default_factory=list)
    """The number of each batch in the samples, and the place of its first call."""
    named: UUID | None = None
    """What the seed gives it for a name."""
    mapper: bool = False
    binding: Mapping[str, Any] | None = None
    """What the client says of its questions to the mapper."""


class Service(parties.Service):
    """A server program of a machine."""

    PORT = PORT

    @property
    def settings(self) -> Settings:
        return settings_of(self.options)

    @property
    def ports(self) -> tuple[int, ...]:
        """Its own, and the mapper's if it has one."""
        mapper = int(self.options.get("mapper_port") or 0)
        return (self.port, *((mapper,) if mapper else ()))

    def places(self, port: int, memory: int | None) -> int:
        """Activities that its table at a port has places for. `memory`: bytes that it may take; None: enough."""
        sizes = [int(each) for each in self.options.get("interface_sizes") or []]
        largest = expect_ndr.MESSAGE_MOST if self.interface == TWELVE else max(sizes, default=0)
        most, largest = (ACTIVITIES, largest) if port == self.port else (MAPPER_ACTIVITIES, _MAPPER_BODY)
        return most if memory is None else min(most, memory // place_bytes(self.settings.fragment, largest))

    @property
    def interface(self) -> UUID:
        """The one that it has beside the mapper's."""
        return TWELVE if self.options.get("interface") == "functions" else SUNDIAL

    def results(self, request: Pdu, asked: str = "") -> bytes | None:
        """What a request returns; `asked`: the address that it went to."""
        if request.interface == EPM:
            return map_results(request, self, asked) if request.opnum == EPT_MAP else None
        if request.interface == TWELVE:
            name = expect_ndr.by_number(request.opnum)
            return None if name is None else expect_ndr.messages(name, little=self.settings.little_endian)[1]
        sizes = self.options.get("interface_sizes") or []
        first = next((first for first in (ECHO, GET, PUT) if request.opnum >= first), None)
        if first is None:
            return b""
        if request.opnum - first >= len(sizes):
            return None
        return payload(request.sequence, sizes[request.opnum - first]) if first != PUT else b""


def settings_of(options: Mapping[str, Any]) -> Settings:
    """The settings of a program: its options, and its own defaults for those that are absent."""

    def ns(name: str, absent_ms: int) -> int:
        return int(options.get(name) or absent_ms) * 1_000_000

    return Settings(
        cancel_ns=ns("cancel_ms", 0),
        policy=options.get("policy") or "window",
        fragment=int(options.get("fragment_bytes") or FRAGMENT),
        window_kib=int(options.get("window_bytes") or 32 * 1024) // 1024,
        little_endian=(options.get("byte_order") or "little") == "little",
        resend_ns=ns("resend_ms", 2000),
        ping_ns=ns("ping_ms", 2000),
        ack_delay_ns=ns("ack_delay_ms", 1000),
        give_up_ns=ns("give_up_ms", 30_000),
    )


def opnum(procedure: str, size: int, sizes: Sequence[int]) -> int:
    """Of the procedure for a size. Raises ValueError."""
    return 0 if procedure == "null" else {"put": PUT, "get": GET, "echo": ECHO}[procedure] + list(sizes).index(size)


def activities(run: RunDirectory, samples: RunSamples, known: Sequence[Service]) -> list[Activity]:
    """Of all clients, in the order of their samples; behind them those that ask the mapper. Raises GuestFault for
    samples of calls that there cannot be."""
    found: dict[UUID, Activity] = {}
    turns: Counter[tuple[str, int, int]] = Counter()
    for batch in parties.batches(samples, samples.table.filter(pl.col("app") == CLIENT)):
        if batch.line.get("server_port") == 0:
            continue  # nothing was sent
        try:
            _add(found, turns, run, known, batch)
        except (KeyError, TypeError, ValueError) as error:
            raise GuestFault(
                f"a client recorded DCE RPC calls that there cannot be: {error}", machine=batch.client
            ) from None
    return [*found.values(), *_mapper_activities(run, samples, known)]


def _add(
    found: dict[UUID, Activity],
    turns: Counter[tuple[str, int, int]],
    run: RunDirectory,
    known: Sequence[Service],
    batch: parties.Batch,
) -> None:
    """A batch of calls to the activity that made it."""
    client, options = batch.client, options_of(run, batch.client, batch.step)
    calls = sorted(batch.calls, key=lambda each: each.call)
    if any(call.xid is None for call in calls):
        raise ValueError(f"one without an xid to port {batch.line.get('server_port')}")
    uuid, first = UUID(str(batch.line["activity"])), calls[0]
    thread = (client, batch.step, first.thread)
    # An activity for each batch is opened beside that which each thread begins with.
    turns[thread] += options.get("connection") == "per-size"
    if uuid not in found:
        seed, turn = int(run.jobs[client].get("seed") or 0), turns[thread] * THREADS_MOST + thread[2]
        own_end, target = cast(Endpoint, first.client_end), cast(Endpoint, first.server_end)
        found[uuid] = Activity(
            uuid, client, server_of(known, target, run), own_end, target,
            settings_of(options), [], named=identity(seed, client, thread[1], "activity", turn),
        )  # fmt: skip
    each = found[uuid]
    each.batches.append((batch.number, len(each.calls)))
    for place, call in enumerate(calls):
        name, size = call.procedure, call.size
        own = _of_function(options, name) or _of_size(options, name, size)
        each.calls.append(
            replace(
                own, sequence=cast(int, call.xid), semantics=SEMANTICS[options.get("semantics") or "at_most_once"],
                sizes=parameters(name, size), id=call.id, start_ns=call.start_ns, begins=place == 0,
                settles=place == len(calls) - 1,
            )
        )  # fmt: skip


def _of_function(options: Mapping[str, Any], name: str) -> Call | None:
    """The call of a function; None where the job has procedures."""
    if "functions" not in options:
        return None
    request, _ = expect_ndr.messages(name, little=settings_of(options).little_endian)
    return Call(0, TWELVE, BY_NAME[name].number, body=request)


def _of_size(options: Mapping[str, Any], name: str, size: int) -> Call:
    return Call(0, SUNDIAL, opnum(name, size, options.get("interface_sizes") or [0]))


def server_of(known: Sequence[Service], target: Endpoint, run: RunDirectory) -> str:
    """The machine whose program serves an endpoint; of a broadcast the one on that network."""
    address, port = target
    near = {
        (item.address, each.machine)
        for each in known
        for item in run.nodes[each.machine].interfaces
        if port in each.ports
    }
    exact = [machine for own, machine in sorted(near) if own == address]
    return (exact or [machine for _, machine in sorted(near)] or [""])[0]


def _mapper_activities(run: RunDirectory, samples: RunSamples, known: Sequence[Service]) -> list[Activity]:
    found = []
    for client, records in samples.records.items():
        lines = (each for each in records if each["type"] == "binding" and each.get("app") == CLIENT)
        for line in lines:
            step = int(line["step"])
            options = options_of(run, client, step)
            server = str(options.get("server"))
            target = (server, int(options.get("mapper_port") or MAPPER_PORT))
            settings = replace(settings_of(options), cancel_ns=0)
            seed = int(run.jobs[client].get("seed") or 0)
            wanted = TWELVE if "functions" in options else SUNDIAL
            body = map_question(server, wanted, little=settings.little_endian)
            attempts = int(line.get("attempts") or 0)
            calls = [
                Call(number, EPM, EPT_MAP, Flags.IDEMPOTENT, body=body, start_ns=line["start"], settles=False)
                for number in range(attempts)
            ]
            uuid = identity(seed, client, step, "mapper", 0)
            machine = server_of(known, target, run)
            found.append(Activity(uuid, client, machine, None, target, settings, calls, mapper=True, binding=line))
    return found


# ---- the endpoint mapper: C706 appendices I, L and O ----


def tower(interface: UUID, port: int, address: str) -> bytes:
    """A tower of an interface over UDP: always little-endian, but port and address."""

    def side(data: bytes) -> bytes:
        return struct.pack("<H", len(data)) + data

    def syntax(uuid: UUID, version: int) -> bytes:
        return side(b"\x0d" + uuid.bytes_le + struct.pack("<H", version & 0xFFFF)) + side(
            struct.pack("<H", version >> 16)
        )

    floors = (
        syntax(interface, VERSIONS[interface]), syntax(_NDR, 2), side(b"\x0a") + side(bytes(2)),
        side(b"\x08") + side(port.to_bytes(2)), side(b"\x09") + side(IPv4Address(address).packed),
    )  # fmt: skip
    return struct.pack("<H", len(floors)) + b"".join(floors)


def _tower(octets: bytes, order: str) -> bytes:
    return struct.pack(order + "II", len(octets), len(octets)) + octets + bytes(-len(octets) % 4)


def map_question(address: str, interface: UUID = SUNDIAL, *, little: bool) -> bytes:
    """Any object; the tower that is asked for; no handle; at most so many towers."""
    order = "<" if little else ">"
    pointers = struct.pack(order + "II", 0, _REFERENT)
    return pointers + _tower(tower(interface, 0, address), order) + _HANDLE + struct.pack(order + "I", _TOWERS_ASKED)


def map_results(request: Pdu, service: Service, address: str = "") -> bytes:
    """One tower, with the server's port and the address that it was asked at."""
    order = "<" if service.settings.little_endian else ">"
    found = tower(service.interface, service.port, address or service.addresses[0])
    counts = struct.pack(order + "IIIII", 1, _TOWERS_ASKED, 0, 1, _REFERENT)
    return _HANDLE + counts + _tower(found, order) + struct.pack(order + "I", 0)
