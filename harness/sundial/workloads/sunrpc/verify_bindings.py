# SPDX-License-Identifier: Apache-2.0
"""Bindings: the port mapper exchange that each of them must have made (RFC 1833), and nothing else on port 111.

A binding is in the samples with its interval but no xid, so exchanges are found by time. All that a client asks is
GETPORT of version 2, with the echo program's numbers and the transport that the binding is for; all that it is answered
is the port that the binding names, or 0 while there is none yet. It counts its questions and the datagrams in which it
sent them, and makes no call until it has a port: those of a client that found none have failed, without a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from sundial.expect import Shape
from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER
from sundial.observe import RunDirectory, octets_of
from sundial.verify.classification import ARP
from sundial.verify.findings import findings, none
from sundial.verify.frames import DROPPED, INBOUND, OUTBOUND, machine, machine_of, refused
from sundial.verify.headers.arp import BROADCAST
from sundial.verify.sockets.flows import ICMP, UDP
from sundial.verify.sockets.protocol import IP_PROTOCOL
from sundial.verify.workload import Background
from sundial.workloads.sunrpc.expect import expect_getport
from sundial.workloads.sunrpc.verify_content import (
    ACCEPTED,
    CALL_TYPE,
    REPLY_TYPE,
    RPC_VERSION,
    SUCCESS,
    program_of,
)

PORT_MAPPER = 111
PORTMAP = 100_000
_SHOWN = 160
"""Bytes of a message that are compared; longer ones are none of these two."""
UNPROVEN = (
    "the xid of a question to the port mapper, and the port that it comes from, which are its client's choice",
    "bytes of a question to the port mapper, or of its answer, behind the first fragment, except their checksum",
)
_IN_HEXADECIMAL = {name: f"{number:08x}" for name, number in IP_PROTOCOL.items()}

GETPORT = 3
REAL_CLOCK_SLACK_NS = 50_000_000
"""A guest's clock and the fabric's agree only so well without virtual time."""
EARLY_NS = 5_000_000
"""How much of that a binding may seem to begin late: more, and it would claim the last frames of the one before."""
UNBOUND = "RPC: Port mapper failure"
"""Error of a call without a port: clnt_sperrno(RPC_PMAPFAILURE)."""
_QUESTION = ["client", "client_address", "source_port", "rpc_xid"]
_SENT = ["binding", *_QUESTION, "row"]
CLIENTS = ("echo-client", "mbcf-echo-client")
"""Whose bindings are questions to the port mapper; those of other kinds are theirs."""


def portmap_frames(frames: pl.DataFrame) -> pl.DataFrame:
    """Frames to and from the port mapper, with `asks`; not ICMP messages that quote one."""
    to, back = pl.col("target_port") == PORT_MAPPER, pl.col("source_port") == PORT_MAPPER
    return frames.filter(to | back, pl.col("protocol") != ICMP).with_columns(asks=to)


def check_bindings(
    frames: pl.DataFrame,
    run: RunDirectory,
    records: Mapping[str, Sequence[dict[str, Any]]],
    calls: pl.DataFrame,
    ahead_ns: Mapping[str, int],
) -> Background:
    """Findings, and the frames that belong to a binding.

    `calls`: all samples. `ahead_ns`: how much later than a client's clock the captures' shows the same moment; 0 for
    those not named.
    """
    bindings = _bindings(run, records, ahead_ns)
    asked = portmap_frames(frames).filter(pl.col("fate").is_null())
    asked = asked.with_columns(
        client_address=pl.when("asks").then("source").otherwise("target"),
        client_port=pl.when("asks").then("source_port").otherwise("target_port"),
    )
    slack = 0 if run.clock == "virtual" else REAL_CLOCK_SLACK_NS
    inside = _inside(asked, bindings, slack)
    udp = inside.filter(pl.col("protocol") == UDP, pl.col("rpc_xid").is_not_null())
    problems = pl.concat(
        [
            _lengths(udp, run),
            _contents(udp, run),
            _answers(inside, bindings),
            _questions(asked, run),
            _counts(udp, bindings, _waits(frames, bindings), _given_up(frames, bindings, slack)),
            _turns(bindings, calls),
            _ports(bindings, calls),
        ]
    )
    rows = pl.concat([inside.select("row"), _late(asked, inside).select("row"), _fragments(frames, inside)])
    return Background(problems, rows.select("row", pl.lit("binding").alias("class")))


def _inside(asked: pl.DataFrame, bindings: pl.DataFrame, slack_ns: int) -> pl.DataFrame:
    """Of frames with `client_address` those during one of its bindings, with that."""
    return (
        asked.sort("time_ns")
        .join_asof(
            bindings.with_columns(opened_ns=pl.col("start") - min(slack_ns, EARLY_NS)).sort("opened_ns"),
            left_on="time_ns",
            right_on="opened_ns",
            by="client_address",
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("time_ns") <= pl.col("end_ns") + slack_ns)
    )


def _late(asked: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """What came after its binding was over: a question that had been asked again before the answer came, on its way,
    and the answer to it. No client asks after that."""
    names = ["client_address", "client_port", "rpc_xid"]
    late = asked.join(inside, on="row", how="anti")
    questions = inside.filter("asks").select(names).drop_nulls().unique()
    by_client = pl.col("asks") & (pl.col("direction") == OUTBOUND)
    return late.filter(~by_client).join(questions, on=names, how="semi")


def _fragments(frames: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Rows of the further fragments of datagrams, which name no port (RFC 791)."""
    begun = inside.filter("more", pl.col("fragment_offset") == 0)
    further = frames.filter(pl.col("fragment_offset") > 0)
    return further.join(begun, on=["source", "target", "ip_id"], how="semi").select("row")


def _bindings(
    run: RunDirectory, records: Mapping[str, Sequence[dict[str, Any]]], ahead_ns: Mapping[str, int]
) -> pl.DataFrame:
    rows: list[tuple[Any, ...]] = []
    binding = 0
    for name, lines in records.items():
        node, ahead = run.nodes[name], ahead_ns.get(name, 0)
        for line in lines:
            if line["type"] == "binding" and line.get("app", CLIENTS[0]) in CLIENTS:
                rows += [
                    (
                        binding, item.address, line["start"] + ahead, line["end"] + ahead, bool(line["ok"]),
                        str(line.get("transport")), int(line.get("port") or 0), name, line.get("step"), ahead,
                        line.get("attempts"), line.get("sent"), _program(run, name, line.get("step")),
                    )
                    for item in node.interfaces
                    if item.address
                ]  # fmt: skip
                binding += 1
    schema = {
        "binding": pl.UInt32, "client_address": pl.String, "start": pl.Int64, "end_ns": pl.Int64, "ok": pl.Boolean,
        "bound_transport": pl.String, "bound_port": pl.Int64, "client": pl.String, "node_step": pl.Int64,
        "ahead": pl.Int64, "attempts": pl.Int64, "sent": pl.Int64, "bound_program": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _program(run: RunDirectory, client: str, number: int | None) -> str:
    """Number and version of the program that a step calls, in hexadecimal."""
    steps = run.jobs.get(client, {}).get("steps", [])
    step = steps[number] if isinstance(number, int) and 0 <= number < len(steps) else {}
    called = next(iter((step.get("options") or {}).get("functions") or ()), "")
    return "".join(f"{word:08x}" for word in program_of(called))


def _lengths(udp: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """GETPORT calls and replies must have their one length."""
    mtu = min((item.mtu for node in run.nodes.values() for item in node.interfaces), default=1500)
    expected = expect_getport(Shape("udp", "getport", 0, mtu))
    names = ["client_address", "client_port", "rpc_xid"]
    head = pl.col("udp_head")
    words = {3: PORTMAP, 5: GETPORT}
    asked = udp.filter("asks", *(head.str.slice(8 * at, 8) == f"{word:08x}" for at, word in words.items()))
    getport = (
        udp.join(asked.select(names).unique(), on=names, how="semi", maintain_order="left")
        .filter(
            pl.col("fragment_offset") == 0,
            pl.col("udp_length").is_not_null(),
        )
        .with_columns(
            reply=~pl.col("asks"),
            call=pl.lit(None, pl.UInt32),
            length=pl.when("asks")
            .then(sum(each.data for each in expected.request.packets))
            .otherwise(sum(each.data for each in expected.reply.packets)),
            rows=pl.concat_list("row"),
        )
    )
    field = pl.when("reply").then(pl.lit("binding.reply.length")).otherwise(pl.lit("binding.request.length"))
    return findings(getport, pl.col("udp_length") != pl.col("length"), field, pl.col("length"), pl.col("udp_length"))


def _contents(udp: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """Every byte behind the xid of what is asked and answered; of a datagram in fragments, those of the first."""
    table = udp.filter(pl.col("fragment_offset") == 0, pl.col("udp_length").is_not_null())
    octets = octets_of(table, run.capture_files)
    head = table["ip_header"].cast(pl.Int64).to_numpy() + ETHERNET_HEADER + UDP_HEADER
    ends = (ETHERNET_HEADER + table["ip_length"].cast(pl.Int64)).to_numpy()
    lengths = np.minimum(table["udp_length"].cast(pl.Int64).to_numpy() - UDP_HEADER, ends - head)
    shown = [bytes(row[:length]).hex() for row, length in zip(octets.matrix(head, _SHOWN), lengths, strict=True)]
    words = (CALL_TYPE, RPC_VERSION, PORTMAP, 2, GETPORT, 0, 0, 0, 0)
    call = "".join(f"{word:08x}" for word in words)
    asked = pl.concat_str(
        pl.lit(call),
        pl.col("bound_program"),
        pl.col("bound_transport").replace_strict(_IN_HEXADECIMAL, default="?", return_dtype=pl.String),
        pl.lit("00000000"),
    )
    reply = "".join(f"{word:08x}" for word in (REPLY_TYPE, ACCEPTED, 0, 0, SUCCESS))
    said = pl.col("said").str.slice(8)
    here = said.str.len_chars()
    begin, port = said.str.slice(0, len(reply)), said.str.slice(len(reply))
    given = port.str.to_integer(base=16, strict=False)
    answered = (begin == reply) & (port.str.len_chars() == 8) & ((given == pl.col("bound_port")) | (given == 0))
    cut = pl.col("more") & (here < len(reply) + 8)
    answered = pl.when(cut).then(pl.lit(reply).str.slice(0, here) == begin).otherwise(answered)
    asked = pl.when("more").then(asked.str.slice(0, here)).otherwise(asked)
    table = table.with_columns(
        pl.Series("said", shown, dtype=pl.String), call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row")
    ).with_columns(asked=asked)
    return pl.concat(
        [
            findings(
                table,
                pl.col("asks") & (said != pl.col("asked")),
                pl.lit("binding.request.content"),
                pl.col("asked"),
                said,
            ),
            findings(
                table,
                ~pl.col("asks") & ~answered.fill_null(False),
                pl.lit("binding.reply.content"),
                pl.format(f"{reply}, then port {{}} or 0", "bound_port"),
                said,
            ),
        ]
    )


def _answers(inside: pl.DataFrame, bindings: pl.DataFrame) -> pl.DataFrame:
    """A binding that succeeded has at least one question and one answer."""
    messages = inside.filter((pl.col("protocol") == UDP) | (pl.col("tcp_length") > 0))
    seen = messages.group_by("binding").agg(
        asked=pl.col("asks").sum(), answered=(~pl.col("asks")).sum(), rows=pl.col("row")
    )
    table = bindings.filter("ok").unique("binding").join(seen, on="binding", how="left")
    if table.is_empty():
        return none()
    table = table.with_columns(
        pl.col("asked", "answered").fill_null(0), call=pl.lit(None, pl.UInt32), reply=pl.lit(False)
    )
    lacking = (pl.col("asked") == 0) | (pl.col("answered") == 0)
    return findings(
        table,
        lacking,
        pl.lit("binding.exchange"),
        pl.lit("a call and a reply"),
        pl.format("{} calls, {} replies", "asked", "answered"),
    )


def _questions(asked: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """A port mapper answers a question that has come: to the port that asked, with its xid (RFC 5531 section 9)."""
    own = [(name, each.address) for name, node in run.nodes.items() for each in node.interfaces if each.address]
    port = pl.when("asks").then("source_port").otherwise("target_port")
    messages = (
        asked.filter(pl.col("protocol") == UDP, pl.col("fragment_offset") == 0)
        .with_columns(machine=machine(), address=pl.when("asks").then("target").otherwise("source"), port=port)
        # Not where others pass them on.
        .join(pl.DataFrame(own, schema=["machine", "address"], orient="row"), on=["machine", "address"], how="semi")
        .select(
            "row", "time_ns", "machine", "address", "asks", "direction", "client_address", "port",
            xid=pl.col("udp_head").str.slice(0, 8),
        )
    )  # fmt: skip
    key = ["machine", "address", "client_address", "port", "xid"]
    came = messages.filter("asks", pl.col("direction") == INBOUND).group_by(key).agg(came_ns=pl.col("time_ns").min())
    answers = (
        messages.filter(~pl.col("asks"), pl.col("direction") == OUTBOUND)
        .join(came, on=key, how="left")
        .with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    )
    return findings(
        answers,
        (pl.col("came_ns") <= pl.col("time_ns")).fill_null(False).not_(),
        pl.lit("binding.reply.xid"),
        pl.lit("that of a question from this port before"),
        pl.format("{}, to port {}", "xid", "port"),
    )


def _waits(frames: pl.DataFrame, bindings: pl.DataFrame) -> pl.DataFrame:
    """binding, of those during which a machine asked for a MAC address more than once, because no answer came: it
    keeps few of the datagrams that wait for one. A question that its adapter dropped was asked."""
    asked = frames.filter(
        (pl.col("fate").is_null() & (pl.col("direction") == OUTBOUND)) | refused(),
        pl.col("ethertype") == ARP,
        pl.col("eth_target") == BROADCAST,
    ).select("time_ns", client=pl.coalesce("fate_adapter", pl.col("interface").cast(pl.String)).pipe(machine_of))
    joined = bindings.unique("binding").join(asked, on="client")
    return (
        joined.filter(pl.col("time_ns").is_between("start", "end_ns"))
        .group_by("binding")
        .len()
        .filter(pl.col("len") > 1)
        .select("binding")
    )


def _given_up(frames: pl.DataFrame, bindings: pl.DataFrame, slack_ns: int) -> pl.DataFrame:
    """Datagrams to a port mapper that their client's adapter has not sent, perhaps long after they were handed in, with
    the binding (or none) during which it gave up the first of their question."""
    adapter = machine_of(pl.col("fate_adapter"))
    dropped = portmap_frames(frames).filter(
        "asks", pl.col("fate") == DROPPED, pl.col("fragment_offset") == 0, pl.col("rpc_xid").is_not_null(),
        adapter.is_not_null(),
    ).select("time_ns", "source_port", "rpc_xid", "row", client=adapter, client_address="source")  # fmt: skip
    first = _inside(dropped.sort("time_ns").unique(_QUESTION, keep="first"), bindings, slack_ns)
    first = first.filter(pl.col("client") == pl.col("client_right"))
    return dropped.join(first.select("binding", *_QUESTION), on=_QUESTION, how="left").select(_SENT)


def _counts(udp: pl.DataFrame, bindings: pl.DataFrame, waits: pl.DataFrame, given_up: pl.DataFrame) -> pl.DataFrame:
    """Questions and their datagrams, as many as the client counted, and a port if and only if one was found.

    A datagram that waited for the server's MAC address in vain never left; nor did one that an adapter has given up.
    """
    sent = udp.filter(
        "asks", machine() == pl.col("client"), pl.col("direction") == OUTBOUND, pl.col("fragment_offset") == 0
    ).select(_SENT)
    asked = sent.select(*_QUESTION, asked="binding").unique(_QUESTION)
    never = given_up.join(asked, on=_QUESTION, how="left").with_columns(binding=pl.coalesce("asked", "binding"))
    sent = pl.concat([sent, never.drop_nulls("binding").select(_SENT)])
    seen = sent.group_by("binding").agg(
        datagrams=pl.len(), questions=pl.struct("source_port", "rpc_xid").n_unique(), rows=pl.col("row")
    )
    table = (
        bindings.unique("binding")
        .join(seen, on="binding", how="left")
        .join(waits.with_columns(waited=True), on="binding", how="left")
        .with_columns(
            pl.col("datagrams", "questions").fill_null(0), pl.col("waited").fill_null(False),
            call=pl.lit(None, pl.UInt32),
        )
    )  # fmt: skip
    parts = []
    for counted, of in (("attempts", "questions"), ("sent", "datagrams")):
        wrong = (pl.col(of) > pl.col(counted)) | (~pl.col("waited") & (pl.col(of) < pl.col(counted)))
        parts.append(
            findings(
                table,
                wrong,
                pl.lit(f"binding.{counted}"),
                pl.format("{} in the capture", of),
                pl.format("{} by the client", counted),
            )
        )
    found = pl.col("bound_port") != 0
    parts.append(
        findings(
            table, found != pl.col("ok"), pl.lit("binding.ok"), found, pl.format("{}, port {}", "ok", "bound_port")
        )
    )
    return pl.concat(parts)


def _turns(bindings: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """A client binds when its calls before are over, and calls once it is bound: all by its own clock."""
    mine = calls.select("client", "start_ns", "end_ns").sort("start_ns")
    mine = mine.with_columns(over=pl.col("end_ns").cum_max().over("client"), first="start_ns")
    table = (
        bindings.unique("binding")
        .with_columns(
            call=pl.lit(None, pl.UInt32),
            began=pl.col("start") - pl.col("ahead"),
            ended=pl.col("end_ns") - pl.col("ahead"),
        )
        .select("call", "client", "began", "ended")
        .sort("began")
    )
    how: dict[str, Any] = {"left_on": "began", "right_on": "start_ns", "by": "client", "check_sortedness": False}
    table = table.join_asof(mine.select("client", "start_ns", "over"), strategy="backward", **how)
    table = table.drop("start_ns", strict=False)
    table = table.join_asof(mine.select("client", "start_ns", "first"), strategy="forward", **how)
    return pl.concat(
        [
            findings(
                table,
                pl.col("ended") > pl.col("first"),
                pl.lit("binding.end"),
                pl.format("before the first call, at {} ns", "first"),
                pl.format("{} ns", "ended"),
                rows=None,
            ),
            findings(
                table,
                pl.col("began") < pl.col("over"),
                pl.lit("binding.start"),
                pl.format("after the calls before, at {} ns", "over"),
                pl.format("{} ns", "began"),
                rows=None,
            ),
        ]
    )


def _ports(bindings: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls go to the port that their step was answered. Without one each has failed, and no other has failed so."""
    mine = (
        calls.drop("call")
        .with_row_index("call")
        .filter(pl.col("app").is_in(CLIENTS), pl.col("transport").is_in(list(IP_PROTOCOL)))
    )
    table = mine.with_columns(pl.col("call").cast(pl.UInt32), pl.col("node_step").cast(pl.Int64)).join(
        bindings.unique("binding").select("client", "node_step", "bound_port"), on=["client", "node_step"], how="inner"
    )
    unbound = pl.col("error").eq_missing(pl.lit(UNBOUND))
    return pl.concat(
        [
            findings(
                table,
                pl.col("server_port") != pl.col("bound_port"),
                pl.lit("binding.call.port"),
                pl.col("bound_port"),
                pl.col("server_port"),
                rows=None,
            ),
            findings(
                table,
                unbound != (pl.col("bound_port") == 0),
                pl.lit("binding.call.error"),
                pl.when(pl.col("bound_port") == 0).then(pl.lit(UNBOUND)).otherwise(pl.lit("a call to the port")),
                pl.col("error").fill_null("none"),
                rows=None,
            ),
        ]
    )
