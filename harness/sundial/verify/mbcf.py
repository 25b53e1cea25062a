# SPDX-License-Identifier: Apache-2.0
"""Verification of memory-based communication: calls and operations against their frames, no frame without a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.expect.mbcf import Frame, Operation, RpcCall, Server, expect_operation, expect_rpc
from sundial.observe import RunDirectory
from sundial.verify.conserve import check_balance, transit_ends
from sundial.verify.findings import FINDING, findings, none
from sundial.verify.mbcf_channels import FIRST_SEQUENCED, Channels, check_channels
from sundial.verify.mbcf_talk import COLUMNS, NAMES, Talk, Talks, find_talks

OPERATIONS = "mbcf"
"""Transport of samples that are operations, not calls."""
PREFIX = "mbcf"
_STATUS = {
    1: "NOTASK", 2: "NOQUE", 3: "FULL", 4: "KEY", 5: "PERM", 6: "FAULT", 7: "READONLY", 8: "NOFIFO", 9: "NOHANDLER",
    10: "ALIGN", 11: "RANGE", 12: "BADOP", 13: "BUSY",
}  # fmt: skip
_CONTROL = {0: "mbcf_ack", 1: "mbcf_handshake", 2: "mbcf_handshake", 3: "mbcf_reset", 4: "mbcf_probe"}
CALL, UNEXPLAINED, PASSING = "call", "unexplained", "passing"

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
class Settled:
    """`classes`: row, class, call of every MBCF frame. `expected`: of each group (transport, procedure, size, ack)."""

    findings: pl.DataFrame
    classes: pl.DataFrame
    observed: pl.DataFrame
    packets: int
    retransmissions: int
    impossible: list[int]
    """Calls that their type cannot carry."""
    expected: dict[tuple[str, str, int], tuple[tuple[Frame, ...], tuple[Frame, ...]]]


def settle(
    run: RunDirectory,
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    batches: Mapping[tuple[str, int], Any],
    executed: Mapping[str, int],
) -> Settled:
    """`frames` with row, end, fate; `calls`: samples over MBCF with `id`; `batches`: (client, batch) -> its line;
    `executed`: calls that each server says it has executed."""
    of_mbcf = _with_view(frames.filter(pl.col("mbcf_op").is_not_null()), run.node_ids)
    if of_mbcf.is_empty():
        return _nothing(calls)
    channels = check_channels(of_mbcf, exact_time=run.clock == "virtual")
    first = of_mbcf.filter(pl.col("row").is_in(channels.first)).sort("time_ns", "row")
    talks = find_talks(first.select(_filled()).iter_rows())
    judge = _Judge(run.node_ids, calls, batches, channels, talks)
    findings = [*judge.findings(), *judge.counted(executed)]
    parts = [channels.findings, pl.DataFrame(findings, schema=FINDING, orient="row"), _balance(of_mbcf, frames)]
    classes = _classes(of_mbcf, channels, talks, judge.owner)
    return Settled(
        pl.concat(parts),
        classes,
        judge.observed(),
        len(channels.first) + len(channels.again),
        len(channels.again),
        judge.impossible,
        judge.kinds,
    )


def check_promises(scenario: dict[str, Any], calls: pl.DataFrame, settled: Settled) -> pl.DataFrame:
    """Findings where a call or operation failed though `expect` rules it out and its type can carry it."""
    if (scenario.get("expect") or {}).get("failures") != "none":
        return none()
    table = calls.filter(~pl.col("ok"), ~pl.col("id").is_in(settled.impossible)).with_columns(
        call=pl.col("id"), reply=False
    )
    text = pl.col("error").fill_null("none, or a wrong one")
    return findings(table, pl.lit(True), pl.lit("reply"), pl.lit("the right one"), text, rows=None)


def _nothing(calls: pl.DataFrame) -> Settled:
    """No frame at all: each call that succeeded lacks all of its frames."""
    lost: list[Finding] = [(row, "mbcf.request", "its frames", "none", []) for row in calls.filter("ok")["id"]]
    classes = pl.DataFrame(schema={"row": pl.UInt32, "mbcf_class": pl.String, "mbcf_call": pl.UInt32})
    return Settled(
        pl.DataFrame(lost, schema=FINDING, orient="row"), classes, pl.DataFrame(schema=OBSERVED), 0, 0, [], {}
    )


def _filled() -> list[pl.Expr]:
    return [pl.col(name).fill_null("") if name in ("mbcf_address", "mbcf_data") else pl.col(name) for name in COLUMNS]


def _with_view(frames: pl.DataFrame, ids: Mapping[str, int]) -> pl.DataFrame:
    """Sets `view` by the machine at whose port a frame was seen, and what conservation asks for."""
    here = pl.col("interface").str.extract(r"^([^:]*)").replace_strict(dict(ids), default=None, return_dtype=pl.UInt32)
    return (
        frames.with_columns(here=here)
        .with_columns(
            view=pl.when(pl.col("fate").is_not_null())
            .then(pl.lit("fate"))
            .when(pl.col("here") == pl.col("mbcf_source"))
            .then(pl.lit("sent"))
            .when(pl.col("here") == pl.col("mbcf_target"))
            .then(pl.lit("received"))
            .otherwise(pl.lit(PASSING)),
            call=pl.lit(None, pl.UInt32),
            reply=pl.lit(False),
        )
        .drop("here")
    )


def _balance(of_mbcf: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    names = pl.col("mbcf_op").replace_strict(
        {**NAMES, 0: "ACK", 1: "SYN", 2: "SYNACK", 3: "RST", 4: "PROBE"}, default="frame", return_dtype=pl.String
    )
    what = pl.format("{} with sequence number {}", names, "mbcf_seq")
    key = [
        "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_op", "mbcf_seq", "mbcf_flags", "mbcf_ack", "mbcf_digest",
        "reply",
    ]  # fmt: skip
    found = check_balance(of_mbcf, key, what, transit_ends(frames))
    return found.with_columns(field=pl.lit("mbcf.received"))


def _classes(of_mbcf: pl.DataFrame, channels: Channels, talks: Talks, owner: Mapping[int, int | None]) -> pl.DataFrame:
    """What each frame is. Sightings elsewhere than at the sender are judged there."""
    kinds = dict.fromkeys(channels.again, "mbcf_retransmission")
    kinds |= dict.fromkeys(talks.closing, "mbcf_close")
    kinds |= dict.fromkeys(talks.nobodys, UNEXPLAINED)
    for talk in talks.talks:
        name = {"setup": "mbcf_setup", "operation": "mbcf_operation"}.get(talk.kind, CALL)
        for part in talk.frames.values():
            kinds |= {row: name if row in owner else UNEXPLAINED for row, _ in part}
    lines = [(row, name, owner.get(row)) for row, name in kinds.items()]
    known = pl.DataFrame(
        lines, schema={"row": pl.UInt32, "known": pl.String, "mbcf_call": pl.UInt32}, orient="row"
    ).sort("row")
    control = pl.col("mbcf_op").replace_strict(_CONTROL, default=None, return_dtype=pl.String)
    received = pl.when(pl.col("view") == PASSING).then(pl.lit(PASSING)).otherwise(pl.lit(CALL))
    of_node = (pl.col("mbcf_op") >= FIRST_SEQUENCED) & (pl.col("view") == "sent")
    return of_mbcf.join(known, on="row", how="left").select(
        "row",
        mbcf_class=pl.coalesce("known", pl.when(of_node).then(pl.lit(UNEXPLAINED)), control, received),
        mbcf_call="mbcf_call",
    )


class _Judge:
    """Exchanges against samples."""

    def __init__(
        self,
        ids: Mapping[str, int],
        calls: pl.DataFrame,
        batches: Mapping[tuple[str, int], Any],
        channels: Channels,
        talks: Talks,
    ) -> None:
        self.ids, self.batches, self.channels = ids, batches, channels
        self.kinds: dict[tuple[str, str, int], tuple[tuple[Frame, ...], tuple[Frame, ...]]] = {}
        self.owner: dict[int, int | None] = {}
        """Rows of frames that are explained -> the call, where there is one."""
        self.rows: list[tuple[Any, ...]] = []
        self.impossible: list[int] = []
        self.samples = calls.sort("start_ns", "id")
        self.by_xid = {(talk.node, talk.xid): talk for talk in talks.talks if talk.kind == "call"}
        self.operations = [talk for talk in talks.talks if talk.kind == "operation"]
        for talk in talks.talks:
            if talk.kind == "setup":
                self.claim(talk, None)

    def claim(self, talk: Talk, call: int | None) -> None:
        for part in talk.frames.values():
            for row, _ in part:
                self.owner[row] = call

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        taken: set[tuple[int, int | None]] = set()
        for row in self.samples.filter(pl.col("transport") != OPERATIONS).iter_rows(named=True):
            key = (self.ids.get(row["client"], 0), row["xid"])
            talk = self.by_xid.get(key)
            taken.add(key)
            found += self.call(row, talk)
        found += self.all_operations()
        one_way = {line.get("server_task") for line in self.batches.values() if line.get("one_way")}
        for key, talk in self.by_xid.items():
            # One-way calls end with a call that has no sample (ARCHITECTURE.md, Verification).
            if key not in taken and one_way:
                self.claim(talk, None)
        return found

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
        return [*self.frames_of(call, row, talk, expected), *self.executed(call, row, talk)]

    def frames_of(self, call: int, row: dict[str, Any], talk: Talk, expected: RpcCall) -> list[Finding]:
        """The frames of a call that went well, exactly; of one that was asked again, each attempt is not told apart."""
        found: list[Finding] = []
        asked = (row["retransmits"] or 0) + 1
        if talk.attempts != asked and row["ok"]:
            rows = [place for place, _ in talk.frames[False]]
            found.append((call, "mbcf.request.count", str(asked), str(talk.attempts), rows))
        if not row["ok"] or asked > 1 or talk.attempts > 1:
            return found
        for name, wanted, part in (
            ("mbcf.request", expected.client, talk.frames[False]), ("mbcf.reply", expected.server, talk.frames[True]),
        ):  # fmt: skip
            seen = " ".join(text for _, text in part)
            if seen != _text(wanted):
                found.append((call, name, _text(wanted) or "none", seen or "none", [place for place, _ in part]))
        return found

    def executed(self, call: int, row: dict[str, Any], talk: Talk) -> list[Finding]:
        """A call that succeeded had each of its frames executed; one that failed says why, or was told."""
        if not row["ok"]:
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
            queue = [talk for talk in queues.get((node, task, server, op), []) if talk.began_ns >= start]
            rows = part.sort("call").iter_rows(named=True)
            for place, row in enumerate(rows):
                talk_of = queue[place] if place < len(queue) else None
                asks = bool(line.get("ack")) or place == part.height - 1
                found += self.operation(row, talk_of, asks)
        for talk in self.operations:
            # What the measuring tasks do around a batch: preparing memory, reading counts.
            if (talk.node, talk.task) in tasks or (talk.peer, talk.peer_task) in tasks:
                for place, _ in (*talk.frames[False], *talk.frames[True]):
                    self.owner.setdefault(place, None)
            elif self.is_answer(talk):
                self.claim(talk, None)
        return found

    def is_answer(self, talk: Talk) -> bool:
        """The binder's WRITE of eight bytes, in answer to a question."""
        return talk.task == BINDER and [text for _, text in talk.frames[False]] == ["WRITE:8"]

    def operation(self, row: dict[str, Any], talk: Talk | None, asks: bool) -> list[Finding]:
        call, operation = row["id"], _operation(row["procedure"])
        expected = expect_operation(operation, row["size"], asks)
        whole = RpcCall(expected.there, expected.back, expected.there, expected.back)
        self.kinds.setdefault((OPERATIONS, row["procedure"], row["size"]), (expected.there, expected.back))
        self.see(row, talk, whole)
        if talk is None:
            return [(call, "mbcf.request", _text(expected.there), "none", [])] if row["ok"] else []
        self.claim(talk, call)
        found: list[Finding] = []
        if row["ok"]:
            for name, wanted, part in (
                ("mbcf.operation", expected.there, talk.frames[False]),
                ("mbcf.result", expected.back, talk.frames[True]),
            ):  # fmt: skip
                seen = " ".join(text for _, text in part)
                if seen != _text(wanted):
                    found.append((call, name, _text(wanted) or "none", seen or "none", [place for place, _ in part]))
        if row["xid"] is not None and talk.op_id not in (None, row["xid"]):
            rows = [place for place, _ in talk.frames[False]]
            found.append((call, "mbcf.op_id", str(row["xid"]), str(talk.op_id), rows))
        return found + self.executed(call, row, talk)

    def counted(self, lines: Mapping[str, int]) -> list[Finding]:
        """A server's own count of executions, where every call went to it over MBCF and exactly once was asked for."""
        found: list[Finding] = []
        plain = {line.get("semantics", "exactly_once") for line in self.batches.values()} <= {"exactly_once"}
        other = any(not str(line.get("transport", "")).startswith(PREFIX) for line in self.batches.values())
        for node, executed in lines.items():
            talks = [talk for talk in self.by_xid.values() if talk.peer == self.ids.get(node)]
            if not talks:
                continue
            done = sum(1 for talk in talks if talk.request and talk.request[-1] in self.channels.received)
            if plain and not other and executed != done:
                text = f"{done} requests that {node} took"
                found.append((None, "mbcf.executed", text, f"{executed} executed by its own count", []))
        return found

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


def _server(transport: str) -> Server:
    return transport  # type: ignore[return-value]  # checked by expect_rpc


def _operation(procedure: str) -> Operation:
    return procedure  # type: ignore[return-value]  # checked by expect_operation


def _text(frames: Iterable[Frame]) -> str:
    return " ".join(frame.text for frame in frames)
