# SPDX-License-Identifier: Apache-2.0
"""The TCP connections of this process, also those that a library keeps to itself."""

import errno
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sundial_guest import clock

Connection = TypeVar("Connection")

_PAUSE_S = 0.1
"""Between two attempts, as iperf3-client has it."""
_STARTING = {errno.ECONNREFUSED, errno.EHOSTUNREACH}
"""No program listens, or no machine answers."""

_TOTAL_RETRANS = 100
"""Where tcpi_total_retrans is in struct tcp_info (linux/tcp.h): behind 8 bytes and 23 numbers of 4."""


@contextmanager
def _as_socket(descriptor: int) -> Iterator[socket.socket]:
    """Raises OSError where it is none."""
    own = os.dup(descriptor)
    try:
        opened = socket.socket(fileno=own)
    except OSError:
        os.close(own)
        raise
    with opened:
        yield opened


def await_server(connect: Callable[[], Connection], patience_s: float) -> Connection:
    """What `connect` makes. Under the real clock a server that is still starting is waited for.

    Raises what `connect` does: at once under the virtual clock, where servers are ready before steps begin.
    """
    end = time.monotonic() + patience_s
    while True:
        try:
            return connect()
        except OSError as error:
            if error.errno not in _STARTING or not clock.is_real() or time.monotonic() + _PAUSE_S > end:
                raise
        time.sleep(_PAUSE_S)


def find(address: str, port: int) -> int | None:
    """The file descriptor of a connection to this peer."""
    for number in sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir()):
        try:
            with _as_socket(number) as opened:
                if opened.family == socket.AF_INET and opened.getpeername() == (address, port):
                    return number
        except OSError:
            continue  # no socket, or not connected, or the folder's own descriptor
    return None


def local_port(descriptor: int) -> int:
    """The port at this end."""
    with _as_socket(descriptor) as opened:
        return int(opened.getsockname()[1])


def retransmits(descriptor: int) -> int:
    """Segments that TCP has sent again so far."""
    with _as_socket(descriptor) as opened:
        info = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TOTAL_RETRANS + 4)
    return int.from_bytes(info[_TOTAL_RETRANS:], sys.byteorder)
