# SPDX-License-Identifier: Apache-2.0
"""A connection to a libvirt daemon, on this computer or through ssh."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from sundial.errors import BadInput, HostLacks, RunFailed
from sundial.machines.ssh import Ssh, hint
from sundial.machines.waiting import DeadlineMissed, call_within
from sundial.model.daemon import DaemonUri

DAEMON_S = 25.0
KEEP_ALIVE_S = 5
KEEP_ALIVE_MOST = 3
ASK_S = 3.0
SOCKETS = ("libvirt-sock", "virtqemud-sock")
"""Of libvirtd, and of the daemon for QEMU where there is one for each purpose."""
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


def running(libvirt: Any, variables: Mapping[str, str], user: int) -> dict[str, str]:
    """The usual daemons whose sockets are there, by URI, with libvirt's version or what is wrong; none is started."""
    runtime = variables.get("XDG_RUNTIME_DIR")
    own = Path(runtime) if runtime else Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folders = {"qemu:///session": own / "libvirt", "qemu:///system": Path("/run/libvirt")}
    if user == 0:  # to whom libvirt gives the system's
        del folders["qemu:///session"]
    served = {uri: next(filter(Path.is_socket, map(folder.joinpath, SOCKETS)), None) for uri, folder in folders.items()}
    return {uri: _version(libvirt, uri, path) for uri, path in served.items() if path is not None}


def _version(libvirt: Any, uri: str, path: Path) -> str:
    def ask() -> str:
        handle = libvirt.open(f"{uri}?{urlencode({'socket': path}, quote_via=quote)}")
        number = handle.getLibVersion()
        handle.close()
        return dotted(number)

    try:
        return call_within(ASK_S, uri, ask)
    except libvirt.libvirtError as error:
        return one_line(error)
    except DeadlineMissed:
        return "does not answer"


def dotted(version: int) -> str:
    """libvirt's 7002022 as 7.2.22."""
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())
