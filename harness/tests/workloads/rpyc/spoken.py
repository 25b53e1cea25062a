# SPDX-License-Identifier: Apache-2.0
"""What the library has said: streams of both ends, recorded from the guests' programs on a host's loopback.

`golden/VERSION-CONTAINER-VARIANT.z` have two calls of each of the twelve functions; the programs ran unchanged, under
Python 3.11 and with numpy 1.24.2, and wrote down what they gave to their sockets. A file is zlib: the length of the
client's stream in four bytes, that stream, and the server's.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from sundial.workloads.functions import FUNCTIONS
from sundial.workloads.rpyc.expect import version
from sundial.workloads.rpyc.expect_sides import Calls
from sundial.workloads.rpyc.verify_replay import Replay

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.z"))
CALLS = 2
Streams = dict[bool, bytes]


def streams(name: str) -> Streams:
    """What both ends sent; False: the client."""
    data = zlib.decompress((GOLDEN / f"{name}.z").read_bytes())
    end = 4 + int.from_bytes(data[:4], "big")
    return {False: data[4:end], True: data[end:]}


def calls(container: str, variant: str, count: int = CALLS) -> list[Calls]:
    """All functions, each so often, with ids from 0."""
    return [
        Calls(function, range(place * count, (place + 1) * count), container, variant)
        for place, function in enumerate(FUNCTIONS)
    ]


def replay(name: str, data: Streams | None = None, *, over: bool = True) -> Replay:
    """Streams against both machines."""
    library, container, variant = name.split("-")
    found = Replay(
        version(library), calls(container, variant), streams(name) if data is None else data, {False: over, True: over}
    )
    found.run()
    return found


def events(name: str) -> list[tuple[bool, bytes]]:
    """All messages in an order in which they can have been sent: each after those that its side had read."""
    found, data = replay(name), streams(name)
    lines = {reply: track.lines for reply, track in found.tracks.items()}
    done, order = {False: 0, True: 0}, []
    while any(done[reply] < len(lines[reply]) for reply in done):
        for reply in done:
            while done[reply] < len(lines[reply]) and lines[reply][done[reply]].needed <= done[not reply]:
                line = lines[reply][done[reply]]
                order.append((reply, data[reply][line.begin : line.end]))
                done[reply] += 1
    return order
