# SPDX-License-Identifier: Apache-2.0
"""Results by key, in files: the whole state of sweeps. Several processes may write; each may be killed at any moment.

    results/ab/KEY/result.json      what became of the run (`sweep.result`)
    results/ab/KEY/run/             its run directory, with captures or without
    results/ab/KEY/again/MAKING.json  it was made again, with equal bytes
    results/ab/KEY/differs/MAKING/  it was made again, and these bytes differ: result.json and run/
    making/N/                       a run in the making; its maker holds a lock on it
    id                              what tells this store from others

A result is made in `making` and renamed to its place, so that it is there whole or not at all. Who puts one there holds
a lock on `results/ab`; readers need none.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sundial.run.directory import own
from sundial.sweep.result import Result, different, result_of
from sundial.whole import whole

RESULT, RUN = "result.json", "run"


@dataclass(frozen=True)
class Kept:
    """A result in the store."""

    result: Result
    run: Path
    """The run directory."""
    again: int
    """How often it was made again with equal bytes."""
    differing: Sequence[str]
    """Files that differed when it was made again."""

    @property
    def has_captures(self) -> bool:
        """False once captures were dropped."""
        return all((self.run / name).is_file() for name in self.result.files)


class Store:
    """A folder of results."""

    def __init__(self, folder: Path) -> None:
        """Makes the folder where it is missing. Raises OSError."""
        self.folder = folder.absolute()
        for name in ("results", "making"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    @property
    def id(self) -> str:
        """Identity of the store, wherever its folder is mounted."""
        path = self.folder / "id"
        if not path.is_file():
            beside = self.folder / f".id-{secrets.token_hex(4)}"
            beside.write_text(secrets.token_hex(16), encoding="utf-8")
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(beside)
            beside.unlink()
        return path.read_text(encoding="utf-8")

    def place(self, key: str) -> Path:
        """Folder of a key's result."""
        return self.folder / "results" / key[:2] / key

    def find(self, key: str) -> Kept | None:
        """What is kept of a run. A result that cannot be read counts as none."""
        place = self.place(key)
        first = _read(place)
        if first is None:
            return None
        others = [each for folder in sorted(place.glob("differs/*")) if (each := _read(folder)) is not None]
        names = sorted({name for other in others for name in different(first, other)})
        return Kept(first, place / RUN, len(list(place.glob("again/*.json"))), names)

    def some(self, most: int) -> list[Kept]:
        """A few results, whichever."""
        places = islice((self.folder / "results").glob("*/*"), most)
        return [kept for place in places if (kept := self.find(place.name)) is not None]

    @contextlib.contextmanager
    def making(self) -> Iterator[Path]:
        """A new folder in which a run is made; what is left in it is removed."""
        folder = self.folder / "making" / f"{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir()
        lock = own(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)

    def put(self, result: Result, made: Path, *, captures: bool) -> Kept:
        """Keep the run directory `made`, which is in a folder of `making`. Answers what is kept of the run now.

        Of a run that was there already, the bytes are compared. The new one takes the place of an equal one that was
        verified otherwise, or without captures if `captures`.
        """
        entry = made.parent / "entry"
        entry.mkdir()
        made.rename(entry / RUN)
        (entry / RESULT).write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
        place = self.place(result.key)
        place.parent.mkdir(exist_ok=True)
        lock = own(place.parent)
        try:
            before = self.find(result.key)
            if before is not None:
                self._compared(before, result, entry, made.parent, captures=captures)
            else:
                _replace(place, entry, made.parent)
            kept = self.find(result.key)
        finally:
            os.close(lock)
        assert kept is not None, "just written"
        return kept

    def _compared(self, before: Kept, result: Result, entry: Path, beside: Path, *, captures: bool) -> None:
        place, name = self.place(result.key), str(result.host.get("making") or secrets.token_hex(8))
        ways = (place / "again" / f"{name}.json", place / "differs" / name)
        if name == before.result.host.get("making") or any(path.exists() for path in ways):
            return  # the same making, which has come by two ways
        if different(before.result, result):
            (place / "differs").mkdir(exist_ok=True)
            entry.rename(place / "differs" / name)
            return
        self.add_again(result.key, {f"{name}.json": json.dumps({"host": dict(result.host)}).encode()})
        if before.result.verifier != result.verifier or (captures and not before.has_captures):
            for part in ("again", "differs"):
                if (place / part).is_dir():
                    shutil.copytree(place / part, entry / part)
            _replace(place, entry, beside)

    def add_again(self, key: str, makings: Mapping[str, bytes]) -> None:
        """Note makings of a run with bytes equal to those kept; a making is noted once."""
        folder = self.place(key) / "again"
        folder.mkdir(exist_ok=True)
        for name, content in makings.items():
            with whole(folder / name) as written:
                written.write_bytes(content)

    def tidy(self) -> int:
        """Remove what killed processes have left in the making; how many folders."""
        removed = 0
        for folder in (self.folder / "making").iterdir():
            if _lives(folder.name.partition("-")[0]):
                continue  # it may not have locked its folder yet
            with contextlib.suppress(OSError):
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                    removed += 1
                finally:
                    os.close(handle)
        return removed


def _replace(place: Path, entry: Path, beside: Path) -> None:
    """Put an entry at a place; what was there goes with the folder in the making."""
    with contextlib.suppress(FileNotFoundError):
        place.rename(beside / f"old-{secrets.token_hex(4)}")
    entry.rename(place)


def _read(folder: Path) -> Result | None:
    try:
        return result_of(json.loads((folder / RESULT).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _lives(pid: str) -> bool:
    return pid.isdecimal() and Path("/proc", pid).is_dir()
