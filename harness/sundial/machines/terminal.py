# SPDX-License-Identifier: Apache-2.0
"""A terminal joined to a machine's console socket. Ctrl-] leaves; everything else goes to the guest."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

from sundial.errors import RunFailed

LEAVE = b"\x1d"


def connect(path: Path, machine: str) -> socket.socket:
    """The console socket of a machine. Raises RunFailed when it is not served."""
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.connect(str(path))
    except OSError as error:
        stream.close()
        raise RunFailed(f"its console cannot be reached: {error.strerror}", machine=machine) from error
    return stream


def attach(stream: socket.socket, input_fd: int, output_fd: int) -> None:
    """Carry bytes both ways until Ctrl-], the end of the input or the end of the guest."""
    with raw_terminal(input_fd):
        while True:
            ready, _, _ = select.select([stream.fileno(), input_fd], [], [])
            if stream.fileno() in ready:
                data = stream.recv(4096)
                if not data:
                    return
                write_all(output_fd, data)
            if input_fd in ready:
                typed = os.read(input_fd, 4096)
                before, left, _ = typed.partition(LEAVE)
                if before:
                    stream.sendall(before)
                if left or not typed:
                    return


@contextlib.contextmanager
def raw_terminal(fd: int) -> Iterator[None]:
    """The terminal passes every key on; as it was afterwards. Anything but a terminal is left alone."""
    if not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    tty.setraw(fd)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def write_all(fd: int, data: bytes) -> None:
    """All of it, whatever the descriptor takes at a time."""
    while data:
        data = data[os.write(fd, data) :]
