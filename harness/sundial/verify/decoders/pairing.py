# SPDX-License-Identifier: Apache-2.0
"""Questions and answers of any protocol that has them: read from streams and datagrams, matched by what names them, and
each without its other half judged. What a message is, its `Language` says.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from sundial.verify.decoders.traffic import (
    SECOND_NS,
    SKEW_NS,
    Connection,
    Exchanged,
    Judged,
    Lane,
    Service,
    Traffic,
    Wrong,
    named,
)
from sundial.verify.findings import Finding
from sundial.verify.sockets.captured_streams import Gap, read
from sundial.verify.sockets.conversations import End
from sundial.verify.sockets.protocol import Message, Units
from sundial.verify.sockets.stream import Stream

REACTION_NS = 10_000_000
"""Time in which a program may not yet have read what has come to its machine."""


class Spoken(Protocol):
    """A message."""

    @property
    def key(self) -> int:
        """By which an answer names its question."""

    @property
    def asks(self) -> bool:
        """Whether it is a question."""

    @property
    def words(self) -> str:
        """What it is, for findings."""

    @property
    def about(self) -> str:
        """What a question asks for, as others of its kind do."""


M = TypeVar("M", bound=Spoken)


class Language(Protocol[M]):
    """What messages mean to one another."""

    @property
    def nouns(self) -> tuple[str, str]:
        """Of a question and of an answer."""

    @property
    def units(self) -> Units:
        """How streams are read."""

    def data_of(self, stream: Stream, unit: Message) -> bytes:
        """The message of a unit, as far as the stream has it."""

    def read(self, data: bytes, transport: str) -> M:
        """Raises Wrong."""

    def is_again(self, then: M, now: M, *, equal: bool) -> bool | None:
        """Whether a question with the key of one that is not answered, or with `equal` bytes, is that one again. None:
        it must be, and has other bytes."""

    def fits(self, asked: M, answer: M) -> bool:
        """Whether an answer with the key of a question can be its."""

    def check(self, asked: M, transport: str) -> Iterator[Wrong]:
        """What is wrong with a question that is a message."""

    def check_answer(self, asked: M, answer: M, transport: str) -> Iterator[Wrong]:
        """The same of an answer to it."""

    def named(self, asked: M, answer: M, transport: str, server: End) -> Service | None:
        """A service that an answer names. Raises Wrong."""

    def may_be_silent(self, asked: M) -> bool:
        """Whether a question may stay without an answer."""

    def has_many_answers(self, asked: M) -> bool:
        """Whether a question has any number of answers."""

    def batched(self, asked: M) -> Hashable | None:
        """What of its kind a server may take in a row before it answers one of another kind; None: nothing."""


@dataclass
class Said(Generic[M]):
    """A message on its way."""

    message: M
    data: bytes
    source: End
    target: End
    sent_ns: int
    arrived_ns: Sequence[int]
    rows: Sequence[int]
    to_all: bool = False

    @property
    def words(self) -> str:
        """What it is, for findings."""
        return f"{self.message.words} of {named(self.source)} to {named(self.target)}"


@dataclass
class Exchange(Generic[M]):
    """A question, each time that it was sent, and all its answers."""

    sent: list[Said[M]]
    many: bool = False
    """It has any number of answers."""
    answers: list[Said[M]] = field(default_factory=list)

    @property
    def first(self) -> Said[M]:
        return self.sent[0]

    @property
    def asked(self) -> M:
        return self.first.message

    @property
    def arrivals(self) -> list[int]:
        """When the question came, each time."""
        return sorted(at_ns for each in self.sent for at_ns in each.arrived_ns)

    def exchanged(self, path: Path[M]) -> Exchanged:
        """What it took, by the first answer that arrived."""
        answer = min(
            (each for each in self.answers if each.arrived_ns), key=lambda each: each.arrived_ns[0], default=None
        )
        return Exchanged(
            path.transport,
            self.first.source,
            path.server if answer is None else answer.source,
            self.asked.about,
            self.first.sent_ns,
            None if answer is None else answer.arrived_ns[0],
            len(self.first.data),
            None if answer is None else len(answer.data),
            len(self.sent) - 1,
            sum(self._was_lost(before, again) for before, again in pairwise(self.sent)),
        )

    def _was_lost(self, before: Said[M], again: Said[M]) -> bool:
        """Whether the question, as it was sent before, or an answer since then had been lost when it was sent again."""
        since = (each for each in self.answers if before.sent_ns < each.sent_ns < again.sent_ns)
        return not before.arrived_ns or any(not each.arrived_ns for each in since)

    def owes(self, at_ns: int) -> bool:
        """Whether the server may answer then: it has got the question once more than it has answered it."""
        return self.many or sum(came <= at_ns for came in self.arrivals) > len(self.answers)


@dataclass
class Path(Generic[M]):
    """All messages by which one end asks another: of a connection, or between two ends over UDP."""

    transport: str
    server: End
    connection: Connection | None = None
    questions: list[Said[M]] = field(default_factory=list)
    answers: list[Said[M]] = field(default_factory=list)
    exchanges: list[Exchange[M]] = field(default_factory=list)
    unread: bool = False
    """Bytes in which messages may be were not read."""

    @property
    def service(self) -> Service:
        return Service(self.transport, *self.server)


def pair(traffic: Traffic, language: Language[M]) -> Judged:
    """All findings about questions and answers."""
    return _Pairing(traffic, language).judged()


class _Pairing(Generic[M]):
    def __init__(self, traffic: Traffic, language: Language[M]) -> None:
        self._traffic, self._language = traffic, language
        self._found = Judged()
        self._paths: list[Path[M]] = []
        self._skew_ns = 0 if traffic.both_views else SKEW_NS

    def judged(self) -> Judged:
        for connection in self._traffic.connections:
            self._read_connection(connection)
        self._read_datagrams()
        for path in self._paths:
            self._pair(path)
        for path in self._paths:
            for exchange in path.exchanges:
                self._check_answers(path, exchange)
                self._found.exchanges.append(exchange.exchanged(path))
        self._check_unanswered()
        return self._found

    def _find(self, finding: Finding) -> None:
        self._found.findings.append(finding)

    # --- reading

    def _read_connection(self, connection: Connection) -> None:
        paths: dict[bool, Path[M]] = {
            way: Path("tcp", lane.receiver, connection) for way, lane in connection.lanes.items()
        }
        for way, lane in connection.lanes.items():
            for each in read(lane.stream, self._language.units, lane.opened, named(lane.sender)):
                data = b"" if isinstance(each, Gap) else self._language.data_of(lane.stream, each)
                gap = each if isinstance(each, Gap) else _lacking(each, data)
                if isinstance(each, Gap) or gap is not None:
                    self._gap(connection, lane, gap)
                    for path in paths.values():
                        path.unread |= gap is not None and bool(gap.what)
                    continue
                message = self._read(
                    data, lane.sender, lane.receiver, "tcp", rows := lane.rows(each.begin, each.finish)
                )
                if message is None:
                    for path in paths.values():
                        path.unread = True
                    continue
                arrived_ns = lane.arrived_ns(each.finish, both_views=self._traffic.both_views)
                sent_ns = lane.sent_ns(each.begin + 1)
                said = Said(message, data, lane.sender, lane.receiver, sent_ns, arrived_ns, rows)
                (paths[way].questions if message.asks else paths[not way].answers).append(said)
        self._paths += paths.values()

    def _gap(self, connection: Connection, lane: Lane, gap: Gap | None) -> None:
        """What is not a whole message; a stream may end within one if its connection was cut off."""
        if gap is None or not gap.what:
            return
        at_end = gap.finish >= lane.stream.end
        if not (at_end and self._traffic.is_cut_off(connection, lane)):
            rows = lane.rows(gap.begin, gap.finish) or lane.rows(gap.begin - 1, gap.finish + 1)
            seen = f"{gap.what}, {named(lane.sender)} to {named(lane.receiver)}"
            self._find(Finding(None, "decoded stream", f"whole {self._language.units.unit}s", seen, rows))

    def _read_datagrams(self) -> None:
        paths: dict[tuple[End, End], Path[M]] = {}
        answers: list[Said[M]] = []
        for each in self._traffic.datagrams:
            path = paths.setdefault((each.source, each.target), Path("udp", each.target))
            message = self._read(each.data, each.source, each.target, "udp", each.rows)
            if message is None:
                back = paths.setdefault((each.target, each.source), Path("udp", each.source))
                path.unread = back.unread = True
                continue
            said = Said(
                message, each.data, each.source, each.target, each.sent_ns, each.arrived_ns, each.rows, each.to_all
            )
            (path.questions if message.asks else answers).append(said)
        asked: dict[tuple[End, int], list[Path[M]]] = {}
        for path in paths.values():
            for said in path.questions:
                asked.setdefault((said.source, said.message.key), []).append(path)
        for said in answers:
            own = paths.setdefault((said.target, said.source), Path("udp", said.source))
            self._path_of(said, own, asked.get((said.target, said.message.key), [])).answers.append(said)
        self._paths += paths.values()

    def _path_of(self, said: Said[M], own: Path[M], asked: Sequence[Path[M]]) -> Path[M]:
        """By which an answer over UDP was asked for, of those with its key. Any server may answer a broadcast."""
        if not asked or own in asked:
            return own
        path = asked[0]
        if not any(each.to_all for each in path.questions):
            words = f"{said.words}, whose question went to {named(path.server)}"
            self._find(Finding(None, "decoded answer source", named(path.server), words, said.rows))
        return path

    def _read(self, data: bytes, source: End, target: End, transport: str, rows: Sequence[int]) -> M | None:
        """A message; None, and a finding, where it is not one."""
        try:
            message = self._language.read(data, transport)
        except Wrong as wrong:
            where = f"{wrong.seen}, {named(source)} to {named(target)}"
            self._find(Finding(None, f"decoded message {wrong.field}", wrong.expected, where, rows))
            return None
        self._found.counts[self._language.nouns[not message.asks]] += 1
        return message

    # --- pairing

    def _pair(self, path: Path[M]) -> None:
        """Exchanges of a path, in the order in which messages were sent."""
        moves = sorted([*path.questions, *path.answers], key=lambda said: (said.sent_ns, not said.message.asks))
        by_key: dict[int, list[Exchange[M]]] = {}
        early: dict[int, list[Said[M]]] = {}
        for said in moves:
            key = said.message.key
            known = by_key.setdefault(key, [])
            if not said.message.asks:
                if not self._answered(path, said, known):
                    early.setdefault(key, []).append(said)
                continue
            self._asked(path, said, known)
            for answer in early.pop(key, []):
                stamped_late = said.sent_ns - answer.sent_ns <= self._skew_ns
                if stamped_late and not known[-1].answers:
                    known[-1].answers.append(answer)
                else:
                    early.setdefault(key, []).append(answer)
        for said in (each for waiting in early.values() for each in waiting):
            self._unasked(path, said, by_key[said.message.key])
        self._found.calls += sum(map(len, by_key.values()))
        path.exchanges = sorted((each for known in by_key.values() for each in known), key=lambda x: x.first.sent_ns)

    def _asked(self, path: Path[M], said: Said[M], known: list[Exchange[M]]) -> None:
        last = known[-1] if known else None
        open_ = last is not None and not last.answers
        equal = last is not None and last.first.data == said.data
        again = last is not None and self._language.is_again(last.asked, said.message, equal=equal)
        if last is None or (path.transport == "tcp" and not open_) or again is False or not (open_ or again):
            known.append(self._exchange(said))
            return
        if again is None:
            seen = f"others from byte {_first_change(last.first.data, said.data)} on, {said.words}"
            self._find(Finding(None, "decoded question bytes", "those of the unanswered one", seen, said.rows))
            known.append(self._exchange(said))
            return
        last.sent.append(said)
        self._found.counts["retransmission"] += 1
        came_ns = min((at_ns for each in last.answers for at_ns in each.arrived_ns), default=None)
        if came_ns is None or not self._traffic.both_views or came_ns + REACTION_NS > said.sent_ns:
            return
        if not self._traffic.absence.of_client(said.source[0], came_ns, said.sent_ns):
            what = f"the answer came {said.sent_ns - came_ns} ns before, {said.words}"
            self._find(Finding(None, "decoded retransmission", "no answer before it", what, said.rows))

    def _exchange(self, said: Said[M]) -> Exchange[M]:
        return Exchange([said], said.to_all or self._language.has_many_answers(said.message))

    def _answered(self, path: Path[M], said: Said[M], known: Sequence[Exchange[M]]) -> bool:
        """Whether a question is found that it answers."""
        owing = [each for each in known if each.owes(said.sent_ns)]
        owing = [each for each in owing if self._language.fits(each.asked, said.message)] or owing
        if owing:
            # Of questions with one key on a connection, the first; a datagram answers what was asked last.
            unanswered = [each for each in owing if not each.answers]
            (unanswered or owing)[0 if path.transport == "tcp" else -1].answers.append(said)
        return bool(owing)

    def _unasked(self, path: Path[M], said: Said[M], known: Sequence[Exchange[M]]) -> None:
        if not known and path.unread:
            return  # its question may be in what was not read
        many = sum(len(each.arrivals) for each in known)
        expected = f"{many}, as often as its question had come" if known else "a question with its number before it"
        seen = f"{said.words}, once more" if known else said.words
        self._find(Finding(None, "decoded answer", expected, seen, said.rows))

    # --- answers

    def _check_answers(self, path: Path[M], exchange: Exchange[M]) -> None:
        self._wrong(exchange.first, self._language.check(exchange.asked, path.transport))
        for said in exchange.answers:
            self._wrong(said, self._language.check_answer(exchange.asked, said.message, path.transport))
            try:
                service = self._language.named(exchange.asked, said.message, path.transport, said.source)
            except Wrong as wrong:
                self._wrong(said, [wrong])
                continue
            if service is not None:
                self._found.services.add(service)

    def _wrong(self, said: Said[M], found: Iterable[Wrong]) -> None:
        for wrong in found:
            seen = f"{wrong.seen}, {said.words}"
            self._find(Finding(None, f"decoded message {wrong.field}", wrong.expected, seen, said.rows))

    def _check_unanswered(self) -> None:
        exchanges = [(path, each) for path in self._paths for each in path.exchanges]
        answered = {self._language.batched(each.asked) for _, each in exchanges if each.answers}
        longest: dict[Service, int] = {}
        for path, each in exchanges:
            if each.answers and each.arrivals:
                lasted = each.answers[0].sent_ns - each.arrivals[0]
                longest[path.service] = max(longest.get(path.service, 0), lasted)
        lacking = [
            (path, each)
            for path, each in exchanges
            if not each.answers and not self._is_excused(path, each, answered, longest.get(path.service))
        ]
        if not self._traffic.both_views and len(lacking) == len(exchanges) > 1:
            servers = ", ".join(sorted({str(path.service) for path, _ in lacking})[:3])
            what = f"none from {servers}: captured in one direction, or never answered"
            self._find(Finding(None, "decoded answers", str(len(lacking)), what))
            return
        for path, each in lacking:
            expected = f"an answer of {named(path.server)}"
            self._find(Finding(None, "decoded question", expected, f"none, {each.first.words}", each.first.rows))

    def _is_excused(
        self, path: Path[M], exchange: Exchange[M], answered: Set[Hashable], longest_ns: int | None
    ) -> bool:
        """Whether there is a reason that a question has no answer: it never came, nothing serves there, its connection,
        the program or the capture ended before an answer was due; or the protocol has none.

        An answer is due when twice the longest time has gone by that the service took for another one."""
        first, came = exchange.first, exchange.arrivals
        if not came or first.to_all or path.unread or self._language.may_be_silent(exchange.asked):
            return True
        due_ns = came[-1] + (SECOND_NS if longest_ns is None else 2 * longest_ns)
        if self._traffic.absence.of_service(path.service, came[0], due_ns):
            return True
        if not self._traffic.both_views and due_ns > self._traffic.until_ns and longest_ns is not None:
            return True
        if path.connection is None:
            return (first.source, first.target) in self._traffic.unreachable
        ended_ns = path.connection.ended_ns
        if ended_ns is not None and ended_ns <= due_ns:
            return True
        later = any(each.answers and each.first.sent_ns > first.sent_ns for each in path.exchanges)
        if path.connection.reset and not later:
            return True  # what was on its way is discarded, however often TCP had sent it
        kind = self._language.batched(exchange.asked)
        return later and kind is not None and kind not in answered


def _lacking(record: Message, data: bytes) -> Gap | None:
    """A record of which not all is there; None: it is whole."""
    lost = record.length - len(data)
    return Gap(record.begin, record.finish, f"{lost} of {record.length} bytes are not there") if lost else None


def _first_change(then: bytes, now: bytes) -> int:
    differing = (place for place, (a, b) in enumerate(zip(then, now, strict=False)) if a != b)
    return next(differing, min(len(then), len(now)))
