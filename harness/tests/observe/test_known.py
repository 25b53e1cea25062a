# SPDX-License-Identifier: Apache-2.0
"""The known frames by which doctor tells whether a tshark is understood."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.observe.known import misread

SPOILS = """#!{python}
import os, subprocess, sys
done = subprocess.run(["{tshark}", *sys.argv[1:]], stdin=0, stdout=subprocess.PIPE)
sys.stdout.buffer.write(done.stdout.replace({before!r}, {after!r}))
sys.exit(done.returncode)
"""


def put_tshark(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    program = folder / "bin" / "tshark"
    program.parent.mkdir()
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def test_tshark_of_this_host_shows_known_frames_as_they_are(tmp_path: Path) -> None:
    assert misread(tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [(b"\t8000\t", b"\t8.000\t", ["target_port"]), (b"1460", b"MSS 1460", ["tcp_mss"]), (b"0x1234", b"4660", [])],
)
def test_fields_in_another_form_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes, after: bytes, names: list[str]
) -> None:
    text = SPOILS.format(python=sys.executable, tshark="/usr/bin/tshark", before=before, after=after)
    put_tshark(tmp_path, monkeypatch, text)
    assert misread(tmp_path) == names


def test_tshark_that_does_not_take_the_options_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_tshark(tmp_path, monkeypatch, "#!/bin/sh\necho 'tshark: unknown option' >&2\nexit 1\n")
    with pytest.raises(BadInput, match="unknown option"):
        misread(tmp_path)
