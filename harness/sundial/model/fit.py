# SPDX-License-Identifier: Apache-2.0
"""What a workload asks for that its transports or the images at its ends cannot do.

Semantics are those of kamesawa98 section 3.2. MBCF gives exactly once by itself; its library gives the others too, for
comparison. Over UDP a client asks again, and an SSS-CORE server may keep replies; over TCP none sends a call twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.model.check import Finding
from sundial.model.network import Network
from sundial.model.scenario import MBCF_TRANSPORTS, Mbcf, OverSockets, Semantics, SunRpc, WorkloadBase

Path = tuple[str | int, ...]

MBCF_MTU_LEAST = 48 + 1408
"""The header and the largest payload of an MBCF packet: there is no fragmentation below it."""

_SEMANTICS: dict[str, tuple[Semantics, ...]] = {
    "udp": ("at_least_once", "at_most_once"),
    "tcp": ("at_most_once",),
    "mbcf": ("exactly_once", "at_most_once", "at_least_once"),
}
_ONE = "boots linux and serves MBCF already: there a process is a node, and a machine has one at a time"
_WITHOUT_RESULT = ("write", "fifo", "signal")


def semantics_of(workload: SunRpc, transport: str) -> Semantics:
    """What holds over `transport`: what was written, or what the transport gives by itself."""
    return workload.semantics or allowed_semantics(transport)[0]


def allowed_semantics(transport: str) -> tuple[Semantics, ...]:
    """By transport, the one that holds where none is written first."""
    return _SEMANTICS["mbcf" if is_mbcf(transport) else transport]


def is_mbcf(transport: str) -> bool:
    return transport == "mbcf" or transport in MBCF_TRANSPORTS


def misfits(workload: WorkloadBase, clients: Sequence[str], network: Network, path: Path) -> Iterator[Finding]:
    """Everything wrong with one workload on `network`, whose ends are there and run its app."""
    images = {name: network.node(name).image for name in (workload.server, *clients)}
    if isinstance(workload, SunRpc):
        yield from _calls(workload, path)
        yield from _semantics(workload, images[workload.server], path)
    if isinstance(workload, Mbcf) and "stream" in workload.modes:
        waiting = [name for name in workload.operations if name not in _WITHOUT_RESULT]
        if waiting:
            what = f"a stream of {waiting[0]}: each of them has a result to wait for"
            yield Finding((*path, "modes"), what, f"round_trip, or the operations {', '.join(_WITHOUT_RESULT)}")
    if isinstance(workload, SunRpc | Mbcf) and any(map(is_mbcf, workload.transports)):
        yield from _wires(workload.server, clients, network, path)
    if isinstance(workload, OverSockets):
        yield from _fixed_sockets(workload, images, path)
    if isinstance(workload, SunRpc) and workload.threads > 1:
        ours = [name for name in clients if images[name] == "ssscore"]
        if ours or any(map(is_mbcf, workload.transports)):
            who = f"{ours[0]!r}, which boots ssscore" if ours else f"transport {workload.transports[0]}"
            what = f"{workload.threads} threads with {who}: its client has one"
            yield Finding((*path, "threads"), what, "1; depth is calls under way over MBCF")


def _calls(workload: SunRpc, path: Path) -> Iterator[Finding]:
    others = [name for name in workload.transports if not is_mbcf(name)]
    if others and not workload.ack:
        what = f"ack false over {others[0]}, which has no such acknowledgement"
        yield Finding((*path, "ack"), what, f"true, or the transports {', '.join(MBCF_TRANSPORTS)}")
    if others and workload.depth > 1:
        what = f"depth {workload.depth} over {others[0]}: its library waits for the reply of each call"
        yield Finding((*path, "depth"), what, f"1, or the transports {', '.join(MBCF_TRANSPORTS)}")
    elif workload.one_way and workload.depth > 1:
        what = f"depth {workload.depth} with one_way: there are no replies to wait for"
        yield Finding((*path, "depth"), what, "1")
    if workload.one_way and workload.procedures != ("sink",):
        what = f"one_way with {', '.join(workload.procedures)}: only sink has no result"
        yield Finding((*path, "one_way"), what, "procedures: sink")
    elif workload.one_way and "udp" in workload.transports:
        what = "one_way over udp: libtirpc does not send a call that it is not to wait for"
        yield Finding((*path, "one_way"), what, f"transports: tcp, {', '.join(MBCF_TRANSPORTS)}")


def _semantics(workload: SunRpc, server_image: str, path: Path) -> Iterator[Finding]:
    for transport in workload.transports:
        allowed = allowed_semantics(transport)
        if workload.semantics is not None and workload.semantics not in allowed:
            what = f"{workload.semantics} over {transport}"
            yield Finding((*path, "semantics"), what, f"{', '.join(allowed)} over {transport}")
            return
    cached = workload.semantics == "at_most_once" and workload.transports != ("tcp",)
    if cached and "udp" in workload.transports and server_image != "ssscore":
        what = f"at_most_once over udp with a server on image {server_image!r}, which keeps no replies"
        yield Finding((*path, "semantics"), what, "at_least_once, or a server that boots ssscore")
    if workload.reply_cache is not None and not cached:
        what = "reply_cache without at_most_once over udp or MBCF: nothing would be kept"
        yield Finding(
            (*path, "reply_cache"), what, f"semantics: at_most_once, transports: udp, {', '.join(MBCF_TRANSPORTS)}"
        )
    plain = [name for name in workload.transports if not is_mbcf(name)]
    if workload.die is not None and server_image != "ssscore" and plain:
        what = f"die with a server for {plain[0]} on image {server_image!r}"
        yield Finding((*path, "die"), what, "a server that boots ssscore, or MBCF transports")
    if workload.die is not None and workload.die.restart and server_image != "ssscore":
        what = f"restart with a server on image {server_image!r}: nobody there starts it anew"
        yield Finding((*path, "die", "restart"), what, "a server that boots ssscore")


def _wires(server: str, clients: Sequence[str], network: Network, path: Path) -> Iterator[Finding]:
    for name in (server, *clients):
        first = network.node(name).nics[0]
        field = "server" if name == server else "clients"
        if first.mtu < MBCF_MTU_LEAST:
            what = f"MBCF on {first.end} with an MTU of {first.mtu} bytes: its packets are not fragmented"
            yield Finding((*path, field), what, f"an MTU of {MBCF_MTU_LEAST} or more")
        if network.domains[first.segment] != network.domains[network.node(server).nics[0].segment]:
            yield Finding((*path, field), f"MBCF between {first.end} and {server}:eth0, which share no segment")


def _fixed_sockets(workload: OverSockets, images: dict[str, str], path: Path) -> Iterator[Finding]:
    """SSS-CORE's sockets have the buffers that they have, and its TCP never waits for more data."""
    ours = [name for name, image in images.items() if image == "ssscore"]
    if not ours:
        return
    for field in ("socket_buffer", "serving.socket_buffer"):
        place = workload.serving if field.startswith("serving") else workload
        if place.socket_buffer is not None:
            what = f"{field} with {ours[0]!r}, which boots ssscore: its sockets' buffers are fixed"
            yield Finding((*path, *field.split(".")), what, "leave it out")
    if not workload.tcp_nodelay or workload.serving.tcp_nodelay is False:
        what = f"tcp_nodelay with {ours[0]!r}, which boots ssscore: its TCP never waits for more data"
        yield Finding((*path, "tcp_nodelay"), what, "true")


def shared_endpoints(workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Finding]:
    """On Linux a process is a node of the cluster: two of them at the same time would be one node twice."""
    serving: dict[str, tuple[str, int]] = {}
    for number, workload in enumerate(workloads):
        if not isinstance(workload, SunRpc | Mbcf) or not any(map(is_mbcf, workload.transports)):
            continue
        if network.node(workload.server).image == "linux":
            first = serving.setdefault(workload.server, (workload.app, number))
            if first[0] != workload.app:
                yield Finding(("workloads", number, "server"), f"{workload.server!r} {_ONE}", "another server")
    for number, workload in enumerate(workloads):
        if not isinstance(workload, SunRpc | Mbcf) or not any(map(is_mbcf, workload.transports)):
            continue
        for client in workload.clients:
            if client in serving:
                yield Finding(("workloads", number, "clients"), f"{client!r} {_ONE}", "another client")
