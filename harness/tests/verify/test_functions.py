# SPDX-License-Identifier: Apache-2.0
"""Calls of the twelve functions over UDP: right ones pass, and each damage is found, with its name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from sundial.verify import verify_run
from tests.verify.bed import CLIENT, RAW_PORT, RPC_PORT, SERVER, Bed

PROGRAM = 0x2000199A
ROOT_OF_13 = struct.pack(">d", 13**0.5)
POINTS = struct.pack(">I3fI3f", 3, 0, 0.5, 1, 3, 3, 2.5, 1)
PERSON = struct.pack(">I9s3xIf", 9, b"Nine char", 30, 70.5)
NUMBERS = {"int": 3, "person": 11, "distance": 12}
SIZES = {"int": 4, "person": 17, "distance": 24}
ARGUMENTS = {"int": struct.pack(">i", 123456789), "person": PERSON, "distance": POINTS}
RESULTS = {**ARGUMENTS, "distance": ROOT_OF_13}
RAW = {
    "int": struct.pack("<i", 123456789),
    "person": struct.pack("<9sif", b"Nine char", 30, 70.5),
    "distance": struct.pack("<6f", 0, 0.5, 1, 3, 2.5, 1),
}
RAW_RESULTS = {**RAW, "distance": ROOT_OF_13[::-1]}
UDP_HEAD, CLIENT_PORT = 42, 700


def rpc(name: str, xid: int) -> tuple[bytes, bytes]:
    call = struct.pack(">10I", xid, 0, 2, PROGRAM, 1, NUMBERS[name], 0, 0, 0, 0)
    return call + ARGUMENTS[name], struct.pack(">6I", xid, 1, 0, 0, 0, 0) + RESULTS[name]


def raw(name: str, sequence: int) -> tuple[bytes, bytes]:
    def message(values: bytes) -> bytes:
        return struct.pack(">3sBIII", b"SDF", NUMBERS[name], sequence, 16 + len(values), 0) + values

    return message(RAW[name]), message(RAW_RESULTS[name])


MESSAGES = {"echo-client": rpc, "raw-client": raw}
PORTS = {"echo-client": RPC_PORT, "raw-client": RAW_PORT}


def call(bed: Bed, app: str, number: int, request: bytes, reply: bytes) -> None:
    """One call with whatever is said in it, and its sample."""
    start, port = bed.now - 1, PORTS[app]
    bed.send(CLIENT, bed.datagram(CLIENT, (CLIENT_PORT, port), request))
    bed.send(SERVER, bed.datagram(SERVER, (port, CLIENT_PORT), reply))
    bed.sample(start, number)


def batch(bed: Bed, app: str, name: str, **more: object) -> None:
    bed.batch(app, "udp", SIZES[name], PORTS[app], CLIENT_PORT, procedure=name)
    line = json.loads(bed.lines[-1])
    bed.lines[-1] = json.dumps({**line, "function": NUMBERS[name], **more})


def found(bed: Bed) -> set[str]:
    return {problem["field"] for problem in verify_run(bed.write()).problems}


def functions(directory: Path, app: str, calls: int = 2) -> Bed:
    """All three, called as they must be."""
    bed = Bed(directory / "run")
    for name in NUMBERS:
        batch(bed, app, name)
        for number in range(calls):
            key = number if app == "raw-client" else 100 * NUMBERS[name] + number
            call(bed, app, key, *MESSAGES[app](name, key))
    return bed


@pytest.mark.parametrize("app", MESSAGES)
def test_calls_as_they_must_be(tmp_path: Path, app: str) -> None:
    assert found(functions(tmp_path, app)) == set()


@pytest.mark.parametrize("app", MESSAGES)
@pytest.mark.parametrize(
    ("name", "side"),
    [
        pytest.param(name, side, marks=[pytest.mark.night] if (number + side) % 2 else [])
        for number, name in enumerate(NUMBERS)
        for side in (0, 1)
    ],
)
def test_another_byte_of_a_value(tmp_path: Path, app: str, name: str, side: int) -> None:
    bed = Bed(tmp_path / "run")
    batch(bed, app, name)
    messages = list(MESSAGES[app](name, 5))
    messages[side] = messages[side][:-1] + bytes([messages[side][-1] ^ 1])
    call(bed, app, 5, *messages)
    assert ("request.content.value", "reply.content.value")[side] in found(bed)


@pytest.mark.parametrize("app", MESSAGES)
def test_the_reply_of_another_function(tmp_path: Path, app: str) -> None:
    bed = Bed(tmp_path / "run")
    batch(bed, app, "int")
    call(bed, app, 5, MESSAGES[app]("int", 5)[0], MESSAGES[app]("distance", 5)[1])
    assert any(field.startswith("reply.") for field in found(bed))


@pytest.mark.parametrize("app", MESSAGES)
def test_a_sample_of_a_call_that_was_not_made(tmp_path: Path, app: str) -> None:
    bed = functions(tmp_path, app)
    bed.sample(bed.now - 1, 77)
    assert {"request", "reply"} & {field.partition(".")[0] for field in found(bed)}


@pytest.mark.parametrize("app", MESSAGES)
def test_a_call_without_a_sample(tmp_path: Path, app: str) -> None:
    bed = functions(tmp_path, app)
    bed.lines.pop()
    assert verify_run(bed.write()).verdict == "fail"


@pytest.mark.parametrize("app", MESSAGES)
def test_another_number_in_a_batch_line(tmp_path: Path, app: str) -> None:
    bed = Bed(tmp_path / "run")
    batch(bed, app, "int", function=4)
    call(bed, app, 5, *MESSAGES[app]("int", 5))
    assert any(field.endswith(" function") for field in found(bed))


def test_the_procedure_and_the_program_of_a_call(tmp_path: Path) -> None:
    request, reply = rpc("int", 5)
    for place, field in ((15, "program"), (23, "procedure")):
        bed = Bed(tmp_path / field)
        batch(bed, "echo-client", "int")
        call(bed, "echo-client", 5, request[:place] + bytes([request[place] ^ 1]) + request[place + 1 :], reply)
        assert f"request.content.{field}" in found(bed)


def test_the_magic_names_the_function(tmp_path: Path) -> None:
    request, reply = raw("int", 5)
    bed = Bed(tmp_path / "run")
    batch(bed, "raw-client", "int")
    call(bed, "raw-client", 5, request[:3] + b"\x04" + request[4:], reply)
    assert "request.content.magic" in found(bed)
