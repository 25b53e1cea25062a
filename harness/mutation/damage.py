# SPDX-License-Identifier: Apache-2.0
"""A damage, and the copy of a run that it is done to."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from mutation import capture as pcapng
from mutation.capture import Capture
from sundial.errors import SundialError
from sundial.run.collect import SAMPLES, collect_samples

PRODUCTS = (
    *("verify.json", "observed.parquet", "exchanges.parquet", "figures.parquet", "steps.parquet"),
    *("summary.csv", "report.html", "figures"),
)
"""What verification and the report write; no verdict rests on it."""


class Copy:
    """A copy of a run directory. Files are shared with the original until they are written."""

    def __init__(self, original: Path, path: Path) -> None:
        self.path = path
        for file in sorted(original.rglob("*")):
            name = file.relative_to(original)
            if file.is_file() and name.parts[0] not in PRODUCTS:
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(file, path / name)

    @property
    def names(self) -> list[str]:
        """Every file."""
        files = (file for file in self.path.rglob("*") if file.is_file())
        return sorted(str(file.relative_to(self.path)) for file in files)

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_bytes(data)

    def remove(self, name: str) -> None:
        (self.path / name).unlink()

    def json(self, name: str) -> Any:
        return json.loads(self.read(name))

    def write_json(self, name: str, document: Any) -> None:
        self.write(name, json.dumps(document, indent=1).encode() + b"\n")

    @property
    def wires(self) -> list[str]:
        """The captures of frames."""
        return [name for name in self.names if is_capture(name)]

    @property
    def further(self) -> list[str]:
        """The captures of other things."""
        return [name for name in self.names if name.endswith(".pcapng") and not is_capture(name)]

    def captures(self) -> dict[str, Capture]:
        """Of Ethernet."""
        return {name: capture for name, capture in self._all().items() if capture.link_type == pcapng.ETHERNET}

    def backplanes(self) -> dict[str, Capture]:
        """Of what carries stores."""
        return {name: capture for name, capture in self._all().items() if capture.link_type == pcapng.BACKPLANE}

    def _all(self) -> dict[str, Capture]:
        return {name: pcapng.read(self.read(name)) for name in self.wires}

    def seal(self, *, samples: bool) -> None:
        """Hashes as though the run had left these files; with `samples`, samples.parquet too."""
        if samples:
            (self.path / SAMPLES).unlink(missing_ok=True)
            with contextlib.suppress(SundialError):  # that a stream cannot be read is for verification to say
                collect_samples(self.path)
        document = self.json("run.json")
        for key in ("captures", "files"):
            if key in document:
                wires = key == "captures"
                names = [name for name in self.names if name != "run.json" and is_capture(name) == wires]
                document[key] = {name: hashlib.sha256(self.read(name)).hexdigest() for name in names}
        self.write_json("run.json", document)


def is_capture(name: str) -> bool:
    """Whether a file is a capture of frames: one in wire/ itself."""
    return name.startswith("wire/") and name.count("/") == 1 and name.endswith(".pcapng")


@dataclass(frozen=True)
class Damage:
    """`apply` changes the copy; what it chooses it chooses by the generator it is given."""

    name: str
    """The same in every run in which it can be done."""
    apply: Callable[[Copy, Random], None]
    sealed: bool = True
    """Whether hashes are recomputed afterwards."""
    samples: bool = False
    """Whether samples.parquet is written again from the nodes' streams."""


Damages = Iterator[Damage]
