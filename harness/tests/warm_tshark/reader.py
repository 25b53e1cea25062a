# SPDX-License-Identifier: Apache-2.0
"""tshark as a user calls it on a file, with or without a dissector in Lua: a warm one has registered it before."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from sundial.cli.checks import AS_NOBODY
from tests.warm_tshark.client import WarmTshark

UNKNOWN_PROGRAMS = ("-o", "rpc.dissect_unknown_programs:TRUE")
_at_exit = contextlib.ExitStack()
atexit.register(_at_exit.close)


@cache
def unprivileged() -> tuple[str, ...]:
    """Words in front of tshark, which loads no dissector in Lua for root."""
    return AS_NOBODY if os.geteuid() == 0 else ()


class Reader:
    """What tshark prints about a capture."""

    def __init__(self, folder: Path, script: Path | None) -> None:
        scripts = () if script is None else ("-X", f"lua_script:{script}")
        # A second pass needs a file that can be read twice, which `-r -` would not take.
        begun_with = (*scripts, "-n", "-r", "/dev/stdin", *UNKNOWN_PROGRAMS)
        self._tshark = WarmTshark(folder, begun_with, unprivileged())
        self._command = ("tshark", *begun_with)

    def __call__(self, capture: Path, *options: str) -> str:
        """By a child of the warm tshark."""
        with capture.open("rb") as file, self._tshark.start([*self._command, *options], os.environ, file) as child:
            printed, said = child.stdout.read(), child.stderr.read()
        return _checked(printed, said, child.returncode)

    def by_itself(self, capture: Path, *options: str) -> str:
        """By a tshark that is started for this capture alone."""
        with capture.open("rb") as file:
            command = [*unprivileged(), *self._command, *options]
            done = subprocess.run(command, stdin=file, capture_output=True, check=False)
        return _checked(done.stdout, done.stderr, done.returncode)

    def close(self) -> None:
        """Ends the warm tshark."""
        self._tshark.close()


@cache
def reader(script: Path | None = None) -> Reader:
    """The reader with the dissector `script`, one for all tests of this process."""
    folder = _at_exit.enter_context(tempfile.TemporaryDirectory(prefix="warm-tshark-"))
    return _at_exit.enter_context(contextlib.closing(Reader(Path(folder), script)))


def _checked(printed: bytes, said: bytes, status: int | None) -> str:
    assert (status, b"Lua" in said) == (0, False), said
    return printed.decode()
