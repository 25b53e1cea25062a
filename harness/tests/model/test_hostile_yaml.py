# SPDX-License-Identifier: Apache-2.0
"""Files that are no topology and no scenario but an attack, or a cat on the keyboard: one line each, and soon."""

from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.model.catalog import find
from sundial.model.source import DEPTH_MOST, NODES_MOST, SIZE_MOST, parse, read

ALIASES = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join(['*' + chr(97 + level)] * 10)}]\n" for level in range(9)
)
REFUSED = {
    "aliases of aliases": (ALIASES, "x:4: has too many values"),
    "an alias of what it is in": ("a: &a [*a]\n", r"x:1: \*a contains itself"),
    "a merge of what it is in": ("a: &a\n  <<: *a\n  b: 1\n", r"x:2: \*a contains itself"),
    "deep flow": ("a: " + "[" * 3000, "x:1: is nested too deeply"),
    "deep maps": ("a: " + "{a: " * 3000, "x:1: is nested too deeply"),
    "deep blocks": ("".join(" " * depth + "a:\n" for depth in range(600)), "x:33: is nested too deeply"),
    "many keys": ("".join(f"k{number}: 1\n" for number in range(60_000)), "x:5000: has too many values"),
    "many values": ("a: [" + "1," * 100_000 + "]", "x:1: has too many values"),
    "a map as a key": ("? {a: b}\n: c\n", "x:1: .* is not a valid field name"),
    "truth as a key": ("true: 1\n", "x:1: 'True' is not a valid field name"),
    "no number": ("a: .nan\n", "x:1: a: is not a number"),
    "a huge number": ("a: 0x" + "f" * 5000 + "\n", "x:1: a: is not a number"),
    "a tag": ("a: !!python/object:os.system x\n", "x:1: a: .* is not a plain value"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(BadInput, match=message) as raised:
        parse(text, "x", "x")
    assert "\n" not in raised.value.message


def test_what_is_allowed_is_read() -> None:
    at_most = "a: " + "[" * (DEPTH_MOST - 1) + "]" * (DEPTH_MOST - 1)
    assert parse(at_most, "x", "x").data["a"] == eval("[" * (DEPTH_MOST - 1) + "]" * (DEPTH_MOST - 1))
    many = "a: [" + "1," * (NODES_MOST - 3) + "]"
    assert len(parse(many, "x", "x").data["a"]) == NODES_MOST - 3
    assert parse("a: &a {x: 1.5}\nb: {<<: *a, y: 2}\nc: {}\n", "x", "x").data == {
        "a": {"x": Decimal("1.5")},
        "b": {"x": Decimal("1.5"), "y": 2},
        "c": {},
    }


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("#" * (SIZE_MOST + 1))
    with pytest.raises(BadInput, match="is too large; allowed: up to 256 KiB"):
        read(path, "large.yaml")


@pytest.mark.parametrize(
    "name", ["x" * 300, "x" * 300 + ".yaml", "a\0b", "a\0b.yaml", "../topologies/two-hosts-10base-t"]
)
def test_names_that_are_no_files(name: str) -> None:
    with pytest.raises(BadInput):
        find("scenario", name)


SHIPPED = sorted(Path(__file__).parents[3].glob("topologies/*.yaml"))


@given(data=st.data())
def test_a_mutated_topology_is_read_or_refused(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(SHIPPED)).read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(begin, min(len(text), begin + 20)))
        text = text[:begin] + data.draw(st.text("[]{}&*<:>-?!|,#'\"\n \t%a0.~", max_size=8)) + text[end:]
    with suppress(BadInput):
        parse(text, "x", "x")
