# SPDX-License-Identifier: Apache-2.0
"""A trace that is read as the plugin wrote it, and what is none."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.observe.trace import HALT, NO_POINT, Point, read_trace

POINTS = {
    "version": 1,
    "points": [
        {"name": "f", "program": "apps", "address": "401000", "size": 16, "stamps": "both", "role": "call"},
        {"name": "g", "program": None, "address": "ffffffff81000000", "size": 8, "stamps": "entry", "role": None},
    ],
}


def stamp(ns: int, point: int, kind: int) -> bytes:
    return struct.pack("<QQQQII", ns, 0x1000, 0x7F00, 5, point, kind)


def header(magic: bytes = b"SUNTRACE", version: int = 1, length: int = 40) -> bytes:
    return struct.pack("<8sII", magic, version, length)


WHOLE = header() + stamp(10, 0, 0) + stamp(20, 1, 0) + stamp(30, NO_POINT, HALT) + stamp(40, 0, 1)


def written(folder: Path, data: bytes = WHOLE, points: str | None = None) -> Path:
    (folder / "trace.bin").write_bytes(data)
    (folder / "points.json").write_text(json.dumps(POINTS) if points is None else points)
    return folder


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path))
    assert trace.points == (Point("f", "apps", "call"), Point("g", None, None))
    assert trace.stamps["ns"].tolist() == [10, 20, 30, 40]
    assert trace.stamps["page_table"].tolist() == [0x1000] * 4
    assert trace.stamps["thread"].tolist() == [0x7F00] * 4
    assert trace.stamps["argument"].tolist() == [5] * 4
    assert (trace.stamps["kind"].tolist(), trace.repeated) == ([0, 0, 2, 1], 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"SUNT", "shorter than the header"),
        (header(magic=b"MOONTRAC"), "not a trace of version 1"),
        (header(version=2), "not a trace of version 1"),
        (header(length=48), "not a trace of version 1"),
        (WHOLE[:-1], "ends within a stamp"),
        (header() + stamp(20, 0, 0) + stamp(10, 0, 1), "not in order of time"),
        (header() + stamp(20, 2, 0), "of none of the 2 functions"),
        (header() + stamp(20, 0, 3), "of none of the 2 functions"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_file(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        read_trace(written(tmp_path, data))
    assert "trace.bin" in str(refused.value)


@pytest.mark.parametrize("points", ["", "{}", '{"points": [1]}', "[" * 100_000])
def test_what_is_no_list_of_functions_is_refused_with_its_file(tmp_path: Path, points: str) -> None:
    with pytest.raises(BadInput, match=r"points\.json"):
        read_trace(written(tmp_path, points=points))


@pytest.mark.parametrize("name", ["trace.bin", "points.json"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    remove: Callable[[], None] = (written(tmp_path) / name).unlink
    remove()
    with pytest.raises(BadInput, match=name):
        read_trace(tmp_path)
