# SPDX-License-Identifier: Apache-2.0
"""Booted guests kept as files: `FOLDER/KEY/{state,memory,meta.json}`, KEY over everything that they depend on.

`memory` is the guest's main memory, which all machines restored from it map copy-on-write; `state` is the rest. A
snapshot is written beside its place and renamed when whole. Seals in its meta data (`seals.py`) show whether a file can
have been touched since its sha256 was checked; only then is it read again. The meta data have a sha256 of their own.
What is damaged is made again. Every user holds a shared lock, a maker an exclusive one, so that two harnesses never
make the same one at once and none is removed under a reader.

QEMU opens `memory` for writing even where it maps it copy-on-write (8.2 and newer need not), so the file is writable
for QEMU's user, in a folder that no other user enters. A write to it would change machines that run: a user looks
at the seals once more when its machines have ended (`Snapshot.is_sealed`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sundial.errors import RunFailed
from sundial.machines.memory import memory_sha256
from sundial.machines.seals import Known, Read, Seal, look, read_summed, seal_of, sha256_of, write_summed
from sundial.machines.waiting import WALL, Clock, DeadlineMissed, wait_until

FORMAT = 3
"""Change when the meaning of what is stored changes."""

STATE, MEMORY = "state", "memory"
LOCK_S = 300.0
KEPT = 24

Say = Callable[[str], None]


@dataclass(frozen=True)
class SnapshotKey:
    """Everything that makes a saved state fit a machine, and nothing that differs from one machine to the next."""

    qemu: str
    flags: tuple[str, ...]
    mips: str
    memory_mib: int
    nics: int
    kernel_sha256: str
    initrd_sha256: str
    cmdline: str
    plugin_sha256: str
    format: int = FORMAT

    def digest(self) -> str:
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Snapshot:
    """A whole, checked snapshot."""

    key: str
    folder: Path
    zero_ns: int
    """The guest's TSC at zero of the time axis."""
    seals: tuple[tuple[str, Seal], ...]
    memory_sha256: str

    @property
    def state(self) -> Path:
        """Everything but main memory, as QEMU migrates it."""
        return self.folder / STATE

    @property
    def memory(self) -> Path:
        """Main memory."""
        return self.folder / MEMORY

    def is_sealed(self) -> bool:
        """Whether no file was touched since the snapshot was checked."""
        try:
            return all(seal_of(self.folder / name) == seal for name, seal in self.seals)
        except OSError:
            return False


Maker = Callable[[Path], int]
"""Boots a guest, and writes its `state` and its `memory` into the folder given; the guest's TSC at zero of the axis."""


class Damaged(Exception):
    """A snapshot is there and is not what its meta data say; the message says how."""


class SnapshotStore:
    """The cache of one checkout."""

    def __init__(self, folder: Path, clock: Clock = WALL) -> None:
        self._folder = folder
        self._clock = clock

    @contextlib.contextmanager
    def use(self, key: SnapshotKey, make: Maker, say: Say) -> Iterator[Snapshot]:
        """The snapshot for `key`, made first where there is none or a damaged one; held until the block is left.

        `say` gets one line when something has to be made. Raises what `make` raises.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = key.digest()
        with self._lock(digest) as lock:
            self._acquire(lock, fcntl.LOCK_SH, digest)
            if self._found(digest)[0] is None:
                # Not an upgrade: flock gives the shared lock up first, so look again under the exclusive one.
                self._acquire(lock, fcntl.LOCK_EX, digest)
                found, reason = self._found(digest)
                if found is None:
                    say(reason)
                    self._make(key, digest, make)
                self._acquire(lock, fcntl.LOCK_SH, digest)
            found, reason = self._found(digest)
            if found is None:
                raise RunFailed(f"a snapshot that was just made cannot be used: {reason}")
            os.utime(self._folder / digest)
            yield found
        self.prune()

    def prune(self, keep: int = KEPT) -> None:
        """Remove all but the `keep` last used snapshots, and what makers that died left."""
        places = [path for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
        places.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in places[keep:]:
            with self._lock(path.name) as lock, contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        for path in self._folder.glob(".*.making"):
            with self._lock(path.name.split(".")[1]) as lock, contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)

    def _found(self, digest: str) -> tuple[Snapshot | None, str]:
        """The snapshot, or None and why it has to be made."""
        try:
            found = self._load(digest)
        except Damaged as damage:
            return None, f"the snapshot {digest[:12]} is damaged ({damage}); making it again"
        return found, f"no snapshot {digest[:12]} yet; booting a guest once to make it"

    def _load(self, digest: str) -> Snapshot | None:
        place = self._folder / digest
        if not place.is_dir():
            return None
        meta = _read_meta(place / "meta.json")
        if meta["digest"] != digest:
            raise Damaged("its meta data are those of another snapshot")
        checked = {name: _checked(place / name, file) for name, file in meta["files"].items()}
        files = {name: _file(known) for name, known in checked.items()}
        if files != meta["files"]:
            write_summed(place / "meta.json", {**meta, "files": files})
        seals = tuple((name, known.seal) for name, known in checked.items())
        return Snapshot(digest, place, meta["zero_ns"], seals, checked[MEMORY].value)

    def _make(self, key: SnapshotKey, digest: str, make: Maker) -> None:
        place = self._folder / digest
        # One maker at a time holds the exclusive lock, so what is there from before belongs to no one.
        for old in (place, *self._folder.glob(f".{digest}.*.making")):
            shutil.rmtree(old, ignore_errors=True)
        beside = self._folder / f".{digest}.{secrets.token_hex(3)}.making"
        beside.mkdir(mode=0o700)
        try:
            zero_ns = make(beside)
            (beside / MEMORY).chmod(0o666)
            meta = {
                "version": FORMAT,
                "digest": digest,
                "key": asdict(key),
                "zero_ns": zero_ns,
                "files": {name: _file(look(beside / name, None, _SHA256[name])) for name in (STATE, MEMORY)},
            }
            write_summed(beside / "meta.json", meta)
            beside.rename(place)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        _sync_folder(self._folder)

    @contextlib.contextmanager
    def _lock(self, digest: str) -> Iterator[int]:
        handle = os.open(self._folder / f".{digest}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            yield handle
        finally:
            os.close(handle)

    def _acquire(self, lock: int, kind: int, digest: str) -> None:
        def take() -> bool:
            try:
                fcntl.flock(lock, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        try:
            wait_until(take, seconds=LOCK_S, what="another run is making the same snapshot", clock=self._clock)
        except DeadlineMissed as error:
            raise RunFailed(f"snapshot {digest[:12]}: {error}") from error


def _checked(path: Path, file: dict[str, Any]) -> Known:
    """A file that is as its meta data say; read only where its seal does not hold. Raises Damaged."""
    known = Known(file["sha256"], tuple(file["seal"]), file.get("read_ns", 0))
    try:
        size = path.stat().st_size
        if size != file["size"]:
            raise Damaged(f"its {path.name} has {size} bytes instead of {file['size']}")
        found = look(path, known, _SHA256[path.name])
    except OSError as error:
        raise Damaged(f"its {path.name} cannot be read: {error.strerror}") from error
    if found.value != known.value:
        raise Damaged(f"its {path.name} has another sha256")
    return found


def _file(known: Known) -> dict[str, Any]:
    """A file in the meta data."""
    return {"size": known.seal[0], "sha256": known.value, "seal": list(known.seal), "read_ns": known.read_ns}


_SHA256: dict[str, Read] = {STATE: sha256_of, MEMORY: memory_sha256}
"""How the digest of each file of a snapshot is taken."""


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = read_summed(path)
    except ValueError as error:
        raise Damaged(f"its meta data {error}") from error
    if meta.get("version") != FORMAT:
        raise Damaged("its meta data are of another version")
    return meta


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
