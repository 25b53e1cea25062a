# SPDX-License-Identifier: Apache-2.0
"""`sundial run`: run a scenario, verify its capture, write its report."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, evaluation, outcome, rooms, sweep_rooms
from sundial.cli.options import checked_connect, checked_out, connect_option, recipe_option
from sundial.cli.programs import events_of, print_events, print_programs, programs_of
from sundial.cli.runs import captures, reference_to
from sundial.cli.talk import Verb, as_json, print_json, progress, say
from sundial.cli.twice import compared, first_difference, hogs
from sundial.cli.verify import bound_line, check_line
from sundial.described import descriptions
from sundial.errors import BadInput, RunFailed, VerificationFailed
from sundial.model.catalog import typed
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.scenario import KINDS
from sundial.model.timeline import WIRE_VERBS, Event
from sundial.model.topology import Clock
from sundial.plan.build import Plan, plan_run
from sundial.plan.paths import DRY
from sundial.plan.request import Progress, RunRequest
from sundial.units import counted


class _Run(Verb):
    """Lists the kinds of workloads and their transports below its help, one a line."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = ["\b", "Workloads (app):"]
        for app, kind in KINDS.items():
            transports = ", ".join(transport.name for transport in kind.transports)
            over = f" Over {transports}." if transports else ""
            lines.append(f"  {app}: {descriptions(kind.model)['app']}{over}")
        self.epilog = "\n".join(lines)
        super().format_epilog(ctx, formatter)


@click.command(cls=_Run)
@click.argument("scenario", shell_complete=completion.SCENARIOS)
@click.option(
    "--topology",
    metavar="T",
    shell_complete=completion.TOPOLOGIES,
    help="Name or file of the topology. Default: the scenario's.",
)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a field; may be repeated.")
@click.option("--scale", metavar="S", help="Scale: smoke, quick or paper, if the scenario has it.")
@click.option("--seed", type=int, metavar="N", help="Seed for all random choices. Default: the scenario's.")
@click.option("--clock", type=click.Choice(["virtual", "real"]), help="Virtual time, or the host's clock (real).")
@click.option(
    "--trace",
    type=click.Choice(["steps", "none"]),
    help="Break each call's time into steps, for workloads that support it. Does not change the run.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Run directory to write.")
@connect_option
@recipe_option
@click.option("--cold", is_flag=True, help="Boot the guests instead of restoring them.")
@click.option(
    "--report",
    type=click.Choice(evaluation.REPORTS),
    default="later",
    help="When figures of the report are drawn. later (default): by `sundial report`, and in words until then; "
    "no: write none.",
)
@click.option("--no-report", "report", flag_value="no", help="The same as --report no.")
@click.option("--twice", is_flag=True, help="Run again, and compare captures, samples and outputs byte by byte.")
@click.option(
    "--hog",
    type=click.IntRange(1, 64),
    metavar="N",
    help="With --twice: N busy loops take processor time from the second run.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and its key as JSON; start nothing.")
@outcome.options
@as_json
def run(
    scenario: str,
    topology: str | None,
    overrides: tuple[str, ...],
    scale: str | None,
    seed: int | None,
    clock: Clock | None,
    trace: str | None,
    out: Path | None,
    connect: str,
    recipe: str | None,
    cold: bool,
    report: evaluation.Report,
    twice: bool,
    hog: int | None,
    dry_run: bool,
    junit: Path | None,
    summary: Path | None,
    as_json: bool,
) -> None:
    """Run SCENARIO (a name or a file), verify the capture against the protocol, and write the report.

    \b
    sundial run quickstart
    sundial run quickstart --set sizes=1472,1473 --set mtu=576
    sundial run quickstart --trace steps
    sundial run command --twice --hog 2
    sundial run sunrpc-sweep --scale quick --topology two-hosts-switched
    """
    connect, out = checked_connect(connect), checked_out(out)
    if trace is not None:
        overrides = (*overrides, f"trace={trace}")
    with outcome.written(junit, summary, Path(scenario).stem) as ended:
        experiments = load_experiments(
            scenario, topology=topology, overrides=overrides, scale=scale, seed=seed, clock=clock
        )
        _check_twice(experiments, twice=twice, hog=hog)
        plans = [plan_run(experiment, DRY) for experiment in experiments]
        if dry_run:
            _print_plans(experiments, plans, recipe)
            return
        folders = _folders(out, len(experiments))
        results = []
        with progress(quiet=as_json) as shown:
            for experiment, folder in zip(experiments, folders, strict=True):
                make = partial(one, experiment, connect=connect, recipe=recipe, cold=cold, shown=shown, ended=ended)
                results.append(make(folder, report=report))
                if twice:
                    results[-1]["again"] = _again(Path(results[-1]["path"]), out, hog or 0, make, shown)
        if as_json:
            print_json(results if len(results) > 1 else results[0])
        else:
            for result in results:
                print_result(result, drawn=report != "later")
        differing = [result for result in results if (result.get("again") or {}).get("difference")]
        if differing:
            first, again = differing[0]["path"], differing[0]["again"]
            raise VerificationFailed(f"{again['path']}: differs from {first}: {again['difference']}")
        failed = [result for result in results if result["verdict"] != "pass"]
        if failed:
            raise VerificationFailed(
                f"{failed[0]['path']}: verification failed: {counted(failed[0]['mismatches'], 'mismatch')}"
            )


def _again(made: Path, out: Path | None, count: int, make: Callable[..., dict[str, Any]], shown: Progress) -> Any:
    """The same run beside `count` busy loops, compared with the first."""
    shown.say("running again")
    with hogs(count):
        again = make(None if out is None else made.with_name(f"{made.name}-again"), report="no")
    return {
        "path": again["path"],
        "verdict": again["verdict"],
        "hogs": count,
        "files": len(compared(made)),
        "difference": first_difference(made, Path(again["path"])),
    }


def _print_plans(experiments: Sequence[Experiment], plans: Sequence[Plan], recipe: str | None) -> None:
    identities = sweep_rooms.identities(recipe)
    print_json(
        [
            {
                "scenario": experiment.scenario_json(),
                "topology": experiment.topology_json(),
                "fabric": plan.fabric,
                "jobs": {name: job.document() for name, job in plan.jobs.items()},
                **identities.of(experiment).to_json(),
            }
            for experiment, plan in zip(experiments, plans, strict=True)
        ]
    )


def _check_twice(experiments: Sequence[Experiment], *, twice: bool, hog: int | None) -> None:
    """Raises BadInput for runs that do not repeat, and for loops beside nothing."""
    if hog is not None and not twice:
        raise BadInput("--hog has no effect without --twice", field="--hog", allowed="--twice --hog N")
    if twice and any(experiment.clock != "virtual" for experiment in experiments):
        what = "runs under the real clock do not repeat to the byte"
        raise BadInput(what, field="--twice", allowed="--clock virtual")


def _folders(out: Path | None, count: int) -> list[Path | None]:
    """One run directory for each run; a scenario that varies writes DIR-1, DIR-2 and so on."""
    if out is None:
        return [None] * count
    folders = [out] if count == 1 else [out.with_name(f"{out.name}-{number + 1}") for number in range(count)]
    for folder in folders:
        if folder.exists():
            raise BadInput(f"{folder} exists already", file="--out", allowed="a directory that does not exist yet")
        if not folder.parent.is_dir():
            raise BadInput(
                f"{folder.parent} is not a directory", file="--out", allowed="a new name in an existing directory"
            )
    return list(folders)


def one(
    experiment: Experiment,
    folder: Path | None,
    *,
    connect: str,
    recipe: str | None,
    cold: bool,
    report: evaluation.Report,
    shown: Progress,
    ended: outcome.Outcome | None = None,
) -> dict[str, Any]:
    """Make, verify and report one run; the result as `--json` prints it."""
    request = RunRequest(
        experiment,
        rooms.CAPTURES,
        folder,
        connect,
        cold,
        tuple(sys.argv),
        recipe=recipe,
        while_running=partial(evaluation.imported_meanwhile, report),
    )
    began, ended = time.monotonic(), ended or outcome.Outcome(None, None, "")
    if experiment.variant:
        shown.say(f"run with {experiment.variant}")
    try:
        made = rooms.run(request, shown)
    except RunFailed as error:
        # A verdict and a report of what there is, to find the cause. An error here must not hide the failure.
        verdict: dict[str, Any] | None = None
        with contextlib.suppress(Exception):
            if error.folder is not None and (report != "no" or ended.is_asked_for):
                verdict, _ = _evaluate(error.folder, report, shown)
        ended.add(_name(experiment), verdict, error.folder, error, time.monotonic() - began)
        raise
    verdict, page = _evaluate(made.path, report, shown)
    seconds = time.monotonic() - began
    ended.add(_name(experiment), verdict, made.path, None, seconds)
    return {
        "path": str(made.path),
        "variant": experiment.variant,
        "verdict": verdict["verdict"],
        "calls": verdict.get("calls"),
        "mismatches": verdict.get("mismatches"),
        "unproven": len(verdict.get("unproven") or []),
        "first_mismatch": _first_mismatch(reference_to(made.path), verdict),
        "bounds": verdict.get("bounds") or [],
        **({"checks": verdict["checks"]} if "checks" in verdict else {}),
        **({"remarks": verdict["remarks"]} if "remarks" in verdict else {}),
        "virtual_s": made.virtual_ns / 10**9,
        "wall_s": round(made.wall_s, 3),
        "total_s": round(seconds, 3),
        **({"programs": programs} if (programs := programs_of(made.path)) else {}),
        **({"events": events} if (events := events_of(made.path)) else {}),
        **({"unreached": late} if (late := unreached(experiment.network.events, made.virtual_ns)) else {}),
        "report": page,
        "captures": [str(path) for path in captures(made.path).values()],
    }


def unreached(events: Sequence[Event], end_ns: int) -> list[str]:
    """Events of wires that came too late, a line each: no frame can have met them."""
    late = [(number, each.verb, each.at_) for number, each in enumerate(events) if each.verb in WIRE_VERBS]
    return [
        f"timeline.{number}: {verb} at {at_ns / 10**9:g} s was not reached: the run ended at {end_ns / 10**9:.3f} s"
        for number, verb, at_ns in late
        if at_ns is not None and at_ns >= end_ns
    ]


def _name(experiment: Experiment) -> str:
    """What a test suite is called: the scenario and what varied."""
    return f"{experiment.scenario.name} {experiment.variant}".strip()


def _evaluate(folder: Path, report: evaluation.Report, shown: Progress) -> tuple[dict[str, Any], str | None]:
    """The verdict and, if asked for, the path of the report."""
    shown.say("verifying the capture")
    verdict = rooms.verify_run(folder)
    if report == "no":
        return verdict, None
    shown.say("writing the report")
    return verdict, str(rooms.build_report(folder, drawn=report == "now"))


def _first_mismatch(run: str, verdict: dict[str, Any]) -> dict[str, str | None] | None:
    found = rooms.first_mismatch(run, verdict)
    return None if found is None else {"words": found.words, "open": found.open, "rule": found.rule}


def print_result(result: dict[str, Any], *, drawn: bool) -> None:
    """What `sundial run` prints about a run; how figures of its report are drawn, if they are not."""
    name = shlex.quote(reference_to(Path(result["path"])))
    click.echo(f"run      {result['path']}")
    if result["variant"]:
        click.echo(f"with     {result['variant']}")
    calls, mismatches = counted(result["calls"], "call"), counted(result["mismatches"], "mismatch")
    click.echo(f"verdict  {result['verdict']}: {calls}, {mismatches}")
    for bound in result["bounds"]:
        click.echo(f"bound    {bound_line(bound)}")
    for check in result.get("checks", ()):
        click.echo(f"check    {check_line(check)}")
    for remark in result.get("remarks", ()):
        click.echo(f"decoded  {remark}")
    for line in result.get("unreached", ()):
        click.echo(f"warning  {line}")
    first = result["first_mismatch"]
    if first is not None:
        click.echo(f"first    {first['words']}")
        if first["open"] is not None:
            click.echo(f"         {first['open']}")
        if first["rule"] is not None:
            click.echo(typed(f"         its rule: ./sundial explain {first['rule']}"))
        if result["mismatches"] > 1:
            click.echo(typed(f"         list all: ./sundial verify {name}"))
    click.echo(typed(f"unproven {result['unproven']} properties; list them: ./sundial verify --unproven {name}"))
    if "again" in result:
        again = result["again"]
        beside = f", beside {counted(again['hogs'], 'busy loop')}" if again["hogs"] else ""
        outcome = f"differs: {again['difference']}" if again["difference"] else f"{again['files']} files are equal"
        click.echo(f"twice    {outcome}{beside} ({again['path']})")
    print_programs(result.get("programs", []))
    print_events(result.get("events", []))
    simulated, wall, total = (result[name] for name in ("virtual_s", "wall_s", "total_s"))
    click.echo(f"time     {simulated:.3f} s simulated, {wall:.1f} s wall, {total:.1f} s in all")
    if result["report"] is not None:
        click.echo(f"report   {result['report']}")
    for capture in result["captures"]:
        click.echo(f"capture  {capture}")
    if not drawn:
        say(typed(f"draw its figures with: ./sundial report {name}"))
    say(f"open it with: ./sundial open {name}")
