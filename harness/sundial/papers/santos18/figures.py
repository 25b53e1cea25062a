# SPDX-License-Identifier: Apache-2.0
"""The figures of santos18 by number, as measured: the paper prints no numbers that could stand beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sundial.papers.santos18 import other_systems
from sundial.papers.santos18.paper import Container, Place, Shown, System
from sundial.papers.santos18.results import DISTANCE, FIRST_ELEVEN, Case, Cell, Results
from sundial.report import palette, plotting, registry
from sundial.report.plotting import Drawing
from sundial.reproduce.figures import legend_above, one_axis
from sundial.workloads.functions import NAMES as FUNCTIONS

COLOURS: Mapping[str, str] = {"grpc": palette.SPARE[3], "rpyc": palette.SPARE[0]}
MARKERS: Mapping[str, str] = {"grpc": "P", "rpyc": "v"}
NAMES: Mapping[str, str] = {**other_systems.NAMES, "grpc": "gRPC", "rpyc": "RPyC"}
"""In the order in which systems are listed."""
OF_PLACE: Mapping[Place, str] = {"local": palette.SPARE[0], "remote": palette.SPARE[1]}
PLACES: Sequence[Place] = ("local", "remote")
SYSTEMS_TITLE = "What two decades of RPC cost"
DOTTED = "string_1024"
"""The function of figures 6 and 11; the paper does not say which it drew."""
LEFT_IN = 1.15
Bar = tuple[str, Cell, str]
"""Label, what it shows, colour."""


def draw_all(results: Results, folder: Path) -> Iterator[Drawing]:
    """Those of which everything was measured."""
    for number, shown in results.paper.figures.items():
        drawing = _draw(results, number, shown, folder)
        if drawing is not None:
            yield drawing
    if (slopes := draw_slopes(results, folder)) is not None:
        yield slopes
    if (systems := draw_systems(results, folder)) is not None:
        yield systems


def _draw(results: Results, number: int, shown: Shown, folder: Path) -> Drawing | None:
    if shown.kind == "dots":
        return _dots(results, number, shown.system or "grpc", folder)
    place: Place = shown.place or "local"
    if shown.kind == "distance":
        return _distance(results, number, shown.containers, folder)
    systems: Sequence[System] = ("grpc", "rpyc") if shown.system is None else (shown.system,)
    if any(Case(system, place, name) not in results.cells for system in systems for name in FIRST_ELEVEN):
        return None
    if shown.kind == "boxes":
        return _boxes(results, number, systems[0], place, folder)
    return _bars_of(results, number, systems, place, folder)


def _boxes(results: Results, number: int, system: System, place: Place, folder: Path) -> Drawing:
    cells = [results.cells[Case(system, place, name)].spread for name in FIRST_ELEVEN]

    def paint(figure: Figure) -> None:
        axis = _axis(figure, FIRST_ELEVEN)
        axis.boxplot(
            [each.trimmed for each in cells], orientation="horizontal", positions=range(len(cells)), widths=0.6,
            manage_ticks=False, patch_artist=True,
            boxprops={"facecolor": palette.CARD, "edgecolor": COLOURS[system]},
            whiskerprops={"color": COLOURS[system]}, capprops={"color": COLOURS[system]},
            medianprops={"color": palette.INK},
            flierprops={"marker": "o", "markersize": 2, "markeredgecolor": palette.MUTED},
        )  # fmt: skip
        axis.set_xlim(left=0)

    medians = [f"{name} {each.median:.2f} ms" for name, each in zip(FIRST_ELEVEN, cells, strict=True)]
    title = f"Figure {number}: {NAMES[system]}, {place}"
    low, high = results.paper.percentiles
    caption = (
        f"{title}. What is within percentiles {low:g} and {high:g}: quartiles, median, and whiskers to the farthest "
        "value within 1.5 of their distance."
    )
    return plotting.draw(
        f"figure-{number}", title, caption, folder, 3.6, paint, seen="Medians: " + ", ".join(medians) + "."
    )


def _bars_of(results: Results, number: int, systems: Sequence[System], place: Place, folder: Path) -> Drawing:
    bars: dict[str, Sequence[Bar]] = {
        system: [(name, results.cells[Case(system, place, name)], COLOURS[system]) for name in FIRST_ELEVEN]
        for system in systems
    }
    title = f"Figure {number}: {' and '.join(NAMES[each] for each in systems)}, {place}"
    return _bars(title, number, bars, folder)


def _bars(title: str, number: int, bars: Mapping[str, Sequence[Bar]], folder: Path) -> Drawing:
    """A group of bars for each label; `bars` by what the legend calls them."""
    labels = [label for label, _, _ in next(iter(bars.values()))]

    def paint(figure: Figure) -> None:
        axis = _axis(figure, labels, legend=len(bars) > 1)
        height = 0.8 / len(bars)
        for turn, (name, group) in enumerate(bars.items()):
            places = [place - 0.4 + height * (turn + 0.5) for place in range(len(group))]
            axis.barh(
                places, [cell.spread.mean for _, cell, _ in group], height * 0.9,
                xerr=[cell.spread.standard_error for _, cell, _ in group], color=[colour for _, _, colour in group],
                ecolor=palette.INK, capsize=2, error_kw={"linewidth": 0.9}, label=NAMES.get(name, name),
            )  # fmt: skip
        if len(bars) > 1:
            axis.figure.legend(ncols=len(bars), loc="upper left", bbox_to_anchor=(0.02, 1.0))

    means = "; ".join(
        (f"{NAMES.get(name, name)}: " if name else "")
        + ", ".join(f"{label} {cell.spread.mean:.2f} ms" for label, cell, _ in group)
        for name, group in bars.items()
    )
    caption = f"{title}. Trimmed means, with their standard errors."
    rows = len(labels) * len(bars)
    return plotting.draw(f"figure-{number}", title, caption, folder, max(2.2, 0.9 + 0.22 * rows), paint, seen=means)


def _dots(results: Results, number: int, system: System, folder: Path) -> Drawing | None:
    cells = {place: results.cells.get(Case(system, place, DOTTED)) for place in PLACES}
    shown = {place: cell.in_order_ms for place, cell in cells.items() if cell is not None}
    if len(shown) < len(PLACES):
        return None

    def paint(figure: Figure) -> None:
        axis = one_axis(figure, top=0.5)
        for place, times in shown.items():
            axis.plot(
                range(1, len(times) + 1), times, linestyle="none", marker="o", markersize=2.4, color=OF_PLACE[place],
                label=place,
            )  # fmt: skip
        plotting.value_axis(axis, "ms", 0, max(max(times) for times in shown.values()), log=False)
        axis.set_xlabel("call")
        figure.legend(ncols=2, loc="upper left", bbox_to_anchor=(0.02, 1.0))

    title = f"Figure {number}: {NAMES[system]}, calls of {DOTTED}"
    seen = "; ".join(f"{place}: {min(times):.2f} to {max(times):.2f} ms" for place, times in shown.items())
    return plotting.draw(
        f"figure-{number}", title, f"{title}, one after another, local and remote.", folder, 3.2, paint, seen=seen
    )


def _distance(results: Results, number: int, containers: Sequence[Container], folder: Path) -> Drawing | None:
    """What the paper shows must be there, gRPC and numpy; the other bars are ours."""
    wanted: list[tuple[str, Case]] = [] if number == 15 else [("gRPC", Case("grpc", "local", DISTANCE))]
    needed = {case for _, case in wanted} | {Case("rpyc", "local", DISTANCE, each) for each in containers}
    if not needed <= results.cells.keys():
        return None
    for container in containers:
        for variant in ("numpy", "zip"):
            for nodelay in (False, True):
                label = f"RPyC {container}, {variant}" + (", no Nagle" if nodelay else "")
                wanted.append((label, Case("rpyc", "local", DISTANCE, container, variant, nodelay)))
    bars = [(label, results.cells[case], COLOURS[case.system]) for label, case in wanted if case in results.cells]
    return _bars(f"Figure {number}: the distance of two points, local", number, {"": bars}, folder)


def draw_slopes(results: Results, folder: Path) -> Drawing | None:
    """Time by round trip of the link: its slope is how many round trips a call waits for."""
    if not results.slopes:
        return None
    lines = [(_named(case), case, slope) for case, slope in results.slopes.items()]
    styles, markers = ("-", "--", ":", "-."), ("o", "s", "^")

    def paint(figure: Figure) -> None:
        axis = one_axis(figure, top=1.25)
        drawn: dict[str, int] = {}
        for label, case, slope in lines:
            trips = sorted(slope.points)
            turn = drawn[case.system] = drawn.get(case.system, -1) + 1
            axis.plot(
                trips, [slope.points[each] for each in trips], markersize=4,
                marker=markers[turn // len(styles) % len(markers)],
                color=COLOURS.get(case.system, palette.SPARE[2]), linestyle=styles[turn % len(styles)],
                label=f"{label}: {slope.round_trips:.2f}",
            )  # fmt: skip
        plotting.value_axis(axis, "ms", 0, max(max(slope.points.values()) for _, _, slope in lines), log=False)
        axis.set_xlim(left=0)
        axis.set_xlabel("round trip of the link (ms)")
        legend_above(figure, 3, left=0.02)

    title = "Round trips in a call"
    seen = "; ".join(f"{label}: {slope.round_trips:.2f} round trips a call" for label, _, slope in lines)
    caption = f"{title}: median time by the link's round trip time; in the legend the slope."
    return plotting.draw("slopes", title, caption, folder, 4.2, paint, seen=seen, narrow_height_in=6.4)


def systems_of(results: Results, place: Place) -> list[str]:
    """Of which all twelve functions were measured in a place: of RPyC with lists, as in the paper."""
    return [name for name in NAMES if all(Case(name, place, each) in results.cells for each in FUNCTIONS)]


def draw_systems(results: Results, folder: Path) -> Drawing | None:
    """All systems by function, a panel a place."""
    panels = {place: systems_of(results, place) for place in PLACES}
    shown = [name for name in NAMES if any(name in systems for systems in panels.values())]
    if not set(shown) & set(other_systems.NAMES):
        return None
    places = [place for place, systems in panels.items() if systems]

    def paint(figure: Figure) -> None:
        columns, more = plotting.legend_rows(figure, [NAMES[name] for name in shown])
        narrow = plotting.is_narrow(figure)
        room = plotting.margins(figure, left=LEFT_IN, right=0.2, top=0.62 + more, bottom=0.5)
        shape = (len(places), 1) if narrow else (1, len(places))
        axes = figure.subplots(
            *shape, sharex=True, sharey=True, squeeze=False, gridspec_kw={"hspace": 0.12, "wspace": 0.05, **room}
        )
        for axis, place in zip(axes.flat, places, strict=True):
            for name in panels[place]:
                colour, marker = _look(name)
                medians = [results.cells[Case(name, place, each)].spread.median for each in FUNCTIONS]
                axis.plot(
                    medians,
                    range(len(FUNCTIONS)),
                    color=colour,
                    marker=marker,
                    markersize=4.5,
                    linewidth=0.7,
                    alpha=0.9,
                )
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.grid(visible=True, axis="x")
            _rows(axis, FUNCTIONS)
            plotting.panel_title(axis, place)
        for axis in axes[-1]:
            axis.set_xlabel("median, ms")
        looks = [(NAMES[name], *_look(name)) for name in shown]
        handles = [
            Line2D([], [], color=colour, marker=marker, markersize=4.5, linewidth=0.7, label=label)
            for label, colour, marker in looks
        ]
        plotting.legend(figure, handles, columns)

    seen = "; ".join(
        f"void {place}: "
        + ", ".join(
            f"{NAMES[name]} {results.cells[Case(name, place, FUNCTIONS[0])].spread.median:.3f} ms" for name in systems
        )
        for place, systems in panels.items()
        if systems
    )
    caption = f"{SYSTEMS_TITLE}: medians of all calls, on the same machines and the same wire."
    return plotting.draw("systems", SYSTEMS_TITLE, caption, folder, 4.6, paint, seen=seen, narrow_height_in=7.6)


def _look(system: str) -> tuple[str, str]:
    """Colour and marker: in the report of a run the same, where its systems have their own."""
    other = other_systems.SYSTEMS.get(system)
    if other is None:
        return COLOURS[system], MARKERS[system]
    line = registry.client(other.program).lines.get(other.transport)
    return (line.paper, line.marker) if line is not None else (palette.SPARE[2], "D")


def _named(case: Case) -> str:
    words = [NAMES.get(case.system, case.system), case.function]
    if case.function == DISTANCE and case.system == "rpyc":
        words += [case.container, case.variant]
    return " ".join(words) + (", no Nagle" if case.nodelay else "")


def _axis(figure: Figure, labels: Sequence[str], *, legend: bool = False) -> Axes:
    """Times to the right, labels from above."""
    longest = max(len(label) for label in labels)
    left = max(LEFT_IN, 0.075 * longest + 0.2)
    place = plotting.margins(figure, left=left, right=0.2, top=0.45 if legend else 0.15, bottom=0.5)
    axis: Axes = figure.subplots(1, 1, gridspec_kw=place)
    _rows(axis, labels)
    axis.set_xlabel("ms")
    return axis


def _rows(axis: Axes, labels: Sequence[str]) -> None:
    """A row for each label, the first at the top."""
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
