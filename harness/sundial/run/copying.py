# SPDX-License-Identifier: Apache-2.0
"""Copies files between this host and a machine that is up: tar, or the bytes of one file, over a command's streams.

Both sides write beside the target and rename, so an interrupted copy leaves nothing.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import secrets
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from sundial.errors import BadInput, Interrupted, RunFailed
from sundial.machines import tarstream
from sundial.machines.command import Gathered, Stream
from sundial.machines.foreground import Foreground
from sundial.machines.tarstream import Copied
from sundial.machines.terminal import write_all
from sundial.model.images import IMAGES
from sundial.plan.request import Progress
from sundial.printable import printable, printable_bytes
from sundial.run import keeper

PIPE = "-"
_SIGNALLED = tuple(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
LEFT_BYTES = 4 << 20
"""Of a machine's memory: a copy must not take what its programs need."""
_FULL = (128 + signal.SIGKILL, 128 + signal.SIGXFSZ)
_NO_MEMORY = "files of a machine take its memory: raise memory: in the topology"
Kind = Literal["file", "folder", "none", "other"]

_CLEAN = """
trap 'rm -rf "$new"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
"""
LOOK = """
there=$(readlink -f "$1") || there=$1
if [ -d "$there" ]; then echo folder; elif [ -f "$there" ]; then echo file; elif [ -e "$there" ]; then echo other
else echo none; fi
if [ -d "$2" ]; then echo folder; else echo none; fi
if [ -n "$3" ] && [ -f "$there" ]; then wc -c < "$there"
elif [ -n "$3" ] && [ -d "$there" ]; then du -sk "$there" | while read size _; do echo $((size * 1024)); done
else echo 0; fi
while read name amount _; do [ "$name" != MemAvailable: ] || echo $((amount * 1024)); done < /proc/meminfo
echo "$there"
"""
"""Of $1: what it is; what its folder $2 is; its bytes, if $3 asks; free bytes of memory; its path without links."""
PUT = f"""set -e
new=$1/.sundial-cp.$$
{_CLEAN}mkdir "$new"
tar -xpf - -C "$new"
if [ -d "$1/$2" ] && [ -d "$new/$2" ]; then cp -a "$new/$2/." "$1/$2/"; else mv -f "$new/$2" "$1/$2"; fi
"""
"""The archive on standard input as $2 in folder $1; a folder that is there gets what it lacks."""
PUT_BYTES = f"""set -e
ulimit -f "$3"
new=$1/.sundial-cp.$$
{_CLEAN}cat > "$new"
[ ! -e "$1/$2" ] || chmod "$(stat -c %a "$1/$2")" "$new"
mv -f "$new" "$1/$2"
"""
"""The bytes on standard input as $2 in folder $1, at most $3 blocks of 512."""


@dataclass(frozen=True)
class Remote:
    """A path of a machine."""

    machine: str
    path: str
    """Absolute."""
    as_folder: bool
    """It was written with a slash at the end."""

    def __str__(self) -> str:
        return f"{self.machine}:{self.path}"


@dataclass(frozen=True)
class Place:
    """What is at a path: itself, its folder, bytes of content, the path without links."""

    kind: Kind
    parent: Kind
    bytes: int
    real: str
    free: int = 0
    """Bytes of memory that the machine has left, in which its files are."""


def parse(text: str) -> Remote | None:
    """`MACHINE:PATH`; None for a local path or a pipe. Raises BadInput for a machine without a path."""
    machine, colon, path = text.partition(":")
    if not colon or "/" in machine or not machine:
        return None
    if not path or not path.isprintable():
        raise BadInput(f"{printable(text)!r} has no path", allowed="MACHINE:PATH, such as client:/root/file")
    absolute = posixpath.normpath("/" + path)
    return Remote(machine, "/" + absolute.lstrip("/"), path.endswith("/"))


def target(name: str, source: Kind, at: Place, path: str, *, as_folder: bool) -> tuple[str, str]:
    """(folder, name) of the copy of a file or folder called `name` at `path`. Raises BadInput. Pure."""
    if at.kind == "folder":
        return path, name
    if at.kind == "other" or (at.kind == "file" and source == "folder"):
        what = "is a file" if at.kind == "file" else "is neither a file nor a folder"
        raise BadInput(what, field="DST", file=path, allowed="a folder, or a new name")
    if at.parent != "folder":
        raise BadInput(f"folder {posixpath.dirname(path) or '.'} does not exist", field="DST", file=path)
    if as_folder and (at.kind == "file" or source == "file"):
        raise BadInput(
            "is not a folder", field="DST", file=path, allowed="a folder that exists, or no slash at the end"
        )
    return posixpath.dirname(path) or ".", posixpath.basename(path)


class Copy:
    """One copy to or from a machine."""

    def __init__(self, machine: str, topology: str | None, progress: Progress) -> None:
        """Raises BadInput where the machine is not up, or takes no streams."""
        self._machine = machine
        self._progress = progress
        self.kept, kept_machine = keeper.find_machine(machine, topology)
        self._topology = self.kept.topology
        image = IMAGES[kept_machine.image]
        if not image.streams_commands:
            raise BadInput(
                f"{machine} boots {image.name}, which takes no files while it is up",
                hint="its program can have files from the start: files: in the topology (topologies/README.md)",
            )
        self.copied = Copied()
        self._bytes = 0
        self._total = 0

    def put(self, source: Path, to: Remote) -> None:
        """Copy a file or folder of this host. Raises BadInput, RunFailed, Interrupted, OSError."""
        kind = kind_of(source)
        if kind in ("none", "other"):
            what = "does not exist" if kind == "none" else "is neither a file nor a folder"
            raise BadInput(what, field="SRC", file=str(source), allowed="a file, a folder, or -")
        at = self._look(to.path, size=False)
        folder, name = target(source.resolve().name, kind, at, to.path, as_folder=to.as_folder)
        self._total = tarstream.size_of(source.resolve())
        if self._total > at.free - LEFT_BYTES:
            room = max(0, at.free - LEFT_BYTES)
            what = f"has {room / 1e6:.1f} MB left for files, {source} has {self._total / 1e6:.1f} MB"
            raise RunFailed(what, machine=self._machine, hint=_NO_MEMORY)
        self._progress.say(f"copying {source} to {self._machine}:{posixpath.join(folder, name)}")
        with _feeding(lambda out: tarstream.pack(source, name, out, self.copied, self._count)) as read_fd:
            self._run(["sh", "-c", PUT, "sh", folder, name], read_fd, None)

    def put_bytes(self, input_fd: int, to: Remote) -> None:
        """Write the bytes of a pipe into a file. Raises BadInput, RunFailed, Interrupted."""
        at = self._look(to.path, size=False)
        if at.kind == "folder" or to.as_folder:
            raise BadInput("is a folder", field="DST", file=str(to), allowed="the name of a file")
        folder, name = target("", "file", at, to.path, as_folder=False)
        blocks = str(max(0, at.free - LEFT_BYTES) // 512)
        self._run(["sh", "-c", PUT_BYTES, "sh", folder, name, blocks], input_fd, None)
        self.copied.entries = 1
        self.copied.bytes = self._look(to.path, size=True).bytes

    def get(self, source: Remote, to: Path, *, as_folder: bool) -> None:
        """Copy a file or folder of the machine. Raises BadInput, RunFailed, Interrupted, OSError."""
        at = self._source(source)
        name = posixpath.basename(source.path)
        local = Place(kind_of(to), kind_of(to.absolute().parent), 0, str(to))
        folder, called = target(name, at.kind, local, str(to), as_folder=as_folder)
        final = Path(folder) / called
        if at.kind == "folder" and final.exists() and not final.is_dir():
            raise BadInput("is a file", field="DST", file=str(final), allowed="a folder, or a new name")
        if at.kind == "file" and final.is_dir():
            raise BadInput("is a folder", field="DST", file=str(final), allowed="a file, or a new name")
        new = final.with_name(f".{called}.{secrets.token_hex(3)}")
        self._total = at.bytes
        self._progress.say(f"copying {source} to {final}")
        parent, top = posixpath.split(at.real)
        try:
            with _drained(lambda stream: tarstream.unpack(stream, top, new, self.copied, self._count)) as write_fd:
                self._run(["tar", "-cf", "-", "-C", parent, f"./{top}"], None, write_fd)
            if final.is_dir() and new.is_dir():
                tarstream.merge(new, final)
            else:
                new.replace(final)
        finally:
            tarstream.discard(new)

    def get_bytes(self, source: Remote, output_fd: int) -> None:
        """Write the bytes of a file to a pipe. Raises BadInput, RunFailed, Interrupted, BrokenPipeError."""
        at = self._source(source)
        if at.kind == "folder":
            hint = f"as an archive: sundial exec {self._machine} -- tar -cf - {source.path}"
            raise BadInput("is a folder", field="SRC", file=str(source), allowed="a file", hint=hint)
        self._run(["cat", at.real], None, output_fd)
        self.copied.entries, self.copied.bytes = 1, at.bytes

    def _source(self, source: Remote) -> Place:
        if source.path == "/":
            raise BadInput("is the whole machine", field="SRC", file=str(source), allowed="a file or folder in it")
        at = self._look(source.path, size=True)
        if at.kind in ("none", "other"):
            what = "does not exist" if at.kind == "none" else "is neither a file nor a folder"
            raise BadInput(what, field="SRC", file=str(source), allowed="a file or a folder of the machine")
        return at

    def _look(self, path: str, *, size: bool) -> Place:
        """What is at a path of the machine."""
        gathered = Gathered()
        argv = ["sh", "-c", LOOK, "sh", path, posixpath.dirname(path), "size" if size else ""]
        end = keeper.exec_(self._machine, argv, Foreground(None), gathered, self._topology)
        if end.status in _SIGNALLED:
            raise Interrupted
        lines = gathered.kept["stdout"].decode(errors="surrogateescape").split("\n")
        if end.status or len(lines) < 5 or lines[0] not in ("file", "folder", "none", "other"):
            raise RunFailed(f"cannot look at {path}: {_last(gathered)}", machine=self._machine)
        kind: Kind = lines[0]  # type: ignore[assignment]
        there, free = (int(line) if line.strip().isdecimal() else 0 for line in lines[2:4])
        return Place(kind, "folder" if lines[1] == "folder" else "none", there, lines[4], free)

    def _run(self, argv: Sequence[str], input_fd: int | None, output_fd: int | None) -> None:
        said = Gathered()

        def output(stream: Stream, data: bytes) -> None:
            if stream == "stdout" and output_fd is not None:
                write_all(output_fd, data)
            else:
                said(stream, data)

        end = keeper.exec_(self._machine, argv, Foreground(input_fd), output, self._topology)
        if end.status in _SIGNALLED:
            raise Interrupted("interrupted; nothing is left of the copy")
        if end.status:
            hint = _NO_MEMORY if end.status in _FULL or "File too large" in _last(said) else None
            what = f"{argv[0]} ended with status {end.status}: {_last(said)}"
            raise RunFailed(what, machine=self._machine, hint=hint)

    def _count(self, amount: int) -> None:
        self._bytes += amount
        if self._total:
            self._progress.share(min(1.0, self._bytes / self._total), f"{self._bytes} of {self._total} bytes")


def kind_of(path: Path) -> Kind:
    """What a path of this host is; links are followed."""
    if path.is_dir():
        return "folder"
    return "file" if path.is_file() else "other" if path.exists() else "none"


@contextlib.contextmanager
def _feeding(work: Callable[[BinaryIO], None]) -> Iterator[int]:
    """A pipe that a thread writes to. Raises what the thread raises; if the reader ends first, that is not an error."""
    read_fd, write_fd = os.pipe()
    errors: list[Exception] = []

    def feed() -> None:
        try:
            with os.fdopen(write_fd, "wb") as file:
                work(file)
        except BrokenPipeError:
            pass
        except Exception as error:
            errors.append(error)

    with _beside(feed, errors, read_fd):
        yield read_fd


@contextlib.contextmanager
def _drained(work: Callable[[BinaryIO], None]) -> Iterator[int]:
    """A pipe that a thread reads from, in the same way. The end of the block ends the stream."""
    read_fd, write_fd = os.pipe()
    errors: list[Exception] = []

    def drain() -> None:
        try:
            with os.fdopen(read_fd, "rb") as file:
                work(file)
        except tarfile.TarError as error:
            errors.append(RunFailed(f"the archive from the machine is damaged: {error}"))
        except Exception as error:
            errors.append(error)

    with _beside(drain, errors, write_fd):
        yield write_fd


@contextlib.contextmanager
def _beside(work: Callable[[], None], errors: Sequence[Exception], fd: int) -> Iterator[None]:
    thread = threading.Thread(target=work, name="copy")
    thread.start()
    failed: Exception | None = None
    try:
        yield
    except BrokenPipeError as error:
        failed = error
    except RunFailed as error:
        failed = error
    finally:
        os.close(fd)
        thread.join()
    # A full disk here is why the other side failed, or was not read.
    reason = next((error for error in errors if failed is None or isinstance(error, OSError)), failed)
    if isinstance(failed, BrokenPipeError) and errors:
        reason = errors[0]
    if reason is not None:
        raise reason


def _last(said: Gathered) -> str:
    lines = [line for stream in said.kept.values() for line in bytes(stream).splitlines() if line.strip()]
    return printable_bytes(lines[-1]) if lines else "no reason given"
