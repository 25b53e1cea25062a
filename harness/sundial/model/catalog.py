# SPDX-License-Identifier: Apache-2.0
"""The files that come with Sundial, the folders that it writes to, and the file that a name or path on the command line
means.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

from sundial.errors import BadInput, HostLacks

if TYPE_CHECKING:
    from sundial.model.source import Source

_PACKAGE = Path(__file__).resolve().parents[1]
_TREE = _PACKAGE / "tree"
"""What harness/hatch_build.py adds to a wheel."""
INSTALLED = _TREE.is_dir()
ROOT = _TREE if INSTALLED else _PACKAGE.parents[1]
"""The files that come with Sundial: the checkout, or its copy in an installed package."""
LAUNCHER = Path(sys.prefix) / "bin" / "sundial" if INSTALLED else ROOT / "sundial"
COMMAND = "sundial" if INSTALLED else "./sundial"
"""As the user types it."""
COMMIT = "commit"
"""The file of an installed package that names the commit it was built from."""
PLUGIN = Path("harness/clock/build/sundial-clock.so")
CONFINE = Path("harness/confine/build/sundial-confine")
FABRIC = Path("harness/fabric/target/release/sundial-fabric")
"""Programs, below ROOT."""
DISSECTORS = tuple(ROOT / "harness" / "wireshark" / name for name in ("mbcf.lua", "rpyc.lua", "grpc.lua", "vmmc.lua"))
OUT = Path("images/out")
"""Images that were built, RECIPE/NAME, and snapshots; below a checkout or the folder for state."""
STATE_VARIABLE = "SUNDIAL_STATE"


@dataclass(frozen=True)
class Written:
    """The folders that Sundial writes to."""

    state: Path
    """Images that were built, snapshots, logs, what is up, and what was learnt about the host."""
    captures: Path
    """One folder for each run."""


def written(environment: Mapping[str, str], here: Path, checkout: Path | None) -> Written:
    """SUNDIAL_STATE, else the checkout; without a checkout the user's folder for state, with captures in `here`."""
    if asked := environment.get(STATE_VARIABLE):
        state = here / asked
        return Written(state, state / "captures")
    if checkout is not None:
        return Written(checkout, checkout / "captures")
    # The standard asks to ignore a relative path.
    base = Path(environment.get("XDG_STATE_HOME", ""))
    state = base if base.is_absolute() else Path(environment.get("HOME", "/")) / ".local" / "state"
    return Written(state / "sundial", here / "captures")


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # removed meanwhile; a shell still knows its name
        return Path(os.environ.get("PWD", "/"))


WRITTEN = written(os.environ, _here(), None if INSTALLED else ROOT)


def check_writable(folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Make `folder`, of WRITTEN, and a file in it. Raises BadInput where SUNDIAL_STATE names it, else HostLacks."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return
    except OSError as error:
        why = f"{folder} cannot be written to: {error.strerror}"
    if environment.get(STATE_VARIABLE):
        raise BadInput(why, field=STATE_VARIABLE, allowed="a folder that this user may write to")
    raise HostLacks(why, hint=f"set {STATE_VARIABLE} to a folder that this user may write to")


Kind = Literal["topology", "scenario"]
FOLDERS: dict[Kind, Path] = {"topology": ROOT / "topologies", "scenario": ROOT / "harness" / "scenarios"}


def typed(text: str, command: str = COMMAND) -> str:
    """`text` with each `./sundial` as the user types it."""
    return text.replace("./sundial ", f"{command} ")


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
