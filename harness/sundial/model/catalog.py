# SPDX-License-Identifier: Apache-2.0
"""The shipped topologies and scenarios, and the file that a name or path on the command line means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sundial.errors import BadInput

if TYPE_CHECKING:
    from sundial.model.source import Source

ROOT = Path(__file__).resolve().parents[3]
"""The checkout."""

Kind = Literal["topology", "scenario"]
FOLDERS: dict[Kind, Path] = {"topology": ROOT / "topologies", "scenario": ROOT / "harness" / "scenarios"}


def names(kind: Kind) -> list[str]:
    """Names of the shipped files of one kind, sorted."""
    return sorted(path.stem for path in FOLDERS[kind].glob("*.yaml"))


def find(kind: Kind, reference: str, base: Path | None = None) -> Source:
    """Read a shipped file by name, or any file by path (anything with a slash or ending in .yaml). Raises BadInput.

    A relative path begins at the folder `base`, or else at the working directory.
    """
    from sundial.model.source import read

    if "/" in reference or reference.endswith((".yaml", ".yml")):
        path = Path(reference) if base is None else base / reference
        return read(path, reference if base is None else shown(path))
    path = FOLDERS[kind] / f"{reference}.yaml"
    if reference not in names(kind):
        raise BadInput(f"there is no {kind} {reference!r}", allowed=", ".join([*names(kind), "or a path to a file"]))
    return read(path, shown(path))


def shown(path: Path) -> str:
    """`path` for messages: relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
