# SPDX-License-Identifier: Apache-2.0
"""Context switches that programs count of themselves (getrusage), beside the times of their calls.

Nothing else counts them. But a process that waits for an answer gives up the CPU at least once, and so does a server
with one connection that waits for the next request. It waits if its machine is at least as fast as the other: what it
does between sending and waiting takes fewer instructions than what the other does to answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.segment import network_of

FIELD = "context_switches"
UNPROVEN = (
    "context switches of programs; only that there is one at least for each call that waited, under the virtual clock"
    " and on a machine that is at least as fast as the other end's"
)


class Speeds:
    """Of the machines of one run."""

    def __init__(self, run: RunDirectory) -> None:
        network = network_of(run)
        self._exact = run.clock == "virtual"
        self._mips = {} if network is None else {node.name: node.mips for node in network.nodes}

    def waits(self, machine: str, other: str) -> bool:
        """Whether a program on a machine surely waits for one on the other. Under the real clock none does."""
        return self._exact and self._mips.get(machine, 0) >= self._mips.get(other, 0)


def check_batch(where: str, line: Mapping[str, Any], answered: int, *, waits: bool) -> Iterator[Finding]:
    """What a client says of the measured calls of a batch, of which so many were `answered`; `waits`: as of Speeds."""
    least = answered if waits else 0
    if not _at_least(line.get(FIELD), least):
        yield Finding(None, f"{where} {FIELD}", f"{least} or more", str(line.get(FIELD)))


def check_counters(where: str, line: Mapping[str, Any], called: Mapping[str, int], *, waits: bool) -> Iterator[Finding]:
    """What a server says while functions were called, so often each; `waits`: as of Speeds, and over one connection. It
    does not wait before the first call."""
    said = line.get(FIELD)
    names = sorted(name for name, count in called.items() if count)
    if not isinstance(said, Mapping) or sorted(said) != names:
        seen = ", ".join(sorted(said)) if isinstance(said, Mapping) else str(said)
        yield Finding(None, f"{where} {FIELD}", f"of {', '.join(names) or 'nothing'}", seen)
        return
    for name in names:
        least = called[name] - 1 if waits else 0
        if not _at_least(said[name], least):
            yield Finding(None, f"{where} {FIELD} of {name}", f"{least} or more", str(said[name]))


def _at_least(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
