# SPDX-License-Identifier: Apache-2.0
"""What a machine on another computer and this one say to each other, between ssh's sockets and those that others use.

Frames: QEMU's stream (each behind its length in four bytes, the greatest first) and the fabric's datagrams. Nothing is
dropped: who cannot go on makes the other side wait. Records and console: QEMU's stream into a file, for an interactive
machine also to and from who looks at its console.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, cast

FRAME_MOST = 1 << 16
"""QEMU's own limit is 68 KiB; no segment's frame has more than 18,190 bytes."""
BUFFER_BYTES = 4 << 20
"""Of the sockets of frames: as many as the fabric asks for."""
_LENGTH = struct.Struct(">I")
_PIECE = 1 << 16


@dataclass
class Carried:
    """Frames of one interface."""

    to_machine: int = 0
    to_fabric: int = 0
    undelivered: int = 0
    """The fabric was no longer there."""

    def to_json(self) -> dict[str, int]:
        return asdict(self)


class Listening:
    """A socket that one connection is expected on, which ssh makes when QEMU does."""

    def __init__(self, path: Path, serve: Callable[[socket.socket], None]) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(1)
        self._serve = serve
        self._stream: socket.socket | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"relay-{path.name}", daemon=True)
        self._thread.start()

    def close(self, seconds: float = 0.0) -> None:
        """Let what is under way arrive for so long, and then no more."""
        if self._stream is not None:
            self._thread.join(seconds)
        self._closed = True
        for each in (self._server, self._stream):
            if each is not None:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            self._stream, _ = self._server.accept()
            with self._stream:
                self._serve(self._stream)


class FrameRelay:
    """One interface of a machine. `machine_end` is bound here, as QEMU does on this computer."""

    def __init__(self, listen: Path, machine_end: Path, fabric_end: Path) -> None:
        self.carried = Carried()
        self._fabric = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            self._fabric.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        self._fabric.bind(str(machine_end))
        self._fabric_end = str(fabric_end)
        self._listening = Listening(listen, self._serve)
        self._sender: threading.Thread | None = None

    def close(self) -> None:
        """No more frames."""
        self._listening.close()
        with contextlib.suppress(OSError):
            self._fabric.shutdown(socket.SHUT_RDWR)
        if self._sender is not None:
            self._sender.join()
        self._fabric.close()

    def _serve(self, stream: socket.socket) -> None:
        self._sender = threading.Thread(target=self._to_machine, args=(stream,), daemon=True)
        self._sender.start()
        with cast(IO[bytes], stream.makefile("rb", buffering=_PIECE)) as source:
            while (frame := _framed(source)) is not None:
                self._to_fabric(frame)

    def _to_fabric(self, frame: bytes) -> None:
        try:
            self._fabric.sendto(frame, self._fabric_end)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.EPIPE):
                raise
            self.carried.undelivered += 1
        else:
            self.carried.to_fabric += 1

    def _to_machine(self, stream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while frame := self._fabric.recv(FRAME_MOST):
                stream.sendall(_LENGTH.pack(len(frame)) + frame)
                self.carried.to_machine += 1


def _framed(source: IO[bytes]) -> bytes | None:
    """The next frame; None at the end, or at what is not a frame."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    frame = source.read(length) if length <= FRAME_MOST else b""
    return frame if len(frame) == length else None


class FileRelay:
    """What a guest writes, into a file; `callers`: a socket for one at a time who reads and writes along."""

    def __init__(self, listen: Path, file: Path, callers: Path | None = None) -> None:
        self._file = file.open("ab", buffering=0)
        self._lock = threading.Lock()
        self._guest: socket.socket | None = None
        self._caller: socket.socket | None = None
        self._server: socket.socket | None = None
        if callers is not None:
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(str(callers))
            self._server.listen(1)
            threading.Thread(target=self._answer, args=(self._server,), daemon=True).start()
        self._listening = Listening(listen, self._serve)

    def close(self, seconds: float = 0.0) -> None:
        """Let what is under way arrive for so long."""
        self._listening.close(seconds)
        if self._server is not None:
            with contextlib.suppress(OSError):
                self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
        self._file.close()

    def _serve(self, stream: socket.socket) -> None:
        self._guest = stream
        while data := stream.recv(_PIECE):
            view = memoryview(data)
            while view:
                view = view[os.write(self._file.fileno(), view) :]
            with self._lock, contextlib.suppress(OSError):
                if self._caller is not None:
                    # One who does not read must not hold the guest up.
                    self._caller.send(data, socket.MSG_DONTWAIT)
        with self._lock, contextlib.suppress(OSError):
            if self._caller is not None:
                self._caller.shutdown(socket.SHUT_RDWR)

    def _answer(self, server: socket.socket) -> None:
        while True:
            try:
                caller, _ = server.accept()
            except OSError:
                return
            with caller, contextlib.suppress(OSError):
                with self._lock:
                    self._caller = caller
                while data := caller.recv(_PIECE):
                    if self._guest is not None:
                        self._guest.sendall(data)
            with self._lock:
                self._caller = None
