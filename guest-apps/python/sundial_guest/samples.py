# SPDX-License-Identifier: Apache-2.0
"""The record stream of harness/schemas/README.md ("Samples"): one JSON value a line on file descriptor 3.

Several processes share it, so each write holds whole lines and is short enough for the port to take it at once.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

FD = 3
CHUNK = 32 * 1024
"""The virtio port takes no more in one write."""
COLUMNS = ("call", "start", "end", "ok", "retransmits", "xid", "error")

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


def fail(message: str) -> NoReturn:
    """Write an error line and end with status 1."""
    put({"type": "error", "message": message})
    sys.exit(1)


class Batch:
    """The calls of one batch. They are kept while it is measured and written afterwards."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self.record = self._rows.append
        """Keeps a row: (start, end, xid, error), error None for a call that was answered as expected."""

    def put(self, header: Mapping[str, object]) -> None:
        """Write the batch line from `header`, then all rows."""
        put({"type": "batch", **header, "columns": COLUMNS})
        chunk = b""
        for call, (start, end, xid, error) in enumerate(self._rows):
            row = _line((call, start, end, int(error is None), 0, xid, error))
            if len(chunk) + len(row) > CHUNK:
                _write(chunk)
                chunk = b""
            chunk += row
        _write(chunk)
