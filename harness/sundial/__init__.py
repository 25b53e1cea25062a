# SPDX-License-Identifier: Apache-2.0
"""Sundial: RPC systems on emulated networks in virtual time, every frame recorded and proven.

The rooms and the one direction in which they import one another are drawn in ARCHITECTURE.md.
"""

__version__ = "0.1.0"

EPOCH_NS = 946_684_800 * 10**9
"""2000-01-01T00:00:00Z in ns since 1970: where a capture puts zero of the run's time axis under virtual time."""

SAMPLES_LINE_BYTES = 1 << 20
"""No line of a guest's samples is longer."""

NOTES = "notes.json"
"""In a run directory: what the user wrote about the run."""
