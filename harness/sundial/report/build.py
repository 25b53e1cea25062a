# SPDX-License-Identifier: Apache-2.0
"""Builds the report of a run directory: report.html, figures/, summary.csv."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sundial.model.catalog import COMMAND
from sundial.report import (
    headline,
    ladder_page,
    palette,
    plotting,
    registry,
    stages,
    stats,
    steps,
    tables,
    tables_run,
    topology_narrow,
    topology_read,
    topology_svg,
)
from sundial.report.drawings import Drawn, Tables, draw_all
from sundial.report.figures import WireMinimum
from sundial.report.load import RunData, load
from sundial.report.plotting import Drawing, Pictures
from sundial.report.tables import Table
from sundial.report.topology_view import Topology, in_words
from sundial.report.workload import BOTH_DIRECTIONS, Curve
from sundial.whole import whole

HERE = Path(__file__).parent


@dataclass(frozen=True)
class ReportPaths:
    """What was written."""

    html: Path
    summary: Path
    figures: tuple[Path, ...]


def build_report(run_dir: Path, *, png: bool = False, drawn: bool = True) -> ReportPaths:
    """Writes report.html, summary.csv and figures/ into a run directory, whatever state the run is in; with `png` each
    figure as PNG beside the SVG. Not `drawn`, figures are said in words, and the page says how they come to be drawn.

    Raises BadInput where there is no readable run.json.
    """
    data = load(run_dir)
    folder = run_dir / "figures"
    folder.mkdir(exist_ok=True)
    # They go when the new ones are there, which are other files even where they have their names.
    before = {path: path.stat().st_ino for path in (*folder.glob("*.svg"), *folder.glob("*.png"))}
    made, topology = _read(data)
    pictures = Pictures(png=png, painted=drawn)
    figures, of_segments, of_calls = _draw(data, made, topology, folder, pictures)
    ladders = ladder_page.draw(run_dir, data.verify, folder) if drawn else []
    drawing = topology_svg.draw(topology)
    if drawing:
        with whole(folder / "topology.svg") as beside:
            beside.write_text(drawing, encoding="utf-8")
    summary = run_dir / "summary.csv"
    with whole(summary) as beside:
        made.summary.write_csv(beside, float_precision=3)
    html = run_dir / "report.html"
    with whole(html) as beside:
        beside.write_text(
            _page(data, made, figures, of_segments, of_calls, ladders, topology, pictures), encoding="utf-8"
        )
    for path, number in before.items():
        if path.stat().st_ino == number:
            path.unlink()
    return ReportPaths(html, summary, tuple(sorted(folder.iterdir())))


def _read(data: RunData) -> tuple[Tables, Topology]:
    made = _tables(data)
    return made, topology_read.read(data.run, *_roles(data, made))


def _draw(
    data: RunData, made: Tables, topology: Topology, folder: Path, pictures: Pictures
) -> tuple[Drawn, dict[str, list[Drawing]], list[Drawing]]:
    """The figures of the run, those that its segments have of their own, and calls by lanes."""
    with plotting.pictures(pictures):
        return (
            draw_all(data, made, topology, folder),
            topology_read.own_drawings(data, folder),
            steps.pictures(made.steps, made.looks, made.sizes, folder),
        )


def _roles(data: RunData, made: Tables) -> tuple[list[str], list[str]]:
    """Who called and who served: from the calls, or from the jobs where none were recorded."""
    calling = {name: [not registry.serves(step) for step in job.get("steps", [])] for name, job in data.jobs.items()}
    callers = [name for name, steps in calling.items() if any(steps)]
    serving = [
        name for name, job in data.jobs.items() if name not in callers and (job.get("services") or calling[name])
    ]
    return made.clients or callers, made.servers or serving


def _tables(data: RunData) -> Tables:
    scenario = data.run.get("scenario")
    statistic = scenario.get("statistic") if isinstance(scenario, dict) else None
    batches = stats.batches(data.samples)
    summary = stats.summary(data.samples, batches, statistic)
    curves = stats.curves(data.samples, batches, summary, statistic)
    keys = [(row[0], row[1], row[2]) for row in curves.select(stats.CURVE).unique().iter_rows()]
    common_axis = data.run.get("clock") != "real"
    joined = stages.join(data.samples, data.observed)
    everywhere = curves.group_by("size").len().filter(pl.col("len") == len(keys))["size"].to_list()
    sizes = stats.chosen_sizes(everywhere or curves["size"].to_list())
    return Tables(
        batches=batches,
        summary=summary,
        curves=curves,
        stages=stages.stages(joined, [*stats.CURVE, "size"], common_axis),
        looks=palette.looks(keys),
        sizes=sizes,
        clients=batches["client"].unique().sort().to_list(),
        servers=batches["server"].unique().sort().to_list(),
        statistic=statistic if isinstance(statistic, str) else "mean",
        common_axis=common_axis,
        steps=steps.read(data.directory, data.samples),
    )


def _page(
    data: RunData, made: Tables, drawn: Drawn, of_segments: Mapping[str, Sequence[Drawing]],
    of_calls: Sequence[Drawing], ladders: Sequence[ladder_page.Shown], topology: Topology, pictures: Pictures,
) -> str:  # fmt: skip
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    everything = {
        **drawn.drawings,
        **{drawing.stem: drawing for each in (*of_segments.values(), of_calls) for drawing in each},
    }
    inline = {stem: Markup(plotting.inline(drawing)) for stem, drawing in everything.items() if drawing.svg}
    segment_tables = topology_read.own_tables(data)
    style = (HERE / "style.css").read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    run = data.run
    problems = tables.problems(data.verify, data.reference)
    return environment.get_template("template.html.j2").render(
        style=Markup(style),
        name=data.name,
        sundial=COMMAND,
        reference=data.reference,
        drawn=pictures.painted,
        head=headline.headline(data, made.curves),
        remarks=data.remarks,
        topology=_inline_topology(topology) if topology.machines else None,
        what=tables.what_was_run(made.batches, made.looks),
        setup=headline.setup(run),
        drawings=everything,
        segments=_own_parts(of_segments, segment_tables),
        inline=inline,
        ladders=ladders,
        png=pictures.png,
        key_numbers=tables.key_numbers(made.curves, made.sizes, made.looks, _bounds(drawn.floors), drawn.cells),
        stage_numbers=tables.stage_numbers(made.stages, made.sizes, made.looks, made.common_axis),
        steps=steps.tables(made.steps, made.looks, made.sizes),
        calls_by_lane=[drawing.stem for drawing in of_calls],
        divided=(data.verify or {}).get("steps"),
        verified=data.verify is not None,
        verdicts=tables.verdicts(data.verify, made.looks),
        bounds=tables.bounds(data.verify),
        checks=tables.checks(data.verify),
        problems=problems,
        problems_shown=sum(each.joined for each in problems),
        rules=tables.rules_of(problems),
        first_problem=tables.first_problem(data.verify, data.reference),
        problem_count=(data.verify or {}).get("mismatches") or 0,
        unproven=(data.verify or {}).get("unproven") or [],
        after=_present(
            tables_run.exchanges(data.verify),
            tables_run.figures(data.verify),
            tables_run.classified(data.verify),
            tables_run.wires(data.counters),
            tables_run.devices(data.counters),
            tables_run.bindings(data.records.get("binding", [])),
            tables_run.scalars("Counters of the services", data.records.get("counters", [])),
            tables_run.scalars("Errors that guests reported", data.records.get("error", [])),
        ),
        own_tables=registry.tables(data.records, data.samples),
        facts=tables_run.facts(run),
        hashes=tables_run.hashes(run),
        consoles=data.consoles if headline.failed(run) else {},
        command=headline.command(run),
        seed=run.get("seed"),
        captures=_captures(data),
        summary_rows=made.summary.height,
        filters=headline.filters(made.curves),
    )


def _bounds(floors: Mapping[Curve, WireMinimum]) -> dict[Curve, dict[int, float]]:
    """Most throughput that the wires allow, kB/s, by curve and size; of curves that move their argument both ways."""
    return {
        curve: {size: 2e3 * size / us for size, us in zip(floor.sizes, floor.us, strict=True) if us > 0}
        for curve, floor in floors.items()
        if registry.moves(curve[0], curve[2]) == BOTH_DIRECTIONS
    }


def _own_parts(
    drawings: Mapping[str, Sequence[Drawing]], own_tables: Mapping[str, Sequence[Table]]
) -> dict[str, tuple[list[str], list[Table]]]:
    """By segment: file stems of its figures, and its tables."""
    names = dict.fromkeys((*drawings, *own_tables))
    return {name: ([each.stem for each in drawings.get(name, ())], list(own_tables.get(name, ()))) for name in names}


def _inline_topology(topology: Topology) -> Markup:
    """Wide, and narrow for small screens."""
    ways = (
        ("wide", "topology", topology_svg.draw(topology)),
        ("narrow", "narrow-topology", topology_narrow.draw(topology)),
    )
    words = in_words(topology)
    parts = (
        f'<div class="canvas {way}" tabindex="0" role="group" aria-label="Topology">'
        f"{palette.themed(svg, prefix, words, topology_svg.natural_width(svg))}</div>"
        for way, prefix, svg in ways
    )
    return Markup("".join(parts))


def _present(*found: Table | None) -> list[Table]:
    return [table for table in found if table is not None]


def _captures(data: RunData) -> list[str]:
    """The names of captures as `sundial open` takes them."""
    named = data.run.get("captures")
    listed: list[str] = [str(name) for name in named] if isinstance(named, dict) else []
    there = [str(path.relative_to(data.directory)) for path in sorted((data.directory / "wire").rglob("*.pcapng"))]
    return [PurePath(name).stem for name in sorted({*listed, *there})]
