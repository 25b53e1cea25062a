# SPDX-License-Identifier: Apache-2.0
"""Automatic and deliberate updates of vmmc-client and vmmc-server: each packet, with its reason and every byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import le
from typing import Any

import numpy as np
import polars as pl

from sundial.segments.vmmc.wire import AU, FULL, PAGE_END, REASONS, WORD
from sundial.verify.findings import Finding
from sundial.verify.sockets.pattern import pattern
from sundial.workloads.vmmc.expect import (
    BATCH_AT,
    DATA_PAGES,
    HASH,
    TAKEN_AT,
    Piece,
    acknowledged,
    batch_word,
    flag,
    pieces,
    place,
    slots,
    word,
)
from sundial.workloads.vmmc.model import OPERATIONS
from sundial.workloads.vmmc.verify_evidence import (
    Evidence,
    Expected,
    Judgement,
    VmmcProtocol,
    check_in_time,
    check_soon,
    observed_row,
)
from sundial.workloads.vmmc.verify_pairs import SILENT, Pair, find_pairs, opened_at

PREFIX = "vmmc."
_SERVER = "vmmc-server"
_SHOWN = 8
"""Bytes of a difference that a finding shows."""
_INSTRUCTIONS, _OF_A_STORE = 500, 10
"""A client's, from reading its clock until a transfer is under way, and from an answer's arrival until it reads its
clock again: of whatever else (measured: 33, and 23), and of each word that it makes or stores (6)."""

UNPROVEN: tuple[str, ...] = ("vmmc: how often loops looked that waited for memory to change",)


@dataclass
class _Way:
    """What one side of a pair has written, as far as it has been explained, and what it must write next."""

    packets: pl.DataFrame
    at: int = 0
    pieces: list[Piece] = field(default_factory=list)
    owners: list[int | None] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """Where what each piece is of ends."""
    lasts: list[int] = field(default_factory=list)
    """Of what was taken last: the last packet of each transfer or word."""

    def expect(self, some: Sequence[Piece], data: bytes, owner: int | None) -> None:
        self.pieces += some
        self.owners += [owner] * len(some)
        self.ends += [some[-1].offset + some[-1].length] * len(some)
        self.data.append(data)

    @cached_property
    def _cut(self) -> Any:
        """Which packets left before all that was to be combined was stored."""
        return self.packets["cut"].to_numpy()

    def _interrupted(self, most: int) -> None:
        """What is combined leaves by the timer, or for what others at its node send, where its sender is interrupted
        between two stores, and the next store begins another packet; so does one that only the next store would have
        shown to be full. That it left when it did is the backplane's law."""
        if not self._cut[self.at : self.at + len(self.pieces)].any():
            return
        columns = self.packets.slice(self.at).select("cut", "reason", "offset", "length")
        for place_, (cut, reason, offset, length) in enumerate(columns.iter_rows()):
            if place_ >= len(self.pieces):
                return
            piece, end = self.pieces[place_], self.ends[place_]
            early = cut and offset == piece.offset and piece.reason in (FULL, PAGE_END)
            full = piece.reason == PAGE_END or piece.length == most
            if early and (length < piece.length or (length == piece.length and not full)) and length % WORD == 0:
                left = pieces("au-combined", offset + length, end - offset - length, most)
                same = next((at for at in range(place_, len(self.ends)) if self.ends[at] != end), len(self.ends))
                some = [Piece(AU, 0, reason, offset, length, length // WORD), *left]
                self.pieces[place_:same] = some
                self.owners[place_:same] = [self.owners[place_]] * len(some)
                self.ends[place_:same] = [end] * len(some)

    def take(self, evidence: Evidence, judgement: Judgement, call: int, most: int) -> pl.DataFrame:
        """What was written of that, claimed and compared; `call` is that of findings without one, `most` what is
        combined."""
        self._interrupted(most)
        self.lasts = [
            place_ for place_, piece in enumerate(self.pieces) if piece.offset + piece.length == self.ends[place_]
        ]
        part = self.packets.slice(self.at, len(self.pieces))
        self.at += part.height
        for row, owner in zip(part["row"], self.owners, strict=False):
            judgement.attribute([row], owner)
        judgement.findings += self._differences(evidence, part, call)
        self.pieces, self.owners, self.data, self.ends = [], [], [], []
        return part

    def _differences(self, evidence: Evidence, part: pl.DataFrame, call: int) -> Iterator[Finding]:
        for seen, piece, owner in zip(part.iter_rows(named=True), self.pieces, self.owners, strict=False):
            header = Piece(seen["kind"], seen["flags"], seen["reason"], seen["offset"], seen["length"], piece.stores)
            # A transfer's number is its node's, and the backplane's law checks it.
            if header != piece or (piece.stores and seen["count"] != piece.stores):
                expected, found = _words(piece), _words(header, seen["count"] if piece.stores else 0)
                yield Finding(call if owner is None else owner, "vmmc.packet", expected, found, [seen["row"]])
                return
        if part.height < len(self.pieces):
            left = self.pieces[part.height]
            owner = self.owners[part.height]
            yield Finding(call if owner is None else owner, "vmmc.packet", _words(left), "none")
            return
        expected_data, data = b"".join(self.data), evidence.contents(part)
        if data != expected_data:
            place_ = next(
                (at for at, (one, other) in enumerate(zip(expected_data, data, strict=False)) if one != other),
                min(len(data), len(expected_data)),
            )
            ends = np.cumsum(part["length"].to_numpy().astype(np.int64))
            which = min(int(np.searchsorted(ends, place_, side="right")), part.height - 1)
            shown = slice(place_, place_ + _SHOWN)
            owner = self.owners[which]
            due, found = expected_data[shown].hex(" "), data[shown].hex(" ")
            yield Finding(call if owner is None else owner, "vmmc.data", due, found, [part["row"][which]])


def _pair_of(opened: _Open) -> Pair:
    return opened.pair


def _words(piece: Piece, stores: int | None = None) -> str:
    of = f"{piece.stores if stores is None else stores} stores, {REASONS.get(piece.reason, piece.reason)}"
    update = of if piece.stores else f"flags {piece.flags}"
    return f"kind {piece.kind}, {piece.length} bytes at {piece.offset}, {update}"


class _Operations:
    def speaks(self, transport: str) -> bool:
        return transport in OPERATIONS

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        tasks: dict[tuple[int, int], list[_Open]] = {}
        for pair in find_pairs(evidence, judgement, PREFIX):
            new = _Open(pair, _Way(pair.sent(evidence)), _Way(pair.answered(evidence)))
            tasks.setdefault((pair.client, pair.task), []).append(new)
        samples = evidence.samples.filter(pl.col("transport").is_in(OPERATIONS))
        for (client, batch), part in samples.group_by("client", "batch", maintain_order=True):
            line = evidence.batches.get((str(client), batch), {})
            task = (evidence.nodes.get(str(client), 0), int(line.get("client_task") or 0))
            server = evidence.nodes.get(str(part["server"][0]))
            opened_by = [each for each in tasks.get(task, []) if each.pair.server == server]
            opened = opened_at(opened_by, _pair_of, part["start_ns"].sort()[0])
            _Batch(evidence, judgement, part.sort("call"), line).judge(opened)
        judgement.findings += _check_counters(evidence, tasks)
        return judgement

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        return None


KIND: VmmcProtocol = _Operations()


@dataclass
class _Open:
    """A pair, both ways of it, and what its batches so far were."""

    pair: Pair
    there: _Way
    back: _Way
    batches: int = 0
    transfers: int = 0
    bytes: int = 0


@dataclass
class _Batch:
    """One batch of samples, and the packets of its pair that follow those of the batch before."""

    evidence: Evidence
    judgement: Judgement
    samples: pl.DataFrame
    line: Mapping[str, Any]

    @property
    def size(self) -> int:
        return int(self.samples["size"][0])

    @property
    def operation(self) -> str:
        return str(self.samples["transport"][0])

    @property
    def stream(self) -> bool:
        return bool(self.samples["procedure"][0] == "stream")

    @property
    def each(self) -> int:
        """Transfers of a sample."""
        return int(self.line.get("transfers") or 1)

    def judge(self, opened: _Open | None) -> None:
        first = int(self.samples["id"][0])
        if opened is None:
            if self.samples["ok"].any():
                self.judgement.findings.append(Finding(first, "vmmc.pair", f"{PREFIX}{self.operation}", "none"))
            return
        self._check_pair(opened.pair, first)
        self._begin(opened, first)
        transfers = self.samples.height * self.each
        for sample in self.samples.iter_rows(named=True):
            begun = sample["call"] * self.each
            numbers = range(begun, begun + self.each)
            there, back = self._ways(opened, sample, numbers, transfers)
            sent, answered = self._take(opened, sample["id"])
            self.judgement.observed.append(observed_row(sample, sent, answered, (there, back)))
            group = (self.operation, str(sample["procedure"]), self.size)
            self.judgement.expected.setdefault(group, (there, back))
            self.judgement.findings += check_in_time(sample, sent, answered)
            lasts = opened.there.lasts
            complete = len(lasts) == self.each and sent.height == lasts[-1] + 1
            complete &= answered.height == opened.back.lasts[-1] + 1
            if complete and not sent["arrived_ns"].null_count():
                self.judgement.findings += self._order(sample, sent, answered, numbers, lasts)
                self.judgement.findings += self._soon(sample, sent, answered)
        opened.transfers += transfers
        opened.bytes += transfers * self.size

    def _check_pair(self, pair: Pair, first: int) -> None:
        for what, expected, seen in (
            ("vmmc.pair", f"{PREFIX}{self.operation}", pair.there.name),
            ("vmmc.pair.pages", 1 + DATA_PAGES, pair.there.pages),
            ("vmmc.pair.pages", 1 + DATA_PAGES, pair.back.pages),
            ("vmmc.pair.use", 0, pair.there.use),
            ("vmmc.pair.use", 0, pair.back.use),
            ("vmmc.pair.notify", SILENT, pair.notify),
            ("vmmc.pair.hash", HASH, pair.hash),
        ):
            if expected != seen:
                self.judgement.findings.append(Finding(first, what, str(expected), str(seen), [pair.there.request]))

    def _begin(self, opened: _Open, first: int) -> None:
        """Both sides say which batch it is; the server before forgets what it has said of the last stream."""
        opened.batches += 1
        what = batch_word(opened.batches, self.stream, self.samples.height * self.each, self.size).to_bytes(8, "little")
        opened.there.expect([word(BATCH_AT)], what, None)
        opened.back.expect([word(TAKEN_AT), word(BATCH_AT)], bytes(WORD) + what, None)
        self._take(opened, first)

    def _take(self, opened: _Open, call: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        there, back = opened.pair.there, opened.pair.back
        return (
            opened.there.take(self.evidence, self.judgement, call, self._combined(there.importer)),
            opened.back.take(self.evidence, self.judgement, call, self._combined(back.importer)),
        )

    def _ways(
        self, opened: _Open, sample: Mapping[str, Any], numbers: range, transfers: int
    ) -> tuple[Expected, Expected]:
        """What both sides write for one sample."""
        for number in numbers:
            self._transfer(opened.there, opened, number, sample["id"])
            if not self.stream:
                self._transfer(opened.back, opened, number, sample["id"])
        if self.stream:
            said = [done for done in acknowledged(self.size, transfers) if done - 1 in numbers]
            for done in said:
                opened.back.expect([word(TAKEN_AT)], done.to_bytes(8, "little"), sample["id"])
        return (
            Expected(tuple(piece.length for piece in opened.there.pieces)),
            Expected(tuple(piece.length for piece in opened.back.pieces)),
        )

    def _transfer(self, way: _Way, opened: _Open, number: int, call: int) -> None:
        sender = opened.pair.client if way is opened.there else opened.pair.server
        most = self._combined(sender)
        data = pattern(np.array([number % 256]), 0, self.size - WORD).tobytes()
        last = flag(opened.transfers + number + 1).to_bytes(8, "little")
        way.expect(pieces(self.operation, place(self.size, number), self.size, most), data + last, call)

    def _order(
        self, sample: Mapping[str, Any], sent: pl.DataFrame, answered: pl.DataFrame, numbers: range, lasts: list[int]
    ) -> Iterator[Finding]:
        """Nothing is answered that is not there, and nothing is overwritten that was not answered."""
        came = sent["arrived_ns"].to_numpy()[lasts]
        if not self.stream:
            first = int(answered["sent_ns"][0])
            if first < came[0]:
                rows = [int(answered["row"][0])]
                yield Finding(sample["id"], "vmmc.answer", f"at {came[0]} ns or later", f"at {first} ns", rows)
            return
        said = [done for done in acknowledged(self.size, self.samples.height * self.each) if done - 1 in numbers]
        for place_, done in enumerate(said):
            at = int(answered["sent_ns"][place_])
            if at < came[done - 1 - numbers[0]]:
                rows = [int(answered["row"][place_])]
                yield Finding(
                    sample["id"], "vmmc.answer", f"at {came[done - 1 - numbers[0]]} ns or later", f"at {at} ns", rows
                )
        begins = sent["sent_ns"].to_numpy()[[0, *(last + 1 for last in lasts[:-1])]]
        arrived = answered["arrived_ns"].to_list()
        for number in numbers:
            needed = number - slots(self.size) + 1
            heard = next((at for at, done in zip(arrived, said, strict=True) if done >= needed), None)
            if needed > numbers[0] and (heard is None or begins[number - numbers[0]] < heard):
                row = int(sent["row"][lasts[number - numbers[0]]])
                yield Finding(
                    sample["id"], "vmmc.room", f"{needed} transfers taken before", f"transfer {number}", [row]
                )

    def _soon(self, sample: Mapping[str, Any], sent: pl.DataFrame, answered: pl.DataFrame) -> Iterable[Finding]:
        """What is combined leaves with the last store of its packet; a deliberate update is read from memory first."""
        words = int(sent["length"][0]) // WORD * (1 if self.operation == "au-combined" else 0)
        words += self.size // WORD if self.stream else 1
        before: float = _INSTRUCTIONS + _OF_A_STORE * words
        client = int(sent["sender"][0])
        if self.operation == "du":
            own_ns = self.evidence.deliberate_ns(client, int(sent["length"][0]))
            before += own_ns / (self.evidence.instructions_ns(client, 1) or 1)
        first, last = ([sent["row"][0]], sent["sent_ns"][0]), ([answered["row"][-1]], answered["arrived_ns"][-1])
        return check_soon(self.evidence, sample, first, last, (before, _INSTRUCTIONS))

    def _combined(self, node: int) -> int:
        return self.evidence.backplane(node).combine_bytes


def _check_counters(evidence: Evidence, tasks: Mapping[tuple[int, int], Sequence[_Open]]) -> Iterator[Finding]:
    """A server counts what it has checked; it says so whenever a client has left."""
    served: dict[int, tuple[int, int]] = {}
    for opened in (each for of_task in tasks.values() for each in of_task):
        transfers, size = served.get(opened.pair.server, (0, 0))
        served[opened.pair.server] = (transfers + opened.transfers, size + opened.bytes)
    for name, records in evidence.records.items():
        lines = [line for line in records if line.get("type") == "counters" and line.get("app") == _SERVER]
        due = served.get(evidence.nodes.get(name, 0))
        if due is None and not lines:
            continue
        counted = (int(lines[-1].get("calls", -1)), int(lines[-1].get("bytes", -1))) if lines else (0, 0)
        most = due or (0, 0)
        behind = not evidence.wrote_counts(evidence.nodes.get(name, 0)) and all(map(le, counted, most))
        if counted != most and not behind:
            words = "{} transfers, {} bytes"
            yield Finding(None, f"nodes/{name} counters", words.format(*most), words.format(*counted))
        wrong = [int(line.get("wrong", -1)) for line in lines]
        if any(wrong):
            yield Finding(None, f"nodes/{name} counters wrong", "0", str(max(wrong)))
