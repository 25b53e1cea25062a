# SPDX-License-Identifier: Apache-2.0
"""The tables that bounds may be about, column by column: what the rooms above write, named here for validation.

`tests/verify/test_bounds.py` compares them with what is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["time", "bytes", "number", "text", "flag"]

TIME_UNITS: Mapping[str, int] = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
"""Ends of the names of time columns, in ns: a column `rtt_ns` may be written as `rtt_us`."""


@dataclass(frozen=True)
class Column:
    """A column: what its values are, and their unit where they are times."""

    kind: Kind
    meaning: str
    unit: str = ""


def _ns(meaning: str) -> Column:
    return Column("time", meaning, "ns")


def _us(meaning: str) -> Column:
    return Column("time", meaning, "us")


def _number(meaning: str) -> Column:
    return Column("number", meaning)


def _text(meaning: str) -> Column:
    return Column("text", meaning)


def _bytes(meaning: str) -> Column:
    return Column("bytes", meaning)


_IDENTITY = {
    "client": _text("Machine of the client."),
    "server": _text("Machine of the server."),
    "app": _text("Program of the client."),
    "transport": _text("Transport, as in the scenario."),
    "procedure": _text("Procedure or function."),
    "size": _bytes("Size of the argument."),
    "series": _number("Repetition, from 0."),
    "thread": _number("Thread of the client, from 0."),
    "batch": _number("Batch of the client, from 0."),
    "call": _number("Call in its batch, from 0."),
    "warmup": Column("flag", "A call before the measured ones."),
    "ok": Column("flag", "The call had the right reply."),
    "xid": _number("Identifier of the call on the wire."),
    "retransmits": _number("How often the client sent the request again."),
    "start_ns": _ns("Start of the call, from zero of the run."),
    "end_ns": _ns("End of the call."),
}

_WAYS = {"request": "request", "reply": "reply"}

TABLES: Mapping[str, Mapping[str, Column]] = {
    "samples": {
        **_IDENTITY,
        "scenario": _text("Name of the scenario."),
        "rtt_ns": _ns("Round trip: `end_ns - start_ns`."),
        "error": _text("Why the call failed."),
        "client_address": _text("Address of the client."),
        "server_address": _text("Address of the server; over MBCF its node."),
        "client_port": _number("Port of the client; over MBCF its task."),
        "server_port": _number("Port of the server; over MBCF its task."),
        "node_step": _number("Step of the client's job, from 0."),
    },
    "observed": {
        **_IDENTITY,
        "call_first_tx_ns": _ns("When the first frame of the request left."),
        "call_last_rx_ns": _ns("When the request was complete at the server."),
        "reply_first_tx_ns": _ns("When the first frame of the reply left."),
        "reply_last_rx_ns": _ns("When the reply was complete at the client."),
        **{
            f"{way}_{name}": _number(f"{text} of the {word}{more}.")
            for way, word in _WAYS.items()
            for name, text, more in (
                ("packets", "IP packets", ""),
                ("packets_expected", "IP packets", ", as expected"),
                ("fragments", "Fragments", ""),
                ("fragments_expected", "Fragments", ", as expected"),
                ("retransmissions", "Retransmissions", ""),
            )
        },
        "retransmissions": _number("Retransmissions of request and reply."),
        "verdict": _text("pass, fail, or unverified."),
    },
    "summary": {
        **{name: _IDENTITY[name] for name in ("app", "transport", "procedure", "size", "client")},
        "calls": _number("Measured calls."),
        "ok": _number("Measured calls with the right reply."),
        "errors": _number("Measured calls that failed."),
        "retransmissions": _number("Retransmissions that the client counts."),
        **{
            f"rtt_{name}_us": _us(f"{text} of the round trips that succeeded.")
            for name, text in (
                ("min", "Least"), ("median", "Median"), ("mean", "Mean"), ("p95", "95th percentile"),
                ("p99", "99th percentile"), ("max", "Greatest"), ("stddev", "Standard deviation (n - 1)"),
            )
        },
    },
    "counters": {
        "segment": _text("Segment."),
        "kind": _text("Kind of the segment."),
        "port": _text("Port, as MACHINE:INTERFACE."),
        "offered_frames": _number("Frames that the machine handed to its adapter."),
        "tx_frames": _number("Frames that the machine sent."),
        "tx_bytes": _bytes("Bytes of these."),
        "rx_frames": _number("Frames that reached the machine."),
        "rx_bytes": _bytes("Bytes of these."),
        "dropped": _number("Frames that the segment dropped, for any reason."),
        **{
            name: _number(text)
            for name, text in (
                ("adapter_full", "Times that the adapter's ring was full."),
                ("undelivered", "Frames under way at the end of the run."),
                ("deferred", "Frames that waited for the wire."),
                ("collisions", "Collisions."),
                ("excessive_collisions", "Frames given up after 16 attempts."),
                ("fragments_seen", "Fragments of collided frames."),
                ("filtered", "Frames that were not forwarded to the port."),
                ("flooded", "Frames sent to all ports."),
                ("corrupted", "Frames damaged."),
                ("duplicated", "Frames sent twice by the wire."),
                ("reordered", "Frames that overtook others."),
            )
        },
    },
    "exchanges": {
        "decoder": _text("Decoder that read it."),
        "transport": _text("tcp or udp."),
        "client": _text("Machine that asked."),
        "server": _text("Machine that was asked."),
        "port": _number("Port that was asked."),
        "procedure": _text("What was asked for: PROGRAM.VERSION.PROCEDURE, types of records, or method and path."),
        "start_ns": _ns("When the question was first sent."),
        "end_ns": _ns("When its answer was first there, at the client's port."),
        "rtt_ns": _ns("Round trip: `end_ns - start_ns`."),
        "question_bytes": _bytes("Size of the question; none of http2."),
        "answer_bytes": _bytes("Size of the answer; none of http2."),
        "retransmissions": _number("How often the question was sent again as a datagram."),
        "after_loss": _number("Retransmissions before which the question or an answer was lost."),
        "ok": Column("flag", "An answer arrived."),
    },
    "figures": {
        "program": _text("Program that wrote it."),
        "machine": _text("Machine of the program."),
        "figure": _text("Name of the figure, as in the scenario."),
        "value": _number("The number that was written."),
    },
}  # fmt: skip
"""In the order in which a column without a table is looked for."""


def find(table: str, name: str) -> tuple[str, Column, str] | None:
    """The column that a name means: its own name, itself, and the unit as written; a time may have another unit's
    ending."""
    columns = TABLES[table]
    if name in columns:
        return name, columns[name], columns[name].unit
    stem, _, unit = name.rpartition("_")
    if unit in TIME_UNITS:
        for own in TIME_UNITS:
            column = columns.get(f"{stem}_{own}")
            if column is not None and column.kind == "time":
                return f"{stem}_{own}", column, unit
    return None
