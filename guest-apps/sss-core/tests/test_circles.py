# SPDX-License-Identifier: Apache-2.0
"""Circles among object files: the arrows, the circles, what is said of them."""

import subprocess
from pathlib import Path

import circles
import pytest


def test_arrows_go_from_the_user_of_a_name_to_its_home() -> None:
    defined = {"a": {"one"}, "b": {"two"}, "c": set[str]()}
    used = {"a": {"two", "memcpy"}, "b": {"one"}, "c": {"one", "two"}}
    assert circles.arrows_between(defined, used) == {
        "a": {"b": {"two"}},
        "b": {"a": {"one"}},
        "c": {"a": {"one"}, "b": {"two"}},
    }


def test_an_upcall_draws_no_arrow() -> None:
    defined = {"low": {"read"}, "high": {"notice", "start"}}
    used = {"low": {"notice"}, "high": {"read"}}
    assert circles.arrows_between(defined, used, ["notice"]) == {"low": {}, "high": {"low": {"read"}}}
    used["low"].add("start")
    assert circles.circles_in(circles.arrows_between(defined, used, ["notice"])) == [["high", "low"]]


def test_a_chain_has_no_circle_and_a_ring_is_one() -> None:
    assert circles.circles_in({"a": ["b"], "b": ["c"], "c": []}) == []
    assert circles.circles_in({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [["a", "b", "c"]]


def test_two_rings_with_one_way_between_them_are_two_circles() -> None:
    assert circles.circles_in({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]}) == [["a", "b"], ["c", "d"]]


def test_a_written_circle_is_allowed_exactly() -> None:
    arrows = {"a": {"b": {"two"}}, "b": {"a": {"one"}}, "c": dict[str, set[str]]()}
    assert circles.complaints(arrows, [["b", "a"]]) == []
    assert circles.complaints(arrows, []) == ["circle of 2 files: a b", "  a -> b: two", "  b -> a: one"]
    assert circles.complaints(arrows, [["a", "b", "c"]])[-1] == "allowed, but not there: a b c"


@pytest.mark.parametrize("flags", [[], ["-flto"]])
def test_names_are_read_from_compiled_files(tmp_path: Path, flags: list[str]) -> None:
    (tmp_path / "up.c").write_text("int down(void); extern int level; int up(void) { return level ? down() : 0; }\n")
    (tmp_path / "down.c").write_text("int up(void); int level; int down(void) { return up() + level; }\n")
    for name in ("up", "down"):
        subprocess.run(["gcc", *flags, "-c", f"{name}.c"], cwd=tmp_path, check=True)
    assert circles.symbols(tmp_path / "up.o") == ({"up"}, {"down", "level"})
    assert circles.main([str(tmp_path)]) == 1
    assert circles.main(["--allow", "up down", str(tmp_path / "up.o"), str(tmp_path / "down.o")]) == 0
