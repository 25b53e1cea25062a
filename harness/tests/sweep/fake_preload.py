# SPDX-License-Identifier: Apache-2.0
"""A worker of Dask's own programs with the runs of `side`, as `sundial.cli.dask_preload` has those of this host."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from sundial.sweep.cluster.agent import Agent, serve
from tests.sweep.fake_cluster import offering
from tests.sweep.side import FOLDER, MAKING

_agents: list[Agent] = []


def dask_setup(worker: Any) -> None:
    """Called by Dask before the worker joins."""
    folder = Path(tempfile.mkdtemp())
    os.environ[FOLDER] = str(folder)
    agent = Agent(MAKING, folder / "store", folder / "images", offering(str(worker.name), "there"))
    serve(agent)
    _agents.append(agent)


def dask_teardown(worker: Any) -> None:
    """Called by Dask when the worker ends."""
    while _agents:
        _agents.pop().close()
