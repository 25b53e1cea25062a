# SPDX-License-Identifier: Apache-2.0
"""The law of a link that changes at exact instants, against a simulation frame by frame, and by hand."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.model.timeline import Event, State, states_of
from sundial.verify.segment import verifiers
from sundial.verify.timeline import check_notes
from tests.fates import lost, machine_off, queue_full, severed, severed_before
from tests.segments.test_line_laws import PORTS, bits, check, segment, sending, traffic
from tests.segments.wires import BROADCAST, IN, OUT, Frame, Tape

ENDS = PORTS[:2]


def changing(events: list[dict[str, Any]], **fields: Any) -> Any:
    """A link of 10 Mbit/s called lan, to which `events` happen."""
    written = segment("link", ENDS, **{"rate": "10 Mbit/s", **fields})
    states = states_of([Event.model_validate(each) for each in events], {"lan": written})
    return written.with_timeline(states["lan"])


def changed(written: Any, frames: list[Frame], gone: frozenset[int] = frozenset()) -> Tape:
    """What passes a link without jitter: what each frame meets is decided by when it begins. `gone`: names of frames
    that are lost at random."""
    tape = Tape(written.ports)
    for port in (0, 1):
        here, there = ENDS[port], ENDS[1 - port]
        free, shaper = Fraction(0), Fraction(0)
        inside: list[Fraction] = []
        leaving: list[tuple[Fraction, int, Frame]] = []
        for number, frame in enumerate(sending([one for one in frames if one.port == port], written.rate)):
            tape.add(frame.at, port, OUT, frame)
            begun = free if ceil(free) == frame.at else Fraction(frame.at)
            end = begun + Fraction(bits(frame) * 10**9, written.rate)
            free = end + Fraction(96 * 10**9, written.rate)
            past = [state for state in written.timeline if state.at_ns <= frame.at]
            effects = past[-1].impairments[here] if past else written.sending(here)
            rule = past[-1].blocks(here, there) if past else None
            enters = ceil(end)
            if rule or frame.name in gone:
                reason = machine_off(here, there) if rule == "off" else severed(rule or "", here, there)
                tape.fate(enters, reason if rule else lost(here, there), frame)
                continue
            if sum(leaves > enters for leaves in inside) >= (effects.limit or 1000):
                tape.fate(enters, queue_full(here, there), frame)
                continue
            leaves = Fraction(enters + (effects.delay or 0))
            if effects.rate:
                leaves = max(leaves, shaper) + Fraction(frame.length * 8 * 10**9, effects.rate)
                shaper = leaves
            inside.append(leaves)
            leaving.append((leaves, number, frame))
        arrived = Fraction(-(10**9))
        for leaves, _, frame in sorted(leaving, key=lambda item: item[:2]):
            takes = Fraction((bits(frame) + 96) * 10**9, written.rate)
            arrived = max(leaves + written.propagation, arrived + takes)
            tape.add(ceil(arrived), 1 - port, IN, frame)
    return tape


def placed(rows: list[tuple[int, int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Events one after the other, from pauses and lengths."""
    at, found = 0, []
    for pause, length, event in rows:
        found.append({"at": f"{at + pause} ns", "for": f"{length} ns", **event})
        at += pause + length
    return found


def events() -> st.SearchStrategy[list[dict[str, Any]]]:
    impairing: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
        {"delay": "1 ms"}, {"delay": "0 ns"}, {"delay": "300 us", "from": "a:eth0"}, {"rate": "2 Mbit/s", "limit": 3},
        {"rate": "5 Mbit/s", "delay": "100 us"}, {"loss": "30 %"}, {"reset": True},
    ])  # fmt: skip
    severing: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{"cut": "lan"}, {"cut": "b:eth0"}, {"segment": "lan", "partition": [["a"], ["b"]]}]
    )
    impair: st.SearchStrategy[dict[str, Any]] = impairing.map(lambda fields: {"impair": "lan", **fields})
    one = st.tuples(st.integers(0, 900_000), st.integers(1, 900_000), st.one_of(impair, severing))

    return st.lists(one, min_size=1, max_size=5).map(placed)


@settings(max_examples=settings().max_examples // 3)
@given(
    traffic(2), events(), st.sampled_from([{}, {"delay": "500 us"}, {"rate": "4 Mbit/s"}]), st.sets(st.integers(1, 30))
)
def test_a_link_that_changes_and_keeps_the_rules_passes(
    frames: list[Frame], events: list[dict[str, Any]], own: dict[str, str], gone: set[int]
) -> None:
    written = changing(events, impairments={"both": {**own, "loss": "30 %"}})
    assert check(written, changed(written, frames, frozenset(gone)).wire()) == []


CUT = [{"at": "1 ms", "for": "1 ms", "cut": "lan"}]


@pytest.mark.parametrize(("at", "passes"), [(999_999, True), (1_000_000, False), (1_999_999, False), (2_000_000, True)])
def test_a_cut_meets_what_begins_at_its_instant(at: int, passes: bool) -> None:
    plain, cut = segment("link", ENDS, rate="10 Mbit/s"), changing(CUT)
    crossing = changed(plain, [Frame(at, 0, 60, 1)]).wire()
    assert (check(cut, crossing) == []) == passes
    severed_there = changed(changing([{"at": "0 ns", "cut": "lan"}]), [Frame(at, 0, 60, 1)]).wire()
    assert (check(cut, severed_there) == []) == (not passes)


def test_a_frame_that_crosses_a_cut_is_found() -> None:
    cut = changing(CUT)
    crossing = changed(segment("link", ENDS, rate="10 Mbit/s"), [Frame(1_500_000, 1, 60, 1)]).wire()
    assert [(each["field"], each["expected"], each["seen"]) for each in check(cut, crossing)] == [
        ("time on the wire: fate from b:eth0 to a:eth0", "lost: cut", "not lost: cut")
    ]


def test_a_frame_that_is_lost_beside_a_cut_is_found() -> None:
    cut = changing(CUT)
    tape = changed(cut, [Frame(1_500_000, 0, 60, 1)])
    for text in (lost("a:eth0", "b:eth0"), severed("partition", "a:eth0", "b:eth0")):
        rows = [row if row["direction"] else {**row, "comment": text} for row in tape.rows]
        assert check(cut, Tape(ENDS, rows).wire())
    beside = changed(changing([{"at": "0 ns", "cut": "lan"}]), [Frame(0, 0, 60, 1)]).wire()
    assert check(cut, beside)


def test_a_fate_of_a_cut_that_is_missing_is_found() -> None:
    cut = changing(CUT)
    tape = changed(cut, [Frame(1_500_000, 0, 60, 1)])
    assert check(cut, tape.wire()) == []
    assert check(cut, Tape(ENDS, [row for row in tape.rows if row["direction"]]).wire())


def test_shares_are_judged_between_changes() -> None:
    """All that a loss of 20 % took it took while there was to be none."""
    frames = [Frame(100_000 * name, 0, 60, name) for name in range(1, 1001)]
    half = [{"at": "50050 us", "impair": "lan", "loss": "20 %"}]
    right = frozenset(range(501, 1001, 5))
    written = changing(half)
    assert check(written, changed(written, frames, right).wire()) == []
    wrong = check(written, changed(written, frames, frozenset(range(1, 501, 5))).wire())
    assert [(each["field"], each["seen"]) for each in wrong] == [
        ("time on the wire: lost frames of a:eth0 from 0 ns", "100"),
        ("time on the wire: lost frames of a:eth0 from 50050000 ns", "0"),
    ]


@pytest.mark.parametrize("delay", ["2 ms", "20 ms"])
def test_jitter_has_its_bounds_in_each_state(delay: str) -> None:
    """A frame before the change and one after it: each within its own 100 us."""
    written = changing(
        [{"at": "5 ms", "impair": "lan", "delay": delay}], impairments={"both": {"delay": "1 ms", "jitter": "100 us"}}
    )
    after = {"2 ms": 2_000_000, "20 ms": 20_000_000}[delay]

    def found(first: int, second: int) -> bool:
        tape = Tape(ENDS)
        for name, (at, late) in enumerate(((0, first), (5_000_000, second)), start=1):
            tape.add(at, 0, OUT, Frame(at, 0, 60, name))
            tape.add(at + 57_600 + 25 + late, 1, IN, Frame(at, 0, 60, name))
        return bool(check(written, tape.wire()))

    assert not found(900_000, after + 100_000)
    assert not found(1_100_000, after - 100_000)
    assert found(899_999, after)
    assert found(1_000_000, after + 100_001)


def test_the_order_of_frames_is_kept_unless_delays_change() -> None:
    def keeps(*events: dict[str, Any]) -> bool:
        found: bool = verifiers()["link"].keeps_order(changing(list(events)), "a:eth0")
        return found

    assert keeps({"at": "1 ms", "impair": "lan", "loss": "5 %"}, *CUT)
    assert not keeps({"at": "1 ms", "impair": "lan", "delay": "5 ms"})
    assert keeps({"at": "1 ms", "impair": "lan", "from": "b:eth0", "delay": "5 ms"})


def parted(events: list[dict[str, Any]], **fields: Any) -> Any:
    """A switch of three ports called lan, to which `events` happen."""
    written = segment("switch", PORTS, **{"rate": "10 Mbit/s", **fields})
    states = states_of([Event.model_validate(each) for each in events], {"lan": written})
    return written.with_timeline(states["lan"])


def switched_in_parts(written: Any, frames: list[Frame]) -> Tape:
    """A switch with lines of one rate and without queues that fill up, frame by frame."""
    tape, come = Tape(written.ports), []

    def state(at: int) -> State:
        past: list[State] = [State(), *(each for each in written.timeline if each.at_ns <= at)]
        return past[-1]

    for port, name in enumerate(written.ports):
        for frame in sending([one for one in frames if one.port == port], written.rate):
            tape.add(frame.at, port, OUT, frame)
            end = frame.at + bits(frame) * 10**9 // written.rate
            if name in state(frame.at).cut:
                tape.fate(end, severed_before("cut", name), frame)
            else:
                come.append((end + written.propagation, port, frame))
    homes: dict[int, int] = {}
    free = dict.fromkeys(range(3), 0)
    for at, port, frame in sorted(come, key=lambda one: one[:2]):
        homes[port + 1] = port
        known = homes.get(frame.target) if frame.target != BROADCAST else None
        for out in [known] if known is not None else [other for other in range(3) if other != port]:
            ready, here, there = at + written.forwarding_latency, written.ports[port], written.ports[out]
            if out == port:
                continue
            if replace(state(frame.at), cut=frozenset()).blocks(here, there):
                tape.fate(ready, severed("partition", here, there), frame)
                continue
            start = max(ready, free[out])
            end = start + bits(frame) * 10**9 // written.rate
            free[out] = end + 96 * 10**9 // written.rate
            if there in state(start).cut:
                tape.fate(end, severed("cut", here, there), frame)
            else:
                tape.add(end + written.propagation, out, IN, frame)
    return tape


def parting() -> st.SearchStrategy[list[dict[str, Any]]]:
    one: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
        {"cut": "lan"}, {"cut": "b:eth0"}, {"cut": "a:eth0"}, {"segment": "lan", "partition": [["a"], ["b", "c"]]},
        {"segment": "lan", "partition": [["c"], ["b"], ["a"]]},
    ])  # fmt: skip
    return st.lists(st.tuples(st.integers(0, 900_000), st.integers(1, 900_000), one), min_size=1, max_size=5).map(
        placed
    )


@settings(max_examples=settings().max_examples // 3)
@given(traffic(3), parting())
def test_a_switch_that_changes_and_keeps_the_rules_passes(frames: list[Frame], events: list[dict[str, Any]]) -> None:
    written = parted(events)
    assert check(written, switched_in_parts(written, frames).wire()) == []


PARTS = [{"at": "1 ms", "for": "1 ms", "segment": "lan", "partition": [["a"], ["b", "c"]]}]


@pytest.mark.parametrize("events", [PARTS, CUT])
def test_a_frame_that_crosses_a_switch_in_parts_is_found(events: list[dict[str, Any]]) -> None:
    frames = [Frame(1_500_000, 0, 60, 1)]
    whole, parts = segment("switch", PORTS, rate="10 Mbit/s"), parted(events)
    assert check(parts, switched_in_parts(parts, frames).wire()) == []
    assert check(parts, switched_in_parts(whole, frames).wire())
    assert check(whole, switched_in_parts(parts, frames).wire())
    tape = switched_in_parts(parts, frames)
    assert check(parts, Tape(PORTS, [row for row in tape.rows if row["direction"]]).wire())
    rows: list[dict[str, Any]] = tape.rows
    late = [{**row, "time_ns": row["time_ns"] + (0 if row["direction"] else 1)} for row in rows]
    assert check(parts, Tape(PORTS, late).wire())


def block(stamp_ns: int, text: bytes) -> bytes:
    """An interface statistics block with a comment (draft-ietf-opsawg-pcapng, 4.6)."""
    words = (1, len(text))
    option = b"".join(each.to_bytes(2, "little") for each in words) + text + bytes(-len(text) % 4) + bytes(4)
    size = (24 + len(option)).to_bytes(4, "little")
    stamp = b"".join(each.to_bytes(4, "little") for each in (stamp_ns >> 32, stamp_ns & 0xFFFFFFFF))
    return (5).to_bytes(4, "little") + size + bytes(4) + stamp + option + size


SECTION = bytes.fromhex("0a0d0d0a 1c000000 4d3c2b1a 01000000 ffffffffffffffff 1c000000".replace(" ", ""))
INTERFACE = bytes.fromhex("01000000 14000000 01000000 00000000 14000000".replace(" ", ""))
NOTES = [(1_000_000, b"timeline: cut lan"), (2_000_000, b"timeline: end of cut lan")]


@pytest.mark.parametrize(
    ("notes", "found"),
    [
        (NOTES, 0),
        (NOTES[:1], 1),
        ([(1_000_001, NOTES[0][1]), NOTES[1]], 2),
        ([(1_000_000, b"timeline: cut lan, twice"), NOTES[1]], 2),
        ([*NOTES, NOTES[1]], 1),
        (NOTES[::-1], 1),
    ],
)
def test_each_event_has_its_comment(tmp_path: Path, notes: list[tuple[int, bytes]], found: int) -> None:
    wire = replace(Tape(ENDS).wire(), folder=tmp_path, epoch_ns=7)
    (tmp_path / "lan.pcapng").write_bytes(SECTION + INTERFACE + b"".join(block(7 + at, text) for at, text in notes))
    assert len(check_notes(changing(CUT), wire)) == found


def test_an_event_after_the_end_has_no_comment(tmp_path: Path) -> None:
    wire = replace(Tape(ENDS).wire(end_ns=2_000_000), folder=tmp_path)
    (tmp_path / "lan.pcapng").write_bytes(SECTION + INTERFACE + block(*NOTES[0]))
    assert isinstance(check_notes(changing(CUT), wire), pl.DataFrame)
    assert check_notes(changing(CUT), wire).is_empty()
