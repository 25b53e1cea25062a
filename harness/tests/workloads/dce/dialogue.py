# SPDX-License-Identifier: Apache-2.0
"""PDUs of DCE RPC written out by hand, to be given to the replayed machines."""

from __future__ import annotations

import struct
from dataclasses import replace
from uuid import UUID

from sundial.judge.machine import NEVER
from sundial.judge.replay import Item, Replay, Sent
from sundial.workloads.dce.expect_pdu import Flags, Pdu, Type
from sundial.workloads.dce.verify_client import Call, Client
from sundial.workloads.dce.verify_message import encode
from sundial.workloads.dce.verify_server import Server
from sundial.workloads.dce.verify_sides import fack_of
from sundial.workloads.dce.verify_stream import CONV, SUNDIAL, Arrival, Settings, blank

MS = 1_000_000
ACTIVITY, ASKING = UUID(int=0xA), UUID(int=0xC)
BOOT, HINT = 0x5A5A, 7
PUT = 1


def pdu(kind: Type, **fields: object) -> Pdu:
    """A PDU of call 0, of a client that has heard of its server; others have their own `sequence`, `boot_time` ..."""
    plain = replace(blank(ACTIVITY, SUNDIAL, 0, PUT, little=True), type=kind, boot_time=BOOT, activity_hint=HINT)
    return replace(plain, **fields)  # type: ignore[arg-type]


def question(serial: int = 1) -> Pdu:
    """Who is the activity; `serial`: the sequence number of the question."""
    asked = replace(blank(ASKING, CONV, serial, 0, little=True), flags=Flags.IDEMPOTENT)
    return replace(asked, body=ACTIVITY.bytes_le + struct.pack("<I", BOOT))


def answer(sequence: int = 0, status: int = 0) -> Pdu:
    return replace(question(), type=Type.RESPONSE, flags=Flags(0), body=struct.pack("<II", sequence, status))


def sent(at_ms: float, what: Pdu) -> Sent:
    return Sent(int(at_ms * MS), what, encode(what))


def came(at_ms: float, what: Pdu) -> Arrival:
    return Arrival(int(at_ms * MS), what, fack_of(what))


def client(*calls: Call) -> Client:
    return Client(Settings(), activity=ACTIVITY, calls=calls)


def found(machine: Client | Server, *items: Item, end_ms: float | None = None) -> list[tuple[str, str, str]]:
    """What a replay finds: field, expected, seen. Without `end_ms` a client has ended, and of a server nothing more
    is asked."""
    replay: Replay[Client] | Replay[Server] = Replay([machine])  # type: ignore[arg-type, assignment]
    last = max(item.at_ns for item in items)
    end = int(end_ms * MS) if end_ms is not None else NEVER - 1 if isinstance(machine, Client) else last
    replay.run(sorted(items, key=lambda item: item.at_ns), end)
    return [finding[1:4] for finding in replay.findings]
