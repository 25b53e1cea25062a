# SPDX-License-Identifier: Apache-2.0
"""DCE RPC beside Sun RPC: what a null call takes."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.context import Cannot, Context
from benchmarks.experiments import echo
from benchmarks.figure import Figure, Outcome, Peer, Target
from benchmarks.guests import timed
from sundial.errors import SundialError

SUBJECT = "DCE RPC"
FEW, MANY = 500, 1500
RATIO = Target("at most", 1.5)


def measure(context: Context) -> Iterator[Outcome]:
    """Instructions of both ends and all that runs beside, as the difference of a long and a short run."""
    found: dict[str, float] = {}
    for app in ("sunrpc", "dce"):
        context.say(f"null calls of {app}")
        try:
            found[app] = _instructions(context, app)
        except (Cannot, SundialError) as error:
            raise Cannot(f"{app}: {error}") from None
    sunrpc, dce = found["sunrpc"], found["dce"]
    name, note = "null call, both ends", f"mean of {MANY - FEW} calls one after the other, hub of 100 Mb/s"
    yield Figure(SUBJECT, name, "instructions", (dce,), Peer("Sun RPC over UDP", sunrpc), note, anywhere=True)
    yield Figure(SUBJECT, f"{name}, by Sun RPC's over UDP", "", (dce / sunrpc,), RATIO, note, anywhere=True)


def _instructions(context: Context, app: str) -> float:
    counted = []
    for calls in (FEW, MANY):
        folder = context.folder / f"{app}-{calls}"
        folder.mkdir()
        experiment = echo(folder, calls=calls, rate="100 Mbit/s", app=app, procedures=["null"], sizes=[0])
        counted.append(timed(experiment, folder).counts)
    more = counted[1].less(counted[0]).instructions
    if more is None:
        raise Cannot("a plugin has not said how many instructions its machine executed")
    return more / (MANY - FEW)
