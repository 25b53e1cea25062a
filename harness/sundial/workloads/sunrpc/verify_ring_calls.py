# SPDX-License-Identifier: Apache-2.0
"""Calls of vRPC against the messages in rings: one request and one reply each, whose bytes are those over UDP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from sundial.verify.findings import Finding
from sundial.workloads.sunrpc.expect import Options, messages
from sundial.workloads.sunrpc.verify_messages import Contents
from sundial.workloads.sunrpc.verify_rings import Record, Ring, check_line, room_ns

_XIDS = 1 << 32
_ENDS = ("client_task", "server_node", "server_task")
_LAST = "server_task"
"""The field of a line that is about its last call: a server may have been restarted before."""
_NONE: tuple[Record | None, Record | None] = (None, None)


@dataclass
class RingCalls:
    """Messages of all lines, by client's node and xid; and what judging them has found."""

    contents: Contents
    exact: bool = True
    """Clocks and captures have one time."""
    calls: dict[tuple[int, int], list[Record | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    owner: dict[int, int | None] = field(default_factory=dict)
    observed: list[tuple[Any, ...]] = field(default_factory=list)

    lines: list[tuple[int, Ring]] = field(default_factory=list)
    """Clients' nodes, and what they have asked."""
    ends: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    """Of each call: task of the client, node and task of the server."""
    failed: set[int] = field(default_factory=set)
    """Nodes of clients of which a call has failed, maybe before it was in a ring."""
    last: dict[tuple[str, int], tuple[int, int, Mapping[str, Any]]] = field(default_factory=dict)
    """Of each batch, the last call between tasks that are known: its number, the server's task, and the line."""
    room_ns: dict[tuple[int, int], int | None] = field(default_factory=dict)
    """Of each call, when there was room for it in the ring, if not always."""
    first_deliberate: set[tuple[int, int]] = field(default_factory=set)
    """The calls, one of a line at most, that were the first there to go by deliberate update."""

    def add_line(self, client: int, there: Ring, back: Ring, ends: tuple[int, int, int]) -> None:
        """A line of a client's node. `ends`: task of the client, node and task of the server, 0 where it has none."""
        self.ends.update(((client, record.xid), ends) for record in there.records)
        self.lines.append((client, there))
        rooms = zip(there.records, room_ns(there, back), strict=False)
        self.room_ns.update(((client, record.xid), room) for record, room in rooms)
        began = (each for each in there.records if any(write.deliberate for write in each.writes))
        self.first_deliberate.update((client, each.xid) for each in islice(began, 1))
        for ring in (there, back):
            self.findings += ring.findings
            self.owner.update(dict.fromkeys(ring.beside))
            for record in ring.records:
                found = self.calls.setdefault((client, record.xid), [None, None])
                if found[record.reply] is not None:
                    name = "reply" if record.reply else "request"
                    self.findings.append(Finding(None, f"ring.{name}.count", "1", "2", record.rows))
                found[record.reply] = record
        if not there.findings and not back.findings:
            self.findings += check_line(there, back)

    def refuses(self, sample: Mapping[str, Any]) -> bool:
        """Whether a sample is of a procedure that there is not."""
        try:
            messages(sample["procedure"], sample["size"])
        except ValueError as error:
            self.findings.append(Finding(sample["id"], "ring.request", "a procedure that there is", str(error)))
            return True
        return False

    def is_first(self, client: int, xid: int | None) -> bool:
        """Whether a call was the first of its line by deliberate update."""
        return (client, xid) in self.first_deliberate

    def judge(self, sample: Mapping[str, Any], client: int, deliberate_above: int | None) -> Options:
        """One call; -> how its step was configured, as far as it changes messages. `deliberate_above`: longer messages
        go by deliberate update; None: none does."""
        options = self.contents.options(sample)
        if not sample["ok"]:
            self.failed.add(client)
        self.findings += self._check_batch(sample, client)
        request, reply = self.calls.pop((client, sample["xid"]), _NONE)
        self.findings += self._check(sample, request, reply, options, deliberate_above)
        self.observed.append(_observed(sample, request, reply))
        for record in (request, reply):
            if record is not None:
                self.owner.update(dict.fromkeys(record.rows, sample["id"]))
        return options

    def _check_batch(self, sample: Mapping[str, Any], client: int) -> Iterator[Finding]:
        """What the line above a sample says of the call: between whom it was, and how its client waited."""
        line = self.contents.described.batches.get((sample["client"], sample["batch"]), {})
        ends = self.ends.get((client, sample["xid"]))
        due = {} if ends is None else dict(zip(_ENDS, ends, strict=True))
        if ends is not None:
            self.last[sample["client"], sample["batch"]] = sample["id"], due.pop(_LAST), line
        due["depth"] = 1
        if line.get("wait") == "notify":
            due["polls"] = 0
        for name, expected in due.items():
            if line.get(name, expected) != expected:
                yield Finding(sample["id"], f"samples.{name}", str(expected), str(line[name]))

    def _check(
        self,
        sample: Mapping[str, Any],
        request: Record | None,
        reply: Record | None,
        options: Options,
        deliberate_above: int | None,
    ) -> Iterator[Finding]:
        call = sample["id"]
        lengths = messages(sample["procedure"], sample["size"], options.credential)
        for name, record, length in (("request", request, lengths[0]), ("reply", reply, lengths[1])):
            if record is None:
                if sample["ok"]:
                    yield Finding(call, f"ring.{name}", f"{length} bytes", "none")
                continue
            if record.length != length:
                yield Finding(call, f"ring.{name}", f"{length} bytes", f"{record.length}", record.rows)
                return
            deliberate = deliberate_above is not None and length > deliberate_above
            if any(write.deliberate != deliberate for write in record.writes):
                way = "by deliberate update" if deliberate else "by automatic update"
                yield Finding(call, f"ring.{name}.way", way, "otherwise", record.rows)
        if sample["retransmits"]:
            yield Finding(call, "ring.request.count", "1", str(sample["retransmits"] + 1))
        yield from self._check_times(sample, request, reply)
        pieces = [
            (piece.row, record.reply, piece.begin, piece.at, piece.length)
            for record in (request, reply)
            if record is not None
            for piece in record.pieces
        ]
        self.contents.add(call, sample, pieces)

    def _check_times(
        self, sample: Mapping[str, Any], request: Record | None, reply: Record | None
    ) -> Iterator[Finding]:
        """A call begins before its first byte leaves; its reply leaves when the request has come, and has come when the
        call ends."""
        if not self.exact or request is None:
            return
        call = sample["id"]
        if request.sent_ns < sample["start_ns"]:
            early = f"{sample['start_ns'] - request.sent_ns} ns before its start"
            yield Finding(call, "ring.began", "after its start", early, request.rows)
        if reply is None:
            return
        if request.arrived_ns is None or reply.sent_ns < request.arrived_ns:
            yield Finding(call, "ring.answered", "when the request had come", f"at {reply.sent_ns} ns", reply.rows)
        if sample["ok"] and (reply.arrived_ns is None or reply.arrived_ns > sample["end_ns"]):
            text = "never" if reply.arrived_ns is None else f"{reply.arrived_ns - sample['end_ns']} ns after its end"
            yield Finding(call, "ring.ended", "when the reply had come", text, reply.rows)

    def check_left(self) -> None:
        """Messages of no call; and that clients count their calls, and name whom they called last."""
        for call, task, line in self.last.values():
            if line.get(_LAST, task) != task:
                self.findings.append(Finding(call, f"samples.{_LAST}", str(task), str(line[_LAST])))
        for client, ring in self.lines:
            for before, after in pairwise(ring.records) if client not in self.failed else ():
                due = (before.xid + 1) % _XIDS
                if after.xid != due:
                    self.findings.append(Finding(None, "ring.xid", f"0x{due:08x}", f"0x{after.xid:08x}", after.rows))
        for (_, xid), records in self.calls.items():
            rows = [row for record in records if record is not None for row in record.rows]
            self.findings.append(Finding(None, "ring.call", "a call that was made", f"xid 0x{xid:08x}", rows))


def _observed(sample: Mapping[str, Any], request: Record | None, reply: Record | None) -> tuple[Any, ...]:
    """One row of `workload.OBSERVED`."""
    there = 0 if request is None else len(request.rows)
    back = 0 if reply is None else len(reply.rows)
    return (
        sample["id"], sample["transport"], request and request.sent_ns, request and request.arrived_ns,
        reply and reply.sent_ns, reply and reply.arrived_ns, there, there, 0, 0, 0, back, back, 0, 0, 0,
    )  # fmt: skip
