# SPDX-License-Identifier: Apache-2.0
"""Sun RPC over MBCF against samples: every call has the frames that it must have, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import polars as pl

from sundial.verify.findings import Finding
from sundial.workloads.mbcf.expect import Frame
from sundial.workloads.mbcf.verify_channels import Channels
from sundial.workloads.mbcf.verify_evidence import (
    Evidence,
    Judgement,
    MbcfProtocol,
    check_executed,
    check_given_up,
    check_in_time,
    check_server,
    frames_text,
    gives_up,
    observed_row,
    part_text,
    same,
)
from sundial.workloads.mbcf.verify_transactions import (
    Answer,
    Meaning,
    Question,
    Reply,
    Request,
    Transaction,
    address,
)
from sundial.workloads.mbcf.wire import FIFO, SIGNAL, TASKQUE, WRITE
from sundial.workloads.sunrpc.expect import Options
from sundial.workloads.sunrpc.expect_mbcf import (
    RpcCall,
    Server,
    expect_binding,
    expect_lookup,
    expect_rings,
    expect_rpc,
)
from sundial.workloads.sunrpc.scenario import VRPC_MBCF
from sundial.workloads.sunrpc.verify import SOCKETS
from sundial.workloads.sunrpc.verify_bound import BINDING, LOOKUP, RING_TYPE, RINGS, Handles, check_setup
from sundial.workloads.sunrpc.verify_counted import check_counted, restarts
from sundial.workloads.sunrpc.verify_messages import Contents, Messages
from sundial.workloads.sunrpc.verify_ring_writes import judge_rings

BOUND, QUERY = "4d424e44", "4d424244"
"""First bytes of the binder's and the server's own messages, little endian (MBND, MBBD)."""
KIND_CALL, KIND_CALL_AT, KIND_BIND = "01000000", "02000000", "03000000"
"""What a TASKQUE write is (guest-apps/sss-core/rpc/mbcf_messages.h)."""
_CALL, _REPLY = "0000000000000002", ("0000000100000000", "0000000100000001")
"""Second and third word of messages (RFC 5531 section 9): CALL and version 2; REPLY, accepted or denied."""


class _SunRpc:
    def speaks(self, transport: str) -> bool:
        return transport in get_args(Server) or transport == VRPC_MBCF

    def meaning(self, operation: int, data: str) -> Meaning | None:
        if operation == TASKQUE:
            return _meaning_of_taskque(data)
        if operation in (FIFO, SIGNAL, WRITE) and data[8:24] == _CALL:
            return Request(int(data[:8], 16))
        if operation == FIFO and data[8:24] in _REPLY:
            return Reply(int(data[:8], 16))
        if operation in (FIFO, WRITE) and data.startswith(BOUND):
            return Answer(int.from_bytes(bytes.fromhex(data[16:32]), "little"))
        return None

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        handles = Handles()
        judgement.findings += check_setup(evidence, handles)
        said = Messages(evidence, handles, Contents(evidence, evidence.first, SOCKETS))
        calls = {(call.node, call.xid): call for call in evidence.of_kind("call")}
        sampled: set[tuple[int, int | None]] = set()
        rpc = evidence.samples.filter(pl.col("transport").is_in(get_args(Server)))
        for sample in rpc.iter_rows(named=True):
            key = (evidence.nodes.get(sample["client"], 0), sample["xid"])
            # A call that its client could not begin has the xid of the one before it.
            own = None if key in sampled else calls.get(key)
            sampled.add(key)
            judgement.findings += _judge(evidence, judgement, sample, own, said)
        judgement.findings += _setting_up(evidence, judgement)
        judgement.findings += _one_way(evidence, judgement, rpc, calls, sampled, said)
        judge_rings(evidence, judgement, handles, said.contents)
        judgement.findings += map(Finding._make, said.contents.check().iter_rows())
        judgement.findings += check_counted(evidence, judgement, calls, rpc, handles)
        return judgement

    def display_filter(self, xid: int) -> str:
        return f"mbcf.rpc.xid == 0x{xid:08x}"


KIND: MbcfProtocol = _SunRpc()
UNPROVEN: tuple[str, ...] = (
    "MBCF: ACK_NOW on questions to binders, on bindings and on their answers",
    "MBCF: how often a call without data is sent again, for which a one-way call waits",
)


def _meaning_of_taskque(data: str) -> Meaning | None:
    kind = data[24:32]
    if kind == KIND_CALL and data[40:56] == _CALL:
        return Request(int(data[32:40], 16))
    if kind == KIND_CALL_AT:
        return Request(int.from_bytes(bytes.fromhex(data[56:64]), "little"), source=address(data[32:48]))
    if data.startswith(QUERY):
        return Question(address(data[48:64]), LOOKUP)
    if kind != KIND_BIND:
        return None
    of_rings = int.from_bytes(bytes.fromhex(data[48:56]), "little") == RING_TYPE
    return Question(address(data[:16]), RINGS if of_rings else BINDING)


# ---- calls ----


def _judge(
    evidence: Evidence,
    judgement: Judgement,
    sample: Mapping[str, Any],
    transaction: Transaction | None,
    said: Messages,
) -> Iterator[Finding]:
    call, line = sample["id"], evidence.batches.get((sample["client"], sample["batch"]), {})
    ack, one_way = bool(line.get("ack")), bool(line.get("one_way"))
    server, credential = _server(sample["transport"]), said.options(sample).credential
    what = (sample["procedure"], sample["size"])
    try:
        expected = expect_rpc(server, *what, ack=ack, one_way=one_way, credential=credential)
    except ValueError as error:
        yield Finding(call, "mbcf.request", "a procedure that there is", str(error))
        return
    yield from check_server(evidence, sample, line)
    frames = (expected.client, expected.server)
    judgement.expected.setdefault((sample["transport"], sample["procedure"], sample["size"]), frames)
    judgement.observed.append(observed_row(evidence.channels, sample, transaction, frames))
    if expected.fails:
        judgement.impossible.append(call)
    if transaction is None:
        if not expected.fails and sample["ok"]:
            yield Finding(call, "mbcf.request", frames_text(expected.client), "none")
        return
    judgement.attribute(transaction, call)
    if expected.fails:
        rows = [row for row, _ in transaction.frames[False]]
        yield Finding(call, "mbcf.request", "none: it does not fit", f"{len(rows)} frames", rows)
        return
    wrong = [
        *_check_tasks(evidence, sample, transaction, line),
        *_check_frames(evidence, sample, transaction, expected),
    ]
    yield from wrong or said.add(transaction, sample)
    yield from check_executed(evidence.channels, sample, transaction)
    yield from check_in_time(evidence, sample, transaction, ack)


def _check_tasks(
    evidence: Evidence, sample: Mapping[str, Any], transaction: Transaction, line: Mapping[str, Any]
) -> Iterator[Finding]:
    """A call goes from the client's task to the one that its handle names at the end: the only one, unless services
    are restarted on that machine."""
    due = (line.get("client_task"), line.get("server_task"))
    node = next((name for name, number in evidence.nodes.items() if number == transaction.peer), "")
    if None in due or not sample["ok"] or restarts(evidence.run, node):
        return
    if (transaction.task, transaction.peer_task) != due:
        seen = f"from task {transaction.task} to {transaction.peer_task}"
        yield Finding(sample["id"], "mbcf.task", f"from task {due[0]} to {due[1]}", seen, transaction.request)


def _check_frames(
    evidence: Evidence, sample: Mapping[str, Any], transaction: Transaction, expected: RpcCall
) -> Iterator[Finding]:
    """The frames of a call: exactly those of each attempt, and of one reply to each at most."""
    call, asked = sample["id"], (sample["retransmits"] or 0) + 1
    if transaction.attempts != asked and sample["ok"]:
        rows = [row for row, _ in transaction.frames[False]]
        yield Finding(call, "mbcf.request.count", str(asked), str(transaction.attempts), rows)
    elif sample["ok"] and asked == 1:
        yield from _check_single(evidence, call, transaction, expected)
    else:
        yield from _check_attempts(evidence, call, transaction, expected)


def _check_single(evidence: Evidence, call: int, transaction: Transaction, expected: RpcCall) -> Iterator[Finding]:
    """A call that succeeded at the first attempt."""
    channels = evidence.channels
    for name, frames, part in (
        ("mbcf.request", expected.client, transaction.frames[False]),
        ("mbcf.reply", expected.server, transaction.frames[True]),
    ):  # fmt: skip
        # Where places ran short, a one-way call asks for its ACK although it was not configured to.
        hurried = not expected.server and same(channels, part, _hurried(frames))
        if not same(channels, part, frames) and not hurried:
            yield Finding(
                call, name, frames_text(frames) or "none", part_text(part) or "none", [row for row, _ in part]
            )
    by_client, by_server = transaction.closed[False], transaction.closed[True]
    # Where the client's comes first, the server has none to send any more.
    closed = len(by_server) == len(expected.close) or (not by_server and by_client)
    if not closed or (by_client and not _crossed(evidence, by_client, by_server)):
        text = f"{len(by_server)}, and {len(by_client)} by the client"
        yield Finding(call, "mbcf.close", f"{len(expected.close)} CLOSE by the server", text, [*by_server, *by_client])


def _crossed(evidence: Evidence, by_client: list[int], by_server: list[int]) -> bool:
    """Whether a client which discards its handle ended the connection before it knew that the server had: what it knows
    it acknowledges in what it sends. That it does so in time is checked of each channel."""
    sent, acked = evidence.channels.sent_ns, evidence.channels.acked_ns
    known = [row for row in by_server if row in acked and acked[row] <= sent[by_client[0]]]
    return len(by_client) == 1 and not known


def _check_attempts(evidence: Evidence, call: int, transaction: Transaction, expected: RpcCall) -> Iterator[Finding]:
    """Each request is whole and alike, but for the last of a call that failed; no more replies than requests. One in
    parts may be given up."""
    given_up = {(back, row) for back in (False, True) for row, _ in transaction.frames[back] if gives_up(evidence, row)}
    for back, row in sorted(given_up):
        yield from check_given_up(evidence, call, transaction, back, row)
    sent = dict(transaction.frames[False])
    asked = [row for row in transaction.request if (False, row) not in given_up]
    texts = [sent.get(row, "").removesuffix("!") for row in asked]
    whole = [frame.text.removesuffix("!") for frame in expected.client] * transaction.attempts
    if Counter(texts) - Counter(whole):
        yield Finding(call, "mbcf.request", " ".join(whole), " ".join(texts), transaction.request)
    answers = [one for one in transaction.frames[True] if (True, one[0]) not in given_up]
    replies = Counter(text.removesuffix("!") for _, text in answers if not text.startswith("RESULT"))
    if replies - Counter([frame.text for frame in expected.server] * transaction.attempts):
        text = f"at most {transaction.attempts} times {frames_text(expected.server) or 'nothing'}"
        yield Finding(call, "mbcf.reply", text, part_text(answers), [row for row, _ in answers])
    by_client, by_server = transaction.closed[False], transaction.closed[True]
    if max(len(by_client), len(by_server)) > transaction.connections:
        text = f"{len(by_server)}, and {len(by_client)} by the client"
        most = f"one for each of {transaction.connections} connections"
        yield Finding(call, "mbcf.close", most, text, [*by_server, *by_client])


# ---- batches of one-way calls ----


def _one_way(
    evidence: Evidence,
    judgement: Judgement,
    samples: pl.DataFrame,
    calls: Mapping[tuple[int, int | None], Transaction],
    sampled: set[tuple[int, int | None]],
    said: Messages,
) -> Iterator[Finding]:
    """Their requests go in order, and after them comes a call with a reply that has no sample."""
    explained = set(sampled)
    beside: dict[int, Mapping[str, Any]] = {}
    for (client, batch), part in samples.group_by("client", "batch", maintain_order=True):
        if not evidence.batches.get((str(client), batch), {}).get("one_way"):
            continue
        node, part = evidence.nodes.get(str(client), 0), part.sort("call")
        sent = [calls.get((node, xid)) for xid in part["xid"]]
        began = [transaction.began_ns for transaction in sent if transaction is not None]
        if began != sorted(began):
            yield Finding(part["id"][0], "batch.order", "requests in the order of the calls", "another")
        last = (part["xid"][-1] + 1) % (1 << 32)
        sample, flush = part.row(-1, named=True), calls.get((node, last))
        yield from _check_flush(evidence.channels, judgement, sample, flush, said.options(sample))
        if flush is not None:
            yield from said.add_null(flush, sample)
        explained.add((node, last))
        beside[node] = sample
    one_way = {(node, each.peer) for (node, _), each in calls.items() if (node, each.xid) in explained}
    for key, transaction in calls.items():
        # A large request for which there is no place waits for a call without data (rpc/mbcf_way_signal.c, take_place).
        if key in explained or (key[0], transaction.peer) not in one_way or key[0] not in beside:
            continue
        if _is_null(transaction, said.options(beside[key[0]])):
            judgement.attribute(transaction, None)
            yield from said.add_null(transaction, beside[key[0]])


def _is_null(transaction: Transaction, options: Options) -> bool:
    """The client of a call that waits sends again when it is due, as often as it takes; no sample counts that."""
    expected = expect_rpc("mbcf3b", "null", 0, credential=options.credential)
    return part_text(transaction.frames[False]) == " ".join([frames_text(expected.client)] * transaction.attempts)


def _check_flush(
    channels: Channels,
    judgement: Judgement,
    sample: Mapping[str, Any],
    transaction: Transaction | None,
    options: Options,
) -> Iterator[Finding]:
    expected = expect_rpc(_server(sample["transport"]), "null", 0, credential=options.credential)
    if transaction is None:
        if sample["ok"]:
            yield Finding(sample["id"], "batch.reply", "a call with a reply behind them", "none")
        return
    judgement.attribute(transaction, None)
    for frames, part in ((expected.client, transaction.frames[False]), (expected.server, transaction.frames[True])):
        # A batch that failed may be one whose server has ended.
        answered = bool(part) or sample["ok"]
        if answered and not same(channels, part, frames) and transaction.attempts == 1:
            rows = [row for row, _ in part]
            yield Finding(sample["id"], "batch.reply", frames_text(frames), part_text(part) or "none", rows)


# ---- setting up ----

_EXPECTED = {LOOKUP: expect_lookup(), BINDING: expect_binding("mbcf3"), RINGS: expect_rings()}


def _setting_up(evidence: Evidence, judgement: Judgement) -> Iterator[Finding]:
    """Questions to binders, and bindings: each with its answer, where it was taken."""
    for transaction in evidence.of_kind("setup"):
        expected = _EXPECTED.get(transaction.about or "")
        if expected is None:
            continue
        judgement.attribute(transaction, None)
        asked, answer = (part_text(transaction.frames[side]).removesuffix("!") for side in (False, True))
        rows = [row for part in transaction.frames.values() for row, _ in part]
        if asked != frames_text(expected.client):
            yield Finding(None, "mbcf.setup", frames_text(expected.client), asked, rows)
        excused = transaction.failed or (answer == "" and _unanswered(evidence, transaction))
        if answer != frames_text(expected.server) and not excused:
            yield Finding(None, "mbcf.setup.answer", frames_text(expected.server), answer or "none", rows)
        for closing in transaction.closed.values():
            if len(closing) > transaction.connections:
                yield Finding(None, "mbcf.close", "one CLOSE of each side", str(len(closing)), closing)


def _unanswered(evidence: Evidence, transaction: Transaction) -> bool:
    """Whether there is a reason for it: the question was not taken, or its task has ended."""
    row = transaction.frames[False][0][0]
    ended = (transaction.peer, transaction.peer_task, transaction.node) in evidence.transactions.farewells
    return row not in evidence.channels.received or ended


def _hurried(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The same with an ACK at once for the last."""
    return (*frames[:-1], Frame(frames[-1].kind, frames[-1].payload, frames[-1].more, True)) if frames else ()


def _server(transport: str) -> Server:
    return transport  # type: ignore[return-value]  # checked by expect_rpc
