# SPDX-License-Identifier: Apache-2.0
"""The program of the host that a scenario names in `expect.check`: made absolute, and found before anything starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sundial.model.invalid import Invalid
from sundial.model.scenario import Scenario
from sundial.model.source import Source

_FIELD = ("expect", "check")


def make_check_absolute(source: Source, command_line: str) -> None:
    """The path of the program. It begins at the folder of the file that names it, or at the working directory if it is
    from the `command_line` (the name of that origin). A name without / stays."""
    expect = source.data.get("expect")
    words = expect.get("check") if isinstance(expect, dict) else None
    if not isinstance(words, list) or not words or not isinstance(words[0], str) or "/" not in words[0]:
        return
    written = source.origin((*_FIELD, 0)).file
    folder = Path() if written == command_line else Path(written).parent
    words[0] = os.path.abspath(folder / words[0])  # noqa: PTH100  (resolve follows links)


def check_program(scenario: Scenario) -> Iterator[Invalid]:
    """Invalid fields about it."""
    if scenario.expect.check is None:
        return
    program = scenario.expect.check[0]
    if shutil.which(program) is not None:
        return
    if "/" not in program:
        yield Invalid((*_FIELD, 0), f"{program!r} is not in PATH", "a program in PATH, or a path with /")
    elif Path(program).is_file():
        yield Invalid((*_FIELD, 0), f"{program} is not executable", f"chmod +x {program}")
    else:
        yield Invalid((*_FIELD, 0), f"{program} is not a file", "a program on this host")
