# SPDX-License-Identifier: Apache-2.0
"""The TCP connections of this process, also those that a library keeps to itself."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
