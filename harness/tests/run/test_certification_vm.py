# SPDX-License-Identifier: Apache-2.0
"""The certification of this host's emulator, with booted guests: it passes, and fails with a clock that is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.model.catalog import ROOT
from sundial.run.places import Places
from tests.run.live import END_S, HARNESS, VARIABLES, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(1800)]

CERTIFY = """
import sys
from pathlib import Path
from sundial.run.places import Places
plugin, folder = map(Path, sys.argv[1:])
Places.plugin = property(lambda self: plugin)
Places.certificates = property(lambda self: folder / "certificates.json")
Places.trials = property(lambda self: folder / "trials")
sys.argv[1:] = ["doctor", "--certify"]
from sundial.cli.main import main
main()
"""
"""With a plugin of its own, and remembered elsewhere."""
SHORTENED = "    countdown->left = (uint16_t)instructions;\n}\n\nvoid blocks_shorten"
LIE = SHORTENED.replace("}", "    static unsigned looks;\n    if (++looks % 100 == 0)\n        budget->extra--;\n}", 1)
"""In one look of a hundred an instruction is not accounted."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests("linux", "ssscore")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where QEMU's user may enter."""
    with tempfile.TemporaryDirectory(dir=Places().private) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def certify(plugin: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", CERTIFY, str(plugin), str(folder)]
    done = subprocess.run(
        argv, cwd=HARNESS, env=VARIABLES, capture_output=True, text=True, check=False, timeout=2 * END_S
    )
    assert (folder / "certificates.json").is_file(), done.stderr
    return done


def test_this_emulator_is_certified(folder: Path) -> None:
    done = certify(Places().plugin, folder)
    assert done.returncode == 0, done.stderr
    assert not (folder / "trials").exists()


def test_a_clock_that_lies_is_refused_with_the_first_difference(folder: Path) -> None:
    source = folder / "harness" / "clock"
    for part in (Path("harness", "clock"), Path("guest-apps", "sss-core", "include")):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("build", "tests"))
    blocks = source / "blocks.c"
    assert blocks.read_text().count(SHORTENED) == 1
    blocks.write_text(blocks.read_text().replace(SHORTENED, LIE))
    subprocess.run(["make", "-s", "-C", str(source)], check=True)
    done = certify(source / "build" / "sundial-clock.so", folder)
    assert done.returncode == 3, done.stderr
    assert "does not keep virtual time: quickstart, gates alone: wire/lan.pcapng differs from byte" in done.stderr
    assert (folder / "trials" / "quickstart" / "gates-alone").is_dir()
