# SPDX-License-Identifier: Apache-2.0
"""What the programs of guest-apps/grpc said to each other on a host's loopback, through a proxy that wrote it down.

Five calls of each function in one connection, with gRPC 1.51.1 of Debian from Python and from C++, and with 1.85.1 from
its wheel.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sundial.expect import http2
from sundial.expect.http2 import Frame, Type
from sundial.workloads import functions
from sundial.workloads.grpc import expect
from sundial.workloads.grpc.expect import LIBRARIES, Client, Server
from sundial.workloads.grpc.expect_languages import CPP, PYTHON, Language

RECORDED = Path(__file__).parent / "recorded"
CALLS = 5
AUTHORITY = "127.0.0.1:50051"
NAMES = [name for name in functions.NAMES for _ in range(CALLS)]


def recorded(version: str, end: str) -> bytes:
    return gzip.decompress((RECORDED / f"{version}.{end}.gz").read_bytes())


def _frames(octets: bytes) -> list[Frame]:
    found = list(http2.frames(octets))
    assert found[-1][0] == len(octets)
    return [frame for _, frame in found]


PAIRS = [*((version, PYTHON) for version in LIBRARIES), ("1.51.1", CPP)]


@pytest.mark.parametrize(("version", "language"), PAIRS)
@pytest.mark.parametrize("end", ["client", "server"])
def test_every_frame_follows(version: str, language: Language, end: str) -> None:
    """All but those of the connection with their place; of these the number, the octets and the sum."""
    octets = recorded(version if language is PYTHON else f"{version}-{language.name}", end)
    if end == "client":
        assert octets.startswith(http2.PREFACE)
        octets = octets[len(http2.PREFACE) :]
    library = LIBRARIES[version]
    sender = Client(library, AUTHORITY, language=language) if end == "client" else Server(library)
    frames = _frames(octets)
    opening = sender.opening()
    assert frames[: len(opening)] == opening
    calls = [frame for number, name in enumerate(NAMES) for frame in sender.call(2 * number + 1, name)]
    assert [frame for frame in frames if frame.stream] == calls
    others = [frame for frame in frames[len(opening) :] if not frame.stream]
    updates = [frame for frame in others if frame.type == Type.WINDOW_UPDATE]
    assert [frame for frame in others if frame.type != Type.WINDOW_UPDATE] == [http2.SETTINGS_ACK]
    assert len(updates) == len(NAMES)
    came = [len(expect.call_messages(name)[end == "client"]) for name in NAMES]
    assert sum(map(http2.read_increment, updates)) == (sum(came) if end == "server" else expect.PREFIX + sum(came[:-1]))
    assert all(frame == http2.window_update(0, http2.read_increment(frame)) for frame in updates)


def test_the_languages_differ_in_the_user_agent_alone() -> None:
    """Of one library: all octets of both servers, and of both clients but those of the first request's header."""
    assert recorded("1.51.1-cpp", "server") == recorded("1.51.1", "server")
    python, cpp = (_frames(recorded(name, "client")[len(http2.PREFACE) :]) for name in ("1.51.1", "1.51.1-cpp"))
    assert len(python) == len(cpp)
    differ = [pair for pair in zip(python, cpp, strict=True) if pair[0] != pair[1]]
    ((one, other),) = differ
    assert one.type == Type.HEADERS
    agents = (b"0grpc-python/1.51.1 grpc-c/29", b"-grpc-c++/1.51.1 grpc-c/29")
    assert one.payload.replace(*agents) == other.payload
