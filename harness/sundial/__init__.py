# SPDX-License-Identifier: Apache-2.0
"""Sundial: RPC systems on emulated networks in virtual time, every frame recorded and proven.

The rooms and the one direction in which they import one another are drawn in ARCHITECTURE.md.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

# Of polars' allocator, before polars is there: for some seconds, memory that one thread gave back is taken again by any
# other. Pages that the kernel has to find and clear took a quarter of a verification's time.
os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:1,dirty_decay_ms:2000")

EPOCH_NS = 946_684_800 * 10**9
"""2000-01-01T00:00:00Z in ns since 1970: where a capture puts zero of the run's time axis under virtual time."""

SAMPLES_LINE_BYTES = 1 << 20
"""No line of a guest's samples is longer."""

NOTES = "notes.json"
"""In a run directory: what the user wrote about the run."""
CHECK = "check.json"
"""In a run directory: what the program of `expect.check` said."""

if TYPE_CHECKING:
    from sundial.data.run import Run, open_run

__all__ = ["CHECK", "EPOCH_NS", "NOTES", "SAMPLES_LINE_BYTES", "Run", "__version__", "open_run"]
_OF_NOTEBOOKS = {"Run": "sundial.data.run", "open_run": "sundial.data.run"}
"""What a notebook imports from here; it is imported when it is asked for, because commands must start quickly."""


def __getattr__(name: str) -> object:
    if name not in _OF_NOTEBOOKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_NOTEBOOKS[name]), name)
