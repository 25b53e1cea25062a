# SPDX-License-Identifier: Apache-2.0
"""The paper's table 2, calculated again from its own unit costs and counts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sundial.papers.khandker.counts import Policy, bursts, facks, pdus
from sundial.papers.khandker.paper import CostRow, Khandker

US_PER_BYTE = 0.8
"""Of 10 Mbit/s."""
PRINTED_HEADERS = 122
"""Bytes that the paper adds to a packet's data: 80 of RPC, 8 of UDP, 20 of IP, 14 of Ethernet."""
RPC_HEADERS = 88
"""Those that only the first packet of a PDU has."""
LAST_PACKET = 1144
"""Data in the third packet of 4016 bytes."""


def sums(paper: Khandker, *, corrected: bool) -> tuple[int, ...]:
    """The calculated row, us; `corrected`: with what costs must be where the print is wrong."""
    return tuple(
        sum(row.counts[place] * (_cost(row) if corrected else row.cost) for row in paper.rows)
        for place in range(len(paper.sizes))
    )


def error_pct(measured: float, calculated: float) -> float:
    """As the paper has it: above 0 where the call took longer than calculated."""
    return 100 * (measured - calculated) / measured


def printed_facks(paper: Khandker) -> tuple[int, ...]:
    """What the server sends at each size, the response left out: the counts of S8."""
    (row,) = (row for row in paper.rows if row.step == "S8")
    return tuple(count - 1 for count in row.counts)


def placements(paper: Khandker, size: int) -> set[int]:
    """All sums of a column: rows whose columns the text has lost may have any of their numbers there, or none."""
    place = paper.sizes.index(size)
    found = {sum(row.counts[place] * _cost(row) for row in paper.rows if row.certain)}
    for row in paper.rows:
        if not row.certain:
            choices = {0, *row.counts}
            found = {known + count * _cost(row) for known in found for count in choices}
    return found


def _cost(row: CostRow) -> int:
    return row.cost if row.read is None else row.read


@dataclass(frozen=True)
class Fault:
    """Something that the paper says in two ways."""

    where: str
    printed: str
    follows: str
    """From what it follows otherwise, and how."""


def faults(paper: Khandker) -> list[Fault]:
    """Everything in the print that its own other numbers contradict."""
    return [*_of_sums(paper), _of_wire(paper), *_of_facks(paper), *_of_text(paper)]


def _of_sums(paper: Khandker) -> list[Fault]:
    as_printed, corrected = sums(paper, corrected=False), sums(paper, corrected=True)
    found = []
    for row in paper.rows:
        if row.read is not None:
            right = [place for place, value in enumerate(paper.calculated) if corrected[place] == value]
            exact = [paper.sizes[place] for place in right]
            off = [paper.sizes[place] for place in right if as_printed[place] != paper.calculated[place]]
            follows = (
                f"{row.read}: with it the sums of {_listed(exact)} are as printed, with {row.cost} none of "
                f"{_listed(off)}"
            )
            found.append(Fault(f"table 2, {row.step}", str(row.cost), follows))
    for place, size in enumerate(paper.sizes):
        if corrected[place] != paper.calculated[place]:
            error = error_pct(paper.measured[place], corrected[place])
            follows = f"{corrected[place]} is the sum of the column, and its error {error:+.2f} %"
            if paper.calculated[place] not in placements(paper, size):
                follows += "; no placement of the rows whose columns are lost in the text gives the printed one"
            printed = f"{paper.calculated[place]}, error {paper.error_pct[place]:+.2f} %"
            found.append(Fault(f"table 2, sum of {size}", printed, follows))
    return found


def _of_wire(paper: Khandker) -> Fault:
    (row,) = (row for row in paper.rows if row.device == "network" and row.of == LAST_PACKET)
    right = US_PER_BYTE * (LAST_PACKET + PRINTED_HEADERS - RPC_HEADERS)
    follows = (
        f"{right:.0f}: a PDU's third packet has no header of RPC or UDP, so its frame is "
        f"{LAST_PACKET + PRINTED_HEADERS - RPC_HEADERS} bytes and not {LAST_PACKET + PRINTED_HEADERS}"
    )
    return Fault(f"table 2, T_trans({LAST_PACKET})", str(row.cost), follows)


def _of_facks(paper: Khandker) -> list[Fault]:
    """The text's rule against the table's counts of S8."""
    counted = printed_facks(paper)
    said = _counts("window", paper.sizes)
    halves = _counts("halves", paper.sizes)
    if counted == said:
        return []
    follows = (
        f"section 3.2 has one acknowledgement a window: {_row(said)}. One in the middle of a burst too, as the OSF "
        f"runtime asks for them, gives {_row(halves)}"
    )
    found = [Fault("table 2, S8 without the response", _row(counted), follows)]
    made = tuple(count for row in paper.rows if row.step == "S15" for count in row.counts)
    if made != counted:
        follows = f"{_row([count for count in counted if count])}: by S8 and S9 as many facks are sent"
        found.append(Fault("table 2, S15", _row([count for count in made if count]), follows))
    return found


def _of_text(paper: Khandker) -> list[Fault]:
    text = paper.text
    found = [
        Fault(
            "sections 4.1, 4.2, tables 1, 2: a later null call",
            ", ".join(f"{value / 1000:g}" for value in text.null_us) + " ms",
            "the same quantity four times; table 2's is what the machine is fitted to",
        )
    ]
    size, us = text.most_size, text.most_us
    mbps = 8 * size / us
    if f"{mbps:.2f}" == f"{text.most_mbps:.2f}":
        follows = f"{mbps:.2f} Mb/s are {size} bytes (figure 3) in {us / 1000:g} ms; {size + 1} take a packet more"
        found.append(Fault(f"section 4.2: {text.most_mbps} Mb/s at {size + 1} bytes", f"{size + 1}", follows))
    missing = [first for first in _waits(max(text.jumps)) if first not in text.jumps]
    follows = f"at {_listed(missing)} bytes a wait more begins, and figure 3's list lacks them"
    found.append(Fault("figure 3, jumps", _listed(text.jumps), follows))
    return found


def _waits(most: int) -> list[int]:
    """Sizes that take one wait more than the byte before them, by the text's rule."""
    firsts = [4016 * count + 1 for count in range(1, most // 4016 + 1)]
    return [
        first
        for before, first in pairwise([0, *firsts])
        if len(bursts(pdus(first), "window")) > len(bursts(pdus(before), "window"))
    ]


def _counts(policy: Policy, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(facks(pdus(size), policy) for size in sizes)


def _row(values: Sequence[int]) -> str:
    return " ".join(map(str, values))


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))
