# SPDX-License-Identifier: Apache-2.0
"""Schedulers that begin and end with a command, and whose workers other programs start: ssh, Slurm, Kubernetes.

Dask's packages do so: its own part for ssh, which needs asyncssh; dask-jobqueue; dask-kubernetes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from sundial.errors import HostLacks
from sundial.model.catalog import INSTALLED, ROOT
from sundial.sweep.cluster.dask import FOLDER, distributed, security, tls_settings
from sundial.sweep.place import Place, Started

PRELOAD = "sundial.cli.dask_preload"
PACKAGES = {"ssh": "asyncssh", "slurm": "dask-jobqueue", "k8s": "dask-kubernetes"}
"""What each kind needs beside Dask.distributed."""

_QUIET = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Of a scheduler: no page, at no port of its own."""


@contextlib.contextmanager
def scheduler_at(place: Place) -> Iterator[tuple[Any, str]]:
    """What a client connects to, and its address. Raises HostLacks for what cannot be started."""
    if place.started is None:
        assert place.address is not None
        yield place.address, place.address
        return
    kind = place.started.kind
    package = _package(kind)
    try:
        cluster = _KINDS[kind](package, place.started, place.certs)
    except HostLacks:
        raise
    except Exception as error:  # of ssh, or of the configuration
        raise HostLacks(f"{kind} started no workers: {_first(error)}") from error
    try:
        yield cluster, cluster.scheduler_address
    finally:
        cluster.close()


def _first(error: BaseException) -> str:
    """The first cause of an error, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).partition("\n")[0] or type(error).__name__


def _package(kind: str) -> Any:
    """Raises HostLacks."""
    distributed()
    name = PACKAGES[kind]
    try:
        return import_module(name.replace("-", "_"))
    except ImportError as error:
        mend = f"pip install 'sundial[{kind}]'" if INSTALLED else f".venv/bin/python -m pip install {name}"
        raise HostLacks(f"{name} is not installed: {error}", hint=mend) from error


def _paths() -> str:
    """PYTHONPATH of a worker: Sundial is at the same place on each host."""
    return "" if INSTALLED else os.pathsep.join(map(str, (ROOT / "harness", FOLDER)))


def _ssh(package: Any, started: Started, certs: Path | None) -> Any:
    """A scheduler in this process, and a worker on each host."""
    dask = distributed()
    python = f"env PYTHONPATH={shlex.quote(_paths())} {shlex.quote(sys.executable)}"
    options = {"preload": [PRELOAD], "memory_limit": 0, "dashboard": False}
    worker = import_module("distributed.deploy.ssh").Worker
    workers = {
        host: {
            "cls": worker,
            "options": {"address": host, "connect_options": {}, "kwargs": options, "remote_python": python,
                        "worker_class": "distributed.Worker"},
        }
        for host in started.hosts
    }  # fmt: skip
    own: dict[str, Any] = {**_QUIET, "port": 0, "security": security(certs)}
    own |= {"protocol": "tcp", "host": "127.0.0.1"} if certs is None else {"protocol": "tls"}
    scheduler = {"cls": dask.Scheduler, "options": own}
    with import_module("dask").config.set(tls_settings(certs)):
        return dask.SpecCluster(workers, scheduler, security=security(certs), name="sundial")


def slurm_cluster(package: Any, started: Started, certs: Path | None) -> Any:
    """A scheduler in this process, and jobs: partition, cores, memory and time are those of Dask's configuration."""
    if shutil.which("sbatch") is None:
        raise HostLacks("sbatch is not installed", hint="give the command on a host that submits jobs of Slurm")
    cluster = package.SLURMCluster(
        processes=1,
        nanny=False,
        python=sys.executable,
        job_script_prologue=[f"export PYTHONPATH={shlex.quote(_paths())}"],
        worker_extra_args=["--preload", PRELOAD, "--memory-limit", "0"],
        protocol="tls://",
        security=security(certs),
        scheduler_options=_QUIET,
    )
    cluster.scale(jobs=started.count)
    return cluster


def _k8s(package: Any, started: Started, certs: Path | None) -> Any:
    """Pods of the operator, of the image that Dask's configuration names, in which Sundial is installed."""
    command = ["dask", "worker", "--preload", PRELOAD, "--memory-limit", "0", "--no-nanny"]
    operator = import_module("dask_kubernetes.operator")
    return operator.KubeCluster(name=f"sundial-{os.getpid()}", n_workers=started.count, worker_command=command)


_KINDS: Mapping[str, Callable[[Any, Started, Path | None], Any]] = {"ssh": _ssh, "slurm": slurm_cluster, "k8s": _k8s}
