# SPDX-License-Identifier: Apache-2.0
"""What a worker is: whether it makes the runs that this host makes, and which worker gets a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """Something that decides on a run's bytes or on its verdict."""

    digest: str
    words: str
    """Its version."""


@dataclass(frozen=True)
class Offer:
    """A worker."""

    name: str
    host: str
    slots: int
    """Runs at a time."""
    store: str
    """Identity of the store that it writes to."""
    parts: Mapping[str, Part]


def refusal(own: Offer, other: Offer) -> str | None:
    """Why a worker would make other runs than this host; None if it makes the same."""
    for name, part in own.parts.items():
        found = other.parts.get(name)
        if found is None or found.digest != part.digest:
            seen = "missing" if found is None else f"{found.words} ({found.digest[:12]})"
            return f"its {name} is {seen}, and this host's is {part.words} ({part.digest[:12]})"
    return None


def others(offers: Mapping[str, Offer], host: Mapping[str, Any]) -> Mapping[str, Offer]:
    """Of the workers by address, those that may repeat what a worker of `host` (of a result) has made: those of other
    hosts, else other workers, else all."""
    others = {at: each for at, each in offers.items() if each.name != host.get("worker")}
    return {at: each for at, each in others.items() if each.host != host.get("name")} or others or offers


def chosen(offers: Mapping[str, Offer], busy: Mapping[str, int]) -> str | None:
    """The address of the worker with most free slots; None: all are busy."""
    free = {at: each.slots - busy.get(at, 0) for at, each in offers.items()}
    best = max(free, key=lambda at: (free[at], at), default=None)
    return best if best is not None and free[best] > 0 else None
