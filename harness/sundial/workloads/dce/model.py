# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from sundial.expect.ip import PerPacket
from sundial.model.fields import In, Whole, written
from sundial.model.images import IMAGES, ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import (
    Buffer,
    Ends,
    Millis,
    Traced,
    Transport,
    WorkloadBase,
    WorkloadKind,
)
from sundial.units import SIZE
from sundial.workloads import sockets
from sundial.workloads.dce.expect import (
    FRAGMENT_LEAST,
    FRAGMENT_MOST,
    FRAGMENT_STEP,
    PROCEDURES,
    SIZE_MOST,
    SSS_CORE,
    TABLE_BYTES,
    edge_sizes,
    place_bytes,
)
from sundial.workloads.dce.expect_ndr import MESSAGE_MOST, lengths
from sundial.workloads.dce.expect_pdu import HEADER
from sundial.workloads.function_calls import SizesOrFunctions, check_functions

UDP = Transport("udp", ("at_most_once", "at_least_once"), reliable=False)
WINDOW_LEAST, WINDOW_MOST = 3 * 1024, 64 * 1024
"""C706 has the window in kilobytes; the OSF runtime takes 0, 1 and 2 for numbers of fragments."""
SIZES_MOST = 999
"""A procedure for each size: as many opnums lie between two of its families."""

PUT = "put"
"""What is called where neither procedures nor functions are written."""

SOCKET_BYTES = 256 * 1024
"""Of a socket of SSS-CORE."""
SERVER_MEMORY = 16 * 1024 * 1024
"""What a machine with SSS-CORE needs for each server and its table."""
JOB_SIZE_MOST = 65_507
"""The largest of `sizes` that SSS-CORE takes from a job (guest-apps/sss-core/kernel/job_image.c)."""

DceSemantics = Literal["at_most_once", "idempotent", "maybe", "broadcast"]
"""C706 section 6.1: the attributes of an operation."""


class Dce(Traced, SizesOrFunctions):
    """DCE RPC over UDP: C706's connectionless protocol, with the fragments and the window of khandker's runtime."""

    app: Literal["dce"]
    """DCE RPC calls."""
    transports: Annotated[tuple[str, ...], Words("udp")] = written("udp")
    """ncadg_ip_udp."""
    binding: Literal["string", "mapper"] = "string"
    """Source of the server's port for clients: the options (string), or the endpoint mapper."""
    port: Annotated[int, Whole(1024, 65535)] = 1027
    """Port of the server. Workloads with other sizes, fragments, windows or policies need other ports."""
    byte_order: Literal["little", "big"] = "little"
    """Byte order of integers in PDUs and parameters; the receiver converts it."""
    procedures: Annotated[tuple[str, ...], Words(*PROCEDURES)] = Field(
        default=(), validate_default=False, exclude_if=lambda value: value == ()
    )
    """null has no parameter, put one in, get one out, echo both; each size is a separate procedure. Default: put, or
    the functions if they are given."""
    semantics: DceSemantics = "at_most_once"
    """Semantics: at_most_once; idempotent calls are executed as often as they arrive; maybe calls have no response;
    broadcast calls go to all machines of a segment, and the first response counts."""
    connection: Literal["per-size", "one"] = "one"
    """An activity for each size, or one for all. If calls are not idempotent, the server begins each activity with its
    question who_are_you."""
    threads: Annotated[int, Whole(1, 32)] = 1
    """Threads that call in parallel, each with its own activity."""
    fragment: Annotated[int, In(SIZE.between(str(FRAGMENT_LEAST), str(FRAGMENT_MOST), example="4096"))] = written(
        "4096"
    )
    """Size of a PDU including its header of 80 bytes."""
    window: Annotated[int, In(SIZE.between(str(WINDOW_LEAST), str(WINDOW_MOST), example="32 KiB"))] = written("32 KiB")
    """Window of a receiver, in whole KiB: most bytes under way without acknowledgement."""
    policy: Literal["window", "halves", "osf"] = "window"
    """Fragments with which a sender requests an acknowledgement: the last of each burst (as in khandker's text), also
    the middle one (as in its table 2), or those of the OSF runtime with its smaller fragments."""
    resend: Millis = written("2 s")
    """Time without an acknowledgement after which the oldest fragment is retransmitted; doubles up to 8 s."""
    ping: Millis = written("2 s")
    """Initial ping interval of a client that waits for a response; doubles up to 8 s."""
    ack_delay: Millis = written("1 s")
    """Time after which a client acknowledges a response, unless another call of its activity has done so."""
    give_up: Millis = written("30 s")
    """Time without progress after which a call fails: no acknowledgement of a further fragment, no working, no
    response."""
    cancel: Millis | None = None
    """Time after which a call is cancelled, and so fails."""
    work: Annotated[int, Whole(0, 60_000)] = 0
    """Additional time of each procedure in ms, during which pings are answered with working."""
    executors: Annotated[int, Whole(1, 32)] = 8
    """Threads of the server that execute calls."""
    socket_buffer: Buffer = written("1 MiB")
    """SO_SNDBUF and SO_RCVBUF of both ends. The kernel counts more than a fragment's bytes, so its default is too small
    for the windows of four callers. SSS-CORE ignores this: its sockets keep 256 KiB."""


class DceKind:
    """DCE RPC, as the model asks for it."""

    order = 5
    model = Dce
    transports = (UDP,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform in (sockets.LINUX, SSS_CORE)

    def check(self, workload: Dce, ends: Ends, path: Path) -> Iterator[Invalid]:
        if workload.fragment % FRAGMENT_STEP:
            what = f"fragment {workload.fragment} is not a multiple of {FRAGMENT_STEP}"
            yield Invalid((*path, "fragment"), what, f"such as {workload.fragment // FRAGMENT_STEP * FRAGMENT_STEP}")
        if workload.window % 1024:
            yield Invalid((*path, "window"), f"window {workload.window} is not a whole number of KiB", "such as 32 KiB")
        elif workload.window < workload.fragment:
            what = f"window {workload.window} is less than a fragment of {workload.fragment} bytes"
            yield Invalid((*path, "window"), what, "at least one fragment")
        yield from check_functions(workload, path, "procedures")
        if workload.semantics == "maybe":
            of_functions = [name for name in workload.functions or () if lengths(name)[1]]
            returning = of_functions or [name for name in workload.procedures if name in ("get", "echo")]
            if returning:
                what = f"maybe calls have no response, so {returning[0]} cannot return data"
                allowed = "functions: void" if of_functions else "procedures: null, put"
                yield Invalid((*path, "semantics"), what, allowed)
        if workload.semantics == "broadcast":
            yield from _check_broadcast(workload, ends, path)
            yield from _check_one_fragment(workload, path)
        others = [name for name, image in ends.images.items() if image.platform != sockets.LINUX]
        if workload.trace == "steps" and others:
            what = f"the steps of dce are not known on {others[0]!r}, which boots {ends.image(others[0]).name}"
            yield Invalid((*path, "trace"), what, "none, names of functions, or machines that boot linux")
        if workload.resend > workload.give_up:
            what = "resend is longer than give_up, so nothing would be retransmitted"
            yield Invalid((*path, "resend"), what, "up to give_up")

    def resolve(self, workload: Dce, ends: Ends, path: Path) -> tuple[Dce, list[Invalid]]:
        def edges(
            transport: str, client: str, mtu: int, smallest: int, largest: int, cells: PerPacket | None
        ) -> list[int]:
            return edge_sizes(mtu, smallest, largest, fragment=workload.fragment, cells=cells)

        if workload.functions:
            return workload, list(_check_memory(workload, ends, path))
        if not workload.procedures:
            workload = workload.model_copy(update={"procedures": (PUT,)})
        one_pdu = workload.semantics == "broadcast"
        most = workload.fragment - HEADER if one_pdu else SIZE_MOST
        resolved, findings = resolve_sizes(
            workload,
            ends,
            path,
            procedures=[name for name in workload.procedures if name != "null"],
            limit=lambda transport, procedure, client: Limit(
                0, most, "one fragment of a broadcast" if one_pdu else "this testbed's own limit"
            ),
            edges=edges,
        )
        if not findings and len(resolved.sizes) > SIZES_MOST:
            what = f"{len(resolved.sizes)} sizes are too many: each is a procedure"
            findings = [Invalid((*path, "sizes"), what, f"up to {SIZES_MOST}")]
        return resolved, findings or list(_check_memory(resolved, ends, path))

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        yield from _check_servers(workloads, network)
        mapped: dict[str, int] = {}
        for number, workload in enumerate(workloads):
            if not isinstance(workload, Dce) or workload.binding == "string":
                continue
            known = mapped.setdefault(workload.server, workload.port)
            if known != workload.port:
                what = f"port {workload.port} differs from port {known} in the endpoint mapper of {workload.server!r}"
                yield Invalid(("workloads", number, "port"), what, "the same port on one server, or binding: string")


def _check_one_fragment(workload: Dce, path: Path) -> Iterator[Invalid]:
    """Functions whose messages a broadcast can carry."""
    room = workload.fragment - HEADER
    for name in workload.functions or ():
        if max(lengths(name)) > room:
            what = f"{name} has {max(lengths(name))} bytes and exceeds the one fragment of a broadcast, {room} bytes"
            yield Invalid((*path, "functions"), what, "other functions, or a larger fragment")


def _check_servers(workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
    """Servers on one machine, each with a table of its own."""
    ports: dict[str, set[int]] = {}
    for number, workload in enumerate(workloads):
        if not isinstance(workload, Dce):
            continue
        node, own = network.node(workload.server), ports.setdefault(workload.server, set())
        own.add(workload.port)
        if IMAGES[node.image].platform == SSS_CORE and len(own) > max(1, node.memory // SERVER_MEMORY):
            what = f"{len(own)} servers on {workload.server!r}, which boots {node.image}, exceed its memory"
            yield Invalid(("workloads", number, "port"), what, "a port of another workload, or memory of 16 MiB each")


def _check_memory(workload: Dce, ends: Ends, path: Path) -> Iterator[Invalid]:
    """What SSS-CORE's nodes cannot hold: the windows of their callers, the calls of a server's clients."""
    sizes = (MESSAGE_MOST,) if workload.functions else workload.sizes
    largest = max((size for size in sizes if isinstance(size, int)), default=0)
    small = next((name for name in ends.clients if ends.image(name).platform == SSS_CORE), None)
    if small is not None and largest > JOB_SIZE_MOST:
        what = f"{largest} bytes exceed what {small!r} can call with, which boots {ends.image(small).name}"
        yield Invalid((*path, "sizes"), what, f"up to {JOB_SIZE_MOST} bytes")
    under_way = min(workload.window, max(1, -(-largest // (workload.fragment - HEADER))) * workload.fragment)
    most, places = SOCKET_BYTES // under_way, TABLE_BYTES // place_bytes(workload.fragment, largest)
    serving = (ends.server, workload.threads * len(ends.clients))
    for name, callers in (serving, *((name, workload.threads) for name in ends.clients)):
        image = ends.image(name)
        if image.platform != SSS_CORE:
            continue
        who = f"{callers} callers of {name!r}, which boots {image.name}"
        if callers > most:
            what = f"{who}, with {under_way} bytes under way each, exceed its sockets' buffers of {SOCKET_BYTES} bytes"
            yield Invalid((*path, "threads"), what, f"up to {most} callers, or a smaller window")
        elif name == ends.server and callers > places:
            what = f"{who}, with up to {largest} bytes each, exceed its memory, which has room for {places}"
            yield Invalid((*path, "threads"), what, f"up to {places} callers, or smaller sizes")


def _check_broadcast(workload: Dce, ends: Ends, path: Path) -> Iterator[Invalid]:
    if workload.binding == "mapper":
        yield Invalid((*path, "binding"), "mapper cannot be combined with broadcast", "string")
    if workload.policy == "osf":
        yield Invalid(
            (*path, "policy"), "osf cannot be combined with broadcast, which must not be fragmented", "window or halves"
        )
    if ends.server in ends.clients:
        what = f"broadcast from {ends.server!r} to itself is not supported: a loopback has no broadcast"
        yield Invalid((*path, "semantics"), what, "clients on other machines")
    for client in (name for name in ends.clients if name != ends.server):
        passed = ends.network.passed(client, ends.server)
        if len(passed) != 1:
            what = f"broadcast from {client!r} does not reach {ends.server!r}, which is on another segment"
            yield Invalid((*path, "semantics"), what, "both ends on one segment")
        elif any(ends.network.segments[name].ip_only for name in ends.network.way(*passed[0])):
            what = f"broadcast from {client!r} cannot pass a segment with encapsulation: routed"
            yield Invalid((*path, "semantics"), what, "another encapsulation, or other semantics")


KIND: WorkloadKind[Dce] = DceKind()
