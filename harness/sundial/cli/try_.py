# SPDX-License-Identifier: Apache-2.0
"""`sundial try`: one program on each machine, the ports learned from the capture, and the scenario to keep."""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from ruamel.yaml import YAML

from sundial.cli import completion, rooms
from sundial.cli.evaluation import Report
from sundial.cli.run import one, print_result
from sundial.cli.talk import Verb, progress
from sundial.errors import BadInput, VerificationFailed
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.plan.request import EMBEDDED, Progress
from sundial.units import counted

ALLOWED = "-- MACHINE: PROGRAM [ARGUMENT ...] -- MACHINE: PROGRAM [ARGUMENT ...]"
_HEAD_START = "2 s"
"""How much later than services the job starts while ports are not known."""
_LEARNED = re.compile(r"(TCP|UDP) to ([0-9.]+):([0-9]+)")

Section = tuple[str, list[str]]
"""A machine, and the words of its program."""
Found = list[tuple[str, str, int]]
"""Ports of servers: tcp or udp, address, number; or icmp."""


def sections(words: Sequence[str]) -> list[Section]:
    """The programs of a command line. Raises BadInput."""
    found: list[Section] = []
    for part in _parts(words):
        machine, colon, rest = part[0].partition(":")
        program = [rest, *part[1:]] if rest else part[1:]
        if not colon or not machine or not program:
            raise BadInput(f"{' '.join(part)!r} is not a machine with a program", field="--", allowed=ALLOWED)
        if machine in (name for name, _ in found):
            raise BadInput(f"{machine!r} has two programs", field="--", allowed="one program a machine")
        found.append((machine, program))
    if not found:
        raise BadInput("no program is given", field="--", allowed=ALLOWED)
    return found


def _parts(words: Sequence[str]) -> Iterable[list[str]]:
    part: list[str] = []
    for word in (*words, "--"):
        if word != "--":
            part.append(word)
        elif part:
            yield part
            part = []


def learned(problems: Iterable[Mapping[str, Any]]) -> Found:
    """The ports that findings of a run without any name, in order."""
    found: Found = []
    for problem in problems:
        field = str(problem.get("field"))
        port = _LEARNED.fullmatch(field)
        if port is not None:
            found.append((port[1].lower(), port[2], int(port[3])))
        elif field == "ICMP echo":
            found.append(("icmp", "", 0))
    return sorted(dict.fromkeys(found))


def document(programs: Sequence[Section], topology: str, found: Found, owners: Mapping[str, str]) -> dict[str, Any]:
    """The scenario: the last program is the job, all others are services. `owners`: machine by address."""
    ports: dict[str, Any] = {}
    ready: dict[str, dict[str, str]] = {}
    for kind, address, number in found:
        name = kind if kind == "icmp" else f"{kind}-{number}"
        ports[name] = {"icmp": True} if kind == "icmp" else {kind: number}
        if kind != "icmp":
            ready.setdefault(owners.get(address, ""), {kind: name})
    *services, (machine, words) = programs
    known = all(name in ready for name, _ in services)
    written: dict[str, Any] = {}
    for name, own in services:
        rule = {"ready": ready[name]} if name in ready else {}
        written[f"on-{name}"] = {"on": name, "role": "service", "argv": own, **rule}
    job: dict[str, Any] = {"on": machine, "argv": words}
    if services:
        job["after"] = [f"on-{name}" for name, _ in services]
    if services and not known:
        job["at"] = _HEAD_START
    written[f"on-{machine}"] = job
    workload = {"app": "command", **({"ports": ports} if ports else {}), "programs": written}
    return {"description": "Programs that were tried", "topology": topology, "workloads": [workload]}


def _text(scenario: Mapping[str, Any]) -> str:
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 120
    yaml.dump(dict(scenario), stream)
    return stream.getvalue()


@click.command("try", cls=Verb, context_settings={"ignore_unknown_options": True})
@click.argument("topology", shell_complete=completion.TOPOLOGIES)
@click.argument("programs", nargs=-1, type=click.UNPROCESSED)
def try_(topology: str, programs: tuple[str, ...]) -> None:
    """Run one program on each machine of TOPOLOGY, learn their ports, and print the scenario to keep.

    The last program is the job; the others are services. The first run learns the ports, the second one is verified
    with them.

    \b
    sundial try two-hosts-lossy -- server: httpd -f -p 8080 -h /etc -- client: wget -O - http://{server}:8080/hosts
    """
    given = sections(programs)
    with tempfile.TemporaryDirectory(prefix="sundial-try-") as folder:
        file = Path(folder, "try.yaml")
        first = _load(file, document(given, topology, [], {}))
        owners = {
            str(nic.address.ip): node.name
            for node in first.network.nodes
            for nic in node.network_adapters
            if nic.address is not None
        }
        with progress(quiet=False) as shown:
            made = _made(first, shown, report="no")
            found = learned(rooms.verify_run(Path(made["path"])).get("problems") or [])
            scenario = document(given, topology, found, owners)
            result = _made(_load(file, scenario), shown, report="later") if found else made
    print_result(result, drawn=False)
    click.echo("\n# The scenario to keep, in a file NAME.yaml for: ./sundial run NAME.yaml")
    click.echo(_text(scenario), nl=False)
    if result["verdict"] != "pass":
        what = counted(result["mismatches"], "mismatch")
        raise VerificationFailed(f"{result['path']}: verification failed: {what}")


def _made(experiment: Experiment, shown: Progress, *, report: Report) -> dict[str, Any]:
    return one(experiment, None, connect=EMBEDDED, recipe=None, cold=False, report=report, shown=shown)


def _load(file: Path, scenario: Mapping[str, Any]) -> Experiment:
    file.write_text(_text(scenario))
    (experiment,) = load_experiments(str(file), topology=str(scenario["topology"]))
    return experiment
