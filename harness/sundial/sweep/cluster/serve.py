# SPDX-License-Identifier: Apache-2.0
"""The processes of a cluster: a scheduler, and workers that wait for it and come back when it does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sundial.errors import BadInput, HostLacks, Interrupted
from sundial.run.interrupts import SIGNALS
from sundial.sweep.cluster import agent as calls
from sundial.sweep.cluster.agent import Agent
from sundial.sweep.cluster.dask import distributed, security
from sundial.sweep.place import CERTIFICATE, KEY

AGAIN_S = 2.0
"""Before a worker looks for a scheduler that was gone."""
Say = Callable[[str], None]


def worker_name() -> str:
    """Name of a worker that this process is."""
    return f"{socket.gethostname()}-{os.getpid()}"


def schedule(address: str, certs: Path | None, say: Say) -> None:
    """Be the scheduler at an address. Raises HostLacks where it cannot be had, Interrupted."""
    asyncio.run(_schedule(address, certs, say))


async def _schedule(address: str, certs: Path | None, say: Say) -> None:
    stop = _stopped()
    parts = urlsplit(address)
    scheduler = distributed().Scheduler(
        host=parts.hostname, port=parts.port, protocol=parts.scheme, security=security(certs), dashboard=False
    )
    try:
        await scheduler
    except OSError as error:
        raise HostLacks(f"{address} cannot be had: {error}", hint="another port, or an address of this host") from error
    say(f"the scheduler is at {scheduler.address}")
    await _first(stop.wait(), scheduler.finished())
    await scheduler.close()
    raise Interrupted("the scheduler has ended")


def work(address: str, certs: Path | None, agent: Agent, say: Say) -> None:
    """Be a worker of the scheduler at an address, and wait for it while it is not there. Raises Interrupted."""
    calls.serve(agent)
    try:
        asyncio.run(_work(address, certs, agent, say))
    finally:
        agent.close()


async def _work(address: str, certs: Path | None, agent: Agent, say: Say) -> None:
    stop = _stopped()
    offer = agent.offer
    with tempfile.TemporaryDirectory(prefix="sundial-worker-") as scratch:
        while not stop.is_set():
            say(f"waiting for the scheduler at {address}")
            worker = distributed().Worker(
                address, name=offer.name, nthreads=offer.slots, memory_limit=0, security=security(certs),
                local_directory=scratch, dashboard=False,
            )  # fmt: skip
            joined = asyncio.ensure_future(_joined(worker, say, offer.slots))
            await _first(stop.wait(), joined)
            if not joined.done():
                joined.cancel()
            agent.stop(None)
            with contextlib.suppress(Exception):  # it may be half closed already
                await worker.close(timeout=AGAIN_S, executor_wait=False)
            if not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), AGAIN_S)
    raise Interrupted("the worker has ended")


async def _joined(worker: Any, say: Say, slots: int) -> None:
    """From here to the end of the scheduler."""
    with contextlib.suppress(OSError, TimeoutError, RuntimeError):
        await worker
        say(f"{worker.name} makes runs, {slots} at a time")
        await worker.finished()


def _stopped() -> asyncio.Event:
    """Set by the signals that end the process."""
    event = asyncio.Event()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(signal.Signals(number), event.set)
    return event


async def _first(*ends: Any) -> None:
    """Until one of these is over."""
    tasks = [asyncio.ensure_future(end) for end in ends]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


def make_certs(folder: Path) -> None:
    """A folder with a certificate and its key, for all of a cluster. Raises BadInput, HostLacks."""
    if folder.exists():
        raise BadInput(f"{folder} exists", field="DIR", allowed="a folder that does not exist yet")
    if shutil.which("openssl") is None:
        raise HostLacks("openssl is not installed", hint="apt-get install openssl")
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be made: {error.strerror}", field="DIR") from error
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650")
    files = ("-keyout", folder / KEY, "-out", folder / CERTIFICATE)
    command = ("openssl", "req", "-x509", *kind, "-subj", "/CN=sundial", *files)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(folder)
        raise HostLacks(f"openssl could not make a certificate: {done.stderr.strip().splitlines()[-1]}")
    (folder / KEY).chmod(0o600)
