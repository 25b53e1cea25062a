# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline that meet programs (`app: command`): what they say, and whether they fit each other.

The machine that runs a program carries them out, by its own clock. So an event may also wait for a line or the end of
another program of the same machine; it cannot wait for another machine, where the time would be that of a message.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from sundial.errors import BadInput
from sundial.model.fields import NAMED, Flag, In, Marker, Strict
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import Machines
from sundial.units import TIME

if TYPE_CHECKING:
    from sundial.model.timeline import Event

PAUSE, CONTINUE, KILL, RESTART = "pause", "continue", "kill", "restart"
PROGRAM_VERBS = (PAUSE, CONTINUE, KILL, RESTART)

_Name = Annotated[str, NAMED]


class Signal(Marker):
    """A signal by its name."""

    NUMBERS: ClassVar[Mapping[str, int]] = {
        "HUP": 1,
        "INT": 2,
        "QUIT": 3,
        "KILL": 9,
        "USR1": 10,
        "USR2": 12,
        "TERM": 15,
    }
    ALLOWED = ", ".join(NUMBERS)

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.NUMBERS:
            raise BadInput(f"{value!r} is not a signal", allowed=self.ALLOWED)
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.NUMBERS), "x-allowed": self.ALLOWED}


class EndSignal(Signal):
    """A signal that ends a program, by its name."""

    NUMBERS: ClassVar[Mapping[str, int]] = {
        **Signal.NUMBERS,
        "ILL": 4,
        "TRAP": 5,
        "ABRT": 6,
        "BUS": 7,
        "FPE": 8,
        "SEGV": 11,
        "PIPE": 13,
        "ALRM": 14,
        "XCPU": 24,
        "XFSZ": 25,
        "SYS": 31,
    }
    ALLOWED = ", ".join(NUMBERS)


class LinePattern(Marker):
    """A regular expression that a machine compares with a line: what POSIX (extended) and Python read alike."""

    ALLOWED = r"an extended regular expression of POSIX without [:classes:]; \ only before a character such as . or ("
    _APART = re.compile(r"\\[^\W_]|\\$|\(\?|[*+?}][?+*{]|\[[:.=]|\[[^\]]*\\|\{,|\n|\0")
    """What only one of both takes, or takes for something else."""

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not 0 < len(value) <= 1000 or not value.isascii() or self._APART.search(value):
            raise BadInput(f"{value!r} is not a pattern of a line", allowed=self.ALLOWED)
        try:
            with warnings.catch_warnings(action="error", category=FutureWarning):
                re.compile(value)
        except (re.error, FutureWarning) as error:
            raise BadInput(f"{value!r} is not a pattern of a line: {error}", allowed=self.ALLOWED) from None
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "x-allowed": self.ALLOWED}


class Trigger(Strict):
    """What an event waits for: on the machine of its program, once."""

    program: _Name
    """Program that writes a line, or ends."""
    line: Annotated[str, LinePattern()] | None = None
    """Regular expression that a line of its outputs must match. The first such line counts."""
    ends: Annotated[bool, Flag()] | None = None
    """true: the first end of the program, instead of a line."""
    delay: Annotated[int, In(TIME.between(example="50 ms"))] | None = None
    """Time from then to the event."""


class OnPrograms(Strict):
    """What an event does to a program of `app: command`."""

    after: Trigger | None = None
    """What the event waits for, instead of `at`. Only for events of programs."""
    pause: _Name | None = None
    """Program to stop (SIGSTOP)."""
    continue_: _Name | None = Field(default=None, alias=CONTINUE)
    """Program that is paused, to run on (SIGCONT)."""
    kill: _Name | None = None
    """Program to send a signal to. With `for` the service starts again when that time is over."""
    restart: _Name | None = None
    """Service to end, as `stop` says, and to start again at once; one that has ended starts again."""
    on: Annotated[tuple[str, ...], Machines()] | None = None
    """Machines on which the event meets the program. Default: all that run it."""
    signal: Annotated[str, Signal()] | None = None
    """Signal of kill. Default: KILL."""

    @property
    def program(self) -> str:
        """The program that it meets; empty for other events."""
        return self.pause or self.continue_ or self.kill or self.restart or ""


def check_fields(event: Event, verb: str, path: Path) -> Iterator[Invalid]:
    """Fields that do not go with what an event does."""
    if event.after is None and event.at_ is None:
        yield Invalid(path, "at is missing", "at: TIME, or after: a line or the end of a program")
    elif event.after is not None and verb not in PROGRAM_VERBS:
        what = "wires and machines change only at a time that is known before"
        yield Invalid((*path, "after"), what, f"at: TIME; after with {', '.join(PROGRAM_VERBS)}")
    elif event.after is not None and event.at_ is not None:
        yield Invalid((*path, "at"), "an event has either at or after", "after with delay: TIME")
    elif event.after is not None and (event.after.line is None) == (not event.after.ends):
        yield Invalid((*path, "after"), "an event waits for either a line or an end", "line: PATTERN, or ends: true")
    if event.signal is not None and verb != KILL:
        yield Invalid((*path, "signal"), f"{verb} has no signal", "signal together with kill")
    if event.on is not None and verb not in PROGRAM_VERBS:
        yield Invalid((*path, "on"), f"{verb} has no on", f"on together with {', '.join(PROGRAM_VERBS)}")
    if verb in (CONTINUE, RESTART) and event.for_ is not None:
        yield Invalid((*path, "for"), f"{verb} is not for a time", "for of pause or kill")


def check_order(events: Sequence[tuple[int, Event]], machine: str) -> Iterator[Invalid]:
    """Events of one program on one machine that do not fit what it is in when they come. Where one of them waits for a
    trigger, their order is not known before the run."""
    if any(event.after is not None for _, event in events):
        return
    state, until, seen = "", 0, -1
    for number, event in sorted(events, key=lambda item: item[1].at):
        path: Path = ("timeline", number)
        verb, at = event.verb or "", event.at
        if until and at >= until:
            state, until = "", 0
        if at == seen:
            what = f"{event.program!r} of {machine!r} has another event at {TIME.show(at)}"
            yield Invalid((*path, "at"), what, "another instant")
        elif (verb in (PAUSE, KILL) and state == KILL) or (verb == PAUSE and state == PAUSE):
            words = {PAUSE: "paused", KILL: "killed"}[state]
            what = f"{event.program!r} of {machine!r} is {words} already at {TIME.show(at)}"
            yield Invalid((*path, verb), what, "continue or restart first")
        elif verb == CONTINUE and state != PAUSE:
            what = f"{event.program!r} of {machine!r} is not paused at {TIME.show(at)}"
            yield Invalid((*path, verb), what, "after a pause without for")
        seen = at
        if verb in (CONTINUE, RESTART):
            state, until = "", 0
        elif verb == PAUSE or event.signal in (None, "KILL"):
            state, until = verb, event.ends_ns() or 0
