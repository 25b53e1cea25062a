# SPDX-License-Identifier: Apache-2.0
"""Calls of ShrimpRPC against their packets: how many, of which bytes, in which order; no other packet between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from sundial.segments.vmmc.wire import REASONS, USES, WORD
from sundial.verify.findings import Finding
from sundial.verify.sockets.pattern import pattern
from sundial.workloads.shrimprpc.expect import (
    DATA_PAGES,
    END,
    HASH,
    PROCEDURES,
    PROGRAM,
    VERSION,
    WITH_ARGUMENTS,
    WITH_RESULTS,
    arguments,
    flag,
    packets,
    results,
    sizes,
)
from sundial.workloads.shrimprpc.model import TRANSPORT
from sundial.workloads.vmmc.expect import Piece
from sundial.workloads.vmmc.verify_evidence import (
    Evidence,
    Expected,
    Judgement,
    VmmcProtocol,
    check_in_time,
    check_soon,
    observed_row,
)
from sundial.workloads.vmmc.verify_pairs import NOTIFY_END, SILENT, Pair, find_pairs, opened_at

PREFIX = "shrimp."
NAME = f"{PREFIX}{PROGRAM:x}.{VERSION}"
_SERVER = "shrimp-server"
_USE = next(number for number, word in USES.items() if word == "ShrimpRPC")
_HEAD = ("kind", "flags", "reason", "offset", "length", "count")
_SEQUENCE_AT = WORD - 6
_INSTRUCTIONS, _OF_A_STORE, _WAKING = 500, 10, 500
"""A client's, from reading its clock until a packet is full or ends with its page, and from the reply's arrival until
it reads its clock again: of whatever else (measured: 15, and 30), of each word that it makes or stores (2.4), and of
being woken by a notification (280)."""
_SHOWN = 8
"""Bytes of a difference that a finding shows."""

UNPROVEN: tuple[str, ...] = ("shrimprpc: how often client and server polled",)


@dataclass
class _Way:
    """What one side of a pair has stored: runs of packets that each end with the buffer, where the flag is."""

    packets: pl.DataFrame
    data: bytes
    next: int = 0
    """The run that is to be explained next."""

    @cached_property
    def places(self) -> list[tuple[int, int, int, int]]:
        """Of each run: its first packet, the one behind its last, its first byte in `data`, and the one behind."""
        ends = (self.packets["offset"].cast(pl.Int64) + self.packets["length"]).to_numpy()
        bytes_ = np.concatenate([[0], np.cumsum(self.packets["length"].to_numpy().astype(np.int64))])
        behind = [*(np.flatnonzero(ends == END) + 1).tolist()]
        if not behind or behind[-1] != self.packets.height:
            behind.append(self.packets.height)
        firsts = [0, *behind[:-1]]
        return [
            (first, end, int(bytes_[first]), int(bytes_[end]))
            for first, end in zip(firsts, behind, strict=True)
            if first < end
        ]

    def sequence(self) -> int | None:
        """That of the next run's flag; None: there is no whole run."""
        if self.next == len(self.places):
            return None
        _, end, _, last = self.places[self.next]
        whole = self.packets["offset"][end - 1] + self.packets["length"][end - 1] == END
        return int.from_bytes(self.data[last - WORD + _SEQUENCE_AT : last], "little") if whole else None

    def take(self) -> tuple[pl.DataFrame, bytes]:
        """The next run, or nothing where there is none."""
        if self.next == len(self.places):
            return self.packets.clear(), b""
        first, end, begin, last = self.places[self.next]
        self.next += 1
        return self.packets[first:end], self.data[begin:last]


@dataclass
class _Open:
    """A pair, and how far its calls have come."""

    pair: Pair
    there: _Way
    back: _Way
    calls: int = 0


@dataclass
class _Served:
    """What a server must have counted."""

    least: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROCEDURES, 0))
    """By procedure: calls that succeeded; others may have been executed as well."""
    most: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PROCEDURES, 0))
    totals: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The same of all calls, their bytes, and clients."""
    clients: int = 0

    def count(self, procedure: str, size: int, ok: bool) -> None:
        self.most[procedure] += 1
        self.least[procedure] += ok
        taken, given = size * (procedure in WITH_ARGUMENTS), size * (procedure in WITH_RESULTS)
        for name, number in (("calls", 1), ("executed", 1), ("bytes_in", taken), ("bytes_out", given)):
            least, most = self.totals.get(name, (0, 0))
            self.totals[name] = (least + number * ok, most + number)


class _ShrimpRpc:
    def speaks(self, transport: str) -> bool:
        return transport == TRANSPORT.name

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        opened: dict[tuple[int, int, int], list[_Open]] = {}
        served: dict[int, _Served] = {}
        for pair in find_pairs(evidence, judgement, PREFIX):
            new = _Open(pair, _way(evidence, pair.sent(evidence)), _way(evidence, pair.answered(evidence)))
            opened.setdefault((pair.client, pair.task, pair.server), []).append(new)
            served.setdefault(pair.server, _Served()).clients += 1
        samples = evidence.samples.filter(pl.col("transport") == TRANSPORT.name)
        for (client, batch), part in samples.group_by("client", "batch", maintain_order=True):
            line = evidence.batches.get((str(client), batch), {})
            server = int(line.get("server_node") or 0)
            ends = (evidence.nodes.get(str(client), 0), int(line.get("client_task") or 0), server)
            of = opened_at(opened.get(ends, []), _pair_of, part["start_ns"].sort()[0])
            _Batch(evidence, judgement, line, served.setdefault(server, _Served())).judge(part.sort("call"), of)
        judgement.findings += _check_counters(evidence, served)
        return judgement

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        """Sequence numbers restart with each client."""
        xid = call["xid"]
        return None if xid is None else f"vmmc.shrimp.seq == {xid}"


KIND: VmmcProtocol = _ShrimpRpc()


def _pair_of(opened: _Open) -> Pair:
    return opened.pair


def _way(evidence: Evidence, stored: pl.DataFrame) -> _Way:
    return _Way(stored, evidence.contents(stored))


@dataclass
class _Batch:
    """One batch of samples, and the packets of its pair that follow those of the batch before."""

    evidence: Evidence
    judgement: Judgement
    line: Mapping[str, Any]
    served: _Served

    def judge(self, samples: pl.DataFrame, opened: _Open | None) -> None:
        if opened is None:
            if samples["ok"].any():
                self._add(int(samples["id"][0]), "pair", NAME, "none", [])
            return
        self._check_pair(int(samples["id"][0]), opened.pair)
        for sample in samples.iter_rows(named=True):
            opened.calls += 1
            if sample["xid"] != opened.calls:
                self._add(sample["id"], "sequence", str(opened.calls), str(sample["xid"]), [])
            self._call(opened, sample)

    def _add(self, call: int, what: str, expected: str, seen: str, rows: list[int]) -> None:
        self.judgement.findings.append(Finding(call, f"shrimp.{what}", expected, seen, rows))

    def _check_pair(self, call: int, pair: Pair) -> None:
        notify = self.line.get("wait") == "notify"
        for what, expected, seen in (
            ("name", NAME, pair.there.name),
            ("server_task", 0, int(self.line.get("server_task") or 0)),
            ("pages", 1 + DATA_PAGES, pair.there.pages),
            ("pages", 1 + DATA_PAGES, pair.back.pages),
            ("use", _USE, pair.there.use),
            ("use", _USE, pair.back.use),
            ("notify", NOTIFY_END if notify else SILENT, pair.notify),
            ("hash", HASH, pair.hash),
        ):
            if expected != seen:
                self._add(call, f"pair.{what}", str(expected), str(seen), [pair.there.request])

    def _call(self, opened: _Open, sample: Mapping[str, Any]) -> None:
        procedure, size, number = str(sample["procedure"]), int(sample["size"]), int(sample["call"])
        if procedure not in PROCEDURES:
            self._add(sample["id"], "procedure", ", ".join(PROCEDURES), procedure, [])
            return
        given = pattern(np.array([number]), 0, size).tobytes()
        # Nothing tells the server of out_64 which call it is.
        returned = pattern(np.array([0]), 0, size).tobytes() if procedure == "out_64" else given
        self.served.count(procedure, size, bool(sample["ok"]))
        there = self._leg(
            opened.there,
            sample,
            "request",
            opened.pair.client,
            arguments(procedure, number, given) + flag(opened.calls, PROCEDURES.index(procedure)),
        )
        back = self._leg(
            opened.back, sample, "reply", opened.pair.server, results(procedure, returned) + flag(opened.calls, 0)
        )
        ways = (there[1], back[1])
        self.judgement.observed.append(observed_row(sample, there[0], back[0], ways))
        self.judgement.expected.setdefault(
            (TRANSPORT.name, procedure, size), self._undivided(opened.pair, procedure, size)
        )
        self.judgement.findings += check_in_time(sample, there[0], back[0])
        self.judgement.findings += _check_order(sample, there[0], back[0])
        self.judgement.findings += self._soon(sample, there[0], back[0])

    def _soon(self, sample: Mapping[str, Any], there: pl.DataFrame, back: pl.DataFrame) -> Iterable[Finding]:
        """Arguments are made in memory and then stored; results are used where they are."""
        if not sample["ok"] or there.is_empty() or back.is_empty() or back["arrived_ns"].null_count():
            return ()
        before = _INSTRUCTIONS + _OF_A_STORE * (int(there["length"][0]) // WORD)
        # Each packet notifies, and they may come sooner than a client takes them.
        behind = _INSTRUCTIONS + (_WAKING * back.height if self.line.get("wait") == "notify" else 0)
        first, last = ([there["row"][0]], there["sent_ns"][0]), ([back["row"][-1]], back["arrived_ns"][-1])
        return check_soon(self.evidence, sample, first, last, (before, behind))

    def _undivided(self, pair: Pair, procedure: str, size: int) -> tuple[Expected, Expected]:
        """Packets of a call that no interrupt divides."""
        there, back = (
            Expected(
                tuple(piece.length for piece in packets(length, self.evidence.backplane(node).combine_bytes, False))
            )
            for length, node in zip(sizes(procedure, size), (pair.client, pair.server), strict=True)
        )
        return there, back

    def _leg(
        self, way: _Way, sample: Mapping[str, Any], what: str, sender: int, due: bytes
    ) -> tuple[pl.DataFrame, Expected]:
        """The packets of one way of a call, claimed and compared. Of one that failed there may be none."""
        most, notify = self.evidence.backplane(sender).combine_bytes, self.line.get("wait") == "notify"
        expected = Expected(tuple(piece.length for piece in packets(len(due), most, notify)))
        if not sample["ok"] and way.sequence() != sample["xid"]:
            return way.packets.clear(), expected
        run, data = way.take()
        rows = run["row"].to_list()
        self.judgement.attribute(rows, sample["id"])
        if sample["ok"] or what == "request":
            pieces = packets(len(due), most, notify, _breaks(run, len(due)))
            expected = Expected(tuple(piece.length for piece in pieces))
            self._compare(sample["id"], what, run.select(_HEAD).rows(), pieces, rows)
            if data != due:
                at = _first_difference(due, data)
                shown = slice(at, at + _SHOWN)
                self._add(sample["id"], f"{what}.data", f"{due[shown].hex(' ')} at {at}", data[shown].hex(" "), rows)
        return run, expected

    def _compare(
        self, call: int, what: str, seen: Sequence[tuple[Any, ...]], pieces: Sequence[Piece], rows: list[int]
    ) -> None:
        due = [(each.kind, each.flags, each.reason, each.offset, each.length, each.stores) for each in pieces]
        if list(seen) != due:
            self._add(call, what, _words(due), _words(seen) or "none", rows)


def _breaks(run: pl.DataFrame, length: int) -> dict[int, int]:
    """Where packets ended, within what was to be stored, whose sender was interrupted, and why they left: the
    backplane's law has checked that."""
    ended = run.filter("cut").select(pl.col("offset") + pl.col("length"), "reason")
    return {end: reason for end, reason in ended.iter_rows() if END - length < end < END}


def _words(heads: Sequence[tuple[Any, ...]]) -> str:
    return "; ".join(
        f"{length} bytes at {offset}, {count} stores, {REASONS.get(reason, reason)}, flags {flags}"
        for _, flags, reason, offset, length, count in heads
    )


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (first, second) in pairs if first != second), min(len(one), len(other)))


def _check_order(sample: Mapping[str, Any], there: pl.DataFrame, back: pl.DataFrame) -> Iterator[Finding]:
    """Nothing of a reply is stored before its call is there."""
    came, began = there["arrived_ns"].max(), back["sent_ns"].min()
    if isinstance(came, int) and isinstance(began, int) and began < came:
        rows = back["row"].to_list()[:1]
        yield Finding(sample["id"], "shrimp.reply", f"at {came} ns or later", f"at {began} ns", rows)


def _check_counters(evidence: Evidence, served: Mapping[int, _Served]) -> Iterator[Finding]:
    """A server counts its calls and checks what they bring; it says so when it has been idle for a while."""
    for name, records in evidence.records.items():
        lines = [line for line in records if line.get("type") == "counters" and line.get("app") == _SERVER]
        due = served.get(evidence.nodes.get(name, 0), _Served())
        counted = dict(lines[-1].get("by_procedure", {})) if lines else {}
        node = evidence.nodes.get(name, 0)
        wrote = evidence.wrote_counts(node)
        for procedure in PROCEDURES:
            least, most = due.least[procedure] * wrote, due.most[procedure]
            seen = int(counted.get(procedure, 0))
            if not least <= seen <= most:
                expected = str(least) if least == most else f"{least} to {most}"
                yield Finding(None, f"counted.{procedure}", expected, f"{seen} by {name}'s own count")
        asked = sum(
            each.granted and each.exporter == node and each.name.startswith(PREFIX) for each in evidence.imports
        )
        more = {
            **due.totals,
            "clients": (due.clients, asked),
            "clients_gone": (0, asked),
            "clients_refused": (0, asked - due.clients),
        }
        # A server that is slower than its client checks a payload while the next call comes over it.
        more["overtaken"] = (0, sum(due.most.values()))
        for what, (least, most) in more.items():
            seen = int(lines[-1].get(what, least)) if lines else least
            least *= wrote
            if not least <= seen <= most:
                yield Finding(None, f"counted.{what}", f"{least} to {most}", f"{seen} by {name}'s own count")
        wrong = max((int(line.get("bad_payload", 0)) for line in lines), default=0)
        if wrong:
            yield Finding(None, "counted.bad_payload", "0", f"{wrong} by {name}'s own count")
