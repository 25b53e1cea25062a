# SPDX-License-Identifier: Apache-2.0
"""Connections that a client asked for and that did not open: refused, or asked for in vain."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.sockets.tcp import ACK, FIN, RST, SYN, unopened

CLIENT, SERVER, PORT = "10.0.0.1", "10.0.0.2", 1025
ENDS = {CLIENT: "lan|client", SERVER: "lan|server"}
Segment = tuple[str, int, str]
"""Who sent it, flags, and at which of the two ends it was seen: `s`, `r` or both."""


def classes(*segments: Segment, port: int = 800, before: int = 0) -> list[str | None]:
    """Of each segment as it was seen, in order. `before`: others that the server accepted meanwhile."""
    rows = []
    for number in range(before):
        rows.append((-1, ENDS[SERVER], OUTBOUND, SYN | ACK, 0, SERVER, PORT, CLIENT, 600 + number))
    for at, (sender, flags, seen) in enumerate(segments):
        receiver = SERVER if sender == CLIENT else CLIENT
        ports = (port, PORT) if sender == CLIENT else (PORT, port)
        for letter, end, way in (("s", sender, OUTBOUND), ("r", receiver, INBOUND)):
            if letter in seen:
                rows.append((at, ENDS[end], way, flags, 0, sender, ports[0], receiver, ports[1]))
    frames = pl.DataFrame(
        [(row, *each, 6, None) for row, each in enumerate(rows)],
        {"row": pl.UInt32, "time_ns": pl.Int64, "end": pl.String, "direction": pl.UInt8, "tcp_flags": pl.UInt32,
         "tcp_length": pl.UInt32, "source": pl.String, "source_port": pl.UInt32, "target": pl.String,
         "target_port": pl.UInt32, "protocol": pl.UInt8, "fate": pl.String},
        orient="row",
    )  # fmt: skip
    flow = {"client_address": CLIENT, "server_address": SERVER, "server_port": PORT, "client_end": ENDS[CLIENT]}
    found = dict(unopened(frames, pl.DataFrame([flow])).select("row", "class").iter_rows())
    return [found.get(row) for row in range(before, len(rows))]


ASKS, ACCEPTS, REFUSES = (CLIENT, SYN, "sr"), (SERVER, SYN | ACK, "sr"), (SERVER, RST | ACK, "sr")
LOST = (CLIENT, SYN, "s")
HANDSHAKE, RESET = "tcp_handshake", "tcp_reset"


@pytest.mark.parametrize(
    ("segments", "found"),
    [
        ([LOST, LOST], [HANDSHAKE] * 2),
        # The server's answers are lost.
        ([ASKS, (SERVER, SYN | ACK, "s"), LOST], [HANDSHAKE] * 4),
        # One comes after the client has given up.
        ([LOST, ASKS, ACCEPTS, (CLIENT, RST, "s")], [HANDSHAKE] * 5 + [RESET]),
        # It came in time, and the client asked again all the same.
        ([ASKS, ACCEPTS, ASKS, (CLIENT, RST, "s")], [None] * 7),
        # It came, and nothing follows.
        ([ASKS, ACCEPTS], [None] * 4),
        # The connection opened.
        ([ASKS, ACCEPTS, (CLIENT, ACK, "s")], [None] * 5),
        # It opened when the client had given up, which ends it without a byte.
        (
            [LOST, ASKS, ACCEPTS, (CLIENT, ACK, "s"), (CLIENT, FIN | ACK, "sr"), (SERVER, FIN | ACK, "s")],
            [HANDSHAKE] * 5 + ["tcp_ack"] + ["tcp_fin"] * 3,
        ),
        # It opened in time, and is ended without a byte all the same.
        ([ASKS, ACCEPTS, (CLIENT, ACK, "s"), (CLIENT, FIN | ACK, "s")], [None] * 6),
        # Not a SYN, and not a reset.
        ([LOST, (CLIENT, FIN | ACK, "s")], [None] * 2),
        ([(CLIENT, RST, "s")], [None]),
    ],
)
def test_a_client_may_ask_in_vain(segments: list[Segment], found: list[str | None]) -> None:
    assert classes(*segments) == found


def test_a_server_refuses_while_it_has_accepted_none() -> None:
    assert classes(ASKS, REFUSES) == [HANDSHAKE, HANDSHAKE, RESET, RESET]
    assert classes(ASKS, REFUSES, before=1) == [None] * 4
