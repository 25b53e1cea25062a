# SPDX-License-Identifier: Apache-2.0
"""A connection to a libvirt daemon, on this computer or through ssh."""

from __future__ import annotations

import contextlib
import secrets
import socket
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.machines.ssh import Ssh, hint
from sundial.machines.waiting import DeadlineMissed, call_within
from sundial.model.daemon import DaemonUri

DAEMON_S = 25.0
KEEP_ALIVE_S = 5
KEEP_ALIVE_MOST = 3
CLOSE_REASONS = ("an error", "end of file", "no answer")
"""By libvirt's number; the next one is our own closing."""


def open_daemon(libvirt: Any, uri: DaemonUri, programs: Path, *, ssh: Ssh | None = None, open_s: float | None) -> Any:
    """libvirt's handle. `programs` is a folder for what libvirt calls as its ssh; None for `ssh`: made from the URI.

    Raises HostLacks where there is no such daemon, RunFailed when it does not answer in time.
    """
    address = uri.text
    if uri.transport == "ssh":
        program = (ssh or Ssh(uri)).write_program(programs / f"ssh-{secrets.token_hex(3)}")
        address = uri.through(str(program))
    try:
        handle = call_within(open_s or DAEMON_S, uri.text, lambda: libvirt.open(address))
    except libvirt.libvirtError as error:
        words = one_line(error)
        raise HostLacks(f"libvirt cannot be reached at {uri.text}: {words}", hint=hint(words, uri)) from error
    except DeadlineMissed as error:
        raise RunFailed(
            f"libvirt does not answer at {error}", hint="leave out --connect to use libvirt's embedded driver"
        ) from error
    with contextlib.suppress(libvirt.libvirtError):
        handle.setKeepAlive(KEEP_ALIVE_S, KEEP_ALIVE_MOST)
    return handle


def require_here(handle: Any, uri: DaemonUri) -> None:
    """A daemon's machines read and write files of the run. Raises BadInput where it is on another computer."""
    name = handle.getHostname()
    if uri.host is not None and name != socket.gethostname():
        raise BadInput(
            f"{uri.text} is on another host, {name}, where a run's files are not",
            field="--connect",
            hint="name it below hosts: in the topology, and put machines on it",
        )


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
