# SPDX-License-Identifier: Apache-2.0
"""`./sundial`, run as a user runs it, and watched from outside while it does."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks.context import Cannot
from sundial.model.catalog import ROOT

LAUNCHER = ROOT / "sundial"
POLL_S = 0.003
END_S = 30.0


def sundial(
    arguments: list[str],
    *,
    deadline_s: float,
    log: Path,
    look: Callable[[], None] | None = None,
    poll_s: float = POLL_S,
    accept: Collection[int] = (0,),
) -> float:
    """Run it to its end; wall seconds. `look` is called now and then meanwhile.

    Raises Cannot when it ends with a status that is not one of `accept`.
    """
    began = time.monotonic()
    with log.open("w") as said:
        process = subprocess.Popen(
            [str(LAUNCHER), *arguments], stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            while process.poll() is None:
                if time.monotonic() - began > deadline_s:
                    raise Cannot(f"sundial {arguments[0]} did not end within {deadline_s:g} s")
                if look is not None:
                    look()
                time.sleep(poll_s)
            took = time.monotonic() - began
        finally:
            _end(process)
    if process.returncode not in accept:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("sundial:")]
        reason = lines[-1] if lines else f"status {process.returncode}"
        raise Cannot(f"sundial {arguments[0]}: {reason}")
    return took


def _end(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does it, so that it takes its machines down; at once should that not help."""
    if process.poll() is not None:
        return
    os.kill(process.pid, signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
