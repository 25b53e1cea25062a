# SPDX-License-Identifier: Apache-2.0
"""Verification of RPyC: both sides of each connection replayed, and each message checked against what must be sent.

What a side sends follows from its job and from the messages that came (`expect_sides`). So a message
without a cause, one that is missing, one for another request and one with another byte are all a difference between
the streams of the capture and those of the machines (`verify_replay`); each connection has at most one, the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sundial.expect.call import Leg, tcp_leg, unsent_leg
from sundial.expect.tcp import segment_size
from sundial.judge import parties
from sundial.judge.settled import Transport, Verdict, Verification
from sundial.verify.findings import Finding
from sundial.verify.result import leg_json
from sundial.verify.sockets.conversations import Conversation, End, Explained, Way, conversations
from sundial.verify.workload import OBSERVED, Verifier, WorkloadVerifier
from sundial.workloads import reporting, server_death, switches
from sundial.workloads.rpyc.expect_brine import writes
from sundial.workloads.rpyc.expect_sides import Called
from sundial.workloads.rpyc.plan import CLIENT, SERVER
from sundial.workloads.rpyc.verify_names import (
    LATE,
    Planned,
    Service,
    check_counters,
    check_lines,
    planned,
)
from sundial.workloads.rpyc.verify_replay import Line, Replay, left
from sundial.workloads.rpyc.verify_unreached import Opening, check_unreached, ended_ns, is_opening

NAME = "rpyc"
UNJUDGED = "rpyc_unjudged"
"""Bytes behind the first difference of a connection."""
UNPROVEN: tuple[str, ...] = (
    "rpyc: the ids of objects and classes; only that each object has one, and each class one, while it is held",
    "rpyc: when the garbage collector runs; only that nothing else held what it gives back",
    "rpyc: the traceback of an exception between its first and its last line; only that all of a side are alike",
    "rpyc: the compressed bytes of a long message; only what they inflate to",
    "rpyc: what is sent on a connection behind its first difference, or from a call on that had its time",
    f"rpyc: {switches.UNPROVEN}",
    f"rpyc: {reporting.UNPROVEN}",
)


class _Verification(Verification[Service]):
    """Of one run."""

    name = NAME
    clients = (CLIENT,)
    servers = (SERVER,)
    service = Service

    def prepare(self) -> None:
        self.speeds = switches.Speeds(self.run)
        self.planned = planned(self.run, self.samples, self.calls)
        ends: set[End] = {end for each in self.services for end in each.ends} | {each.server for each in self.planned}
        self.found = conversations(self.run, self.frames, ends)
        # Under the virtual clock servers are ready before steps begin.
        clients = set() if self.exact else {(each.machine, each.server) for each in self.planned}
        self.attempts = self.found.attempts(clients)
        self.rows: list[Finding] = []
        self.explained: list[Explained] = []
        self.observed: list[dict[str, Any]] = []
        self.expected: dict[tuple[str, str, int], dict[str, Any]] = {}
        self.executed: dict[tuple[str, int], Counter[str] | None] = {}
        """By machine and port; None where a connection was not judged to its end."""
        self.answered: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        """By function."""
        self.ended: set[tuple[str, int]] = set()
        """Servers that ended a connection which its client had not closed."""

    def verdict(self) -> Verdict:
        for each in self.planned:
            self.rows += check_lines(self.run, each)
        unused = {(each.client, each.server): each for each in self.planned if each.unreached is None}
        openings = self._unreached()
        for conversation in self.found.all:
            plan = unused.pop((conversation.client, conversation.server), None)
            if plan is not None:
                self._judge(conversation, plan)
            elif conversation.number in openings:
                if not conversation.refused:
                    self._count(conversation, openings[conversation.number])
            elif not self.run.by_hand and conversation.number not in self.attempts:
                self._count(conversation, None)
        for each in unused.values():
            ends = f"{each.client[0]}:{each.client[1]} > {each.server[0]}:{each.server[1]}"
            self.rows.append(Finding(None, f"{NAME}.connection", ends, "none"))
        executed = {key: counts for key, counts in self.executed.items() if counts is not None}
        for service in self.services:
            if (service.machine, service.port) not in self.executed:
                executed[service.machine, service.port] = Counter()
        if not self.run.by_hand:
            connections = Counter(each.server for each in self.found.all if not each.refused)
            waiting = {
                each.server
                for each in self.found.all
                if connections[each.server] == 1 and self.speeds.waits(each.server_machine, each.client_machine)
            }
            self.rows += check_counters(
                self.samples,
                self.services,
                executed,
                self.answered,
                waiting,
                reporting.is_due(self.run),
            )
            for service in self.services:
                self.rows += self._check_death(service, executed.get((service.machine, service.port)))
        return Verdict(
            self.found.classes(self.explained),
            self.found.packets,
            self.rows,
            [self.found.findings, self.found.balance(self.transit)],
            self.observed,
            self.expected,
            {way: leg_json(unsent_leg("tcp", 0)) for way in ("request", "reply")},
        )

    def _unreached(self) -> dict[int, Replay]:
        """The openings of connections by steps that reached no server, by number: what they said is judged."""
        owned = {(each.client, each.server) for each in self.planned if each.unreached is None}
        free = [each for each in self.found.all if (each.client, each.server) not in owned]
        found: dict[int, Replay] = {}
        for plan in sorted((each for each in self.planned if each.unreached is not None), key=ended_ns):
            own = [each for each in free if each.number not in found and is_opening(plan, each, exact=self.exact)]
            openings = [Opening(each, plan.version, self.found.frames) for each in own]
            unresolved = self.unsent.get(plan.machine, ())
            self.rows += check_unreached(plan, openings, unresolved, exact=self.exact)
            for opening in openings:
                found[opening.conversation.number] = opening.replay
                self._explain(opening.conversation, opening.replay, whole=False)
        return found

    def _judge(self, conversation: Conversation, plan: Planned) -> None:
        """One connection: its messages, then what its client said of its calls and batches."""
        over = {reply: way.finished or bool(conversation.reset_rows) for reply, way in conversation.ways.items()}
        data = {reply: way.data for reply, way in conversation.ways.items()}
        try:
            replay = Replay(plan.version, plan.calls, data, over, by_server=conversation.ended_by_server)
        except ValueError as error:
            self.rows.append(Finding(None, f"{NAME}.library", "one that is known", str(error)))
            return
        replay.run()
        unjudged = plan.from_late()
        replay.forget(unjudged)
        self._explain(conversation, replay, whole=not unjudged)
        difference = replay.difference
        if difference is not None:
            rows = conversation.ways[difference.reply].rows(difference.begin, difference.end)
            way = "reply" if difference.reply else "request"
            field = f"{NAME}.{way}.{difference.field}"
            self.rows.append(Finding(difference.call, field, difference.expected, difference.seen, rows))
        elif replay.client.closed and not unjudged:
            for reply, what in left(replay):
                side = "the client" if reply else "the server"
                self.rows.append(Finding(None, f"{NAME}.references", f"all given back by {side}", what))
        self._count(conversation, None if difference is not None or unjudged else replay)
        self.rows += _check_late(plan)
        self.rows += _check_order(conversation, replay)
        mtus = {False: self.mtu(conversation.client[0]), True: self.mtu(conversation.server[0])}
        self.rows += _check_segments(conversation, replay, mtus)
        spans = {reply: _Spans(conversation.ways[reply], track.lines) for reply, track in replay.tracks.items()}
        for planned_calls, batch in zip(plan.calls, replay.client.batches, strict=False):
            key = (NAME, planned_calls.function.name, planned_calls.function.size)
            for called in batch.calls:
                if called.id in unjudged:
                    continue
                if called.answered >= 0 and key not in self.expected:
                    self.expected[key] = {
                        name: leg_json(
                            spans[reply].leg(
                                called.id, mtus[reply], conversation.timestamps, conversation.mss[0 if reply else 1]
                            )
                        )
                        for reply, name in ((False, "request"), (True, "reply"))
                    }
                if called.answered >= 0 or difference is None:
                    self.rows += _check_call(called, plan.rows[called.id])
                self.observed.append(_observed(called, spans))
        if difference is None and not unjudged:
            self.rows += _check_batches(conversation, replay, plan)
            self.rows += self._check_switches(conversation, plan, replay)

    def _check_switches(self, conversation: Conversation, plan: Planned, replay: Replay) -> Iterator[Finding]:
        """Of the client, batch by batch."""
        waits = self.speeds.waits(plan.machine, conversation.server_machine)
        for batch, said in zip(replay.client.batches, plan.batches, strict=True):
            answered = sum(each.answered >= 0 and not plan.rows[each.id].warmup for each in batch.calls)
            yield from switches.check_batch(said.where, said.line, answered, waits=waits)

    def _check_death(self, service: Service, executed: Mapping[str, int] | None) -> Iterator[Finding]:
        """Whether it ended its connections, and where; each has a thread of its own."""
        if executed is None:
            return
        own = [each for each in self.found.all if each.server in service.ends and not each.refused]
        for difference in server_death.check_death(
            NAME,
            service.die_call,
            came=sum(executed.values()),
            answered=self.answered[service.machine, service.port].total(),
            at_once=len(own),
            ended=(service.machine, service.port) in self.ended,
        ):
            yield Finding(None, *difference)

    def _count(self, conversation: Conversation, replay: Replay | None) -> None:
        key = (conversation.server_machine, conversation.server[1])
        counts = self.executed.setdefault(key, Counter())
        if replay is None or counts is None:
            self.executed[key] = None
        else:
            counts.update(replay.server.executed)
            if conversation.ended_by_server and not replay.client.closed:
                self.ended.add(key)
            for calls, batch in zip(replay.client.planned, replay.client.batches, strict=True):
                self.answered[key][calls.function.name] += sum(each.answered >= 0 for each in batch.calls)

    def _explain(self, conversation: Conversation, replay: Replay, *, whole: bool) -> None:
        for reply, track in replay.tracks.items():
            number = conversation.number
            self.explained += [Explained(number, reply, each.begin, each.end, each.call) for each in track.lines]
            end = len(conversation.ways[reply].data)
            if (replay.difference is not None or not whole) and track.at < end:
                self.explained.append(Explained(number, reply, track.at, end, None, UNJUDGED))


def _check_order(conversation: Conversation, replay: Replay) -> Iterator[Finding]:
    """A message leaves after those have come that its side had read by then."""
    for reply, track in replay.tracks.items():
        there, back = conversation.ways[reply], conversation.ways[not reply]
        came = [back.arrived_ns(each.end) for each in replay.tracks[not reply].lines]
        for place, line in enumerate(track.lines):
            if not line.needed or (place and track.lines[place - 1].needed == line.needed):
                continue
            needed, sent = came[line.needed - 1], there.sent_ns(line.begin + 1)
            if needed is None or needed > sent:
                expected = f"after message {line.needed - 1} of the other way had come, at {needed} ns"
                rows = there.rows(line.begin, line.end)
                yield Finding(
                    line.call, f"{NAME}.{'reply' if reply else 'request'}.sent", expected, f"at {sent} ns", rows
                )


def _check_segments(conversation: Conversation, replay: Replay, mtus: Mapping[bool, int]) -> Iterator[Finding]:
    """What was judged is in as many segments as it needs, or more where the writes were apart."""
    for reply, track in replay.tracks.items():
        room = conversation.mss[0 if reply else 1]
        if room is None or not track.lines:
            continue
        size = segment_size(mtus[reply], conversation.timestamps, room)
        end = track.lines[-1].end
        seen = len(conversation.ways[reply].segments(0, end))
        most = sum(-(-part // size) for line in track.lines for part in writes(line.end - line.begin))
        least = -(-end // size)
        if not least <= seen <= most:
            yield Finding(None, f"{NAME}.{'reply' if reply else 'request'}.segments", f"{least} to {most}", str(seen))


def _check_late(plan: Planned) -> Iterator[Finding]:
    """A call that had its time has lasted as long: each of its requests may."""
    limit_ns = int(plan.options.get("total_timeout_ms") or 0) * 1_000_000
    for number, row in plan.rows.items():
        if row.error == LATE and row.end_ns - row.start_ns < limit_ns:
            yield Finding(number, "sample.error", f"none before {limit_ns} ns have passed", LATE)


def _check_call(called: Called, row: parties.Call) -> Iterator[Finding]:
    """What a client says of a call."""
    if row.error != called.error:
        yield Finding(called.id, "sample.error", called.error or "none: the right value came", row.error or "none")
    first, last = called.first_number, max(called.number, called.first_number)
    # What is asked of a connection that is over has a number, and is not sent.
    later = called.unasked and isinstance(row.xid, int) and row.xid >= first
    if not later and not (isinstance(row.xid, int) and first <= row.xid <= last):
        expected = f"{first} or more" if called.unasked else str(first) if first == last else f"{first} to {last}"
        yield Finding(called.id, "sample.xid", expected, str(row.xid))
    if row.retransmits != 0:
        yield Finding(called.id, "sample.retransmits", "0: TCP sends again, and no client", str(row.retransmits))


def _check_batches(conversation: Conversation, replay: Replay, plan: Planned) -> Iterator[Finding]:
    """What a client says of its batches: requests, and what its TCP sent again."""
    for batch, own in zip(replay.client.batches, plan.batches, strict=False):
        made, said = batch.end_number - batch.first_number, own.line.get("exchanges")
        unsent = isinstance(said, int) and said >= made and any(each.error for each in batch.calls)
        if said != made and not unsent:
            yield Finding(None, f"{own.where} exchanges", str(made), str(said))
    if replay.client.closed:
        way, lines = conversation.ways[False], replay.tracks[False].lines
        # What opens the connection was answered before the client asked for the count the first time, and what has a
        # part of the close message was sent after it had asked for the last.
        close, opened = lines[-1].begin, next((each.begin for each in lines if each.call is not None), 0)
        first = sum(opened < each.end <= close for each in way.segments(0, close))
        again = sum(opened < each.end <= close for each in way.sent) - first
        counts: list[Any] = [each.line.get("tcp_retransmits") for each in plan.batches]
        said = None if None in counts else sum(counts)
        if said != again:
            yield Finding(None, f"nodes/{plan.machine} tcp_retransmits", str(again), str(said))


class _Spans:
    """The messages of one way by call."""

    def __init__(self, way: Way, lines: Sequence[Line]) -> None:
        self.way, self.lines = way, lines
        self._of_call: dict[int, tuple[int, int]] = {}
        self._writes: dict[int, list[int]] = defaultdict(list)
        for each in lines:
            if each.call is not None:
                self._of_call[each.call] = (self._of_call.get(each.call, (each.begin, 0))[0], each.end)
                self._writes[each.call] += writes(each.end - each.begin)
        first = {(each.begin, each.at_ns, each.row) for each in way.segments(0, len(way.data))}
        self._again = [each for each in way.sent if (each.begin, each.at_ns, each.row) not in first]

    def times(self, first: int, last: int) -> tuple[int | None, int | None]:
        """When the message at one place began to leave, and when that at another was whole; None: there is none."""
        there = range(len(self.lines))
        began = self.way.sent_ns(self.lines[first].begin + 1) if first in there else None
        return began, self.way.arrived_ns(self.lines[last].end) if last in there else None

    def leg(self, call: int, mtu: int, timestamps: bool, peer_mss: int | None) -> Leg:
        """A call's messages one way, each in writes of its own; segments may have several."""
        sizes = tuple(self._writes[call])
        return tcp_leg(sum(sizes), sizes, mtu, timestamps, peer_mss)

    def packets(self, call: int) -> tuple[int, int]:
        """Segments that brought a call's messages, and those that brought some of them again."""
        begin, end = self._of_call.get(call, (0, 0))
        again = sum(each.begin < end and each.end > begin for each in self._again)
        return len(self.way.segments(begin, end)), again


def _observed(called: Called, spans: Mapping[bool, _Spans]) -> dict[str, Any]:
    """A row of `workload.OBSERVED`: the request is whole at the server with the message that calls the function, and
    the reply is the one with the result; packets are those of all messages."""
    row: dict[str, Any] = dict.fromkeys(OBSERVED)
    row |= {"call": called.id, "transport": NAME}
    marks = {False: ("call", called.first, called.asked), True: ("reply", called.answered, called.answered)}
    for reply, (stamp, first, last) in marks.items():
        row[f"{stamp}_first_tx_ns"], row[f"{stamp}_last_rx_ns"] = spans[reply].times(first, last)
        name = "reply" if reply else "request"
        row[f"{name}_packets"], row[f"{name}_retransmissions"] = spans[reply].packets(called.id)
        row[f"{name}_fragments"] = 0
    return row


KIND: WorkloadVerifier = Verifier(transport=Transport(_Verification))
