# SPDX-License-Identifier: Apache-2.0
"""Cells waiting in the switch's output queues, recomputed from the capture of cells at the ports.

A cell joins a queue after its time on the line, the propagation, and the switch's latency; it is served one cell time
and the propagation before its last bit is at the receiver. Which cells of a channel were lost is not in the capture.
Where cells beside each other carry the same, there are several ways to say which of them came through: the first and
the last possible ones give the upper and the lower bound of what waited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sundial.report import painting, palette, plotting
from sundial.report.plotting import Drawing

Times = NDArray[np.float64]
Contents = NDArray[np.uint64]

ROUNDING_NS = 2.0
"""Stamps are whole ns: a cell that seems to wait no longer than this was sent at once."""
MOST_PORTS = 4
LEAST_PEAK = 2
"""Queues that never held so many are not drawn."""


@dataclass(frozen=True)
class Channel:
    """Cells of one channel: when each would join the queue, when each that came through was served, and what both carry
    (equal numbers: equal octets)."""

    joins_ns: Times
    sent: Contents
    starts_ns: Times
    received: Contents


@dataclass(frozen=True)
class Waiting:
    """Cells that wait at one output, from each of `at_ns` on: at least, and at most."""

    at_ns: Times
    least: NDArray[np.int64]
    most: NDArray[np.int64]


def matched(channel: Channel, *, late: bool) -> Times | None:
    """When each received cell joined the queue, if it is the first of those that it can be (`late`: the last).

    Cells stay in order. None where they do not fit, as when the capture is not whole.
    """
    joins, sent, starts, received = channel.joins_ns, channel.sent, channel.starts_ns, channel.received
    if len(sent) == len(received) and np.array_equal(sent, received):
        return joins
    found = np.empty(len(received))
    places = range(len(received) - 1, -1, -1) if late else range(len(received))
    at, step = (len(sent) - 1, -1) if late else (0, 1)
    for place in places:
        while 0 <= at < len(sent) and (sent[at] != received[place] or joins[at] > starts[place] + ROUNDING_NS):
            at += step
        if not 0 <= at < len(sent):
            return None
        found[place] = joins[at]
        at += step
    return found


def waiting(channels: Sequence[Channel], room: int) -> Waiting | None:
    """What the channels to one output, which has so much room, had waiting there; None if that is unknown."""
    bounds = []
    for late in (True, False):
        joins = [matched(channel, late=late) for channel in channels]
        if any(each is None for each in joins):
            return None
        join = np.concatenate([each for each in joins if each is not None])
        start = np.concatenate([channel.starts_ns for channel in channels])
        waits = start - join > ROUNDING_NS
        bounds.append((join[waits], start[waits]))
    at = np.unique(np.concatenate([times for pair in bounds for times in pair]))
    least, most = (
        np.searchsorted(np.sort(join), at, "right") - np.searchsorted(np.sort(start), at, "right")
        for join, start in bounds
    )
    return Waiting(at, least, np.minimum(most, room))


def busiest(found: Waiting) -> tuple[float, float]:
    """The stretch around the greatest number of waiting cells in which some always wait."""
    peak = int(np.argmax(found.most))
    empty = np.flatnonzero(found.most == 0)
    before, after = empty[empty < peak], empty[empty > peak]
    first = found.at_ns[before[-1] + 1] if len(before) else found.at_ns[0]
    last = found.at_ns[after[0]] if len(after) else found.at_ns[-1]
    return float(first), float(last)


def draw(
    name: str, queues: Mapping[str, Waiting], losses_ns: Mapping[str, Times], limits: Mapping[str, int], caption: str,
    folder: Path,
) -> Drawing | None:  # fmt: skip
    """The busiest stretch of each queue that ever held some cells.

    `losses_ns`: when PDUs lost their first cell there; `limits`: lines to draw, by what they are called.
    """
    peaks = {port: int(found.most.max()) for port, found in queues.items() if len(found.most)}
    shown = sorted((port for port, peak in peaks.items() if peak >= LEAST_PEAK), key=lambda port: -peaks[port])
    shown = shown[:MOST_PORTS]
    if not shown:
        return None
    height = 0.6 + 2.0 * len(shown)

    def paint(figure: painting.Figure) -> None:
        place = plotting.margins(figure, left=0.6, right=1.0, top=0.35, bottom=0.52)
        grid = figure.subplots(len(shown), 1, squeeze=False, gridspec_kw={"hspace": 0.65, **place})
        for axis, port in zip(grid.flat, shown, strict=True):
            _panel(axis, queues[port], losses_ns.get(port, np.empty(0)), limits, peaks[port])
            plotting.panel_title(axis, f"to {port}")
        grid.flat[-1].set_xlabel("time (ms)")

    said = "; ".join(f"to {port}: at most {peaks[port]} cells" for port in shown)
    return plotting.draw(f"queue-{name}", "Cells waiting in the switch", caption, folder, height, paint, seen=said)


def _panel(axis: painting.Axes, found: Waiting, losses: Times, limits: Mapping[str, int], peak: int) -> None:
    first, last = busiest(found)
    pad = 0.03 * (last - first)
    inside = (found.at_ns >= first - pad) & (found.at_ns <= last + pad)
    ms = found.at_ns[inside] / 1e6
    axis.fill_between(ms, found.most[inside], step="post", color=palette.LINE_BACK, linewidth=0)
    axis.fill_between(ms, found.least[inside], step="post", color=palette.LINE_OUT, linewidth=0)
    near = {title: cells for title, cells in limits.items() if cells <= 1.5 * peak}
    for cells in near.values():
        axis.axhline(cells, color=palette.MUTED, linewidth=0.8, dashes=(3, 2))
    lost = losses[(losses >= first - pad) & (losses <= last + pad)] / 1e6
    axis.plot(lost, np.zeros(len(lost)), "|", color=palette.ALARM, markersize=9, markeredgewidth=1.2, clip_on=False)
    axis.set_ylim(0, 1.12 * max([peak, *near.values()]))
    axis.set_xlim((first - pad) / 1e6, (last + pad) / 1e6)
    axis.yaxis.set_major_locator(painting.MaxNLocator(4, integer=True))
    axis.xaxis.set_major_locator(painting.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.ticklabel_format(axis="x", useOffset=False)
    axis.set_ylabel("cells")
    plotting.end_labels(axis, [plotting.EndLabel(cells, title, palette.MUTED) for title, cells in near.items()])
