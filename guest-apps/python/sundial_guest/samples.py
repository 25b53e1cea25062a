# SPDX-License-Identifier: Apache-2.0
"""The record stream of harness/schemas/README.md ("Samples"): one JSON value a line on file descriptor 3.

Several processes share it, so each write holds whole lines and is short enough for the port to take it at once.
"""

import json
import os
import sys
from array import array
from collections.abc import Mapping
from typing import NoReturn

FD = 3
CHUNK = 32 * 1024
"""The virtio port takes no more in one write."""
COLUMNS = ("call", "start", "end", "ok", "retransmits", "xid", "error")

_KEPT = 3
"""Numbers of a row: start, end, xid."""
_NO_XID = -1

Row = tuple[int, int, int | None, str | None]


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(FD, data) :]


def step() -> int | None:
    """The number of this step; None in a service."""
    number = os.environ.get("SUNDIAL_STEP")
    return None if number is None else int(number)


def put(line: Mapping[str, object]) -> None:
    """Write a record; `step` and `app` of this program are added where it has none."""
    whole: dict[str, object] = {"type": line["type"]}
    if (number := step()) is not None:
        whole["step"] = number
    whole["app"] = os.environ.get("SUNDIAL_APP", "")
    _write(_line(whole | dict(line)))


def fail(message: str, status: int = 1) -> NoReturn:
    """Write an error line and end."""
    put({"type": "error", "message": message})
    sys.exit(status)


def refuse(message: str) -> NoReturn:
    """The same for options that the program does not take: status 2."""
    fail(message, 2)


class Batch:
    """The calls of one batch. They are kept while it is measured and written afterwards, a million in 24 MB."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._errors: dict[int, str] = {}

    def record(self, row: Row) -> None:
        """Keep a row: (start, end, xid, error), error None for a call that was answered as expected."""
        start, end, xid, error = row
        if error is not None:
            self._errors[len(self._numbers) // _KEPT] = error
        self._numbers.extend((start, end, _NO_XID if xid is None else xid))

    def put(self, header: Mapping[str, object]) -> None:
        """Write the batch line from `header`, then all rows."""
        put({"type": "batch", **header, "columns": COLUMNS})
        chunk = b""
        numbers = iter(self._numbers)
        for call, (start, end, xid) in enumerate(zip(numbers, numbers, numbers, strict=True)):
            error = self._errors.get(call)
            row = _line((call, start, end, int(error is None), 0, None if xid == _NO_XID else xid, error))
            if len(chunk) + len(row) > CHUNK:
                _write(chunk)
                chunk = b""
            chunk += row
        _write(chunk)
