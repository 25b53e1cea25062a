# SPDX-License-Identifier: Apache-2.0
"""The launcher in the checkout's root: any folder, any link, and a clear word before set-up."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sundial import __version__
from sundial.model.catalog import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with only the launcher, in a folder with a space in its name."""
    root = tmp_path / "a checkout"
    root.mkdir()
    shutil.copy2(ROOT / "sundial", root / "sundial")
    return root


def run(*argv: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False, env=environment)


def test_before_set_up_it_says_what_to_run(checkout: Path) -> None:
    done = run(checkout / "sundial", "ls", cwd=Path("/"))
    assert done.returncode == 3
    assert done.stderr == f"sundial: the Python environment is missing; run: make -C {checkout} setup\n"


@pytest.fixture
def set_up(checkout: Path) -> Path:
    """The same checkout, set up."""
    (checkout / "harness").symlink_to(ROOT / "harness")
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return checkout


def test_it_works_from_anywhere_and_through_a_link(set_up: Path, tmp_path: Path) -> None:
    link = tmp_path / "linked"
    link.symlink_to(set_up / "sundial")
    done = run(link, "--version", cwd=Path("/"))
    assert done.returncode == 0
    assert re.fullmatch(rf"sundial  {re.escape(__version__)}(?: \([0-9a-f]{{12}}(?:-dirty)?\))?\n(?s:.*)", done.stdout)


def test_pythons_of_other_environments_do_not_reach_it(set_up: Path, tmp_path: Path) -> None:
    """ROS, Spack, conda and modules of clusters set these."""
    (tmp_path / "click.py").write_text("raise SystemExit('another click')")
    done = run(set_up / "sundial", "--version", cwd=tmp_path, PYTHONPATH=str(tmp_path), PYTHONHOME="/nonexistent")
    assert (done.returncode, done.stderr) == (0, "")


def test_bad_input_reaches_the_shell_as_status_2(checkout: Path) -> None:
    done = run(sys.executable, "-m", "sundial.cli", "run", "nothing", cwd=ROOT / "harness")
    assert done.returncode == 2
    assert done.stderr.startswith("sundial: there is no scenario 'nothing'; allowed: ")


def test_what_is_compiled_is_kept_where_nothing_may_be_beside_the_sources(tmp_path: Path) -> None:
    """Containers like to set PYTHONDONTWRITEBYTECODE."""
    harness = tmp_path / "harness"
    shutil.copytree(ROOT / "harness" / "sundial", harness / "sundial", ignore=shutil.ignore_patterns("__pycache__"))
    program = harness / "sundial" / "cli" / "__main__.py"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(harness)}
    subprocess.run([sys.executable, "-P", program, "--version"], env=environment, check=True, capture_output=True)
    kept = {path.name.partition(".")[0] for path in (tmp_path / ".sundial" / "pycache").rglob("*.pyc")}
    assert {"main", "rooms", "talk"} <= kept
    assert list(harness.rglob("__pycache__")) == []
