# SPDX-License-Identifier: Apache-2.0
"""Strategies for workloads on a network: each kind's fields, and what its rules ask of several of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from sundial.model.images import ImageKind
from sundial.model.scenario import KINDS
from sundial.model.workload import Serving
from sundial.units import SIZE
from sundial.workloads import functions
from sundial.workloads.dce.expect import FRAGMENT_LEAST, FRAGMENT_MOST, FRAGMENT_STEP
from sundial.workloads.dce.expect import SIZE_MOST as DCE_MOST
from sundial.workloads.grpc.model import versions_of
from sundial.workloads.mbcf import transports as over_mbcf
from sundial.workloads.raw.expect import TCP_LEAST
from sundial.workloads.rpyc.model import Rpyc
from sundial.workloads.server_death import ServerDeath
from sundial.workloads.sockets import LINUX, TCP_MTU_LEAST
from sundial.workloads.sunrpc.scenario import RINGS, TRANSPORTS, VRPC, Dying, SunRpc
from tests.random.fields import Strategy, document, seldom, subset, whole
from tests.random.fields import field as of_field
from tests.random.networks import Net

SIZES = (0, 1, 3, 4, 64, 100, 511, 1000, 1024, 1472, 1473, 2921, 4000, 8192, 8193)
LARGE = (20_000, 30_000, 65_000, 100_000)
CALLS = (1, 2, 3, 5, 10)
TOTALS = ("25 s", "60 s", "10 s")
RETRIES = ("1 s", "300 ms", "2500 ms", "5 s", "100 ms")
BUFFERS = ("100 B", "200 B", "1000 B", "4 KiB", "64 KiB", "1 MiB")
HASTY_S = 10.0
"""A client of so many seconds at one million instructions a second may ask again before a server has answered."""


@dataclass(frozen=True)
class Place:
    """One workload's machines, and its position among the others."""

    net: Net
    server: str
    clients: list[str]
    number: int

    @property
    def images(self) -> list[ImageKind]:
        return [self.net.image(name) for name in (self.server, *self.clients)]

    @property
    def serving(self) -> ImageKind:
        return self.net.image(self.server)

    @property
    def processes(self) -> bool:
        """True if a node of MBCF is a process somewhere."""
        return any(image.node_is_process for image in self.images)

    @property
    def one_domain(self) -> bool:
        return self.net.shape not in ("routed", "loopback")

    @property
    def over_mbcf(self) -> bool:
        return self.one_domain and self.net.mtu >= over_mbcf.MTU_LEAST and not self.net.corrupts

    @property
    def over_tcp(self) -> bool:
        return self.net.mtu >= TCP_MTU_LEAST

    @property
    def ends(self) -> dict[str, Any]:
        # Routers are hosts, too.
        everyone = self.server == "server" and self.clients == self.net.clients and self.net.shape != "routed"
        return {"clients": "*" if everyone else self.clients, "server": self.server}


@st.composite
def workloads(draw: st.DrawFn, net: Net, apps: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """One to three workloads."""
    count = draw(st.sampled_from((1, 1, 2, 3)))
    return [draw(workload(net, number, apps)) for number in range(count)]


@st.composite
def workload(draw: st.DrawFn, net: Net, number: int, apps: Sequence[str] | None = None) -> dict[str, Any]:
    """One of the kinds that the machines at its ends can run."""
    place = Place(net, *draw(_ends(net)), number)
    able = [app for app in KINDS if app in OPTIONS and all(KINDS[app].runs_on(image) for image in place.images)]
    able = [app for app in able if app not in NEEDS or NEEDS[app](place)]
    if apps is not None:
        able = [app for app in able if app in apps] or able
    # Sun RPC has the most options.
    app = draw(st.sampled_from([*able, *(each for each in able if each == "sunrpc")]))
    if app in ONE_CLIENT:
        place = replace(place, clients=place.clients[:1])
    given = {"app": app, "trace": _trace(place, app), **place.ends, "series": st.sampled_from((1, 1, 1, 2))}
    found: dict[str, Any] = draw(document(KINDS[app].model, {**given, **draw(OPTIONS[app](place))}))
    return {name: value for name, value in found.items() if value is not None}


@st.composite
def _ends(draw: st.DrawFn, net: Net) -> tuple[str, list[str]]:
    """A server and its clients; now and then in other roles than their names say."""
    if not net.clients:
        return "server", ["server"]
    if draw(seldom(8)) and net.shape != "routed":
        server, *others = draw(st.permutations(list(net.images)))
        return server, others[:1]
    return "server", draw(subset(net.clients)) if draw(seldom(3)) else net.clients


def _trace(place: Place, app: str) -> Strategy | None:
    silent = not all(image.kallsyms or image.fixed_kernel for image in place.images)
    # The steps of DCE are functions of Linux alone.
    silent = silent or (app == "dce" and any(image.platform != LINUX for image in place.images))
    if silent or place.net.clock == "real" or place.server in place.clients:
        return None
    return seldom(12).map(lambda traced: "steps" if traced else "none")


def sizes(least: int, most: int, step: int = 1) -> Strategy:
    """One to three sizes that are multiples of `step`; seldom a large one, or the edges between two."""
    known = [size for size in SIZES if least <= size <= most and size % step == 0] or [least]
    large = [size for size in (*LARGE, most) if least <= size <= most and size % step == 0] or known
    odd = st.integers(-(-least // step), min(most, 9000) // step).map(lambda count: count * step)
    one = st.one_of(st.sampled_from(known), st.sampled_from(known), odd)
    one = st.one_of(one, one, one, one, one, one, st.sampled_from(large))
    return st.lists(one, min_size=1, max_size=3, unique=True)


@st.composite
def _edges(draw: st.DrawFn, least: int, most: int) -> list[Any]:
    """The sizes at which the number of packets, or of cells, changes."""
    first = draw(st.integers(least, max(least, min(most, 4000) - 300)))
    return [first, min(most, first + 200), draw(st.sampled_from(("edges", "edges", "cell-edges")))]


def _calling(place: Place) -> dict[str, Any]:
    """What workloads have that call by size or function over sockets."""
    real = place.net.clock == "real"
    options: dict[str, Any] = {
        "calls": st.sampled_from(CALLS),
        "warmup": st.sampled_from((1, 0, 2)),
        "retry_timeout": st.sampled_from(RETRIES),
        "total_timeout": "10 s" if real else st.sampled_from(TOTALS),
        "threads": None if any(image.one_client_thread for image in place.images) else st.sampled_from((1, 1, 2, 4)),
    }
    if any(image.fixed_sockets for image in place.images):
        options |= {"socket_buffer": None, "serving": None, "tcp_nodelay": None}
    if place.net.calm or place.server in place.clients:
        options |= {"socket_buffer": None}
    return options


def _serving(transports: Sequence[str], *, records: bool) -> Strategy | None:
    """Options of the server that have an effect over `transports`."""
    having = {"tcp_nodelay": "tcp" in transports, "socket_buffer": False}
    having |= dict.fromkeys(("send_buffer", "recv_buffer"), records and "tcp" in transports)
    given = {name: None for name, has in having.items() if not has}
    buffers = dict.fromkeys(("send_buffer", "recv_buffer"), st.sampled_from(BUFFERS))
    return document(Serving, {**buffers, **given}) if any(having.values()) else None


@st.composite
def _sunrpc(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    ways = [["udp"], ["tcp"], ["udp", "tcp"]] if place.over_tcp else [["udp"]]
    if place.over_mbcf:
        tasks = place.serving.node_is_process
        nodes = [name for name in over_mbcf.NAMES if not (tasks and name in over_mbcf.TASKS_ONLY)]
        rings = [each.name for each in RINGS if each.name != VRPC or place.net.shape == "backplane"]
        nodes += [] if place.processes else rings
        ways += [[name] for name in nodes]
        # Only here is there a backplane.
        ways += [[VRPC]] * 4 if VRPC in nodes else []
    transports = draw(st.sampled_from(ways))
    udp, tcp = "udp" in transports, "tcp" in transports
    nodes_only = TRANSPORTS[transports[0]].between_nodes
    ring = transports[0] in {each.name for each in RINGS}
    mbcf = nodes_only and not ring
    found = _calling(place)
    found["transports"] = transports
    if nodes_only:
        found |= {"socket_buffer": None, "serving": None, "tcp_nodelay": None, "threads": None}
    elif "serving" not in found:
        found["serving"] = _serving(transports, records=True)
    if not tcp:
        found |= {"send_buffer": None, "recv_buffer": None, "tcp_nodelay": None}
    for name in ("send_buffer", "recv_buffer"):
        found.setdefault(name, st.sampled_from(BUFFERS))
    most = 65536 if nodes_only else 200_000
    found["udp_message_size"] = None
    if udp:
        message = draw(st.sampled_from((8800, 8800, 8800, 1500, 400, 60000, 65504)))
        most = message - 100
        found["udp_message_size"] = message if message != 8800 else None
    most = 1300 if transports == ["mbcf1"] else most
    functional = udp is False and transports != ["mbcf1"] and draw(seldom(6))
    if functional:
        found |= _functions(place)
        found |= {"procedures": None, "one_way": None, "depth": None}
    else:
        one_way = ((tcp and not udp) or mbcf) and draw(seldom(6))
        procedures = ["sink"] if one_way else draw(subset(("echo", "null", "sink", "source", "echo_string"), 2))
        most = min(most, 9000) if "echo_string" in procedures else most
        found |= {"functions": None, "procedures": procedures, "one_way": one_way or None}
        found["depth"] = st.sampled_from((1, 2, 8)) if mbcf and not one_way else None
        found["sizes"] = sizes(0, most)
        if not nodes_only and draw(seldom(10)):
            found["sizes"] = _edges(0, most)
    found["ack"] = st.booleans() if mbcf else None
    semantics = [
        each
        for each in TRANSPORTS[transports[0]].semantics
        if all(each in TRANSPORTS[name].semantics for name in transports)
    ]
    if udp and not place.serving.keeps_replies:
        semantics = [each for each in semantics if each != "at_most_once"]
    chosen = draw(st.sampled_from([None, None, *semantics]))
    found["semantics"] = chosen
    keeps = chosen == "at_most_once" and (udp or mbcf)
    found["reply_cache"] = whole(1, 64) if keeps and draw(st.booleans()) else None
    dies = not place.net.calm and (place.serving.keeps_replies or mbcf) and draw(seldom(15))
    found["die"] = None
    if dies:
        restart = st.booleans() if place.serving.restarts_services else None
        found["die"] = document(Dying, {"call": whole(1, 10), "restart": restart})
    found |= {} if ring else {"wait": None}
    above = st.none() | of_field(SunRpc, "deliberate_above")
    found["deliberate_above"] = above if transports == [VRPC] else None
    return found


def _functions(place: Place, most: int = 4) -> dict[str, Any]:
    return {
        "functions": subset(functions.NAMES, most),
        "sizes": None,
        "order": None,
        "calls": st.sampled_from((1, 2, 3)),
    }


@st.composite
def _raw(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    transports = draw(subset(("udp", "tcp"))) if place.over_tcp else ["udp"]
    found = _calling(place)
    found |= {"transports": transports, "serving": _serving(transports, records=False)}
    if "tcp" not in transports:
        found["tcp_nodelay"] = None
    if draw(seldom(6)):
        return {**found, **_functions(place)}
    most = 65_507 if "udp" in transports else 200_000
    least = TCP_LEAST if "tcp" in transports else 0
    chosen = _edges(least, most) if draw(seldom(10)) else sizes(least, most)
    return {**found, "functions": None, "sizes": chosen}


@st.composite
def _iperf3(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    transports = draw(st.sampled_from((["udp"], ["tcp"], ["udp", "tcp"])))
    found: dict[str, Any] = {
        "transports": transports,
        "duration": st.sampled_from(("1 s", "1 s", "2 s")),
        "streams": st.sampled_from((1, 1, 2, 4, 8)),
        "serving": None,
        "socket_buffer": None if place.net.calm else st.sampled_from(("64 KiB", "1 MiB", "8 KiB")),
        "series": None,
    }
    if "udp" not in transports:
        found["rate"] = None
    if "tcp" not in transports:
        found["tcp_nodelay"] = None
    return found


@st.composite
def _mbcf(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    atomic = draw(seldom(3))
    operations = draw(subset(("swap", "cas", "fetch_add") if atomic else ("write", "read", "fifo", "signal")))
    streams = not {"read", "swap", "cas", "fetch_add"} & set(operations)
    most = 1376 if "signal" in operations else 100_000
    return {
        "operations": operations,
        "modes": subset(("round_trip", "stream")) if streams else None,
        "sizes": [8] if atomic else sizes(0, most),
        "calls": st.sampled_from(CALLS),
        "warmup": st.sampled_from((1, 0, 2)),
        "total_timeout": st.sampled_from(TOTALS),
    }


@st.composite
def _dce(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    broadcast = place.net.shape in ("one", "backplane") and len(place.clients) == 1
    semantics = ["at_most_once", "at_most_once", "idempotent", "maybe", *(["broadcast"] if broadcast else [])]
    chosen = draw(st.sampled_from(semantics))
    fragment = draw(
        st.sampled_from((4096, 4096, FRAGMENT_LEAST, FRAGMENT_MOST)) | _steps(FRAGMENT_LEAST, FRAGMENT_MOST)
    )
    found: dict[str, Any] = {
        # Servers with other options have other ports.
        "port": 1027 + place.number,
        "transports": None,
        "semantics": chosen,
        "fragment": fragment,
        "window": st.integers(max(3, -(-fragment // 1024)), 64).map(lambda count: SIZE.show(count * 1024)),
        "binding": "mapper" if chosen != "broadcast" and place.number == 0 and draw(seldom(4)) else None,
        "policy": st.sampled_from(("window", "halves", *(["osf"] if chosen != "broadcast" else []))),
        "calls": st.sampled_from(CALLS),
        "warmup": st.sampled_from((1, 0, 2)),
        "threads": st.sampled_from((1, 1, 2, 4)),
        "give_up": "10 s" if place.net.clock == "real" else st.sampled_from(("30 s", "10 s")),
        "resend": st.sampled_from(("2 s", "500 ms", "100 ms", "5 s")),
        "cancel": None if place.net.calm else st.sampled_from((None, None, None, "100 ms", "3 s")),
        "work": st.sampled_from((0, 0, 0, 50, 3000)),
        "socket_buffer": None,
    }
    if chosen in ("at_most_once", "idempotent") and draw(seldom(6)):
        return {**found, **_functions(place), "procedures": None}
    procedures = draw(subset(("put", "null") if chosen == "maybe" else ("put", "null", "get", "echo"), 2))
    found |= {"functions": None, "procedures": procedures}
    found["sizes"] = sizes(0, 1300 if chosen == "broadcast" else min(DCE_MOST, 100_000))
    return found


def _steps(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(-(-least // FRAGMENT_STEP), most // FRAGMENT_STEP).map(lambda count: count * FRAGMENT_STEP)


def _twelve(place: Place) -> dict[str, Any]:
    """What the systems of the twelve functions share."""
    dies = not place.net.calm
    return {
        "functions": subset(functions.NAMES, 4),
        "calls": st.sampled_from((1, 2, 3)),
        "warmup": st.sampled_from((1, 0)),
        "die": (seldom(10) if dies else st.just(False)).flatmap(
            lambda drawn: document(ServerDeath, {"call": whole(1, 6)}) if drawn else st.none()
        ),
        "total_timeout": "10 s" if place.net.clock == "real" else st.sampled_from(TOTALS),
    }


def _rpyc(place: Place) -> Strategy:
    port = 18861 + 2 * place.number if place.number else None
    return st.just({**_twelve(place), "port": port, "distance": of_field(Rpyc, "distance")})


@st.composite
def _grpc(draw: st.DrawFn, place: Place) -> dict[str, Any]:
    languages = set.intersection(*(set(versions_of(image)) for image in place.images))
    probe = draw(seldom(4))
    return {
        **_twelve(place),
        "languages": draw(subset(sorted(languages))),
        "port": 50051 + 10 * place.number if place.number else None,
        "bdp_probe": probe or None,
        "control_frames": "counted" if probe or draw(seldom(6)) else None,
        "max_workers": st.sampled_from((1, 1, 2, 8)),
    }


def _vmmc(place: Place) -> Strategy:
    return st.just(_stores(sizes(8, 65_536, 8)))


def _shrimprpc(place: Place) -> Strategy:
    return st.just(_stores(sizes(0, 8000)))


def _stores(sizes: Strategy) -> dict[str, Any]:
    return {
        "sizes": sizes,
        "calls": st.sampled_from(CALLS),
        "warmup": st.sampled_from((1, 0, 2)),
        "total_timeout": st.sampled_from(TOTALS),
    }


OPTIONS: dict[str, Callable[[Place], Strategy]] = {
    "sunrpc": _sunrpc,
    "raw": _raw,
    "iperf3": _iperf3,
    "mbcf": _mbcf,
    "dce": _dce,
    "grpc": _grpc,
    "rpyc": _rpyc,
    "vmmc": _vmmc,
    "shrimprpc": _shrimprpc,
}
"""Fields of each kind that depend on its place, or on one another."""

NOT_DRAWN = {"command": "programs of users: tests/workloads/command"}
"""Kinds that no case has, with the reason."""
ONE_CLIENT = ("iperf3", "mbcf")
"""Whose servers serve one client at a time."""
NEEDS: dict[str, Callable[[Place], bool]] = {
    "iperf3": lambda place: place.over_tcp and place.server not in place.clients,
    "mbcf": lambda place: place.over_mbcf,
    "grpc": lambda place: place.over_tcp,
    "rpyc": lambda place: place.over_tcp,
    "vmmc": lambda place: place.net.shape == "backplane",
    "shrimprpc": lambda place: place.net.shape == "backplane",
}
"""What else than images a kind asks for."""
