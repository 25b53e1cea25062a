# SPDX-License-Identifier: Apache-2.0
"""What the report of kedziera98 shows: statements, then each figure with what the text prints and the wires allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sundial.papers.kedziera98 import figure2, names, tables
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.figures import COLOURS, Band, Mark, draw_lines, draw_throughput
from sundial.papers.kedziera98.results import Fit, Results
from sundial.report import palette
from sundial.report.plotting import Drawing
from sundial.report.tables import decimal
from sundial.reproduce.page import Page, Section, statements_section
from sundial.reproduce.verdicts import Verdict, counted

PAIRS = ((names.RAW_TCP, names.TCP), (names.RAW_UDP, names.UDP))
PRINTED = (
    (names.ATM, "atm", "ATM"),
    (names.ETHERNET, "ethernet", "Ethernet path"),
    (names.TCP, "linux-tcp", "Linux, TCP"),
    (names.UDP, "linux-udp", "Linux, UDP"),
)
"""Curves with a printed maximum, its id, and a short name."""
EXCHANGED_LIMITS = (-12.0, 12.0)
"""Percent, beyond which the figure of the exchange is cut off."""
BOUND = (
    "Dashed: the least that the packets of a call need on empty wires, as throughput. Right: what the text prints of "
    "this figure; its curve is a picture and is not in the text."
)


def make_page(results: Results, verdicts: Sequence[Verdict], figures: Path) -> Page:
    """The page; its figures are drawn into the folder."""
    paper = results.paper
    return Page(
        name=paper.name,
        reference=f"{paper.authors}: {paper.title}. {paper.published}.",
        key_figures=_key_figures(results, verdicts),
        sections=list(_sections(results, verdicts)),
        drawings={drawing.stem: drawing for drawing in _drawings(results, figures) if drawing is not None},
        files=("curves.csv", "statements.csv"),
    )


def _key_figures(results: Results, verdicts: Sequence[Verdict]) -> list[tuple[str, str, str]]:
    found = [counted(verdicts)]
    for key, value, what in PRINTED:
        if key in results.curves and (rates := results.curves[key].rates_kBps):
            printed = f"printed {results.paper.value(value).text}"
            found.append((what, f"{decimal(max(rates.values()), 0)} kB/s", printed))
    return found


def _curves(results: Results, *keys: str) -> list[Curve]:
    return [results.curves[key] for key in keys if key in results.curves]


def _mark(results: Results, name: str, key: str) -> Mark:
    value = results.paper.value(name)
    return Mark(value.one * {"kB/s": 1, "MB/s": 1000}.get(value.unit, 1), value.text, COLOURS[key])


def _drawings(results: Results, folder: Path) -> Iterator[Drawing | None]:
    title = "Figure 1: throughput by size, SUN-SUN-ATM and Linux-SUN"
    marks = [_mark(results, "atm", names.ATM)]
    yield draw_throughput(
        "figure-1", title, f"{title}. {BOUND}", _curves(results, names.ATM, names.LINUX), marks, folder
    )
    title = "Linux-SUN, client and server exchanged"
    both = _curves(results, names.LINUX, names.SWAPPED)
    yield draw_throughput("exchanged", title, f"{title}. {BOUND}", both, [], folder)
    yield _draw_difference(results, folder)
    if names.ATM in results.curves:
        yield figure2.draw_window(results.curves[names.ATM], folder)
        yield figure2.draw_fold(results.curves[names.ATM], folder)
    title = "Figure 3: RPC over UDP and TCP, Linux-SUN"
    marks = [_mark(results, "linux-tcp", names.TCP), _mark(results, "linux-udp", names.UDP)]
    band = _band(results)
    caption = f"{title}, both axes logarithmic. {BOUND}"
    both = _curves(results, names.UDP, names.TCP)
    yield draw_throughput("figure-3", title, caption, both, marks, folder, log=True, band=band)
    title = "Figure 4: ATM and the path over Ethernet"
    marks = [_mark(results, "atm", names.ATM), _mark(results, "ethernet", names.ETHERNET)]
    yield draw_throughput(
        "figure-4", title, f"{title}. {BOUND}", _curves(results, names.ATM, names.ETHERNET), marks, folder
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


def exchanged_pct(results: Results) -> dict[int, float]:
    """By how much the exchanged curve is beside the other, by size."""
    if not {names.LINUX, names.SWAPPED} <= set(results.curves):
        return {}
    one, other = results.curves[names.LINUX].rates_kBps, results.curves[names.SWAPPED].rates_kBps
    return {size: 100 * (other[size] / one[size] - 1) for size in one if size in other}


def _draw_difference(results: Results, folder: Path) -> Drawing | None:
    limit = results.paper.value("exchange").one
    title = "Difference of the curves with client and server exchanged"
    caption = f"{title}. Dotted: the 5 % that the paper prints. Beyond {EXCHANGED_LIMITS[1]:g} % the line is cut off."
    levels = [Mark(value, f"{value:+g} % (printed)", palette.MUTED) for value in (-limit, limit)]
    lines = [("exchanged by Linux-SUN", COLOURS[names.SWAPPED], exchanged_pct(results))]
    return draw_lines("difference", title, caption, "%", lines, folder, levels=levels, limits=EXCHANGED_LIMITS)


def ratios(results: Results) -> dict[str, dict[int, float]]:
    """Raw sockets by RPC, by size."""
    found: dict[str, dict[int, float]] = {}
    for raw, rpc in PAIRS:
        curves = _curves(results, raw, rpc)
        over, under = (curve.rates_kBps for curve in curves) if len(curves) == 2 else ({}, {})
        found[raw] = {size: over[size] / under[size] for size in over if size in under}
    return found


def _draw_ratios(results: Results, folder: Path) -> Drawing | None:
    title = "Raw sockets by RPC"
    levels = []
    for raw, name in ((names.RAW_TCP, "raw-tcp"), (names.RAW_UDP, "raw-udp")):
        value = results.paper.value(name)
        levels += [Mark(each, f"printed, {raw[4:].upper()}: {each:g}", COLOURS[raw]) for each in value.both]
    lines = [(raw.replace("-", " by RPC, "), COLOURS[raw], of) for raw, of in ratios(results).items()]
    caption = f"{title}: throughput over plain sockets by that of RPC, Linux PC to SUN. Dotted: the printed ranges."
    return draw_lines("ratios", title, caption, "times", lines, folder, levels=levels, log=True)


def _draw_spread(results: Results, folder: Path) -> Drawing | None:
    title = "Standard deviation of the series"
    lines = [
        (f"{curve.name}, {curve.transport}", COLOURS[curve.key], curve.of_grid(lambda point: point.sd_pct))
        for curve in _curves(results, *names.OF_FIGURES)
    ]
    limit = results.paper.value("spread").one
    levels = [Mark(limit, f"printed: {limit:g} %", palette.MUTED)]
    caption = f"{title}, in percent of their mean, without the lowest, by size."
    return draw_lines("spread", title, caption, "%", lines, folder, levels=levels, dots=True)


def _sections(results: Results, verdicts: Sequence[Verdict]) -> Iterator[Section]:
    yield statements_section(
        verdicts,
        "Each is judged by code from the runs below. Nothing but one speed a machine was fitted. The "
        "reasons are below the table.",
    )
    yield Section(
        "printed",
        "Numbers of the text",
        "Printed",
        "Everything that the text prints in numbers. The points of its curves are in pictures alone.",
        table=tables.printed_table(results, verdicts),
    )
    yield _machines(results)
    yield from _figures(results)
    yield from _beside(results)


def _machines(results: Results) -> Section:
    left = "; ".join(f"{_short(results, fit)} {fit.left_pct:+.0f} %" for fit in results.fits)
    speeds = ", ".join(f"{_short(results, fit)} {fit.mips.normalize():f}" for fit in results.fits)
    prose = (
        f"The paper's machines are one number each, million instructions a second: {speeds}. They are fitted one after "
        "the other to the three throughputs that the text prints. Virtual time has powers of two only, so up to 41 % "
        f"of a call's time can be left: {left}. The SUN and the PC with Solaris run libtirpc as it is. The PC with "
        "Linux writes records in buffers of 4000 bytes and leaves Nagle's rule on, at its own end alone. Nothing else "
        "is set."
        + ("" if any(len(fit.tried) > 1 for fit in results.fits) else " At this scale no other speeds were tried.")
    )
    return Section("machines", "Machines", "Machines", prose, table=tables.fits_table(results.fits, results))


def _short(results: Results, fit: Fit) -> str:
    """A machine's name without what it runs."""
    name: str = getattr(results.paper.machines, fit.machine)
    return name.split(",")[0]


def _figures(results: Results) -> Iterator[Section]:
    extent = f"Scale {results.scale}. Throughput is 2N/T, 1 kB = 1000 bytes; of the series the lowest is dropped."
    yield _throughput(
        results, "figure-1", "Figure 1: size and throughput", "Figure 1", names.ATM, names.LINUX, prose=extent
    )
    yield _throughput(results, "exchanged", "Client and server exchanged", "Exchanged", names.SWAPPED)
    yield Section("difference", "By how much they differ", "Difference", figure="difference")
    if names.ATM in results.curves:
        curve = results.curves[names.ATM]
        yield Section(
            "figure-2", "Figure 2: enlargement", "Figure 2",
            "Judged on the time of frames on the wire, which has no noise, and on the least round trips. A step of "
            "d us lowers throughput to the next size only if d is above 32 divided by the throughput in MB/s.",
            "figure-2", figure2.windows_table(curve),
        )  # fmt: skip
        yield Section("fold", "What goes by cells", "Cells", figure="figure-2-fold", table=figure2.fold_table(curve))
    yield _throughput(results, "figure-3", "Figure 3: UDP and TCP", "Figure 3", names.UDP, names.TCP)
    yield _throughput(results, "figure-4", "Figure 4: ATM and Ethernet", "Figure 4", names.ATM, names.ETHERNET)


def _throughput(results: Results, stem: str, title: str, link: str, *keys: str, prose: str = "") -> Section:
    curves = _curves(results, *keys)
    return Section(stem, title, link, prose, stem, tables.curve_table(curves), tables.parts_table(curves))


def _beside(results: Results) -> Iterator[Section]:
    of: Mapping[str, Mapping[int, float]] = ratios(results)
    yield Section(
        "raw", "RPC and its transports", "Raw sockets", figure="ratios",
        table=tables.ratios_table(results, [pair for pair in PAIRS if of[pair[0]]], of),
        parts=tables.streams_table(results),
        remarks="The printed ratios cannot hold at the printed maxima: three times 500 kB/s is more than 10 Mbit/s "
        "carry, three times 7 MB/s more than one direction of OC-3c. The paper cites a thesis for them and does not "
        "say of which runs they are.",
    )  # fmt: skip
    yield Section("spread", "Standard deviation", "Deviation", figure="spread")
    if names.PCS in results.curves:
        yield Section("pc-pc", "Two PCs on the hub", "PCs", table=tables.curve_table(_curves(results, names.PCS)))
    control = results.control
    if control is not None:
        prose = (
            f"The first call takes {control.first_us:,.0f} us, those after it {control.later_us:,.0f} us: ARP and LAN "
            "emulation find the other end, set up a channel and empty the path by the BUS. Calls of the curves come "
            "after a call that is not counted."
        )
        yield Section("control", "LAN emulation at the first calls", "LAN emulation", prose,
                      table=tables.control_table(control))  # fmt: skip
    yield Section("captures", "Captures", "Captures", table=tables.captures_table(results))
