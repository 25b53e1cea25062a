# SPDX-License-Identifier: Apache-2.0
"""Pairs as clients and servers make them (guest-apps/sss-core/include/sss/vmmc_pair.h): the client imports what the
server offers, says hello there with the name of an export of its own, and the server imports that and welcomes it."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from sundial.segments.vmmc.wire import AU, NAME_BYTES, NOTIFY, UNCOMBINED, WORD
from sundial.workloads.vmmc.verify_evidence import Evidence, Finding, Import, Judgement

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


def find_pairs(evidence: Evidence, judgement: Judgement, prefix: str) -> list[Pair]:
    """Those whose offer has a name that begins so, in the order of time. Their hellos and welcomes are judged and
    claimed."""
    backs = {(each.exporter, each.importer, each.name): each for each in evidence.imports if each.granted}
    found = []
    for there in evidence.imports:
        if not there.granted or not there.name.startswith(prefix):
            continue
        pair = _pair(evidence, judgement, there, backs)
        if pair is not None:
            found.append(pair)
    return found


def _pair(
    evidence: Evidence, judgement: Judgement, there: Import, backs: dict[tuple[int, int, str], Import]
) -> Pair | None:
    """None: its client did not get so far."""
    if there.key != OFFERED_KEY:
        judgement.findings.append((None, "vmmc.import.key", str(OFFERED_KEY), str(there.key), [there.request]))
    hello = _own(evidence, there)
    judgement.claim(hello["row"], None)
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
            judgement.findings.append((None, f"vmmc.hello.{what}", str(expected), str(seen), rows))
    back = backs.get((there.importer, there.exporter, text))
    if back is None:
        return None
    if back.key != key:
        judgement.findings.append((None, "vmmc.hello.key", str(key), str(back.key), [back.request]))
    if hello["arrived_ns"].null_count() or back.asked_ns < (hello["arrived_ns"].max() or 0):  # type: ignore[operator]
        judgement.findings.append((None, "vmmc.hello", "before the server imports", "later", rows))
    welcome = _own(evidence, back)
    judgement.claim(welcome["row"], None)
    if welcome.is_empty():
        return None
    judgement.findings += _check_words(welcome, WORD, "welcome", notify)
    word = int.from_bytes(evidence.contents(welcome)[:WORD], "little")
    if word & 0xFFFFFFFF != _SAID_WELCOME or word >> 32 not in (0, _MISMATCH):
        judgement.findings.append((None, "vmmc.welcome", "welcome", f"0x{word:x}", welcome["row"].to_list()))
    return Pair(there, back, task, hash_, notify, welcome["arrived_ns"][0]) if word >> 32 == 0 else None


def _of(own: re.Match[str]) -> tuple[int, int]:
    return int(own[1]), int(own[2])


def _check_words(packets: pl.DataFrame, size: int, what: str, notify: int) -> Iterator[Finding]:
    """A hello or welcome: words from the beginning on, each a packet."""
    columns = packets.select("kind", "flags", "reason", "offset", "length", "count")
    flags = NOTIFY if notify == NOTIFY_CONTROL else 0
    expected = [(AU, flags, UNCOMBINED, at, WORD, 1) for at in range(0, size, WORD)]
    if columns.rows() != expected:
        seen = f"{packets.height} packets of {packets['length'].sum()} bytes"
        yield None, f"vmmc.{what}", f"{len(expected)} words, each a packet", seen, packets["row"].to_list()
