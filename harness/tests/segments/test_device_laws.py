# SPDX-License-Identifier: Apache-2.0
"""A bridge between segments against simulations frame by frame, and by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.model.devices import Bridge
from sundial.model.network import Device, DevicePort
from sundial.verify.devices import COUNTERS, check_counted, check_device
from sundial.verify.law import Counted
from sundial.verify.segment import verifiers
from sundial.verify.wire import Wire
from tests.fates import ring_full, too_long
from tests.segments.test_line_laws import bits, segment
from tests.segments.wires import BROADCAST, IN, OUT, Frame, Tape, moved

LATENCY_NS = 20_000


def bridge(*ends: str, **written: Any) -> Device:
    fields = {"forwarding_latency": "20 us", "ageing": "300 s", **written}
    ports = tuple(DevicePort("x", end.partition(":")[2], place, "", f"s{place}", 0) for place, end in enumerate(ends))
    names = [port.interface for port in ports]
    return Device("x", 0, "bridge", Bridge.model_validate({"kind": "bridge", "interfaces": names, **fields}), ports)


def wires_of(device: Device, tapes: list[Tape], end_ns: int | None = None) -> dict[str, Wire]:
    """Rows of all wires are numbered through."""
    found, begin = {}, 0
    for port, tape in zip(device.ports, tapes, strict=True):
        wire = tape.wire(end_ns)
        frames = wire.frames.with_columns(pl.col("row") + begin)
        found[port.end] = replace(wire, frames=frames, rings={port.end: device.written.queue_frames})
        begin += len(frames)
    return found


def check(device: Device, written: list[Any], wires: dict[str, Wire]) -> tuple[list[dict[str, Any]], dict[Any, Any]]:
    kinds = {port.end: each for port, each in zip(device.ports, written, strict=True)}

    def offered(end: str, handed_in: Any, behind: Any) -> list[pl.DataFrame]:
        return verifiers()[kinds[end].kind].check_offered(kinds[end], wires[end], end, handed_in)

    findings, counted = check_device(device, wires, offered)
    return pl.concat(findings).to_dicts(), counted


class Relay:
    """IEEE 802.1D frame by frame: learn, look up, forward, and a ring at each port, which is a full-duplex line."""

    def __init__(self, device: Device, written: list[Any], tapes: list[Tape], end_ns: int | None) -> None:
        self.device, self.written, self.tapes, self.end_ns = device, written, tapes, end_ns
        self.table: dict[int, tuple[int, int]] = {}
        self.ends: list[list[Fraction]] = [[] for _ in tapes]
        self.free = [Fraction(0) for _ in tapes]
        self.counts = {(port.end, name): 0 for port in device.ports for name in COUNTERS}

    def take(self, at: int, came: int, frame: Frame) -> None:
        settings_ = self.device.written
        self._count(came, "received_frames")
        source = frame.port + 1
        self.table = {each: value for each, value in self.table.items() if at - value[1] < settings_.ageing}
        if source in self.table or len(self.table) < settings_.mac_table_entries:
            self.table[source] = (came, at)
        home = self.table.get(frame.target, (None, 0))[0]
        if home == came:
            self._count(came, "filtered_frames")
            return
        self._count(came, "flooded_frames" if home is None else "forwarded_frames")
        for out in range(len(self.tapes)) if home is None else [home]:
            if out != came:
                self._send(at + settings_.forwarding_latency, out, frame)

    def _count(self, port: int, name: str) -> None:
        self.counts[self.device.ports[port].end, name] += 1

    def _send(self, at: int, port: int, frame: Frame) -> None:
        if self.end_ns is not None and at > self.end_ns:
            return
        end, rate = self.device.ports[port].end, self.written[port].rate_bps(self.device.ports[port].end)
        longest = self.written[port].mtu + 14
        if frame.length > longest:
            self.tapes[port].fate(at, too_long(end, frame.length, longest), frame)
        elif sum(each > at for each in self.ends[port]) >= self.device.written.queue_frames:
            self.tapes[port].fate(at, ring_full(end), frame)
        else:
            start = max(Fraction(at), self.free[port])
            self.ends[port].append(start + Fraction(bits(frame) * 10**9, rate))
            self.free[port] = start + Fraction((bits(frame) + 96) * 10**9, rate)
            self.tapes[port].add(ceil(start), self.tapes[port].ports.index(end), OUT, frame)


def arriving(ports: int) -> st.SearchStrategy[list[tuple[int, int, Frame]]]:
    one = st.tuples(st.integers(0, 400_000), st.integers(0, ports - 1), st.integers(0, 4),
                    st.sampled_from([42, 60, 590, 1514, 1600]), st.sampled_from([*range(1, 6), BROADCAST]))  # fmt: skip
    return st.lists(one, min_size=1, max_size=40).map(
        lambda rows: [
            (at, came, Frame(at, source, size, name, target))
            for name, (at, came, source, size, target) in enumerate(sorted(rows, key=lambda row: row[:2]), start=1)
        ]
    )


THREE = ("x:e0", "x:e1", "x:e2")


def lines() -> tuple[list[Any], list[Tape]]:
    """Behind each port of a bridge a link or a switch, on which only what concerns the bridge is written down."""
    written = [
        segment("link", ["a:eth0", "x:e0"], rate="100 Mbit/s"),
        segment("switch", ["x:e1", "b:eth0"], rate={"x:e1": "10 Mbit/s", "b:eth0": "1 Gbit/s"}),
        segment("link", ["x:e2", "c:eth0"], rate="3333333 bit/s"),
    ]
    return written, [Tape(each.ports) for each in written]


def relayed(
    device: Device, frames: list[tuple[int, int, Frame]], end_ns: int | None = None
) -> tuple[list[Any], list[Tape], dict[Any, int]]:
    written, tapes = lines()
    relay = Relay(device, written, tapes, end_ns)
    for at, came, frame in frames:
        tapes[came].add(at, tapes[came].ports.index(device.ports[came].end), IN, frame)
        relay.take(at, came, frame)
    return written, tapes, relay.counts


@settings(max_examples=settings.default.max_examples // 3)
@given(arriving(3), st.sampled_from([1, 2, 128]), st.sampled_from([1, 2, 1024]), st.sampled_from(["1 ms", "300 s"]))
def test_a_bridge_that_keeps_the_rules_passes(
    frames: list[tuple[int, int, Frame]], queue: int, entries: int, ageing: str
) -> None:
    device = bridge(*THREE, queue_frames=queue, mac_table_entries=entries, ageing=ageing)
    spread = [(5 * at, came, frame) for at, came, frame in frames]
    written, tapes, counts = relayed(device, spread)
    found, counted = check(device, written, wires_of(device, tapes))
    assert found == []
    assert counted == {key: (number, number) for key, number in counts.items()}


def kept(frames: list[tuple[int, int, Frame]], cut: Callable[[list[dict[str, Any]]], None]) -> list[dict[str, Any]]:
    device = bridge(*THREE, queue_frames=2)
    written, tapes, _ = relayed(device, frames)
    assert check(device, written, wires_of(device, tapes))[0] == []
    for tape in tapes:
        cut(tape.rows)
    return check(device, written, wires_of(device, tapes))[0]


STEADY = [(200_000 * name, name % 3, Frame(0, name % 3, 60 + name, name, 1 + (name + 1) % 3)) for name in range(1, 40)]


@settings(max_examples=settings.default.max_examples // 3)
@given(arriving(3), st.data())
def test_a_frame_at_another_instant_is_found(frames: list[tuple[int, int, Frame]], data: st.DataObject) -> None:
    device = bridge(*THREE)
    written, tapes, _ = relayed(device, [*frames, (10**7, 0, Frame(0, 0, 60, 1000))])
    wires = wires_of(device, tapes)
    end = data.draw(st.sampled_from(THREE[1:]))
    rows = wires[end].frames.filter(pl.col("direction") == OUT)["row"].to_list()
    wires[end] = moved(wires[end], data.draw(st.sampled_from(rows)), data.draw(st.sampled_from([-1, 1, -1000, 1000])))
    assert check(device, written, wires)[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda row: row.update(octets_hash=999),
        lambda row: row.update(frame_length=row["frame_length"] + 1, octets_hash=998),
        lambda row: row.update(time_ns=row["time_ns"] + 1),
    ],
)
def test_what_a_bridge_sends_otherwise_is_found(damage: Callable[[dict[str, Any]], None]) -> None:
    def cut(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["direction"] == OUT and row["octets_hash"] == 20:
                damage(row)

    assert kept(STEADY, cut)


def test_a_frame_that_is_not_passed_on_and_one_of_its_own_are_found() -> None:
    def gone(rows: list[dict[str, Any]]) -> None:
        rows[:] = [row for row in rows if not (row["direction"] == OUT and row["octets_hash"] == 20)]

    def own(rows: list[dict[str, Any]]) -> None:
        rows += [{**row, "octets_hash": 500} for row in rows if row["direction"] == OUT and row["octets_hash"] == 20]

    assert len(kept(STEADY, gone)) == 1
    assert len(kept(STEADY, own)) == 1


def test_a_frame_to_the_wrong_side_is_found() -> None:
    device = bridge(*THREE)
    frames = [(0, 1, Frame(0, 1, 60, 1)), (10**6, 0, Frame(0, 0, 60, 2, target=2))]
    written, tapes, _ = relayed(device, frames)
    assert check(device, written, wires_of(device, tapes))[0] == []
    tapes[2].add(10**6 + LATENCY_NS, 0, OUT, frames[1][2])
    assert [each["field"] for each in check(device, written, wires_of(device, tapes))[0]] == [
        "time on the wire: sent by x:e2"
    ]


def test_a_drop_without_need_is_found() -> None:
    device = bridge(*THREE)
    written, tapes, _ = relayed(device, STEADY)
    (row,) = (row for row in tapes[0].rows if row["direction"] == OUT and row["octets_hash"] == 20)
    tapes[0].rows.remove(row)
    tapes[0].fate(row["time_ns"], ring_full("x:e0"), Frame(0, 2, row["frame_length"], 20))
    assert {each["field"] for each in check(device, written, wires_of(device, tapes))[0]} == {
        "time on the wire: sent by x:e0", "ring of x:e0"
    }  # fmt: skip


@settings(max_examples=settings.default.max_examples // 5)
@given(arriving(3), st.integers(0, 500_000))
def test_what_is_under_way_at_the_end_is_not_asked_for(frames: list[tuple[int, int, Frame]], end_ns: int) -> None:
    device = bridge(*THREE, queue_frames=3)
    frames = [each for each in frames if each[0] <= end_ns]
    written, tapes, _ = relayed(device, frames, end_ns)
    for tape in tapes:
        tape.rows = [row for row in tape.rows if row["time_ns"] <= end_ns]
    assert check(device, written, wires_of(device, tapes, end_ns))[0] == []


def findings_of(device: Device, counted: Any, **other: Any) -> list[dict[str, Any]]:
    ports = {port.end: {name: counted[port.end, name][0] for name in COUNTERS} for port in device.ports}
    document = {"x": {"kind": "bridge", "ports": ports, **other}}
    return check_counted(document, Counted({}, (device,), counted)).to_dicts()


def test_counters_of_a_bridge() -> None:
    device = bridge(*THREE)
    written, tapes, _ = relayed(device, STEADY)
    _, counted = check(device, written, wires_of(device, tapes))
    assert findings_of(device, counted) == []
    for key in counted:
        wrong = {**counted, key: (counted[key][0] + 1, counted[key][0] + 1)}
        ports = {port.end: {name: counted[port.end, name][0] for name in COUNTERS} for port in device.ports}
        document = {"x": {"kind": "bridge", "ports": ports}}
        assert [each["field"] for each in check_counted(document, Counted({}, (device,), wrong)).to_dicts()] == [
            " ".join(key)
        ]
    assert findings_of(device, counted, kind="router")
    assert check_counted({}, Counted({}, (device,), counted)).height == 1
