# SPDX-License-Identifier: Apache-2.0
"""A bridge in a guest's kernel: what it received leaves at its other ports, no earlier than its tc-netem lets it go
and its adapter has fetched it, and no later than that, the work of its CPU and the wire take (tc-netem(8),
net/sched/sch_netem.c)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Never

import numpy as np
import polars as pl

from sundial.model.network import Node
from sundial.segments.netem.verify_tc import Effects, read_arguments
from sundial.verify.findings import none
from sundial.verify.law import Law, merged
from sundial.verify.segment import SegmentVerifier, Waits
from sundial.verify.wire import Mask, Numbers, Passages, Wire, joined, problem, queue_starts

INSTRUCTIONS = 25_000
"""Of the guest's kernel for a frame, from one adapter to the other, when others are to be forwarded as well; measured:
5,500 for one alone (44 us at 125 MIPS)."""
PAUSE_INSTRUCTIONS = 500_000
"""Other work of the guest's kernel before it comes to its adapters: one tick of 4 ms at 125 MIPS."""
CLOCK_ERROR = 1000
"""Under the real clock a guest measures its delays with a clock of its own; it may be wrong by one part in so many."""
GROUP_BIT = 1 << 40
"""Of an address as a number: multicast and broadcast (IEEE 802.3, 3.2.3)."""
LEARNED_NS = 100_000_000
"""A bridge surely knows an address that it has seen so long ago."""


UNPROVEN = (
    "netem: the delay of a frame between its least, and its most and what the bridge's CPU may take",
    "netem: which frames are lost, duplicated, corrupted and reordered; only that each effect is configured",
    "netem: how late a frame leaves a bridge for a hub, or under the real clock",
    "netem: bridges with arguments that verification does not support (slots, loss by states, custom tables)",
)


class _Netem(SegmentVerifier[Never]):
    def check_machine(self, node: Node, wires: Mapping[str, Wire], waits: Waits, *, exact: bool) -> Law:
        if node.role != "bridge":
            return Law()
        into = {nic.end: wires[nic.end].received_at(nic.end) for nic in node.nics if nic.end in wires}
        work = joined(list(into.values()))
        took_ns, pause_ns = (int(1000 * count / node.mips) for count in (INSTRUCTIONS, PAUSE_INSTRUCTIONS))
        # The one CPU forwards frame by frame, whatever port they come from.
        ready = queue_starts(work.time_ns, np.full(len(work), took_ns)) + took_ns if len(work) else work.time_ns
        found = []
        for nic in node.nics:
            effects = read_arguments(nic.netem)
            if effects is None or nic.end not in into:
                continue
            came = np.isin(work.row, into[nic.end].row, invert=True)
            port = _Port(
                nic.end, effects, work.take(came), ready[came] + pause_ns, wires[nic.end].sent_at(nic.end),
                _homes(into, nic.end), wires[nic.end].end_ns, pause_ns, node.adapter_latency_ns, exact,
            )  # fmt: skip
            found += port.check(waits)
        return Law(merged(found))


def _homes(into: Mapping[str, Passages], end: str) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """When each address was first seen as a source: at this port, and at the others."""
    here: dict[int, int] = {}
    there: dict[int, int] = {}
    for name, each in into.items():
        known = here if name == end else there
        addresses, first = np.unique(each.source, return_index=True)
        for address, at in zip(addresses.tolist(), each.time_ns[first].tolist(), strict=True):
            known[address] = min(at, known.get(address, at))
    return here, there


@dataclass(frozen=True)
class _Port:
    """What a bridge sends at one port: `came` at the others, each `ready` for netem at the latest at an instant."""

    end: str
    effects: Effects
    came: Passages
    ready: Numbers
    sent: Passages
    homes: tuple[Mapping[int, int], Mapping[int, int]]
    end_ns: int | None
    pause_ns: int
    latency_ns: int
    exact: bool

    def check(self, waits: Waits) -> list[pl.DataFrame]:
        one = pl.DataFrame({"content": self.came.content, "came": np.arange(len(self.came))})
        other = pl.DataFrame({"content": self.sent.content, "sent": np.arange(len(self.sent))})
        nth = pl.int_range(pl.len()).over("content").alias("nth")
        twice = 2 if self.effects.doubles else 1
        pairs = (
            other.with_columns(nth // twice)
            .join(one.with_columns(nth), on=["content", "nth"], how="left", maintain_order="left")
            .sort("sent")
        )
        of = pairs["came"].fill_null(-1).to_numpy()
        known = of >= 0
        found = [self._early(of[known], np.flatnonzero(known))]
        if not self.effects.corrupts:
            found.append(
                problem(f"bridge at {self.end}", ~known, [self.sent.row], iter(["a frame that it received"] * len(of)),
                        iter(["one that it did not"] * len(of)))
            )  # fmt: skip
        if self.exact:
            found.append(self._late(self._newest(of)[known], np.flatnonzero(known), waits))
            counted = other.group_by("content").len()
            times = one.join(counted, on="content", how="left", maintain_order="left")["len"].fill_null(0)
            found.append(self._missing((one.select(nth).to_series() >= times).to_numpy()))
        return found

    def _newest(self, came: Numbers) -> Numbers:
        """Which frame each sent one can have been at the latest. Where some are lost or become others, the ones before
        may be those that were, and where some are doubled, most are not: from the last to the first, each is the last
        one equal to it that may have left by then and is not taken; `came` where none is, or all leave once."""
        if not (self.effects.loses or self.effects.doubles or self.effects.corrupts):
            return came
        earliest = self.came.time_ns + max(0, self._shortest_ns()) + self.latency_ns
        waiting: dict[int, list[int]] = {}
        for place, content in enumerate(self.came.content.tolist()):
            waiting.setdefault(content, []).extend([place] * (2 if self.effects.doubles else 1))
        newest = came.copy()
        for place in np.argsort(self.sent.time_ns, kind="stable")[::-1].tolist():
            equal = waiting.get(int(self.sent.content[place]), [])
            while equal:
                candidate = equal.pop()
                if earliest[candidate] <= self.sent.time_ns[place]:
                    newest[place] = candidate
                    break
        return newest

    def _shortest_ns(self) -> int:
        """What each frame is delayed by at least; negative if it spends less time in the shaper."""
        return 0 if self.effects.reorders else self.effects.shortest_ns

    def _early(self, came: Numbers, sent: Numbers) -> pl.DataFrame:
        """None leaves before its least delay, nor faster than the shaper lets it."""
        effects = self.effects
        shortest = self._shortest_ns()
        if not self.exact:
            shortest -= abs(shortest) // CLOCK_ERROR
        due = self.came.time_ns[came] + max(0, shortest)
        if effects.shaper is not None and not effects.reorders and len(came):
            # The shaper begins behind the last frame in its queue, so it keeps the order. A negative delay shortens
            # the time there of one that finds none (netem_enqueue).
            busy = self._shaping(came)
            if not self.exact:
                busy = busy - busy // CLOCK_ERROR
            busy = np.maximum(0, busy + effects.shaper.fine(np.array([min(0, shortest)])))
            due = effects.shaper.whole(queue_starts(effects.shaper.fine(due), busy) + busy)
        due = due + self.latency_ns
        wrong = self.sent.time_ns[sent] < due
        return problem(
            f"bridge at {self.end}",
            wrong,
            [self.came.row[came], self.sent.row[sent]],
            (f"not before {at} ns" for at in due[wrong]),
            (f"at {at} ns" for at in self.sent.time_ns[sent][wrong]),
        )

    def _latest(self) -> Numbers:
        """When each has left netem, and the adapter may begin with it, at the latest."""
        effects = self.effects
        due = self.ready + max(0, effects.longest_ns)
        if effects.shaper is None or not len(due):
            return due + self.latency_ns
        busy = self._shaping(np.arange(len(self.came))) * (2 if effects.doubles else 1)
        begins = queue_starts(effects.shaper.fine(np.maximum.accumulate(due)), busy)
        return effects.shaper.whole(begins + busy) + self.latency_ns

    def _shaping(self, came: Numbers) -> Numbers:
        shaper = self.effects.shaper
        bits = self.effects.shaped_bits(self.came.length[came])
        return bits if shaper is None else shaper.time(bits)

    def _late(self, came: Numbers, sent: Numbers, waits: Waits) -> pl.DataFrame:
        """None stays longer, but for the time in which the wire was taken."""
        due, left = self._latest()[came], self.sent.time_ns[sent]
        wrong = left > due
        wire = waits(self.end) if bool(wrong.any()) else None
        if wire is None or wire.slot_ns:
            # Where others contend for the wire, their backoff and its own take time that nothing shows.
            wrong[:] = False
        else:
            for place in np.flatnonzero(wrong):
                wrong[place] = wire.idle_ns(int(due[place]), int(left[place])) > self.pause_ns
        return problem(
            f"bridge at {self.end}",
            wrong,
            [self.came.row[came], self.sent.row[sent]],
            (f"by {at} ns, or as soon as the wire is free" for at in due[wrong]),
            (f"at {at} ns" for at in left[wrong]),
        )

    def _missing(self, missing: Mask) -> pl.DataFrame:
        """None is kept that is for this port, while there is room and time. `missing`: as many equal ones came before
        as were sent in all."""
        if self.effects.loses or self.effects.corrupts or not len(self.came):
            return none()
        latest = self._latest()
        inside = np.arange(len(self.came)) - np.searchsorted(np.sort(latest), self.came.time_ns, "right")
        room = inside < min(self.effects.limit, 100)
        in_time = latest + LEARNED_NS < (self.end_ns if self.end_ns is not None else latest.max())
        wrong = missing & room & in_time & self._for_here()
        return problem(
            f"bridge at {self.end}",
            wrong,
            [self.came.row],
            (f"sent by {at} ns" for at in latest[wrong]),
            iter(["not sent"] * int(wrong.sum())),
        )

    def _for_here(self) -> Mask:
        """Whether each frame is surely for this port: for a group, or an address that lives here or nowhere. A bridge
        takes no frame from a group or from address 0 (net/bridge/br_input.c, br_handle_frame)."""
        here, there = self.homes
        first = {**there, **here}
        known = np.array([first.get(int(address), -1) for address in self.came.target], np.int64)
        away = np.array([int(address) in there for address in self.came.target], np.bool_)
        group = (self.came.target & GROUP_BIT) != 0
        valid = (self.came.source != 0) & (self.came.source & GROUP_BIT == 0)
        return np.asarray(valid & (group | (~away & ((known < 0) | (known + LEARNED_NS < self.came.time_ns)))))


KIND: SegmentVerifier[Never] = _Netem()
