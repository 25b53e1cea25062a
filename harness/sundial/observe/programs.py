# SPDX-License-Identifier: Apache-2.0
"""What programs of a scenario wrote, out of the records of a machine."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

STREAMS = ("stdout", "stderr")

_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def program_names(job: Mapping[str, Any]) -> Iterator[str]:
    """Names of the programs of a job, in order."""
    for step in job.get("steps", ()):
        yield from (str(each.get("name")) for each in step.get("options", {}).get("programs", ()))


def output_files(job: Mapping[str, Any]) -> list[str]:
    """Names in the machine's folder of the files with outputs."""
    return [f"programs/{name}.{stream}" for name in program_names(job) for stream in STREAMS]


def outputs(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], bytes]:
    """All recorded bytes by program and stream. A line that is not base64 has none."""
    found: dict[tuple[str, str], bytearray] = {}
    for record in records:
        if record.get("type") == "output":
            found.setdefault((str(record.get("name")), str(record.get("stream"))), bytearray()).extend(_data(record))
    return {key: bytes(data) for key, data in found.items()}


def pieces(records: Iterable[Mapping[str, Any]], name: str, stream: str) -> list[tuple[int, bytes]]:
    """What a program wrote, each piece with the clock reading after it was read."""
    own = (each for each in records if each.get("type") == "output")
    return [(each["at"], _data(each)) for each in own if (each.get("name"), each.get("stream")) == (name, stream)]


def _data(record: Mapping[str, Any]) -> bytes:
    try:
        return base64.b64decode(str(record.get("data")), validate=True)
    except (binascii.Error, ValueError):
        return b""


def fnv1a(data: bytes) -> str:
    """The sum of a `program` record."""
    value = _FNV_BASIS
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def last_lines(data: bytes, most: int = 3) -> list[str]:
    """The last lines with text, printable."""
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return ["".join(char if char.isprintable() else "?" for char in line)[:200] for line in lines[-most:]]
