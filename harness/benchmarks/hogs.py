# SPDX-License-Identifier: Apache-2.0
"""Processes that compute without pause beside what is measured, as another user's compile would."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

COUNT = 2
# In a session of its own each, for the kernel shares cores out by session. Ends with its input, so that none stays
# behind whatever becomes of this process.
_LOOP = """\
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
print("busy", flush=True)
while True: pass
"""


@contextlib.contextmanager
def busy_loops(count: int = COUNT) -> Iterator[list[subprocess.Popen[bytes]]]:
    """They run from the beginning of the block to its end."""
    with contextlib.ExitStack() as ends:
        loops = []
        for _ in range(count):
            loop = subprocess.Popen(
                [sys.executable, "-c", _LOOP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            ends.enter_context(loop)  # waits, and closes its pipes
            ends.callback(loop.kill)
            loops.append(loop)
        for loop in loops:
            assert loop.stdout is not None
            loop.stdout.readline()
        yield loops
