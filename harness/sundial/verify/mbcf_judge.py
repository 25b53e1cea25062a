# SPDX-License-Identifier: Apache-2.0
"""Exchanges over MBCF against samples: every call and operation has the frames that it must have, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.expect.mbcf import (
    Exchange,
    Frame,
    Operation,
    RpcCall,
    Server,
    expect_binding,
    expect_lookup,
    expect_operation,
    expect_rpc,
)
from sundial.verify.mbcf_channels import Channels
from sundial.verify.mbcf_talk import NAMES, Talk, Talks

OPERATIONS = "mbcf"
"""Transport of samples that are operations, not calls."""
STREAM_UNACKED = 524288 // 4
"""Bytes of records after which mbcf-client asks in a stream whether all was taken (tasks/mbcf-client.c)."""
_RECORD_HEADS = 16 + 40
_STATUS = {
    1: "NOTASK", 2: "NOQUE", 3: "FULL", 4: "KEY", 5: "PERM", 6: "FAULT", 7: "READONLY", 8: "NOFIFO", 9: "NOHANDLER",
    10: "ALIGN", 11: "RANGE", 12: "BADOP", 13: "BUSY",
}  # fmt: skip
_FULL, _BUSY = 3, 13
Finding = tuple[int | None, str, str, str, list[int]]
OBSERVED: dict[str, type[pl.DataType]] = {
    "call": pl.UInt32,
    "transport": pl.String,
    "call_first_tx_ns": pl.Int64,
    "call_last_rx_ns": pl.Int64,
    "reply_first_tx_ns": pl.Int64,
    "reply_last_rx_ns": pl.Int64,
    **{
        f"{way}_{name}": pl.Int32
        for way in ("request", "reply")
        for name in ("packets", "packets_expected", "fragments", "fragments_expected", "retransmissions")
    },
}


@dataclass(frozen=True)
class Executed:
    """What an RPC server counted last, and the call at which it was told to end, if any."""

    count: int
    last: int | None = None


class Judge:
    """Exchanges against samples. `ids`: numbers of machines; `batches`: (client, batch) -> its line; `exact`: clocks
    and captures have one time."""

    def __init__(
        self,
        ids: Mapping[str, int],
        calls: pl.DataFrame,
        batches: Mapping[tuple[str, int], Any],
        channels: Channels,
        talks: Talks,
        exact: bool,
    ) -> None:
        self.ids, self.batches, self.channels, self.talks, self.exact = ids, batches, channels, talks, exact
        self.kinds: dict[tuple[str, str, int], tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}
        self.owner: dict[int, int | None] = {}
        """Rows of frames that are explained -> the call, where there is one."""
        self.rows: list[tuple[Any, ...]] = []
        self.impossible: list[int] = []
        self.samples = calls.sort("start_ns", "id")
        self.by_xid = {(talk.node, talk.xid): talk for talk in talks.talks if talk.kind == "call"}
        self.operations = [talk for talk in talks.talks if talk.kind == "operation"]

    def claim(self, talk: Talk, call: int | None) -> None:
        for part in talk.frames.values():
            for row, _ in part:
                self.owner[row] = call

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        taken: set[tuple[int, int | None]] = set()
        for row in self.samples.filter(pl.col("transport") != OPERATIONS).iter_rows(named=True):
            key = (self.ids.get(row["client"], 0), row["xid"])
            taken.add(key)
            found += self.call(row, self.by_xid.get(key))
        found += [*self.setting_up(), *self.all_operations(), *self.one_way(taken), *self.ends()]
        return found

    # ---- calls ----

    def call(self, row: dict[str, Any], talk: Talk | None) -> list[Finding]:
        call, line = row["id"], self.batches.get((row["client"], row["batch"]), {})
        expected = expect_rpc(
            _server(row["transport"]), row["procedure"], row["size"],
            ack=bool(line.get("ack")), one_way=bool(line.get("one_way")),
        )  # fmt: skip
        self.kinds.setdefault((row["transport"], row["procedure"], row["size"]), (expected.client, expected.server))
        if expected.fails:
            self.impossible.append(call)
        if talk is None:
            self.see(row, None, expected)
            wanted = not expected.fails and row["ok"]
            return [(call, "mbcf.request", _text(expected.client), "none", [])] if wanted else []
        self.claim(talk, call)
        self.see(row, talk, expected)
        if expected.fails:
            rows = [row for row, _ in talk.frames[False]]
            return [(call, "mbcf.request", "none: it does not fit", f"{len(rows)} frames", rows)]
        found = [*self.frames_of(call, row, talk, expected), *self.executed(call, row, talk)]
        return found + self.in_time(call, row, talk, bool(line.get("ack")))

    def frames_of(self, call: int, row: dict[str, Any], talk: Talk, expected: RpcCall) -> Iterator[Finding]:
        """The frames of a call that went well: exactly those of each attempt, and of one reply to each at most."""
        asked = (row["retransmits"] or 0) + 1
        rows = [place for place, _ in talk.frames[False]]
        if talk.attempts != asked and row["ok"]:
            yield call, "mbcf.request.count", str(asked), str(talk.attempts), rows
        elif row["ok"] and asked == 1:
            yield from self.exactly(call, talk, expected)
        else:
            yield from self.attempts(call, talk, expected)

    def exactly(self, call: int, talk: Talk, expected: RpcCall) -> Iterator[Finding]:
        for name, wanted, part in (
            ("mbcf.request", expected.client, talk.frames[False]), ("mbcf.reply", expected.server, talk.frames[True]),
        ):  # fmt: skip
            seen = " ".join(text for _, text in part)
            # Where places ran short, a one-way call asks for its ACK without having been told to.
            if not self.same(part, wanted) and (expected.server or not self.same(part, _hurried(wanted))):
                yield call, name, _text(wanted) or "none", seen or "none", [place for place, _ in part]
        ours, theirs = talk.closed[False], talk.closed[True]
        if len(theirs) != len(expected.close) or (ours and not self.crossed(ours, theirs)):
            text = f"{len(theirs)}, and {len(ours)} by the client"
            yield call, "mbcf.close", f"{len(expected.close)} CLOSE by the server", text, [*theirs, *ours]

    def crossed(self, ours: list[int], theirs: list[int]) -> bool:
        """Whether a client which discards its handle ended the connection before it knew that the server had."""
        sent, came = self.channels.sent_ns, self.channels.received
        return len(ours) == 1 and all(row not in came or came[row] >= sent[ours[0]] for row in theirs)

    def same(self, part: list[tuple[int, str]], wanted: tuple[Frame, ...]) -> bool:
        """Whether frames are those expected; one that fills the window may ask for an ACK beside what it is."""
        texts = [text.removesuffix("!") if row in self.channels.filling else text for row, text in part]
        return len(texts) == len(wanted) and all(
            text == frame.text or (row in self.channels.filling and text == frame.text.removesuffix("!"))
            for (row, _), text, frame in zip(part, texts, wanted, strict=True)
        )

    def attempts(self, call: int, talk: Talk, expected: RpcCall) -> Iterator[Finding]:
        """Each request is whole and alike, but for the last of a call that failed; no more replies than requests."""
        sent = dict(talk.frames[False])
        texts = [sent.get(row, "").removesuffix("!") for rows in talk.tries for row in rows]
        wanted = [frame.text.removesuffix("!") for frame in expected.client] * talk.attempts
        over = Counter(texts) - Counter(wanted)
        if over:
            yield call, "mbcf.request", " ".join(wanted), " ".join(texts), talk.request
        replies = Counter(text.removesuffix("!") for _, text in talk.frames[True] if not text.startswith("RESULT"))
        over = replies - Counter([frame.text for frame in expected.server] * talk.attempts)
        if over:
            text = f"at most {talk.attempts} times {_text(expected.server) or 'nothing'}"
            rows = [row for row, _ in talk.frames[True]]
            yield call, "mbcf.reply", text, " ".join(text for _, text in talk.frames[True]), rows
        ours, theirs = talk.closed[False], talk.closed[True]
        if max(len(ours), len(theirs)) > talk.connections:
            text = f"{len(theirs)}, and {len(ours)} by the client"
            yield call, "mbcf.close", f"one for each of {talk.connections} connections", text, [*theirs, *ours]

    def executed(self, call: int, row: dict[str, Any], talk: Talk) -> list[Finding]:
        """A call that succeeded had each of its frames executed; one that failed says why, or was told."""
        if not row["ok"] or talk.attempts > 1:
            return []
        missing = [place for part in talk.frames.values() for place, _ in part if place not in self.channels.received]
        # What came after the answer may still be on its way when the run ends.
        needed = [place for place in missing if place in (*talk.request, *talk.reply)]
        found: list[Finding] = []
        if needed:
            found.append((call, "mbcf.executed", "every frame of it once", f"{len(needed)} not", needed))
        found += [
            (call, "mbcf.status", "OK", _STATUS.get(status, str(status)), [place]) for place, status in talk.failed
        ]
        return found

    def in_time(self, call: int, row: dict[str, Any], talk: Talk, acked: bool) -> list[Finding]:
        """What a call or operation has ended with had come by then: its answer, and where it wants that its ACK."""
        if not (self.exact and row["ok"]):
            return []
        found: list[Finding] = []
        answer = talk.reply or [place for place, _ in talk.frames[True] if talk.kind == "operation"]
        came = [self.channels.received[place] for place in answer if place in self.channels.received]
        if came and min(came) > row["end_ns"]:
            text = f"{min(came) - row['end_ns']} ns after its end"
            found.append((call, "mbcf.answered", "before its end", text, answer))
        if acked and talk.frames[False]:
            # Each attempt has its own; the first that comes does.
            results = {place for place, text in talk.frames[False] if text.startswith("RESULT")}
            tries = [[place for place in rows if place not in results] for rows in talk.tries]
            lasts = [rows[-1] for rows in tries if rows] or [talk.frames[False][-1][0]]
            sure = min((self.channels.sure_ns[last] for last in lasts if last in self.channels.sure_ns), default=None)
            if sure is None or sure > row["end_ns"]:
                text = "none" if sure is None else f"{sure - row['end_ns']} ns after its end"
                found.append((call, "mbcf.acked", "an acknowledgement of it before its end", text, lasts))
        return found

    # ---- batches of one-way calls ----

    def one_way(self, taken: set[tuple[int, int | None]]) -> Iterator[Finding]:
        """Their requests go in order, and after them comes a call with a reply that has no sample."""
        for (client, batch), part in self.samples.group_by("client", "batch", maintain_order=True):
            line = self.batches.get((client, batch), {})
            if not line.get("one_way"):
                continue
            node, part = self.ids.get(client, 0), part.sort("call")
            sent = [self.by_xid.get((node, xid)) for xid in part["xid"]]
            began = [talk.began_ns for talk in sent if talk is not None]
            if began != sorted(began):
                yield part["id"][0], "batch.order", "requests in the order of the calls", "another", []
            last = (part["xid"][-1] + 1) % (1 << 32)
            yield from self.flush(part.row(-1, named=True), self.by_xid.get((node, last)))
            taken.add((node, last))
        one_way = {(node, talk.peer) for (node, _), talk in self.by_xid.items() if (node, talk.xid) in taken}
        for key, talk in self.by_xid.items():
            # A large request for which there is no place waits for a call without data (rpc/mbcf_client.c, area_take).
            if key not in taken and (key[0], talk.peer) in one_way and self.is_null(talk):
                self.claim(talk, None)

    def is_null(self, talk: Talk) -> bool:
        expected = expect_rpc("mbcf3b", "null", 0)
        return [text for _, text in talk.frames[False]] == [frame.text for frame in expected.client]

    def flush(self, row: dict[str, Any], talk: Talk | None) -> Iterator[Finding]:
        expected = expect_rpc(_server(row["transport"]), "null", 0)
        if talk is None:
            if row["ok"]:
                yield row["id"], "batch.reply", "a call with a reply behind them", "none", []
            return
        self.claim(talk, None)
        for wanted, part in ((expected.client, talk.frames[False]), (expected.server, talk.frames[True])):
            seen = " ".join(text for _, text in part)
            if not self.same(part, wanted) and talk.attempts == 1:
                yield row["id"], "batch.reply", _text(wanted), seen or "none", [place for place, _ in part]

    # ---- setting up ----

    def setting_up(self) -> Iterator[Finding]:
        """Questions to binders, and bindings: each with its answer, where it was taken."""
        for talk in self.talks.talks:
            if talk.kind != "setup":
                continue
            self.claim(talk, None)
            lookup = talk.peer_task == BINDER
            expected = expect_lookup() if lookup else expect_binding("mbcf3")
            asked, answer = (" ".join(text for _, text in talk.frames[side]) for side in (False, True))
            asked, answer = asked.removesuffix("!"), answer.removesuffix("!")
            rows = [row for part in talk.frames.values() for row, _ in part]
            if asked != _text(expected.client):
                yield None, "mbcf.setup", _text(expected.client), asked, rows
            if answer != _text(expected.server) and not talk.failed and not (answer == "" and self.unanswered(talk)):
                yield None, "mbcf.setup.answer", _text(expected.server), answer or "none", rows
            for closing in talk.closed.values():
                if len(closing) > talk.connections:
                    yield None, "mbcf.close", "one CLOSE of each side", str(len(closing)), closing

    def unanswered(self, talk: Talk) -> bool:
        """Whether there is a reason for it: the question was not taken, or its task has ended."""
        row = talk.frames[False][0][0]
        return row not in self.channels.received or (talk.peer, talk.peer_task, talk.node) in self.talks.farewells

    def ends(self) -> Iterator[Finding]:
        """A task's end is told once to each node."""
        for rows in (rows for told in self.talks.farewells.values() for rows in told.values()):
            if len(rows) > 1:
                yield None, "mbcf.close", "one CLOSE at the end of a task", str(len(rows)), rows

    # ---- operations ----

    def all_operations(self) -> list[Finding]:
        """Operations belong to the calls of their batch by order: a stream's have no names."""
        found: list[Finding] = []
        queues: dict[tuple[int, int, int, int], list[Talk]] = {}
        tasks = set()
        for talk in self.operations:
            queues.setdefault((talk.node, talk.task, talk.peer_task, talk.op or 0), []).append(talk)
        batch_rows = self.samples.filter(pl.col("transport") == OPERATIONS)
        for (client, batch), part in batch_rows.group_by("client", "batch", maintain_order=True):
            line = self.batches.get((client, batch), {})
            node, task, server = (
                self.ids.get(client, 0),
                int(line.get("client_task") or 0),
                int(line.get("server_task") or 0),
            )
            tasks.add((node, task))
            op = next((number for number, name in NAMES.items() if name == str(part["procedure"][0]).upper()), 0)
            start = int(part["start_ns"].to_list()[0])
            # One that was refused for want of a place is made again, as another operation of the same call.
            queue = iter(
                talk
                for talk in queues.get((node, task, server, op), [])
                if talk.began_ns >= start and not _refused(talk)
            )
            part = part.sort("call")
            asks = _asked(part, line)
            for place, row in enumerate(part.iter_rows(named=True)):
                found += self.operation(row, next(queue, None), asks[place])
        for talk in self.operations:
            # What the measuring tasks do around a batch: preparing memory, asking the server, reading back.
            if (talk.node, talk.task) in tasks or (talk.peer, talk.peer_task) in tasks:
                for place, _ in (*talk.frames[False], *talk.frames[True]):
                    self.owner.setdefault(place, None)
        return found

    def operation(self, row: dict[str, Any], talk: Talk | None, asks: bool) -> list[Finding]:
        call, operation = row["id"], _operation(row["procedure"])
        expected = expect_operation(operation, row["size"], asks, _ARGUMENTS)
        self.kinds.setdefault((OPERATIONS, row["procedure"], row["size"]), (expected.there, expected.back))
        self.see(row, talk, RpcCall(expected.there, expected.back))
        if talk is None:
            return [(call, "mbcf.request", _text(expected.there), "none", [])] if row["ok"] else []
        self.claim(talk, call)
        found: list[Finding] = []
        if row["ok"]:
            found += self.whole(call, talk, expected)
        if row["xid"] is not None and talk.op_id not in (None, row["xid"]):
            rows = [place for place, _ in talk.frames[False]]
            found.append((call, "mbcf.op_id", str(row["xid"]), str(talk.op_id), rows))
        return found + self.executed(call, row, talk) + self.in_time(call, row, talk, asks and not expected.back)

    def whole(self, call: int, talk: Talk, expected: Exchange) -> Iterator[Finding]:
        for name, wanted, part in (
            ("mbcf.operation", expected.there, talk.frames[False]),
            ("mbcf.result", expected.back, talk.frames[True]),
        ):  # fmt: skip
            # An error is told by its status.
            left = [one for one in part if one[0] not in self.channels.refused]
            seen = " ".join(text for _, text in left)
            if not self.same(left, wanted):
                yield call, name, _text(wanted) or "none", seen or "none", [place for place, _ in part]

    # ---- what servers count ----

    def counted(self, servers: Mapping[str, Executed]) -> list[Finding]:
        """A server's own count of executions, where every call went to it over MBCF."""
        found: list[Finding] = []
        semantics = {line.get("semantics", "exactly_once") for line in self.batches.values()}
        other = any(not str(line.get("transport", "")).startswith(OPERATIONS) for line in self.batches.values())
        if other or len(semantics) != 1:
            return []
        again = semantics == {"at_least_once"}
        for node, told in servers.items():
            talks = [talk for talk in self.by_xid.values() if talk.peer == self.ids.get(node)]
            taken = sum(self.taken(talk) if again else min(1, self.taken(talk)) for talk in talks)
            done = taken if told.last is None else min(taken, told.last)
            if talks and told.count != done:
                text = f"{done} requests that {node} took"
                found.append((None, "mbcf.executed", text, f"{told.count} executed by its own count", []))
        return found

    def taken(self, talk: Talk) -> int:
        """How many times the server's node has taken the request of a call."""
        refused = set(self.channels.refused.values())
        return sum(1 for rows in talk.tries if rows and rows[-1] in self.channels.received and not refused & set(rows))

    # ---- what was observed ----

    def see(self, row: dict[str, Any], talk: Talk | None, expected: RpcCall) -> None:
        """One row of `observed`."""
        times, request = self.channels.received, talk.frames[False] if talk else []
        reply = talk.frames[True] if talk else []
        arrived = [times[place] for place in (talk.request if talk else []) if place in times]
        answered = [times[place] for place, _ in reply if place in times]
        self.rows.append(
            (
                row["id"], row["transport"], talk.began_ns if talk else None, max(arrived, default=None),
                self.sent_at(reply), max(answered, default=None), len(request), len(expected.client), 0, 0,
                max(0, (talk.attempts if talk else 0) - 1), len(reply), len(expected.server), 0, 0, 0,
            )
        )  # fmt: skip

    def sent_at(self, reply: list[tuple[int, str]]) -> int | None:
        return self.channels.sent_ns.get(reply[0][0]) if reply else None

    def observed(self) -> pl.DataFrame:
        return pl.DataFrame(self.rows, schema=OBSERVED, orient="row").sort("call")


BINDER = 1
_ARGUMENTS = 1
"""Of mbcf-client's SIGNALs: the number of the call."""


def _refused(talk: Talk) -> bool:
    return any(status in (_FULL, _BUSY) for _, status in talk.failed)


def _asked(part: pl.DataFrame, line: Mapping[str, Any]) -> list[bool]:
    """Which operations of a batch wait for their ACK: all, or of a stream the last, and before a queue may be full."""
    if line.get("ack"):
        return [True] * part.height
    asks, unacked = [], 0
    for procedure, size in part.select("procedure", "size").iter_rows():
        unacked += 2 * (_RECORD_HEADS + size)
        asks.append(procedure != "write" and unacked >= STREAM_UNACKED)
        unacked = 0 if asks[-1] else unacked
    return [*asks[:-1], True]


def _hurried(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The same with an ACK at once for the last."""
    return (*frames[:-1], Frame(frames[-1].kind, frames[-1].payload, frames[-1].more, True)) if frames else ()


def _server(transport: str) -> Server:
    return transport  # type: ignore[return-value]  # checked by expect_rpc


def _operation(procedure: str) -> Operation:
    return procedure  # type: ignore[return-value]  # checked by expect_operation


def _text(frames: Iterable[Frame]) -> str:
    return " ".join(frame.text for frame in frames)
