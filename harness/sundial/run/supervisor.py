# SPDX-License-Identifier: Apache-2.0
"""Decides when and how a run ends. Pure: events and the time in, a verdict out.

    phase       event                             then
    ---------   -------------------------------   ------------------------------------------------------------------
    running     a guest's error line              running: the run is failing, with the machine named
                job done, status not 0            running: the run is failing; the fabric ends it at an instant of
                                                  virtual time
                failing for FAILING_S             failed: a program wrote an error and its job goes on
                fabric finished                   finishing
                fabric ended                      failed (disk full, killed, its own words)
                fabric ended, for a QEMU did      running: a victim; failed after VICTIM_S unless the culprit shows
                machine ended, report `finished`  running: it has reached the end before the fabric said so
                machine ended, report `off`       running: an event has cut its power
                machine ended, report `aborted`   running: a victim; failed after VICTIM_S unless the culprit shows
                machine ended otherwise           failed, the machine named
                machine lost                      failed, the machine named, with what was lost
                kernel panic                      running: it still prints its trace; failed, the machine named, when
                                                  the machine has ended, or after PANIC_S
                a program stopped its machine     as a kernel panic: powered off, restarted or halted
                too much output                   failed, the machine named
                hung                              failed, the machine named
    finishing   fabric ended with status 0        finished, or finished without machines that were late
                fabric ended otherwise            failed
                FINISH_S passed                   failed: the fabric did not end
                anything else                     finishing
    over        anything                          the verdict is final

However a failing run ends, its verdict is that failure: of the first job that failed, in virtual time, and of its first
error line. If several other things happen at once, the order of the events decides, except for victims; a panic causes
what follows it.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sundial.errors import Whose

VICTIM_S = 2.0
FAILING_S = 10.0
PANIC_S = 2.0
FINISH_S = 20.0
DISK_FULL_STATUS = 5
VICTIM_STATUS = 6
"""Exit status of a fabric that ends because a QEMU ended the run; that QEMU reports the reason."""


OFF = "off"
"""The report of a machine whose power an event has cut."""


@dataclass(frozen=True)
class MachineEnded:
    """QEMU has ended; `report` is the last status of its plugin, `how` the known facts about its end."""

    machine: str
    how: str
    report: str | None = None
    lost: bool = False
    """It is no longer reachable; `how` has the reason."""


@dataclass(frozen=True)
class MachinePanicked:
    """The guest's kernel panicked with this message."""

    machine: str
    line: str


@dataclass(frozen=True)
class MachineStopped:
    """A program has powered its machine off, restarted or halted it; `line` has the words of the guest's kernel."""

    machine: str
    line: str
    programs: tuple[str, ...] = ()
    """Those of the machine's job, where they have names."""


@dataclass(frozen=True)
class GuestFailed:
    """A program in the guest wrote an error line."""

    machine: str
    message: str
    gave_up: bool = False
    """It gave up waiting for a server; the cause, if any, happened before."""


@dataclass(frozen=True)
class GuestExceeded:
    """A guest wrote more than it may."""

    machine: str
    message: str


@dataclass(frozen=True)
class JobDone:
    """The guest has reported the end of its job. `failed`: the program that failed and its status, if known."""

    machine: str
    status: int
    failed: str | None = None


@dataclass(frozen=True)
class FabricFinished:
    """The fabric has written its captures; `virtual_ns` is the run's length, `late` were not done at the deadline."""

    virtual_ns: int
    late: tuple[str, ...] = ()


@dataclass(frozen=True)
class FabricStands:
    """All machines stand at an instant, as they had to."""

    at_ns: int


@dataclass(frozen=True)
class FabricEnded:
    """The fabric's process has ended; a negative status is a signal. `said` is its last line on stderr."""

    status: int
    said: str = ""


@dataclass(frozen=True)
class Hung:
    """There was no progress for `seconds`; `suspects` are the machines that the others wait for."""

    seconds: float
    suspects: tuple[str, ...]


@dataclass(frozen=True)
class Tick:
    """Time has passed, nothing else."""


Event = (
    MachineEnded
    | MachinePanicked
    | MachineStopped
    | GuestFailed
    | GuestExceeded
    | JobDone
    | FabricFinished
    | FabricStands
    | FabricEnded
    | Hung
    | Tick
)


@dataclass(frozen=True)
class Finished:
    """The run reached its end, or its deadline if machines were `late`."""

    virtual_ns: int
    late: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failed:
    """The run failed; `machine` is a machine's name, `fabric`, or None."""

    message: str
    machine: str | None = None
    disk_full: bool = False
    whose: Whose = "host"
    """run: guests under virtual time fail like this on any host."""
    virtual_ns: int | None = None
    """The run's length where it came to its end, at an instant of virtual time; None: it was cut short."""


Verdict = Finished | Failed


class Phase(Enum):
    RUNNING = "running"
    FINISHING = "finishing"
    OVER = "over"


class Failing:
    """What guests have said of a run that fails."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._job: JobDone | None = None
        self._errors: list[GuestFailed] = []

    def note(self, event: Event, now: float) -> None:
        """Take an event at wall time `now`."""
        if isinstance(event, JobDone) and event.status != 0:
            self._job = self._job or event
        elif isinstance(event, GuestFailed):
            self._errors.append(event)
        else:
            return
        self._since = now if self._since is None else self._since

    def for_s(self, now: float) -> float:
        """Wall seconds since the first failure; 0 without one."""
        return 0.0 if self._since is None else now - self._since

    def verdict(self, finished: Finished | None) -> Failed | None:
        """The failure, `finished` if the run came to its end; None if no guest failed.

        A client that gave up is named only if no other machine has an error. A job without an error line has failed by
        its status.
        """
        if self._since is None:
            return None
        length_ns = None if finished is None else finished.virtual_ns
        job = self._job
        if job is not None and all(error.machine != job.machine for error in self._errors):
            why = job.failed or f"status {job.status}"
            return Failed(f"its job failed: {why}", job.machine, whose="run", virtual_ns=length_ns)
        culprit = None if job is None else job.machine
        # When a line was read depends on the host.
        error = min(self._errors, key=lambda error: (error.gave_up, error.machine != culprit, error.machine))
        return Failed(error.message, error.machine, whose="run", virtual_ns=length_ns)


class Supervisor:
    """The machine of the table above."""

    def __init__(self) -> None:
        self.phase = Phase.RUNNING
        self.verdict: Verdict | None = None
        self._finished: Finished | None = None
        self._finishing_since = 0.0
        self._victim: tuple[float, MachineEnded | FabricEnded] | None = None
        self._panic: tuple[float, MachinePanicked | MachineStopped] | None = None
        self._failing = Failing()

    def handle(self, event: Event, now: float) -> Verdict | None:
        """Take one event at wall time `now`; the verdict once there is one."""
        if self.verdict is None:
            decided = self._running(event, now) if self.phase is Phase.RUNNING else self._finishing(event, now)
            if decided is not None:
                self.verdict = (
                    self._failing.verdict(self._finished if isinstance(decided, Finished) else None) or decided
                )
                self.phase = Phase.OVER
        return self.verdict

    def settled(self, events: Sequence[Event], now: float) -> Verdict:
        """The verdict with what guests wrote last, read once they have ended. Only after a run that came to its end."""
        assert self.verdict is not None
        for event in events:
            self._failing.note(event, now)
        self.verdict = self._failing.verdict(self._finished) or self.verdict
        return self.verdict

    def _running(self, event: Event, now: float) -> Verdict | None:
        if self._panic is not None:
            return self._after_panic(*self._panic, event, now)
        self._failing.note(event, now)
        match event:
            case FabricFinished(virtual_ns, late):
                self.phase = Phase.FINISHING
                self._finished = Finished(virtual_ns, late)
                self._finishing_since = now
            case FabricEnded(status) if status == VICTIM_STATUS:
                self._victim = (now, event)
            case FabricEnded():
                return _fabric_failure(event)
            case MachineEnded(machine, how, lost=True):
                return Failed(how, machine)
            case MachineEnded(report=report) if report in ("finished", OFF):
                return None
            case MachineEnded(report="aborted"):
                self._victim = self._victim or (now, event)
            case MachineEnded(machine, how):
                return Failed(f"the machine ended before the run: {how}", machine)
            case MachinePanicked() | MachineStopped():
                self._panic = (now, event)
            case GuestExceeded(machine, message):
                return Failed(message, machine, whose="run")
            case Hung(seconds, suspects):
                return Failed(
                    f"hung: no progress for {seconds:.0f} s"
                    + (f", all others wait for {', '.join(suspects)}" if suspects else ""),
                    suspects[0] if len(suspects) == 1 else None,
                )
            case Tick() | GuestFailed() | JobDone() | FabricStands():
                pass
        if self._failing.for_s(now) >= FAILING_S:
            return self._failing.verdict(None)
        if self._victim is not None and now - self._victim[0] >= VICTIM_S:
            victim = self._victim[1]
            if isinstance(victim, FabricEnded):
                return _fabric_failure(victim)
            return Failed("the machine ended because another part of the run failed", victim.machine)
        return None

    @staticmethod
    def _after_panic(since: float, panic: MachinePanicked | MachineStopped, event: Event, now: float) -> Failed | None:
        gone = isinstance(event, MachineEnded) and event.machine == panic.machine
        if not gone and now - since < PANIC_S:
            return None
        if isinstance(panic, MachineStopped):
            return Failed(_stopped(panic), panic.machine, whose="run")
        return Failed(f"its kernel panicked: {panic.line}", panic.machine, whose="run")

    def _finishing(self, event: Event, now: float) -> Verdict | None:
        self._failing.note(event, now)
        if isinstance(event, FabricEnded):
            return self._finished if event.status == 0 else _fabric_failure(event)
        if now - self._finishing_since >= FINISH_S:
            return Failed(f"did not end within {FINISH_S:g} s after the run", "fabric")
        return None


def too_late(deadline_ns: int, finished: Finished) -> Failed:
    """A run that came to its deadline before some machines were done."""
    late = finished.late
    message = f"the scenario's deadline of {deadline_ns / 1e9:g} s passed; still waiting for {', '.join(late)}"
    machine = late[0] if len(late) == 1 else None
    return Failed(message, machine, whose="run", virtual_ns=finished.virtual_ns)


def _stopped(event: MachineStopped) -> str:
    what = {"Power down": "powered the machine off", "Restarting system": "restarted the machine"}
    done = what.get(event.line, "halted the machine")
    who = f"program {event.programs[0]}" if len(event.programs) == 1 else "a program"
    among = f"; its programs: {', '.join(event.programs)}" if len(event.programs) > 1 else ""
    return f"{who} {done}{among}"


def _fabric_failure(event: FabricEnded) -> Failed:
    said = f": {event.said}" if event.said else ""
    if event.status == DISK_FULL_STATUS:
        return Failed(f"the disk is full, captures cannot be written{said}", "fabric", disk_full=True)
    if event.status < 0:
        return Failed(f"was killed by {_signal_name(-event.status)}{said}", "fabric")
    return Failed(f"ended before the run, with status {event.status}{said}", "fabric")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
