# SPDX-License-Identifier: Apache-2.0
"""Bindings: the port mapper exchange that each of them must have made (RFC 1833), and nothing else on port 111.

A binding is in the samples with its interval but no xid, so exchanges are found by time. All that a client asks is
GETPORT of version 2, with the echo program's numbers and the transport that the binding is for; all that it is answered
is the port that the binding names, or 0 while there is none yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from sundial.expect import Shape
from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER
from sundial.observe import RunDirectory, octets_of
from sundial.verify.findings import FINDING, findings
from sundial.verify.sockets.flows import ICMP, UDP
from sundial.verify.sockets.protocol import IP_PROTOCOL
from sundial.verify.workload import Background
from sundial.workloads.sunrpc.expect import expect_getport
from sundial.workloads.sunrpc.verify_content import (
    ACCEPTED,
    CALL_TYPE,
    PROGRAM,
    REPLY_TYPE,
    RPC_VERSION,
    SUCCESS,
    VERSION,
)

PORT_MAPPER = 111
PORTMAP = 100_000
_SHOWN = 160
"""Bytes of a message that are compared; longer ones are none of these two."""
_IN_HEXADECIMAL = {name: f"{number:08x}" for name, number in IP_PROTOCOL.items()}

GETPORT, PORTMAP_VERSION_2 = "3", "100000"
REAL_CLOCK_SLACK_NS = 50_000_000
"""A guest's clock and the fabric's agree only so well without virtual time."""
EARLY_NS = 5_000_000
"""How much of that a binding may seem to begin late: more, and it would claim the last frames of the one before."""


def portmap_frames(frames: pl.DataFrame) -> pl.DataFrame:
    """Frames to and from the port mapper, with `asks`; not ICMP messages that quote one."""
    to, back = pl.col("target_port") == PORT_MAPPER, pl.col("source_port") == PORT_MAPPER
    return frames.filter(to | back, pl.col("protocol") != ICMP).with_columns(asks=to)


def check_bindings(
    frames: pl.DataFrame,
    run: RunDirectory,
    records: Mapping[str, Sequence[dict[str, Any]]],
    ahead_ns: Mapping[str, int],
) -> Background:
    """Findings, and the frames that belong to a binding.

    `ahead_ns`: how much later than a client's clock the captures' shows the same moment; 0 for those not named.
    """
    bindings = _bindings(run, records, ahead_ns)
    asked = portmap_frames(frames).filter(pl.col("fate").is_null())
    client = pl.when("asks").then("source").otherwise("target")
    asked = asked.with_columns(client_address=client)
    slack = 0 if run.clock == "virtual" else REAL_CLOCK_SLACK_NS
    inside = (
        asked.sort("time_ns")
        .join_asof(
            bindings.with_columns(opened_ns=pl.col("start") - min(slack, EARLY_NS)).sort("opened_ns"),
            left_on="time_ns",
            right_on="opened_ns",
            by="client_address",
            strategy="backward",
            check_sortedness=False,
        )
        .filter(pl.col("time_ns") <= pl.col("end_ns") + slack)
    )
    udp = inside.filter(pl.col("protocol") == UDP, pl.col("rpc_xid").is_not_null())
    problems = pl.concat([_lengths(udp, run), _contents(udp, run), _answers(inside, bindings)])
    rows = pl.concat([inside.select("row"), _late_answers(asked, inside).select("row")])
    return Background(problems, rows.select("row", pl.lit("binding").alias("class")))


def _late_answers(asked: pl.DataFrame, inside: pl.DataFrame) -> pl.DataFrame:
    """Answers that came after their binding was over: a question that was asked twice is answered twice."""
    names = ["client_address", "rpc_xid"]
    questions = inside.filter("asks").select(names).drop_nulls().unique()
    return asked.filter(~pl.col("asks")).join(inside, on="row", how="anti").join(questions, on=names, how="semi")


def _bindings(
    run: RunDirectory, records: Mapping[str, Sequence[dict[str, Any]]], ahead_ns: Mapping[str, int]
) -> pl.DataFrame:
    rows: list[tuple[int, str, int, int, bool, str, int]] = []
    for name, lines in records.items():
        node, ahead = run.nodes[name], ahead_ns.get(name, 0)
        for line in lines:
            if line["type"] == "binding":
                rows += [
                    (
                        len(rows), item.address, line["start"] + ahead, line["end"] + ahead, bool(line["ok"]),
                        str(line.get("transport")), int(line.get("port") or 0),
                    )
                    for item in node.interfaces
                    if item.address
                ]  # fmt: skip
    schema = {
        "binding": pl.UInt32, "client_address": pl.String, "start": pl.Int64, "end_ns": pl.Int64, "ok": pl.Boolean,
        "bound_transport": pl.String, "bound_port": pl.Int64,
    }  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _lengths(udp: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """GETPORT calls and replies must have their one length."""
    mtu = min((item.mtu for node in run.nodes.values() for item in node.interfaces), default=1500)
    expected = expect_getport(Shape("udp", "getport", 0, mtu))
    getport = udp.filter(
        pl.col("rpc_procedure") == GETPORT,
        pl.col("rpc_program") == PORTMAP_VERSION_2,
        pl.col("fragment_offset") == 0,
        pl.col("udp_length").is_not_null(),
    ).with_columns(
        reply=~pl.col("asks"),
        call=pl.lit(None, pl.UInt32),
        length=pl.when("asks").then(expected.request.packets[0].data).otherwise(expected.reply.packets[0].data),
        rows=pl.concat_list("row"),
    )
    field = pl.when("reply").then(pl.lit("binding.reply.length")).otherwise(pl.lit("binding.request.length"))
    return findings(getport, pl.col("udp_length") != pl.col("length"), field, pl.col("length"), pl.col("udp_length"))


def _contents(udp: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """Every byte behind the xid of what is asked and answered."""
    table = udp.filter(pl.col("fragment_offset") == 0, pl.col("udp_length").is_not_null())
    octets = octets_of(table, [(run.path / name, name) for name in run.captures])
    head = table["ip_header"].cast(pl.Int64).to_numpy() + ETHERNET_HEADER + UDP_HEADER
    lengths = table["udp_length"].cast(pl.Int64).to_numpy() - UDP_HEADER
    shown = [bytes(row[:length]).hex() for row, length in zip(octets.matrix(head, _SHOWN), lengths, strict=True)]
    words = (CALL_TYPE, RPC_VERSION, PORTMAP, 2, int(GETPORT), 0, 0, 0, 0, PROGRAM, VERSION)
    call = "".join(f"{word:08x}" for word in words)
    asked = pl.concat_str(
        pl.lit(call),
        pl.col("bound_transport").replace_strict(_IN_HEXADECIMAL, default="?", return_dtype=pl.String),
        pl.lit("00000000"),
    )
    reply = "".join(f"{word:08x}" for word in (REPLY_TYPE, ACCEPTED, 0, 0, SUCCESS))
    said = pl.col("said").str.slice(8)
    begin, port = said.str.slice(0, len(reply)), said.str.slice(len(reply))
    given = port.str.to_integer(base=16, strict=False)
    answered = (begin == reply) & (port.str.len_chars() == 8) & ((given == pl.col("bound_port")) | (given == 0))
    table = table.with_columns(
        pl.Series("said", shown, dtype=pl.String), call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"), asked=asked
    )
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
        return pl.DataFrame(schema=FINDING)
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
