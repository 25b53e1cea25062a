# SPDX-License-Identifier: Apache-2.0
"""What a command imports before it has done anything: libraries that take long are left to those that use them."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from sundial.cli import evaluation
from sundial.cli.main import COMMANDS, sundial
from sundial.machines.waiting import wait_until
from sundial.model.catalog import ROOT
from tests.verify.bed import RPC_PORT, Bed

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


@pytest.mark.parametrize("words", [("--help",), ("ls",), ("ls", "--up"), ("down", "--help"), ("virsh",)])
def test_what_needs_no_model_imports_none(words: tuple[str, ...]) -> None:
    assert imported(*words) == set()


def test_versions_need_only_what_is_asked_for_its_own() -> None:
    assert imported("--version") == {"libvirt"}


def test_a_plan_is_made_without_what_evaluates_captures() -> None:
    assert imported("run", "quickstart", "--dry-run") == MODEL


def test_machines_are_started_without_what_evaluates_captures() -> None:
    """It is imported while they run."""
    assert not MEASURED & _imported_by("sundial.run.runner")


def test_runs_are_verified_and_figures_said_in_words_without_what_draws_them(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 64, RPC_PORT, 700)
    bed.udp_call(64, 0x11)
    then = """
from pathlib import Path
from sundial.report.build import build_report
from sundial.verify import segment, workload
segment.verifiers(), workload.verifiers()
build_report(Path(sys.argv[2]), drawn=sys.argv[3] == "drawn")
"""
    run = str(bed.write())
    assert _imported_by("sundial.verify", then, run, "words") & MEASURED == {"numpy", "polars"}
    assert "matplotlib" in _imported_by("sundial.verify", then, run, "drawn")


def _imported_by(module: str, then: str = "", *words: str) -> set[str]:
    """What of SLOW is imported by a module, and by what is done then."""
    ask = (
        f"import json, sys, {module}\n{then}\nprint([name for name in json.loads(sys.argv[1]) if name in sys.modules])"
    )
    program = [sys.executable, "-P", "-c", ask, json.dumps(sorted(SLOW)), *words]
    done = subprocess.run(program, cwd=ROOT / "harness", capture_output=True, text=True, check=True, env=_environment())
    return set(json.loads(done.stdout.replace("'", '"')))


def test_rooms_that_evaluate_captures_are_imported_at_a_low_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a thread. An error of an import is ignored there."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, more in (
        ("a_verifier", ""),
        ("its_kinds", "def verifiers(): verifiers.seen = threading.get_ident()"),
        ("a_reporter", "raise ImportError"),
    ):
        program = f"import os, threading\nseen = os.getpriority(os.PRIO_PROCESS, 0), threading.get_ident()\n{more}"
        (tmp_path / f"{name}.py").write_text(program)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setattr(evaluation, "VERIFY", "a_verifier")
    monkeypatch.setattr(evaluation, "VERIFIERS", ("its_kinds",))
    monkeypatch.setattr(evaluation, "REPORT", "a_reporter")
    threads = set(threading.enumerate())
    with evaluation.imported_meanwhile("later"):
        for thread in set(threading.enumerate()) - threads:
            thread.join()
    priority, importer = sys.modules.pop("a_verifier").seen
    assert (priority, os.getpriority(os.PRIO_PROCESS, 0)) == (own + evaluation.NICE, own)
    assert importer == sys.modules.pop("its_kinds").verifiers.seen != threading.get_ident()


def test_no_import_is_in_progress_when_the_machines_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is another begun: the report waits until `build_report` asks for it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "a_slow_verifier.py").write_text("import time\nbegun = True\ntime.sleep(0.3)\nended = True\n")
    (tmp_path / "a_late_reporter.py").write_text("")
    monkeypatch.setattr(evaluation, "VERIFY", "a_slow_verifier")
    monkeypatch.setattr(evaluation, "REPORT", "a_late_reporter")
    with evaluation.imported_meanwhile("later"):
        wait_until(lambda: hasattr(sys.modules.get("a_slow_verifier"), "begun"), seconds=60, what="the import")
    assert sys.modules.pop("a_slow_verifier").ended
    assert "a_late_reporter" not in sys.modules


def test_bridges_need_a_graph() -> None:
    """So the test above sees what it looks for."""
    assert "networkx" in imported("topology", "check", "pc-hub-lane")


def test_the_list_of_commands_is_that_of_the_commands() -> None:
    context = click.Context(sundial)
    loaded = {name: sundial.get_command(context, name) for name in COMMANDS}
    assert {name: command and command.name for name, command in loaded.items()} == {name: name for name in COMMANDS}
    assert sundial.get_command(context, "nothing") is None
