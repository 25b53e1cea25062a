# SPDX-License-Identifier: Apache-2.0
"""What tc-netem(8) does to time, and its arguments as tc reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from sundial.verify.wire import Line, Numbers

LIMIT = 1000
"""Frames in netem's queue where nothing is written (tc-netem(8))."""
SIGMAS = {"uniform": (-1.0, 1.0), "normal": (-4.0, 3.53), "pareto": (-0.67, 4.0), "paretonormal": (-1.51, 3.89)}
"""The least and the greatest of iproute2's tables of each distribution (normal.dist and so on), divided by 8192: so
many times the jitter is the most by which a delay differs."""


@dataclass(frozen=True)
class Effects:
    """Impairments of one direction, as bounds and steps of time, and what may become of a frame."""

    shortest_ns: int = 0
    longest_ns: int = 0
    loses: bool = False
    doubles: bool = False
    corrupts: bool = False
    reorders: bool = False
    gap: int = 1
    shaper: Line | None = None
    overhead: int = 0
    cell: int = 0
    cell_overhead: int = 0
    limit: int = LIMIT

    @property
    def exact(self) -> bool:
        """Whether nothing is drawn but fates: then each time is known."""
        return not self.reorders and self.shortest_ns == self.longest_ns

    def delayed(self, delay_ns: int, jitter_ns: int, distribution: str) -> Effects:
        """With the bounds of a delay. A negative one shortens the time in the shaper; without that there is none."""
        least, most = SIGMAS[distribution]
        return replace(
            self,
            shortest_ns=delay_ns + int(np.floor(least * jitter_ns)),
            longest_ns=delay_ns + int(np.ceil(most * jitter_ns)),
        )

    def shaped_bits(self, length: Numbers) -> Numbers:
        """What the shaper counts of a frame (packet_time_ns): its bytes and overhead, or whole cells of these."""
        total = length + self.overhead
        if self.cell:
            total = -(-total // self.cell) * (self.cell + self.cell_overhead)
        return np.asarray(np.maximum(total, 0) * 8)


_TIMES = {"": 1_000, "us": 1_000, "usec": 1_000, "usecs": 1_000, "ms": 10**6, "msec": 10**6, "msecs": 10**6,
          "s": 10**9, "sec": 10**9, "secs": 10**9}  # fmt: skip
_RATES = {"": 1, "bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9, "bps": 8, "kbps": 8 * 10**3, "mbps": 8 * 10**6}
_NUMBER = r"(\d+(?:\.\d+)?)([a-z]*)"
_SHARE = re.compile(r"\d+(?:\.\d+)?%?")


class _NotKnownError(Exception):
    """Something that this reader does not know."""


def read_arguments(text: str) -> Effects | None:
    """The arguments of `tc qdisc ... netem`; None where something stands there that this reader does not know."""
    words = text.lower().split()
    try:
        return _effects(words)
    except (_NotKnownError, LookupError, ValueError):
        return None


def _effects(words: list[str]) -> Effects:
    found, delay, jitter, distribution = Effects(), 0, 0, "uniform"
    while words:
        match words.pop(0):
            case "limit":
                found = replace(found, limit=int(words.pop(0)))
            case "delay" | "latency":
                delay = _time(words.pop(0))
                jitter = _time(words.pop(0)) if _begins_with_a_number(words) else 0
                _share(words, most=1)
            case "distribution":
                distribution = words.pop(0)
            case "loss" | "drop":
                if words[:1] == ["random"]:
                    del words[0]
                elif not _begins_with_a_number(words):
                    raise _NotKnownError
                found = replace(found, loses=bool(_share(words, most=2)))
            case "duplicate":
                found = replace(found, doubles=bool(_share(words, most=2)))
            case "corrupt":
                found = replace(found, corrupts=bool(_share(words, most=2)))
            case "reorder":
                found = replace(found, reorders=bool(_share(words, most=2)))
            case "gap":
                found = replace(found, gap=int(words.pop(0)))
            case "rate":
                rate_bps = _rate(words.pop(0))
                sizes = [int(words.pop(0)) for _ in range(3) if _begins_with_a_number(words)]
                overhead, cell, cell_overhead = (*sizes, 0, 0, 0)[:3]
                shaper = Line(rate_bps) if rate_bps else None
                found = replace(found, shaper=shaper, overhead=overhead, cell=cell, cell_overhead=cell_overhead)
            case _:
                raise _NotKnownError
    return found.delayed(delay, jitter, distribution)


def _begins_with_a_number(words: list[str]) -> bool:
    return bool(words) and re.match(r"-?\d", words[0]) is not None


def _share(words: list[str], *, most: int) -> float:
    """The first of up to `most` percentages."""
    shares: list[float] = []
    while words and len(shares) < most and _SHARE.fullmatch(words[0]):
        shares.append(float(words.pop(0).rstrip("%")))
    return shares[0] if shares else 0.0


def _time(word: str) -> int:
    number, unit = _parts(word)
    return int(number * _TIMES[unit])


def _rate(word: str) -> int:
    number, unit = _parts(word)
    return int(number * _RATES[unit])


def _parts(word: str) -> tuple[float, str]:
    found = re.fullmatch(_NUMBER, word)
    if found is None:
        raise _NotKnownError
    return float(found[1]), found[2]
