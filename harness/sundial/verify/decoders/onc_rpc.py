# SPDX-License-Identifier: Apache-2.0
"""ONC RPC of any program, version and procedure (RFC 5531), over UDP and TCP, in either direction.

All bytes of a service's streams are records (section 11), and each datagram is a message. Replies are matched to calls
by xid on their connection, or between their ends over UDP. A call over UDP is sent again with the same bytes, and not
after its answer has come. What the port mapper answers (RFC 1833) names further services.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from sundial.verify.decoders import onc_ports
from sundial.verify.decoders.onc_messages import RPCSEC_GSS, Call, Reply, Wrong, check_answer, read_message
from sundial.verify.decoders.records import Records, message_of
from sundial.verify.decoders.traffic import SECOND_NS, Connection, Judged, Lane, Service, Traffic, named
from sundial.verify.findings import Finding
from sundial.verify.sockets.captured_streams import Gap, read
from sundial.verify.sockets.conversations import End
from sundial.verify.sockets.protocol import Message

REACTION_NS = 10_000_000
"""Time in which a program may not yet have read what has come to its machine."""
SKEW_NS = 1_000_000
"""How much later a tap may stamp a frame than one that follows from it."""


@dataclass
class _Said:
    """A message on its way."""

    message: Call | Reply
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
        kind = "call" if isinstance(self.message, Call) else "reply"
        return f"{kind} 0x{self.message.xid:08x} of {named(self.source)} to {named(self.target)}"


@dataclass
class _Exchange:
    """A call, each time that it was sent, and all its replies."""

    call: Call
    sent: list[_Said]
    replies: list[_Said] = field(default_factory=list)

    @property
    def first(self) -> _Said:
        return self.sent[0]

    @property
    def arrivals(self) -> list[int]:
        """When the call came, each time."""
        return sorted(at_ns for each in self.sent for at_ns in each.arrived_ns)

    def owes(self, at_ns: int) -> bool:
        """Whether the server may send a reply then: it has got the call once more than it has answered."""
        return self.first.to_all or sum(came <= at_ns for came in self.arrivals) > len(self.replies)


@dataclass
class _Path:
    """All messages by which one end calls another: of a connection, or between two ends over UDP."""

    transport: str
    server: End
    connection: Connection | None = None
    calls: list[_Said] = field(default_factory=list)
    replies: list[_Said] = field(default_factory=list)
    exchanges: list[_Exchange] = field(default_factory=list)
    unread: bool = False
    """Bytes in which replies may be were not read."""

    @property
    def service(self) -> Service:
        return Service(self.transport, *self.server)


class OncRpc:
    """The decoder."""

    name = "onc-rpc"
    transports: Sequence[str] = ("tcp", "udp")
    ports: Sequence[int] = (onc_ports.PORT,)
    units = Records()
    asks = r"^.{8}0000000000000002"
    unproven: Sequence[str] = (
        "onc-rpc: arguments and results, except of procedure 0 and of questions to the port mapper for a port",
        "onc-rpc: bodies of credentials and verifiers other than AUTH_SYS",
        "onc-rpc: that a call is sent again no sooner than its client's own timer says",
        "onc-rpc: that calls to procedures that are never answered, before one that is, are batched",
    )

    def judge(self, traffic: Traffic) -> Judged:
        """All findings about the traffic of its services."""
        return _Judge(traffic).judged()


class _Judge:
    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._found = Judged()
        self._paths: list[_Path] = []
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
        self._check_unanswered()
        return self._found

    def _find(self, finding: Finding) -> None:
        self._found.findings.append(finding)

    # --- reading

    def _read_connection(self, connection: Connection) -> None:
        paths = {way: _Path("tcp", lane.receiver, connection) for way, lane in connection.lanes.items()}
        for way, lane in connection.lanes.items():
            for each in read(lane.stream, OncRpc.units, lane.opened, named(lane.sender)):
                data = b"" if isinstance(each, Gap) else message_of(lane.stream, each)
                gap = each if isinstance(each, Gap) else _lacking(each, data)
                if isinstance(each, Gap) or gap is not None:
                    self._gap(connection, lane, gap)
                    for path in paths.values():
                        path.unread |= gap is not None and bool(gap.what)
                    continue
                said = _Said(
                    Call(0, 0),
                    data,
                    lane.sender,
                    lane.receiver,
                    lane.sent_ns(each.begin + 1),
                    lane.arrived_ns(each.finish, both_views=self._traffic.both_views),
                    lane.rows(each.begin, each.finish),
                )
                self._take(said, paths[way], paths[not way])
        self._paths += paths.values()

    def _gap(self, connection: Connection, lane: Lane, gap: Gap | None) -> None:
        """What is not a whole record; a stream may end within one if its connection was cut off."""
        if gap is None or not gap.what:
            return
        at_end = gap.finish >= lane.stream.end
        if not (at_end and (connection.reset or self._is_cut_off(lane))):
            rows = lane.rows(gap.begin, gap.finish) or lane.rows(gap.begin - 1, gap.finish + 1)
            seen = f"{gap.what}, {named(lane.sender)} to {named(lane.receiver)}"
            self._find(Finding(None, "onc-rpc stream", "whole records", seen, rows))

    def _is_cut_off(self, lane: Lane) -> bool:
        """Whether its sender's program had ended when its machine ended the stream."""
        last_ns, ended_ns, absence = lane.sent_ns(lane.stream.end), lane.way.finished_ns, self._traffic.absence
        return ended_ns is not None and (
            absence.of_client(lane.sender[0], last_ns, ended_ns)
            or absence.of_service(Service("tcp", *lane.sender), last_ns, ended_ns)
        )

    def _read_datagrams(self) -> None:
        paths: dict[tuple[End, End], _Path] = {}
        replies: list[_Said] = []
        for each in self._traffic.datagrams:
            said = _Said(
                Call(0, 0), each.data, each.source, each.target, each.sent_ns, each.arrived_ns, each.rows, each.to_all
            )
            answers = _Path("udp", each.target)
            path = paths.setdefault((each.source, each.target), _Path("udp", each.target))
            self._take(said, path, answers)
            replies += answers.replies
        asked: dict[tuple[End, int], list[_Path]] = {}
        for path in paths.values():
            for said in path.calls:
                asked.setdefault((said.source, said.message.xid), []).append(path)
        for said in replies:
            own = paths.setdefault((said.target, said.source), _Path("udp", said.source))
            self._path_of(said, own, asked.get((said.target, said.message.xid), [])).replies.append(said)
        self._paths += paths.values()

    def _path_of(self, said: _Said, own: _Path, asked: Sequence[_Path]) -> _Path:
        """By which a reply over UDP was asked for, of those with its xid. Any server may answer a broadcast."""
        if not asked or own in asked:
            return own
        path = asked[0]
        if not any(each.to_all for each in path.calls):
            words = f"{said.words}, whose call went to {named(path.server)}"
            self._find(Finding(None, "onc-rpc reply source", named(path.server), words, said.rows))
        return path

    def _take(self, said: _Said, asks: _Path, answers: _Path) -> None:
        """Adds a message to the path of its calls or that of its replies."""
        try:
            said.message = read_message(said.data)
        except Wrong as wrong:
            where = f"{wrong.seen}, {named(said.source)} to {named(said.target)}"
            self._find(Finding(None, f"onc-rpc message {wrong.field}", wrong.expected, where, said.rows))
            asks.unread = answers.unread = True
            return
        if isinstance(said.message, Call):
            asks.calls.append(said)
            self._found.counts["call"] += 1
        else:
            answers.replies.append(said)
            self._found.counts["reply"] += 1

    # --- pairing

    def _pair(self, path: _Path) -> None:
        """Exchanges of a path, in the order in which messages were sent."""
        moves = sorted([*path.calls, *path.replies], key=lambda said: (said.sent_ns, isinstance(said.message, Reply)))
        by_xid: dict[int, list[_Exchange]] = {}
        early: dict[int, list[_Said]] = {}
        for said in moves:
            known = by_xid.setdefault(said.message.xid, [])
            if isinstance(said.message, Reply):
                if not self._replied(path, said, known):
                    early.setdefault(said.message.xid, []).append(said)
                continue
            self._asked(path, said, said.message, known)
            for reply in early.pop(said.message.xid, []):
                stamped_late = said.sent_ns - reply.sent_ns <= self._skew_ns
                if stamped_late and not known[-1].replies:
                    known[-1].replies.append(reply)
                else:
                    early.setdefault(said.message.xid, []).append(reply)
        for said in (each for waiting in early.values() for each in waiting):
            self._unasked(path, said, by_xid[said.message.xid])
        self._found.calls += sum(map(len, by_xid.values()))
        path.exchanges = sorted((each for known in by_xid.values() for each in known), key=lambda x: x.first.sent_ns)

    def _asked(self, path: _Path, said: _Said, call: Call, known: list[_Exchange]) -> None:
        last = known[-1] if known else None
        open_ = last is not None and not last.replies
        again = last is not None and (last.first.data == said.data or call.flavor == RPCSEC_GSS)
        if last is None or (path.transport == "tcp" and not open_) or not (open_ or again):
            known.append(_Exchange(call, [said]))
            return
        if not again:
            what = f"0x{_first_change(last.first.data, said.data):x}, {said.words}"
            self._find(
                Finding(None, "onc-rpc call bytes", "as sent before, unanswered", f"others from byte {what}", said.rows)
            )
            known.append(_Exchange(call, [said]))
            return
        last.sent.append(said)
        self._found.counts["retransmission"] += 1
        came_ns = min((at_ns for each in last.replies for at_ns in each.arrived_ns), default=None)
        if came_ns is None or not self._traffic.both_views or came_ns + REACTION_NS > said.sent_ns:
            return
        if not self._traffic.absence.of_client(said.source[0], came_ns, said.sent_ns):
            what = f"the reply came {said.sent_ns - came_ns} ns before, {said.words}"
            self._find(Finding(None, "onc-rpc retransmission", "no answer before it", what, said.rows))

    def _replied(self, path: _Path, said: _Said, known: Sequence[_Exchange]) -> bool:
        """Whether a call is found that it answers."""
        owing = [each for each in known if each.owes(said.sent_ns)]
        if owing:
            # Of calls with one xid on a connection, the first; a datagram answers what was asked last.
            unanswered = [each for each in owing if not each.replies]
            (unanswered or owing)[0 if path.transport == "tcp" else -1].replies.append(said)
        return bool(owing)

    def _unasked(self, path: _Path, said: _Said, known: Sequence[_Exchange]) -> None:
        if not known and path.unread:
            return  # its call may be in what was not read
        many = sum(len(each.arrivals) for each in known)
        expected = f"{many}, as often as its call had come" if known else "a call with its xid before it"
        seen = f"{said.words}, once more" if known else said.words
        self._find(Finding(None, "onc-rpc reply", expected, seen, said.rows))

    # --- answers

    def _check_answers(self, path: _Path, exchange: _Exchange) -> None:
        call = exchange.call
        for wrong in onc_ports.check_question(call):
            seen = f"{wrong.seen}, {exchange.first.words}"
            self._find(Finding(None, f"onc-rpc message {wrong.field}", wrong.expected, seen, exchange.first.rows))
        for said in exchange.replies:
            assert isinstance(said.message, Reply)
            for wrong in [*check_answer(call, said.message), *self._follow(path, call, said, said.message)]:
                seen = f"{wrong.seen}, {said.words}"
                self._find(Finding(None, f"onc-rpc message {wrong.field}", wrong.expected, seen, said.rows))

    def _follow(self, path: _Path, call: Call, said: _Said, reply: Reply) -> Iterator[Wrong]:
        try:
            service = onc_ports.answered(call, reply, path.transport, said.source)
        except Wrong as wrong:
            yield wrong
            return
        if service is not None:
            self._found.services.add(service)

    def _check_unanswered(self) -> None:
        exchanges = [(path, each) for path in self._paths for each in path.exchanges]
        replied = {each.call.called for _, each in exchanges if each.replies}
        longest: dict[Service, int] = {}
        for path, each in exchanges:
            if each.replies and each.arrivals:
                lasted = each.replies[0].sent_ns - each.arrivals[0]
                longest[path.service] = max(longest.get(path.service, 0), lasted)
        lacking = [
            (path, each)
            for path, each in exchanges
            if not each.replies and not self._is_excused(path, each, replied, longest.get(path.service))
        ]
        if not self._traffic.both_views and len(lacking) == len(exchanges) > 1:
            servers = ", ".join(sorted({str(path.service) for path, _ in lacking})[:3])
            what = f"none from {servers}: captured in one direction, or never answered"
            self._find(Finding(None, "onc-rpc replies", str(len(lacking)), what))
            return
        for path, each in lacking:
            expected = f"a reply of {named(path.server)}"
            self._find(Finding(None, "onc-rpc answer", expected, f"none, {each.first.words}", each.first.rows))

    def _is_excused(
        self, path: _Path, exchange: _Exchange, replied: Set[tuple[int, int, int]], longest_ns: int | None
    ) -> bool:
        """Whether there is a reason that a call has no reply: it never came, nothing serves there, its connection, the
        program or the capture ended before an answer was due; or the protocol has none.

        An answer is due when twice the longest time has gone by that the service took for another one."""
        first, came = exchange.first, exchange.arrivals
        if not came or first.to_all or path.unread or onc_ports.may_be_silent(exchange.call):
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
        later = any(each.replies and each.first.sent_ns > first.sent_ns for each in path.exchanges)
        return later and exchange.call.called not in replied


def _lacking(record: Message, data: bytes) -> Gap | None:
    """A record of which not all is there; None: it is whole."""
    lost = record.length - len(data)
    return Gap(record.begin, record.finish, f"{lost} of {record.length} bytes are not there") if lost else None


def _first_change(then: bytes, now: bytes) -> int:
    differing = (place for place, (a, b) in enumerate(zip(then, now, strict=False)) if a != b)
    return next(differing, min(len(then), len(now)))


DECODER = OncRpc()
