# SPDX-License-Identifier: Apache-2.0
"""Topologies that stay up, for the command line. `keeper_main` does the work.

A keeper is a separate process in a separate session that holds fabric and machines until `down`.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sundial
from sundial.errors import BadInput, HostLacks, Interrupted, RunFailed, SundialError
from sundial.machines import reaper
from sundial.machines.command import Ended, Output
from sundial.machines.foreground import Foreground, perform
from sundial.machines.several import Callee, perform_all
from sundial.machines.terminal import attach, connect
from sundial.plan.request import Kept, KeptMachine, Progress, UpRequest
from sundial.run.places import Places
from sundial.run.upfolder import LOG, KeeperRecord, UpFolder, all_up, kept_from_json, request_to_json

DOWN_S = 60.0
_ERRORS: dict[str, type[SundialError]] = {
    kind.__name__: kind for kind in (BadInput, HostLacks, RunFailed, Interrupted, SundialError)
}


def up(request: UpRequest, progress: Progress, places: Places | None = None) -> Kept:
    """Bring up a topology, which stays up.

    Raises BadInput if it is up already, HostLacks, RunFailed, Interrupted.
    """
    where = places or Places()
    folder = UpFolder(where.up, request.network.name)
    if folder.is_taken():
        raise BadInput(
            f"{request.network.name} is up already", hint=f"take it down first: ./sundial down {request.network.name}"
        )
    folder.make()
    package = str(Path(sundial.__file__).parents[1])
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    with (folder.path / LOG).open("w") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "sundial.run.keeper_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd=where.checkout,
            env=variables,
        )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        with keeper.stdin as stdin:
            stdin.write(json.dumps(request_to_json(request, where)).encode())
        with keeper.stdout as lines:
            for line in lines:
                message: dict[str, Any] = json.loads(line)
                if "say" in message:
                    progress.say(message["say"])
                elif "up" in message:
                    return kept_from_json(message["up"])
                elif "failed" in message:
                    keeper.wait()
                    raise _error(message["failed"])
    except (KeyboardInterrupt, BrokenPipeError) as error:
        keeper.send_signal(signal.SIGTERM)
        keeper.wait(DOWN_S)
        if isinstance(error, KeyboardInterrupt):
            raise Interrupted from None
    keeper.wait()
    raise RunFailed(f"the keeper of {request.network.name} ended with status {keeper.returncode}{_last_line(folder)}")


def down(topology: str | None = None, places: Places | None = None) -> list[str]:
    """Take down one topology, or all. Returns their names. Raises BadInput if that one is not up."""
    where = places or Places()
    records = [_find(topology, where)] if topology is not None else list(all_up(where.up))
    for record in records:
        _end(record, UpFolder(where.up, record.kept.topology))
    return [record.kept.topology for record in records]


def list_(places: Places | None = None) -> list[Kept]:
    """The topologies that are up."""
    return [record.kept for record in all_up((places or Places()).up)]


def status(topology: str | None = None, places: Places | None = None) -> dict[str, Any]:
    """Status from the keeper: states of machines, and the fabric's counters. Raises BadInput, RunFailed."""
    record = _find(topology, places or Places())
    return _ask(record, "status", DOWN_S)


def connected(topology: str | None = None, places: Places | None = None) -> str:
    """libvirt's URI of a topology, or EMBEDDED. Raises BadInput."""
    return _find(topology, places or Places()).kept.connect


def virsh(argv: Sequence[str], topology: str | None = None, places: Places | None = None) -> str:
    """The output of a virsh command for a topology's machines. Raises BadInput, RunFailed."""
    answer = _ask(_find(topology, places or Places()), "virsh", DOWN_S, argv=list(argv))
    if "failed" in answer:
        raise _error(answer["failed"])
    return str(answer.get("printed"))


def change(
    event: Mapping[str, Any] | None, topology: str | None = None, places: Places | None = None
) -> dict[str, Any]:
    """Change a segment of a topology: the event with its instant; of None, what is in force by segment.

    Raises BadInput, RunFailed.
    """
    answer = _ask(_find(topology, places or Places()), "change", DOWN_S, event=event)
    if "failed" in answer:
        raise _error(answer["failed"])
    return answer


def exec_(
    machine: str,
    argv: Sequence[str],
    foreground: Foreground,
    output: Output,
    topology: str | None = None,
    places: Places | None = None,
) -> Ended:
    """Run a command in a machine. Raises BadInput, RunFailed, Interrupted."""
    record = _find(topology, places or Places())
    kept = _machine(record, machine)
    from sundial.model.images import IMAGES

    streams = IMAGES[kept.image].streams_commands
    if not streams:
        _check_plain(kept, foreground)
    return perform(Path(record.exec_sockets[machine]), machine, argv, foreground, output, streams=streams)


def exec_all(
    machines: Sequence[str] | None,
    argv: Sequence[str],
    seconds: float | None,
    outputs: Callable[[Sequence[str]], Mapping[str, Output]],
    topology: str | None = None,
    places: Places | None = None,
) -> dict[str, Ended | RunFailed]:
    """Run a command in these machines, or in all (None), at once and without input; how each ended. `outputs` has the
    receivers by the names of machines. Raises BadInput, Interrupted."""
    from sundial.model.images import IMAGES

    record = _find(topology, places or Places())
    names = [machine.name for machine in record.kept.machines] if machines is None else machines
    chosen = [_machine(record, name) for name in dict.fromkeys(names)]
    callees = {
        kept.name: Callee(Path(record.exec_sockets[kept.name]), IMAGES[kept.image].streams_commands) for kept in chosen
    }
    return perform_all(callees, argv, seconds, outputs(list(callees)))


def console(machine: str, topology: str | None = None, places: Places | None = None) -> None:
    """Connect the terminal to a machine's console until Ctrl-]. Raises BadInput, RunFailed."""
    record = _find(topology, places or Places())
    with connect(Path(_machine(record, machine).console), machine) as stream:
        sys.stderr.write(f"console of {machine}; leave with Ctrl-]\n")
        sys.stderr.flush()
        # Wake the shell up, so that it prints a prompt.
        stream.sendall(b"\n")
        attach(stream, sys.stdin.fileno(), sys.stdout.fileno())


def find_machine(machine: str, topology: str | None = None, places: Places | None = None) -> tuple[Kept, KeptMachine]:
    """A topology that is up, and a machine of it. Raises BadInput."""
    record = _find(topology, places or Places())
    return record.kept, _machine(record, machine)


def _find(topology: str | None, places: Places) -> KeeperRecord:
    records = {record.kept.topology: record for record in all_up(places.up)}
    if topology is None and len(records) == 1:
        return next(iter(records.values()))
    if topology in records:
        return records[str(topology)]
    if not records:
        raise BadInput("nothing is up", hint="bring a topology up with: ./sundial up TOPOLOGY")
    if topology is None:
        raise BadInput("several topologies are up", field="--topology", allowed=", ".join(records))
    raise BadInput(f"{topology} is not up", allowed=", ".join(records))


def _machine(record: KeeperRecord, name: str) -> KeptMachine:
    for machine in record.kept.machines:
        if machine.name == name:
            return machine
    raise BadInput(f"{record.kept.topology} has no machine {name!r}", allowed=", ".join(record.exec_sockets))


def _check_plain(machine: KeptMachine, foreground: Foreground) -> None:
    """Raises BadInput for options that an image does not support because its commands are lines of a monitor."""
    if foreground.terminal:
        raise BadInput(
            f"image {machine.image} does not support --terminal",
            field="--terminal",
            hint=f"use its console: ./sundial console {machine.name}",
        )
    if foreground.input_fd is not None and _has_input(foreground.input_fd):
        raise BadInput(
            f"image {machine.image} does not support standard input", hint="run it without input: < /dev/null"
        )


def _has_input(fd: int) -> bool:
    """True if input is available at once; a terminal has none until a key is pressed."""
    waiting = array.array("i", [0])
    with contextlib.suppress(OSError):
        if not os.isatty(fd):
            fcntl.ioctl(fd, termios.FIONREAD, waiting)
    return waiting[0] > 0


def _end(record: KeeperRecord, folder: UpFolder) -> None:
    """Request the keeper's end; a keeper that does not answer is killed, and its guard cleans up."""
    try:
        handle = os.pidfd_open(record.kept.pid)
    except OSError:
        return
    try:
        _ask(record, "down", DOWN_S)
    except RunFailed:
        if folder.is_taken():
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    if not reaper.wait_gone(handle, DOWN_S):
        raise RunFailed(f"the keeper of {record.kept.topology} did not end")


def _ask(record: KeeperRecord, command: str, seconds: float, **more: object) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(seconds)
            stream.connect(record.control)
            stream.sendall(json.dumps({"command": command, **more}).encode() + b"\n")
            with stream.makefile() as lines:
                answer = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise RunFailed(f"the keeper of {record.kept.topology} does not answer: {error}") from error
    if not isinstance(answer, dict):
        raise RunFailed(f"the keeper of {record.kept.topology} sent an invalid reply")
    return answer


def _error(document: dict[str, Any]) -> SundialError:
    """The keeper's error as if raised here; its message names the machine already."""
    kind = _ERRORS.get(str(document.get("error")), RunFailed)
    error = kind(str(document.get("message")), hint=document.get("hint"))
    if isinstance(error, RunFailed):
        error.machine = document.get("machine")
        error.console_tail = tuple(document.get("console_tail", ())) or None
    return error


def _last_line(folder: UpFolder) -> str:
    try:
        lines = (folder.path / LOG).read_text(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f": {lines[-1]}" if lines else ""
