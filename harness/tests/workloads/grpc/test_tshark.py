# SPDX-License-Identifier: Apache-2.0
"""A second reader: what tshark makes of recorded streams, with the command line of `sundial open`, is what we make."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sundial.cli.open_ import viewer_command
from sundial.expect.http2 import Frame, Type
from tests.verify.bed import SERVER
from tests.warm_tshark.reader import unprivileged
from tests.workloads.grpc.dialogue import NAMES, Dialogue

FIELDS = ("ip.src", "http2.streamid", "http2.type", "http2.length", "http2.headers.path", "grpc.message_length",
          "protobuf.message.name", "protobuf.field.value.string", "protobuf.field.value.float")  # fmt: skip


LINKS = ("frame.number", "frame.time_relative", "grpc_call.stream", "grpc_call.method", "grpc_call.reply_in",
         "grpc_call.request_in", "grpc_call.time")  # fmt: skip


def _read(capture: Path, shown: str = "http2", fields: tuple[str, ...] = FIELDS, *more: str) -> list[list[list[str]]]:
    """Of each packet that has any frame, its fields."""
    command = [*viewer_command([*unprivileged(), "tshark"], capture, capture, shown), *more, "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [[value.split(",") if value else [] for value in line.split("\t")] for line in done.stdout.splitlines()]


def _frames(said: list[list[Frame]]) -> list[tuple[int, int, int]]:
    return [(frame.stream, frame.type, len(frame.payload)) for turn in said for frame in turn]


@pytest.mark.parametrize("version", ["1.51.1", "1.85.1"])
def test_both_read_the_same(tmp_path: Path, version: str) -> None:
    said = Dialogue(version)
    packets = _read(said.write(tmp_path) / "wire" / "lan.pcapng")
    for end, from_server in (("client", False), ("server", True)):
        own = [packet for packet in packets if (packet[0] == [SERVER]) == from_server]
        seen = [
            tuple(map(int, frame))
            for packet in own
            # tshark has no stream, type and length for the preface alone.
            for frame in zip(packet[1], packet[2], packet[3], strict=True)
        ]
        assert seen == _frames(said.said[end])
        lengths = [int(length) for packet in own for length in packet[5]]
        data = [frame for turn in said.said[end] for frame in turn if frame.type == Type.DATA]
        assert lengths == [len(frame.payload) - 5 for frame in data]
    paths = [path for packet in packets for path in packet[4]]
    assert len(paths) == len(NAMES)
    assert (paths[0], paths[-1]) == ("/sundial.Functions/Void", "/sundial.Functions/Distance")
    persons = [packet for packet in packets if "sundial.PersonValue" in packet[6]]
    assert [(packet[7], packet[8]) for packet in persons] == [(["Nine char"], ["70.5"])] * 10


def test_a_request_of_several_segments_begins_with_the_first(tmp_path: Path) -> None:
    said = Dialogue("1.51.1", apart=5)
    packets = _read(said.write(tmp_path) / "wire" / "lan.pcapng", "grpc_call", LINKS, "-2")
    headers, data, reply = (packet for packet in packets if packet[2] == ["11"])
    assert (headers[4], data[4], reply[5]) == (reply[0], reply[0], headers[0])
    assert round(float(reply[6][0]) * 1e9) == round((float(reply[1][0]) - float(headers[1][0])) * 1e9)


def test_replies_are_linked_to_their_calls(tmp_path: Path) -> None:
    said = Dialogue("1.51.1")
    packets = _read(said.write(tmp_path) / "wire" / "lan.pcapng", "grpc_call", LINKS, "-2")
    by_number = {packet[0][0]: packet for packet in packets}
    ends = [packet for packet in packets if packet[6]]
    streams = [int(stream) for packet in ends for stream in packet[2]]
    assert streams == [*range(1, 2 * len(streams), 2)]
    assert len(streams) == len({frame.stream for turn in said.said["client"] for frame in turn} - {0})
    for (number,), (ended,), stream, method, _, (request,), (took,) in ends:
        asked = by_number[request]
        assert (asked[2], asked[3], asked[4]) == (stream, method, [number])
        assert round(float(took) * 1e9) == round((float(ended) - float(asked[1][0])) * 1e9)
    assert {packet[3][0] for packet in ends} >= {"/sundial.Functions/Void", "/sundial.Functions/Distance"}
