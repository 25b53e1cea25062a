# SPDX-License-Identifier: Apache-2.0
"""Damages to packets of a backplane: what they change, and what they leave alone."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest

from mutation import backplane, capture, runs
from mutation.damage import Copy

NAME = "wire/backplane.pcapng"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.recorded("vmmc-virtual", tmp_path_factory.mktemp("mutation"))


def damaged(run: Path, folder: Path, name: str) -> tuple[list[bytes], list[bytes]]:
    """The packets before and after."""
    copy = Copy(run, folder / "run")
    (damage,) = [each for each in backplane.damages(copy) if each.name == name]
    before = [frame.data for frame in capture.read(copy.read(NAME)).frames]
    damage.apply(copy, Random(1))
    return before, [frame.data for frame in capture.read(copy.read(NAME)).frames]


def test_captures_are_told_apart_by_their_link_type(run: Path, tmp_path: Path) -> None:
    copy = Copy(run, tmp_path / "run")
    assert list(copy.backplanes()) == [NAME]
    assert list(copy.captures()) == ["wire/lan.pcapng"]
    kinds = {backplane.kind_of(frame.data) for frame in copy.backplanes()[NAME].frames}
    assert {"IMPORT", "ANSWER", "AU (uncombined)", "AU (page)", "AU (full)", "DU", "DU, last"} <= kinds


@pytest.mark.parametrize(
    ("name", "at", "size"),
    [
        ("packet: sequence of DU from client, both", 8, 4),
        ("packet: reason of AU (full) from client, both", 3, 1),
        ("packet: message.generation of ANSWER from server, both", 32 + 56, 4),
        ("packet: first byte of AU (page) from client, both", 32, 1),
    ],
)
def test_a_field_of_one_packet_changes_at_both_ports(run: Path, tmp_path: Path, name: str, at: int, size: int) -> None:
    before, after = damaged(run, tmp_path, name)
    different = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert len(different) == 2
    for old, new in different:
        assert old[:at] + old[at + size :] == new[:at] + new[at + size :]


def test_packets_are_exchanged(run: Path, tmp_path: Path) -> None:
    before, after = damaged(run, tmp_path, "packet: exchanged with the next: AU (full) from client, both")
    assert before != after
    assert sorted(before) == sorted(after)


def test_a_packet_that_was_never_sent_has_the_next_number(run: Path, tmp_path: Path) -> None:
    before, after = damaged(run, tmp_path, "backplane: one more packet")
    (more,) = set(after) - set(before)
    numbers = [struct.unpack_from("<I", data, 8)[0] for data in before if data[4:8] == more[4:8]]
    assert struct.unpack_from("<I", more, 8)[0] == max(numbers) + 1
