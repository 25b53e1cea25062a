# SPDX-License-Identifier: Apache-2.0
"""What damages are made with: a capture survives reading and writing, and checksums stay as right as they were."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mutation import allowed, capture, headers, protocols, runs
from mutation.damage import Copy


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.recorded("sunrpc-virtual", tmp_path_factory.mktemp("mutation"))


def test_a_capture_is_written_as_it_was_read(run: Path) -> None:
    data = (run / "wire" / "lan.pcapng").read_bytes()
    read = capture.read(data)
    again = capture.read(read.to_bytes())
    assert (again.frames, again.interfaces) == (read.frames, read.interfaces)
    assert again.head == data[: len(again.head)]


def test_frames_are_paired_with_their_arrival(run: Path) -> None:
    read = capture.read((run / "wire" / "lan.pcapng").read_bytes())
    every = capture.transmissions([read])
    assert sum(len(each.sent) + len(each.received) for each in every) == len(read.frames)
    assert all(each.received[0].at_ns > each.sent[0].at_ns for each in every)


def sound(data: bytes) -> bool:
    """RFC 1071: the sum over all that a checksum covers is zero."""
    at, end = protocols.layer(data), 14 + int.from_bytes(data[16:18])
    if protocols.checksum(data[14:at]):
        return False
    if protocols.is_fragment(data):
        return True
    pseudo = data[26:34] + bytes((0, data[23])) + (end - at).to_bytes(2)
    return protocols.checksum(pseudo + data[at:end]) == 0


def test_a_changed_field_keeps_the_checksums_right(run: Path) -> None:
    read = capture.read((run / "wire" / "lan.pcapng").read_bytes())
    every = [each for each in capture.transmissions([read]) if protocols.is_ip(each.data)]
    assert all(sound(each.data) for each in every)
    for name in ("payload.last", "ip.ttl", "tcp.ack", "udp.source", "payload.word[2]"):
        chosen = next(each for each in every if any(item.name == name for item in protocols.fields(each.data)))
        before = chosen.data
        headers.change_frames(chosen, name, Random(1), "both", every)
        assert chosen.data != before
        assert all(sound(frame.data) for frame in chosen.everywhere), name


def test_a_copy_leaves_the_original_alone(run: Path, tmp_path: Path) -> None:
    before = (run / "run.json").read_bytes()
    copy = Copy(run, tmp_path / "copy")
    copy.write_json("run.json", {})
    assert (run / "run.json").read_bytes() == before


def test_a_pattern_under_which_nothing_passes_is_of_no_use() -> None:
    entries = [allowed.Allowed(("a [1]*", "b"), ("x-*",), "because of this and that")]
    assert allowed.is_allowed(entries, "x-real", "a [1] c")
    assert not allowed.is_allowed(entries, "y-real", "a [1] c")
    assert allowed.unused(entries, [("x-real", "a [1] c")]) == ["b"]
