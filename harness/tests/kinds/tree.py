# SPDX-License-Identifier: Apache-2.0
"""A copy of the checkout with one kind of each family more: `added` holds nothing but new files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sundial.machines.recipes import RECIPE, RELEASE

CHECKOUT = Path(__file__).resolve().parents[3]
ADDED = Path(__file__).with_name("added")
COPIED = (
    "buildroot-configs",
    "guest-apps",
    "harness/scenarios",
    "harness/sundial",
    "harness/wireshark",
    "images",
    "topologies",
)
LINKED = (".venv", "harness/clock", "harness/confine", "harness/tests", "images/out/cache")
"""What is only read, or may be shared."""
_LEAVINGS = shutil.ignore_patterns("build", "out", "tests", ".*")


def left_out(folder: str, names: list[str]) -> set[str]:
    """Folders that builds leave, but what is compiled; an image's `build` is a file and is copied."""
    return {name for name in _LEAVINGS(folder, names) if name != "build" or (Path(folder) / name).is_dir()}


_ANSWERS = """
import json, sys
from click.testing import CliRunner
from sundial.cli.main import sundial
results = [CliRunner().invoke(sundial, words, prog_name="sundial") for words in json.loads(sys.argv[1])]
print(json.dumps([(result.exit_code, result.stdout, result.stderr) for result in results]))
"""
_OFFERED = """
import json, sys
from click.shell_completion import BashComplete
from sundial.cli.main import sundial
complete = BashComplete(sundial, {}, "sundial", "_SUNDIAL_COMPLETE")
print(json.dumps([
    [item.value for item in complete.get_completions(words[:-1], words[-1])] for words in json.loads(sys.argv[1])
]))
"""


class Answer(NamedTuple):
    """What a command answers."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Tree:
    """The copy. Commands run in it as in a checkout of its own."""

    root: Path

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        # Kinds do not depend on how images are made, and Buildroot would build on in the cache, which is shared.
        environment = {name: value for name, value in os.environ.items() if name not in (RECIPE, RELEASE)}
        paths = {"PYTHONPATH": str(self.root / "harness")}
        return subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env={**environment, "NO_COLOR": "1", "COLUMNS": "200", **paths},
            capture_output=True,
            text=True,
            check=False,
        )

    def sundial(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "sundial.cli", *words)

    def answers(self, *commands: Sequence[str]) -> list[Answer]:
        """What several commands answer, in one process: starting Python takes most of their time."""
        return [Answer(*answer) for answer in self._asked(_ANSWERS, commands)]

    def offered(self, *typed: Sequence[str]) -> list[list[str]]:
        """What the shell offers for the last word of each."""
        return self._asked(_OFFERED, typed)

    def _asked(self, script: str, words: Sequence[Sequence[str]]) -> Any:
        done = self.python("-c", script, json.dumps(words))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def copy_checkout(root: Path) -> Tree:
    """A copy below `root`, which does not exist yet, with what is added. No file of the checkout is replaced."""
    for name in COPIED:
        shutil.copytree(CHECKOUT / name, root / name, ignore=left_out)
    for name in LINKED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(CHECKOUT / name)
    for path in sorted(ADDED.rglob("*")):
        target = root / path.relative_to(ADDED)
        if path.is_file() and "__pycache__" not in path.parts:
            assert not target.exists(), f"{target} is there already"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
    return Tree(root)
