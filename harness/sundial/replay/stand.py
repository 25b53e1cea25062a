# SPDX-License-Identifier: Apache-2.0
"""What there is to see of a run that stands, and the same run made again with stops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import Interrupted, RunFailed, VerificationFailed
from sundial.machines.console import tail
from sundial.plan.request import EMBEDDED, Progress, RunRequest, Standing
from sundial.replay.last import last_frames
from sundial.replay.machines import REGISTERS, Cpu, read_cpu
from sundial.replay.recorded import Recorded, check_same
from sundial.replay.so_far import first_difference
from sundial.run.places import Places
from sundial.run.runner import run
from sundial.run.session import open_session
from sundial.run.watchdog import Watchdog
from sundial.sweep.store import Store

CONSOLE_LINES = 3


@dataclass(frozen=True)
class MachineStands:
    """One machine."""

    clock_ns: int
    cpu: Cpu
    console: Sequence[str]
    """Its last lines."""


@dataclass(frozen=True)
class Stand:
    """A run that stands, and is equal to the recorded one so far."""

    at_ns: int
    frames: Mapping[str, int]
    """By segment: the frames that have begun."""
    last: Mapping[str, Sequence[str]]
    """By segment: the last of them, in words."""
    machines: Mapping[str, MachineStands]


class Enough(Interrupted):
    """The run is not to go on from where it stands."""


def look(recorded: Recorded, standing: Standing) -> Stand:
    """Raises VerificationFailed where the run differs from the recorded one."""
    difference = first_difference(recorded.folder, standing.folder)
    if difference is not None:
        raise VerificationFailed(f"the run made again differs up to {standing.at_ns} ns: {difference}")

    def machine(name: str, clock_ns: int) -> MachineStands:
        registers = monitor(standing, name, REGISTERS)
        lines = tail(standing.folder / "nodes" / name / "console.log", CONSOLE_LINES)
        return MachineStands(clock_ns, read_cpu(registers), lines)

    frames = {name: found.before(standing.at_ns) for name, found in recorded.segments.items()}
    last = {name: last_frames(recorded.capture(name), count, recorded.epoch_ns) for name, count in frames.items()}
    return Stand(standing.at_ns, frames, last, {name: machine(name, at) for name, at in standing.clocks_ns.items()})


def monitor(standing: Standing, machine: str, command: str) -> str:
    """What QEMU's monitor prints."""
    return str(standing.qmp(machine, "human-monitor-command", **{"command-line": command}))


@dataclass(frozen=True)
class StopsAt:
    """Stops that begin with one instant; `ask` is called at each, and says where the next is."""

    first_ns: int
    ask: Callable[[Standing], int | None]

    def stand(self, standing: Standing) -> int | None:
        return self.ask(standing)


def replay(
    recorded: Recorded,
    first_ns: int,
    ask: Callable[[Standing], int | None],
    ended: Callable[[Path], Any],
    progress: Progress,
    *,
    patient: bool = False,
) -> Any:
    """Make the run again with stops. What `ended` makes of the run directory, before that is removed; None where `ask`
    raised Enough. A run that fails as the recorded one did has ended, too.

    `patient`: a debugger may hold machines for as long as it likes. Raises BadInput, HostLacks, RunFailed,
    Interrupted, VerificationFailed.
    """
    session = open_session(EMBEDDED)
    recipe = check_same(recorded, session)
    watchdog = Watchdog(math.inf, math.inf) if patient else None
    with Store(Places().store).making() as folder:
        request = RunRequest(
            recorded.experiment,
            folder,
            folder / "made",
            EMBEDDED,
            cold=False,
            command=(),
            recipe=recipe,
            stops=StopsAt(first_ns, ask),
        )
        try:
            made = run(request, progress, session=session, watchdog=watchdog)
        except Enough:
            return None
        except RunFailed as error:
            if error.folder is None or error.message != recorded.failure:
                raise
            return ended(error.folder)
        return ended(made.path)
