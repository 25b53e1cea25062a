# SPDX-License-Identifier: Apache-2.0
"""How much of its time a saturated hub carries frames, beside what Metcalfe and Boggs computed in 1976.

The figures are the model's, in virtual time and with fixed seeds, so they are the same on every host. A frame counts
with its preamble, its frame check sequence and the gap after it.

The formula supposes that each of Q stations takes a slot with the probability 1/Q, and that a slot is lost whenever not
exactly one does. With the real backoff one station sends many frames in a row ("capture"), so the model is above it,
most for short frames. Boggs, Mogul and Kent measured the same on cables in 1988 ("Measured Capacity of an Ethernet:
Myths and Reality"); their printed figures could not be had, so none stand here.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from benchmarks.context import Cannot, Context
from benchmarks.figure import Figure, Outcome, Peer
from sundial.run.places import Places

SUBJECT = "a saturated hub of 10 Mb/s: share of the time that carries frames"
SLOT_BITS = 512
OVERHEAD_BITS = 8 * (8 + 12)
"""Preamble and gap."""
DEADLINE_S = 600


def measure(context: Context) -> Iterator[Outcome]:
    """2 to 24 stations that always have a frame to send, 64 to 1518 bytes."""
    program = Places().fabric
    if not program.is_file():
        raise Cannot("sundial-fabric is not built: make setup")
    span_ms = context.pick(200, 4000)
    command = [str(program), "saturation", "--span-ms", str(span_ms)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        raise Cannot(f"sundial-fabric saturation: {done.stderr.strip()}")
    for cell in json.loads(done.stdout)["cells"]:
        stations, size = cell["stations"], cell["frame_bytes"]
        shares = tuple(run["utilisation"] for run in cell["runs"])
        peer = Peer("Metcalfe and Boggs", metcalfe_boggs(stations, 8 * size + OVERHEAD_BITS))
        yield Figure(SUBJECT, f"{stations} stations, {size} B", "", shares, peer)


def metcalfe_boggs(stations: int, frame_bits: float, slot_bits: float = SLOT_BITS) -> float:
    """E = (P/C) / (P/C + W T): a frame of P/C, then on average W slots of T until one station alone has one.

    "Ethernet: Distributed Packet Switching for Local Computer Networks", CACM 19(7), 1976.
    """
    alone = (1 - 1 / stations) ** (stations - 1)
    slots = (1 - alone) / alone
    return frame_bits / (frame_bits + slots * slot_bits)
