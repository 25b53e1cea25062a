# SPDX-License-Identifier: Apache-2.0
"""A tshark that has initialised itself once, and forks for each capture: preload.c says how.

Tests of verification start tshark thousands of times on a few frames each, and nearly all it does then is to register
its protocols. It is the same program, which reads the same options and the same bytes: `test_warm_tshark.py` holds what
it answers against a tshark that was started by itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from unittest import mock

from sundial.observe import tshark
from sundial.observe.tshark import READ_STANDARD_INPUT

SOURCE = Path(__file__).with_name("preload.c")
MOST_ARGUMENTS = 128
READ_BEFORE = frozenset("CGOPVXx")
"""Options upon which tshark has acted when it forks, unless the server was begun with them. -r is one, too."""
_OF_TSHARK = ("WIRESHARK_", "LC_", "LANG", "TZ", "HOME", "XDG_", "MALLOC_", "GLIBC_")
"""What tshark reads of the environment."""
_by_itself = tshark.start
_STATUS = struct.Struct("i")


def build(folder: Path) -> Path:
    """preload.c as a library in `folder`."""
    library = folder / "warm_tshark.so"
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", "-std=c11", "-O2", *warnings, "-fPIC", "-shared", "-o", library, SOURCE], check=True)
    return library


class Forked:
    """What `sundial.observe.tshark` uses of a `subprocess.Popen`, of a child of the server."""

    def __init__(self, streams: Sequence[IO[bytes]], status: IO[bytes], pid: int) -> None:
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self._status = status
        self._pid = pid

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            # What was not written when the child ended.
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        with self._status as status:
            data = status.read(_STATUS.size)
        self.returncode = _STATUS.unpack(data)[0] if data else -signal.SIGKILL


class WarmTshark:
    """The server, made by the first command that it can serve: all of those begin with the words of `begun_with`."""

    def __init__(self, folder: Path, begun_with: Sequence[str] = READ_STANDARD_INPUT) -> None:
        self._folder = folder
        self._begun_with = list(begun_with)
        self._lock = threading.Lock()
        self._server: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._begun: tuple[str, Mapping[str, str]] | None = None
        self.served = 0

    def start(self, command: Sequence[str], environment: Mapping[str, str], capture: IO[bytes] | None = None) -> Any:
        """As `sundial.observe.tshark.start`, which is called where the server is another program, or of no use.

        Given a file, that is the standard input.
        """
        begun = command[0], {name: value for name, value in environment.items() if name.startswith(_OF_TSHARK)}
        with self._lock:
            if self._begun is None:
                self._begun = begun
                self._server = self._begin(*begun)
            if self._server is None or begun != self._begun or not self._can_be_served(command):
                return _fresh(command, environment, capture)
            forked = self._forked(self._server[1], command, capture)
            if forked is None:
                # A Wireshark that begins in another way: its preload was never called, and it ended.
                self._end()
                return _fresh(command, environment, capture)
            self.served += 1
            return forked

    def _begin(self, program: str, environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            added = {"LD_PRELOAD": str(build(self._folder)), "WARM_TSHARK_SOCKET": str(theirs.fileno())}
            process = subprocess.Popen(
                [program, *self._begun_with, *["-n"] * (MOST_ARGUMENTS - len(self._begun_with))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **environment, **added},
                pass_fds=[theirs.fileno()],
            )
        return process, ours

    def _can_be_served(self, command: Sequence[str]) -> bool:
        first = 1 + len(self._begun_with)
        options = {word[1] for word in command[first:] if len(word) > 1 and word[0] == "-" and word[1] != "-"}
        begins = list(command[1:first]) == self._begun_with
        return begins and not options & READ_BEFORE and len(command) <= MOST_ARGUMENTS

    def _forked(self, server: socket.socket, command: Sequence[str], capture: IO[bytes] | None) -> Forked | None:
        # All ends are closed if the server is not there any more.
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            pipes = [_pipe(own, ours, theirs) for own in ("wb", "rb", "rb", "rb")]
            data = b"".join(os.fsencode(word) + b"\0" for word in command[1:])
            ends = [end for _, end in pipes]
            if capture is not None:
                ends[0] = capture.fileno()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                socket.send_fds(server, [data], ends)
            theirs.close()
            *streams, status = [stream for stream, _ in pipes]
            pid = status.read(_STATUS.size)
            if not pid:
                return None
            ours.pop_all()
            return Forked(streams, status, _STATUS.unpack(pid)[0])

    def _end(self) -> None:
        if self._server is not None:
            process, ours = self._server
            ours.close()
            process.wait()
            self._server = None

    def close(self) -> None:
        """Ends the server."""
        with self._lock:
            self._end()


@contextlib.contextmanager
def warm(folder: Path) -> Iterator[WarmTshark]:
    """Captures are dissected by children of one tshark; `folder` is for what is built."""
    with contextlib.closing(WarmTshark(folder)) as served, _starts(served.start):
        yield served


@contextlib.contextmanager
def each_by_itself() -> Iterator[None]:
    """Within `warm`: each capture by a tshark of its own, whose processor time counts as this process's."""
    with _starts(_by_itself):
        yield


def _starts(start: Callable[..., Any]) -> Any:
    return mock.patch.object(tshark, "start", start)


def _fresh(command: Sequence[str], environment: Mapping[str, str], capture: IO[bytes] | None) -> Any:
    if capture is None:
        return _by_itself(command, environment)
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=capture, stdout=pipe, stderr=pipe, env=environment)


def _pipe(own: str, ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[IO[bytes], int]:
    """A pipe: our end, which is open as `own` says, and the child's."""
    reading, writing = os.pipe()
    mine, other = (reading, writing) if own == "rb" else (writing, reading)
    theirs.callback(os.close, other)
    return ours.enter_context(os.fdopen(mine, own)), other
