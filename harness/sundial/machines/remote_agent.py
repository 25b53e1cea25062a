# SPDX-License-Identifier: Apache-2.0
"""Our part on another computer: keeps files for its machines there, and ends them when the connection does.

Runs there as a program of its own, sent through ssh together with `reaper`: standard library only, and nothing stays
but the cache of kernels. It reads requests as JSON lines from standard input and answers each in one line:

    {"have": SHA256}                 {"path": PATH} of that file, checked now, or {"path": null}
    {"keep": SHA256, "bytes": N}     and N bytes behind the line: {"path": PATH} once they have that digest
    {"write": NAME, "data": BASE64}  {"path": PATH} in the folder
    {"remove": NAME}                 {}: files of the folder whose names begin so are gone
    {"alive": true}                  {}: the other side is still there, and so is this one
    {"end": true}                    {}: everything has been cleaned up, and it ends

Its first line says what there is: {"folder": PATH, "qemu": PATH or null, "version": TEXT, "user": N, "group": N}. When
its input ends, or says nothing for SILENCE_S, it ends all machines and removes the folder, whatever the reason was.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sundial.machines import reaper

EMULATOR = "qemu-system-x86_64"
SILENCE_S = 30.0
KEPT_DAYS = 30
"""What nothing has used for so long leaves the cache."""
OWNER = "owner"
_CHUNK = 1 << 20


class Gone(Exception):
    """The other side is."""


class Input:
    """Lines and bytes of a descriptor. Raises Gone where nothing comes any more."""

    def __init__(self, fd: int, silence_s: float = SILENCE_S) -> None:
        self._fd = fd
        self._silence_s = silence_s
        self._buffer = b""

    def line(self) -> bytes:
        while b"\n" not in self._buffer:
            self._buffer += self._more()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def some(self, most: int) -> bytes:
        data = self._buffer or self._more()
        self._buffer = data[most:]
        return data[:most]

    def _more(self) -> bytes:
        if not select.select([self._fd], [], [], self._silence_s)[0]:
            raise Gone(f"nothing was heard for {self._silence_s:g} s")
        data = os.read(self._fd, _CHUNK)
        if not data:
            raise Gone("the connection has ended")
        return data


class Cache:
    """Files by their sha256."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > KEPT_DAYS * 86400:
                    path.unlink()

    def find(self, digest: str) -> Path | None:
        """The file, if it is there and whole; a damaged one is taken away."""
        path = self._folder / digest
        try:
            sha = hashlib.sha256()
            with path.open("rb") as file:
                while data := file.read(_CHUNK):
                    sha.update(data)
            if sha.hexdigest() != digest:
                path.unlink()
                return None
            os.utime(path)
        except OSError:
            return None
        return path

    def keep(self, digest: str, size: int, source: Input) -> Path | None:
        """Take `size` bytes; the file, if they have the digest."""
        handle, name = tempfile.mkstemp(prefix="new-", dir=self._folder)
        sha = hashlib.sha256()
        try:
            with os.fdopen(handle, "wb") as file:
                while size:
                    data = source.some(size)
                    size -= len(data)
                    sha.update(data)
                    file.write(data)
            if sha.hexdigest() != digest:
                return None
            Path(name).rename(self._folder / digest)
        finally:
            reaper.remove(Path(name))
        return self._folder / digest


def serve(token: str, source: Input, base: Path, cache: Path) -> None:
    """Everything, to the end."""
    base.mkdir(mode=0o700, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.geteuid():
        _say({"error": f"{base} belongs to another user"})
        return
    clear_stale(base)
    folder = Path(tempfile.mkdtemp(prefix="r", dir=base))
    (folder / OWNER).write_text(f"{os.getpid()} {reaper.start_time(os.getpid())} {token}")
    try:
        _say({"folder": str(folder), "user": os.geteuid(), "group": os.getegid(), **_emulator()})
        kept = Cache(cache)
        while _obey(json.loads(source.line()), source, folder, kept):
            pass
    except Gone:
        return
    finally:
        reaper.end_all(token)
        shutil.rmtree(folder, ignore_errors=True)
    _say({})


def clear_stale(base: Path) -> None:
    """Ends what agents have left that were killed themselves."""
    for owner in base.glob(f"*/{OWNER}"):
        with contextlib.suppress(OSError, ValueError):
            pid, started, token = owner.read_text().split()
            if str(reaper.start_time(int(pid))) != started and token.startswith("sundial-"):
                reaper.end_all(token)
                shutil.rmtree(owner.parent, ignore_errors=True)


def _obey(request: dict[str, Any], source: Input, folder: Path, cache: Cache) -> bool:
    """Whether to go on."""
    if "have" in request:
        _say({"path": _text(cache.find(_digest(request["have"])))})
    elif "keep" in request:
        _say({"path": _text(cache.keep(_digest(request["keep"]), int(request["bytes"]), source))})
    elif "write" in request:
        path = folder / Path(request["write"]).name
        path.write_bytes(base64.b64decode(request["data"]))
        _say({"path": str(path)})
    elif "remove" in request:
        for path in folder.glob(f"{Path(request['remove']).name}*"):
            reaper.remove(path)
        _say({})
    elif "alive" in request:
        _say({})
    return "end" not in request


def _digest(text: str) -> str:
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"no sha256: {text!r}")
    return text


def _emulator() -> dict[str, str | None]:
    path = shutil.which(EMULATOR)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    return {"qemu": path, "version": said.partition("\n")[0]}


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _say(answer: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(answer), flush=True)


def main(token: str) -> None:
    """The program: `token` is part of the command line of every process that is ours."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(home) / "sundial" / "boot"
    try:
        serve(token, Input(sys.stdin.fileno()), Path(f"/tmp/sundial-host-{os.geteuid()}"), cache)
    except OSError as error:
        _say({"error": f"{error.filename or ''}: {error.strerror}"})
