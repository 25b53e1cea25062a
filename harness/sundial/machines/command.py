# SPDX-License-Identifier: Apache-2.0
"""Commands in an interactive machine, through its virtio-serial port `sundial.exec` (one JSON object a line)."""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sundial.errors import RunFailed

ANSWER_S = 3600.0
_numbers = itertools.count(1)


@dataclass(frozen=True)
class CommandResult:
    """What a command in a guest left: its exit status (128 + signal when killed) and its output."""

    status: int
    stdout: bytes
    stderr: bytes
    dropped: int
    """Bytes of output beyond what the guest keeps."""


def run_command(path: Path, machine: str, argv: Sequence[str], seconds: float = ANSWER_S) -> CommandResult:
    """Run `argv` in the guest and wait for its end. Raises RunFailed when the guest does not answer."""
    number = next(_numbers)
    request = json.dumps({"id": number, "argv": list(argv)}) + "\n"
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(seconds)
        try:
            stream.connect(str(path))
            stream.sendall(request.encode())
            with stream.makefile("rb") as lines:
                # The answer to a caller that went away before us may come first.
                for line in lines:
                    answer = _decode(line)
                    if answer.get("id") == number or _is_of_a_line_that_was_not_read(answer):
                        return _result(answer, machine)
        except TimeoutError as error:
            raise RunFailed(f"no answer to {argv[0]} within {seconds:g} s", machine=machine) from error
        except OSError as error:
            raise RunFailed(f"it takes no commands: {error.strerror}", machine=machine) from error
    raise RunFailed(f"it ended while {argv[0]} ran", machine=machine)


def _is_of_a_line_that_was_not_read(answer: dict[str, object]) -> bool:
    """A guest that could not read a request, for one because it is too long, does not know its number."""
    return "error" in answer and answer.get("id") is None


def _decode(line: bytes) -> dict[str, object]:
    try:
        answer = json.loads(line)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _result(answer: dict[str, object], machine: str) -> CommandResult:
    if "error" in answer:
        raise RunFailed(f"the guest refuses: {answer['error']}", machine=machine)
    try:
        return CommandResult(
            int(str(answer["status"])),
            base64.b64decode(str(answer["stdout"]), validate=True),
            base64.b64decode(str(answer["stderr"]), validate=True),
            int(str(answer["dropped"])),
        )
    except (KeyError, ValueError, binascii.Error) as error:
        raise RunFailed(f"it answers what is not an answer: {answer}", machine=machine) from error
