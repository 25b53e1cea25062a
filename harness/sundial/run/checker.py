# SPDX-License-Identifier: Apache-2.0
"""The user's own program that judges a run (`expect.check`): started after the machines have ended, in a process group
of its own, which is ended with it, when its time is over, and when the run is interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from sundial import CHECK
from sundial.run.interrupts import Interrupts
from sundial.whole import whole

KEPT_BYTES = 1 << 20
"""Of each output; the rest is read and dropped."""
GRACE_S = 1.0
_PIECE = 1 << 16


def run_check(folder: Path, words: Sequence[str], seconds: float) -> None:
    """Run the program on a run directory, and write check.json there. Raises Interrupted, with nothing of it left."""
    interrupts = Interrupts()
    with interrupts.taken():
        document = {"version": 1, "argv": list(words), **_outcome([*words, str(folder)], seconds)}
    with whole(folder / CHECK) as beside:
        beside.write_text(json.dumps(document, indent=1) + "\n")


def _outcome(command: Sequence[str], seconds: float) -> dict[str, Any]:
    said: dict[str, Any] = {
        "status": None,
        "signal": None,
        "timed_out": False,
        "error": None,
        "stdout": "",
        "stderr": "",
    }
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return said | {"error": str(error)}
    try:
        outputs = _followed(process, time.monotonic() + seconds)
    finally:
        timed_out = _ended(process)
    status = process.returncode
    texts = {name: bytes(data).decode("utf-8", "replace") for name, data in outputs.items()}
    ended = {"signal": -status} if status < 0 else {"status": status}
    return said | ended | {"timed_out": timed_out} | texts


def _followed(process: subprocess.Popen[bytes], deadline: float) -> dict[str, bytearray]:
    """Its outputs until it has ended, or its time is over."""
    assert process.stdout is not None
    assert process.stderr is not None
    open_ends: dict[int, tuple[str, IO[bytes]]] = {
        process.stdout.fileno(): ("stdout", process.stdout),
        process.stderr.fileno(): ("stderr", process.stderr),
    }
    outputs: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    ended = os.pidfd_open(process.pid)
    try:
        while (rest := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([ended, *open_ends], [], [], rest)
            for number in ready:
                if number != ended and not _read(number, outputs[open_ends[number][0]]):
                    del open_ends[number]
            if ready == [ended]:  # and what it wrote has been read
                break
    finally:
        os.close(ended)
    return outputs


def _read(number: int, kept: bytearray) -> bool:
    data = os.read(number, _PIECE)
    kept += data[: KEPT_BYTES - len(kept)]
    return bool(data)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """End its process group. True if the program itself had not ended."""
    late = process.poll() is None
    for number in (signal.SIGTERM, signal.SIGKILL) if late else (signal.SIGKILL,):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S if number == signal.SIGTERM else None)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return late
