# SPDX-License-Identifier: Apache-2.0
"""The generator of frames (frames/): built when needed, run between two stations, its answer decoded."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.context import STORE, Cannot

SOURCES = Path(__file__).parent / "frames"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
DEADLINE_S = 120


@dataclass(frozen=True)
class Flight:
    """What became of the frames of one run of the generator."""

    sent: int
    received: int
    disordered: int
    seconds: float
    """From the first arrival to the last."""
    latency_ns: list[int]
    """From before the sending call to after the receiving one; in order of arrival."""

    @property
    def frames_per_second(self) -> float:
        return (self.received - 1) / self.seconds

    @property
    def loss(self) -> float:
        return 1 - self.received / self.sent


def fly(stations: tuple[str, str], *, size: int, count: int, interval_ns: int = 0, window: int = 0) -> Flight:
    """Send `count` frames from one station to another. Raises Cannot where hardly any arrive."""
    command = [str(build()), *stations, *(str(each) for each in (size, count, interval_ns, window))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        raise Cannot(f"the generator did not end within {DEADLINE_S} s") from None
    if done.returncode != 0:
        raise Cannot(f"the generator: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    if said["received"] < 2:
        raise Cannot(f"{said['received']} of {said['sent']} frames arrived")
    seconds = (said["last_ns"] - said["first_ns"]) / 1e9
    return Flight(said["sent"], said["received"], said["disordered"], seconds, said["latency_ns"])


def build() -> Path:
    """The program, compiled again when its source has changed. Raises Cannot."""
    program = STORE / "frames"
    sources = sorted(SOURCES.glob("*.c"))
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    if program.is_file() and program.stat().st_mtime > newest:
        return program
    compiler = shutil.which("gcc")
    if compiler is None:
        raise Cannot("gcc is not installed")
    STORE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [compiler, *FLAGS, "-o", str(program), *map(str, sources)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Cannot(f"the generator does not compile: {done.stderr.splitlines()[0]}")
    return program
