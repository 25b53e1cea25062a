# SPDX-License-Identifier: Apache-2.0
"""C706's states, row by row, against the machines that verification replays: what a row shows is explained, and what it
does not show is a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from sundial.judge.machine import NEVER
from sundial.judge.replay import Item, Replay, Sent
from sundial.workloads.dce.expect_pdu import Flags, Pdu, Type
from sundial.workloads.dce.verify_client import NO_ANSWER, OK, Client
from sundial.workloads.dce.verify_message import encode
from sundial.workloads.dce.verify_server import EXECUTED
from sundial.workloads.dce.verify_stream import EPM, Machine, Settings
from tests.workloads.dce.states import ACTIONS, SECOND, Row, Script, Step, rows

ROWS = [row for row in rows() if not row.guest]
every_row = pytest.mark.parametrize("row", ROWS, ids=str)


def replayed(script: Script, items: Sequence[Item]) -> list[tuple[str, str, str]]:
    """What a replay of a whole row finds in such items."""
    replay: Replay[Client] = Replay([script.machine.clone()])  # type: ignore[list-item]
    replay.run(items, script.row.steps[-1].at_ns)
    return [finding[1:4] for finding in replay.findings]


# ---- what a row shows is explained ----


class Walk:
    """A row in its order: what was seen up to a place, and what the machine knows then."""

    def __init__(self, row: Row) -> None:
        self.script = Script(row)
        self.replay: Replay[Client] = Replay([self.script.machine])  # type: ignore[list-item]
        self.pending: list[Item] = []
        self.now_ns = 0
        self.calls = 0

    def settle(self) -> list[Client]:
        self.replay.run(self.pending, self.now_ns)
        self.pending = []
        assert self.replay.findings == []
        return self.replay.histories

    def step(self, number: int, step: Step) -> None:
        if step.at_ns > self.now_ns:
            self.settle()
        if step.kind == "timer":
            assert {each.deadline() for each in self.replay.histories} == {step.at_ns}
        self.now_ns = step.at_ns
        if number in self.script.items:
            self.pending.append(self.script.items[number])
        self.calls += step.kind == "call"
        if step.kind == "end":
            ends = {each.ended.get(self.calls - 1) for each in self.settle()}
            assert ends == {(ended(step.words), step.at_ns)}
        for check in step.words if step.kind == "is" else ():
            name, _, value = check.partition("=")
            assert {seen for each in self.settle() for seen in known(each, name)} == {meant(name, value)}


def ended(words: Sequence[str]) -> str:
    if words[0] in ("fault", "reject"):
        return f"{words[0]} {int(words[1], 0):08x}"
    return {"ok": OK, "no_answer": NO_ANSWER}[words[0]]


def meant(name: str, value: str) -> object:
    if name == "timer":
        return NEVER if value == "never" else round(float(value) * SECOND)
    return value if name == "state" else int(value, 0)


def known(machine: Client, name: str) -> Iterator[object]:
    """What a history says of the thing with this name in a row."""
    if name == "timer":
        yield min(machine.deadline(), NEVER)
    elif name == "state":
        yield machine.state
    elif name in ("boot", "hint"):
        yield {"boot": machine.boot_time, "hint": machine.activity_hint}[name]
    elif name == "kept" and isinstance(machine, Client):
        yield int(machine.outgoing is not None and not machine.outgoing.sender.done)
    elif name == "executed":
        yield sum(count for key, count in machine.counts.items() if key.startswith(EXECUTED))
    else:
        yield from (counts[name] for counts in machine.tally())


def walk(row: Row) -> None:
    it = Walk(row)
    for number, step in enumerate(row.steps):
        it.step(number, step)
    it.settle()


@every_row
def test_row_is_explained(row: Row) -> None:
    walk(row)


@pytest.mark.parametrize("row", [row for row in rows() if row.guest], ids=str)
def test_row_of_guests_alone_has_no_place_here(row: Row) -> None:
    with pytest.raises((AssertionError, KeyError, ValueError)):
        walk(row)


# ---- what it does not show is a finding ----

FIELDS: dict[str, Callable[[Pdu], Pdu]] = {
    "flags1": lambda pdu: replace(pdu, flags=pdu.flags ^ Flags.IDEMPOTENT),
    "flags2": lambda pdu: replace(pdu, flags2=pdu.flags2 ^ 4),
    "drep": lambda pdu: replace(pdu, little_endian=False),
    "serial": lambda pdu: replace(pdu, serial=pdu.serial + 1),
    "object": lambda pdu: replace(pdu, object=UUID(int=1)),
    "interface": lambda pdu: replace(pdu, interface=EPM),
    "activity": lambda pdu: replace(pdu, activity=UUID(int=pdu.activity.int ^ 1 << 40)),
    "boot time": lambda pdu: replace(pdu, boot_time=pdu.boot_time ^ 1),
    "interface version": lambda pdu: replace(pdu, interface_version=2),
    "sequence number": lambda pdu: replace(pdu, sequence=pdu.sequence + 1),
    "opnum": lambda pdu: replace(pdu, opnum=pdu.opnum + 1),
    "interface hint": lambda pdu: replace(pdu, interface_hint=9),
    "activity hint": lambda pdu: replace(pdu, activity_hint=9),
    "length": lambda pdu: replace(pdu, body=pdu.body + b"\0"),
    "fragment number": lambda pdu: replace(pdu, fragment=pdu.fragment ^ 1),
    "authentication": lambda pdu: replace(pdu, auth=1),
}
SILENT = Flags.NO_FACK
TYPES = {"client": (Type.PING, Type.ACK, Type.FACK), "server": (Type.WORKING, Type.NOCALL, Type.FACK, Type.RESPONSE)}


def resent(item: Item, pdu: Pdu, at_ns: int | None = None) -> Sent:
    return Sent(item.at_ns if at_ns is None else at_ns, pdu, encode(pdu))


def exchanged(items: Sequence[Item], place: int, pdu: Pdu) -> list[Item]:
    return [*items[:place], resent(items[place], pdu), *items[place + 1 :]]


def with_other_fields(items: Sequence[Item], begin: int) -> Iterator[tuple[str, list[Item]]]:
    """The field, and the items with another value there."""
    for place, item in enumerate(items):
        if place >= begin and isinstance(item, Sent):
            for name, change in FIELDS.items():
                yield name, exchanged(items, place, change(item.message))
            if body := item.message.body:
                yield "body", exchanged(items, place, replace(item.message, body=bytes((body[0] ^ 1,)) + body[1:]))


def without_one(items: Sequence[Item], begin: int) -> Iterator[tuple[str, list[Item]]]:
    """A PDU is missing: one that was sent, or what made the machine send."""
    for place in range(begin, len(items)):
        if any(isinstance(item, Sent) for item in items[place : place + 2]):
            yield f"without {place}", [*items[:place], *items[place + 1 :]]


def with_one_more(side: str, items: Sequence[Item], begin: int) -> Iterator[tuple[str, list[Item]]]:
    """A PDU without a cause: of any type, the same once more, a fragment again or too early."""
    own = next((item.message for item in items if isinstance(item, Sent)), items[0].message)
    for place in range(begin, len(items)):
        before, behind = items[place], items[place + 1 : place + 2]
        more = [replace(own, type=kind, flags=Flags(0), body=b"") for kind in TYPES[side]]
        more += [before.message] if isinstance(before, Sent) else []
        more += more_fragments([item.message for item in items[: place + 1] if isinstance(item, Sent)])
        for pdu in more:
            if [pdu] != [item.message for item in behind]:
                yield f"{pdu.type.name} behind {place}", [*items[: place + 1], resent(before, pdu), *items[place + 1 :]]


def more_fragments(own: Sequence[Pdu]) -> Iterator[Pdu]:
    for last in [pdu for pdu in own if pdu.type in (Type.REQUEST, Type.RESPONSE)][-1:]:
        yield replace(last, serial=last.serial + 1)
        following = replace(last, fragment=last.fragment + 1, serial=last.serial + 1, body=last.body[:8])
        for flags in (Flags(0), SILENT, SILENT | Flags.LAST_FRAGMENT):
            yield replace(following, flags=last.flags | flags)


def with_others_asking(items: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    for place, item in enumerate(items):
        if isinstance(item, Sent) and item.message.flags & Flags.FRAGMENT and not item.message.last:
            yield f"{place} asks", exchanged(items, place, replace(item.message, flags=item.message.flags ^ SILENT))


def too_early(script: Script) -> Iterator[tuple[str, list[Item]]]:
    """What follows from a timer, a call or the end of a procedure is there 1 ns before."""
    steps, own = script.row.steps, script.items
    event, before_ns, caused = "", -1, dict[int, list[int]]()
    for number, step in enumerate(steps):
        if step.kind not in ACTIONS:
            event, before_ns = step.kind, steps[number - 1].at_ns if number else 0
        if step.kind == ">" and event != "<" and step.at_ns > before_ns:
            caused.setdefault(step.at_ns, []).append(number)
    for numbers in caused.values():
        early = {number: resent(own[number], own[number].message, own[number].at_ns - 1) for number in numbers}
        yield f"{numbers} too early", list({**own, **early}.values())


UNSURE = {
    "working_puts_pings_off": ["without 1", "without 3", "without 4"],
    "nocall_without_body_asks_for_all": ["without 4"],
    "nocall_names_a_hole": ["without 4"],
    "nocall_names_the_last_fragment": ["without 3"],
    "nocall_that_names_all_puts_the_ping_off": ["without 3"],
    "nocall_without_news_does_not_go_on_for_ever": ["without 2", "without 4", "without 6", "without 8", "without 10"],
    "cancel_each_second_until_acknowledged": ["without 1", "without 2"],
    "cancel_beside_pings": ["without 3"],
    "greater_number_orphans_the_call": ["without 5"],
    "smaller_numbers_are_dropped": ["without 11"],
}
"""Timers may be late and procedures take longer than a row has it: what comes behind is then read first, and explains
that nothing was sent."""


@every_row
def test_damaged_row_is_not_explained(row: Row) -> None:
    script = Script(row)
    items, begin = list(script.items.values()), script.begin
    assert replayed(script, items) == []
    damages = [*without_one(items, begin), *with_one_more(row.side, items, begin), *with_others_asking(items)]
    missed = [name for name, damaged in (*damages, *too_early(script)) if not replayed(script, damaged)]
    assert missed == UNSURE.get(row.name, [])


@every_row
def test_damaged_field_is_named(row: Row) -> None:
    script = Script(row)
    for field, items in with_other_fields(list(script.items.values()), script.begin):
        assert [found for found, _, _ in replayed(script, items)] == [field]


class Restless(Machine):
    """Its timer is always due, as that of a program with a negative time."""

    def steps(self, until_ns: int) -> Iterator[str]:
        yield "timer"

    def take(self, step: str) -> None:
        return

    def deadline(self) -> int:
        return 0

    def patience(self) -> int:
        return NEVER


def test_a_machine_that_never_comes_to_rest_is_a_finding() -> None:
    replay = Replay([Restless(Settings())])
    replay.run([], end_ns=1)
    assert [finding[1:4] for finding in replay.findings] == [
        ("sent", "what its program can have sent", "more ways than can be tried")
    ]
