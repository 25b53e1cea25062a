# SPDX-License-Identifier: Apache-2.0
"""When frames were seen, which way they went and what was said of them: what their blocks have beside the frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.octets import Numbers, Octets
from sundial.observe.pcap import Capture, Interface
from sundial.observe.pcapng import bad_file

_OPTION_END, _COMMENT, _FLAGS = 0, 1, 2
_SECOND_NS = 10**9


def stamps(capture: Capture, interface: Interface) -> pl.Series:
    """When each frame was seen, since the epoch of the capture's clock, cut to whole ns; null where its block does not
    tell."""
    simple = capture.simple(interface)
    ticks = capture.ticks(replace(interface, blocks=interface.blocks[~simple]))
    assert ticks is not None
    per_second, begin = capture.clock(interface)
    found = np.zeros(len(simple), np.int64)
    if per_second <= _SECOND_NS:
        seconds, rest = np.divmod(ticks, per_second)
        found[~simple] = seconds * _SECOND_NS + rest * _SECOND_NS // per_second
    else:
        # Products that 64 bits do not hold.
        found[~simple] = [tick * _SECOND_NS // per_second for tick in ticks.view(np.uint64).tolist()]
    table = pl.DataFrame({"at": found + begin * _SECOND_NS, "timed": ~simple})
    return table.select(pl.when("timed").then("at")).to_series()


def options(capture: Capture, interface: Interface) -> tuple[Numbers, pl.Series, NDArray[np.bool_]]:
    """Direction (0 unknown, 1 inbound, 2 outbound), comment (commas between several) and whether there is nothing else
    in each block, its padding included."""
    blocks, order = interface.blocks, interface.order
    behind = blocks["head"].astype(np.int64) + blocks["captured"]
    total = blocks["total"].astype(np.int64)
    whole = Octets(np.memmap(capture.path, np.uint8, "r"), blocks["offset"], total - 4)
    place, end = (behind + 3) // 4 * 4, total - 4
    padding = whole.matrix(behind, 3) * (np.arange(3) < (-behind % 4)[:, None])
    plain: NDArray[np.bool_] = np.asarray(~padding.any(axis=1))
    flags = np.zeros(len(blocks), np.int64)
    comments: dict[int, list[str]] = {}
    which = np.flatnonzero(place + 4 <= end)
    while len(which):
        here = whole.take(which)
        words = np.ascontiguousarray(here.matrix(place[which], 8)).view(f"{order}u2").reshape(-1, 4).astype(np.int64)
        code, length = words[:, 0], words[:, 1]
        beyond = place[which] + 4 + length > end[which]
        if beyond.any():
            row = int(which[np.argmax(beyond)])
            raise bad_file(capture.path, int(whole.begin[row]), "block with an option that does not end in it")
        is_flags, is_comment = (code == _FLAGS) & (length == 4), code == _COMMENT
        low, high = (words[:, 2], words[:, 3]) if order == "<" else (words[:, 3], words[:, 2])
        flags[which[is_flags]] = (low | high << 16)[is_flags]
        for row, size in zip(which[is_comment].tolist(), length[is_comment].tolist(), strict=True):
            begin = int(whole.begin[row] + place[row]) + 4
            comments.setdefault(row, []).append(capture.data[begin : begin + size].decode(errors="replace"))
        done = code == _OPTION_END
        plain[which[~(done | is_flags | is_comment)]] = False
        plain[which[done]] &= (length[done] == 0) & (place[which[done]] + 4 == end[which[done]])
        place[which] += 4 + (length + 3) // 4 * 4
        which = which[~done & (place[which] + 4 <= end[which])]
    plain &= (flags & ~3) == 0
    said = pl.Series([None], dtype=pl.String).new_from_index(0, len(blocks))
    if comments:
        said = said.scatter(list(comments), [",".join(each) for each in comments.values()])
    return flags & 3, said, plain
