# SPDX-License-Identifier: Apache-2.0
"""Frames between QEMU's stream and the fabric's datagrams, and files from streams; sockets stand for both ends."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.machines.relay import FileRelay, FrameRelay
from sundial.machines.waiting import wait_until

LONGEST = 18_190
"""Of LAN emulation."""


class Ends:
    """QEMU's and the fabric's."""

    def __init__(self, folder: Path) -> None:
        self.fabric = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.fabric.bind(str(folder / "f"))
        self.fabric.settimeout(20.0)
        self.machine_end = str(folder / "q")
        self.relay = FrameRelay(folder / "r", folder / "q", folder / "f")
        self.qemu = socket.socket(socket.AF_UNIX)
        self.qemu.connect(str(folder / "r"))
        self.qemu.settimeout(20.0)

    def close(self) -> None:
        self.relay.close()
        self.qemu.close()
        self.fabric.close()


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    made = Ends(tmp_path)
    yield made
    made.close()


def frames(count: int) -> list[bytes]:
    """Of all lengths, none like another."""
    source = random.Random(7)
    return [
        struct.pack(">I", number) + source.randbytes(source.choice((60, 1510, 9000, LONGEST - 4)))
        for number in range(count)
    ]


def streamed(frame: bytes) -> bytes:
    return struct.pack(">I", len(frame)) + frame


def test_frames_of_a_machine_arrive_in_order_however_the_stream_is_cut(ends: Ends) -> None:
    sent = frames(400)
    stream = b"".join(map(streamed, sent))
    cuts = sorted(random.Random(3).sample(range(len(stream)), 900))
    pieces = [stream[first:last] for first, last in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    writer = threading.Thread(target=lambda: [ends.qemu.sendall(piece) for piece in pieces])
    writer.start()
    assert [ends.fabric.recv(1 << 16) for _ in sent] == sent
    writer.join()
    wait_until(lambda: ends.relay.carried.to_fabric == len(sent), seconds=5, what="the count")
    assert ends.relay.carried.to_json() == {"to_machine": 0, "to_fabric": len(sent), "undelivered": 0}


def test_a_fabric_that_is_slow_holds_the_machine_up_and_loses_nothing(ends: Ends) -> None:
    sent = frames(2000)
    writer = threading.Thread(target=lambda: [ends.qemu.sendall(streamed(frame)) for frame in sent])
    writer.start()
    writer.join(1.0)
    assert writer.is_alive()
    assert [ends.fabric.recv(1 << 16) for _ in sent] == sent
    writer.join()
    assert ends.relay.carried.undelivered == 0


def test_a_machine_that_is_slow_holds_the_fabric_up_and_loses_nothing(ends: Ends) -> None:
    sent = frames(2000)
    ends.fabric.setblocking(False)
    received = b""
    waiting = list(sent)
    refused = 0
    while waiting or len(received) < sum(len(frame) + 4 for frame in sent):
        try:
            while waiting:
                ends.fabric.sendto(waiting[0], ends.machine_end)
                waiting.pop(0)
        except BlockingIOError:
            refused += 1
        received += ends.qemu.recv(1 << 16)
    assert refused > 0
    assert received == b"".join(map(streamed, sent))
    wait_until(lambda: ends.relay.carried.to_machine == len(sent), seconds=5, what="the count")


def test_what_comes_after_the_fabric_has_ended_is_counted(ends: Ends, tmp_path: Path) -> None:
    ends.fabric.close()
    ends.qemu.sendall(streamed(bytes(60)))
    wait_until(lambda: ends.relay.carried.undelivered == 1, seconds=5, what="the count")
    (tmp_path / "f").unlink()
    ends.qemu.sendall(streamed(bytes(60)))
    wait_until(lambda: ends.relay.carried.undelivered == 2, seconds=5, what="the count")


def test_a_length_that_no_frame_has_ends_the_connection(ends: Ends) -> None:
    ends.qemu.sendall(struct.pack(">I", 1 << 31))
    assert ends.qemu.recv(1) == b""


def test_a_relay_nobody_has_connected_to_can_be_closed(tmp_path: Path) -> None:
    FrameRelay(tmp_path / "r", tmp_path / "q", tmp_path / "f").close()
    FileRelay(tmp_path / "s", tmp_path / "file", tmp_path / "callers").close(5.0)


def test_a_file_has_all_that_was_written_before_the_end(tmp_path: Path) -> None:
    relay = FileRelay(tmp_path / "r", tmp_path / "samples")
    with socket.socket(socket.AF_UNIX) as guest:
        guest.connect(str(tmp_path / "r"))
        text = random.Random(1).randbytes(3_000_000)
        guest.sendall(text)
    relay.close(20.0)
    assert (tmp_path / "samples").read_bytes() == text


def test_callers_of_a_console_come_and_go(tmp_path: Path) -> None:
    relay = FileRelay(tmp_path / "r", tmp_path / "console", tmp_path / "callers")
    with socket.socket(socket.AF_UNIX) as guest:
        guest.connect(str(tmp_path / "r"))
        guest.sendall(b"before ")
        wait_until(lambda: (tmp_path / "console").read_bytes() == b"before ", seconds=5, what="the log")
        for word in (b"one", b"two"):
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(str(tmp_path / "callers"))
                caller.settimeout(10.0)
                caller.sendall(word)
                assert guest.recv(100) == word
                guest.sendall(word + b" ")
                assert caller.recv(100) == word + b" "
        with socket.socket(socket.AF_UNIX) as idle:
            # One who reads nothing does not hold the guest up.
            idle.connect(str(tmp_path / "callers"))
            idle.sendall(b"x")
            assert guest.recv(1) == b"x"
            guest.sendall(bytes(4_000_000))
            wait_until(lambda: (tmp_path / "console").stat().st_size > 4_000_000, seconds=10, what="the log")
    relay.close(5.0)
    assert (tmp_path / "console").read_bytes().rstrip(b"\0") == b"before one two "
