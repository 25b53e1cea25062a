# SPDX-License-Identifier: Apache-2.0
"""Errors of the user's input beyond the form of single fields."""

from __future__ import annotations

from dataclasses import dataclass

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Invalid:
    """One wrong field at `path`, and what is allowed there."""

    path: Path
    what: str
    allowed: str | None = None
