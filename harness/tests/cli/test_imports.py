# SPDX-License-Identifier: Apache-2.0
"""What a command imports before it has done anything: libraries that take long are left to those that use them."""

import json
import os
import subprocess
import sys

import click
import pytest

from sundial.cli.main import COMMANDS, sundial
from sundial.model.catalog import ROOT

MODEL = {"pydantic", "ruamel.yaml"}
MEASURED = {"matplotlib", "networkx", "numpy", "polars"}
STARTING = {"libvirt", "rich"}
SLOW = MODEL | MEASURED | STARTING

_ASK = """
import contextlib, io, json, os, sys
from sundial.cli.main import status_of, sundial
words, asked = json.loads(sys.argv[1])
with contextlib.redirect_stdout(io.StringIO()):
    status = status_of(sundial, words)
print(json.dumps([status, [name for name in asked if name in sys.modules]]))
"""


def imported(*words: str) -> set[str]:
    """What a command line that succeeds has imported of SLOW, its talk no terminal's."""
    program = [sys.executable, "-P", "-c", _ASK, json.dumps([words, sorted(SLOW)])]
    done = subprocess.run(program, cwd=ROOT / "harness", capture_output=True, text=True, check=True, env=_environment())
    status, found = json.loads(done.stdout)
    assert status == 0, done.stderr
    return set(found)


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "harness")}


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), ("ls",), ("ls", "--up"), ("down", "--help"), ("virsh",)]
)
def test_what_needs_no_model_imports_none(words: tuple[str, ...]) -> None:
    assert imported(*words) == set()


def test_a_plan_is_made_without_what_evaluates_captures() -> None:
    assert imported("run", "quickstart", "--dry-run") == MODEL


def test_what_evaluates_captures_is_imported_while_machines_run() -> None:
    """By a thread that takes no time from them, and whose faults are left to who needs the rooms."""
    program = """
import os, sys, threading
from sundial.cli import rooms
rooms.warm_evaluation()
(thread,) = set(threading.enumerate()) - {threading.current_thread()}
thread.join()
rooms_and_polars = {"polars", "sundial.report.build", "sundial.verify"}
print(os.getpriority(os.PRIO_PROCESS, 0), *sorted(rooms_and_polars & set(sys.modules)))
rooms.VERIFY = "sundial.nothing"
rooms.warm_evaluation()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, env=_environment()
    )
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert (done.stdout, done.stderr) == (f"{own} polars sundial.report.build sundial.verify\n", "")


def test_bridges_need_a_graph() -> None:
    """So the test above sees what it looks for."""
    assert "networkx" in imported("topology", "check", "pc-hub-lane")


def test_the_list_of_commands_is_that_of_the_commands() -> None:
    context = click.Context(sundial)
    loaded = {name: sundial.get_command(context, name) for name in COMMANDS}
    assert {name: command and command.name for name, command in loaded.items()} == {name: name for name in COMMANDS}
    assert sundial.get_command(context, "nothing") is None
