# SPDX-License-Identifier: Apache-2.0
"""A command in an interactive machine, as its caller sees it: one JSON object a line over a unix socket.

The lines are those of guest-apps/runner/exec.h without their `id`; the switchboard adds it. A guest that cannot stream
answers everything in one line.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sundial.errors import RunFailed
from sundial.printable import printable

ANSWER_S = 3600.0
LINE_BYTES = 256 * 1024
"""No line of a guest is longer."""
KEPT_BYTES = 1 << 20
"""Of each stream, where output is gathered."""

Stream = Literal["stdout", "stderr"]
Output = Callable[[Stream, bytes], None]
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")


@dataclass(frozen=True)
class CommandResult:
    """What a command in a guest left: its exit status (128 + signal when killed) and its output."""

    status: int
    stdout: bytes
    stderr: bytes
    dropped: int
    """Bytes of output beyond what is kept."""


@dataclass
class Gathered:
    """Output that is kept, up to a limit."""

    kept: dict[Stream, bytearray] = field(default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()})
    dropped: int = 0

    def __call__(self, stream: Stream, data: bytes) -> None:
        kept = self.kept[stream]
        room = KEPT_BYTES - len(kept)
        kept += data[:room]
        self.dropped += max(0, len(data) - room)

    def result(self, end: Ended) -> CommandResult:
        return CommandResult(
            end.status, bytes(self.kept["stdout"]), bytes(self.kept["stderr"]), self.dropped + end.dropped
        )


@dataclass(frozen=True)
class Ended:
    """How a command ended; `dropped`: bytes of output that the guest has not kept itself."""

    status: int
    dropped: int = 0
    timed_out: bool = False


class Line:
    """The connection to a machine for one command. Raises RunFailed where there is none, or no guest behind it."""

    def __init__(self, path: Path, machine: str, command: str, *, streams: bool) -> None:
        self.machine = machine
        self.streams = streams
        self.input_credit = 0
        """Bytes of input that the guest takes at present."""
        self._command = command
        self._buffer = bytearray()
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(str(path))
        except OSError as error:
            self.socket.close()
            raise RunFailed(f"it takes no commands: {error.strerror}", machine=machine) from error

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def tell(self, **request: object) -> None:
        try:
            self.socket.sendall(json.dumps(request).encode() + b"\n")
        except TimeoutError:
            raise
        except OSError as error:
            self._raise_last_words()
            raise self._gone() from error

    def _raise_last_words(self) -> None:
        """The connection is closed: raise why, where the other end said so before."""
        with contextlib.suppress(OSError):
            while data := self.socket.recv(1 << 16):
                self._buffer += data
        for answer in map(self._decoded, self._whole_lines()):
            if "gone" in answer:
                self._take(answer, lambda _stream, _data: None)

    def hear(self, output: Output) -> Ended | None:
        """Take what has come, once; the end of the command when it has been said."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionError as error:
            raise self._gone() from error
        if not data:
            raise self._gone()
        self._buffer += data
        for line in self._whole_lines():
            end = self._take(self._decoded(line), output)
            if end is not None:
                return end
        return None

    def _whole_lines(self) -> Iterator[bytes]:
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = rest
        if len(rest) > LINE_BYTES:
            raise RunFailed(f"its guest sends a line of more than {LINE_BYTES} bytes", machine=self.machine)
        for line in lines:
            yield bytes(line)

    def _take(self, answer: dict[str, Any], output: Output) -> Ended | None:
        if "gone" in answer:
            raise RunFailed(printable(str(answer["gone"])), machine=self.machine)
        if "error" in answer:
            raise RunFailed(f"the guest refuses: {printable(str(answer['error']))}", machine=self.machine)
        try:
            for stream in STREAMS:
                if stream in answer:
                    data = base64.b64decode(answer[stream], validate=True)
                    output(stream, data)
                    if self.streams and data:
                        self.tell(taken=len(data))
            self.input_credit += int(answer.get("taken", 0))
            if "status" not in answer:
                return None
            status = int(answer["status"])
            return Ended(status if 0 <= status <= 255 else 255, max(0, int(answer.get("dropped", 0))))
        except (TypeError, ValueError, binascii.Error) as error:
            raise self._no_answer(answer) from error

    def _decoded(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._no_answer(line) from error
        if not isinstance(answer, dict):
            raise self._no_answer(line)
        return answer

    def _no_answer(self, answer: object) -> RunFailed:
        return RunFailed(f"sent an invalid reply: {printable(str(answer))[:200]}", machine=self.machine)

    def _gone(self) -> RunFailed:
        return RunFailed(f"it ended while {printable(self._command)} ran", machine=self.machine)


def run_command(
    path: Path, machine: str, argv: Sequence[str], seconds: float = ANSWER_S, *, streams: bool = True
) -> CommandResult:
    """Run `argv` in the guest, without input, and wait for its end. Raises RunFailed when the guest does not answer."""
    gathered = Gathered()
    with Line(path, machine, argv[0], streams=streams) as line:
        line.socket.settimeout(seconds)
        try:
            line.tell(argv=list(argv))
            if streams:
                line.tell(input=None)
            while (end := line.hear(gathered)) is None:
                pass
        except TimeoutError as error:
            raise RunFailed(f"no answer to {argv[0]} within {seconds:g} s", machine=machine) from error
    return gathered.result(end)
