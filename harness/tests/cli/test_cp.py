# SPDX-License-Identifier: Apache-2.0
"""`sundial cp` and `sundial exec` on several machines: what they ask, print and answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.errors import BadInput, RunFailed
from sundial.machines.command import CommandResult, Ended
from sundial.machines.tarstream import Copied
from sundial.plan.request import Kept, KeptMachine
from sundial.run import copying, keeper

Call = Callable[..., Result]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> tuple[Copied, list[tuple[object, ...]]]:
    made, asked = Copied(2, 3000), list[tuple[object, ...]]()
    kept = Kept("lab", "real", Path("/c"), Path("/c"), 1, (KeptMachine("n1", "linux", "", ""),))

    class Copy:
        def __init__(self, machine: str, topology: str | None, progress: Any) -> None:
            asked.append((machine, topology))
            self.kept, self.copied = kept, made

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments, **named: asked.append((name, *arguments, *named.values()))

    monkeypatch.setattr(copying, "Copy", Copy)
    return made, asked


def test_each_direction_is_asked_for(call: Call, copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = copied
    remote = copying.Remote("n1", "/a", False)
    result = call("cp", "file", "n1:/a", "--topology", "lab")
    assert (result.exit_code, result.stderr) == (0, "copied 2 entries, 3.0 kB\n")
    call("cp", "n1:/a", "file/")
    assert asked == [
        ("n1", "lab"), ("put", Path("file"), remote), ("n1", None), ("get", remote, Path("file"), True),
    ]  # fmt: skip


def test_what_is_left_out_is_named_and_ends_with_status_4(call: Call, copied: Any) -> None:
    made, _ = copied
    made.left_out.append(("x/dev", "a device or pipe"))
    result = call("cp", "n1:/a", "file")
    assert (result.exit_code, result.stderr.splitlines()[1:]) == (
        4, ["left out: x/dev: a device or pipe", "sundial: 1 entry left out, the others are copied"]
    )  # fmt: skip
    assert json.loads(call("cp", "--json", "n1:/a", "file").stdout) == {
        "from": "n1:/a", "to": "file", "entries": 2, "bytes": 3000,
        "left_out": [{"name": "x/dev", "why": "a device or pipe"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("a", "b"), "SRC, DST: neither is in a machine; allowed: one of SRC and DST as MACHINE:PATH, the other as a "
                     "local path or -"),
        (("n1:/a", "n2:/b"), "SRC, DST: both are in machines; allowed: one of SRC and DST as MACHINE:PATH, the other "
                             "as a local path or -"),
        (("n1:", "b"), "'n1:' has no path; allowed: MACHINE:PATH, such as client:/root/file"),
    ],
)  # fmt: skip
def test_bad_paths_are_one_line(call: Call, words: tuple[str, str], line: str) -> None:
    result = call("cp", *words)
    assert (result.exit_code, result.stderr) == (2, f"sundial: {line}\n")


def test_sss_core_takes_no_files(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept("lab", "real", Path("/c"), Path("/c"), 1, (KeptMachine("n1", "ssscore", "", ""),))
    monkeypatch.setattr(keeper, "find_machine", lambda machine, topology: (kept, kept.machines[0]))
    result = call("cp", "a", "n1:/b")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (
        2, "sundial: n1 boots ssscore, which takes no files while it is up"
    )  # fmt: skip
    assert "files: in the topology" in result.stderr


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def exec_all(
        machines: Sequence[str] | None,
        argv: Sequence[str],
        topology: str | None,
        seconds: float | None,
        *,
        gathered: bool,
    ) -> dict[str, Any]:
        asked.append((machines, tuple(argv), topology, seconds))
        if machines == ["n1", "n9"]:
            raise BadInput("lab has no machine 'n9'", allowed="n1, n2")
        if gathered:
            return {"n1": CommandResult(0, b"a\n", b"", 0), "n2": RunFailed("it has ended", machine="n2")}
        return {"n1": Ended(3), "n2": Ended(124, timed_out=True)}

    monkeypatch.setattr(rooms, "exec_all", exec_all)
    return asked


def test_the_status_of_several_is_the_largest(call: Call, several: list[Any]) -> None:
    result = call("exec", "--timeout", "2 s", "n1,n2", "--", "ls", "-l")
    assert (result.exit_code, result.stderr) == (124, "n2: ls did not end within 2 s\n")
    result = call("exec", "--all", "--json", "--", "ls")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["machines"] == {
        "n1": {"status": 0, "stdout": "a\n", "stderr": "", "dropped": 0},
        "n2": {**RunFailed("it has ended", machine="n2").to_json()},
    }
    call("exec", "--all", "ls", "-a")
    assert several == [
        (["n1", "n2"], ("ls", "-l"), None, 2.0), (None, ("ls",), None, None), (None, ("ls", "-a"), None, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words", [(), ("--", "ls"), ("n1,", "ls"), ("n1,n2",), ("--all",), ("--all", "--"), ("-t", "n1,n2", "sh"),
              ("n1,n9", "ls")],
)  # fmt: skip
def test_bad_machines_and_commands_are_one_line(call: Call, several: list[Any], words: tuple[str, ...]) -> None:
    result = call("exec", *words)
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
