# SPDX-License-Identifier: Apache-2.0
"""What is wrong with what the user wrote, beyond the form of single fields."""

from __future__ import annotations

from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Finding:
    """One thing wrong at `path`, and what is allowed there."""

    path: Path
    what: str
    allowed: str | None = None
