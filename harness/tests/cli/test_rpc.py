# SPDX-License-Identifier: Apache-2.0
"""`sundial rpc`: what it writes, and its one line about what it cannot read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sundial.cli.rpc import rpc
from sundial.interface import capture
from sundial.interface.judge import Finding, Judged
from sundial.model.catalog import LAUNCHER

Call = Callable[..., Result]
CALC = "program CALC { version FIRST { int ADD(int a, int b) = 1; } = 1; } = 0x20000001;\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calc.x").write_text(CALC)


def test_all_files_are_written_and_the_next_commands_printed(call: Call) -> None:
    result = call("rpc", "new", "calc.x")
    assert result.exit_code == 0
    assert all(Path(line).is_file() for line in result.stdout.splitlines())
    assert result.stderr.splitlines() == ["next:", "  make -C calc", f"  {'./sundial'} run calc/calc.yaml"]
    assert Path("calc/calc.x").read_text() == CALC
    assert f"exec {LAUNCHER} rpc verify" in Path("calc/check").read_text()
    document = json.loads(call("rpc", "new", "calc.x", "--out", "other/place", "--json").stdout)
    assert document["next"] == ["make -C other/place", "./sundial run other/place/calc.yaml"]
    assert "other/place/server.c" in document["files"]


def test_what_is_there_stays_and_an_update_leaves_what_is_yours(call: Call) -> None:
    assert call("rpc", "new", "calc.x").exit_code == 0
    yours = [Path("calc") / name for name in ("server.c", "client.c", "calc.yaml")]
    for path in yours:
        path.write_text("mine")
    result = call("rpc", "new", "calc.x")
    assert result.exit_code == 2
    assert "exists already; allowed: another name, or --update" in result.stderr
    Path("calc.x").write_text(CALC.replace("ADD", "SUM"))
    result = call("rpc", "new", "calc.x", "--update")
    assert result.exit_code == 0
    assert [path.read_text() for path in yours] == ["mine"] * 3
    assert not {str(path) for path in yours} & set(result.stdout.splitlines())
    assert "calc_call_SUM_1" in Path("calc/calc.h").read_text()
    yours[0].unlink()
    assert call("rpc", "new", "calc.x", "--update").exit_code == 0
    assert "SUM_1" in yours[0].read_text()


def test_the_file_may_be_in_the_folder_already(call: Call) -> None:
    result = call("rpc", "new", "calc.x", "--out", ".")
    assert result.exit_code == 0
    assert Path("calc.x").read_text() == CALC
    assert "calc.x" not in result.stdout.splitlines()


@pytest.mark.parametrize("words", [("new",), ("verify", "latest")])
def test_bad_input_is_one_line_and_nothing_is_written(call: Call, words: tuple[str, ...], tmp_path: Path) -> None:
    Path("bad.x").write_text("struct s {\n int a\n};")
    for name, line in (
        ("bad.x", "sundial: bad.x:3: '}' is not expected here; allowed: ;\n"),
        ("none.x", "sundial: none.x: No such file or directory; allowed: a file in the language of RFC 5531\n"),
    ):
        result = call("rpc", words[0], name, *words[1:])
        assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.x", "calc.x", "captures"}


def test_a_run_without_a_message_is_refused(call: Call, make_run: Callable[..., Path]) -> None:
    folder = make_run("own", nodes={}, captures={"wire/lan.pcapng": ""})
    for words, line in (
        ((), "no message at a port that its scenario names"),
        (("--port", "5"), "no message at port 5"),
    ):
        result = call("rpc", "verify", "calc.x", "own", *words)
        allowed = "allowed: the server's port with --port"
        assert (result.exit_code, result.stderr) == (2, f"sundial: {folder}: {line}; {allowed}\n")


def test_a_folder_that_cannot_be_made_is_one_line(call: Call) -> None:
    result = call("rpc", "new", "calc.x", "--out", "/proc/none")
    allowed = "a folder that can be written"
    assert (result.exit_code, result.stderr) == (
        2,
        f"sundial: /proc/none/calc.x: cannot be written: No such file or directory; allowed: {allowed}\n",
    )


def test_what_was_judged_is_printed_in_three_forms(
    call: Call, make_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run("own")
    judged = Judged([], {"ADD_1": 3, "SUB_1": 1}, {"ADD_1": [3000, 1000, 2500]}, 400)
    monkeypatch.setattr(capture, "judge_run", lambda *asked: (judged, 3))
    words = "4 calls, 400 bytes of XDR, 3 calls compared with values that clients printed"
    result = call("rpc", "verify", "calc.x", "own")
    lines = ["  ADD_1: 3 calls, 1.0 to 3.0 us, median 2.5", "  SUB_1: 1 call"]
    assert (result.exit_code, result.stdout.splitlines()) == (0, [f"pass: {words}", *lines])
    *rows, last = call("rpc", "verify", "calc.x", "own", "--lines").stdout.splitlines()
    assert [json.loads(row)["pass"] for row in rows] == [True, True]
    assert last == words
    judged.findings = [Finding(f"call {number}", "a", "b") for number in range(12)]
    result = call("rpc", "verify", "calc.x", "own")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, "  and 2 more; --json lists them")
    document = json.loads(call("rpc", "verify", "calc.x", "own", "--json").stdout)
    assert (document["verdict"], len(document["findings"]), document["compared"]) == ("fail", 12, 3)
    *rows, last = call("rpc", "verify", "calc.x", "own", "--lines").stdout.splitlines()
    assert sum(not json.loads(row)["pass"] for row in rows) == 10


def test_each_help_has_two_examples() -> None:
    for command in (rpc, *rpc.commands.values()):
        assert (command.help or "").count("\n    sundial rpc") + (command.help or "").count("\nsundial rpc") == 2
