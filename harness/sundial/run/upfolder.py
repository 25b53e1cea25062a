# SPDX-License-Identifier: Apache-2.0
"""Files about a topology that is up: `.sundial/up/TOPOLOGY/keeper.json`, and a lock that its keeper holds.

The topology is up while the lock is held; the lock ends with the keeper's process, for whatever reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sundial.plan.request import Kept, KeptMachine, UpRequest
from sundial.run.places import Places
from sundial.whole import whole

RECORD = "keeper.json"
LOG = "keeper.log"


@dataclass(frozen=True)
class KeeperRecord:
    """Data about a keeper for later commands."""

    control: str
    """Its control socket."""
    kept: Kept
    exec_sockets: dict[str, str]
    """Sockets of the switchboard, by machine."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "kept": self.kept.to_json()}


def kept_from_json(document: dict[str, Any]) -> Kept:
    machines = tuple(KeptMachine(**machine) for machine in document["machines"])
    paths = {name: Path(document[name]) for name in ("captures", "final")}
    return Kept(**{**document, **paths, "machines": machines})


def request_to_json(request: UpRequest, places: Places) -> dict[str, Any]:
    """Request to the keeper's process."""
    return {
        "topology": request.topology.model_dump(mode="json", exclude_none=True),
        "clock": request.clock,
        "seed": request.seed,
        "connect": request.connect,
        "recipe": request.recipe,
        "places": {name: str(path) for name, path in asdict(places).items()},
    }


def request_from_json(document: dict[str, Any]) -> tuple[UpRequest, Places]:
    from sundial.model.network import build_network
    from sundial.model.topology import Topology

    topology = Topology.model_validate(document["topology"])
    how = (document[name] for name in ("clock", "seed", "connect", "recipe"))
    request = UpRequest(topology, build_network(topology), *how)
    return request, Places(**{name: Path(path) for name, path in document["places"].items()})


class UpFolder:
    """The folder of one topology."""

    def __init__(self, parent: Path, topology: str) -> None:
        self.topology = topology
        self.path = parent / topology
        self._lock_path = parent / f".{topology}.lock"
        self._lock: int | None = None

    def make(self) -> None:
        """Empty the folder for a new keeper; files of a dead one are removed."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True, exist_ok=True)

    def take(self) -> bool:
        """Become its keeper until this process ends. False if another process is."""
        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._lock = handle
        return True

    def let_go(self) -> None:
        """Stop being its keeper and remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def is_taken(self) -> bool:
        """True if a keeper lives."""
        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def write(self, record: KeeperRecord) -> None:
        with whole(self.path / RECORD) as beside:
            beside.write_text(json.dumps(record.to_json(), indent=1) + "\n")

    def read(self) -> KeeperRecord | None:
        """The record of a living keeper whose topology is up; files of a dead one are removed.

        A folder without a record may belong to a keeper that is about to write one.
        """
        if not self.is_taken():
            if (self.path / RECORD).exists():
                shutil.rmtree(self.path, ignore_errors=True)
            return None
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads((self.path / RECORD).read_text())
            return KeeperRecord(found["control"], kept_from_json(found["kept"]), found["exec_sockets"])
        return None


def all_up(parent: Path) -> Iterator[KeeperRecord]:
    """Every topology that is up, by name."""
    if not parent.is_dir():
        return
    for path in sorted(parent.iterdir()):
        if path.is_dir():
            record = UpFolder(parent, path.name).read()
            if record is not None:
                yield record
