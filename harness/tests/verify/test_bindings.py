# SPDX-License-Identifier: Apache-2.0
"""Questions to a port mapper and its answers, in runs made by hand."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sundial.verify import verify_run
from sundial.workloads.sunrpc.verify_bindings import UNBOUND
from tests.fates import by_adapter
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, Record, rpc_call

PORT_MAPPER, ASKING, XID, UDP = 111, 650, 77, 17


def bound(directory: Path, *, xid: int = XID, port: int = ASKING) -> list[str]:
    """Fields of the findings about a binding whose answer has this xid, and goes to this port."""
    bed = Bed(directory / "run")
    start = bed.now - 1
    program = struct.unpack(">2I", rpc_call(0, 0)[12:20])
    asked = struct.pack(">14I", XID, 0, 2, 100_000, 2, 3, 0, 0, 0, 0, *program, UDP, 0)
    answer = struct.pack(">7I", xid, 1, 0, 0, 0, 0, RPC_PORT)
    bed.send(CLIENT, bed.datagram(CLIENT, (ASKING, PORT_MAPPER), asked))
    bed.send(SERVER, bed.datagram(SERVER, (PORT_MAPPER, port), answer))
    said = {"start": start, "end": bed.now, "ok": True, "attempts": 1, "sent": 1, "port": RPC_PORT}
    bed.lines.append(json.dumps({"type": "binding", "step": 0, "app": "echo-client", "transport": "udp", **said}))
    bed.now += 1_000_000
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    bed.udp_call(16, 1)
    return [problem["field"] for problem in verify_run(bed.write()).problems]


def test_an_answer_to_the_question_is_right(tmp_path: Path) -> None:
    assert bound(tmp_path) == []


@pytest.mark.parametrize("wrong", [{"xid": XID + 1}, {"port": ASKING + 1}], ids=["xid", "port"])
def test_an_answer_to_no_question_is_found(tmp_path: Path, wrong: dict[str, int]) -> None:
    assert bound(tmp_path, **wrong) == ["binding.reply.xid"]


def without_port(directory: Path, *, called: int = 0, error: str | None = UNBOUND, sends: bool = False) -> list[str]:
    """Fields of the findings about a client that is answered that its program has no port, and whose call has this port
    and this error."""
    bed = Bed(directory / "run")
    start = bed.now - 1
    asked = (
        struct.pack(">10I", XID, 0, 2, 100_000, 2, 3, 0, 0, 0, 0) + rpc_call(0, 0)[12:20] + struct.pack(">2I", UDP, 0)
    )
    bed.send(CLIENT, bed.datagram(CLIENT, (ASKING, PORT_MAPPER), asked))
    bed.send(SERVER, bed.datagram(SERVER, (PORT_MAPPER, ASKING), struct.pack(">7I", XID, 1, 0, 0, 0, 0, 0)))
    said = {"start": start, "end": bed.now, "ok": False, "attempts": 1, "sent": 1, "port": 0}
    bed.lines.append(json.dumps({"type": "binding", "step": 0, "app": "echo-client", "transport": "udp", **said}))
    bed.now += 1_000_000
    bed.batch("echo-client", "udp", 16, called, 700 if sends else 0)
    if sends:
        bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(1, 16)))
    bed.sample(bed.now, 1, ok=False, error=error)
    return [problem["field"] for problem in verify_run(bed.write()).problems]


def test_calls_without_a_port_have_failed_and_have_no_frame(tmp_path: Path) -> None:
    assert without_port(tmp_path) == []


def test_calls_to_a_port_that_no_answer_had_are_found(tmp_path: Path) -> None:
    assert "binding.call.port" in without_port(tmp_path, called=RPC_PORT)


def test_a_call_without_a_port_fails_in_these_words(tmp_path: Path) -> None:
    assert "binding.call.error" in without_port(tmp_path, error="RPC: Timed out")


def test_a_frame_of_a_call_without_a_port_is_found(tmp_path: Path) -> None:
    assert without_port(tmp_path, sends=True) != []


def never_sent(directory: Path, *, left: int, refused: int, attempts: int, refused_at: int = 0) -> list[str]:
    """Fields of the findings about a client whose adapter lets this many datagrams of a first question go and refuses
    these, so much later; it counts three datagrams in so many questions, then calls that have no port."""
    bed = Bed(directory / "run")
    start = bed.now - 1
    program = struct.unpack(">2I", rpc_call(0, 0)[12:20])
    for turn in range(left + refused):
        asked = struct.pack(">14I", XID, 0, 2, 100_000, 2, 3, 0, 0, 0, 0, *program, UDP, 0)
        (frame,) = bed.datagram(CLIENT, (ASKING, PORT_MAPPER), asked)
        if turn < left:
            bed.send(CLIENT, [frame])
        else:
            bed.records.append(Record(bed.now + refused_at, 2, 0, frame, by_adapter("client:eth0", "not joined")))
            bed.now += 1_000_000
    said = {"start": start, "end": bed.now, "ok": False, "attempts": attempts, "sent": 3, "port": 0}
    bed.lines.append(json.dumps({"type": "binding", "step": 0, "app": "echo-client", "transport": "udp", **said}))
    bed.now += 100_000_000
    bed.batch("echo-client", "udp", 16, 0, 0)
    bed.sample(bed.now, 1, ok=False, error=UNBOUND)
    fields = [problem["field"] for problem in verify_run(bed.write()).problems]
    return [field for field in fields if field.startswith("binding")]


@pytest.mark.parametrize("left", [0, 1])
def test_questions_that_an_adapter_refused_were_asked(tmp_path: Path, left: int) -> None:
    """Though no datagram of one left."""
    assert never_sent(tmp_path, left=left, refused=3 - left, attempts=1) == []


def test_questions_that_an_adapter_did_not_even_refuse_are_missing(tmp_path: Path) -> None:
    assert never_sent(tmp_path, left=0, refused=2, attempts=1) == ["binding.sent"]
    assert never_sent(tmp_path / "more", left=0, refused=3, attempts=2) == ["binding.attempts"]


def test_questions_that_an_adapter_refused_after_a_binding_are_not_its(tmp_path: Path) -> None:
    found = never_sent(tmp_path, left=0, refused=3, attempts=1, refused_at=50_000_000)
    assert found == ["binding.attempts", "binding.sent"]
