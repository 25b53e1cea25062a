# SPDX-License-Identifier: Apache-2.0
"""What a link says became of frames: each fate is that of one frame, at the instant at which netem takes it, and is one
that the configuration allows; and as many as it makes likely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from sundial.model.impairments import Impairments
from sundial.seams.fate import AdapterOff, Corrupted, MachineOff, OnLine, QueueFull, Severed
from sundial.segments.link.model import Link
from sundial.verify.chance import hardly
from sundial.verify.frames import CORRUPTED, DROPPED, DUPLICATED, LOST
from sundial.verify.law import merged
from sundial.verify.wire import Numbers, Passages, Wire, problem

RECORDS = (OnLine, QueueFull, Corrupted, Severed, MachineOff, AdapterOff)
_KINDS = (LOST, DROPPED, DUPLICATED, CORRUPTED)
"""`fate` of what the impairments of a link do."""
_RULES = ("cut", "off", "partition")
"""Why a link lets nothing pass."""


@dataclass(frozen=True)
class Fates:
    """Of the frames of one way, a number for each: how often it was lost and so on."""

    entered: Numbers
    lost: Numbers
    full: Numbers
    doubled: Numbers
    corrupted: Numbers
    severed: Mapping[str, Numbers]
    """By rule: how often nothing let it pass."""
    damaged: pl.DataFrame
    """Of each corrupted one: its fate's row, `place` among the sent, and the content with which it goes on."""
    findings: pl.DataFrame

    @property
    def copies(self) -> Numbers:
        """How many of each frame come out."""
        return np.asarray(np.maximum(1 + self.doubled - self.lost - self.full - self.gone, 0))

    @property
    def gone(self) -> Numbers:
        """How often nothing let each pass, by any rule."""
        return np.asarray(sum(self.severed.values(), np.zeros_like(self.lost)))

    def take(self, which: Numbers) -> Fates:
        """Those of some frames, by place, without what belongs to all."""
        return Fates(
            self.entered[which],
            self.lost[which],
            self.full[which],
            self.doubled[which],
            self.corrupted[which],
            {rule: number[which] for rule, number in self.severed.items()},
            self.damaged.clear(),
            self.findings.clear(),
        )

    @property
    def counted(self) -> Mapping[str, int]:
        """By the fabric's names of them."""
        return {
            "dropped lost": int(self.lost.sum()),
            **{f"dropped {rule}": int(number.sum()) for rule, number in self.severed.items()},
            "dropped queue full": int(self.full.sum()),
            "duplicated": int(self.doubled.sum()),
            "corrupted": int(self.corrupted.sum()),
        }

    def plain(self, seen: Passages) -> Passages:
        """Arrivals, each with the content that it was sent with."""
        if self.damaged.is_empty():
            return seen
        known = self.damaged.unique("content", keep="first", maintain_order=True)
        content = pl.Series(seen.content).replace(known["content"], known["original"])
        return replace(seen, content=content.to_numpy())


def fates_of(wire: Wire, port: str, other: str, sent: Passages, entered: Numbers) -> Fates:
    """Those of what `port` sent, tied to their frames by time and bytes."""
    numbers, found, parts = [], [], []
    ruled = (pl.col("fate") == LOST) & pl.col("fate_rule").is_in(_RULES)
    of_way = wire.fates.filter(fate_from=port, fate_to=other).with_columns(
        kind=pl.when(ruled).then("fate_rule").otherwise("fate")
    )
    for kind in (*_KINDS, *_RULES):
        here = of_way.filter(kind=kind)
        at = here["time_ns"].to_numpy()
        place = np.searchsorted(entered, at)
        near = np.minimum(place, max(len(sent) - 1, 0))
        right = (place < len(sent)) & (entered[near] == at) if len(sent) else np.zeros(len(at), np.bool_)
        number = np.bincount(near[right], minlength=len(sent))[: len(sent)]
        numbers.append(number)
        parts.append(
            pl.DataFrame(
                {
                    "row": here["row"].cast(pl.Int64),
                    "place": near,
                    "length": here["frame_length"].cast(pl.Int64),
                    "content": here["octets_hash"].cast(pl.Int64),
                    "right": right,
                    "kind": pl.Series([kind] * len(at), dtype=pl.String),
                }
            )
        )
    every = pl.concat(parts)
    inside = every.filter("right").with_columns(
        original=pl.Series(sent.content[every.filter("right")["place"].to_numpy()]),
        sent_length=pl.Series(sent.length[every.filter("right")["place"].to_numpy()]),
    )
    damaged = inside.filter(pl.col("kind") == CORRUPTED)
    same = pl.col("content") == pl.col("original")
    # A frame that was damaged first is dropped as it is then.
    late = pl.struct("place", "content").is_in(damaged.select(pl.struct("place", "content")).to_series().implode())
    changed = inside.filter(
        pl.when(pl.col("kind") == CORRUPTED)
        .then(same | (pl.col("length") != pl.col("sent_length")))
        .otherwise(~same & ~late)
    )
    for rows, expected in (
        (every.filter(~pl.col("right")), "a frame that comes to the link's queue then"),
        (changed, "the bytes of the frame that came then"),
    ):
        found.append(
            problem(f"fate from {port} to {other}", np.ones(len(rows), np.bool_), [rows["row"].to_numpy()],
                    iter([expected] * len(rows)), iter(["a fate of none"] * len(rows)))
        )  # fmt: skip
    lost, full, doubled, corrupted, *ruled_out = numbers
    severed = dict(zip(_RULES, ruled_out, strict=True))
    gone = sum(ruled_out)
    often = (doubled > 1) | (corrupted > 1 + doubled) | (lost > 1 + doubled) | (lost + full > 1 + doubled)
    often |= (gone > 0) & (gone + lost + full + doubled + corrupted > 1)
    found.append(
        problem(f"fates from {port} to {other}", often, [sent.row],
                iter(["at most one copy, and each lost or dropped once"] * int(often.sum())),
                (f"{a} lost, {b} dropped, {c} duplicated, {d} corrupted, {e} cut off"
                 for a, b, c, d, e in np.column_stack((lost, full, doubled, corrupted, gone))[often].tolist()))
    )  # fmt: skip
    return Fates(entered, lost, full, doubled, corrupted, severed, damaged, merged(found))


def check_severed(segment: Link, port: str, other: str, stage: Numbers, sent: Passages, fates: Fates) -> pl.DataFrame:
    """Each frame that begins while nothing passes is lost for that reason, and no other frame is."""
    rules = [None, *(state.blocks(port, other) for state in segment.timeline)]
    found = []
    for rule, seen in fates.severed.items():
        due = np.array([each == rule for each in rules])[stage]
        wrong = due != (seen > 0)
        found.append(
            problem(f"fate from {port} to {other}", wrong, [sent.row],
                    (f"lost: {rule}" if each else f"not lost: {rule}" for each in due[wrong]),
                    (f"lost: {rule}" if each else f"not lost: {rule}" for each in seen[wrong] > 0))
        )  # fmt: skip
    return merged(found)


def check_corrupted(wire: Wire, fates: Fates, sent: Passages, seen: Passages) -> pl.DataFrame:
    """A frame that was damaged arrives as its fate shows it, and a fate shows it with one other bit."""
    table = fates.damaged.sort("row")
    place = table["place"].to_numpy()
    alone = (fates.copies[place] == 1 + fates.doubled[place]) if len(place) else np.zeros(0, np.bool_)
    due = fates.entered[place]
    late = due > seen.time_ns.max(initial=0)
    arrived = np.isin(table["content"].to_numpy(), seen.content)
    wrong = alone & ~arrived & ~late
    missing = problem(
        "corrupted frame",
        wrong,
        [sent.row[place], table["row"].to_numpy()],
        iter(["arrives as its fate shows it"] * int(wrong.sum())),
        iter(["arrives otherwise"] * int(wrong.sum())),
    )
    bits = wire.differing_bits(sent.row[place], table["row"].to_numpy())
    other = bits != 1
    several = problem(
        "corrupted frame",
        other,
        [sent.row[place], table["row"].to_numpy()],
        iter(["one bit differs from what was sent"] * int(other.sum())),
        (f"{each} bits" for each in bits[other]),
    )
    return merged([missing, several])


def check_stages(segment: Link, fates: Fates, port: str, stage: Numbers) -> pl.DataFrame:
    """`check_shares` of each stretch between two changes. `stage` of each frame."""
    if not segment.timeline:
        return check_shares(segment.sending(port), fates, port, len(stage))
    met = fates.gone == 0
    since = [0, *(state.at_ns for state in segment.timeline)]
    found = []
    for place, (written, begin_ns) in enumerate(zip(segment.every(port), since, strict=True)):
        here = np.flatnonzero((stage == place) & met)
        found.append(check_shares(written, fates.take(here), f"{port} from {begin_ns} ns", len(here)))
    return merged(found)


def check_shares(written: Impairments, fates: Fates, port: str, number: int) -> pl.DataFrame:
    """No fate without its impairment, and none as seldom or as often as would hardly happen.

    With correlation and in bursts the shares of netem are others: there only none and all are told apart.
    """
    copies, bursts = int(fates.doubled.sum()), written.gemodel is not None
    loss, double = float(written.loss or 0), float(written.duplicate or 0)
    # A frame that is to be lost and doubled goes once; a copy may be lost, and is not doubled (sch_netem.c).
    together = bool(written.loss_correlation or written.duplicate_correlation or bursts)
    rows = (
        ("lost", fates.lost, loss * (1 - double * loss), together, bursts),
        ("duplicated", fates.doubled, double * (1 - loss), together and bool(double), False),
        ("corrupted", fates.corrupted, float(written.corrupt or 0), bool(written.corrupt_correlation), False),
    )
    found = []
    for name, each, given, bound_together, may in rows:
        seen = int(each.sum())
        least, most = (number - int(fates.lost.sum()), number + copies) if name == "corrupted" else (number, number)
        if not given and not may:
            wrong = seen > 0
        elif bound_together:
            wrong = False
        else:
            wrong = hardly(seen, least, given, fewer=True) or hardly(seen, most, given, fewer=False)
        found.append(
            problem(f"{name} frames of {port}", np.array([wrong]), (),
                    iter([f"{100 * given:.4g} % of {number}"]), iter([f"{seen}"]))
        )  # fmt: skip
    return merged(found)
