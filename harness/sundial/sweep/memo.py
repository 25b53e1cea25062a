# SPDX-License-Identifier: Apache-2.0
"""What a sweep found out about runs before, in one file of its folder, so that a thousand results open at once.

Each value is by the digest of all that it follows from, so the file may be removed, or be another sweep's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sundial.sweep.identity import digest
from sundial.whole import whole

FILE = "memo.json"


class Memo:
    """Values by digests. Without the file, or with one that cannot be read, there are none."""

    def __init__(self, path: Path, sources: str) -> None:
        """`sources`: digest of the programs that find values out."""
        self._path = path
        self._sources = sources
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError):
            found = None
        self._values: dict[str, Any] = found if isinstance(found, dict) else {}
        self._asked: set[str] = set()
        self._is_new = False

    def name(self, *of: Any) -> str:
        """The name of a value that follows from these."""
        return digest([self._sources, *of])

    def get(self, name: str) -> Any:
        """The value, or None."""
        self._asked.add(name)
        return self._values.get(name)

    def put(self, name: str, value: Any) -> None:
        """Keep a value, which JSON must have."""
        self._asked.add(name)
        self._values[name] = value
        self._is_new = True

    def save(self) -> None:
        """Write what was asked for. Raises OSError."""
        if self._is_new:
            kept = {name: value for name, value in self._values.items() if name in self._asked}
            with whole(self._path) as beside:
                beside.write_text(json.dumps(kept) + "\n", encoding="utf-8")
