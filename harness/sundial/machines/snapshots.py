# SPDX-License-Identifier: Apache-2.0
"""Booted guests kept as files: `FOLDER/KEY/{state,meta.json}`, KEY over everything that the state depends on.

A snapshot is written beside its place and renamed when whole. A seal in its meta data (size, inode, change times)
shows whether the state can have been touched since its sha256 was checked; only then is it read again. The meta data
have a sha256 of their own. What is damaged is made again. Every user holds a shared lock, a maker an exclusive one, so
that two harnesses never make the same one at once and none is removed under a reader.
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
from sundial.machines.waiting import WALL, Clock, DeadlineMissed, wait_until

FORMAT = 2
"""Change when the meaning of what is stored changes."""

META_SHA256 = "meta_sha256"
"""The field of the meta data that holds the sha256 of all others."""
LOCK_S = 300.0
KEPT = 8

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
    """A whole, checked snapshot. `zero_ns`: the guest's TSC at zero of the time axis."""

    key: str
    state: Path
    size: int
    sha256: str
    zero_ns: int


@dataclass(frozen=True)
class MadeState:
    """What a maker hands over after it has written the state file."""

    size: int
    sha256: str
    zero_ns: int


Maker = Callable[[Path], MadeState]
"""Boots a guest and writes its state to the path given."""


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
        state = place / "state"
        try:
            status = state.stat()
        except OSError as error:
            raise Damaged("its state file is missing") from error
        snapshot = Snapshot(digest, state, meta["size"], meta["sha256"], meta["zero_ns"])
        named, sealed = meta["digest"], meta["seal"]
        if named != digest:
            raise Damaged("its meta data are those of another snapshot")
        if status.st_size != snapshot.size:
            raise Damaged(f"its state has {status.st_size} bytes instead of {snapshot.size}")
        if sealed != _seal(state):
            if sha256_of(state) != snapshot.sha256:
                raise Damaged("its state has another sha256")
            _write_meta(place / "meta.json", {**meta, "seal": _seal(state)})
        return snapshot

    def _make(self, key: SnapshotKey, digest: str, make: Maker) -> None:
        place = self._folder / digest
        # One maker at a time holds the exclusive lock, so what is there from before belongs to no one.
        for old in (place, *self._folder.glob(f".{digest}.*.making")):
            shutil.rmtree(old, ignore_errors=True)
        beside = self._folder / f".{digest}.{secrets.token_hex(3)}.making"
        beside.mkdir()
        try:
            made = make(beside / "state")
            meta = {
                "version": FORMAT,
                "digest": digest,
                "key": asdict(key),
                "size": made.size,
                "sha256": made.sha256,
                "zero_ns": made.zero_ns,
                "seal": _seal(beside / "state"),
            }
            _write_meta(beside / "meta.json", meta)
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


def _seal(state: Path) -> list[int]:
    """What changes when anybody touches the file."""
    status = state.stat()
    return [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Damaged("its meta data cannot be read") from error
    if not isinstance(meta, dict) or meta.get("version") != FORMAT:
        raise Damaged("its meta data are of another version")
    if meta.pop(META_SHA256, None) != _meta_sha256(meta):
        raise Damaged("its meta data have another sha256")
    return meta


def _write_meta(path: Path, meta: dict[str, Any]) -> None:
    beside = path.with_suffix(f".{secrets.token_hex(3)}")
    with beside.open("w") as file:
        json.dump({**meta, META_SHA256: _meta_sha256(meta)}, file, indent=1, sort_keys=True)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)


def _meta_sha256(meta: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
