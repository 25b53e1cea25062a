# SPDX-License-Identifier: Apache-2.0
"""The laws of a link, a switch and a bridge against simulations frame by frame, and to the ns by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.model.topology import SEGMENT_KINDS
from sundial.observe import Octets
from sundial.segments.link.verify_fates import check_corrupted, check_shares
from sundial.segments.link.verify_netem import Copies, let_past, way_of
from sundial.segments.netem.verify_tc import read_arguments
from sundial.verify.contention import NEVER_BUSY
from sundial.verify.segment import verifiers
from tests.fates import comment, corrupted, duplicated, lost, output_full, queue_full, ring_full, too_long
from tests.segments.wires import BROADCAST, IN, OUT, Frame, Tape, moved

PORTS = ["a:eth0", "b:eth0", "c:eth0"]


def segment(kind: str, ports: list[str], **fields: Any) -> Any:
    model = SEGMENT_KINDS[kind].model
    assert model is not None
    return model.model_validate({"kind": kind, "ports": ports, **fields})


def check(written: Any, wire: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = verifiers()[written.kind].check_times(written, wire).findings.to_dicts()
    return found


def bits(frame: Frame) -> int:
    return 8 * (max(frame.length, 60) + 12)


def sending(frames: list[Frame], rate: int) -> list[Frame]:
    """The frames of one port, one after the other."""
    free, found = Fraction(0), []
    for frame in sorted(frames, key=lambda one: (one.at, one.name)):
        at = max(Fraction(frame.at), free)
        found.append(Frame(ceil(at), frame.port, frame.length, frame.name, frame.target))
        free = at + Fraction((bits(frame) + 96) * 10**9, rate)
    return found


def switched(written: Any, frames: list[Frame]) -> Tape:
    """Store, look up, queue, send: one frame at a time."""
    tape, come = Tape(written.ports), []
    for port, rate in enumerate(written.by_port(written.rate)):
        for frame in sending([one for one in frames if one.port == port], rate):
            tape.add(frame.at, port, OUT, frame)
            come.append((frame.at + bits(frame) * 10**9 // rate + written.propagation, port, frame))
    homes: dict[int, tuple[int, int]] = {}
    starts: dict[int, list[int]] = {port: [] for port in range(len(written.ports))}
    free = dict.fromkeys(starts, 0)
    for at, port, frame in sorted(come, key=lambda one: one[:2]):
        homes[port + 1] = (port, at)
        home, seen = homes.get(frame.target, (None, 0))
        known = home is not None and frame.target != BROADCAST and at - seen <= written.ageing
        for out in [home] if known else [other for other in starts if other != port]:
            if out is None or out == port:
                continue
            ready = at + written.forwarding_latency
            if sum(start > ready for start in starts[out]) >= written.queue_frames:
                tape.fate(ready, output_full(written.ports[out]), frame)
                continue
            start, rate = max(ready, free[out]), written.by_port(written.rate)[out]
            starts[out].append(start)
            free[out] = start + (bits(frame) + 96) * 10**9 // rate
            tape.add(start + bits(frame) * 10**9 // rate + written.propagation, out, IN, frame)
    return tape


def traffic(ports: int, apart: int = 3_000_000) -> st.SearchStrategy[list[Frame]]:
    one = st.tuples(st.integers(0, apart), st.integers(0, ports - 1), st.sampled_from([42, 60, 61, 590, 1514]),
                    st.sampled_from([*range(1, ports + 1), BROADCAST]))  # fmt: skip
    return st.lists(one, min_size=1, max_size=30).map(
        lambda rows: [Frame(at, port, size, name, to) for name, (at, port, size, to) in enumerate(rows, start=1)]
    )


@settings(max_examples=settings.default.max_examples // 3)
@given(traffic(3), st.sampled_from([1, 2, 128]), st.sampled_from(["1 ms", "300 s"]))
def test_a_switch_that_keeps_the_rules_passes(frames: list[Frame], queue: int, ageing: str) -> None:
    rate = {"a:eth0": "100 Mbit/s", "b:eth0": "10 Mbit/s", "c:eth0": "20 Mbit/s"}
    written = segment("switch", PORTS, rate=rate, queue_frames=queue, ageing=ageing)
    assert check(written, switched(written, frames).wire()) == []


@settings(max_examples=settings.default.max_examples // 5)
@given(traffic(3), st.sampled_from([1, -1, 1000]), st.data())
def test_an_arrival_from_a_switch_at_another_instant_is_found(
    frames: list[Frame], by_ns: int, data: st.DataObject
) -> None:
    written = segment("switch", PORTS, rate="100 Mbit/s")
    wire = switched(written, [Frame(0, 0, 60, 1000), *frames]).wire()
    rows = wire.frames.filter(pl.col("direction") == IN)["row"].to_list()
    assert check(written, moved(wire, data.draw(st.sampled_from(rows)), by_ns))


@settings(max_examples=settings.default.max_examples // 10)
@given(traffic(2), st.integers(1_000_000, 10**9), st.integers(1_000_000, 10**9))
def test_a_switch_carries_fractions_of_a_ns_from_one_line_to_the_next(
    frames: list[Frame], near_bps: int, far_bps: int
) -> None:
    written = segment("switch", PORTS[:2], rate={"a:eth0": f"{near_bps} bit/s", "b:eth0": f"{far_bps} bit/s"})
    tape = Tape(written.ports)
    free = Fraction(0)
    for number, frame in enumerate(frames):
        at = number * 100_000_000
        come = at + ceil(Fraction(bits(frame) * 10**12, near_bps)) * Fraction(1, 1000) + written.propagation
        start = max(come + written.forwarding_latency, free)
        end = start + Fraction(bits(frame) * 10**9, far_bps)
        free = end + Fraction(96 * 10**9, far_bps)
        sent = Frame(at, 0, frame.length, frame.name, BROADCAST)
        tape.add(at, 0, OUT, sent)
        tape.add(ceil(end) + written.propagation, 1, IN, sent)
    assert check(written, tape.wire()) == []


def test_a_frame_at_the_wrong_port_of_a_switch_and_a_drop_without_need_are_found() -> None:
    written = segment("switch", PORTS, rate="100 Mbit/s")
    tape = switched(written, [Frame(0, 1, 60, 1), Frame(100_000, 0, 60, 2, target=2)])
    assert check(written, tape.wire()) == []
    wrong = next(row for row in tape.rows if row["octets_hash"] == 2 and row["direction"] == IN)
    kept = dict(wrong)
    wrong["interface"] = "c:eth0"
    assert len(check(written, tape.wire())) == 2
    tape.rows.remove(wrong)
    tape.fate(100_000 + 5_785, output_full("b:eth0"), Frame(0, 0, 60, 2))
    assert kept["interface"] == "b:eth0"
    assert [found["field"] for found in check(written, tape.wire())] == [
        "time on the wire: arrival at b:eth0", "queue towards b:eth0"
    ]  # fmt: skip


def linked(written: Any, frames: list[Frame], fates: dict[int, str] | None = None) -> Tape:
    """A link without chance: delay, shaper and queue, frame by frame and in fractions."""
    tape = Tape(written.ports)
    for port in (0, 1):
        effects, here, there = written.sending(written.ports[port]), written.ports[port], written.ports[1 - port]
        inside: list[Fraction] = []
        arrived = Fraction(-(10**9))
        free = Fraction(0)
        for frame in sending([one for one in frames if one.port == port], written.rate):
            tape.add(frame.at, port, OUT, frame)
            takes = Fraction(bits(frame) * 10**9, written.rate)
            begun = free if ceil(free) == frame.at else Fraction(frame.at)
            free = begun + takes + Fraction(96 * 10**9, written.rate)
            enters = ceil(begun + takes)
            fate = (fates or {}).get(frame.name, "")
            if fate == "lost":
                tape.fate(enters, lost(here, there), frame)
                continue
            # netem_enqueue looks once whether there is room, and then puts in both.
            if sum(leaves > enters for leaves in inside) >= (effects.limit or 1000):
                tape.fate(enters, queue_full(here, there), frame)
                continue
            if fate == "duplicated":
                tape.fate(enters, duplicated(here, there), frame)
            for _ in range(2 if fate == "duplicated" else 1):
                leaves = Fraction(enters + (effects.delay or 0))
                if effects.rate:
                    size = frame.length + (effects.packet_overhead or 0)
                    if effects.cell_size:
                        size = ceil(Fraction(size, effects.cell_size)) * (
                            effects.cell_size + (effects.cell_overhead or 0)
                        )
                    leaves = max(leaves, *inside, Fraction(0)) + Fraction(size * 8 * 10**9, effects.rate)
                inside.append(leaves)
                gap = Fraction(96 * 10**9, written.rate)
                arrived = max(leaves + written.propagation, arrived + gap + takes)
                tape.add(ceil(arrived), 1 - port, IN, frame)
    return tape


SHAPED = {"delay": "2 ms", "rate": "3 Mbit/s", "packet_overhead": 20, "cell_size": 48, "cell_overhead": 5, "limit": 4}


@settings(max_examples=settings.default.max_examples // 3)
@given(
    traffic(2),
    st.sampled_from([{}, {"delay": "1 ms"}, {"rate": "3333333 bit/s"}, SHAPED]),
    st.sets(st.integers(1, 30)),
    st.sampled_from(["10 Mbit/s", "7 Mbit/s", "9999991 bit/s"]),
)
def test_a_link_that_keeps_the_rules_passes(frames: list[Frame], effects: Any, lost: set[int], rate: str) -> None:
    own = {**effects, "loss": "30 %", "duplicate": "10 %"}
    written = segment("link", PORTS[:2], rate=rate, impairments={"both": own})
    fates = {name: "lost" if name % 2 else "duplicated" for name in lost}
    assert check(written, linked(written, frames, fates).wire()) == []


@pytest.mark.parametrize(("size", "fate", "passes"), [(1, "", True), (3, "", True), (3, "dropped", False)])
def test_a_doubled_frame_meets_one_place(size: int, fate: str, passes: bool) -> None:
    """The queue holds one frame more than its limit then; what comes next is dropped."""
    own = {"delay": "2 ms", "limit": size, "duplicate": "50 %"}
    written = segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": own})
    frames = [Frame(100_000 * number, 0, 60, number) for number in range(1, 5)]
    doubled = {1: "duplicated", 2: "duplicated"}
    tape = linked(written, frames, doubled if size > 1 else {1: "duplicated"})
    assert sum("queue full" in str(row["comment"]) for row in tape.rows) == (2 if size == 3 else 3)
    if fate:
        tape.rows.remove(next(row for row in tape.rows if row["direction"] == IN and row["octets_hash"] == 2))
        tape.fate(200_000 + 57_600, queue_full(*PORTS[:2]), frames[1])
    assert (check(written, tape.wire()) == []) == passes


@settings(max_examples=settings.default.max_examples // 5)
@given(traffic(2), st.sampled_from([1, -1, 1000, -1000]), st.data())
def test_an_arrival_over_a_link_at_another_instant_is_found(
    frames: list[Frame], by_ns: int, data: st.DataObject
) -> None:
    written = segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": {"delay": "1 ms"}})
    wire = linked(written, frames).wire()
    rows = wire.frames.filter(pl.col("direction") == IN)["row"].to_list()
    assert check(written, moved(wire, data.draw(st.sampled_from(rows)), by_ns))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (lost("a:eth0", "b:eth0"), 57_600),
        (queue_full("a:eth0", "b:eth0"), 57_600),
        (duplicated("a:eth0", "b:eth0"), 57_600),
        (lost("a:eth0", "b:eth0"), 57_601),
        (comment("vanished: a:eth0 to b:eth0", "vanished", from_="a:eth0", to="b:eth0"), 57_600),
        (too_long("a:eth0", 60, 1514), 57_600),
    ],
)
def test_a_fate_that_nothing_allows_is_found(text: str, at: int) -> None:
    written = segment("link", PORTS[:2], rate="10 Mbit/s")
    tape = linked(written, [Frame(0, 0, 60, 1)])
    assert check(written, tape.wire()) == []
    tape.rows = [row for row in tape.rows if row["direction"] == OUT or text.startswith(("dup", "van"))]
    tape.fate(at, text, Frame(0, 0, 60, 1))
    assert check(written, tape.wire())


def jittered(after: int, **effects: Any) -> list[dict[str, Any]]:
    """One frame of 60 bytes that arrives so long after it came to the link's queue; propagation 25 ns."""
    own = {"delay": "1 ms", **effects}
    written = segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": own})
    tape = Tape(PORTS[:2])
    tape.add(0, 0, OUT, Frame(0, 0, 60, 1))
    tape.add(57_600 + 25 + after, 1, IN, Frame(0, 0, 60, 1))
    return check(written, tape.wire())


@pytest.mark.parametrize(
    ("effects", "least", "most"),
    [
        ({"jitter": "100 us"}, 900_000, 1_100_000),
        ({"jitter": "100 us", "distribution": "normal"}, 600_000, 1_353_000),
        ({"jitter": "100 us", "distribution": "pareto"}, 933_000, 1_400_000),
        ({"jitter": "2 ms"}, 0, 3_000_000),
        ({"jitter": "100 us", "rate": "1 Mbit/s"}, 1_380_000, 1_580_000),
        # A delay that is drawn negative, down to -200 us, is taken off the 480 us in the shaper.
        ({"jitter": "300 us", "distribution": "normal", "rate": "1 Mbit/s"}, 280_000, 2_539_000),
        ({"jitter": "300 us", "distribution": "normal", "rate": "10 Mbit/s"}, 0, 2_107_000),
    ],
)
def test_bounds_of_jitter(effects: dict[str, str], least: int, most: int) -> None:
    assert jittered(least, **effects) == jittered(most, **effects) == []
    assert jittered(least - 1, **effects)
    assert jittered(most + 1, **effects)


def test_a_frame_is_reordered_at_once_or_delayed() -> None:
    effects = {"reorder": "50 %", "gap": 1}
    assert jittered(0, **effects) == jittered(1_000_000, **effects) == []
    assert jittered(1, **effects)
    assert jittered(999_999, **effects)


@pytest.mark.parametrize(("entered", "expected"), [((120_000,), (0, 1)), ((120_000, 110_000), (1, 1))])
def test_what_was_let_past_others_may_wait_for_the_line_longer_than_its_delay(
    entered: tuple[int, ...], expected: tuple[int, int]
) -> None:
    """Four frames of 60 bytes are let go at once, after 100 us. The one that came to netem at 120 us arrives before the
    one that came 10 us earlier."""
    own = {"delay": "100 us", "reorder": "50 %", "gap": 1}
    way = way_of(segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": own}), PORTS[0])
    came = np.array([0, 0, 0, 0, *entered])
    number = np.arange(len(came))
    bits = np.full(len(came), 8 * 72)
    copies = Copies(number, came, bits, bits)
    assert let_past(way, copies, number, 100_025 + 67_200 * number, number, number) == expected


@pytest.mark.parametrize(("second", "found"), [(5_000_000, False), (5_000_001, True)])
def test_of_frames_of_the_same_bytes_one_may_pass_the_other(second: int, found: bool) -> None:
    own = {"delay": "5 ms", "reorder": "50 %", "gap": 1}
    written = segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": own})
    tape = Tape(PORTS[:2])
    for at in (0, 500_000):
        tape.add(at, 0, OUT, Frame(at, 0, 60, 1))
    # The later one at once, the earlier after its delay.
    tape.add(500_000 + 57_600 + 25, 1, IN, Frame(0, 0, 60, 1))
    tape.add(second + 57_600 + 25, 1, IN, Frame(0, 0, 60, 1))
    assert bool(check(written, tape.wire())) == found


def test_a_share_that_hardly_happens_is_found() -> None:
    written = segment("link", PORTS[:2], rate="10 Mbit/s", impairments={"both": {"loss": "20 %"}})
    frames = [Frame(100_000 * name, 0, 60, name) for name in range(1, 501)]
    lost = dict.fromkeys(range(1, 500, 5), "lost")
    assert check(written, linked(written, frames, lost).wire()) == []
    assert [each["seen"] for each in check(written, linked(written, frames).wire())] == ["0"]


@pytest.mark.parametrize(("lost_of_1000", "found"), [(273, []), (300, ["27.3 % of 20000"])])
def test_a_frame_to_be_lost_and_doubled_goes_once(lost_of_1000: int, found: list[str]) -> None:
    both = {"loss": "30 %", "duplicate": "30 %"}
    written = segment("link", PORTS[:2], rate="100 Mbit/s", impairments={"both": both})
    name = np.arange(20_000) % 1000
    fates = SimpleNamespace(lost=name < lost_of_1000, doubled=name >= 790, corrupted=np.zeros(20_000, np.bool_))
    problems = check_shares(written.sending("a:eth0"), fates, "a:eth0", len(name))
    assert problems["expected"].to_list() == found


@pytest.mark.parametrize(("flipped", "found"), [(0b100, []), (0b101, ["2 bits"]), (0, ["0 bits"])])
def test_a_corrupted_frame_has_one_other_bit(flipped: int, found: list[str]) -> None:
    sent = bytes(range(60))
    other = bytes([*sent[:40], sent[40] ^ flipped, *sent[41:]])
    frame, damaged = Frame(0, 0, 60, 1), Frame(0, 0, 60, 2)
    tape = Tape(PORTS[:2])
    tape.add(0, 0, OUT, frame)
    tape.fate(10_000, corrupted(0, 40, *PORTS[:2]), damaged)
    tape.add(20_000, 1, IN, damaged)
    octets = Octets(np.frombuffer(sent + other + other, np.uint8), np.arange(3) * 60, np.full(3, 60))
    wire = replace(tape.wire(), octets=lambda frames: octets.take(frames["row"].to_numpy()))
    fates = SimpleNamespace(
        damaged=pl.DataFrame({"row": [1], "place": [0], "content": [2]}), copies=np.ones(1, np.int64),
        doubled=np.zeros(1, np.int64), entered=np.zeros(1, np.int64),
    )  # fmt: skip
    assert check_corrupted(wire, fates, wire.sent[0], wire.received[1])["seen"].to_list() == found


def test_arguments_of_tc() -> None:
    read = read_arguments("delay 10ms 1ms 25% distribution normal loss 5% rate 20mbit 4 48 5 limit 50")
    assert read is not None
    assert (read.shortest_ns, read.longest_ns, read.loses, read.limit) == (6_000_000, 13_530_000, True, 50)
    assert read.shaper is not None
    assert (read.shaper.rate_bps, read.overhead, read.cell, read.cell_overhead) == (20_000_000, 4, 48, 5)
    assert read_arguments("") is not None
    assert [read_arguments(text) for text in ("slot 1ms", "loss state 1%", "delay", "delay x", "rate")] == [None] * 5


@pytest.mark.parametrize(
    ("netem", "after", "found"),
    [
        ("delay 10ms", 10_044_000, 0),
        ("delay 10ms", 9_999_999, 1),
        ("delay 10ms", 20_000_000, 1),
        ("delay 10ms 1ms", 9_044_000, 0),
        ("rate 1mbit", 480_000, 0),
        ("rate 1mbit", 479_999, 1),
    ],
)
def test_a_bridge_sends_no_earlier_than_its_netem_and_no_later_than_its_work(
    netem: str, after: int, found: int
) -> None:
    near, far = Tape(["a:eth0", "x:eth0"]), Tape(["x:eth1", "b:eth0"])
    near.add(1_000, 1, IN, Frame(0, 0, 60, 1))
    far.add(1_000 + after, 0, OUT, Frame(0, 0, 60, 1))
    far_wire = far.wire()
    wires = {"x:eth0": near.wire(), "x:eth1": far_wire}
    nics = [SimpleNamespace(end="x:eth0", netem=""), SimpleNamespace(end="x:eth1", netem=netem)]
    node: Any = SimpleNamespace(role="bridge", mips=Decimal(125), nics=nics, adapter_latency_ns=0)
    law = verifiers()["netem"].check_machine(node, wires, lambda port: NEVER_BUSY, exact=True)
    assert len(law.findings) == found


@pytest.mark.parametrize(("after", "found"), [(10_049_999, 1), (10_050_000, 0), (10_000_000, 1), (20_000_000, 1)])
def test_a_bridge_sends_no_earlier_than_its_adapter_has_the_frame(after: int, found: int) -> None:
    near, far = Tape(["a:eth0", "x:eth0"]), Tape(["x:eth1", "b:eth0"])
    near.add(1_000, 1, IN, Frame(0, 0, 60, 1))
    far.add(1_000 + after, 0, OUT, Frame(0, 0, 60, 1))
    wires = {"x:eth0": near.wire(), "x:eth1": far.wire()}
    nics = [SimpleNamespace(end="x:eth0", netem=""), SimpleNamespace(end="x:eth1", netem="delay 10ms")]
    node: Any = SimpleNamespace(role="bridge", mips=Decimal(125), nics=nics, adapter_latency_ns=50_000)
    law = verifiers()["netem"].check_machine(node, wires, lambda port: NEVER_BUSY, exact=True)
    assert len(law.findings) == found


def through_adapters(written: Any, frames: list[Frame], latency_ns: int) -> Tape:
    """A link whose adapters have a latency: what each machine would like to send at an instant, it hands in as soon as
    the ring has a place, or it is dropped; it is on the line the latency later, or behind those before it."""
    tape, places = Tape(written.ports), written.adapter.ring_frames
    drops = written.adapter.when_full == "drop"
    for port in (0, 1):
        ends: list[int] = []
        handed_in = free = 0
        for frame in sorted((one for one in frames if one.port == port), key=lambda one: (one.at, one.name)):
            handed_in = max(frame.at, handed_in)
            inside = [end for end in ends if end > handed_in]
            if len(inside) >= places and drops:
                tape.fate(handed_in + latency_ns, ring_full(written.ports[port]), frame)
                continue
            if len(inside) >= places:
                handed_in = inside[-places] + 1
            start = max(handed_in + latency_ns, free)
            end = start + bits(frame) * 10**9 // written.rate
            free = end + 96 * 10**9 // written.rate
            ends.append(end)
            tape.add(start, port, OUT, frame)
            tape.add(end + written.propagation, 1 - port, IN, frame)
    return tape


def with_latency(wire: Any, latency_ns: int) -> Any:
    return replace(wire, latency_ns=dict.fromkeys(wire.ports, latency_ns))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    traffic(2, 400_000), st.sampled_from([0, 1, 7_000, 100_000]), st.sampled_from([1, 2, 5]),
    st.sampled_from(["stop", "drop"]),
)  # fmt: skip
def test_a_link_whose_adapters_have_a_latency_passes(
    frames: list[Frame], latency_ns: int, places: int, when_full: str
) -> None:
    adapter = {"ring_frames": places, "when_full": when_full}
    written = segment("link", PORTS[:2], rate="10 Mbit/s", adapter=adapter)
    wire = through_adapters(written, frames, latency_ns).wire()
    assert check(written, with_latency(wire, latency_ns)) == []


@pytest.mark.parametrize("when_full", ["stop", "drop"])
@pytest.mark.parametrize(("places", "at", "found"), [(1, 77_600, 0), (1, 77_599, 1), (2, 77_599, 0)])
def test_a_frame_that_leaves_before_it_can_have_been_handed_in_is_found(
    when_full: str, places: int, at: int, found: int
) -> None:
    """The first frame leaves at 57,600 ns; the second has its place from then on, and 20 us are the adapter's."""
    adapter = {"ring_frames": places, "when_full": when_full}
    for kind, own in (("link", {}), ("hub", {"cable_delay": "0 ns"}), ("switch", {})):
        written = segment(kind, PORTS[:2], rate="10 Mbit/s", adapter=adapter, **own)
        tape = Tape(PORTS[:2])
        tape.add(0, 0, OUT, Frame(0, 0, 60, 1))
        tape.add(at, 0, OUT, Frame(at, 0, 60, 2))
        wire = tape.wire()
        seen = [problem for problem in check(written, with_latency(wire, 20_000)) if "ring" in problem["field"]]
        assert len(seen) == found, kind
        assert [problem for problem in check(written, wire) if "ring" in problem["field"]] == [], "without a latency"


def test_a_frame_that_a_ring_with_places_refused_is_found() -> None:
    """Handed in at 100 us by an adapter of 20 us: the one frame before it is on the line until 157.6 us."""
    written = segment("link", PORTS[:2], rate="10 Mbit/s", adapter={"ring_frames": 1, "when_full": "drop"})
    tape = Tape(PORTS[:2])
    tape.add(100_000, 0, OUT, Frame(0, 0, 60, 1))
    tape.fate(120_000, ring_full("a:eth0"), Frame(0, 0, 60, 2))
    tape.add(200_000, 0, OUT, Frame(0, 0, 60, 3))
    rings = "time on the wire: ring of a:eth0"
    assert rings not in [problem["field"] for problem in check(written, with_latency(tape.wire(), 20_000))]
    tape.fate(177_601, ring_full("a:eth0"), Frame(0, 0, 60, 4))
    assert [problem["field"] for problem in check(written, with_latency(tape.wire(), 20_000))].count(rings) == 1


@pytest.mark.parametrize(
    ("netem", "left_ns", "found"),
    [
        # The first of two equal frames was lost: what leaves after the second came is that one, in time.
        ("loss 50%", [1_000_044_000], 0),
        ("loss 50% delay 10ms", [1_010_044_000], 0),
        ("loss 50%", [44_000, 1_000_044_000], 0),
        # Before the second came it can only be the first, too late; and so is the second after a while.
        ("loss 50%", [500_000_000], 1),
        ("loss 50%", [1_500_000_000], 1),
        # Two of them, of which the first was kept for a second.
        ("loss 50%", [1_000_044_000, 1_000_088_000], 1),
        ("loss 50% duplicate 10%", [1_000_044_000, 1_000_088_000], 0),
        # The second, but sooner than its delay.
        ("loss 50% delay 10ms", [1_009_999_999], 1),
        # Where nothing is lost the first one has to leave at its own time: it is late, and the second is missing.
        ("limit 1000", [1_000_044_000], 2),
    ],
)
def test_of_equal_frames_the_last_that_came_is_the_one_sent(netem: str, left_ns: list[int], found: int) -> None:
    near, far = Tape(["a:eth0", "x:eth0"]), Tape(["x:eth1", "b:eth0"])
    for at in (0, 1_000_000_000):
        near.add(at, 1, IN, Frame(0, 0, 60, 1))
    for at in left_ns:
        far.add(at, 0, OUT, Frame(0, 0, 60, 1))
    wires = {"x:eth0": near.wire(end_ns=3_000_000_000), "x:eth1": far.wire(end_ns=3_000_000_000)}
    nics = [SimpleNamespace(end="x:eth0", netem=""), SimpleNamespace(end="x:eth1", netem=netem)]
    node: Any = SimpleNamespace(role="bridge", mips=Decimal(125), nics=nics, adapter_latency_ns=0)
    law = verifiers()["netem"].check_machine(node, wires, lambda port: NEVER_BUSY, exact=True)
    assert law.findings.height == found, law.findings
