# SPDX-License-Identifier: Apache-2.0
"""`sundial ls`: the runs in captures/, or the topologies that are up."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import name_in_the_making
from sundial.cli.talk import Verb, as_json, in_bytes, print_json, print_table, say
from sundial.errors import BadInput

NOTE_SHOWN = 40
VERDICTS = ("pass", "fail", "checked", "unverified")


@click.command(cls=Verb)
@click.option("--up", is_flag=True, help="List topologies that are up instead of runs.")
@click.option("--since", metavar="WHEN", help="Only what ended since a date (2026-11-27) or an age ago (12h, 30d).")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only runs with this verdict.")
@click.option("--scenario", metavar="S", shell_complete=completion.SCENARIOS, help="Only runs of this scenario.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only what has this tag; may be repeated.")
@as_json
def ls(
    up: bool,
    since: str | None,
    verdict: str | None,
    scenario: str | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> None:
    """List runs and reproductions of papers, oldest first, then what is being made.

    \b
    sundial ls --since 7d --verdict fail
    sundial ls --tag paper --json
    """
    filtered = since is not None or verdict is not None or scenario is not None or bool(tags)
    if up:
        if filtered:
            raise BadInput("--up takes no filter", allowed="--up alone")
        _list_kept(as_json)
        return
    choose = rooms.shelf("choose")
    since_s = None if since is None else choose.parse_since(since, time.time(), "--since")
    wanted = choose.Filter(since_s, verdict, scenario, tags)
    rows = [_row(entry) for entry in rooms.entries() if wanted.takes(entry)]
    if not filtered:
        rows += [_unfinished(name_in_the_making(folder)) for folder in rooms.in_the_making()]
    if as_json:
        print_json(rows)
    elif rows:
        _print(rows)
    elif filtered:
        say("no run is like that; list all with: ./sundial ls")
    else:
        say("there are no runs yet; make one with: ./sundial run quickstart")


def _row(entry: Any) -> dict[str, Any]:
    virtual_ns = (entry.document.get("time") or {}).get("virtual_ns")
    return {
        "run": entry.name,
        "kind": entry.kind,
        "status": entry.status,
        "verdict": entry.verdict,
        "scenario": entry.scenario,
        "topology": entry.topology,
        "seed": entry.document.get("seed"),
        "clock": entry.document.get("clock"),
        "virtual_s": virtual_ns / 10**9 if isinstance(virtual_ns, int) else None,
        "bytes": rooms.shelf("entries").size_of(entry.path),
        "date": datetime.fromtimestamp(entry.changed_s, UTC).isoformat(timespec="seconds"),
        "tags": list(entry.notes.tags),
        "note": entry.notes.note,
        "captures_removed": entry.notes.captures_removed or None,
    }


def _unfinished(name: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(
        ("verdict", "scenario", "topology", "seed", "clock", "virtual_s", "bytes", "date", "captures_removed")
    )
    return {"run": name, "kind": "run", "status": "running", **row, "tags": [], "note": ""}


def _print(rows: list[dict[str, Any]]) -> None:
    shown = [["RUN", "STATUS", "VERDICT", "CLOCK", "VIRTUAL", "SIZE", "DATE", "TAGS", "NOTE"]]
    for row in rows:
        virtual = "-" if row["virtual_s"] is None else f"{row['virtual_s']:.3f} s"
        size = "-" if row["bytes"] is None else in_bytes(row["bytes"])
        note = [row["note"]] if row["note"] else []
        note += [f"captures removed {row['captures_removed']}"] if row["captures_removed"] else []
        text = "; ".join(note)
        text = text if len(text) <= NOTE_SHOWN else text[: NOTE_SHOWN - 3] + "..."
        words = [row["run"], str(row["status"]), row["verdict"] or "-", row["clock"] or "-", virtual]
        shown.append([*words, size, _local(row["date"]), ",".join(row["tags"]) or "-", text or "-"])
    # Columns that hold nothing are left out.
    kept = [place for place, column in enumerate(zip(*shown[1:], strict=True)) if place < 7 or set(column) != {"-"}]
    print_table([[row[place] for place in kept] for row in shown])


def _local(date: str | None) -> str:
    return "-" if date is None else datetime.fromisoformat(date).astimezone().strftime("%Y-%m-%d %H:%M")


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
