# SPDX-License-Identifier: Apache-2.0
"""The rows of guest-apps/dce/tests/states.txt, which describes their format, for the replayed machines."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from sundial.judge.replay import Item, Sent
from sundial.workloads.dce.expect_pdu import NO_HINT, NONE_IN_ORDER, Fack, Flags, Pdu, Type
from sundial.workloads.dce.verify_client import Call, Client
from sundial.workloads.dce.verify_message import encode
from sundial.workloads.dce.verify_server import CANCELLED, Server
from sundial.workloads.dce.verify_sides import fack_of
from sundial.workloads.dce.verify_stream import (
    CONV,
    FACK_VERSION,
    MOST_TSDU,
    SUNDIAL,
    Arrival,
    Settings,
    blank,
    fack_body,
    payload,
)

FILE = Path(__file__).parents[4] / "guest-apps" / "dce" / "tests" / "states.txt"
SECOND = 1_000_000_000
SEQUENCE, BOOT, FRAGMENT_BODY, ARRIVING = 40, 0x5EED, 4016, 8
ACTIVITY, CONV_ACTIVITY = UUID(bytes=b"\xac\x01" + bytes(14)), UUID(bytes=b"\xc0" + bytes(15))
HINTS = {"client": (3, 4), "server": (NO_HINT, 0)}
"""Of the interface and the activity, as the server says them."""
ACTIONS = (">", "run", "end", "is")
FLAGS = {
    "quiet": Flags.NO_FACK,
    "maybe": Flags.MAYBE,
    "idempotent": Flags.IDEMPOTENT,
    "broadcast": Flags.BROADCAST | Flags.IDEMPOTENT,
}
HEADER = {
    "seq": "sequence",
    "boot": "boot_time",
    "hint": "activity_hint",
    "opnum": "opnum",
    "flags2": "flags2",
    "version": "interface_version",
    "auth": "auth",
}
OTHERS = {"new", "accepting", "serial", "size", "window", "selack", "conv", "about", "knows", "from", "to"}
LONG_NS = 10_000 * SECOND
"""Of a procedure whose end is not in its row."""


@dataclass(frozen=True)
class Step:
    """An event, an action or a check."""

    at_ns: int
    kind: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A row with the steps of the one that it begins with."""

    side: str
    name: str
    guest: bool
    """Only the machines of guests have it."""
    options: Mapping[str, str]
    steps: tuple[Step, ...]
    begin: int
    """Of its own steps, behind those of another row."""

    def __str__(self) -> str:
        return f"{self.side}-{self.name}"

    @cached_property
    def settings(self) -> Settings:
        cancels = [step.at_ns for step in self.steps if step.kind == "cancel"]
        return Settings(
            policy=self.options.get("policy", "window"),  # type: ignore[arg-type]
            give_up_ns=int(self.options.get("give_up", "30")) * SECOND,
            cancel_ns=min(cancels, default=0),
        )


def rows() -> list[Row]:
    """All of them; a row ends at an empty line, or where the next one begins."""
    found: dict[tuple[str, str], Row] = {}
    for block in re.split(r"\n\n|\n(?=row )", FILE.read_text()):
        head, *lines = block.strip().splitlines()
        if head[0] != "#":
            row = _row(head, [step for line in lines for step in _steps(line)], found)
            assert (row.side, row.name) not in found, f"{FILE}: {row} is there twice"
            found[row.side, row.name] = row
    return list(found.values())


def _row(line: str, steps: list[Step], known: Mapping[tuple[str, str], Row]) -> Row:
    head, _, rule = line.partition(" | ")
    kind, side, name, *words = head.split()
    assert kind == "row", f"{FILE}: this line belongs to no row: {line}"
    assert rule, f"{FILE}: {name} does not name its source"
    before: list[Step] = []
    if "after" in words:
        other = known[side, words[words.index("after") + 1]]
        before = [step for step in other.steps if step.kind != "is"]
    options = dict(word.split("=") for word in words if "=" in word)
    return Row(side, name, "guest" in words, options, (*before, *steps), len(before))


def _steps(line: str) -> Iterator[Step]:
    at, *words = line.partition("#")[0].split() or ["0"]
    begins = [place for place, word in enumerate(words) if not place or word in ACTIONS]
    for begin, end in pairwise([*begins, len(words)]):
        yield Step(round(float(at) * SECOND), words[begin], tuple(words[begin + 1 : end]))


# ---- PDUs ----


@dataclass
class Reader:
    """What the PDUs of a row mean at the place that it has come to."""

    side: str
    sequence: int = SEQUENCE
    size: int = 0
    """Of the present arguments or results."""

    def pdu(self, words: Sequence[str], *, is_sent: bool) -> Pdu:
        kind, values, numbers, flags = words[0], dict[str, str](), list[int](), Flags(0)
        part = [0, 0]
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals:
                values[name] = value
            elif "/" in word:
                part = [int(each) for each in word.split("/")]
                flags |= Flags.FRAGMENT
                flags |= Flags.LAST_FRAGMENT | Flags.NO_FACK if part[0] == part[1] - 1 else Flags(0)
            elif word in FLAGS:
                flags |= FLAGS[word]
            elif word in ("new", "accepting"):
                values[word] = "1"
            else:
                numbers.append(NONE_IN_ORDER if word == "none" else int(word, 0))
        assert values.keys() <= HEADER.keys() | OTHERS, f"{FILE}: {words}"
        if kind in ("who", "who_answer"):
            return self._conv(kind, values, numbers)
        plain = self._header(Type["CL_CANCEL" if kind == "cancel" else kind.upper()], flags, values)
        if plain.type in (Type.REQUEST, Type.RESPONSE):
            piece = FRAGMENT_BODY if is_sent else int(values.get("size", ARRIVING))
            whole = self.size if is_sent else piece * (part[0] + 1)
            own = payload(plain.sequence, whole)[part[0] * piece : (part[0] + 1) * piece]
            return replace(plain, fragment=part[0], serial=int(values.get("serial", part[0])), body=own)
        return self._control(plain, values, numbers)

    def _header(self, kind: Type, flags: Flags, values: Mapping[str, str]) -> Pdu:
        interface_hint, activity_hint = HINTS[self.side] if "new" not in values else (NO_HINT, NO_HINT)
        plain = replace(
            blank(ACTIVITY, SUNDIAL, self.sequence, 1, little=True), type=kind, flags=flags,
            boot_time=0 if "new" in values else BOOT, interface_hint=interface_hint, activity_hint=activity_hint,
        )  # fmt: skip
        named = {HEADER[name]: int(value, 0) for name, value in values.items() if name in HEADER}
        return replace(plain, **named)  # type: ignore[arg-type]

    @staticmethod
    def _conv(kind: str, values: Mapping[str, str], numbers: list[int]) -> Pdu:
        is_question = kind == "who"
        activity = UUID(int=CONV_ACTIVITY.int + (int(values.get("conv", 0)) << 8))
        plain = blank(activity, CONV, int(values.get("seq", 1)), int(values.get("opnum", 0)), little=True)
        if is_question:
            about = UUID(int=ACTIVITY.int + (int(values.get("about", 0)) << 80))
            body = about.bytes_le + struct.pack("<I", int(values.get("knows", str(BOOT)), 0))
            return replace(plain, flags=Flags.IDEMPOTENT, body=body)
        return replace(plain, type=Type.RESPONSE, body=struct.pack("<II", *numbers, *[0] * (2 - len(numbers))))

    @staticmethod
    def _control(plain: Pdu, values: Mapping[str, str], numbers: list[int]) -> Pdu:
        if plain.type in (Type.FACK, Type.NOCALL) and numbers:
            words = tuple(int(word, 0) for word in values["selack"].split(",")) if "selack" in values else ()
            serial, window = int(values.get("serial", numbers[0])), int(values.get("window", 32))
            body = fack_body(Fack(FACK_VERSION, window, MOST_TSDU, 4096, serial, words), "<")
            return replace(plain, fragment=numbers[0], body=body)
        if plain.type in (Type.FAULT, Type.REJECT):
            return replace(plain, body=struct.pack("<I", numbers[0]))
        if plain.type == Type.CL_CANCEL and numbers:
            return replace(plain, body=struct.pack("<II", 0, numbers[0]))
        if plain.type == Type.CANCEL_ACK and numbers:
            return replace(plain, body=struct.pack("<IIB", 0, numbers[0], "accepting" in values))
        return plain


def shown(reader: Reader, words: Sequence[str], at_ns: int) -> Item:
    """What a port shows: `words` begin with `<` or `>`."""
    pdu = reader.pdu(words[1:], is_sent=words[0] == ">")
    return Sent(at_ns, pdu, encode(pdu)) if words[0] == ">" else Arrival(at_ns, pdu, fack_of(pdu))


# ---- machines ----


@dataclass
class Paced(Server):
    """A server whose procedures take as long as its row says."""

    work: Mapping[int, int] = field(default_factory=dict)
    """By sequence number, in ns."""

    def _run_if_complete(self) -> None:
        self.work_ns = self.work.get(self.sequence, LONG_NS)
        super()._run_if_complete()


@dataclass
class Script:
    """A row as a machine and what a port shows."""

    row: Row
    machine: Client | Server = field(init=False)
    items: dict[int, Item] = field(init=False)
    """By the number of their step."""

    @property
    def begin(self) -> int:
        """Items of the row that this one begins with."""
        return sum(number < self.row.begin for number in self.items)

    def __post_init__(self) -> None:
        self.items, calls, sizes, work = {}, list[Call](), dict[int, int](), dict[int, int]()
        reader, arrived, running, run_ns = Reader(self.row.side), SEQUENCE, SEQUENCE, 0
        for number, step in enumerate(self.row.steps):
            if step.kind == "call":
                reader.sequence, reader.size = SEQUENCE + len(calls), int(step.words[0])
                calls.append(self._call(step, reader.sequence))
            elif step.kind == "result":
                fails = step.words[0] == "fault"
                reader.size = sizes[running] = 0 if fails else int(step.words[0])
                # The procedure ends its work when it is cancelled, else at its time.
                work[running] = LONG_NS if step.words[1:] == (f"{CANCELLED:#x}",) else step.at_ns - run_ns
            elif step.kind == "run":
                running, run_ns = arrived, step.at_ns
            elif step.kind in ("<", ">"):
                self.items[number] = item = shown(reader, (step.kind, *step.words), step.at_ns)
                if isinstance(item, Arrival) and item.message.type == Type.REQUEST:
                    arrived = item.message.sequence
        if calls:
            calls[-1] = replace(calls[-1], settles=True)
            self.machine = Client(self.row.settings, activity=ACTIVITY, calls=calls)
        else:
            self.machine = Paced(
                self.row.settings, activity=ACTIVITY, boot_time=BOOT, hint=0, conv=CONV_ACTIVITY, work=work,
                results=lambda asked: payload(asked.sequence, sizes.get(asked.sequence, 0)),
            )  # fmt: skip

    def _call(self, step: Step, sequence: int) -> Call:
        semantics, opnum = Flags(0), 1
        for word in step.words[1:]:
            semantics |= FLAGS.get(word, Flags(0))
            opnum = int(word.partition("=")[2]) if word.startswith("opnum=") else opnum
        return Call(
            sequence, SUNDIAL, opnum, semantics, (int(step.words[0]), 0), start_ns=step.at_ns,
            begins=sequence == SEQUENCE, settles=False,
        )  # fmt: skip
