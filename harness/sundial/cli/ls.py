# SPDX-License-Identifier: Apache-2.0
"""`sundial ls`: the runs in captures/, or the topologies that are up."""

from __future__ import annotations

from typing import Any

import click

from sundial.cli import rooms
from sundial.cli.runs import list_reproductions, list_runs, read_json
from sundial.cli.talk import Verb, as_json, print_json, print_table, say
from sundial.errors import BadInput


@click.command(cls=Verb)
@click.option("--up", is_flag=True, help="List topologies that are up instead of runs.")
@as_json
def ls(up: bool, as_json: bool) -> None:
    """List runs, oldest first, then reproductions of papers."""
    if up:
        _list_kept(as_json)
        return
    rows: list[dict[str, Any]] = []
    for folder, run in list_runs():
        try:
            verdict = str(read_json(folder / "verify.json").get("verdict"))
        except BadInput:
            verdict = "unverified"
        virtual_ns = (run.get("time") or {}).get("virtual_ns")
        rows.append(
            {
                "run": folder.name,
                "status": run.get("status"),
                "verdict": verdict,
                "seed": run.get("seed"),
                "clock": run.get("clock"),
                "virtual_s": virtual_ns / 10**9 if isinstance(virtual_ns, int) else None,
            }
        )
    for folder, reproduction in list_reproductions():
        rows.append(_without_run(folder.name, reproduction.get("status")))
    for folder in rooms.in_the_making():
        name = folder.name.removeprefix(".").removesuffix(".partial")
        rows.append(_without_run(name, "running"))
    if as_json:
        print_json(rows)
        return
    if not rows:
        say("there are no runs yet; make one with: ./sundial run quickstart")
        return
    shown = [["RUN", "STATUS", "VERDICT", "CLOCK", "VIRTUAL"]]
    for row in rows:
        time = "-" if row["virtual_s"] is None else f"{row['virtual_s']:.3f} s"
        shown.append([row["run"], str(row["status"]), row["verdict"] or "-", row["clock"] or "-", time])
    print_table(shown)


def _without_run(name: str, status: object) -> dict[str, Any]:
    return {"run": name, "status": status, **dict.fromkeys(("verdict", "seed", "clock", "virtual_s"))}


def _list_kept(as_json: bool) -> None:
    found = rooms.kept()
    if as_json:
        print_json([kept.to_json() for kept in found])
    elif not found:
        say("nothing is up")
    else:
        rows = [["TOPOLOGY", "CLOCK", "LIBVIRT", "MACHINES"]]
        for kept in found:
            machines = " ".join(machine.name for machine in kept.machines)
            rows.append([kept.topology, kept.clock, ", ".join([kept.connect, *kept.hosts]), machines])
        print_table(rows)
