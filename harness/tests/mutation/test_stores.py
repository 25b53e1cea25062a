# SPDX-License-Identifier: Apache-2.0
"""Damages to what calls over a backplane have stored: what is read from the packets, and what is changed of it."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mutation import capture, runs, stores
from mutation.damage import Copy
from mutation.gate import CAUGHT, all_damages, judge
from mutation.stored import Stored, read

NAME = "wire/backplane.pcapng"


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    known: dict[str, Path] = {}

    def recorded(name: str) -> Path:
        if name not in known:
            known[name] = runs.recorded(name, tmp_path_factory.mktemp("mutation"))
        return known[name]

    return recorded


def stored(folder: Path) -> list[Stored]:
    return read([capture.read((folder / NAME).read_bytes())])


@pytest.mark.parametrize("name", ["shrimprpc-virtual", "vrpc-virtual", "vrpc-notify-virtual"])
def test_each_call_has_one_reply(run_of: Callable[[str], Path], name: str) -> None:
    kinds = Counter(each.kind for each in stored(run_of(name)))
    called = {kind.removeprefix("call "): count for kind, count in kinds.items() if kind.startswith("call")}
    assert called == {kind.removeprefix("reply "): count for kind, count in kinds.items() if kind.startswith("reply")}
    assert kinds["hello"] == kinds["welcome"] > 0


def test_rings_wrap_in_what_is_stored(run_of: Callable[[str], Path]) -> None:
    kinds = Counter((each.kind, each.machine) for each in stored(run_of("vrpc-virtual")))
    assert kinds["skip", "client"] == kinds["skip", "server"] == 1
    assert kinds["head", "client"] > 1


def changed(run: Path, folder: Path, name: str) -> tuple[list[bytes], list[bytes]]:
    copy = Copy(run, folder / "run")
    (damage,) = [each for each in stores.damages(copy) if each.name == name]
    before = [frame.data for frame in capture.read(copy.read(NAME)).frames]
    damage.apply(copy, Random(1))
    return before, [frame.data for frame in capture.read(copy.read(NAME)).frames]


@pytest.mark.parametrize(
    ("run", "name", "packets", "octets"),
    [
        ("shrimprpc-virtual", "stored: flag.sequence of call null from client, both", 2, 6),
        ("shrimprpc-virtual", "stored: the same wrong byte in call and reply: call inout from client, both", 4, 1),
        ("vrpc-virtual", "stored: xid of call echo from client, both", 2, 4),
        ("vrpc-virtual", "stored: the same wrong number in call and reply: call echo from client, both", 4, 4),
        ("vrpc-virtual", "stored: position of head from server, both", 2, 4),
        ("vrpc-notify-virtual", "stored: notify of hello from client, both", 2, 4),
    ],
)
def test_a_field_changes_and_nothing_else(
    run_of: Callable[[str], Path], tmp_path: Path, run: str, name: str, packets: int, octets: int
) -> None:
    before, after = changed(run_of(run), tmp_path, name)
    different = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert len(different) == packets
    for old, new in different:
        assert old[:32] == new[:32]
        places = [at for at, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
        assert places[-1] - places[0] < octets


def test_numbers_are_closed_where_a_call_is_missing(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    name = "stored: call and reply missing, numbers closed: call in_64 from client, both"
    before, after = changed(run_of("shrimprpc-virtual"), tmp_path, name)
    assert len(after) == len(before) - 4
    for data in (before, after):
        ways: dict[bytes, set[int]] = {}
        for each in data:
            ways.setdefault(each[4:8], set()).add(struct.unpack_from("<I", each, 8)[0])
        assert all(max(numbers) - min(numbers) + 1 == len(numbers) for numbers in ways.values())


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("shrimprpc-virtual", "run.json: nodes.client missing"),
        ("shrimprpc-virtual", "run.json: nodes.client.interfaces[1].address another"),
        ("vrpc-notify-virtual", "nodes/client/samples.jsonl: procedure of a line 'batch echo-client vrpc'"),
        ("vrpc-notify-virtual", "nodes/client/samples.jsonl: procedure of a line 'batch echo-client vrpc-mbcf'"),
    ],
)
def test_what_verification_once_crashed_at_is_noticed(
    run_of: Callable[[str], Path], tmp_path: Path, run: str, name: str
) -> None:
    (damage,) = [each for each in all_damages(run_of(run)) if each.name == name]
    assert judge(run_of(run), damage, 1, tmp_path).result == CAUGHT
