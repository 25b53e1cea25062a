# SPDX-License-Identifier: Apache-2.0
"""Sun RPC, as the model asks for it: what its transports and the images at its ends cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sundial.expect.ip import PerPacket
from sundial.model.images import IMAGES, ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import check_edges_known, check_timeouts, resolve_sizes
from sundial.model.network import Network
from sundial.model.workload import Ends, Semantics, Transport, WorkloadBase, WorkloadKind
from sundial.workloads import sockets
from sundial.workloads.function_calls import check_functions
from sundial.workloads.mbcf import transports as over_mbcf
from sundial.workloads.sunrpc.expect import edge_sizes
from sundial.workloads.sunrpc.limits import credentials, function_limit, size_limit
from sundial.workloads.sunrpc.scenario import PROCEDURE, RINGS, TRANSPORTS, VRPC, VRPC_MBCF, SunRpc
from sundial.workloads.vmmc.model import check_backplane

_MBCF = ", ".join(over_mbcf.NAMES)
_RINGS = frozenset(each.name for each in RINGS)


def semantics_of(workload: SunRpc, transport: str) -> Semantics:
    """Semantics over `transport`: as written, or else the transport's."""
    return workload.semantics or TRANSPORTS[transport].semantics[0]


class SunRpcKind:
    """Sun RPC, as the model asks for it."""

    order = 1
    model = SunRpc
    transports: tuple[Transport, ...] = tuple(TRANSPORTS.values())

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform in over_mbcf.PLATFORMS

    def check(self, workload: SunRpc, ends: Ends, path: Path) -> Iterator[Invalid]:
        yield from check_functions(workload, path, "procedures")
        if "tcp" in workload.transports:
            yield from sockets.check_tcp_mtu(ends, path, otherwise=", or only udp")
        yield from _check_calls(workload, path)
        yield from _check_server(workload, ends.image(ends.server), path)
        yield from _check_semantics(workload, ends.image(ends.server), path)
        yield from _check_rings(workload, ends, path)
        over_nodes = _over_nodes(workload)
        if any(name != VRPC for name in over_nodes):
            yield from over_mbcf.check_wires(ends, path)
        if over_nodes:
            what = over_nodes[0] if over_nodes[0] in _RINGS else "MBCF"
            yield from check_edges_known(workload, what, path)
        yield from sockets.check_fixed_sockets(workload, ends, path)
        yield from sockets.check_options_used(workload, path, records=True)
        yield from sockets.check_own_buffers(workload, ends, path)
        yield from _check_threads(workload, ends, path)
        yield from check_timeouts(workload, path)

    def resolve(self, workload: SunRpc, ends: Ends, path: Path) -> tuple[SunRpc, list[Invalid]]:
        def edges(
            transport: str, client: str, mtu: int, smallest: int, largest: int, cells: PerPacket | None
        ) -> list[int]:
            credential, buffer = credentials(workload, client), workload.send_buffer or 0
            return edge_sizes(transport, mtu, smallest, largest, credential=credential, buffer=buffer, cells=cells)

        if workload.functions is not None:
            return workload, list(_check_fitting(workload, ends, path))
        workload = workload.model_copy(update={"procedures": workload.procedures or (PROCEDURE,)})
        return resolve_sizes(
            workload,
            ends,
            path,
            procedures=[name for name in workload.procedures if name != "null"],
            limit=lambda transport, procedure, client: size_limit(workload, transport, procedure, client),
            edges=edges,
        )

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        """What its MBCF transports cannot do beside others is checked for all of them by mbcf."""
        return iter(())


def _over_sockets(workload: SunRpc) -> list[str]:
    return [name for name in workload.transports if not TRANSPORTS[name].between_nodes]


def _over_nodes(workload: SunRpc) -> list[str]:
    return [name for name in workload.transports if TRANSPORTS[name].between_nodes]


def _in_rings(workload: SunRpc) -> list[str]:
    return [name for name in workload.transports if name in _RINGS]


def _check_rings(workload: SunRpc, ends: Ends, path: Path) -> Iterator[Invalid]:
    """What only vRPC has, and what it needs of machines."""
    rings = _in_rings(workload)
    if workload.wait is not None and not rings:
        yield Invalid(
            (*path, "wait"), f"wait has no effect over {workload.transports[0]}", f"transports: {VRPC}, {VRPC_MBCF}"
        )
    if workload.deliberate_above is not None and VRPC not in rings:
        what = f"deliberate_above has no effect over {workload.transports[0]}, which has no deliberate updates"
        yield Invalid((*path, "deliberate_above"), what, f"transports: {VRPC}")
    if not rings:
        return
    for field, name in (("server", ends.server), *(("clients", client) for client in ends.clients)):
        if ends.image(name).node_is_process:
            what = f"{rings[0]} is not available on {name!r}, which boots {ends.image(name).name}"
            yield Invalid((*path, field), what, "machines that boot ssscore")
            return
    if VRPC in rings:
        yield from check_backplane(ends, path)


def _check_calls(workload: SunRpc, path: Path) -> Iterator[Invalid]:
    others = [*_over_sockets(workload), *_in_rings(workload)]
    if workload.functions is not None:
        if workload.one_way:
            yield Invalid(
                (*path, "one_way"), "one_way cannot be combined with functions, whose calls all have replies", "false"
            )
        if workload.depth > 1:
            what = f"depth {workload.depth} cannot be combined with functions, which are called in sequence"
            yield Invalid((*path, "depth"), what, "1")
            return
    if others and not workload.ack:
        what = f"ack: false has no effect over {others[0]}, which has no such acknowledgement"
        yield Invalid((*path, "ack"), what, f"true, or the transports {_MBCF}")
    if others and workload.depth > 1:
        what = f"depth {workload.depth} is not supported over {others[0]}, whose client waits for each reply"
        yield Invalid((*path, "depth"), what, f"1, or the transports {_MBCF}")
    elif workload.one_way and workload.depth > 1:
        what = f"depth {workload.depth} has no effect with one_way, which has no replies"
        yield Invalid((*path, "depth"), what, "1")
    if workload.one_way and workload.functions is None and workload.procedures != ("sink",):
        what = f"one_way is not supported for {', '.join(workload.procedures or (PROCEDURE,))}: only sink has no result"
        yield Invalid((*path, "one_way"), what, "procedures: sink")
    elif workload.one_way and _in_rings(workload):
        what = f"one_way is not supported over {_in_rings(workload)[0]}"
        yield Invalid((*path, "one_way"), what, f"false, or the transports tcp, {_MBCF}")
    elif workload.one_way and "udp" in workload.transports:
        what = "one_way is not supported over udp: libtirpc always waits for a reply"
        yield Invalid((*path, "one_way"), what, f"transports: tcp, {_MBCF}")


def _check_fitting(workload: SunRpc, ends: Ends, path: Path) -> Iterator[Invalid]:
    for transport in workload.transports:
        for name in workload.functions or ():
            limits = [function_limit(workload, transport, name, client) for client in ends.clients]
            narrowest = next((limit for limit in limits if limit), None)
            if narrowest is not None:
                what = f"function {name} does not fit {narrowest} over {transport}"
                yield Invalid((*path, "functions"), what, "other functions, or another transport or message size")
                return


def _check_server(workload: SunRpc, image: ImageKind, path: Path) -> Iterator[Invalid]:
    """`image`: the server's."""
    refused = [name for name in workload.transports if name in over_mbcf.TASKS_ONLY]
    if refused and image.node_is_process:
        what = f"{refused[0]} is not supported by a server on image {image.name!r}, whose processes have no tasks"
        yield Invalid((*path, "transports"), what, "another transport, or a server on SSS-CORE")


def _check_semantics(workload: SunRpc, image: ImageKind, path: Path) -> Iterator[Invalid]:
    """`image`: the server's."""
    for transport in workload.transports:
        allowed = TRANSPORTS[transport].semantics
        if workload.semantics is not None and workload.semantics not in allowed:
            what = f"{workload.semantics} is not supported over {transport}"
            yield Invalid((*path, "semantics"), what, f"{', '.join(allowed)} over {transport}")
            return
    keeps_none = {"tcp", *_RINGS}
    cached = workload.semantics == "at_most_once" and not keeps_none.issuperset(workload.transports)
    if cached and "udp" in workload.transports and not image.keeps_replies:
        what = f"at_most_once over udp needs a server that keeps replies, and image {image.name!r} has none"
        yield Invalid((*path, "semantics"), what, f"at_least_once, or {_server_on('keeps_replies')}")
    if workload.reply_cache is not None and not cached:
        what = "reply_cache has no effect without at_most_once over udp or MBCF"
        allowed_over = f"semantics: at_most_once, transports: udp, {_MBCF}"
        yield Invalid((*path, "reply_cache"), what, allowed_over)
    others = _over_sockets(workload)
    if workload.die is not None and others and not image.keeps_replies:
        what = f"die is not supported by a server for {others[0]} on image {image.name!r}"
        yield Invalid((*path, "die"), what, f"{_server_on('keeps_replies')}, or MBCF transports")
    if workload.die is not None and workload.die.restart and not image.restarts_services:
        what = f"restart is not supported by image {image.name!r}, which cannot restart a service"
        yield Invalid((*path, "die", "restart"), what, _server_on("restarts_services"))


def _check_threads(workload: SunRpc, ends: Ends, path: Path) -> Iterator[Invalid]:
    if workload.threads == 1:
        return
    single = [(name, ends.image(name)) for name in ends.clients if ends.image(name).one_client_thread]
    who = [f"{name!r}, which boots {image.name}" for name, image in single]
    who += [f"transport {name}" for name in _over_nodes(workload)]
    if who:
        what = f"{workload.threads} threads are too many for {who[0]}: its client has one"
        yield Invalid((*path, "threads"), what, "1 (for parallel calls over MBCF use depth)")


def _server_on(capability: str) -> str:
    """The images that have a capability, as what is allowed."""
    names = " or ".join(name for name, image in IMAGES.items() if getattr(image, capability))
    return f"a server that boots {names}"


KIND: WorkloadKind[SunRpc] = SunRpcKind()
