# SPDX-License-Identifier: Apache-2.0
"""All errors that a user can see, with exit status and hint.

    SundialError
    |-- VerificationFailed   1    ran, and the capture does not match the protocol
    |-- BadInput             2    a file, option or value is wrong; nothing was started
    |-- HostLacks            3    the host lacks something; the hint says what to do
    |-- RunFailed            4    a guest, the fabric or a deadline ended the run
    |   `-- GuestFault            a guest's output is malformed
    |-- InternalError       70    a bug of Sundial; its traceback is in a log
    `-- Interrupted        130    the user stopped it

`from_host` turns an error of the operating system into one of these. Anything else that reaches the top is a bug, and
the command line turns it into an InternalError.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from sundial.printable import printable, printable_lines

Whose = Literal["host", "run"]
"""Cause of an error. run: the same run fails in the same way on any host. host: it may pass when made again."""

_WORD = re.compile(r"[\w.*-]+")
_QUOTED = re.compile(r"'([^']+)'")
_ALLOWED_SHOWN = 12
"""Of a list of allowed words beside the nearest one."""


def nearest(what: str, field: str | None, allowed: str | None) -> str | None:
    """The word of a list of allowed ones that is like the word in quotes, or like an unknown field's name."""
    if not allowed:
        return None
    words = [word for word in re.split(r", (?:or )?| or ", allowed) if _WORD.fullmatch(word)]
    written = _QUOTED.findall(what)[:1] or ([field.rsplit(".", 1)[-1]] if field and "unknown" in what else [])
    if len(words) < 2 or not written or written[0] in words:
        return None
    return next(iter(difflib.get_close_matches(written[0], words, 1, 0.7)), None)


def _shortened(allowed: str) -> str:
    words = allowed.split(", ")
    rest = len(words) - _ALLOWED_SHOWN
    return allowed if rest <= 1 else f"{', '.join(words[:_ALLOWED_SHOWN])} and {rest} more"


class SundialError(Exception):
    """Root of the tree: one line for the user, an exit status and, if known, a hint.

    It may quote guests, files and their names, so all of it is made printable here.
    """

    exit_code: int = 4
    whose: Whose | None = None
    """Whose failure it is, of errors that end a run."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = printable_lines(message)
        super().__init__(self.message)
        self.hint = None if hint is None else printable(hint)

    def to_json(self) -> dict[str, object]:
        """The error's object in `run.json` and in `--json` output."""
        whose = {} if self.whose is None else {"whose": self.whose}
        named = {"error": type(self).__name__, "exit_code": self.exit_code, "message": self.message, "hint": self.hint}
        return {**named, **whose}


class VerificationFailed(SundialError):
    """The run is complete, but its capture does not match the expectations."""

    exit_code = 1


@dataclass(frozen=True)
class Problem:
    """One error in the user's input; its text is one line.

    `line` counts from 1; `field` is a dotted path such as `segments.lan.rate`.
    """

    what: str
    allowed: str | None = None
    file: str | None = None
    line: int | None = None
    field: str | None = None

    @property
    def did_you_mean(self) -> str | None:
        """The allowed word that is most like the one that was written."""
        return nearest(self.what, self.field, self.allowed)

    def __str__(self) -> str:
        place = self.file or ""
        if self.file and self.line is not None:
            place += f":{self.line}"
        parts = [part for part in (place, self.field) if part]
        text = ": ".join([*parts, self.what])
        near = self.did_you_mean
        if near:
            text += f"; did you mean {near!r}?"
        if self.allowed:
            text += f"{'' if near else ';'} allowed: {_shortened(self.allowed) if near else self.allowed}"
        return printable(" ".join(text.split()))

    def to_json(self) -> dict[str, str | int | None]:
        texts = {"file": self.file, "field": self.field, "what": self.what, "allowed": self.allowed}
        shown = {name: text and printable(text) for name, text in texts.items()}
        near = {} if self.did_you_mean is None else {"did_you_mean": self.did_you_mean}
        return {**shown, "line": self.line, **near}


class BadInput(SundialError, ValueError):
    """A file, option or value is wrong: `FILE:LINE: FIELD: what is wrong; allowed: ...`, one line a problem.

    A ValueError too, so that its text survives when a parser raises it inside a pydantic validator.
    """

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        allowed: str | None = None,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problems: tuple[Problem, ...] = (Problem(what, allowed, file, line, field),)
        super().__init__(str(self.problems[0]), hint=hint)

    @classmethod
    def many(cls, problems: Sequence[Problem]) -> BadInput:
        """One error for several problems (at least one), in the order given, equal ones once."""
        problems = tuple(dict.fromkeys(problems))
        error = cls(problems[0].what)
        error.problems = problems
        error.message = "\n".join(str(problem) for problem in problems)
        error.args = (error.message,)
        return error

    def within(self, *, file: str | None = None, line: int | None = None, field: str | None = None) -> BadInput:
        """The same error with the missing parts of its place filled in."""
        return BadInput.many(
            [
                replace(
                    problem,
                    file=problem.file if problem.file is not None else file,
                    line=problem.line if problem.line is not None else line,
                    field=problem.field if problem.field is not None else field,
                )
                for problem in self.problems
            ]
        )

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "problems": [problem.to_json() for problem in self.problems]}


class HostLacks(SundialError):
    """The host lacks something that is needed; `hint` says what to do."""

    exit_code = 3
    whose: Whose | None = "host"


class RunFailed(SundialError):
    """A run failed: what failed, on which machine (or `fabric`), and the last lines of its console."""

    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        machine: str | None = None,
        console_tail: Sequence[str] | None = None,
        hint: str | None = None,
        whose: Whose = "host",
        end_ns: int | None = None,
    ) -> None:
        super().__init__(message if machine is None else f"{machine}: {message}", hint=hint)
        self.machine = machine
        self.end_ns = end_ns
        """Length of a run that failed and came to its end, which is equal on any host; None: it was cut short."""
        self.whose = whose
        self.console_tail = None if console_tail is None else tuple(map(printable, console_tail))
        """None: no console was read. A guest writes errors on its console and nothing else, so it may be empty."""
        self.folder: Path | None = None
        """The run directory, once it has its name."""

    def to_json(self) -> dict[str, object]:
        end = {} if self.end_ns is None else {"end_ns": self.end_ns}
        return {**super().to_json(), **end, "machine": self.machine, "console_tail": list(self.console_tail or ())}


class InternalError(SundialError):
    """A bug of Sundial (EX_SOFTWARE of sysexits.h); `log` has the traceback."""

    exit_code = 70

    def __init__(self, message: str, *, log: str | None = None) -> None:
        super().__init__(message, hint=None if log is None else f"please report it with {log}")
        self.log = log

    def to_json(self) -> dict[str, object]:
        return {**super().to_json(), "log": self.log}


class GuestFault(RunFailed):
    """A guest's output is malformed: not JSON, not a sample, or too much."""

    def __init__(self, message: str, *, machine: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, machine=machine, hint=hint, whose="run")


class Interrupted(SundialError):
    """The user stopped the run (Ctrl-C, SIGTERM)."""

    exit_code = 130
    whose: Whose | None = "host"

    def __init__(self, message: str = "interrupted", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = {
    errno.EACCES: "make it accessible to you",
    errno.EPERM: "make it accessible to you",
    errno.EROFS: "choose a writable place with --out",
    errno.EMFILE: "allow more open files: ulimit -n 1024",
    errno.ENFILE: "close other programs: the host has no open files left",
    errno.ENOMEM: "close other programs: the host has no memory left",
    errno.EAGAIN: "close other programs: the host cannot start more processes",
    errno.EIO: "see the host's kernel log: the disk reports errors",
}


def from_host(error: OSError | MemoryError) -> SundialError | None:
    """An error of the operating system as the user's error; None if it is not about the host."""
    if isinstance(error, MemoryError):
        return HostLacks("the host has no memory left", hint=_REFUSED[errno.ENOMEM])
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in _FULL:
        return RunFailed(f"{where}the disk is full", hint="free some space, or choose another place with --out")
    if error.errno == errno.ENAMETOOLONG:
        return BadInput("the name is too long", file=str(error.filename)[:80] + "...", allowed="255 bytes a name")
    hint = _REFUSED.get(error.errno or 0)
    return None if hint is None else HostLacks(f"{where}{error.strerror}", hint=hint)
