#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the clients of `store.yaml` saw one register: `register-history.py RUN`, with an exit status.

Each operation must take effect at an instant between its begin and its end, so that each read returns the last write
before it (Herlihy and Wing, 1990). A write that its client gave up may take effect later, or never. The instants are
those at which the machine read the client's output. Under the virtual clock all machines have one axis.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

CLIENT, NEVER = "client", float("inf")


class Operation(NamedTuple):
    """One read or write of a client; times in ns since zero of the run."""

    client: str
    kind: str
    value: str
    begin: float
    end: float


def operations(client: str, lines: Sequence[tuple[int, str]]) -> Iterator[Operation]:
    """Of a client, from its lines with their times. Raises ValueError for lines in another order."""
    for (begin, asked), (end, answered) in zip(lines[::2], lines[1::2], strict=True):
        kind, _, value = asked.strip().partition(" ")
        word, _, got = answered.strip().partition(" ")
        if (kind, word) == ("read", "got"):
            yield Operation(client, kind, got, begin, end)
        elif kind == "write" and word in ("wrote", "gave-up"):
            yield Operation(client, kind, value, begin, end if word == "wrote" else NEVER)
        elif (kind, word) != ("read", "gave-up"):
            raise ValueError(f"{client}: {word!r} after {kind!r}")


def explained(history: Sequence[Operation]) -> int:
    """How many operations the longest order that explains them has; all: the history is linearizable."""
    must = frozenset(number for number, each in enumerate(history) if each.end < NEVER)
    best = 0
    seen: set[tuple[frozenset[int], str]] = set()
    waiting: list[tuple[frozenset[int], str]] = [(frozenset(), "")]
    while waiting:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        done, value = state
        best = max(best, len(done & must))
        if must <= done:
            return len(must)
        left = [number for number in range(len(history)) if number not in done]
        first_end = min(history[number].end for number in left)
        for number in left:
            each = history[number]
            if each.begin <= first_end and (each.kind == "write" or each.value == value):
                waiting.append((done | {number}, each.value))
    return best


def read(run: Path) -> list[Operation]:
    """All operations of a run, in order of their begins."""
    nodes = json.loads((run / "run.json").read_bytes())["nodes"]
    found: list[Operation] = []
    for machine, node in nodes.items():
        lines: list[tuple[int, str]] = []
        rest = ""
        records = map(json.loads, (run / "nodes" / machine / "samples.jsonl").read_text().splitlines())
        for record in (each for each in records if isinstance(each, dict) and each["type"] == "output"):
            if (record["name"], record["stream"]) == (CLIENT, "stdout"):
                *whole, rest = (rest + base64.b64decode(record["data"]).decode()).split("\n")
                lines += [(record["at"] - node["zero_ns"], text) for text in whole]
        found += operations(machine, lines)
    return sorted(found, key=lambda each: each.begin)


def main(run: Path) -> int:
    """Exit status: 0 if an order of all operations explains what was read."""
    history = read(run)
    unknown = sum(each.end == NEVER for each in history)
    known = len(history) - unknown
    count = explained(history)
    words = f"{known} operations and {unknown} that were given up"
    print(json.dumps({"check": "operations", "pass": known > 0, "words": words}))
    if count == known:
        print("an order explains all that was read")
        return 0
    print(f"no order explains what was read: {count} of {known} operations at most")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
