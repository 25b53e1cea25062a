# SPDX-License-Identifier: Apache-2.0
"""Impairments of frames in one direction, by the names of tc-netem: of a link, and of events that change it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Literal

from sundial.model.fields import In, Percent, Strict, Whole
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import Frames, GilbertElliott, LinkTime
from sundial.units import RATE

_Percent = Annotated[Decimal, Percent()]

_NEEDS = (
    ("jitter", "delay"),
    ("delay_correlation", "jitter"),
    ("distribution", "jitter"),
    ("loss_correlation", "loss"),
    ("duplicate_correlation", "duplicate"),
    ("corrupt_correlation", "corrupt"),
    ("reorder", "delay"),
    ("reorder_correlation", "reorder"),
    ("gap", "reorder"),
    ("packet_overhead", "rate"),
    ("cell_size", "rate"),
    ("cell_overhead", "cell_size"),
)
"""In tc-netem the first has no effect without the second."""
_POSITIVE = ("jitter", "reorder")
"""Of the second, which have no effect at 0."""


class Impairments(Strict):
    """Impairments of frames in one direction; names and meanings are those of tc-netem."""

    delay: LinkTime | None = None
    """Delay of every frame."""
    jitter: LinkTime | None = None
    """Half width (or deviation) of the delay's variation."""
    delay_correlation: _Percent | None = None
    """Correlation of a delay with the one before."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | None = None
    """Distribution of the jitter."""
    loss: _Percent | None = None
    """Frames lost at random."""
    loss_correlation: _Percent | None = None
    """Correlation of a loss with the one before."""
    gemodel: GilbertElliott | None = None
    """Bursts of losses, instead of `loss`."""
    duplicate: _Percent | None = None
    """Frames sent twice."""
    duplicate_correlation: _Percent | None = None
    """Correlation of a duplication with the one before."""
    corrupt: _Percent | None = None
    """Frames with one bit flipped."""
    corrupt_correlation: _Percent | None = None
    """Correlation of a corruption with the one before."""
    reorder: _Percent | None = None
    """Frames sent at once, ahead of delayed ones; needs `delay`."""
    reorder_correlation: _Percent | None = None
    """Correlation of a reordering with the one before."""
    gap: Annotated[int, Whole(1, 1_000_000)] | None = None
    """Only every gap-th frame is reordered; needs `reorder`."""
    rate: Annotated[int, In(RATE)] | None = None
    """Rate of a shaper in front of the wire."""
    packet_overhead: Annotated[int, Whole(-64, 1500)] | None = None
    """Bytes the shaper adds to every frame."""
    cell_size: Annotated[int, Whole(1, 65535)] | None = None
    """Bytes of a cell for the shaper, which then counts whole cells."""
    cell_overhead: Annotated[int, Whole(-64, 1500)] | None = None
    """Bytes the shaper adds to every cell."""
    limit: Frames | None = None
    """Most frames that wait inside."""

    def check(self, path: Path) -> Iterator[Invalid]:
        """Fields that have no effect without another, or exclude each other."""
        for name, needed in _NEEDS:
            there = getattr(self, needed)
            given = getattr(self, name)
            # Without a delay there is nothing that a frame to be reordered could overtake.
            positive = needed in _POSITIVE or (name == "reorder" and given)
            if given is not None and (there is None or (positive and not there)):
                yield Invalid((*path, name), f"{name} has no effect without {needed}", f"add {needed}")
        if self.loss is not None and self.gemodel is not None:
            yield Invalid((*path, "gemodel"), "loss and gemodel exclude each other", "one of the two")

    def changed_to(self, other: Impairments) -> Impairments:
        """These with the fields that `other` has. Of `loss` and `gemodel` the later one is in force."""
        fields = {name: value for name in Impairments.model_fields if (value := getattr(other, name)) is not None}
        gone: dict[str, None] = {}
        if "gemodel" in fields and "loss" not in fields:
            gone = dict.fromkeys(("loss", "loss_correlation"))
        elif "loss" in fields and "gemodel" not in fields:
            gone = {"gemodel": None}
        own = {name: getattr(self, name) for name in Impairments.model_fields}
        return Impairments.model_construct(**{**own, **gone, **fields})
