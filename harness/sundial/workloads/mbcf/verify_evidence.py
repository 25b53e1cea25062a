# SPDX-License-Identifier: Apache-2.0
"""What calls and operations over MBCF are judged by, and what a protocol over it must provide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl

from sundial import kinds
from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.protocol import Bytes
from sundial.verify.workload import Counted
from sundial.workloads.mbcf.expect import Frame
from sundial.workloads.mbcf.verify_channels import Channels
from sundial.workloads.mbcf.verify_contents import Carried
from sundial.workloads.mbcf.verify_transactions import Meaning, Transaction, Transactions
from sundial.workloads.mbcf.wire import FIFO, MORE, PART, PART_HEAD, PAYLOAD_FIELDS, STATUSES

READ_ALLOWED, WRITE_ALLOWED = 1, 2
"""Permissions that go with a key (guest-apps/sss-core/include/sss/mbcf.h)."""
SHOWN = 8
"""Bytes of a difference that a finding shows."""


@dataclass(frozen=True)
class Evidence:
    """Calls, and the frames that passed."""

    run: RunDirectory
    nodes: Mapping[str, int]
    """Numbers of machines."""
    records: Mapping[str, Sequence[Mapping[str, Any]]]
    """What nodes wrote besides samples."""
    samples: pl.DataFrame
    """Calls and operations over MBCF, with `id`, in the order of time."""
    batches: Mapping[tuple[str, int], Mapping[str, Any]]
    """The lines above them, by client and batch."""
    channels: Channels
    transactions: Transactions
    carried: Mapping[int, Carried]
    """Of frames that were sent for the first time, by row."""
    first: pl.DataFrame
    """The same frames as a table."""

    @property
    def files(self) -> list[tuple[Path, str]]:
        """The captures, and their names in the table of frames."""
        return self.run.capture_files

    @cached_property
    def _captured(self) -> dict[str, Bytes]:
        return {name: np.memmap(path, np.uint8, "r") for path, name in self.files}

    def payload(self, row: int, most: int | None = None) -> bytes:
        """The payload of a frame, or its first `most` bytes."""
        frame = self.carried[row]
        begin = frame.begin + frame.at
        length = frame.length if most is None else min(most, frame.length)
        return bytes(self._captured[frame.capture][begin : begin + length])

    def step(self, client: str, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of the step that a line of a client's samples is about."""
        steps = self.run.jobs.get(client, {}).get("steps", [])
        number = int(line.get("step", -1))
        options: Mapping[str, Any] = steps[number].get("options", {}) if 0 <= number < len(steps) else {}
        return options

    @property
    def exact(self) -> bool:
        """Clocks and captures have one time."""
        return self.run.clock == "virtual"

    def of_kind(self, kind: str) -> list[Transaction]:
        """Transactions that are a call, setup, or operation."""
        return [transaction for transaction in self.transactions.transactions if transaction.kind == kind]


@dataclass
class Judgement:
    """What came of judging: written by the functions that judge."""

    findings: list[Finding] = field(default_factory=list)
    owner: dict[int, int | None] = field(default_factory=dict)
    """Rows of frames that are explained -> the call, where there is one."""
    observed: list[tuple[Any, ...]] = field(default_factory=list)
    """Rows of `workload.OBSERVED`."""
    impossible: list[int] = field(default_factory=list)
    """Calls that their type cannot carry."""
    expected: dict[tuple[str, str, int], tuple[tuple[Frame, ...], tuple[Frame, ...]]] = field(default_factory=dict)
    """Frames of client and server, by transport, procedure and size."""
    counted: dict[tuple[str, str], Counted] = field(default_factory=dict)
    """As `Settled.counted`."""

    def attribute(self, transaction: Transaction, call: int | None) -> None:
        """The frames of a transaction are explained."""
        for part in transaction.frames.values():
            self.owner.update((row, call) for row, _ in part)


@runtime_checkable
class MbcfProtocol(Protocol):
    """What a kind speaks over MBCF: `KIND` of `sundial.workloads.NAME.verify_mbcf`."""

    def speaks(self, transport: str) -> bool:
        """Whether samples of `transport` are of this kind."""

    def meaning(self, operation: int, data: str) -> Meaning | None:
        """What the data of an operation (in hexadecimal, the first 36 bytes) is."""

    def judge(self, evidence: Evidence) -> Judgement:
        """Its calls, and what belongs to them."""

    def display_filter(self, xid: int) -> str:
        """A Wireshark display filter for a call."""


def protocols() -> Mapping[str, MbcfProtocol]:
    """Of all kinds that speak over MBCF."""
    return kinds.load("workloads", "verify_mbcf", MbcfProtocol)


def judged(parts: Iterable[Judgement]) -> Judgement:
    """All together."""
    whole = Judgement()
    for part in parts:
        whole.findings += part.findings
        whole.owner |= part.owner
        whole.observed += part.observed
        whole.impossible += part.impossible
        whole.expected |= part.expected
        whole.counted |= part.counted
    return whole


def samples_over_mbcf(samples: RunSamples) -> pl.DataFrame:
    """Calls and operations over MBCF."""
    speakers = list(protocols().values())
    transports = [name for name in samples.table["transport"].unique() if any(each.speaks(name) for each in speakers)]
    return samples.table.filter(pl.col("transport").is_in(transports))


def frames_text(frames: Iterable[Frame]) -> str:
    """Expected frames as findings show them."""
    return " ".join(frame.text for frame in frames)


def part_text(part: Iterable[tuple[int, str]]) -> str:
    """The same of frames of a transaction."""
    return " ".join(text for _, text in part)


def same(channels: Channels, part: Sequence[tuple[int, str]], expected: Sequence[Frame]) -> bool:
    """Whether frames are those expected; one that fills the window may ask for an ACK beside what it is."""
    texts = [text.removesuffix("!") if row in channels.filling else text for row, text in part]
    return len(texts) == len(expected) and all(
        text == frame.text or (row in channels.filling and text == frame.text.removesuffix("!"))
        for (row, _), text, frame in zip(part, texts, expected, strict=True)
    )


def gives_up(evidence: Evidence, row: int) -> bool:
    """Whether a frame ends a FIFO segment of which parts were sent and the others are not to come: a last part without
    data (guest-apps/sss-core/mbcf/README.md, Operations)."""
    frame = evidence.carried[row]
    return frame.op == FIFO and frame.flags & (PART | MORE) == PART and frame.length == PART_HEAD


def check_given_up(
    evidence: Evidence, call: int | None, transaction: Transaction, back: bool, row: int
) -> Iterator[Finding]:
    """A segment is given up if a part of it was refused, if the other side has ended its connection, both of which was
    known, or if a task of it has ended."""
    known = [row for row, status in transaction.failed if status]
    between = transaction.node, transaction.task, transaction.peer
    for each in evidence.transactions.transactions:
        if (each.node, each.task, each.peer) == between:
            known += each.closed[not back]
    own, others = between, (transaction.peer, transaction.peer_task, transaction.node)
    if back:
        own, others = others, own
    farewells = evidence.transactions.farewells
    known += [other for rows in farewells.get(others, {}).values() for other in rows]
    channels = evidence.channels
    at_ns = channels.sent_ns[row]
    if own not in farewells and not any(channels.received.get(other, at_ns + 1) <= at_ns for other in known):
        text = "for no reason that was seen"
        yield Finding(call, "mbcf.given_up", "a segment given up for an error or an end", text, [row])


def check_server(evidence: Evidence, sample: Mapping[str, Any], line: Mapping[str, Any]) -> Iterator[Finding]:
    """The line above a batch names the node of its server."""
    node = evidence.nodes.get(str(sample["server"]))
    if line.get("server_node") not in (None, node):
        yield Finding(sample["id"], "samples.server_node", str(node), str(line["server_node"]))


def check_executed(channels: Channels, sample: Mapping[str, Any], transaction: Transaction) -> Iterator[Finding]:
    """A call that succeeded at the first attempt had each of its frames executed, and none of them failed."""
    if not sample["ok"] or transaction.attempts > 1:
        return
    frames = [row for part in transaction.frames.values() for row, _ in part]
    # What came after the answer may still be on its way when the run ends.
    needed = {*transaction.request, *transaction.reply}
    missing = [row for row in frames if row not in channels.received and row in needed]
    if missing:
        yield Finding(sample["id"], "mbcf.executed", "every frame of it once", f"{len(missing)} not", missing)
    for row, status in transaction.failed:
        yield Finding(sample["id"], "mbcf.status", "OK", STATUSES.get(status, str(status)), [row])


def check_in_time(
    evidence: Evidence, sample: Mapping[str, Any], transaction: Transaction, acked: bool
) -> Iterator[Finding]:
    """A call or operation begins before its first frame leaves. What it has ended with had come by then: its answer,
    and its ACK where it waits for that."""
    if not (evidence.exact and sample["ok"]):
        return
    if transaction.began_ns < sample["start_ns"]:
        early = f"{sample['start_ns'] - transaction.began_ns} ns before its start"
        yield Finding(sample["id"], "mbcf.began", "after its start", early, transaction.request)
    received, end_ns = evidence.channels.received, sample["end_ns"]
    sent, back = transaction.frames[False], transaction.frames[True]
    answer = transaction.reply or [row for row, _ in back if transaction.kind == "operation"]
    came = [received[row] for row in answer if row in received]
    if came and min(came) > end_ns:
        yield Finding(sample["id"], "mbcf.answered", "before its end", f"{min(came) - end_ns} ns after its end", answer)
    if acked and sent:
        # Each attempt has its own; the first that comes does.
        results = {row for row, text in sent if text.startswith("RESULT")}
        tries = [[row for row in rows if row not in results] for rows in transaction.tries]
        lasts = [rows[-1] for rows in tries if rows] or [sent[-1][0]]
        sure_ns = evidence.channels.sure_ns
        sure = min((sure_ns[last] for last in lasts if last in sure_ns), default=None)
        if sure is None or sure > end_ns:
            text = "none" if sure is None else f"{sure - end_ns} ns after its end"
            yield Finding(sample["id"], "mbcf.acked", "an acknowledgement of it before its end", text, lasts)


def observed_row(
    channels: Channels,
    sample: Mapping[str, Any],
    transaction: Transaction | None,
    expected: tuple[Sequence[Frame], Sequence[Frame]],
) -> tuple[Any, ...]:
    """One row of `workload.OBSERVED`. `expected`: frames of client and server."""
    received = channels.received
    request = transaction.frames[False] if transaction else []
    reply = transaction.frames[True] if transaction else []
    arrived = [received[row] for row in (transaction.request if transaction else []) if row in received]
    answered = [received[row] for row, _ in reply if row in received]
    return (
        sample["id"], sample["transport"], transaction.began_ns if transaction else None, max(arrived, default=None),
        channels.sent_ns.get(reply[0][0]) if reply else None, max(answered, default=None), len(request),
        len(expected[0]), 0, 0, max(0, (transaction.attempts if transaction else 0) - 1), len(reply), len(expected[1]),
        0, 0, 0,
    )  # fmt: skip


@dataclass(frozen=True)
class Due:
    """What a frame must say; None, and empty bytes: nothing more is known of it."""

    begin: bytes = b""
    """Of its payload."""
    address: int | None = None
    key: int | None = None
    tasks: tuple[int, int] | None = None
    """Whose it is, and for whom."""


def check_frame(evidence: Evidence, call: int | None, row: int, due: Due) -> Iterator[Finding]:
    """Problems with one frame as it was sent first."""
    frame = evidence.carried[row]
    begin = evidence.payload(row, len(due.begin))
    if begin != due.begin:
        at = next((at for at, (one, other) in enumerate(zip(due.begin, begin, strict=False)) if one != other), 0)
        shown = slice(at, at + SHOWN)
        yield Finding(call, "mbcf.data", f"{due.begin[shown].hex(' ')} at byte {at}", begin[shown].hex(" "), [row])
    if due.address is not None and frame.address != due.address:
        yield Finding(call, "mbcf.address", f"0x{due.address:x}", f"0x{frame.address or 0:x}", [row])
    if due.key is not None and frame.key != due.key:
        yield Finding(call, "mbcf.key", f"0x{due.key:x}", f"0x{frame.key or 0:x}", [row])
    tasks = (frame.source_task, frame.target_task)
    if due.tasks is not None and tasks != due.tasks:
        yield Finding(
            call, "mbcf.task", "from task {} to {}".format(*due.tasks), "from task {} to {}".format(*tasks), [row]
        )


def taskque_key(seen: bytes) -> int:
    """The key that a TASKQUE write gives away."""
    return int.from_bytes(seen[PAYLOAD_FIELDS["taskque_key"].bytes])


def taskque_head(seen: bytes, permission: int) -> bytes:
    """The head of a TASKQUE write: its key and its name of the connection are said again by other frames."""
    key, connection = PAYLOAD_FIELDS["taskque_key"].bytes, PAYLOAD_FIELDS["taskque_connection"].bytes
    return seen[key] + permission.to_bytes(4) + seen[connection]
