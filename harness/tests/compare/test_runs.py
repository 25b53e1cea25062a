# SPDX-License-Identifier: Apache-2.0
"""Run directories compared: equal ones, and each way in which a capture may differ."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.compare import words
from sundial.compare.bounds import parse
from sundial.compare.build import Compared, compare
from sundial.compare.page import page, write_page
from sundial.errors import BadInput
from sundial.seams.compare import Comparison
from sundial.seams.write import FORMS
from tests.verify.bed import Bed, capture
from tests.verify.seal import seal

PORTS = ["client:eth0", "server:eth0", "lan:fate"]
Change = Callable[[Bed], None]


def made(folder: Path, change: Change = lambda bed: None, *, calls: int = 3, size: int = 100, **run: Any) -> Path:
    """A run of some calls, changed before it is written."""
    bed = Bed(folder, clock=run.pop("clock", "virtual"))
    bed.batch("echo-client", "udp", size, 20049, 700)
    for number in range(calls):
        bed.udp_call(size, 0x1000 + number)
    change(bed)
    bed.write()
    file = folder / "run.json"
    base = {"topology": {"name": "t"}, "seed": 1, "versions": {"qemu": "8"}}
    file.write_text(json.dumps({**json.loads(file.read_text()), **base, **run}))
    return seal(folder)


def compared(*folders: Path, **options: Any) -> Comparison:
    return compare([Compared(folder, folder.name) for folder in folders], **options)[0]


def test_equal_runs_are_equal_to_the_byte(tmp_path: Path) -> None:
    found = compared(made(tmp_path / "a"), made(tmp_path / "b"))
    assert (found.inputs, found.alarms, found.exceeded) == ((), (), ())
    assert [(pair.capture, pair.equal, pair.difference) for pair in found.captures] == [("lan", True, None)]
    assert [line for line, _ in words.capture_lines(found)] == ["lan: equal to the byte"]
    (group,) = found.groups
    assert group.runs[1] is not None
    assert group.runs[1].p50_ratio == 1.0


def _octet(place: int) -> Change:
    def change(bed: Bed) -> None:
        frame = bytearray(bed.records[4].frame)
        frame[place] ^= 1
        bed.records[4] = replace(bed.records[4], frame=bytes(frame))

    return change


def _later(bed: Bed) -> None:
    bed.records[4] = replace(bed.records[4], at=bed.records[4].at + 7)


def _remark(bed: Bed) -> None:
    bed.records[4] = replace(bed.records[4], comment="what")


def _shorter(bed: Bed) -> None:
    bed.records.pop()


def _other_port(bed: Bed) -> None:
    bed.records[4] = replace(bed.records[4], interface=1)


@pytest.mark.parametrize(
    ("change", "field", "number", "text"),
    [
        (_octet(19), "ip.id", 5, "ip.id: 0x0003 | 0x0002"),
        (_octet(45), "rpc.xid", 5, "rpc.xid: 0x00001001 | 0x00001000"),
        (_octet(150), "octet 108 of udp.payload", 5, "octet 108 of udp.payload: 0x43 | 0x42"),
        (_later, "time", 5, "the frame is 7 ns later"),
        (_remark, "comment", 5, "comment: none | what"),
        (_other_port, "port", 5, "port: client:eth0 | server:eth0"),
        (_shorter, "frame", 12, "only A has more frames"),
    ],
)
def test_the_first_frame_that_differs_is_named(
    tmp_path: Path, change: Change, field: str, number: int, text: str
) -> None:
    found = compared(made(tmp_path / "a"), made(tmp_path / "b", change, seed=2))
    (pair,) = found.captures
    assert pair.difference is not None
    assert (pair.difference.field, pair.difference.words) == (field, text)
    side = pair.difference.first
    assert side is not None
    assert (side.number, side.port) == (number, "client:eth0")
    assert side.open.endswith(f"open a lan --all --filter 'frame.number == {number}'")
    assert found.alarms == ()  # another seed


def test_equal_inputs_with_other_bytes_are_an_alarm(tmp_path: Path) -> None:
    first, other = made(tmp_path / "a"), made(tmp_path / "b", _later)
    found = compared(first, other)
    assert found.alarms == ("a and b have the same inputs and other bytes: lan",)
    # Not if one did not come to its end, if a hand was in it, or if an input is another one.
    for change in ({"status": "interrupted"}, {"scenario": None}, {"versions": {"qemu": "9"}}):
        document = json.loads((other / "run.json").read_text())
        (other / "run.json").write_text(json.dumps(document | change))
        if "scenario" in change:
            (first / "run.json").write_text(json.dumps(json.loads((first / "run.json").read_text()) | change))
        assert compared(first, other).alarms == ()
        (other / "run.json").write_text(json.dumps(document))


def test_an_input_off_the_wire_does_not_excuse_other_bytes(tmp_path: Path) -> None:
    versions = {"qemu": "8", "tshark": "4"}
    found = compared(made(tmp_path / "a"), made(tmp_path / "b", _later, versions=versions))
    assert [each.key for each in found.inputs] == ["versions.tshark"]
    assert len(found.alarms) == 1


def test_under_the_real_clock_times_are_no_difference(tmp_path: Path) -> None:
    found = compared(made(tmp_path / "a", clock="real"), made(tmp_path / "b", _later, clock="real"))
    (pair,) = found.captures
    assert (pair.equal, pair.difference, found.alarms) == (False, None, ())
    assert found.method is not None
    found = compared(made(tmp_path / "c", clock="real"), made(tmp_path / "d", _octet(19), clock="real"))
    (pair,) = found.captures
    assert pair.difference is not None
    assert pair.difference.field == "ip.id"


def test_other_ports_and_unreadable_captures_are_said(tmp_path: Path) -> None:
    first, other = made(tmp_path / "a"), made(tmp_path / "b")
    (other / "wire" / "lan.pcapng").write_bytes(capture(["x:eth0", "server:eth0", "lan:fate"], []))
    (pair,) = compared(first, other).captures
    assert pair.difference is not None
    assert pair.difference.field == "ports"
    (other / "wire" / "lan.pcapng").write_bytes((first / "wire" / "lan.pcapng").read_bytes()[:-9])
    (pair,) = compared(first, other).captures
    assert pair.difference is not None
    assert (pair.difference.field, "truncated block" in pair.difference.words) == ("file", True)


def test_several_runs_are_each_compared_with_the_first(tmp_path: Path) -> None:
    runs = [made(tmp_path / "a"), made(tmp_path / "b", seed=2), made(tmp_path / "c", _later, seed=3)]
    found = compared(*runs)
    assert [(pair.label, pair.equal) for pair in found.captures] == [("B", True), ("C", False)]
    assert [line.partition(":")[0] for line, _ in words.capture_lines(found)] == ["lan of B", "lan of C"]
    assert [each.values for each in found.inputs] == [(1, 2, 3)]


def test_bounds_name_the_groups_that_exceed_them(tmp_path: Path) -> None:
    def slower(bed: Bed) -> None:
        head, *rows = bed.lines
        bed.lines = [head, *(json.dumps([row[0], row[1], row[2] + 10**6, *row[3:]]) for row in map(json.loads, rows))]

    found = compared(made(tmp_path / "a"), made(tmp_path / "b", slower, seed=2), limits=[parse("p50 5 %")])
    assert len(found.exceeded) == 1
    assert re.fullmatch(
        r"echo-client udp echo 100 of b: p50 is [\d.]+ µs, was [\d.]+ µs \(p50 5 %\)", found.exceeded[0]
    )
    assert compared(made(tmp_path / "c"), made(tmp_path / "d"), limits=[parse("p50 0 %")]).exceeded == ()


def test_runs_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    first, other = made(tmp_path / "a"), made(tmp_path / "b", size=200)
    with pytest.raises(BadInput, match="nothing in common: no calls with the same app, transport, procedure, size"):
        compared(first, other)
    assert len(compared(first, other, by=["transport"]).groups) == 1
    with pytest.raises(BadInput, match="is named twice"):
        compared(first, tmp_path / "." / "a")
    with pytest.raises(BadInput, match="one run is not a comparison"):
        compared(first)
    with pytest.raises(BadInput, match="'sizes' is not a column"):
        compared(first, other, by=["sizes"])


def test_the_document_is_of_its_schema_and_csv_has_all_numbers(tmp_path: Path) -> None:
    found = compared(made(tmp_path / "a", clock="real"), made(tmp_path / "b", clock="real"))
    assert FORMS["compare"].validate_json(json.dumps(found.document())) == found
    rows = list(csv.DictReader(words.csv_text(found).splitlines()))
    assert [(row["label"], row["size"], row["calls"], row["method"]) for row in rows] == [
        ("A", "100", "3", ""),
        ("B", "100", "3", "paired"),
    ]
    text = words.markdown(found)
    assert "| APP | TRANSPORT | PROCEDURE | SIZE | RUN |" in text
    assert "- lan: equal to the byte" in text


def test_the_page_shows_everything_and_loads_nothing(tmp_path: Path) -> None:
    found = compared(made(tmp_path / "a"), made(tmp_path / "b", _octet(19), seed=2, scenario={"name": "<b>"}))
    text = page(found)
    assert "ip.id: 0x0003 | 0x0002" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "figure-medians" in text
    assert "<script" not in text
    assert not re.search(r'(src|href)="?(https?:)?//', text)
    write_page(found, tmp_path / "c.html")
    assert (tmp_path / "c.html").read_text() == text


def test_groups_on_a_terminal_are_those_that_differ_most(tmp_path: Path) -> None:
    found = compared(made(tmp_path / "a"), made(tmp_path / "b"))
    assert words.shown_groups(found) == ([], 1, 0)
    (group,) = found.groups
    first, other = group.runs
    assert other is not None
    many = [
        group.model_copy(
            update={
                "key": {"size": size},
                "runs": (first, other.model_copy(update={"p50_us": ratio, "p50_ratio": ratio})),
            }
        )
        for size, ratio in enumerate([1.2] * 30 + [0.1, 3.0] + [1.1] * 30)
    ]
    shown, equal, left_out = words.shown_groups(found.model_copy(update={"groups": tuple(many)}))
    sizes = [each.key["size"] for each in shown]
    assert (len(shown), equal, left_out) == (words.MOST_GROUPS, 0, 62 - words.MOST_GROUPS)
    assert sizes == sorted(sizes)
    assert {30, 31} < set(sizes)
