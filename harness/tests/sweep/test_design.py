# SPDX-License-Identifier: Apache-2.0
"""Points of a sweep, and what its command line means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sundial.errors import BadInput
from sundial.model.source import Origin, Source
from sundial.sweep.design import Point, axes_of, between, cells_of, number_of, plain, settings_of
from sundial.sweep.read import FOLDER, from_file, from_options, is_sweep, names, sweep_of
from sundial.sweep.sequences import PRIMES, halton, radical_inverse, sobol

LOSS = {"key": "calls", "values": [1, 2, 3]}
SIZE = {"key": "sizes", "values": [64, [64, 128]]}


def cells(**data: Any) -> list[list[str]]:
    whole = {"name": "mine", "scenario": "quickstart", **data}
    sweep, _ = sweep_of(Source("mine", "mine.yaml", whole, {(): Origin("mine.yaml", 1)}))
    axes = axes_of(sweep)
    return [settings_of(sweep, axes, Point(cell, 1)) for cell in cells_of(sweep, axes)]


def test_grid_zip_and_list() -> None:
    grid = cells(axes={"a": LOSS, "b": SIZE}, set={"warmup": 0})
    assert len(grid) == 6
    assert grid[1] == ["warmup=0", "calls=1", "sizes=[64, 128]"]
    pairs = {**LOSS, "values": [1, 2]}
    assert cells(axes={"a": pairs, "b": SIZE}, design="zip") == [
        ["calls=1", "sizes=64"],
        ["calls=2", "sizes=[64, 128]"],
    ]
    points = [{"a": 5, "b": 7}, {"b": 8, "a": 6}, {"a": 5, "b": 7}]
    listed = cells(axes={"a": {"key": "calls"}, "b": {"key": "sizes"}}, points=points)
    assert listed == [["calls=5", "sizes=7"], ["calls=6", "sizes=8"]], "each once"
    assert cells() == [[]]


@pytest.mark.parametrize("design", ["random", "halton", "sobol"])
def test_more_points_keep_those_before(design: str) -> None:
    delay = {"key": "linger", "from": "1 ms", "to": "1 min", "scale": "log"}
    few, many = (cells(axes={"a": LOSS, "d": delay}, design=design, count=count) for count in (5, 40))
    assert many[:5] == few
    assert {each[0] for each in many} == {"calls=1", "calls=2", "calls=3"}


def test_halton_is_the_sequence_of_the_books() -> None:
    assert [radical_inverse(number, 2) for number in range(1, 6)] == [0.5, 0.25, 0.75, 0.125, 0.625]
    assert radical_inverse(5, 3) == pytest.approx(7 / 9)
    assert halton(5, 2) == [0.625, pytest.approx(7 / 9)]


def test_sobol_is_the_sequence_of_joe_and_kuo() -> None:
    # As their page web.maths.unsw.edu.au/~fkuo/sobol prints the first ten points of three axes.
    assert [sobol(number, 3) for number in range(10)] == [
        [0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625],
        [0.875, 0.875, 0.125], [0.625, 0.125, 0.875], [0.125, 0.625, 0.375], [0.1875, 0.3125, 0.9375],
        [0.6875, 0.8125, 0.4375],
    ]  # fmt: skip


@given(start=st.integers(0, 2**20), power=st.integers(0, 9))
def test_sobol_has_a_point_in_each_interval_of_each_axis(start: int, power: int) -> None:
    # Sobol's theorem: each axis alone is a (0, 1)-sequence in base 2.
    count = 2**power
    points = [sobol(start * count + number, len(PRIMES)) for number in range(count)]
    for along in zip(*points, strict=True):
        assert sorted(int(share * count) for share in along) == list(range(count))


@pytest.mark.parametrize("power", [2, 5, 8])
def test_sobol_fills_the_boxes_of_the_first_two_axes(power: int) -> None:
    # The first two are a (0, 2)-sequence: of 2^n points each box of 2^-n has one, whatever its sides.
    points = [sobol(number, 2) for number in range(2**power)]
    for wide in range(power + 1):
        boxes = {(int(x * 2**wide), int(y * 2 ** (power - wide))) for x, y in points}
        assert len(boxes) == 2**power


def test_sobol_has_as_many_axes_as_a_sweep() -> None:
    axes = {f"a{number}": {"key": f"k{number}", "from": 1, "to": 1000} for number in range(len(PRIMES))}
    assert len({tuple(each) for each in cells(axes=axes, design="sobol", count=64)}) == 64


@pytest.mark.parametrize(
    ("low", "high", "share", "log", "value"),
    [
        ('"0 %"', '"10 %"', 0.5, False, "5 %"),
        ('"0 %"', '"10 %"', 1.0, False, "10 %"),
        ('"1 ms"', '"100 ms"', 0.5, True, "10 ms"),
        ('"1 ms"', '"1 s"', 0.5, False, "500 ms"),
        ('"1 Mbit/s"', '"100 Mbit/s"', 0.5, True, "10 Mbit/s"),
        ("10", "20", 0.25, False, "12"),
        ("0.5", "1.5", 0.5, False, "1"),
    ],
)
def test_values_between_two(low: str, high: str, share: float, log: bool, value: str) -> None:
    assert plain(between(low, high, share, log=log)) == value


@given(share=st.floats(0, 1))
def test_values_between_two_are_between_them(share: float) -> None:
    value = number_of(between('"1 ms"', '"7 ms"', share, log=False))
    assert value is not None
    assert 1e6 <= value <= 7e6


def test_numbers_are_in_base_units() -> None:
    assert [number_of(text) for text in ('"5 %"', '"10 ms"', '"1 Mbit/s"', "7", "udp", "[1, 2]")] == [
        0.05, 10_000_000, 1_000_000, 7, None, None,
    ]  # fmt: skip


def options(*settings: str, seeds: str | None = None, topology: str | None = "two-hosts-wan") -> dict[str, Any]:
    return sweep_of(from_options("quickstart", topology, settings, seeds))[1]


def test_the_last_values_unit_is_that_of_all_and_names_are_short() -> None:
    found = options("loss=0,1,5 %", "calls=2", "transports=udp,tcp", "machines.server.mips=125,250", seeds="1..8")
    key = "segments.wan.impairments.both.loss"
    assert found["axes"] == {
        "loss": {"key": key, "values": ["0 %", "1 %", "5 %"]},
        "transports": {"key": "transports", "values": ["udp", "tcp"]},
        "mips": {"key": "machines.server.mips", "values": [125, 250]},
    }
    assert (found["set"], found["seeds"], found["metrics"]) == ({"calls": 2}, "1..8", {"p50": "p50(rtt_us)"})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("loss",), "--set: 'loss' is not KEY=VALUE"),
        (("loss=0 %,0 %",), "--set: loss: '0 %' is there twice"),
        (("calls=1,2", "calls=3,4"), "--set: calls: is there twice"),
    ],
)
def test_bad_settings_are_one_line(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        options(*settings)
    assert words in str(caught.value)


def test_shipped_sweeps_are_valid_and_are_no_scenarios(tmp_path: Path) -> None:
    assert names()
    for name in names():
        assert is_sweep(name)
        sweep, data = sweep_of(from_file(name))
        assert sweep_of(Source(name, "again", data, {(): Origin("again", 1)}))[0] == sweep
        assert cells_of(sweep, axes_of(sweep))
        text = (FOLDER / f"{name}.yaml").read_text()
        document = json.loads(json.dumps(YAML(typ="safe", pure=True).load(text)))
        schema = json.loads((FOLDER / "sweep.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)
        assert text.splitlines()[0] == "# yaml-language-server: $schema=sweep.schema.json"
    assert not is_sweep("quickstart")
    assert is_sweep(str(FOLDER / f"{names()[0]}.yaml"))
    with pytest.raises(BadInput, match="does not exist"):
        is_sweep(str(tmp_path / "none.yaml"))
