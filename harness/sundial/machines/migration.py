# SPDX-License-Identifier: Apache-2.0
"""A machine's state out to a file and back in, through a unix socket that this process serves or dials.

Main memory that is a file shared with QEMU stays out of it (QEMU's capability x-ignore-shared): a machine that is
restored maps that file. Other memory is in the state.

libvirt starts QEMU in a sandbox that may not spawn, which rules `exec:` out, and QEMU 7.2 has no `file:`; with plain
QEMU migration nothing of the saved domain's name or uuid is in the state, so that one snapshot serves any machine.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sundial.machines.hypervisor import Machine, MonitorError
from sundial.machines.waiting import WALL, Clock, DeadlineMissed, wait_until

STREAM_S = 60.0
UNLIMITED = 1 << 40
CHUNK = 1 << 20
IGNORE_SHARED = {"capability": "x-ignore-shared", "state": True}


class MigrationFailed(Exception):
    """The state could not be taken or given; the machine is of no more use."""


def save_state(machine: Machine, path: Path, sockets: Path, clock: Clock = WALL) -> None:
    """Write the state of a paused machine to `path`, synced.

    `sockets` is a folder with a short name. Raises MigrationFailed.
    """
    with _socket_path(sockets) as address, socket.socket(socket.AF_UNIX) as server:
        server.bind(str(address))
        # QEMU dials it, and may be the user whom the folder was made for.
        owner = sockets.stat()
        os.chown(address, owner.st_uid, owner.st_gid)
        server.listen(1)
        server.settimeout(STREAM_S)
        try:
            machine.qmp("migrate-set-capabilities", capabilities=[IGNORE_SHARED])
            machine.qmp("migrate-set-parameters", **{"max-bandwidth": UNLIMITED})
            machine.qmp("migrate", uri=f"unix:{address}")
            stream, _ = server.accept()
            with stream:
                stream.settimeout(STREAM_S)
                _receive(stream, path)
            wait_until(lambda: _save_ended(machine), seconds=STREAM_S, what="saving the state", clock=clock)
        except (OSError, MonitorError, DeadlineMissed) as error:
            raise MigrationFailed(f"saving {machine.name}: {error}") from error


def load_state(machine: Machine, path: Path, sockets: Path, clock: Clock = WALL) -> None:
    """Give the state in `path` to a machine that was started with `-incoming defer`; it is paused afterwards.

    Raises MigrationFailed, also when QEMU does not like what it gets.
    """
    with _socket_path(sockets) as address, socket.socket(socket.AF_UNIX) as stream, path.open("rb") as state:
        stream.settimeout(STREAM_S)
        try:
            machine.qmp("migrate-set-capabilities", capabilities=[IGNORE_SHARED])
            machine.qmp("migrate-incoming", uri=f"unix:{address}")
            stream.connect(str(address))
            _send(stream, state)
            stream.shutdown(socket.SHUT_WR)
            wait_until(lambda: _load_ended(machine), seconds=STREAM_S, what="loading the state", clock=clock)
        except (OSError, MonitorError, DeadlineMissed) as error:
            raise MigrationFailed(f"restoring {machine.name}: {error}") from error


@contextmanager
def _socket_path(folder: Path) -> Iterator[Path]:
    path = folder / f"m{secrets.token_hex(3)}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _receive(stream: socket.socket, path: Path) -> None:
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with path.open("wb") as out:
        while count := stream.recv_into(buffer):
            out.write(view[:count])
        out.flush()
        os.fsync(out.fileno())


def _send(stream: socket.socket, state: BinaryIO) -> None:
    size = os.fstat(state.fileno()).st_size
    if stream.sendfile(state) != size:
        raise OSError("the state file changed while it was read")


def _save_ended(machine: Machine) -> bool:
    status = machine.qmp("query-migrate").get("status")
    if status in ("failed", "cancelled"):
        raise MonitorError(f"QEMU says that saving the state {status}")
    return bool(status == "completed")


def _load_ended(machine: Machine) -> bool:
    return bool(machine.qmp("query-status").get("status") != "inmigrate")
