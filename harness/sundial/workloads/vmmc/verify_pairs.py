# SPDX-License-Identifier: Apache-2.0
"""Pairs as clients and servers make them (guest-apps/sss-core/include/sss/vmmc_pair.h): the client imports what the
server offers, says hello there with the name of an export of its own, and the server imports that and welcomes it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

from sundial.segments.vmmc.wire import AU, NAME_BYTES, NOTIFY, UNCOMBINED, WORD
from sundial.verify.findings import Finding
from sundial.workloads.vmmc.verify_evidence import Evidence, Import, Judgement

OWN_BYTES = 256
"""Of the control page: hello and welcome; what is behind them is of those who use the pair."""
OFFERED_KEY = 0
"""Servers of workloads offer what anybody may import."""
SILENT, NOTIFY_CONTROL, NOTIFY_END = 0, 1, 2
"""Which packets are notifications, as the hello says."""
_NOTIFY = (SILENT, NOTIFY_CONTROL, NOTIFY_END)

_HELLO = struct.Struct(f"<QQ{NAME_BYTES}sHHIQ")
_SAID_HELLO = int.from_bytes(b"hello", "little")
_SAID_WELCOME = int.from_bytes(b"come", "little")
_MISMATCH = 16
_CLIENT = re.compile(r"client\.(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Pair:
    """One that was opened: `there` is the client's import of what the server offers, `back` the server's of what the
    client has exported."""

    there: Import
    back: Import
    task: int
    """The client's."""
    hash: int
    notify: int
    welcomed_ns: int | None
    """When the welcome was in the client's memory."""

    @property
    def client(self) -> int:
        """Number of the node."""
        return self.there.importer

    @property
    def server(self) -> int:
        return self.there.exporter

    def sent(self, evidence: Evidence) -> pl.DataFrame:
        """What the client wrote, behind its hello."""
        return _behind(evidence, self.there)

    def answered(self, evidence: Evidence) -> pl.DataFrame:
        """What the server wrote, behind its welcome."""
        return _behind(evidence, self.back)


def _behind(evidence: Evidence, of: Import) -> pl.DataFrame:
    return evidence.through(of).filter(pl.col("offset") >= OWN_BYTES)


def _own(evidence: Evidence, of: Import) -> pl.DataFrame:
    return evidence.through(of).filter(pl.col("offset") < OWN_BYTES)


OpenT = TypeVar("OpenT")


def opened_at(opened: Sequence[OpenT], pair_of: Callable[[OpenT], Pair], at_ns: int) -> OpenT | None:
    """Of a task's pairs with one server, in the order of time, that of a batch that began then: the last one before.
    A node that has had 255 tasks in one place gives their numbers again."""
    before = (each for each in reversed(opened) if pair_of(each).there.asked_ns <= at_ns)
    return next(before, opened[0] if opened else None)


@dataclass(frozen=True)
class _Hello:
    """What a client said in what it had imported."""

    there: Import
    hash: int
    key: int
    name: str
    task: int
    notify: int
    packets: pl.DataFrame

    @property
    def heard_ns(self) -> int | None:
        """When the server had all of it."""
        arrived = self.packets["arrived_ns"]
        return None if arrived.null_count() else int(arrived.max())  # type: ignore[arg-type]

    def answers(self, back: Import) -> bool:
        """Whether it is what an import was asked for with."""
        return back.key == self.key and self.is_before(back)

    def is_before(self, back: Import) -> bool:
        return self.heard_ns is not None and self.heard_ns <= back.asked_ns


def find_pairs(evidence: Evidence, judgement: Judgement, prefix: str) -> list[Pair]:
    """Those whose offer has a name that begins so, in the order of time. Their hellos and welcomes are judged and
    claimed."""
    theirs = [each for each in evidence.imports if each.granted and each.name.startswith(prefix)]
    hellos = [hello for there in theirs if (hello := _hello(evidence, judgement, there)) is not None]
    opened = (
        _pair(evidence, judgement, hello, back)
        for hello, back in zip(hellos, _imported_back(evidence, hellos), strict=True)
        if back is not None
    )
    return [pair for pair in opened if pair is not None]


def _imported_back(evidence: Evidence, hellos: Sequence[_Hello]) -> list[Import | None]:
    """The import that came of each hello. Another task of the same number gives its exports the same names, with other
    keys; what is wrong is compared with the first that is left."""
    left: dict[tuple[int, int, str], list[Import]] = {}
    for each in evidence.imports:
        if each.granted:
            left.setdefault((each.exporter, each.importer, each.name), []).append(each)
    found: list[Import | None] = [None] * len(hellos)
    for fits in (_Hello.answers, _Hello.is_before, lambda hello, back: True):
        for place, hello in enumerate(hellos):
            named = left.get((hello.there.importer, hello.there.exporter, hello.name), [])
            back = next((each for each in named if fits(hello, each)), None)
            if found[place] is None and back is not None:
                found[place] = back
                named.remove(back)
    return found


def _hello(evidence: Evidence, judgement: Judgement, there: Import) -> _Hello | None:
    """None: its client did not get so far."""
    if there.key != OFFERED_KEY:
        judgement.findings.append(Finding(None, "vmmc.import.key", str(OFFERED_KEY), str(there.key), [there.request]))
    hello = _own(evidence, there)
    judgement.attribute(hello["row"], None)
    data = evidence.contents(hello)
    if hello.is_empty() or (there.gone and len(data) < _HELLO.size):
        return None
    if len(data) != _HELLO.size:
        judgement.findings += _check_words(hello, _HELLO.size, "hello", SILENT)
        return None
    hash_, key, name, node, task, notify, said = _HELLO.unpack(data)
    judgement.findings += _check_words(hello, _HELLO.size, "hello", notify)
    text = name.partition(b"\0")[0].decode("ascii", "replace")
    rows = hello["row"].to_list()
    own = _CLIENT.fullmatch(text)
    for what, expected, seen in (
        ("said", _SAID_HELLO, said),
        ("notify", notify if notify in _NOTIFY else f"one of {_NOTIFY}", notify),
        ("name", text + "\0" * (NAME_BYTES - len(text)), name.decode("latin-1")),
        ("node", there.importer, node),
        ("name", f"client.{there.importer}.{task}.N", text if own is None or _of(own) != (node, task) else None),
    ):
        if seen is not None and seen != expected:
            judgement.findings.append(Finding(None, f"vmmc.hello.{what}", str(expected), str(seen), rows))
    return _Hello(there, hash_, key, text, task, notify, hello)


def _pair(evidence: Evidence, judgement: Judgement, hello: _Hello, back: Import) -> Pair | None:
    """None: its client was not welcomed."""
    if back.key != hello.key:
        judgement.findings.append(Finding(None, "vmmc.hello.key", str(hello.key), str(back.key), [back.request]))
    if not hello.is_before(back):
        rows = hello.packets["row"].to_list()
        judgement.findings.append(Finding(None, "vmmc.hello", "before the server imports", "later", rows))
    welcome = _own(evidence, back)
    judgement.attribute(welcome["row"], None)
    if welcome.is_empty():
        return None
    judgement.findings += _check_words(welcome, WORD, "welcome", hello.notify)
    word = int.from_bytes(evidence.contents(welcome)[:WORD], "little")
    if word & 0xFFFFFFFF != _SAID_WELCOME or word >> 32 not in (0, _MISMATCH):
        judgement.findings.append(Finding(None, "vmmc.welcome", "welcome", f"0x{word:x}", welcome["row"].to_list()))
    if word >> 32 != 0:
        return None
    return Pair(hello.there, back, hello.task, hello.hash, hello.notify, welcome["arrived_ns"][0])


def _of(own: re.Match[str]) -> tuple[int, int]:
    return int(own[1]), int(own[2])


def _check_words(packets: pl.DataFrame, size: int, what: str, notify: int) -> Iterator[Finding]:
    """A hello or welcome: words from the beginning on, each a packet."""
    columns = packets.select("kind", "flags", "reason", "offset", "length", "count")
    flags = NOTIFY if notify == NOTIFY_CONTROL else 0
    expected = [(AU, flags, UNCOMBINED, at, WORD, 1) for at in range(0, size, WORD)]
    if columns.rows() != expected:
        seen = f"{packets.height} packets of {packets['length'].sum()} bytes"
        yield Finding(None, f"vmmc.{what}", f"{len(expected)} words, each a packet", seen, packets["row"].to_list())
