# SPDX-License-Identifier: Apache-2.0
"""Strategies for topologies: shapes of wires, machines on them, and what the wires do to frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from sundial.model.devices import Bridge
from sundial.model.images import IMAGES, ImageKind
from sundial.model.impairments import Impairments
from sundial.model.segment import MTU_LEAST, GilbertElliott
from sundial.model.topology import SEGMENT_KINDS, Defaults, Interface, Machine
from sundial.segments.atm.model_parts import Contract, Faults, Lane, Queue
from sundial.units import RATE, TIME, Quantity
from tests.random.fields import CORRELATIONS, Strategy, document, seldom, whole
from tests.random.fields import field as of_field

SHAPES = ("one", "one", "one", "device", "netem", "routed", "loopback", "backplane")
"""One segment; two that a device joins; two that a machine's kernel joins; two or three between routers; none but a
machine's own; one, and a backplane."""
KINDS = ("link", "hub", "switch", "atm")
CLIENTS_MOST = 3
MTUS = (1500, 1500, 1500, 576, 1006, 1492, 4352, 9000)
ODD_MTUS = (MTU_LEAST, 88, 296, 1280, 1501, 9180)
MIPS = (125, 62.5, 125, 31.25, 125)
"""Each machine of another speed boots for a snapshot, so few are drawn often."""
STRONGEST = Decimal(20)
"""Percent of the frames of one direction that something may happen to."""


@dataclass
class Net:
    """A topology that grows, and what workloads have to know of it."""

    clock: str
    calm: bool
    """Nothing on its wires loses, delays or discards a frame."""
    shape: str = "one"
    images: dict[str, str] = field(default_factory=dict)
    """By host."""
    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    devices: dict[str, Any] = field(default_factory=dict)
    segments: dict[str, dict[str, Any]] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    mtu: int = 1500
    slowest: float = 125
    """Million instructions a second."""

    @property
    def clients(self) -> list[str]:
        return [name for name in self.images if name != "server"]

    def image(self, host: str) -> ImageKind:
        return IMAGES[self.images[host]]

    @property
    def corrupts(self) -> bool:
        """True if some wire flips bits."""
        return "corrupt" in str([self.segments, self.machines])

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = {"description": f"Random: {self.shape}"}
        if self.clock == "real":
            # Where KVM can be had, it would be the host's choice.
            found |= {"clock": "real", "accelerator": "tcg"}
        for name in ("defaults", "machines", "devices", "segments"):
            if getattr(self, name):
                found[name] = getattr(self, name)
        return found


@st.composite
def networks(
    draw: st.DrawFn, images: Sequence[str], shapes: Sequence[str] = SHAPES, kinds: Sequence[str] = KINDS
) -> Net:
    """A network of machines that boot some of `images`."""
    shape = draw(st.sampled_from([shape for shape in shapes if any(_able(shape, IMAGES[name]) for name in images)]))
    real = shape not in ("loopback", "backplane") and draw(seldom(10))
    net = Net("real" if real else "virtual", calm=draw(seldom(4)), shape=shape)
    able = [IMAGES[name] for name in images if _able(shape, IMAGES[name])]
    least, most = min(image.mtu_least for image in able), max(image.mtu_most for image in able)
    mtus = [mtu for mtu in (ODD_MTUS if draw(seldom(8)) else MTUS) if least <= mtu <= most]
    net.mtu = draw(st.sampled_from(mtus))
    build = {"device": _joined, "netem": _joined, "routed": _routed, "loopback": _loopback}.get(shape, _one)
    draw(build(net, images, kinds))
    if shape == "backplane":
        ports = [f"{name}:vmmc0" for name in net.images]
        for name in net.images:
            net.machines[name]["interfaces"]["vmmc0"] = {}
        kind = SEGMENT_KINDS["vmmc"].model
        assert kind is not None
        net.segments["backplane"] = draw(document(kind, {"ports": ports, "mtu": None, "adapter": None}))
    draw(_machines(net))
    return net


@st.composite
def _hosts(draw: st.DrawFn, net: Net, images: Sequence[str], most: int = CLIENTS_MOST) -> list[str]:
    """The names of the hosts, whose images are in `net`."""
    fitting = [name for name in images if _fits(net, IMAGES[name])]
    count = draw(st.integers(1, most))
    names = ["client"] if count == 1 else [f"client{number + 1}" for number in range(count)]
    server = draw(st.sampled_from(fitting))
    for name in ["server", *names]:
        other = name != "server" and draw(seldom(4))
        net.images[name] = draw(st.sampled_from(fitting)) if other else server
    return names


def _fits(net: Net, image: ImageKind) -> bool:
    return _able(net.shape, image) and image.mtu_least <= net.mtu <= image.mtu_most


def _able(shape: str, image: ImageKind) -> bool:
    needs = {"backplane": image.maps_adapters, "routed": image.routes, "loopback": image.platform == "linux"}
    return needs.get(shape, True)


@st.composite
def _one(draw: st.DrawFn, net: Net, images: Sequence[str], kinds: Sequence[str]) -> None:
    kind = draw(st.sampled_from([each for each in kinds if each != "link" or net.shape != "backplane"] or KINDS))
    clients = draw(_hosts(net, images, 1 if kind == "link" else CLIENTS_MOST))
    for number, name in enumerate(["server", *clients], 1):
        _plug(net, name, f"10.0.0.{number}/24")
    net.segments["lan"] = draw(_segment(net, kind, [f"{name}:eth0" for name in net.images]))


@st.composite
def _joined(draw: st.DrawFn, net: Net, images: Sequence[str], kinds: Sequence[str]) -> None:
    """Clients on one side of a bridge, the server on the other."""
    near = draw(st.sampled_from(kinds))
    far = draw(st.sampled_from(KINDS))
    clients = draw(_hosts(net, images, 1 if near == "link" else CLIENTS_MOST))
    for number, name in enumerate(["server", *clients], 1):
        _plug(net, name, f"10.0.0.{number}/24")
    ends = [("near", near, [f"{name}:eth0" for name in clients]), ("far", far, ["server:eth0"])]
    if net.shape == "device":
        ports = ["a0", "b0"]
        queue = {"queue_frames": None, "mac_table_entries": None, "ageing": None} if net.calm else {}
        net.devices["joint"] = draw(document(Bridge, {"interfaces": ports, **queue}))
    else:
        ports = ["eth0", "eth1"]
        shapers = {port: {} if net.calm else draw(_netem(net)) for port in ports}
        net.machines["joint"] = {"role": "bridge", "image": "linux", "interfaces": shapers}
    for port, (name, kind, others) in zip(ports, ends, strict=True):
        net.segments[name] = draw(_segment(net, kind, [*others, f"joint:{port}"], bridged=True))


@st.composite
def _routed(draw: st.DrawFn, net: Net, images: Sequence[str], kinds: Sequence[str]) -> None:
    """Clients, one or two routers, the server: a subnet for each wire."""
    routers = draw(st.sampled_from((1, 1, 2)))
    near = draw(st.sampled_from(kinds))
    clients = draw(_hosts(net, images, 1 if near == "link" else CLIENTS_MOST))
    subnets = [f"10.0.{number + 1}" for number in range(routers + 1)]
    for number, name in enumerate(clients, 1):
        _plug(net, name, f"{subnets[0]}.{number}/24", [(f"{subnets[-1]}.0/24", f"{subnets[0]}.254")])
    _plug(net, "server", f"{subnets[-1]}.1/24", [(f"{subnets[0]}.0/24", f"{subnets[-1]}.253")])
    wires: list[list[str]] = [[] for _ in subnets]
    wires[0] += [f"{name}:eth0" for name in clients]
    for number in range(routers):
        before, after = subnets[number : number + 2]
        # On each subnet .254 is at its near end, .253 at its far one.
        last, first = number == routers - 1, number == 0
        ways = [] if last else [(f"{subnets[-1]}.0/24", f"{after}.254")]
        ways += [] if first else [(f"{subnets[0]}.0/24", f"{before}.253")]
        name = f"router{number + 1}"
        net.machines[name] = {
            "image": "linux",
            "interfaces": {"eth0": {"address": f"{before}.254/24"}, "eth1": {"address": f"{after}.253/24"}},
        }
        if ways:
            net.machines[name]["routes"] = [{"to": to, "via": via} for to, via in ways]
        wires[number].append(f"{name}:eth0")
        wires[number + 1].append(f"{name}:eth1")
    wires[-1].append("server:eth0")
    for number, ports in enumerate(wires):
        kind = near if number == 0 else draw(st.sampled_from(KINDS))
        net.segments[f"net{number + 1}"] = draw(_segment(net, kind, ports))


@st.composite
def _loopback(draw: st.DrawFn, net: Net, images: Sequence[str], kinds: Sequence[str]) -> None:
    """One machine that calls itself; the wire between its interfaces is idle."""
    net.images["server"] = draw(st.sampled_from([name for name in images if _fits(net, IMAGES[name])]))
    net.machines["server"] = {
        "loopback": "captured",
        "interfaces": {"eth0": {"address": "10.0.0.1/24"}, "eth1": {"address": "10.0.0.2/24"}},
    }
    net.segments["spare"] = {"kind": "link", "rate": "100 Mbit/s", "ports": ["server:eth0", "server:eth1"]}
    net.mtu = 1500


def _plug(net: Net, name: str, address: str, routes: Sequence[tuple[str, str]] = ()) -> None:
    net.machines[name] = {"interfaces": {"eth0": {"address": address}}}
    if routes:
        net.machines[name]["routes"] = [{"to": to, "via": via} for to, via in routes]


@st.composite
def _machines(draw: st.DrawFn, net: Net) -> None:
    """Images, speeds, adapters and interfaces."""
    common = draw(st.sampled_from(sorted(set(net.images.values()))))
    if common != "linux":
        net.defaults["image"] = common
    latency = draw(seldom()) and net.shape != "backplane"
    net.defaults |= draw(document(Defaults, {"image": None, "mips": None, "mtu": None, "adapter": None}))
    if latency:
        net.defaults["adapter"] = draw(of_field(Defaults, "adapter"))
    for name, machine in net.machines.items():
        if name in net.images:
            machine.pop("image", None)
            if net.images[name] != common:
                machine["image"] = net.images[name]
        mips = draw(of_field(Machine, "mips") if draw(seldom(15)) else st.sampled_from(MIPS))
        net.slowest = min(net.slowest, mips)
        if mips != 125:
            machine["mips"] = mips
        for device, interface in machine["interfaces"].items():
            own = {"address": None, "netem": None, "mtu": None}
            if device != "vmmc0" and draw(seldom(8)):
                interface |= draw(document(Interface, own))


@st.composite
def _segment(draw: st.DrawFn, net: Net, kind: str, ports: list[str], *, bridged: bool = False) -> dict[str, Any]:
    model = SEGMENT_KINDS[kind].model
    assert model is not None
    given: dict[str, Any] = {"ports": ports, "mtu": net.mtu if net.mtu != 1500 else None}
    if net.calm:
        calm = ("adapter", "queue_frames", "mac_table_entries", "ageing", "contracts", "queue", "lane", "shaping")
        given |= dict.fromkeys(calm)
    given["impairments"] = None
    if kind == "link" and not net.calm:
        given["impairments"] = _by(st.sampled_from(["both", *ports]), impairments(net))
    if kind == "atm":
        given |= draw(_atm(net, ports, bridged=bridged))
    if kind == "hub":
        given["rate"] = st.sampled_from(("10 Mbit/s", "100 Mbit/s"))
    found: dict[str, Any] = draw(document(model, given, ports=ports))
    return found


@st.composite
def _atm(draw: st.DrawFn, net: Net, ports: list[str], *, bridged: bool) -> dict[str, Any]:
    """What its encapsulation allows."""
    device = bridged and net.shape == "device"
    ways = ("bridged", "bridged-fcs") if bridged and not device else ("lane", "bridged", "bridged-fcs")
    encapsulation = draw(st.sampled_from(ways if bridged else (*ways, "routed")))
    given: dict[str, Any] = {"encapsulation": encapsulation, "mtu": net.mtu, "frame_size": None, "contracts": None}
    if encapsulation == "lane":
        given["frame_size"] = next(size for size in (1516, 4544, 9234) if net.mtu <= size - 16)
    else:
        given["lane"] = None
    if net.calm:
        return given
    if draw(st.booleans()):
        given["impairments"] = _by(
            st.sampled_from(["both", *(f"{way} {port}" for way in ("from", "to") for port in ports)]), faults(net)
        )
    if draw(seldom(4)):
        # At 1 Mbit/s three cells conform from 0.85 ms on.
        tolerance = st.sampled_from(("1 ms", "3 ms", "20 ms", "100 us"))
        given["contracts"] = _by(st.sampled_from(ports), document(Contract, {"tolerance": tolerance}))
    if draw(st.booleans()):
        cells = draw(of_field(Queue, "cells"))
        within = {"cells": cells, "epd_above": None, **dict.fromkeys(("vc_cells", "clp1_above"), whole(1, cells))}
        discard = draw(of_field(Queue, "discard"))
        if discard == "epd" and draw(st.booleans()):
            within["epd_above"] = whole(1, cells)
        given["queue"] = document(Queue, {**within, "discard": discard})
    if encapsulation == "lane" and draw(st.booleans()):
        given["lane"] = document(Lane)
    return given


def _by(keys: st.SearchStrategy[str], value: Strategy) -> Strategy:
    return st.dictionaries(keys, value, min_size=1, max_size=2)


def _share(most: Decimal) -> Strategy:
    """Percentages up to `most`."""
    steps = [Decimal(each) for each in ("0.1", "0.5", "1", "2", "3", "5", "10", "15", "20", "0")]
    return st.sampled_from([f"{each} %" for each in steps if each <= most])


def _strength(net: Net) -> Strategy:
    """The most of all shares of one direction, in percent."""
    return st.sampled_from([Decimal(each) for each in (1, 5, 10)] + [STRONGEST] * (net.clock == "virtual"))


@st.composite
def impairments(draw: st.DrawFn, net: Net) -> dict[str, Any]:
    """What netem can do in one direction: one thing, or several at once."""
    chosen = draw(st.lists(st.sampled_from(_TURNS), min_size=1, max_size=4, unique=True))
    # Clients give up at lines that let hardly anything through.
    most = draw(_strength(net)) / max(1, len({"loss", "gemodel", "corrupt"} & set(chosen)))
    real = net.clock == "real"
    found: dict[str, Any] = {}

    def put(name: str, value: Strategy) -> None:
        found[name] = draw(value)

    def usual(name: str) -> Strategy:
        return of_field(Impairments, name)

    for turn in chosen:
        if turn == "delay" or (turn == "reorder" and "delay" not in found):
            put("delay", st.sampled_from(("1 ms", "5 ms", "30 ms")) if real else usual("delay"))
        if turn == "delay" and draw(st.booleans()):
            put("jitter", usual("jitter"))
            if _amount(found["jitter"], TIME) and draw(st.booleans()):
                put("distribution", usual("distribution"))
            if _amount(found["jitter"], TIME) and draw(seldom(4)):
                put("delay_correlation", st.sampled_from(CORRELATIONS))
        if turn == "gemodel" and "loss" not in found:
            put("gemodel", bursts(most))
        if turn in _SHARES and not (turn == "loss" and "gemodel" in found):
            put(turn, _share(most))
            if draw(seldom(4)):
                put(f"{turn}_correlation", st.sampled_from(CORRELATIONS))
        if turn == "reorder" and draw(seldom(3)):
            put("gap", usual("gap"))
        if turn == "rate":
            put("rate", usual("rate"))
            if draw(seldom(3)):
                put("packet_overhead", usual("packet_overhead"))
            if draw(seldom(3)):
                put("cell_size", usual("cell_size"))
                if draw(st.booleans()):
                    put("cell_overhead", usual("cell_overhead"))
        if turn == "limit":
            put("limit", usual("limit"))
    return found


_SHARES = ("loss", "duplicate", "corrupt", "reorder")
_TURNS = (*_SHARES, "gemodel", "delay", "rate", "limit")


@st.composite
def bursts(draw: st.DrawFn, most: Decimal) -> dict[str, Any]:
    """A loss model of two states that loses at most about that share."""
    found: dict[str, Any] = draw(
        document(GilbertElliott, {"p": _share(most), "r": st.sampled_from(("100 %", "80 %", "50 %"))})
    )
    return found


@st.composite
def faults(draw: st.DrawFn, net: Net) -> dict[str, Any]:
    """What a line does to cells, of which a frame has up to two hundred."""
    most = draw(st.sampled_from([Decimal(each) for each in ("0.1", "0.5", "2")]))
    loss = draw(st.sampled_from(("cell_loss", "gemodel", None)))
    given: dict[str, Any] = {"cell_loss": None, "gemodel": None}
    if loss is not None:
        given[loss] = bursts(most) if loss == "gemodel" else _share(most)
    found: dict[str, Any] = draw(document(Faults, {**given, "payload_bit": _share(most), "header_bit": _share(most)}))
    for name in ("payload_bit", "header_bit"):
        if draw(st.booleans()):
            found.pop(name, None)
    return found


@st.composite
def _netem(draw: st.DrawFn, net: Net) -> dict[str, Any]:
    """An interface of a bridge."""
    return {"netem": tc(draw(impairments(net)))} if draw(st.booleans()) else {}


def _microseconds(time: str) -> str:
    """tc takes no ns."""
    return f"{-(-_amount(time, TIME) // 1000)}us"


def tc(given: dict[str, Any]) -> str:
    """Impairments as the words of a tc command line."""

    def share(name: str) -> list[str]:
        values = (given.get(key) for key in (name, f"{name}_correlation"))
        return [value.replace(" ", "") for value in values if value is not None]

    words: list[str] = []
    if "delay" in given:
        words += ["delay", _microseconds(given["delay"])]
        if "jitter" in given:
            words += [_microseconds(given["jitter"])]
            words += [each.replace(" ", "") for each in [given.get("delay_correlation")] if each]
            words += (
                ["distribution", given["distribution"]] if given.get("distribution", "uniform") != "uniform" else []
            )
    for name in _SHARES:
        words += [name, *share(name)] if name in given else []
    if "gemodel" in given:
        model = given["gemodel"]
        parts = [model[key] for key in ("p", "r")]
        parts += [model.get("one_minus_h", "100 %"), model.get("one_minus_k", "0 %")]
        words += ["loss", "gemodel", *(part.replace(" ", "") for part in parts)]
    words += ["gap", str(given["gap"])] if "gap" in given else []
    if "rate" in given:
        words += ["rate", f"{_amount(given['rate'], RATE)}bit"]
        sizes = [given.get(key, 0) for key in ("packet_overhead", "cell_size", "cell_overhead")]
        words += [str(size) for size in sizes] if any(sizes) and min(sizes) >= 0 else []
    words += ["limit", str(given["limit"])] if "limit" in given else []
    return " ".join(words)


def _amount(value: Any, kind: Quantity) -> int:
    return kind.parse(value)
