# SPDX-License-Identifier: Apache-2.0
"""Which figures of kedziera98 there are, with which of its printed numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sundial.papers.kedziera98 import figure2, names
from sundial.papers.kedziera98.figures import COLOURS, Band, Mark, draw_lines, draw_throughput
from sundial.papers.kedziera98.results import Results
from sundial.report import palette
from sundial.report.plotting import Drawing

EXCHANGED_LIMITS = (-12.0, 12.0)
"""Percent, beyond which the figure of the exchange is cut off."""
BOUND = (
    "Dashed: the least that the packets of a call need on empty wires, as throughput. Right: what the text prints of "
    "this figure; its curve is a picture and is not in the text."
)


def _mark(results: Results, name: str, key: str) -> Mark:
    value = results.paper.value(name)
    return Mark(value.one * {"kB/s": 1, "MB/s": 1000}.get(value.unit, 1), value.text, COLOURS[key])


def draw_all(results: Results, folder: Path) -> Iterator[Drawing | None]:
    title = "Figure 1: throughput by size, SUN-SUN-ATM and Linux-SUN"
    marks = [_mark(results, "atm", names.ATM)]
    yield draw_throughput(
        "figure-1", title, f"{title}. {BOUND}", results.several(names.ATM, names.LINUX), marks, folder
    )
    title = "Linux-SUN, client and server exchanged"
    both = results.several(names.LINUX, names.SWAPPED)
    yield draw_throughput("exchanged", title, f"{title}. {BOUND}", both, [], folder)
    yield _draw_difference(results, folder)
    if names.ATM in results.curves:
        yield figure2.draw_window(results.curves[names.ATM], folder)
        yield figure2.draw_fold(results.curves[names.ATM], folder)
    title = "Figure 3: RPC over UDP and TCP, Linux-SUN"
    marks = [_mark(results, "linux-tcp", names.TCP), _mark(results, "linux-udp", names.UDP)]
    band = _band(results)
    caption = f"{title}, both axes logarithmic. {BOUND}"
    both = results.several(names.UDP, names.TCP)
    yield draw_throughput("figure-3", title, caption, both, marks, folder, log=True, band=band)
    title = "Figure 4: ATM and the path over Ethernet"
    marks = [_mark(results, "atm", names.ATM), _mark(results, "ethernet", names.ETHERNET)]
    yield draw_throughput(
        "figure-4", title, f"{title}. {BOUND}", results.several(names.ATM, names.ETHERNET), marks, folder
    )
    yield _draw_ratios(results, folder)
    yield _draw_spread(results, folder)


def _band(results: Results) -> Band | None:
    if names.UDP not in results.curves:
        return None
    low, high = results.paper.value("tcp-below-udp").both
    rates = results.curves[names.UDP].rates_kBps
    below = [[rate * (1 - share / 100) for rate in rates.values()] for share in (high, low)]
    text = f"printed: TCP {low:g} to {high:g} % below UDP"
    return Band(list(rates), below[0], below[1], text, COLOURS[names.TCP])


def _draw_difference(results: Results, folder: Path) -> Drawing | None:
    limit = results.paper.value("exchange").one
    title = "Difference of the curves with client and server exchanged"
    caption = f"{title}. Dotted: the 5 % that the paper prints. Beyond {EXCHANGED_LIMITS[1]:g} % the line is cut off."
    levels = [Mark(value, f"{value:+g} % (printed)", palette.MUTED) for value in (-limit, limit)]
    lines = [("exchanged by Linux-SUN", COLOURS[names.SWAPPED], results.exchanged_pct())]
    return draw_lines("difference", title, caption, "%", lines, folder, levels=levels, limits=EXCHANGED_LIMITS)


def _draw_ratios(results: Results, folder: Path) -> Drawing | None:
    title = "Raw sockets by RPC"
    levels = []
    for raw, name in ((names.RAW_TCP, "raw-tcp"), (names.RAW_UDP, "raw-udp")):
        value = results.paper.value(name)
        levels += [Mark(each, f"printed, {raw[4:].upper()}: {each:g}", COLOURS[raw]) for each in value.both]
    lines = [(raw.replace("-", " by RPC, "), COLOURS[raw], of) for raw, of in results.ratios().items()]
    caption = f"{title}: throughput over plain sockets by that of RPC, Linux PC to SUN. Dotted: the printed ranges."
    return draw_lines("ratios", title, caption, "times", lines, folder, levels=levels, log=True)


def _draw_spread(results: Results, folder: Path) -> Drawing | None:
    title = "Standard deviation of the series"
    lines = [
        (f"{curve.name}, {curve.transport}", COLOURS[curve.key], curve.of_grid(lambda point: point.sd_pct))
        for curve in results.several(*names.OF_FIGURES)
    ]
    limit = results.paper.value("spread").one
    levels = [Mark(limit, f"printed: {limit:g} %", palette.MUTED)]
    caption = f"{title}, in percent of their mean, without the lowest, by size."
    return draw_lines("spread", title, caption, "%", lines, folder, levels=levels, dots=True)
