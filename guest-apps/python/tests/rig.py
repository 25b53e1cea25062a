# SPDX-License-Identifier: Apache-2.0
"""Programs as guests start them, on the host: a folder of programs, with the package in front of its path."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
TOY = """\
import random, threading
from sundial_guest import clock, options, samples, serving

SPEC = {
    "port": options.Integer(1, 9, absent=5), "do": options.Word("batch", "raise", "draw", "serve"),
    "die_call": serving.DIE_CALL,
}
prepared = 0

def prepare():
    global prepared
    prepared += 1

def main(given):
    chosen = options.read(given, SPEC)
    if chosen.do == "raise":
        raise KeyError("lost")
    if chosen.do == "draw":
        samples.put({"type": "drawn", "number": random.random(), "prepared": prepared})
    if chosen.do == "batch":
        batch = samples.Batch()
        for _ in range(2000):
            batch.record((clock.now_ns(), clock.now_ns(), 7, None))
        batch.record((1, 2, None, 'EOFError "x"'))
        call = {"procedure": "p", "size": 1, "thread": 0, "warmup": 0}
        batch.put({"series": 0, "transport": "toy", "server": "s", **call})
    if chosen.do == "serve":
        serving.hold_signals()
        serving.outlive(chosen.die_call)
        counters = serving.Counters(chosen.die_call, port=chosen.port)
        counters.count("void")
        counters.count("void")
        threading.Thread(target=counters.count_failed).start()
        serving.serve(counters)
    return 0
"""
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",  # else the host's numpy has threads
    "SUNDIAL_APP": "toy-client",
    "SUNDIAL_STEP": "4",
    "SUNDIAL_MACHINE": "m",
    "SUNDIAL_SEED": "11",
    "SUNDIAL_CLOCK": "monotonic",
}


def wait_until(holds: Callable[[], object], patience_s: float = 60.0) -> None:
    """Until it holds. Raises TimeoutError."""
    end = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)


@dataclass
class Started:
    """A program that runs; its records go to a file."""

    process: subprocess.Popen[bytes]
    records: Path

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.records.read_text().splitlines()]


@dataclass
class Programs:
    """A guest's folder of programs, of which there is one, toy-client."""

    folder: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, module: str, *arguments: str, **more: Any) -> Started:
        """A new interpreter in the module's main function, as python-program does it."""
        records = self.folder / "records"
        code = f"from sundial_guest import zygote; zygote.PROGRAMS = zygote.Path({str(self.folder)!r}); "
        code += f"from sundial_guest.{module} import main; main()"
        path = f"{PACKAGE}:{self.folder}"
        with records.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", code, *arguments],
                env=self.environment | {"PYTHONPATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=lambda: os.dup2(stream.fileno(), 3),
                close_fds=False,
                **more,
            )
        self.started.append(process)
        return Started(process, records)

    def run(self, options: str) -> tuple[int, Started]:
        """The toy to its end: its status, and what it left."""
        started = self.start("start", "/usr/lib/sundial/toy-client", options)
        started.process.communicate(timeout=60)
        return started.process.returncode, started

    def end(self) -> None:
        """Leave no process behind."""
        for process in self.started:
            process.kill()
            process.communicate()
