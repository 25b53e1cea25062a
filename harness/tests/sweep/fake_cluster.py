# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster with the runs of `side`: `python -m tests.sweep.fake_cluster worker ADDRESS DIR NAME`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sundial.errors import Interrupted
from sundial.plan.request import Silence
from sundial.sweep.cluster.agent import Agent
from sundial.sweep.cluster.offer import Offer
from sundial.sweep.cluster.serve import schedule, work
from sundial.sweep.place import Place
from sundial.sweep.store import Store
from tests.sweep.bench import sweeping
from tests.sweep.side import MAKING, PARTS

GRID: dict[str, Any] = {
    "topology": "two-hosts-wan",
    "axes": {"loss": {"key": "loss", "values": ["0 %", "5 %"]}},
    "seeds": "1..10",
    "check": "20 %",
}


def offering(name: str, host: str, slots: int = 1, parts: dict[str, str] | None = None) -> Callable[[Store], Offer]:
    """What a fake worker is."""
    return lambda store: Offer(name, host, slots, store.id, PARTS if parts is None else parts)  # type: ignore[arg-type]


def say(text: str) -> None:
    print(text, flush=True)


def main(kind: str, address: str, folder: str = "", name: str = "", certs: str = "") -> None:
    own = Path(certs) if certs else None
    if kind == "scheduler":
        schedule(address, Path(folder) if folder else None, say)
    elif kind == "client":
        sweeping(Path(folder), GRID, place=Place(None, address)).perform(MAKING, Silence())
    else:
        agent = Agent(MAKING, Path(folder) / "store", Path(folder) / "images", offering(name, f"host of {name}"))
        work(address, own, agent, say)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Interrupted:
        sys.exit(130)
