# SPDX-License-Identifier: Apache-2.0
"""Boots a built image and prints what a Sun RPC echo over loopback costs: instructions of both ends and the kernel.

The arguments are those of measure_boot: the image, --recipe R, words for the kernel's command line.
"""

import sys
import tempfile
from pathlib import Path

from testing.guest import ICOUNT, Guest, interface, job
from testing.measure_boot import NS_PER_INSTRUCTION, Asked

CALLS = 2000
SIZES = (0, 1024)
TRANSPORTS = ("udp", "tcp")


def instructions(folder: Path, asked: Asked) -> dict[tuple[str, int], float]:
    """Mean of the calls of each transport and size, from the client's call to its return."""
    options = {
        "server": "10.0.0.2",
        "procedure": "echo",
        "series": 0,
        "sizes": list(SIZES),
        "calls": CALLS,
        "warmup": 10,
    }
    calls = job(
        "server",
        [interface(2, (1,))],
        clock="tsc",
        services=[
            {"app": "rpcbind", "options": {}},
            {"app": "echo-server", "options": {"transports": list(TRANSPORTS)}},
        ],
        steps=[{"app": "echo-client", "options": {**options, "transport": name}} for name in TRANSPORTS],
    )
    with Guest(folder / "guest", asked.image, calls, ICOUNT, cmdline=asked.cmdline) as guest:
        guest.start((folder / "a", folder / "b"))
        guest.wait_for("done")
        batches = guest.batches()
    means = {}
    for header, rows in batches:
        measured = [row["end"] - row["start"] for row in rows if row["ok"] == 1][-CALLS:]
        means[header["transport"], header["size"]] = sum(measured) / len(measured) / NS_PER_INSTRUCTION
    return means


def main() -> None:
    asked = Asked.of(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        for (transport, size), mean in instructions(Path(name), asked).items():
            print(f"{transport} {size} B: {mean:.0f} instructions")


if __name__ == "__main__":
    main()
