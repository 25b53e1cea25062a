# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run that has ended, and what of it is imported while its machines run."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, get_args

from sundial.cli.rooms import REPORT, VERIFY, named_room

Report = Literal["now", "later", "no"]
"""What `run` writes: a report with its figures, one that says them in words, or none."""
REPORTS = get_args(Report)
FIGURES = "matplotlib.figure"
VERIFIERS = ("sundial.verify.segment", "sundial.verify.workload")
"""Modules that know the verifiers of all kinds, each by its `verifiers`."""
NICE = 5
"""Of the thread that imports: below the machines, yet not so low that a busy host stops it."""


@contextlib.contextmanager
def imported_meanwhile(report: Report) -> Iterator[None]:
    """Meanwhile import what `verify_run` and such a report need, in time that the machines leave over.

    Nothing else may be imported meanwhile: two threads that enter one package from both ends deadlock. On leaving,
    no import is in progress.
    """
    left = threading.Event()
    rooms = {"no": (VERIFY,), "later": (VERIFY, REPORT), "now": (VERIFY, REPORT, FIGURES)}[report]
    steps = [partial(named_room, room) for room in rooms]
    steps[1:1] = [partial(_verifiers, room) for room in VERIFIERS]

    def work() -> None:
        os.nice(NICE)  # Linux: of this thread alone
        with contextlib.suppress(Exception):  # `verify_run` raises the same error
            for step in steps:
                if not left.is_set():
                    step()

    thread = threading.Thread(target=work, name="warming")
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _verifiers(room: str) -> Any:
    return named_room(room).verifiers()
